//! The nouns: clusters, records of nodes, downstream Nodes, agent pods, and a look at all of them.
//!
//! A *record* is Rancher's object about a node (`nodes.management.cattle.io`), a *Node* is the downstream cluster's own.
//! What the wire says becomes these types in `doc`; nothing here has a field for a key, a token or a plan.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use reveille_core::model::id::{NodeName, NodeUid};
use serde::{Deserialize, Serialize};

use crate::stamp::ServerTime;

/// A cluster's id, and the namespace of its records: `c-abcde`, `c-m-abcdefgh`, `local`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ClusterId(pub String);

/// A record's name: `m-0123456789ab`, `machine-abcde`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RecordName(pub String);

impl fmt::Display for ClusterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl fmt::Display for RecordName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// Who made a record, by the grammar of its name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Maker {
    /// `m-` and twelve hexadecimal digits: a node that registered itself.
    Registration,
    /// `m-` and five letters or digits: a node that a pool made.
    Pool,
    /// `machine-…`: the mirror of a Node that had no record.
    Mirror,
    /// None of them.
    Unknown,
}

impl RecordName {
    /// Who made it.
    pub fn maker(&self) -> Maker {
        let name = self.0.as_str();
        if name.starts_with("machine-") {
            return Maker::Mirror;
        }
        let Some(rest) = name.strip_prefix("m-") else { return Maker::Unknown };
        match rest.len() {
            12 if rest.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b)) => {
                Maker::Registration
            }
            5 if rest.bytes().all(|b| b.is_ascii_digit() || b.is_ascii_lowercase()) => Maker::Pool,
            _ => Maker::Unknown,
        }
    }
}

/// A role of a node.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Holds the cluster's state.
    Etcd,
    /// Runs the API server.
    ControlPlane,
    /// Runs workloads.
    Worker,
}

impl Role {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Etcd, Self::ControlPlane, Self::Worker];

    /// As Rancher writes it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::ControlPlane => "controlplane",
            Self::Worker => "worker",
        }
    }

    /// From Rancher's words, or from the end of a Node's role label.
    pub fn of_word(word: &str) -> Option<Self> {
        match word {
            "etcd" => Some(Self::Etcd),
            "controlplane" | "control-plane" | "master" => Some(Self::ControlPlane),
            "worker" => Some(Self::Worker),
            _ => None,
        }
    }
}

/// Roles as text: `etcd, worker`; `none`.
pub fn role_words(roles: &BTreeSet<Role>) -> String {
    if roles.is_empty() {
        return "none".to_owned();
    }
    roles.iter().map(|role| role.word()).collect::<Vec<_>>().join(", ")
}

/// How a cluster came to Rancher. `machine-` records are only wrong in the first kind.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum Kind {
    /// RKE1: Rancher runs it, and every node registers.
    Managed,
    /// Imported, local, RKE2, K3s, or of a cloud's own service: records mirror Nodes.
    Mirrored,
    /// It has no driver yet: it was never initialised.
    #[default]
    Unset,
}

/// A condition.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Condition {
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// One word.
    pub reason: String,
    /// A text, cut.
    pub message: String,
}

/// Conditions by type.
pub type Conditions = BTreeMap<String, Condition>;

/// A host of a cluster's applied specification.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Host {
    /// `cluster:record`.
    pub node_name: String,
    /// Address it is reached by.
    pub address: String,
    /// Roles.
    pub roles: BTreeSet<Role>,
}

/// A cluster (`clusters.management.cattle.io`).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Cluster {
    /// Its id.
    pub id: ClusterId,
    /// What people call it.
    pub display_name: String,
    /// `status.driver`, as it is written.
    pub driver: String,
    /// How it came to Rancher.
    pub kind: Kind,
    /// Whether it is on its way out.
    pub deleting: bool,
    /// Its conditions.
    pub conditions: Conditions,
    /// Hosts of the specification that was applied last; none where none was, or it is not RKE1's.
    pub applied_hosts: Option<Vec<Host>>,
}

impl Cluster {
    /// Name and id for people: `shop (c-abcde)`.
    pub fn called(&self) -> String {
        if self.display_name.is_empty() || self.display_name == self.id.0 {
            return self.id.0.clone();
        }
        format!("{} ({})", self.display_name, self.id)
    }
}

/// `spec.customConfig`, without its keys.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CustomConfig {
    /// Address it is reached by.
    pub address: String,
    /// Address within the cluster.
    pub internal_address: String,
}

/// `status.rkeNode`, without its keys.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RkeNode {
    /// `cluster:record`.
    pub node_name: String,
    /// The Node's name.
    pub hostname_override: String,
    /// Address it is reached by.
    pub address: String,
    /// Address within the cluster.
    pub internal_address: String,
    /// Roles.
    pub roles: BTreeSet<Role>,
}

/// An address of a Node: `InternalIP`, `10.0.0.5`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Address {
    /// Its type.
    pub kind: String,
    /// The address.
    pub address: String,
}

/// A record of a node (`nodes.management.cattle.io`).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Record {
    /// Its name.
    pub name: RecordName,
    /// Its uid.
    pub uid: String,
    /// Its revision.
    pub revision: String,
    /// How often it was written, but for its metadata.
    pub generation: Option<i64>,
    /// When it was made, by the API server's clock.
    pub created: Option<ServerTime>,
    /// Since when it is on its way out, by the API server's clock.
    pub deleting: Option<ServerTime>,
    /// What has to be done before it may go.
    pub finalizers: Vec<String>,
    /// Label `management.cattle.io/nodename`.
    pub node_label: Option<NodeName>,
    /// Annotation `management.cattle.io/nodesyncer`: the syncer adopted it, and may delete it.
    pub is_synced: bool,
    /// Annotation `lifecycle.cattle.io/create.node-controller`: its create hook ran, and never runs again.
    pub is_created: bool,
    /// `spec.requestedHostname`.
    pub requested_hostname: String,
    /// `spec.imported`.
    pub imported: bool,
    /// `spec.etcd`, `spec.controlPlane`, `spec.worker`.
    pub roles: BTreeSet<Role>,
    /// `spec.customConfig`.
    pub custom_config: Option<CustomConfig>,
    /// `spec.nodeTemplateName`.
    pub template: String,
    /// `spec.nodePoolName`.
    pub pool: String,
    /// `status.nodeName`.
    pub node_name: Option<NodeName>,
    /// `status.rkeNode`.
    pub rke_node: Option<RkeNode>,
    /// `status.internalNodeStatus.addresses`.
    pub addresses: Vec<Address>,
    /// Whether `status.dockerInfo` is there.
    pub has_docker_info: bool,
    /// Whether `status.nodePlan` is there. What it holds is not read.
    pub has_plan: bool,
    /// Its conditions.
    pub conditions: Conditions,
}

impl Record {
    /// The Node that it stands for, as it says itself: label, then status, then the name that was asked for.
    pub fn node(&self) -> Option<&NodeName> {
        self.node_label.as_ref().or(self.node_name.as_ref())
    }

    /// Addresses within the cluster.
    pub fn internal_ips(&self) -> BTreeSet<&str> {
        let ips = self.addresses.iter().filter(|address| address.kind == "InternalIP");
        ips.map(|address| address.address.as_str()).collect()
    }

    /// Whether it speaks of the Node of this name: by its label where it has one, else by any of its names.
    pub fn names(&self, node: &NodeName) -> bool {
        if let Some(label) = &self.node_label {
            return label == node;
        }
        let name = node.as_str();
        self.node_name.as_ref() == Some(node)
            || self.rke_node.as_ref().is_some_and(|rke| rke.hostname_override == name)
            || self.requested_hostname == name
    }

    /// Whether it speaks of the Node of this name and these addresses, by the rule of Rancher's own syncer: label, then
    /// names, then an internal address.
    pub fn is_of(&self, node: &Node) -> bool {
        let ips = self.internal_ips();
        let shares = || node.internal_ips().iter().any(|ip| ips.contains(ip));
        self.names(&node.name) || self.node_label.is_none() && shares()
    }
}

/// A downstream Node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Node {
    /// Its name.
    pub name: NodeName,
    /// Its uid.
    pub uid: NodeUid,
    /// Its revision.
    pub revision: String,
    /// Its addresses.
    pub addresses: Vec<Address>,
    /// Its role labels.
    pub roles: BTreeSet<Role>,
    /// Its Ready condition: `True`, `False`, `Unknown`.
    pub ready: String,
    /// Whether new pods are kept off it.
    pub unschedulable: bool,
    /// Label `cattle.rancher.io/node-status=ignore`: Rancher's syncer passes it over.
    pub is_ignored: bool,
    /// Annotation `reveille.dev/pause: "true"`: people said hands off.
    pub is_paused: bool,
    /// When it was made, by the API server's clock.
    pub created: Option<ServerTime>,
}

impl Node {
    /// Addresses within the cluster.
    pub fn internal_ips(&self) -> BTreeSet<&str> {
        let ips = self.addresses.iter().filter(|address| address.kind == "InternalIP");
        ips.map(|address| address.address.as_str()).collect()
    }
}

/// A pod of the DaemonSet `cattle-node-agent`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AgentPod {
    /// Its name.
    pub name: String,
    /// The Node it is on.
    pub node: String,
    /// Its phase.
    pub phase: String,
    /// Whether its container is ready.
    pub ready: bool,
}

/// Something of a cluster that could not be read, and why.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unread {
    /// What: `downstream Nodes`.
    pub what: String,
    /// Why, and what to do, for people.
    pub why: String,
    /// Of which kind the reason is.
    pub kind: UnreadKind,
}

/// Why something could not be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UnreadKind {
    /// The roster does not say where to ask.
    NotNamed,
    /// The API server has no such kind, or nothing of that name.
    Missing,
    /// It is there, and cannot be decoded.
    Garbled,
    /// Anything else: a refusal, no answer, too much of it.
    Failed,
}

/// One look at a cluster.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Sample {
    /// The cluster.
    pub cluster: Cluster,
    /// The management API server's clock when it answered.
    pub server_now: Option<ServerTime>,
    /// Its records, by name; `None` when they could not be read to their end.
    pub records: Option<BTreeMap<RecordName, Record>>,
    /// Records that are there and could not be decoded.
    pub garbled: usize,
    /// Its Nodes, by name; `None` when no API server could be asked.
    pub nodes: Option<BTreeMap<NodeName, Node>>,
    /// Its agent pods, by name; `None` when no API server could be asked.
    pub pods: Option<BTreeMap<String, AgentPod>>,
    /// What could not be read.
    pub unread: Vec<Unread>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_record_says_who_made_it() {
        for (name, maker) in [
            ("m-0123456789ab", Maker::Registration),
            ("m-abcde", Maker::Pool),
            ("m-x7k2p", Maker::Pool),
            ("machine-h46dc", Maker::Mirror),
            ("m-0123456789aZ", Maker::Unknown),
            ("m-0123456789a", Maker::Unknown),
            ("node-1", Maker::Unknown),
        ] {
            assert_eq!(RecordName(name.to_owned()).maker(), maker, "{name}");
        }
    }
}

//! What a repair reads before each step, and which machine it is for.
//!
//! An [`Observation`] is a look at the cluster with what else a repair rests on: pods on the Node, etcd's members, the newest
//! snapshot, and whether people said hands off. What could not be read is `None`, and nothing that rests on it is done.

use std::collections::BTreeSet;

use reveille_core::model::roster::Limits;
use reveille_core::model::time::Span;
use serde::{Deserialize, Serialize};

use super::Order;
use crate::model::{Kind, Node, Record, Role, Sample};

/// A pod, by what an eviction needs.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PodRef {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
}

/// What a pod is to a drain.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum PodKind {
    /// It goes elsewhere.
    Movable,
    /// It belongs to the Node: of a DaemonSet, or of the kubelet itself; or it has ended.
    Staying,
    /// It has data on the machine alone.
    LocalData,
    /// No controller would create the pod again.
    Unmanaged,
}

/// A pod on the Node.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Pod {
    /// Which.
    pub at: PodRef,
    /// What it is.
    pub kind: PodKind,
}

/// A member of etcd.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Member {
    /// Its id, in hexadecimal.
    pub id: String,
    /// Its name; empty where it has never started.
    pub name: String,
    /// Hosts of its peer addresses.
    pub hosts: BTreeSet<String>,
    /// Whether it answers and has caught up.
    pub healthy: bool,
    /// Why it is not, as a clause; empty where it is.
    pub unwell: String,
    /// Whether it leads.
    pub is_leader: bool,
}

impl Member {
    /// Its name, else its id.
    pub fn called(&self) -> &str {
        if self.name.is_empty() { &self.id } else { &self.name }
    }

    /// Whether it runs on the Node of this name and these addresses: RKE calls it after its host.
    fn is_on(&self, node: &str, ips: &BTreeSet<String>) -> bool {
        self.hosts.iter().any(|host| ips.contains(host))
            || self.name == node
            || self.name.strip_prefix("etcd-") == Some(node)
    }
}

/// A look with all that a repair rests on.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Observation {
    /// The cluster.
    pub sample: Sample,
    /// Pods on the Node.
    pub pods: Option<Vec<Pod>>,
    /// Claims of volumes that can be on this machine alone.
    pub volumes: Option<Vec<String>>,
    /// Members of etcd.
    pub members: Option<Vec<Member>>,
    /// How old the newest complete snapshot of etcd is, by the API server's clock; `None` where there is none, or it was not
    /// read.
    pub snapshot_age: Option<Span>,
    /// Who said hands off, or what else is under way.
    pub hands_off: Option<String>,
}

impl Observation {
    /// The Node that the order is about.
    pub fn node(&self, order: &Order) -> Option<&Node> {
        self.sample.nodes.as_ref()?.values().find(|node| node.name.as_str() == order.node)
    }

    /// Its records: those that Rancher's syncer would match with it, and those that share its name or its addresses, which were
    /// noted before the Node went.
    pub fn records(&self, order: &Order, ips: &BTreeSet<String>) -> Vec<&Record> {
        let node = self.node(order);
        let is_its = |record: &&Record| {
            node.is_some_and(|node| record.is_of(node))
                || record.node().is_some_and(|name| name.as_str() == order.node)
                || record.requested_hostname == order.node
                || record.internal_ips().iter().any(|ip| ips.contains(*ip))
        };
        self.sample.records.iter().flat_map(std::collections::BTreeMap::values).filter(is_its).collect()
    }

    /// One of these records that is another Node's, which is there: they share an address. If it were deleted, Rancher would
    /// create it again as a mirror, or take a healthy machine out.
    pub fn anothers<'s>(&'s self, order: &Order, records: &[&'s Record]) -> Option<(&'s Record, &'s Node)> {
        let others = self.sample.nodes.iter().flat_map(std::collections::BTreeMap::values);
        let mut others = others.filter(|node| node.name.as_str() != order.node);
        others.find_map(|node| {
            let record = records.iter().copied().find(|record| record.names(&node.name));
            record.map(|record| (record, node))
        })
    }

    /// Many failures at once have another cause than single ones. Where more of the other Nodes are not Ready than the roster
    /// tolerates, the repair touches none of them, as the engine does.
    pub fn freeze(&mut self, order: &Order, limits: &Limits) {
        let nodes = self.sample.nodes.iter().flat_map(std::collections::BTreeMap::values);
        let others: Vec<&Node> = nodes.filter(|node| node.name.as_str() != order.node).collect();
        let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let (silent, total) =
            (count(others.iter().filter(|node| node.ready != "True").count()), count(others.len()));
        let tolerated = limits.tolerated(total);
        if silent > tolerated && self.hands_off.is_none() {
            let text =
                format!("{silent} of {total} other Nodes are not Ready; more than {tolerated} freezes it");
            self.hands_off = Some(format!("{text} (limits.freezeAbove)"));
        }
    }

    /// Why no repair should touch the cluster now: it is updating, or is not one whose records we repair.
    pub fn unquiet(&self) -> Option<String> {
        let cluster = &self.sample.cluster;
        if cluster.kind != Kind::Managed {
            return Some(
                "Rancher does not run this cluster itself: its records mirror Nodes, and are not mended"
                    .to_owned(),
            );
        }
        if cluster.deleting {
            return Some("the cluster is on its way out".to_owned());
        }
        for (kind, needed) in [("Provisioned", true), ("Updated", false)] {
            match cluster.conditions.get(kind) {
                Some(condition) if condition.status != "True" => {
                    let text =
                        format!("the cluster is busy: {kind} is {} {}", condition.status, condition.message);
                    return Some(text.trim_end().to_owned());
                }
                None if needed => {
                    return Some(format!(
                        "it cannot be told whether the cluster is busy: it has no condition {kind}"
                    ));
                }
                _ => {}
            }
        }
        None
    }

    /// Whether the cluster's last change failed; while it goes on, its conditions are `Unknown`.
    pub fn has_failed(&self) -> bool {
        let conditions = &self.sample.cluster.conditions;
        ["Provisioned", "Updated"]
            .iter()
            .any(|kind| conditions.get(*kind).is_some_and(|condition| condition.status == "False"))
    }

    /// The member of etcd that runs on these addresses.
    pub fn member(&self, node: &str, ips: &BTreeSet<String>) -> Option<&Member> {
        self.members.as_ref()?.iter().find(|member| member.is_on(node, ips))
    }

    /// Members that run on these addresses, and those that run on no Node that is known.
    pub(super) fn members_of(&self, node: &str, ips: &BTreeSet<String>) -> (Vec<&Member>, Vec<&Member>) {
        let members = self.members.iter().flatten();
        let (own, others): (Vec<&Member>, Vec<&Member>) = members.partition(|member| member.is_on(node, ips));
        let is_anothers = |member: &&Member| {
            self.sample.nodes.iter().flat_map(std::collections::BTreeMap::values).any(|other| {
                let ips = other.internal_ips().into_iter().map(str::to_owned).collect();
                other.name.as_str() != node && member.is_on(other.name.as_str(), &ips)
            })
        };
        (own, others.into_iter().filter(|member| !is_anothers(member)).collect())
    }

    /// Other machines of this role that are well: a whole record, and a Node that is Ready.
    pub fn others(&self, order: &Order, role: Role) -> usize {
        let nodes = self.sample.nodes.iter().flat_map(std::collections::BTreeMap::values);
        nodes
            .filter(|node| {
                node.name.as_str() != order.node && node.ready == "True" && node.roles.contains(&role)
            })
            .filter(|node| {
                let records = self.sample.records.iter().flat_map(std::collections::BTreeMap::values);
                records.into_iter().any(|record| {
                    record.is_of(node) && record.rke_node.is_some() && record.deleting.is_none()
                })
            })
            .count()
    }
}

//! A made-up cluster: Nodes, records, etcd, pods, and what Rancher's controllers do about them between two moments.
//!
//! The syncer follows its own rules: a Node without a record that is not being deleted gets a mirror, a record without a
//! Node goes if the syncer had adopted it. A record that is deleted goes when its finalizer has done its work; one that gets
//! its `rkeNode` is planned after a while, and the cluster is busy meanwhile.

use std::collections::{BTreeMap, BTreeSet};

use reveille_core::model::id::{NodeName, NodeUid};
use reveille_core::model::time::Span;
use reveille_rancher::model::{
    Address, Cluster, ClusterId, Condition, CustomConfig, Host, Kind, Node, Record, RecordName, RkeNode,
    Role, Sample,
};
use reveille_rancher::repair::sight::{Member, Pod, PodKind, PodRef, Sight};
use reveille_rancher::repair::{Act, Order, Outcome, Path};
use reveille_rancher::stamp::ServerTime;

/// The machine that it is about.
pub(crate) const SUBJECT: &str = "w-3";
const CLUSTER: &str = "c-abcde";

/// The world.
#[derive(Clone)]
pub(crate) struct World {
    pub(crate) order: Order,
    pub(crate) cluster: Cluster,
    pub(crate) nodes: BTreeMap<NodeName, Node>,
    pub(crate) records: BTreeMap<RecordName, Record>,
    pub(crate) pods: Vec<Pod>,
    pub(crate) members: Option<Vec<Member>>,
    pub(crate) snapshot_age: Option<Span>,
    pub(crate) hands_off: Option<String>,
    /// Mirrors that the syncer made since the beginning.
    pub(crate) mirrors_made: u32,
    /// The controllers plan a host that got its parts.
    pub(crate) plans: bool,
    /// They find that etcd would be replaced.
    pub(crate) replaces_etcd: bool,
    /// The kubelet is started again after its Node was deleted.
    pub(crate) kubelet_returns: bool,
    /// Whoever runs etcd there adds its member again.
    pub(crate) member_returns: bool,
    /// Nobody answers any more once a member was taken out.
    pub(crate) etcd_falls_silent: bool,
    version: u64,
    busy_for: u32,
}

fn addresses(ip: &str) -> Vec<Address> {
    vec![Address { kind: "InternalIP".to_owned(), address: ip.to_owned() }]
}

fn node(name: &str, ip: &str, role: Role) -> Node {
    Node {
        name: NodeName::from(name),
        uid: NodeUid::from(format!("uid-{name}").as_str()),
        revision: "1".to_owned(),
        addresses: addresses(ip),
        roles: BTreeSet::from([role]),
        ready: "True".to_owned(),
        unschedulable: false,
        is_ignored: false,
        created: None,
    }
}

fn whole(name: &str, node: &str, ip: &str, role: Role) -> Record {
    Record {
        rke_node: Some(RkeNode {
            node_name: format!("{CLUSTER}:{name}"),
            hostname_override: node.to_owned(),
            address: ip.to_owned(),
            internal_address: String::new(),
            roles: BTreeSet::from([role]),
        }),
        custom_config: Some(CustomConfig { address: ip.to_owned(), internal_address: String::new() }),
        has_plan: true,
        ..mirror(name, node, ip, role)
    }
}

fn mirror(name: &str, node: &str, ip: &str, role: Role) -> Record {
    Record {
        name: RecordName(name.to_owned()),
        uid: format!("uid-{name}"),
        revision: "1".to_owned(),
        created: ServerTime::of_stamp("2026-11-22T20:00:00Z"),
        finalizers: vec!["controller.cattle.io/node-controller".to_owned()],
        node_label: Some(NodeName::from(node)),
        is_synced: true,
        is_created: true,
        requested_hostname: node.to_owned(),
        roles: BTreeSet::from([role]),
        node_name: Some(NodeName::from(node)),
        addresses: addresses(ip),
        ..Record::default()
    }
}

impl World {
    /// Three machines, the third with a mirror for a record; for an edit in place it is one that cannot be emptied.
    pub(crate) fn of(path: Path) -> Self {
        let condition =
            |kind: &str| (kind.to_owned(), Condition { status: "True".to_owned(), ..Condition::default() });
        let names = [("m-0123456789ab", "w-1", "10.0.0.1"), ("m-0123456789ac", "w-2", "10.0.0.2")];
        let records: Vec<Record> = names
            .iter()
            .map(|(record, node, ip)| whole(record, node, ip, Role::Worker))
            .chain([mirror("machine-h46dc", SUBJECT, "10.0.0.3", Role::Worker)])
            .collect();
        let host = |(record, _, ip): &(&str, &str, &str)| Host {
            node_name: format!("{CLUSTER}:{record}"),
            address: (*ip).to_owned(),
            roles: BTreeSet::from([Role::Worker]),
        };
        let pod = |name: &str, kind| Pod {
            at: PodRef { namespace: "shop".to_owned(), name: name.to_owned(), uid: name.to_owned() },
            kind,
        };
        let last = match path {
            Path::Evict => pod("web-1", PodKind::Movable),
            Path::Mend => pod("db-0", PodKind::LocalData),
        };
        Self {
            order: Order {
                cluster: ClusterId(CLUSTER.to_owned()),
                node: SUBJECT.to_owned(),
                path,
                local_data: false,
            },
            cluster: Cluster {
                id: ClusterId(CLUSTER.to_owned()),
                driver: "rancherKubernetesEngine".to_owned(),
                kind: Kind::Managed,
                conditions: [condition("Provisioned"), condition("Updated")].into(),
                applied_hosts: Some(names.iter().map(host).collect()),
                ..Cluster::default()
            },
            nodes: [("w-1", "10.0.0.1"), ("w-2", "10.0.0.2"), (SUBJECT, "10.0.0.3")]
                .map(|(name, ip)| (NodeName::from(name), node(name, ip, Role::Worker)))
                .into(),
            records: records.into_iter().map(|record| (record.name.clone(), record)).collect(),
            pods: vec![pod("proxy", PodKind::Staying), last],
            members: None,
            snapshot_age: Some(Span::from_min(60)),
            hands_off: None,
            mirrors_made: 0,
            plans: true,
            replaces_etcd: false,
            kubelet_returns: false,
            member_returns: false,
            etcd_falls_silent: false,
            version: 1,
            busy_for: 0,
        }
    }

    /// Three machines that hold etcd besides.
    pub(crate) fn with_etcd(mut self) -> Self {
        let member = |index: usize| Member {
            id: format!("{index}"),
            name: format!("etcd-w-{index}"),
            hosts: BTreeSet::from([format!("10.0.0.{index}")]),
            healthy: true,
            ..Member::default()
        };
        self.members = Some((1..=3).map(member).collect());
        for node in self.nodes.values_mut() {
            node.roles.insert(Role::Etcd);
        }
        for record in self.records.values_mut() {
            record.roles.insert(Role::Etcd);
            if let Some(rke) = &mut record.rke_node {
                rke.roles.insert(Role::Etcd);
            }
        }
        self
    }

    pub(crate) fn subject(&self) -> Option<&Node> {
        self.nodes.get(&NodeName::from(SUBJECT))
    }

    pub(crate) fn its_records(&self) -> Vec<&Record> {
        self.records.values().filter(|record| record.requested_hostname == SUBJECT).collect()
    }

    /// What a look sees.
    pub(crate) fn sight(&self) -> Sight {
        let sample = Sample {
            cluster: self.cluster.clone(),
            server_now: ServerTime::of_stamp("2026-11-22T21:00:00Z"),
            records: Some(self.records.clone()),
            nodes: Some(self.nodes.clone()),
            ..Sample::default()
        };
        Sight {
            sample,
            pods: Some(self.pods.clone()),
            members: self.members.clone(),
            snapshot_age: self.snapshot_age,
            hands_off: self.hands_off.clone(),
        }
    }

    /// What controllers do between two moments: enough of them for all to have had their turn.
    pub(crate) fn settle(&mut self) {
        self.sync();
        self.plan();
        self.version += 1;
    }

    fn sync(&mut self) {
        let of = |records: &BTreeMap<RecordName, Record>, node: &Node| {
            records.values().any(|record| record.deleting.is_none() && record.is_of(node))
        };
        let missing: Vec<Node> =
            self.nodes.values().filter(|node| !of(&self.records, node)).cloned().collect();
        for node in missing {
            self.mirrors_made += 1;
            let name = format!("machine-x{:04}", self.mirrors_made);
            let made = mirror(&name, node.name.as_str(), "10.0.0.3", Role::Worker);
            self.records.insert(made.name.clone(), made);
        }
        let nodes = self.nodes.clone();
        let has_node = |record: &Record| nodes.values().any(|node| record.is_of(node));
        // A finalizer has done its work by the next time.
        self.records.retain(|_, record| record.deleting.is_none());
        for record in self.records.values_mut().filter(|record| record.is_synced && !has_node(record)) {
            record.deleting = ServerTime::of_stamp("2026-11-22T21:00:00Z");
        }
    }

    fn plan(&mut self) {
        self.busy_for = self.busy_for.saturating_sub(1);
        let unplanned =
            self.records.values_mut().find(|record| record.rke_node.is_some() && !record.has_plan);
        if let Some(record) = unplanned
            && self.plans
        {
            record.has_plan = true;
            self.busy_for = 3;
        }
        let is_busy = self.busy_for > 0;
        let updated = Condition {
            status: if is_busy { "Unknown" } else { "True" }.to_owned(),
            message: if is_busy && self.replaces_etcd {
                "Etcd plane nodes are replaced. Stopping provisioning.".to_owned()
            } else {
                String::new()
            },
            ..Condition::default()
        };
        self.cluster.conditions.insert("Updated".to_owned(), updated);
    }

    /// Carries an act out, as the API servers would.
    pub(crate) fn perform(&mut self, act: &Act) -> Outcome {
        self.version += 1;
        let version = self.version.to_string();
        let name = NodeName::from(SUBJECT);
        match act {
            Act::Save { .. } => Outcome::Accepted,
            Act::Cordon { uid } => match self.nodes.get_mut(&name).filter(|node| node.uid.as_str() == uid) {
                Some(node) => {
                    node.unschedulable = true;
                    Outcome::Accepted
                }
                None => Outcome::Moved,
            },
            Act::Evict { pods } => {
                self.pods.retain(|pod| !pods.contains(&pod.at));
                Outcome::Accepted
            }
            Act::RemoveMember { .. } if self.member_returns => Outcome::Accepted,
            Act::RemoveMember { .. } if self.etcd_falls_silent => {
                self.members = None;
                Outcome::Accepted
            }
            Act::RemoveMember { id } => {
                self.members.iter_mut().for_each(|members| members.retain(|member| member.id != *id));
                Outcome::Accepted
            }
            Act::DeleteNode { uid } => match self.nodes.get(&name).map(|node| node.uid.as_str() == uid) {
                Some(true) => {
                    let old = self.nodes.remove(&name);
                    if let Some(old) = old.filter(|_| self.kubelet_returns) {
                        self.nodes.insert(name, Node { uid: NodeUid::from("uid-again"), ..old });
                    }
                    Outcome::Accepted
                }
                Some(false) => Outcome::Moved,
                None => Outcome::AlreadySo,
            },
            Act::DeleteRecord { record, uid } => match self.records.get_mut(record) {
                Some(found) if found.uid == *uid => {
                    found.deleting = ServerTime::of_stamp("2026-11-22T21:00:00Z");
                    Outcome::Accepted
                }
                Some(_) => Outcome::Moved,
                None => Outcome::AlreadySo,
            },
            Act::Write { record, uid, revision, draft } => self.edit(record, uid, revision, |found| {
                found.custom_config =
                    Some(CustomConfig { address: draft.address.clone(), internal_address: String::new() });
                found.rke_node = Some(RkeNode {
                    node_name: draft.node_name.clone(),
                    hostname_override: draft.hostname.clone(),
                    address: draft.address.clone(),
                    internal_address: String::new(),
                    roles: draft.roles.clone(),
                });
                found.revision = version;
            }),
            Act::PutBack { record, uid, revision, .. } => self.edit(record, uid, revision, |found| {
                found.custom_config = None;
                found.rke_node = None;
                found.revision = version;
            }),
        }
    }

    fn edit(
        &mut self,
        name: &RecordName,
        uid: &str,
        revision: &str,
        change: impl FnOnce(&mut Record),
    ) -> Outcome {
        match self.records.get_mut(name) {
            Some(found) if found.uid == uid && found.revision == revision => {
                change(found);
                Outcome::Accepted
            }
            _ => Outcome::Moved,
        }
    }

    /// Somebody else's write to the record: its revision moves on, and nothing that we read changes.
    pub(crate) fn touch_records(&mut self) {
        self.version += 1;
        for record in self.records.values_mut() {
            record.revision = self.version.to_string();
        }
    }

    /// The cluster begins an update of its own.
    pub(crate) fn begin_update(&mut self) {
        self.busy_for = 4;
        self.plan();
    }
}

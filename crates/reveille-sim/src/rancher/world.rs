//! A management cluster with one cluster below it: Nodes, records, etcd, pods; what looks see of it, and what acts do to it.
//!
//! The fields hold the truth. [`World::look`] is what a look sees, which may be old, empty or nothing. Each act does what the API
//! servers would: uid and revision are compared, finalizers delay a deletion. [`World::harms`] keeps the acts that did harm by
//! the truth.

use std::collections::{BTreeMap, BTreeSet};

use reveille_core::model::id::{NodeName, NodeUid};
use reveille_core::model::time::{Span, Time};
use reveille_rancher::model::{
    Address, Cluster, ClusterId, Condition, CustomConfig, Host, Kind, Node, Record, RecordName, RkeNode,
    Role, Sample,
};
use reveille_rancher::repair::observation::{Member, Observation, Pod, PodKind, PodRef};
use reveille_rancher::repair::{Act, Order, Outcome, Path};
use reveille_rancher::stamp::ServerTime;

/// The machine that it is about.
pub const SUBJECT: &str = "w-3";
/// Its address.
pub const ADDRESS: &str = "10.0.0.3";
const CLUSTER: &str = "c-abcde";
/// No earlier decision could have seen a Node that came back so lately.
const JUST_NOW: Span = Span::from_s(20);

/// The world.
#[derive(Clone)]
pub struct World {
    /// What was ordered.
    pub order: Order,
    /// The cluster.
    pub cluster: Cluster,
    /// Its Nodes.
    pub nodes: BTreeMap<NodeName, Node>,
    /// Its records.
    pub records: BTreeMap<RecordName, Record>,
    /// Pods on the subject's Node; `None`: they cannot be read.
    pub pods: Option<Vec<Pod>>,
    /// Claims of volumes that are on the subject alone.
    pub volumes: Vec<String>,
    /// Members of etcd; `None`: they cannot be read.
    pub members: Option<Vec<Member>>,
    /// How old the newest snapshot is.
    pub snapshot_age: Option<Span>,
    /// Who said hands off.
    pub hands_off: Option<String>,
    /// Records that cannot be decoded.
    pub garbled: usize,
    /// Mirrors that the syncer made since the beginning.
    pub mirrors_made: u32,
    /// The controllers plan a host that got its parts.
    pub plans: bool,
    /// They find that etcd would be replaced.
    pub replaces_etcd: bool,
    /// The kubelet is started again after its Node was deleted.
    pub kubelet_returns: bool,
    /// The cluster works on a new plan for so many turns of its controllers.
    pub update_turns: u32,
    /// A Node that goes makes the cluster update itself.
    pub updates_after: bool,
    /// The operator of etcd adds its member again.
    pub member_returns: bool,
    /// No member of etcd answers any more once a member was taken out.
    pub etcd_falls_silent: bool,
    /// What passes by itself.
    pub spells: Spells,
    /// What was done to it that should not have been.
    pub harms: Vec<String>,
    pub(super) now: Time,
    pub(super) version: u64,
    pub(super) busy_for: u32,
    pub(super) stale: Option<BTreeMap<RecordName, Record>>,
    pub(super) came_back: Option<Time>,
    edits_taken: u32,
}

/// Until when something lasts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spells {
    /// The syncer does nothing.
    pub syncer_down: Time,
    /// Two syncers run.
    pub syncer_twice: Time,
    /// Hooks of deletions do nothing.
    pub hooks_late: Time,
    /// The planner does nothing.
    pub planner_late: Time,
    /// Lists of records are of a while ago.
    pub records_stale: Time,
    /// The list of Nodes is empty, with 200.
    pub nodes_empty: Time,
    /// Nothing can be read.
    pub api_away: Time,
    /// A pause stands.
    pub paused: Time,
    /// Another machine's Node is not Ready.
    pub sibling_silent: Time,
    /// Another client's change keeps the cluster busy.
    pub cluster_busy: Time,
    /// Pods cannot be read.
    pub pods_unread: Time,
    /// A record cannot be decoded.
    pub garbled: Time,
}

pub(super) fn addresses(ip: &str) -> Vec<Address> {
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
        is_paused: false,
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
        ..mirror(name, node, ip, BTreeSet::from([role]))
    }
}

pub(super) fn mirror(name: &str, node: &str, ip: &str, roles: BTreeSet<Role>) -> Record {
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
        roles,
        node_name: Some(NodeName::from(node)),
        addresses: addresses(ip),
        ..Record::default()
    }
}

/// When something began, by the API server.
pub(super) fn stamped() -> Option<ServerTime> {
    ServerTime::of_stamp("2026-11-22T21:00:00Z")
}

impl World {
    /// Three machines, the third with a mirror for a record; for an edit in place it is one that cannot be emptied.
    pub fn of(path: Path) -> Self {
        let condition =
            |kind: &str| (kind.to_owned(), Condition { status: "True".to_owned(), ..Condition::default() });
        let names = [("m-0123456789ab", "w-1", "10.0.0.1"), ("m-0123456789ac", "w-2", "10.0.0.2")];
        let records: Vec<Record> = names
            .iter()
            .map(|(record, node, ip)| whole(record, node, ip, Role::Worker))
            .chain([mirror("machine-h46dc", SUBJECT, ADDRESS, BTreeSet::from([Role::Worker]))])
            .collect();
        let host = |(record, _, ip): &(&str, &str, &str)| Host {
            node_name: format!("{CLUSTER}:{record}"),
            address: (*ip).to_owned(),
            roles: BTreeSet::from([Role::Worker]),
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
            nodes: [("w-1", "10.0.0.1"), ("w-2", "10.0.0.2"), (SUBJECT, ADDRESS)]
                .map(|(name, ip)| (NodeName::from(name), node(name, ip, Role::Worker)))
                .into(),
            records: records.into_iter().map(|record| (record.name.clone(), record)).collect(),
            pods: Some(vec![pod("proxy", PodKind::Staying), last]),
            volumes: Vec::new(),
            members: None,
            snapshot_age: Some(Span::from_min(60)),
            hands_off: None,
            garbled: 0,
            mirrors_made: 0,
            plans: true,
            replaces_etcd: false,
            kubelet_returns: false,
            update_turns: 3,
            updates_after: false,
            member_returns: false,
            etcd_falls_silent: false,
            spells: Spells::default(),
            harms: Vec::new(),
            now: Time::default(),
            version: 1,
            busy_for: 0,
            stale: None,
            came_back: None,
            edits_taken: 0,
        }
    }

    /// Three machines that hold etcd besides.
    #[must_use]
    pub fn with_etcd(mut self) -> Self {
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

    /// The subject's Node.
    pub fn subject(&self) -> Option<&Node> {
        self.nodes.get(&NodeName::from(SUBJECT))
    }

    /// Records that were asked for under the subject's name.
    pub fn its_records(&self) -> Vec<&Record> {
        self.records.values().filter(|record| record.requested_hostname == SUBJECT).collect()
    }

    /// The record of it that is not on its way out.
    pub(super) fn its_record(&mut self) -> Option<&mut Record> {
        let is_its = |record: &&mut Record| {
            record.deleting.is_none()
                && record.node_label.as_ref().is_some_and(|node| node.as_str() == SUBJECT)
        };
        self.records.values_mut().find(is_its)
    }

    /// What is so.
    pub fn observation(&self) -> Observation {
        let sample = Sample {
            cluster: self.cluster.clone(),
            server_now: stamped(),
            records: Some(self.records.clone()),
            garbled: self.garbled,
            nodes: Some(self.nodes.clone()),
            ..Sample::default()
        };
        Observation {
            sample,
            pods: self.pods.clone(),
            volumes: Some(self.volumes.clone()),
            members: self.members.clone(),
            snapshot_age: self.snapshot_age,
            hands_off: self.hands_off.clone(),
        }
    }

    /// Whether a spell lasts.
    pub(super) fn lasts(&self, until: Time) -> bool {
        self.now < until
    }

    /// What a look sees.
    ///
    /// # Errors
    /// When nothing can be read.
    pub fn look(&self) -> Result<Observation, String> {
        let spells = &self.spells;
        if self.lasts(spells.api_away) {
            return Err("the API server is away".to_owned());
        }
        let mut observation = self.observation();
        if let Some(records) = self.stale.clone().filter(|_| self.lasts(spells.records_stale)) {
            observation.sample.records = Some(records);
        }
        if self.lasts(spells.nodes_empty) {
            observation.sample.nodes = Some(BTreeMap::new());
        }
        if self.lasts(spells.pods_unread) {
            observation.pods = None;
        }
        if self.lasts(spells.paused) {
            observation.hands_off = Some("paused by ann: looking".to_owned());
        }
        observation.sample.garbled += usize::from(self.lasts(spells.garbled));
        Ok(observation)
    }

    /// Carries an act out, as the API servers would.
    pub fn perform(&mut self, act: &Act) -> Outcome {
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
                self.pods.iter_mut().for_each(|all| all.retain(|pod| !pods.contains(&pod.at)));
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
            Act::DeleteNode { uid } => self.delete_node(uid),
            Act::DeleteRecord { record, uid } => self.delete_record(record, uid),
            Act::Write { record, uid, revision, draft } => {
                let outcome = self.edit(record, uid, revision, |found| {
                    found.custom_config = Some(CustomConfig {
                        address: draft.address.clone(),
                        internal_address: String::new(),
                    });
                    found.rke_node = Some(RkeNode {
                        node_name: draft.node_name.clone(),
                        hostname_override: draft.hostname.clone(),
                        address: draft.address.clone(),
                        internal_address: String::new(),
                        roles: draft.roles.clone(),
                    });
                    found.revision = version;
                });
                self.edits_taken += u32::from(outcome == Outcome::Accepted);
                if self.edits_taken > 1 {
                    self.harms.push("the record was edited twice".to_owned());
                }
                outcome
            }
            Act::PutBack { record, uid, revision, .. } => self.edit(record, uid, revision, |found| {
                found.custom_config = None;
                found.rke_node = None;
                found.revision = version;
            }),
        }
    }

    fn delete_node(&mut self, uid: &str) -> Outcome {
        let name = NodeName::from(SUBJECT);
        match self.nodes.get(&name).map(|node| node.uid.as_str() == uid) {
            Some(true) => {
                if self.updates_after {
                    self.spells.cluster_busy = self.now + Span::from_min(2);
                }
                self.nodes.remove(&name).inspect(|old| {
                    if self.kubelet_returns {
                        self.nodes.insert(name, Node { uid: NodeUid::from("uid-again"), ..old.clone() });
                    }
                });
                Outcome::Accepted
            }
            Some(false) => Outcome::Moved,
            None => Outcome::AlreadySo,
        }
    }

    fn delete_record(&mut self, record: &RecordName, uid: &str) -> Outcome {
        let is_there = self.subject().is_some();
        let just_now = self.came_back.is_some_and(|at| self.now.since(at) < JUST_NOW);
        match self.records.get_mut(record) {
            Some(found) if found.uid == *uid => {
                found.deleting = stamped();
                if is_there && !just_now {
                    self.harms.push("its record was deleted while its Node was there".to_owned());
                }
                Outcome::Accepted
            }
            Some(_) => Outcome::Moved,
            None => Outcome::AlreadySo,
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
}

/// A pod on the subject's Node.
pub(super) fn pod(name: &str, kind: PodKind) -> Pod {
    Pod { at: PodRef { namespace: "shop".to_owned(), name: name.to_owned(), uid: name.to_owned() }, kind }
}

//! The machines of a cluster without a cloud: each Node, and each machine record of another system, once.
//!
//! ```text
//!  records ─┬─ names a Node, or has its provider ID ─▶ one machine: of the record, with what the Node says
//!           └─ has none yet ────────────────────────▶ one machine: of the record alone
//!  Nodes that no record has ────────────────────────▶ one machine each
//! ```
//!
//! The id of a machine is what its Node will lead to: the instance that the provider ID names; without one, its system
//! UUID, where no other Node shows the same; else the name of the record, or of the Node. Labels of both are its marks,
//! and the mark of the cluster, because an object of the cluster is the cluster's own.
//!
//! A record has no state of a machine. One without provider ID and Node is being built; one whose owner gave it up is in
//! an error state; one that is being deleted leaves; each other one runs, as far as the cluster tells.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use reveille_core::model::hosting::{GroupPhase, Hosting, OwnerGroup};
use reveille_core::model::id::{InstanceId, InstanceName, NodeName};
use reveille_core::model::instance::{Fault, Instance, InstanceState, Mark};
use reveille_core::model::node::{Node, Provider};

use crate::MachineRecord;
use crate::pool::{self, Labels, PoolLabel};

/// A Node with its labels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelledNode {
    /// The Node.
    pub node: Arc<Node>,
    /// Its labels.
    pub labels: Arc<Labels>,
    /// `metadata.creationTimestamp`, as it is written.
    pub created: Option<Arc<str>>,
}

/// Reads a provider ID: the instance that it names.
pub type ReadProviderId = fn(&str) -> Option<InstanceId>;

/// A machine, and the record that tells of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    /// As the engine takes it.
    pub instance: Arc<Instance>,
    /// Its record, where another system keeps one.
    pub record: Option<Arc<MachineRecord>>,
    /// The label that tells its pool.
    pub pool: PoolLabel,
}

/// What is read from, and by which words.
pub struct Reading<'r> {
    /// All Nodes.
    pub nodes: &'r [LabelledNode],
    /// All records.
    pub records: &'r [Arc<MachineRecord>],
    /// The mark of each machine of the cluster.
    pub cluster: Mark,
    /// How provider IDs are read.
    pub read_id: ReadProviderId,
}

/// Each machine once, in the order of the ids.
pub fn machines(reading: &Reading<'_>) -> Vec<Machine> {
    let mut found: BTreeMap<InstanceId, Machine> = BTreeMap::new();
    let index = Index::of(reading);
    let mut taken: BTreeSet<&NodeName> = BTreeSet::new();
    for record in reading.records.iter().filter(|record| is_machine(record)) {
        let node = index.node_of(record, reading.read_id).filter(|node| !taken.contains(&node.node.name));
        taken.extend(node.map(|node| &node.node.name));
        let labels = node.map(|node| &*node.labels).into_iter().chain([&record.labels]);
        let pool = pool::of(labels.clone());
        let marks = marks(&reading.cluster, &pool, labels);
        let instance = Arc::new(of_record(record, node, reading, &index, marks));
        let machine = Machine { instance, record: Some(record.clone()), pool };
        // Two records of one machine: that of the owner nearer to it stands first in the table of kinds.
        found.entry(machine.instance.id.clone()).or_insert(machine);
    }
    for node in reading.nodes.iter().filter(|node| !taken.contains(&node.node.name)) {
        let pool = pool::of([&*node.labels].into_iter());
        let marks = marks(&reading.cluster, &pool, [&*node.labels]);
        let machine = Machine { instance: Arc::new(of_node(node, &index, marks)), record: None, pool };
        found.entry(machine.instance.id.clone()).or_insert(machine);
    }
    found.into_values().collect()
}

/// The record is of one machine that a Node is expected of, and of no other record's: a pool is several, a host in stock is
/// none, and a host that is in use is the machine of its consumer.
fn is_machine(record: &MachineRecord) -> bool {
    let is_pool = !record.members.provider_ids.is_empty() || !record.members.nodes.is_empty();
    !is_pool && !record.idle && record.consumer.is_none()
}

/// Nodes by what records say of them.
struct Index<'r> {
    by_name: BTreeMap<&'r NodeName, &'r LabelledNode>,
    by_id: BTreeMap<&'r InstanceId, &'r LabelledNode>,
    /// UUIDs that more than one Node shows: boards whose maker gave all the same.
    shared_uuids: BTreeSet<&'r InstanceId>,
}

impl<'r> Index<'r> {
    fn of(reading: &Reading<'r>) -> Self {
        let by_name = reading.nodes.iter().map(|node| (&node.node.name, node)).collect();
        let named = reading.nodes.iter().filter_map(|node| Some((named(&node.node)?, node)));
        let mut seen = BTreeSet::new();
        let uuids = reading.nodes.iter().filter_map(|node| node.node.system_uuid.as_ref());
        let shared_uuids = uuids.filter(|uuid| !seen.insert(*uuid)).collect();
        Self { by_name, by_id: named.collect(), shared_uuids }
    }

    /// The Node of a record: the one that its owner names, else the one with its provider ID.
    fn node_of(&self, record: &MachineRecord, read_id: ReadProviderId) -> Option<&'r LabelledNode> {
        let by_name = record.node.as_ref().and_then(|name| self.by_name.get(name));
        let by_id = || self.by_id.get(&read_id(record.provider_id.as_deref()?)?);
        by_name.or_else(by_id).copied()
    }

    /// The id of the machine that a Node is on.
    fn id_of(&self, node: &Node) -> InstanceId {
        let own = node.system_uuid.as_ref().filter(|uuid| !self.shared_uuids.contains(uuid));
        let id = named(node).or(own).cloned();
        id.unwrap_or_else(|| InstanceId::from(format!("node/{}", node.name).as_str()))
    }
}

fn named(node: &Node) -> Option<&InstanceId> {
    match &node.provider {
        Provider::Instance(id) => Some(id),
        Provider::Unset | Provider::Unread(_) => None,
    }
}

fn of_node(labelled: &LabelledNode, index: &Index<'_>, marks: Arc<BTreeSet<Mark>>) -> Instance {
    let node = &labelled.node;
    Instance {
        state: InstanceState::Active,
        zone: node.zone.clone(),
        marks,
        addresses: node.addresses.clone(),
        created: labelled.created.clone(),
        ..Instance::unknown(index.id_of(node), InstanceName::from(node.name.as_str()))
    }
}

fn of_record(
    record: &MachineRecord,
    node: Option<&LabelledNode>,
    reading: &Reading<'_>,
    index: &Index<'_>,
    marks: Arc<BTreeSet<Mark>>,
) -> Instance {
    let id = record.provider_id.as_deref().and_then(reading.read_id);
    let id = id.or_else(|| node.map(|node| index.id_of(&node.node)));
    let group = record.pool.as_ref().map(|pool| OwnerGroup {
        name: match &record.kind.pool_kind {
            Some(kind) => Arc::from(format!("{kind} {pool}")),
            None => pool.clone(),
        },
        phase: if record.leaving { GroupPhase::Leaving } else { GroupPhase::Kept },
        word: Arc::from(record.standing()),
        protected: false,
    });
    Instance {
        hostname: node.map(|node| Arc::from(node.node.name.as_str())),
        state: state(record, node.is_some()),
        fault: record.failure.as_ref().map(|failure| Fault {
            code: 0,
            message: Arc::from(failure.to_string().trim_start_matches(": ")),
        }),
        zone: record.zone.clone().or_else(|| node.and_then(|node| node.node.zone.clone())),
        marks,
        addresses: node.map(|node| node.node.addresses.clone()).unwrap_or_default(),
        created: record.created.clone(),
        hosting: group.map(|group| Arc::new(Hosting { group: Some(group), ..Hosting::default() })),
        ..Instance::unknown(
            id.unwrap_or_else(|| {
                InstanceId::from(format!("{}/{}", record.kind.plural, record.full_name()).as_str())
            }),
            InstanceName::from(&*record.name),
        )
    }
}

fn state(record: &MachineRecord, has_node: bool) -> InstanceState {
    if record.leaving {
        InstanceState::Deleting
    } else if record.failure.is_some() && !has_node {
        InstanceState::Errored
    } else if record.provider_id.is_none() && !has_node {
        InstanceState::Building
    } else {
        InstanceState::Active
    }
}

/// All labels, that of the pool among them, which a worker has not.
fn marks<'l>(
    cluster: &Mark,
    pool: &PoolLabel,
    labels: impl IntoIterator<Item = &'l Labels>,
) -> Arc<BTreeSet<Mark>> {
    let pair = |(key, value): (&Arc<str>, &Arc<str>)| Mark::Metadata(key.clone(), value.clone());
    let labels = labels.into_iter().flatten().map(pair);
    Arc::new([cluster.clone(), pool.mark.clone()].into_iter().chain(labels).collect())
}

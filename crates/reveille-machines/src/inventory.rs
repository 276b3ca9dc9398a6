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
//! What one client writes decides nothing about another one's machine. A record and a Node are one machine where nothing
//! speaks against it: their provider IDs are the same, or one of them has none. Of several records that lead to one Node
//! none counts. With a Node, the Node tells the state: a record that is being deleted excuses no dead Node. Without one a
//! record is being built, has failed before it had an instance, leaves, or runs.
//!
//! Records of a management cluster are about Nodes elsewhere: where some of a workload cluster's records name a Node, and
//! none leads to one here, all of them are counted and left out ([`Found::elsewhere`]).

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

/// What a reading comes to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    /// Each machine once, in the order of the ids.
    pub machines: Vec<Machine>,
    /// Records whose Nodes are in another cluster: how many.
    pub elsewhere: usize,
    /// Records that lead to a Node to which another one leads as well: how many.
    pub contested: usize,
}

/// Each machine once.
pub fn machines(reading: &Reading<'_>) -> Found {
    let index = Index::of(reading);
    let records = reading.records.iter().filter(|record| is_machine(record));
    let led: Vec<_> = records.map(|record| (record, index.node_of(record, reading.read_id))).collect();
    let mut leading: BTreeMap<&NodeName, usize> = BTreeMap::new();
    for node in led.iter().filter_map(|(_, node)| *node) {
        *leading.entry(&node.node.name).or_default() += 1;
    }
    let here: BTreeSet<_> = led.iter().filter(|(_, node)| node.is_some()).map(|(it, _)| fleet(it)).collect();
    let has_none_here = |fleet: &Option<_>| fleet.is_some() && !here.contains(fleet);
    let joined = led.iter().filter(|(record, _)| record.node.is_some()).map(|(record, _)| fleet(record));
    let away: BTreeSet<_> = joined.filter(has_none_here).collect();
    let (mut found, mut result) = (BTreeMap::new(), Found::default());
    for (record, node) in led {
        if node.is_some_and(|node| leading.get(&node.node.name).is_some_and(|count| *count > 1)) {
            result.contested += 1;
            continue;
        }
        if away.contains(&fleet(record)) {
            result.elsewhere += 1;
            continue;
        }
        let labels = node.map(|node| &*node.labels).into_iter().chain([&record.labels]);
        let pool = pool::of(labels.clone());
        let marks = marks(&reading.cluster, &pool, labels);
        let instance = Arc::new(of_record(record, node, reading, &index, marks));
        let machine = Machine { instance, record: Some(record.clone()), pool };
        found.entry(machine.instance.id.clone()).or_insert(machine);
    }
    let alone = |node: &&LabelledNode| leading.get(&node.node.name) != Some(&1);
    for node in reading.nodes.iter().filter(alone) {
        let pool = pool::of([&*node.labels].into_iter());
        let marks = marks(&reading.cluster, &pool, [&*node.labels]);
        let machine = Machine { instance: Arc::new(of_node(node, &index, marks)), record: None, pool };
        found.entry(machine.instance.id.clone()).or_insert(machine);
    }
    result.machines = found.into_values().collect();
    result
}

/// The workload cluster that a record is of, where its kind keeps records of several clusters.
fn fleet(record: &MachineRecord) -> Option<(&str, Option<&str>, Option<&str>)> {
    const CLUSTER: &str = "cluster.x-k8s.io/cluster-name";
    let is_of_several = matches!(&*record.kind.group, "cluster.x-k8s.io" | "machine.sapcloud.io");
    let named = record.labels.get(CLUSTER).map(|name| &**name);
    is_of_several.then_some((&*record.kind.group, record.namespace.as_deref(), named))
}

/// The record is of one machine that a Node is expected of, and of no other record's: a pool is several, a host in stock is
/// none, and a host that is in use is the machine of its consumer.
fn is_machine(record: &MachineRecord) -> bool {
    let is_pool =
        record.kind.versions.iter().any(|it| it.layout.provider_ids.is_some() || it.layout.nodes.is_some());
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

    /// The Node of a record: the one with its provider ID, else the one that its owner names, where that has none of its own.
    fn node_of(&self, record: &MachineRecord, read_id: ReadProviderId) -> Option<&'r LabelledNode> {
        let id = record.provider_id.as_deref().and_then(read_id);
        let by_id = id.as_ref().and_then(|id| self.by_id.get(id));
        let by_name = || record.node.as_ref().and_then(|name| self.by_name.get(name));
        let is_its = |node: &&&LabelledNode| id.is_none() || named(&node.node).is_none();
        by_id.or_else(|| by_name().filter(is_its)).copied()
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
    let of_node = node.map(|node| index.id_of(&node.node));
    let id = of_node.or_else(|| record.provider_id.as_deref().and_then(reading.read_id));
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
        fault: record.failure.as_ref().filter(|_| record.provider_id.is_none()).map(|failure| Fault {
            code: 0,
            message: Arc::from(failure.to_string().trim_start_matches(": ")),
        }),
        zone: record.zone.clone().or_else(|| node.and_then(|node| node.node.zone.clone())),
        marks,
        addresses: node.map(|node| node.node.addresses.clone()).unwrap_or_default(),
        created: record.created.clone(),
        hosting: group.map(|group| Arc::new(Hosting { group: Some(group), ..Hosting::default() })),
        ..Instance::unknown(
            id.unwrap_or_else(|| InstanceId::from(record_id(record).as_str())),
            InstanceName::from(&*record.name),
        )
    }
}

fn state(record: &MachineRecord, has_node: bool) -> InstanceState {
    let has_instance = record.provider_id.is_some();
    if has_node {
        InstanceState::Active
    } else if record.leaving {
        InstanceState::Deleting
    } else if has_instance {
        InstanceState::Active
    } else if record.failure.is_some() {
        InstanceState::Errored
    } else {
        InstanceState::Building
    }
}

/// What a machine is called that has no provider ID and no Node.
fn record_id(record: &MachineRecord) -> String {
    format!("{}.{}/{}", record.kind.plural, record.kind.group, record.full_name())
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

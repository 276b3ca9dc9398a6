//! The data that the originals see: plain values, one kind for each model, and nothing else reaches it.
//!
//! ```text
//!  World ─ watch, at every turn ─▶ ApiHistory: when conditions turned, who ever registered ─┐
//!  World ─ glance, at a pass ────────────────────────────────────────────────────────────────┴─▶ a model's own view
//! ```
//!
//! [`ApiHistory`] stands for what others write into APIs and the originals read there: a condition's last transition, the
//! creation of an object, a Machine's reference to its node. It outlives the model's process, as those APIs do.
//!
//! The machines that a world begins with count as a month old: they stand for a fleet that has long been there, and the
//! world's own stamps say only when the run began. Those without a node are as old as the run.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use reveille_core::model::id::{InstanceId, NodeName, NodeUid, PoolName};
use reveille_core::model::instance::{Instance, InstanceState};
use reveille_core::model::node::{Node, Provider, Ready};
use reveille_core::model::time::{Span, Time};

use super::outlook::Outlook;

/// The age of the fleet that a world begins with.
const LONG: Span = Span::from_min(30 * 24 * 60);

/// A Node as those see it that look at conditions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NodeSeen {
    /// Its name.
    pub(crate) name: NodeName,
    /// Its uid.
    pub(crate) uid: NodeUid,
    /// The instance that its provider ID names.
    pub(crate) provider: Option<InstanceId>,
    /// The instance that its machine says it is.
    pub(crate) machine: Option<InstanceId>,
    /// When the object was made.
    pub(crate) made: Time,
    /// Its Ready condition.
    pub(crate) ready: Ready,
    /// When that last changed, as it is written there.
    pub(crate) since: Time,
}

/// A machine as an object of a management cluster: a Machine, a `NodeClaim`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MachineSeen {
    /// Its instance.
    pub(crate) id: InstanceId,
    /// Its pool.
    pub(crate) pool: PoolName,
    /// When the object was made.
    pub(crate) made: Time,
    /// Since when its instance runs, if it ever did.
    pub(crate) running_since: Option<Time>,
    /// The node that it refers to, once one with its provider ID was seen.
    pub(crate) node: Option<NodeName>,
    /// A client deleted that Node object; it was not merely absent from a list.
    pub(crate) node_deleted: bool,
    /// The cloud says that its instance is in an error state.
    pub(crate) failed: bool,
    /// A person paused it.
    pub(crate) paused: bool,
}

/// How an instance stands, asked for by id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Presence {
    /// It is there.
    There,
    /// It is being deleted.
    Leaving,
    /// The cloud knows no such instance.
    Gone,
    /// No answer.
    Unknown,
}

/// What is written about one Node.
#[derive(Clone, Debug)]
struct Written {
    made: Time,
    ready: Ready,
    since: Time,
    machine: Option<InstanceId>,
}

/// What others write, kept as it is written.
#[derive(Clone, Debug, Default)]
pub(crate) struct ApiHistory {
    nodes: BTreeMap<NodeUid, Written>,
    made: BTreeMap<InstanceId, Time>,
    running_since: BTreeMap<InstanceId, Time>,
    refers_to: BTreeMap<InstanceId, NodeName>,
    node_deleted: BTreeSet<InstanceId>,
    began: bool,
    /// What was written when this was last looked at, to pass over turns in which nothing was.
    last: (Vec<Arc<Node>>, Vec<Arc<Instance>>, bool),
    /// Reads so far.
    pub(crate) reads: u64,
}

impl ApiHistory {
    /// Notes what is written now. Called at every turn, so that no transition is missed.
    pub(crate) fn watch(&mut self, now: Time, world: &impl Outlook) {
        if self.has_seen(world) {
            return;
        }
        let old = if self.began { now } else { now - LONG };
        let api_is_read = world.lists_nodes();
        self.last = (
            world.nodes_as_written().cloned().collect(),
            world.servers_as_written().cloned().collect(),
            api_is_read,
        );
        let mut there = BTreeSet::new();
        for node in world.nodes_as_written() {
            there.insert(node.uid.clone());
            let machine = node.system_uuid.clone();
            let fresh = Written { made: old, ready: node.ready, since: old, machine };
            let written = self.nodes.entry(node.uid.clone()).or_insert(fresh);
            if written.ready != node.ready {
                written.ready = node.ready;
                written.since = now;
            }
            if let (Provider::Instance(id), true) = (&node.provider, api_is_read) {
                self.refers_to.insert(id.clone(), node.name.clone());
                self.node_deleted.remove(id);
            }
            if let (Some(id), false) = (&node.system_uuid, self.began) {
                self.made.insert(id.clone(), old);
            }
        }
        let gone: Vec<NodeUid> = self.nodes.keys().filter(|uid| !there.contains(*uid)).cloned().collect();
        for uid in gone {
            let machine = self.nodes.remove(&uid).and_then(|written| written.machine);
            self.node_deleted.extend(machine);
        }
        for instance in world.servers_as_written() {
            self.made.entry(instance.id.clone()).or_insert(now);
            if instance.state == InstanceState::Active {
                self.running_since.entry(instance.id.clone()).or_insert(now);
            }
        }
        self.began = true;
    }

    /// Nothing is written that was not when this last looked. Objects are shared until they change.
    fn has_seen(&self, world: &impl Outlook) -> bool {
        let (nodes, servers, api_was_read) = &self.last;
        let same = |(a, b): (&Arc<Node>, &Arc<Node>)| Arc::ptr_eq(a, b);
        let same_server = |(a, b): (&Arc<Instance>, &Arc<Instance>)| Arc::ptr_eq(a, b);
        self.began
            && *api_was_read == world.lists_nodes()
            && nodes.len() == world.nodes_as_written().count()
            && nodes.iter().zip(world.nodes_as_written()).all(same)
            && servers.len() == world.servers_as_written().count()
            && servers.iter().zip(world.servers_as_written()).all(same_server)
    }

    /// Every Node that the API lists, or nothing when it does not answer.
    pub(crate) fn nodes(&mut self, world: &impl Outlook) -> Option<Vec<NodeSeen>> {
        self.reads += 1;
        let nodes = world.glance_nodes()?;
        Some(nodes.iter().filter_map(|node| self.seen(node)).collect())
    }

    fn seen(&self, node: &Node) -> Option<NodeSeen> {
        let written = self.nodes.get(&node.uid)?;
        let provider = match &node.provider {
            Provider::Instance(id) => Some(id.clone()),
            Provider::Unset | Provider::Unread(_) => None,
        };
        Some(NodeSeen {
            name: node.name.clone(),
            uid: node.uid.clone(),
            provider,
            machine: node.system_uuid.clone(),
            made: written.made,
            ready: written.ready,
            since: written.since,
        })
    }

    /// Every machine that the management cluster has an object for; it is watched, not read.
    pub(crate) fn machines(&self, world: &impl Outlook) -> Vec<MachineSeen> {
        let seen = |(pool, instance): (&PoolName, &Arc<Instance>)| {
            let id = &instance.id;
            MachineSeen {
                id: id.clone(),
                pool: pool.clone(),
                made: self.made_at(id),
                running_since: self.running_since.get(id).copied(),
                node: self.refers_to.get(id).cloned(),
                node_deleted: self.node_deleted.contains(id),
                failed: instance.state == InstanceState::Errored,
                paused: world.is_paused(id, pool),
            }
        };
        world.roll_of_owner().map(seen).collect()
    }

    fn made_at(&self, id: &InstanceId) -> Time {
        self.made.get(id).copied().unwrap_or_default()
    }

    /// What the cloud says about when this server was created, whichever project owns it.
    pub(crate) fn created(&self, id: &InstanceId) -> Time {
        self.made_at(id)
    }

    /// Ids of every server that the project lists.
    pub(crate) fn servers(&mut self, world: &impl Outlook) -> Option<BTreeSet<InstanceId>> {
        self.reads += 1;
        Some(world.glance_servers()?.iter().map(|instance| instance.id.clone()).collect())
    }

    /// How these instances stand; one read each.
    pub(crate) fn presence<'a>(
        &mut self,
        world: &impl Outlook,
        ids: impl IntoIterator<Item = &'a InstanceId>,
    ) -> BTreeMap<InstanceId, Presence> {
        let mut all = BTreeMap::new();
        for id in ids {
            self.reads += 1;
            let presence = match world.glance_server(id) {
                None => Presence::Unknown,
                Some(None) => Presence::Gone,
                Some(Some(instance)) if instance.state.is_leaving() => Presence::Leaving,
                Some(Some(_)) => Presence::There,
            };
            all.insert(id.clone(), presence);
        }
        all
    }
}

//! What `init` finds by looking, and the roster that it proposes from it.
//!
//! ```text
//!  read: nodes ─▶ instances by id ─▶ marks ─▶ listing by mark ─▶ Survey ─▶ propose: Proposal, and what is not known
//! ```
//!
//! The proposal is pure: from a survey to a roster. It guesses only what it can say a reason for, and says it.

pub(crate) mod propose;
pub(crate) mod read;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use reveille_core::model::id::{GroupId, InstanceId, RouterId};
use reveille_core::model::instance::{Instance, Mark, Port};
use reveille_core::model::network::{Router, SecurityGroup};
use reveille_core::model::node::{Node, Provider};

/// What was found.
#[derive(Clone, Debug, Default)]
pub(crate) struct Survey {
    /// Every node of the cluster.
    pub(crate) nodes: Vec<Arc<Node>>,
    /// Instances: those of the nodes, and all others that carry the same cluster mark.
    pub(crate) instances: BTreeMap<InstanceId, Arc<Instance>>,
    /// Their ports.
    pub(crate) ports: Vec<(InstanceId, Arc<Port>)>,
    /// The groups on those ports, as far as they could be read.
    pub(crate) groups: BTreeMap<GroupId, Arc<SecurityGroup>>,
    /// Routers that are known.
    pub(crate) routers: Vec<Arc<Router>>,
    /// A router that was named and is not there.
    pub(crate) missing_router: Option<RouterId>,
}

impl Survey {
    /// The instance that a node names.
    pub(crate) fn instance_of(&self, node: &Node) -> Option<&Arc<Instance>> {
        named(node).and_then(|id| self.instances.get(&id))
    }

    /// Nodes with an instance.
    pub(crate) fn matched(&self) -> usize {
        self.nodes.iter().filter(|node| self.instance_of(node).is_some()).count()
    }
}

/// The instance id that a node carries: its provider ID's, else its system UUID, which is the instance's id on OpenStack.
pub(crate) fn named(node: &Node) -> Option<InstanceId> {
    match &node.provider {
        Provider::Instance(id) => Some(id.clone()),
        Provider::Unset | Provider::Unread(_) => node.system_uuid.clone(),
    }
}

/// The mark that names the cluster: carried by every node's instance, and naming a cluster if any does.
pub(crate) fn cluster_mark(instances: &[&Arc<Instance>]) -> Option<Mark> {
    let (first, rest) = instances.split_first()?;
    let shared = first.marks.iter().filter(|mark| rest.iter().all(|other| other.marks.contains(*mark)));
    let mut best: Vec<(u8, &Mark)> =
        shared.map(|mark| (likeness(mark), mark)).filter(|(rank, _)| *rank < 3).collect();
    best.sort();
    best.first().map(|(_, mark)| (*mark).clone())
}

/// How much a mark looks like a cluster's name: 0 much, 3 not at all.
fn likeness(mark: &Mark) -> u8 {
    let (key, value) = pair(mark);
    let key = key.to_ascii_lowercase();
    match (key.contains("cluster"), value.is_some(), key.contains("kube") || key.contains("k8s")) {
        (true, true, _) => 0,
        (_, true, true) => 1,
        (true, false, _) | (_, false, true) => 2,
        _ => 3,
    }
}

/// Key and value of a mark; a tag without `=` is a key alone.
pub(crate) fn pair(mark: &Mark) -> (&str, Option<&str>) {
    match mark {
        Mark::Tag(tag) => tag.split_once('=').map_or((&**tag, None), |(key, value)| (key, Some(value))),
        Mark::Metadata(key, value) => (key, Some(value)),
    }
}

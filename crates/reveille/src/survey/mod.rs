//! What `init` finds by looking, and the roster that it proposes from it.
//!
//! ```text
//!  read: nodes ┐                       ┌ marks ─▶ pools
//!  read: project, whole, unfiltered ───┴ ranges, routes, legs ─▶ network ─▶ propose: Proposal, and what is not known
//!                                        names ─▶ hints: comments and commands, never ownership
//! ```
//!
//! The proposal is pure: from a survey to a roster. It guesses only what it can say a reason for, and says it.

mod hints;
mod network;
mod pools;
pub(crate) mod propose;
pub(crate) mod read;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use reveille_core::model::id::{GroupId, InstanceId, RouterId};
use reveille_core::model::instance::{Instance, Mark, Port};
use reveille_core::model::network::SecurityGroup;
use reveille_core::model::node::{Node, Provider};
use reveille_openstack::{NamedRouter, RouterLeg};

/// What was found.
#[derive(Clone, Debug, Default)]
pub(crate) struct Survey {
    /// Every node of the cluster.
    pub(crate) nodes: Vec<Arc<Node>>,
    /// Every instance of the project, whoever's it is.
    pub(crate) instances: BTreeMap<InstanceId, Arc<Instance>>,
    /// Their ports, of all of them.
    pub(crate) ports: Vec<(InstanceId, Arc<Port>)>,
    /// The groups on those ports, as far as they could be read.
    pub(crate) groups: BTreeMap<GroupId, Arc<SecurityGroup>>,
    /// Every router of the project, and the one that was named, if it is there at all.
    pub(crate) routers: Vec<NamedRouter>,
    /// Where routers reach into networks.
    pub(crate) legs: Vec<RouterLeg>,
    /// The router that was named on the command line.
    pub(crate) wanted_router: Option<RouterId>,
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

/// The mark that names the cluster: carried by most of the nodes' instances, so that one that lost it does not hide it.
pub(crate) fn cluster_mark(instances: &[&Arc<Instance>]) -> Option<Mark> {
    let mut carried: BTreeMap<&Mark, usize> = BTreeMap::new();
    for mark in instances.iter().flat_map(|instance| instance.marks.iter()) {
        *carried.entry(mark).or_default() += 1;
    }
    let most = carried.into_iter().filter(|(_, count)| count * 2 > instances.len());
    let named = most.map(|(mark, count)| (likeness(mark), instances.len() - count, mark));
    named.filter(|(rank, ..)| *rank < 3).min().map(|(.., mark)| mark.clone())
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

//! What `init` finds in the cluster and the cloud, and the roster that it proposes from it.
//!
//! ```text
//!  read: nodes ┐                       ┌ marks, Auto Scaling groups ─▶ pools
//!  read: project, whole, unfiltered ───┼ ranges, routes, legs ─▶ network ─▶ propose: Proposal, and what is unknown
//!                                      ├ groups, rules ─▶ rules: which a pool's ports carry, and what they let in
//!                                      └ names ─▶ hints: comments and commands, never ownership
//! ```
//!
//! The proposal is a pure function from a survey to a roster. It guesses only where it can give a reason, and writes the
//! reason down. It does not know any provider: where providers differ, an [`Inventory`] has an empty field, or a `Site`
//! has the right words.

pub(crate) mod alone;
mod hints;
mod network;
mod pools;
pub(crate) mod propose;
pub(crate) mod read;
mod rules;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ipnet::IpNet;
use reveille_core::model::id::{CloudName, InstanceId, RouterId};
use reveille_core::model::instance::{Instance, Mark};
use reveille_core::model::node::{Node, Provider};
use reveille_wire::roster::ClusterRef;

use reveille_cloud::inventory::Inventory;
use reveille_cloud::site::{Settled, Site};

/// The result of the reads.
#[derive(Clone, Debug, Default)]
pub(crate) struct Survey {
    /// Every node of the cluster.
    pub(crate) nodes: Vec<Arc<Node>>,
    /// All objects of the project, of all owners; also groups of other projects on its ports, and the named router,
    /// as far as they could be read. Deleted instances are not in it.
    pub(crate) inventory: Inventory,
    /// The router of the command line.
    pub(crate) wanted_router: Option<RouterId>,
}

/// The names and references for the roster.
pub(crate) struct Place<'s> {
    /// Name of the roster.
    pub(crate) roster: String,
    /// The cluster.
    pub(crate) cluster: ClusterRef,
    /// The roster's name for the cloud.
    pub(crate) cloud: CloudName,
    /// The words of the cloud's provider.
    pub(crate) site: &'s dyn Site,
    /// What the roster says about the cloud.
    pub(crate) settled: Settled,
}

/// Something that could not be found out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Gap {
    /// What, on one line.
    pub(crate) what: String,
    /// Commands that would fix it.
    pub(crate) commands: Vec<String>,
}

impl Gap {
    /// A gap that no command fixes.
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), commands: Vec::new() }
    }
}

impl Survey {
    /// The instance that a Node names; where it names none, the only instance whose name inside its cloud is the Node's.
    pub(crate) fn instance_of(&self, node: &Node) -> Option<&Arc<Instance>> {
        let instances = &self.inventory.instances;
        if let Some(instance) = named(node).and_then(|id| instances.get(&id)) {
            return Some(instance);
        }
        if node.provider != Provider::Unset {
            return None;
        }
        let mut alike = instances.values().filter(|one| one.hostname.as_deref() == Some(node.name.as_str()));
        alike.next().filter(|_| alike.next().is_none())
    }

    /// The instances of the Nodes, in the order of the Nodes.
    pub(crate) fn ours(&self) -> Vec<&Arc<Instance>> {
        self.nodes.iter().filter_map(|node| self.instance_of(node)).collect()
    }

    /// The ids of these instances.
    pub(crate) fn our_ids(&self) -> BTreeSet<InstanceId> {
        self.ours().into_iter().map(|instance| instance.id.clone()).collect()
    }

    /// The pod ranges of the Nodes, one by one.
    pub(crate) fn pod_ranges(&self) -> Vec<IpNet> {
        self.nodes.iter().flat_map(|node| node.pod_ranges.iter().copied()).collect()
    }
}

/// The instance id that a Node carries: from its provider ID, else its system UUID, which is the instance's id on OpenStack.
pub(crate) fn named(node: &Node) -> Option<InstanceId> {
    match &node.provider {
        Provider::Instance(id) => Some(id.clone()),
        Provider::Unset | Provider::Unread(_) => node.system_uuid.clone(),
    }
}

/// The mark that names the cluster: most of the Nodes' instances carry it, so that one instance that lost it does not hide it.
pub(crate) fn cluster_mark(instances: &[&Arc<Instance>]) -> Option<Mark> {
    let mut carried: BTreeMap<&Mark, usize> = BTreeMap::new();
    for mark in instances.iter().flat_map(|instance| instance.marks.iter()) {
        *carried.entry(mark).or_default() += 1;
    }
    let most = carried.into_iter().filter(|(_, count)| count * 2 > instances.len());
    let named = most.map(|(mark, count)| (likeness(mark), instances.len() - count, mark));
    named.filter(|(rank, ..)| *rank < 3).min().map(|(.., mark)| mark.clone())
}

/// How much a mark looks like a cluster's name: 0 very much, 3 not at all.
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

/// A text in the form of a roster's name, or an empty text.
pub(crate) fn plain_name(text: &str) -> String {
    const CHARS_MAX: usize = 60;
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let name: String = text.chars().map(plain).collect();
    // Long names are cut; where two cut names are equal, they get numbers.
    let name: String = name.trim_matches('-').chars().take(CHARS_MAX).collect();
    name.trim_end_matches('-').to_owned()
}

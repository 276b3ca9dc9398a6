//! Which list of nodes can be true: it is held against the machines that run, and against those that joined before.
//!
//! ```text
//!  list ───▶ the nodes that it lacks are lost ──────┐
//!  ledger ─▶ nodes of machines that joined before ──┼─▶ judge_list ─▶ doubt, or the lost nodes are removed
//!  clouds ─▶ which machines run, and which are new ─┘
//! ```
//!
//! The list is judged after each list, after each node that the watch tells, and after each listing of a cloud. So the order
//! of the readings does not matter: an API server answers a list of nodes in milliseconds and Nova one of servers in
//! seconds, so that at a start nothing is known yet that the list could be held against.
//!
//! An empty list is believed where nothing contradicts it: each machine that runs came into sight while this process
//! watched, and none joined before. A new cluster looks like that. No act that can hurt happens there before the first Node
//! exists (`plan::interlock`).
//!
//! Deletions that the watch tells one by one are not judged here: the API server said each of them.

use std::collections::BTreeMap;

use crate::guard::{Guard, stands};
use crate::model::id::{CloudName, InstanceId, NodeName};
use crate::model::instance::InstanceState;
use crate::model::time::Time;

use super::cloud::{CloudView, Seen};
use super::cluster::{ClusterChange, ClusterView};

/// What a list of nodes is held against.
#[derive(Clone, Copy)]
pub struct Fleet<'a> {
    /// The machines, as far as their clouds have told of them.
    pub clouds: &'a BTreeMap<CloudName, CloudView>,
    /// So many percent of the nodes may be missing from a list.
    pub shrink_pct: u8,
}

/// Machines that the ledger knows to have joined, and whose Node no list of this process has shown yet.
#[derive(Clone, Debug, Default)]
pub(super) struct Awaited {
    nodes: BTreeMap<NodeName, (CloudName, InstanceId)>,
    /// How many there were at the start.
    total: usize,
}

impl Fleet<'_> {
    /// The machine, where it runs and is a pool's, as far as its cloud knows.
    fn running(&self, cloud: &CloudName, instance: &InstanceId) -> Option<&Seen> {
        self.clouds.get(cloud)?.instances.get(instance).filter(|seen| runs(seen))
    }

    /// How many machines run and must have a Node: they joined once, or ran before this process saw them.
    fn expected(&self) -> usize {
        let must_have_node = |seen: &&Seen| runs(seen) && (seen.joined.is_some() || !seen.born_in_sight);
        self.clouds.values().flat_map(|view| view.instances.values()).filter(must_have_node).count()
    }

    /// Every cloud has been listed, and none of the lists is doubted, so that each node could be linked.
    fn is_known(&self) -> bool {
        self.clouds.values().all(|view| view.listed_once() && view.source.doubted().is_none())
    }

    fn tolerated(&self, of: usize) -> usize {
        (of * usize::from(self.shrink_pct) / 100).max(1)
    }
}

fn runs(seen: &Seen) -> bool {
    let active = matches!(seen.instance.state, InstanceState::Active | InstanceState::Rebooting);
    active && seen.unlisted.is_none() && seen.pool().is_some()
}

impl ClusterView {
    /// The ledger knows these machines to have joined: the first lists are held against their nodes.
    pub fn await_nodes(&mut self, nodes: BTreeMap<NodeName, (CloudName, InstanceId)>) {
        self.awaited = Awaited { total: nodes.len(), nodes };
    }

    /// Something is undecided: a machine or a node that changed may change what the last list means.
    pub fn awaits_judgement(&self) -> bool {
        let open = !self.lost.is_empty() || !self.awaited.nodes.is_empty() || self.listed_none;
        self.synced_once() && (open || self.source.doubted().is_some())
    }

    /// Counts the nodes that stand for machines of ours. A list may lack a share of them.
    pub fn count_linked(&mut self) {
        self.linked = self.nodes.values().filter(|seen| seen.link.is_some()).count();
    }

    /// Judges the last list, as far as the clouds are known by now. What it lacks and is not doubted is removed.
    pub fn judge_list(&mut self, now: Time, fleet: Fleet<'_>) -> ClusterChange {
        let mut change = ClusterChange::default();
        let nodes = &self.nodes;
        let is_back = |name: &NodeName, (cloud, instance): &(CloudName, InstanceId)| {
            let seen = fleet.clouds.get(cloud).and_then(|view| view.instances.get(instance));
            nodes.contains_key(name) || seen.is_some_and(|seen| !seen.nodes.is_empty())
        };
        self.awaited.nodes.retain(|name, machine| !is_back(name, machine));
        let why = self.implausible(fleet).filter(|_| stands(Guard::ShrunkenNodes));
        let doubted = why.is_some();
        self.source.doubt(now, why.map(Into::into));
        if doubted {
            return change;
        }
        // A node without a link may stand for a machine of a cloud that was not listed yet.
        let is_known = fleet.is_known();
        let decided = |name: &&NodeName| is_known || self.nodes.get(*name).is_none_or(|it| it.link.is_some());
        let removed: Vec<NodeName> = self.lost.iter().filter(decided).cloned().collect();
        for name in removed {
            change.removed.extend(self.remove(now, &name));
        }
        if is_known {
            self.awaited.nodes.clear();
        }
        change
    }

    /// Why the last list cannot be true, where it cannot.
    fn implausible(&self, fleet: Fleet<'_>) -> Option<String> {
        if self.listed_none {
            let expected = fleet.expected();
            if expected > 0 {
                return Some(format!("the node list is empty beside {expected} running instances"));
            }
        }
        let runs = |(cloud, instance): (&CloudName, &InstanceId)| fleet.running(cloud, instance).is_some();
        let links = self.lost.iter().filter_map(|name| self.nodes.get(name)?.link.as_ref());
        let torn = links.filter(|link| runs((&link.cloud, &link.instance))).count();
        if torn > fleet.tolerated(self.linked) {
            let known = self.linked;
            return Some(format!("{torn} of {known} nodes went missing at once while their instances run"));
        }
        let awaited = self.awaited.nodes.values().filter(|(cloud, id)| runs((cloud, id))).count();
        if awaited > fleet.tolerated(self.awaited.total) && stands(Guard::RememberedNodes) {
            let total = self.awaited.total;
            return Some(format!(
                "{awaited} of {total} machines that joined before have no Node in the list while their instances run"
            ));
        }
        None
    }
}

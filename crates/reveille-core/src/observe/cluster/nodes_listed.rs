//! Which Node list can be true: compares a list with the machines that run, and with those that joined before.
//!
//! ```text
//!  list ───▶ the nodes that it lacks are lost ──────┐
//!  ledger ─▶ nodes of machines that joined before ──┼─▶ judge_list ─▶ doubt, or the lost nodes are removed
//!  clouds ─▶ which machines run, and which are new ─┘
//! ```
//!
//! The engine judges the list after each list, after each Node that the watch reports, and after each listing of a cloud.
//! So the order of the readings does not matter. An API server answers a list of Nodes in milliseconds, and Nova one of
//! servers in seconds: at a start there is nothing yet to compare the list with.
//!
//! The engine believes an empty list where nothing contradicts it: each running machine came into sight while this process
//! watched, and none joined before. A new cluster looks like that. No act that can hurt happens there before the first Node
//! exists (`plan::interlock`).
//!
//! A list that lacks too many is doubted until each of those nodes is back or was asked for by its name and denied twice, a while
//! apart: so many Nodes can have been deleted while no watch ran, and a doubt that never ends stops every repair. What took
//! them is not known then, a person or an etcd restored from a backup, and says nothing of the machines: they are
//! remembered as lost together, and a person is left to bring them back (`plan::interlock`). An empty list beside running
//! machines is never believed. Nodes that went before and are not back count with those that a list lacks: a store that is
//! restored twice loses a tolerable part each time.
//!
//! ```text
//!  doubt ─▶ names_to_ask ─▶ Look::Node ─▶ node_denied (twice, DENIED_APART) ─▶ judge_list: believed
//!                                    └──▶ node_found: its denials are forgotten
//! ```
//!
//! One more answer by name, or one more node that is back, cannot end a doubt while other names are open: each is counted and the
//! list judged only when it can mean something else (`may_mean_more`). Ten thousand lost nodes are ten thousand answers.
//!
//! This module does not judge deletions that the watch reports one by one: the API server confirmed each of them.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::id::{CloudName, InstanceId, NodeName};
use crate::model::incident::MachineKey;
use crate::model::instance::InstanceState;
use crate::model::roster::Timing;
use crate::model::time::{Span, Time};
use crate::safeguard::{Safeguard, stands};

use crate::observe::cloud::{CloudView, Seen};

use super::{ClusterChange, ClusterView};

/// What a list of nodes is held against.
#[derive(Clone, Copy)]
pub struct Fleet<'a> {
    /// The machines, as far as their clouds have told of them.
    pub clouds: &'a BTreeMap<CloudName, CloudView>,
    /// How many nodes may be missing from a list.
    pub timing: Timing,
}

/// Two denials of a node's name that prove its absence are so far apart: longer than a watch cache lags behind its store, and
/// than an API server's restart lasts.
const DENIED_APART: Span = Span::from_min(10);
/// What was asked and not answered is asked again after this.
const ASK_AGAIN: Span = Span::from_min(1);

/// What the API server says by name of the nodes that a doubted list lacks. Empty while nothing is doubted.
#[derive(Clone, Debug, Default)]
pub(super) struct ByName {
    asked: BTreeMap<NodeName, Asked>,
    /// How many of them are not denied twice yet.
    open: usize,
}

/// Of so many nodes: how many are asked for by name and not denied twice yet, and how many are.
#[derive(Clone, Copy, Debug, Default)]
struct Told {
    names: usize,
    open: usize,
    absent: usize,
}

#[derive(Clone, Copy, Debug)]
struct Asked {
    /// Not to be asked before.
    next: Time,
    first_denial: Option<Time>,
    absent: bool,
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

    /// The last list may mean something else than when it was judged, although no other list and no machine is news: it is not
    /// doubted, or no name is open any more.
    pub fn may_mean_more(&self) -> bool {
        self.awaits_judgement() && (self.source.doubted().is_none() || self.by_name.open == 0)
    }

    /// How often a list was judged: the cost of a doubt, counted and not timed.
    pub const fn judgements(&self) -> u64 {
        self.judgements
    }

    /// How many machines of ours run and have a Node, as counted last.
    pub const fn linked_nodes(&self) -> usize {
        self.linked
    }

    /// Counts the machines of ours that run and have a Node: a list may lack a share of their Nodes. Second Nodes of machines,
    /// and those of machines that are shut down, are no part of it: they made room for a restored store (seed 5600763).
    pub fn count_linked(&mut self, fleet: Fleet<'_>) {
        let links = self.nodes.values().filter_map(|seen| seen.link.as_ref());
        let run = links.filter(|link| fleet.running(&link.cloud, &link.instance).is_some());
        self.linked = run.map(|link| (&link.cloud, &link.instance)).collect::<BTreeSet<_>>().len();
    }

    /// Judges the last list, as far as the clouds are known by now. What it lacks and is not doubted is removed.
    pub fn judge_list(&mut self, now: Time, fleet: Fleet<'_>) -> ClusterChange {
        let mut change = ClusterChange::default();
        self.judgements += 1;
        let nodes = &self.nodes;
        let is_back = |name: &NodeName, (cloud, instance): &(CloudName, InstanceId)| {
            let seen = fleet.clouds.get(cloud).and_then(|view| view.instances.get(instance));
            nodes.contains_key(name) || seen.is_some_and(|seen| !seen.nodes.is_empty())
        };
        self.awaited.nodes.retain(|name, machine| !is_back(name, machine));
        let why = self.implausible(fleet).filter(|_| stands(Safeguard::ShrunkenNodes));
        let doubted = why.is_some();
        self.source.doubt(now, why.map(Into::into));
        if doubted {
            return change;
        }
        // A node without a link may stand for a machine of a cloud that was not listed yet.
        let is_known = fleet.is_known();
        change.lost_together = self.note_lost_together(fleet);
        let decided = |name: &&NodeName| is_known || self.nodes.get(*name).is_none_or(|it| it.link.is_some());
        let removed: Vec<NodeName> = self.lost.iter().filter(decided).cloned().collect();
        for name in removed {
            change.removed.extend(self.remove(&name));
        }
        if is_known {
            self.awaited.nodes.clear();
            self.by_name = ByName::default();
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
        let (torn_told, awaited_told) = (self.told(self.torn(fleet)), self.told(self.still_awaited(fleet)));
        let (torn, awaited, known) = (torn_told.names, awaited_told.names, self.linked);
        let open = torn_told.open + awaited_told.open;
        let before = self.missing_before;
        let is_too_many =
            |missing: usize, of: usize| missing > 0 && missing + before > fleet.timing.may_lack(of + before);
        let beside =
            if before > 0 { format!(", beside {before} whose Node went before") } else { String::new() };
        if is_too_many(torn, known) && torn_told.absent < torn {
            return Some(format!(
                "{torn} of {known} nodes went missing at once while their instances run{beside}"
            ));
        }
        // Of those that do not run it says nothing that their Nodes are missing.
        let total = self.awaited.total - (self.awaited.nodes.len() - awaited);
        if is_too_many(awaited, total) && stands(Safeguard::RememberedNodes) && awaited_told.absent < awaited
        {
            return Some(format!(
                "{awaited} of {total} machines that joined before have no Node in the list while their instances run{beside}"
            ));
        }
        // That some are back makes the others no less lost together: a list is doubted until each name is told.
        if open > 0 {
            return Some(format!("{open} nodes that a doubted list lacks are not denied by name yet"));
        }
        None
    }

    /// A list that was doubted is believed, because each Node that it lacks was denied by name. All that it lacked then, and that
    /// are not back, went together: also those of machines that do not run, whose Nodes were not asked for. One that a failed
    /// migration left in an error state served on until its Node went with the others, and was deleted then.
    fn note_lost_together(&mut self, fleet: Fleet<'_>) -> Vec<MachineKey> {
        let is_told = !self.by_name.asked.is_empty();
        if !is_told && self.lost_together.together() == 0 {
            return Vec::new();
        }
        let lost = self.lost.iter().filter_map(|name| self.nodes.get(name)?.link.as_ref());
        let lost = lost.map(|link| (link.cloud.clone(), link.instance.clone()));
        let stays = |(cloud, id): &(CloudName, InstanceId)| {
            let seen = fleet.clouds.get(cloud).and_then(|view| view.instances.get(id));
            seen.is_some_and(|seen| !seen.instance.state.is_leaving())
        };
        let together = lost.chain(self.awaited.nodes.values().cloned()).filter(stays);
        let together = together.map(|(cloud, id)| MachineKey::Instance(cloud, id));
        let together: Vec<MachineKey> = together.filter(|key| !self.lost_together.had_node(key)).collect();
        if !is_told && !self.are_too_many_beside_those_lost(together.len(), fleet) {
            return Vec::new();
        }
        for machine in &together {
            self.lost_together.insert(machine.clone());
        }
        together
    }

    /// With those that are lost together already, so many more are too many: a store that is restored once more. Neither
    /// number is too many by itself, where some of the first are back (seed 5450350).
    fn are_too_many_beside_those_lost(&self, more: usize, fleet: Fleet<'_>) -> bool {
        let before = self.lost_together.together() + self.missing_before;
        more > 0 && fleet.is_known() && more + before > fleet.timing.may_lack(self.linked + before)
    }

    /// What was said of these by name.
    fn told<'a>(&self, names: impl Iterator<Item = &'a NodeName>) -> Told {
        let mut told = Told::default();
        for name in names {
            let asked = self.by_name.asked.get(name);
            told.names += 1;
            told.open += usize::from(asked.is_some_and(|asked| !asked.absent));
            told.absent += usize::from(asked.is_some_and(|asked| asked.absent));
        }
        told
    }

    /// Nodes that the last list lacks, and whose machines run.
    fn torn<'a>(&'a self, fleet: Fleet<'a>) -> impl Iterator<Item = &'a NodeName> {
        self.lost.iter().filter(move |name| {
            let link = self.nodes.get(*name).and_then(|seen| seen.link.as_ref());
            link.is_some_and(|link| fleet.running(&link.cloud, &link.instance).is_some())
        })
    }

    /// Nodes of the ledger that no list has shown yet, and whose machines run.
    fn still_awaited<'a>(&'a self, fleet: Fleet<'a>) -> impl Iterator<Item = &'a NodeName> {
        // What runs in a cloud that was not listed yet, or whose list is doubted, is not known.
        let is_unknown = move |cloud: &CloudName| {
            let view = fleet.clouds.get(cloud);
            view.is_some_and(|view| !view.listed_once() || view.source.doubted().is_some())
        };
        let runs = move |(_, (cloud, id)): &(_, &(CloudName, InstanceId))| {
            fleet.running(cloud, id).is_some() || is_unknown(cloud)
        };
        self.awaited.nodes.iter().filter(runs).map(|(name, _)| name)
    }

    /// The nodes to ask for by name now, because a list that lacks them is doubted. Each is then asked for.
    pub fn names_to_ask(&mut self, now: Time, fleet: Fleet<'_>) -> Vec<NodeName> {
        if self.source.doubted().is_none() || self.listed_none {
            return Vec::new();
        }
        let lacked = self.torn(fleet).chain(self.still_awaited(fleet));
        let due: Vec<NodeName> = lacked.filter(|name| self.by_name.is_due(now, name)).cloned().collect();
        for name in &due {
            self.by_name.entry(name, now).next = now + ASK_AGAIN;
        }
        due
    }

    /// The API server has no node of this name. Asked for at `asked_at`: what comes late is as old as its question.
    pub fn node_denied(&mut self, asked_at: Time, name: &NodeName) {
        let Some(asked) = self.by_name.asked.get_mut(name) else { return };
        let first = *asked.first_denial.get_or_insert(asked_at);
        if !asked.absent && asked_at.since(first) >= DENIED_APART {
            asked.absent = true;
            self.by_name.open -= 1;
        }
        asked.next = first + DENIED_APART;
    }

    /// The API server has a node of this name: the list that lacks it is wrong.
    pub fn node_found(&mut self, now: Time, name: &NodeName) {
        if let Some(asked) = self.by_name.asked.get_mut(name) {
            self.by_name.open += usize::from(asked.absent);
            *asked = Asked { next: now + DENIED_APART, first_denial: None, absent: false };
        }
    }
}

impl ByName {
    /// It is there.
    pub(super) fn forget(&mut self, name: &NodeName) {
        let gone = self.asked.remove(name);
        self.open -= usize::from(gone.is_some_and(|asked| !asked.absent));
    }

    fn entry(&mut self, name: &NodeName, now: Time) -> &mut Asked {
        let open = &mut self.open;
        self.asked.entry(name.clone()).or_insert_with(|| {
            *open += 1;
            Asked { next: now, first_denial: None, absent: false }
        })
    }

    fn is_due(&self, now: Time, name: &NodeName) -> bool {
        self.asked.get(name).is_none_or(|asked| !asked.absent && asked.next <= now)
    }
}

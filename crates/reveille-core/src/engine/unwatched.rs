//! When the list of nodes was last seen complete, by whatever process, and which Nodes went while it was not.
//!
//! ```text
//!  a list, or a watch that proves for a while that it is current ─▶ seen complete
//!  no process, a sleep, no API server, another cluster ───────────▶ a gap, in the ledger too ─▶ a Node turns out to be gone
//!     ─▶ unwatched: a person may have drained it ─▶ note_went_unwatched: told, and held
//!          └─ the gap was shorter than events live, and a cloud controller tells that it deleted the Node: missed as any other
//!  a machine comes into sight that was made before anything that is known of Nodes ─▶ doubt_lives ─▶ note_life_unknown
//! ```
//!
//! Gaps add up: two processes that reached no API server are one gap with the times before, between and after them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::diagnose::absence::vanished;
use crate::model::id::{CloudName, InstanceId, NodeName, PoolName};
use crate::model::incident::{MachineKey, Subject};
use crate::model::instance::InstanceState;
use crate::model::node::Node;
use crate::model::time::{Span, Time};
use crate::observe::cloud::{CloudView, Seen};
use crate::observe::cluster::NodeSeen;
use crate::observe::remembered::Remembered;
use crate::record::Record;
use crate::safeguard::{Safeguard, stands};

use super::State;

/// So long an API server keeps events by default (`kube-apiserver --event-ttl`).
const EVENTS_LIVE: Span = Span::from_min(60);
/// An API server that lists its nodes tells of their events within this.
const EVENTS_COME: Span = Span::from_s(30);
/// In which gap a Node went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Gap {
    /// One longer than events live.
    Long,
    /// A shorter one, which ended then: events may tell that a cloud controller deleted the Node.
    Short(Time),
}

/// What is known of gaps in our sight of the nodes.
#[derive(Clone, Debug, Default)]
pub(super) struct NodesSeen {
    /// When the list of nodes was last seen complete.
    complete: Option<Time>,
    /// Since when the watch proves that it is current, and when it did so last.
    proved: Option<(Time, Time)>,
    /// When the last gap ended that was longer than a list may be late.
    gap_ended: Option<Time>,
    /// Since when the list is not seen, as the ledger says: a process that dies before it sees a list, or before what went in the
    /// gap is in the ledger, leaves the gap to the next one.
    pub(super) unseen_since: Option<Time>,
    /// Nodes that went in a gap, and nothing tells whether they were drained. Before the first list of a process, those that the
    /// ledger knows: any of them may have gone.
    names: BTreeMap<NodeName, Gap>,
    /// Machines whose Nodes' names others may have taken in a gap: no Node of that name has shown them since then. And
    /// whether one of that name went.
    taken: BTreeMap<MachineKey, bool>,
    /// What happened to Nodes since then is known, by what was watched or by events that had not expired. `None`: no process was
    /// there before.
    told_from: Option<Time>,
    /// When the last gap ended that was longer than events live: a process that begins in one ends it for itself.
    long_gap_ended: Option<Time>,
    /// Pools of which the ledger knew a machine when this process began, and since a long gap all of the roster. Empty where it
    /// knew none.
    pools_before: BTreeSet<PoolName>,
    /// It knew a machine of a pool that it did not name, or that the roster does not have any more: a pool of another name may be
    /// that one.
    has_other_pools: bool,
    /// Machines whose Node went in the sight of a process, and of which no incident says so.
    seen_to_go: BTreeSet<MachineKey>,
}

impl NodesSeen {
    /// The roster has this pool since this process began, or no machine of it was known before.
    fn is_new(&self, pool: &PoolName) -> bool {
        !self.pools_before.is_empty() && !self.has_other_pools && !self.pools_before.contains(pool)
    }
}

impl State {
    /// A process begins. Where it is not known since when no process saw the nodes, it is too long: so where the last process was
    /// alive in what is the future now. How far the clock went back is not known, and neither is how long ago a gap began.
    pub(super) fn begin_unseen(&mut self, last_alive: Option<Time>) {
        // A ledger that knows its cluster was kept by a process that saw it.
        let was_watched = !self.out_of_sight.is_empty() || self.cluster.identity.expected().is_some();
        self.nodes_seen.told_from = was_watched.then(|| self.now - EVENTS_LIVE);
        let of_machines = self.out_of_sight.unseen().iter().chain(self.out_of_sight.departed());
        let of_machines = of_machines.filter_map(|(_, memory)| memory.pool.as_ref());
        let of_incidents = self.incidents.open().values().filter_map(|case| case.incident.pool.as_ref());
        self.nodes_seen.pools_before = of_machines.chain(of_incidents).cloned().collect();
        let pools = &self.roster.pools;
        self.nodes_seen.has_other_pools =
            self.nodes_seen.pools_before.iter().any(|it| !pools.contains_key(it))
                || self.out_of_sight.unseen().values().any(|memory| memory.pool.is_none());
        let begins_late = last_alive.is_none_or(|at| Self::was_long_gap(at, self.now));
        self.nodes_seen.long_gap_ended = begins_late.then_some(self.now);
        if !was_watched {
            return;
        }
        let is_past = |at: &Time| *at <= self.now;
        let since = self.nodes_seen.unseen_since.or(last_alive);
        let since = since.filter(|since| is_past(since) && last_alive.as_ref().is_none_or(is_past));
        let since = since.unwrap_or(self.now - (EVENTS_LIVE + Span::from_ms(1)));
        self.nodes_seen.complete = Some(since);
        self.nodes_seen.long_gap_ended = self.is_long_unseen().then_some(self.now);
        self.tell_unseen(Some(since));
    }

    /// The clock of this process went back: a gap is as long as before, for the next process too.
    pub(super) fn move_unseen(&mut self, moved: impl Fn(Time) -> Time) {
        let seen = &mut self.nodes_seen;
        seen.complete = seen.complete.map(&moved);
        seen.proved = seen.proved.map(|(since, last)| (moved(since), moved(last)));
        seen.gap_ended = seen.gap_ended.map(&moved);
        for gap in seen.names.values_mut() {
            if let Gap::Short(ended) = gap {
                *ended = moved(*ended);
            }
        }
        seen.told_from = seen.told_from.map(&moved);
        seen.long_gap_ended = seen.long_gap_ended.map(&moved);
        let since = seen.unseen_since.map(&moved);
        self.tell_unseen(since);
    }

    /// These Nodes were there when a process was looking last.
    pub(super) fn await_unseen(&mut self, names: impl IntoIterator<Item = NodeName>) {
        self.nodes_seen.names.extend(names.into_iter().map(|name| (name, Gap::Long)));
    }

    /// The list of nodes has not been seen complete for longer than events live.
    pub(super) fn is_long_unseen(&self) -> bool {
        self.nodes_seen.complete.is_some_and(|at| self.now.since(at) > EVENTS_LIVE)
    }

    /// A machine that was there then may have joined, and lost its Node, while the nodes were not seen.
    pub(super) fn was_unwatched_since(&self, then: Time) -> bool {
        self.nodes_seen.gap_ended.is_some_and(|ended| then <= ended)
    }

    /// A list of nodes was taken in. What it holds did not go. What it lacks went since the last complete one, if that is long
    /// ago.
    pub(super) fn note_list_seen(&mut self, is_first: bool, replaced: &[NodeName]) {
        let is_long = self.is_long_unseen();
        let late_after = self.roster.timing.cluster_stale_after;
        if self.nodes_seen.complete.is_some_and(|at| self.now.since(at) > late_after) {
            self.nodes_seen.gap_ended = Some(self.now);
        }
        if let Some(at) = self.nodes_seen.complete.filter(|_| !is_first) {
            self.end_tries_after(self.now.since(at));
        }
        let gap = if is_long { Gap::Long } else { Gap::Short(self.now) };
        self.note_unseen_changes(is_first, gap, replaced);
        let nodes = &self.cluster.nodes;
        let is_there = |name: &&NodeName| nodes.get(*name).is_some_and(|node| !node.lost);
        let there: Vec<NodeName> = self.nodes_seen.names.keys().filter(is_there).cloned().collect();
        there.iter().for_each(|name| self.note_is_there(name));
        if is_long && !is_first {
            self.nodes_seen.long_gap_ended = Some(self.now);
            // Those that are new to the ledger were in the sight of this process before.
            self.nodes_seen.pools_before.extend(self.roster.pools.keys().cloned());
        }
        if is_long {
            self.nodes_seen.told_from = Some(self.now - EVENTS_LIVE);
        }
    }

    /// What a list lacks, no watch saw go, however short the time since the last one: an API server had shown an old state all
    /// the while (seed 9301245). Where it shows another object of a name, that may be another machine's by now.
    fn note_unseen_changes(&mut self, is_first: bool, gap: Gap, replaced: &[NodeName]) {
        if is_first {
            self.nodes_seen.names.values_mut().for_each(|known| *known = gap);
            return;
        }
        let lost = self.cluster.nodes.iter().filter(|(_, node)| node.lost);
        self.nodes_seen.names.extend(lost.map(|(name, _)| (name.clone(), gap)));
        replaced.iter().for_each(|name| self.note_name_taken(name));
    }

    /// Nodes of a list that are other objects than those that were there: no watch told of that.
    pub(super) fn replaced_in(&self, list: &[Arc<Node>]) -> Vec<NodeName> {
        let known = |node: &Node| self.cluster.nodes.get(&node.name);
        let is_another = |node: &&Arc<Node>| known(node).is_some_and(|known| known.node.uid != node.uid);
        list.iter().filter(is_another).map(|node| node.name.clone()).collect()
    }

    /// The list is judged. What goes while lists are doubted is not seen: a person drained a machine while an API server listed
    /// no Node for eight minutes (seed 9004031).
    pub(super) fn note_list_judged(&mut self) {
        if self.cluster.source.doubted().is_none() {
            self.nodes_seen.complete = Some(self.now);
            return;
        }
        // What a doubted list lacks stays, and is lost.
        let ended = Gap::Short(self.now);
        for (name, _) in self.cluster.nodes.iter().filter(|(_, node)| node.lost) {
            self.nodes_seen.names.entry(name.clone()).or_insert(ended);
        }
    }

    /// The nodes were not seen for longer than events live. A machine that was being built before that, and has no Node now, may
    /// have joined, served and been drained meanwhile: one that a person kept so was rebooted and deleted, as one that surely
    /// never joined. Of one that came into sight within the last hour events tell ([`State::was_unwatched_since`]). Who has a
    /// Node now has joined.
    pub(super) fn doubt_births(&mut self) {
        let before = self.now - EVENTS_LIVE;
        self.doubt_births_of(|seen| seen.known_since < before);
        let cluster = &self.cluster;
        for (key, memory) in self.out_of_sight.all_mut() {
            let MachineKey::Instance(_, id) = key else { continue };
            let has_node = !cluster.naming(id).is_empty() || !cluster.with_uuid(id).is_empty();
            memory.born = memory.born.filter(|_| memory.node.is_some() || has_node);
        }
    }

    /// We slept, or our clock was set ahead: what was in sight was so before that, although it counts as new for as long as it
    /// would have without the gap.
    pub(super) fn doubt_births_before(&mut self, before: Time) {
        if Self::was_long_gap(before, self.now) {
            self.doubt_births_of(|_| true);
        }
    }

    /// One that its cloud, which was heard all the time, still builds has not run.
    fn doubt_births_of(&mut self, is_old: impl Fn(&Seen) -> bool) {
        let now = self.now;
        for view in self.clouds.values_mut() {
            let is_heard = view.source.trust(now).is_given();
            for seen in view.instances.values_mut() {
                let is_made = is_heard && seen.instance.state == InstanceState::Building;
                if seen.joined.is_none() && is_old(seen) && !is_made {
                    seen.doubt_life();
                }
            }
        }
    }

    /// Machines that come into sight now, of which no ledger tells, and that their cloud made before anything that we know of
    /// Nodes: a person may have drained them, tells of it have expired, and one that was kept so was rebooted (seeds 7202253 and
    /// 7205545). There is no doubt at the first start of all, nor about a pool which the ledger does not know yet: what does not
    /// work when a controller is installed is to be repaired. One that an incident names was looked at by the process before, if
    /// no long gap lies between.
    pub(super) fn doubt_lives(&mut self, cloud: &CloudName, touched: &BTreeSet<InstanceId>) {
        // While a long gap goes on, or before its end was noticed, events tell of the last hour alone.
        let told_for = match self.is_long_unseen() {
            true => Some(EVENTS_LIVE),
            false => self.nodes_seen.told_from.map(|from| self.now.since(from)),
        };
        let Some(told_for) = told_for else { return };
        let now = self.now;
        let is_own_gap = self.cluster.synced_once() && self.is_long_unseen();
        let Some(view) = self.clouds.get_mut(cloud) else { return };
        let horizon = view.last_begun.map(|begun| begun.earlier_by(told_for));
        for id in touched {
            let created = view.instances.get(id).and_then(|seen| view.made_at(&seen.instance));
            let Some(seen) = view.instances.get_mut(id).filter(|seen| seen.first_seen == now) else {
                continue;
            };
            if seen.joined.is_some() || seen.left.is_some() || seen.was_watched_from_birth() {
                continue;
            }
            if created.zip(horizon).is_some_and(|(created, horizon)| created > horizon) {
                continue;
            }
            let machine = MachineKey::Instance(cloud.clone(), id.clone());
            let was_judged =
                !is_own_gap && self.incidents.has_open_since(&machine, self.nodes_seen.long_gap_ended);
            let is_adopted = !is_own_gap && seen.pool().is_some_and(|pool| self.nodes_seen.is_new(pool));
            if !was_judged && !is_adopted {
                seen.doubt_life();
            }
        }
    }

    /// What the ledger tells of a gap that is over.
    pub(super) fn was_long_gap(since: Time, until: Time) -> bool {
        until.since(since) > EVENTS_LIVE
    }

    /// The watch proves that it is current. After a gap that counts once it has gone on for a while: a proof may have been on its
    /// way when we fell asleep. From then on each Node that goes is seen to go, although no list came since the gap.
    pub(super) fn note_watch_current(&mut self) {
        let (now, stale_after) = (self.now, self.roster.timing.cluster_stale_after);
        if !self.cluster.synced_once() || self.cluster.source.doubted().is_some() {
            return;
        }
        let seen = &mut self.nodes_seen;
        let is_close = |at: Time| now.since(at) <= stale_after;
        let since = seen.proved.filter(|(_, last)| is_close(*last)).map_or(now, |(since, _)| since);
        seen.proved = Some((since, now));
        if seen.complete.is_none_or(is_close) || now.since(since) >= stale_after {
            seen.complete = Some(now);
        }
    }

    /// Nodes are told to be gone, and no list came since the gap: an audit may be quicker than the watch.
    pub(super) fn note_told_gone(&mut self, removed: &[NodeSeen]) {
        let stale_after = self.roster.timing.cluster_stale_after;
        let is_unseen = self.nodes_seen.complete.is_some_and(|at| self.now.since(at) > stale_after);
        let gap = if self.is_long_unseen() { Gap::Long } else { Gap::Short(self.now) };
        for gone in removed {
            let name = &gone.node.name;
            if is_unseen {
                self.nodes_seen.names.insert(name.clone(), gap);
            }
            // Whose it was is not known.
            for key in self.last_joined_as(name) {
                if let Some(is_gone) = self.nodes_seen.taken.get_mut(&key) {
                    *is_gone = true;
                }
            }
        }
    }

    /// A Node is told to be there.
    pub(super) fn note_is_there(&mut self, name: &NodeName) {
        if self.nodes_seen.names.remove(name).is_some() {
            self.note_name_taken(name);
        }
    }

    /// The Node of this name may be another machine's since a gap, unless it says whose it is.
    fn note_name_taken(&mut self, name: &NodeName) {
        for key in self.last_joined_as(name) {
            if !self.is_shown_by(&key, name) {
                self.nodes_seen.taken.insert(key, false);
            }
        }
    }

    /// A Node of that name shows it: no other machine took the name in a gap.
    pub(super) fn note_own_again(&mut self, key: &MachineKey) {
        self.nodes_seen.taken.remove(key);
    }

    /// The Node that it stood as shows another machine again.
    pub(super) fn note_own_lost(&mut self, key: MachineKey) {
        self.nodes_seen.taken.insert(key, false);
    }

    /// Its Node went in our sight, or in a gap that events outlive, and with no sign. The next process knows it from the ledger:
    /// after a night without us it would take that Node for one that went unwatched, and hold the machine. Once the Node is there
    /// again, that is over, although an incident may wait for hours after that: for its dwell, or for a person's word.
    pub(super) fn note_seen_to_go(&mut self, key: &MachineKey) {
        let Some((_, seen)) = self.context().seen(key) else { return };
        let Some(node) = &seen.joined else { return };
        let signs = seen.signs.clone();
        let is_there = self.cluster.nodes.get(node);
        let is_own = |node: &NodeSeen| node.link.as_ref().is_none_or(|link| link.machine() == *key);
        let has_changed = if is_there.is_some_and(is_own) {
            self.nodes_seen.seen_to_go.remove(key)
        } else if is_there.is_some() {
            // Another machine has its name by now.
            false
        } else {
            let is_told = self.cluster.lost_together.contains(key);
            let is_seen = self.goes_in_sight(key, node);
            let stays = seen.pool().is_some() && !seen.goes();
            let is_signed = || {
                seen.left.is_some() || signs.removal.is_some() || vanished::was_cordoned(&self.cluster, node)
            };
            stays && is_seen && !is_told && !is_signed() && self.nodes_seen.seen_to_go.insert(key.clone())
        };
        if has_changed {
            self.outbox.record(self.signed(key.clone(), signs));
        }
    }

    /// What goes now is seen to go, and this Node was the machine's own.
    fn goes_in_sight(&self, key: &MachineKey, node: &NodeName) -> bool {
        let is_unseen = self.nodes_seen.names.contains_key(node) || self.nodes_seen.taken.contains_key(key);
        self.cluster.source.trust(self.now).is_given() && !is_unseen
    }

    /// The same of one that is out of sight: a person took its marks off, or its cloud was not listed yet.
    pub(super) fn note_seen_to_go_out_of_sight(&mut self, key: &MachineKey, node: &NodeName) {
        let is_seen = self.goes_in_sight(key, node) && !vanished::was_cordoned(&self.cluster, node);
        let memory = self.out_of_sight.get_mut(key).filter(|memory| {
            let is_free = memory.left.is_none() && !memory.lost_together && memory.signs.removal.is_none();
            is_free && memory.node.as_ref() == Some(node)
        });
        if let Some(signs) = memory.filter(|_| is_seen).map(|memory| memory.signs.clone())
            && self.nodes_seen.seen_to_go.insert(key.clone())
        {
            self.outbox.record(self.signed(key.clone(), signs));
        }
    }

    /// The same of machines that are out of sight: these Nodes are there again.
    pub(super) fn note_back_out_of_sight(&mut self, back: Vec<MachineKey>) {
        for key in back {
            if self.nodes_seen.seen_to_go.remove(&key)
                && let Some(memory) = self.out_of_sight.get_mut(&key)
            {
                let signs = memory.signs.clone();
                self.outbox.record(self.signed(key, signs));
            }
        }
    }

    pub(super) fn was_seen_to_go(&self, key: &MachineKey) -> bool {
        self.nodes_seen.seen_to_go.contains(key)
    }

    /// Nothing is remembered of the machine any more.
    pub(super) fn forget_gaps_of(&mut self, key: &MachineKey) {
        self.nodes_seen.taken.remove(key);
        self.nodes_seen.seen_to_go.remove(key);
    }

    /// The ledger says whether it was.
    pub(super) fn set_seen_to_go(&mut self, key: &MachineKey, is_so: bool) {
        let known = &mut self.nodes_seen.seen_to_go;
        if is_so {
            known.insert(key.clone())
        } else {
            known.remove(key)
        };
    }

    /// Its Node went while we saw nothing: a person may have drained it, and have the machine in hand. It is told, and held as
    /// one that was lost with others: until it has a Node again, or a person deletes the machine. A left-over Node of an old
    /// name, which is there beside it and silent, says nothing of the one that went.
    pub(super) fn note_went_unwatched(&mut self, key: &MachineKey, node: &NodeName) {
        // The name stays: two machines may have joined as that Node, one after the other.
        let is_there = self.cluster.nodes.contains_key(node);
        // What is told of the Node that went then may be about another machine.
        let was_anothers = !is_there && self.nodes_seen.taken.get(key) == Some(&true);
        let is_unwatched = match self.nodes_seen.names.get(node).copied() {
            _ if was_anothers && stands(Safeguard::ShortGaps) => !self.was_seen_to_go(key),
            Some(Gap::Long) => true,
            Some(Gap::Short(ended)) => self.went_in_short_gap(key, node, ended),
            None => false,
        };
        let is_unwatched =
            is_unwatched || self.was_taken_over_unwatched(key, node) && !self.was_seen_to_go(key);
        if is_unwatched && self.cluster.lost_together.insert_alone(key.clone()) {
            self.outbox.record(Record::LostTogether { at: self.now, machines: vec![key.clone()] });
        }
    }

    /// Its Node went in a gap that events outlive: a person may have drained it, unless a cloud controller says that it was no
    /// person. A kubelet tells of a cordon, but one that died in the gap, or before it, does not. A cloud controller's word may
    /// come a while after the list, and the ledger keeps it then: the cluster forgets events.
    fn went_in_short_gap(&mut self, key: &MachineKey, node: &NodeName, ended: Time) -> bool {
        if self.was_seen_to_go(key) || !stands(Safeguard::ShortGaps) {
            return false;
        }
        // Until then a word about an earlier object may be all that has come.
        let until = Some(ended + EVENTS_COME).filter(|until| self.now < *until);
        let own = self.context().seen(key).and_then(|(_, seen)| seen.joined_uid.clone());
        let is_by_cloud =
            until.is_none() && vanished::was_deleted_by_cloud(&self.cluster, node, own.as_ref());
        self.await_word(key, until);
        if is_by_cloud && self.nodes_seen.seen_to_go.insert(key.clone()) {
            let signs = self.context().seen(key).map(|(_, seen)| seen.signs.clone());
            signs.into_iter().for_each(|signs| self.outbox.record(self.signed(key.clone(), signs)));
        }
        !is_by_cloud && until.is_none()
    }

    /// Events about its Node may come until then: a repair that was under way waits for them.
    fn await_word(&mut self, key: &MachineKey, until: Option<Time>) {
        let MachineKey::Instance(cloud, id) = key else { return };
        if let Some(seen) = self.clouds.get_mut(cloud).and_then(|view| view.instances.get_mut(id)) {
            seen.awaits_word_until = until;
        }
    }

    /// Its Node's name is another machine's now, and there was a gap in which it may have been drained: a person kept it, and a
    /// successor registered under its name. When that one died, both were deleted.
    pub(super) fn was_taken_over_unwatched(&self, key: &MachineKey, node: &NodeName) -> bool {
        let MachineKey::Instance(_, id) = key else { return false };
        let is_another = || self.cluster.nodes.contains_key(node) && !self.is_shown_by(key, node);
        let is_taken =
            self.nodes_seen.taken.contains_key(key) && stands(Safeguard::ShortGaps) && is_another();
        is_taken || self.nodes_seen.long_gap_ended.is_some() && self.is_of_another(node, id)
    }

    /// The same of a machine that is not known to have joined, and whose life before our sight nothing tells.
    pub(super) fn note_life_unknown(&mut self, key: &MachineKey) {
        if self.cluster.lost_together.hold(key.clone()) {
            self.outbox.record(Record::LostTogether { at: self.now, machines: vec![key.clone()] });
        }
    }

    /// The ledger has to know of a gap while it goes on.
    pub(super) fn tell_gap(&mut self) {
        let stale_after = self.roster.timing.cluster_stale_after;
        let since = self.nodes_seen.complete.filter(|at| self.now.since(*at) > stale_after);
        if self.nodes_seen.unseen_since.is_none() && since.is_some() {
            self.tell_unseen(since);
        }
    }

    /// The gap is over once the ledger has what went in it. Whether it has is looked up after each listing of a cloud: no machine
    /// is judged before one. A machine that is stopped, or whose cloud is away, delays that until it is judged, and no repair
    /// waits for it: only what is gone when the next process begins is taken for unwatched as well.
    pub(super) fn tell_gap_is_over(&mut self, was_listed: bool) {
        if self.nodes_seen.unseen_since.is_none() || !self.cluster.synced_once() {
            return;
        }
        let stale_after = self.roster.timing.cluster_stale_after;
        let is_seen = self.nodes_seen.complete.is_some_and(|at| self.now.since(at) <= stale_after);
        if is_seen {
            self.tell_unmarked();
        }
        // Until its cloud is listed, no machine is doubted that was joining before the gap. A cloud of which none was joining may
        // be down for days: each short restart was a long gap for the machines of the others.
        let is_listed_since = |view: &&CloudView, then| view.source.last_good().is_some_and(|at| at >= then);
        let listed_since =
            |then: Time| self.clouds_with_joining().iter().all(|view| is_listed_since(view, then));
        let has_long = self.nodes_seen.names.values().any(|gap| *gap == Gap::Long);
        let is_kept = || !has_long || was_listed && !self.owes_unwatched();
        if is_seen && self.nodes_seen.long_gap_ended.is_none_or(listed_since) && is_kept() {
            self.tell_unseen(None);
        }
    }

    /// Clouds with a machine that no list of this process has shown, and that had not joined. Of some of those the ledger knows
    /// an incident alone.
    fn clouds_with_joining(&self) -> Vec<&CloudView> {
        let unseen = self.out_of_sight.unseen();
        let without_node = unseen.iter().filter(|(_, memory)| memory.node.is_none()).map(|(key, _)| key);
        let of_incidents = self.incidents.open().keys().filter_map(|key| match &key.subject {
            Subject::Machine(machine) => Some(machine).filter(|machine| !unseen.contains_key(*machine)),
            _ => None,
        });
        let joining = without_node.chain(of_incidents).filter_map(|machine| match machine {
            MachineKey::Instance(cloud, id) => Some(cloud).filter(|_| self.is_out_of_view(cloud, id)),
            MachineKey::Node(_) => None,
        });
        let clouds: BTreeSet<&CloudName> = joining.collect();
        clouds.into_iter().filter_map(|cloud| self.clouds.get(cloud)).collect()
    }

    fn is_out_of_view(&self, cloud: &CloudName, id: &InstanceId) -> bool {
        self.clouds.get(cloud).is_some_and(|view| !view.instances.contains_key(id))
    }

    /// A machine whose Node went unwatched is not in the ledger as one: its cloud is not listed yet, or it is stopped.
    fn owes_unwatched(&self) -> bool {
        let is_owed = |(key, memory): (MachineKey, Remembered)| {
            self.went_unwatched(&memory) && !self.cluster.lost_together.contains(&key)
        };
        self.in_memory().any(is_owed)
            || self.out_of_sight.departed().any(|(_, memory)| self.is_unmarked_owed(memory))
    }

    /// Of a short gap the next process knows enough: it awaits each Node of which no process saw that it went.
    fn went_unwatched(&self, memory: &Remembered) -> bool {
        let is_long = |node| self.nodes_seen.names.get(node) == Some(&Gap::Long);
        let went = memory.node.as_ref().is_some_and(is_long);
        went && memory.left.is_none()
    }

    fn is_unmarked_owed(&self, memory: &Remembered) -> bool {
        memory.disowned && !memory.lost_together && self.went_unwatched(memory)
    }

    /// No machine is judged while its marks are off: a person took them off to have it to themselves, drained its Node in the
    /// gap, and puts them back a day later, perhaps after a restart of ours. So what went is told at once, and the machine is
    /// held as any other once the marks are back: until it has a Node again, or a person deletes the machine.
    fn tell_unmarked(&mut self) {
        if self.nodes_seen.names.is_empty() || !self.cluster.source.trust(self.now).is_given() {
            return;
        }
        let nodes = &self.cluster.nodes;
        let is_gone =
            |memory: &Remembered| memory.node.as_ref().is_some_and(|node| !nodes.contains_key(node));
        let departed = self.out_of_sight.departed();
        let owed = departed.filter(|(_, memory)| self.is_unmarked_owed(memory) && is_gone(memory));
        let owed: Vec<MachineKey> = owed.map(|(key, _)| key.clone()).collect();
        if owed.is_empty() {
            return;
        }
        owed.iter().for_each(|key| self.lose(key.clone()));
        self.outbox.record(Record::LostTogether { at: self.now, machines: owed });
    }

    fn tell_unseen(&mut self, since: Option<Time>) {
        if self.nodes_seen.unseen_since != since {
            self.nodes_seen.unseen_since = since;
            let numbered = self.numbered(None);
            self.outbox.record(numbered);
        }
    }
}

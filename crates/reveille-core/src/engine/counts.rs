//! Counts which machines have a problem, and where, and what that freezes.
//!
//! ```text
//!  state of a machine ─▶ Place { pool, zone, rank, goes } ─▶ Counts ─┬─▶ too many of a pool, or of all ─┐
//!  leases ─▶ silent, whatever its Node is said to be ──────────────┴─▶ a zone, or the fleet, is dark ──┴─▶ Freezes
//! ```
//!
//! `plan::interlock` says which repairs a freeze blocks.

use std::collections::{BTreeMap, BTreeSet};

use crate::diagnose::hosting;
use crate::diagnose::machine_state::{Absence, MachineState};
use crate::model::blocker::Scope;
use crate::model::hosting::GroupPhase;
use crate::model::id::NodeName;
use crate::model::incident::{FaultKind, IncidentKey, MachineKey, Subject};
use crate::model::instance::InstanceState;
use crate::model::node::Ready;
use crate::model::time::{Span, Time};
use crate::observe::cloud::Seen;
use crate::observe::cluster::{Link, NodeSeen};
use crate::observe::counts::{Count, Place, Rank};
use crate::plan::context::Case;
use crate::plan::interlock;
use crate::safeguard::{Safeguard, stands};

use super::State;

/// A machine that is away, and that its cloud denies, counts as away for so long, unless it was seen being taken away. Where half
/// of a fleet is silent and a part of the cloud cannot be reached either, each denial would end the freeze a little more, or
/// would not let it begin, and the Nodes of machines that run would be deleted. Where others scale down, this is what they wait
/// for: nothing is urgent about the Node of a machine that is gone.
const LONG_GONE: Span = Span::from_min(30);

impl State {
    /// Where the machine is counted, and as what.
    pub(super) fn place(&self, key: &MachineKey, seen: &Seen, machine_state: &MachineState) -> Option<Place> {
        let pool = seen.pool()?.clone();
        let context = self.context();
        let was_unhealthy = || self.counts.place(key).is_some_and(|place| place.rank == Rank::Unhealthy);
        let is_denied_lately = || !self.is_taken_away(seen) && !self.is_long_gone(key);
        // The kubelet of another one that shows its address leaves it without a link, and its Node Ready. Two of ten froze a
        // pool.
        let joined_as =
            || seen.joined.as_ref().filter(|name| !self.cluster.is_anothers(name, &seen.instance.id));
        let serves = || {
            let serves_as = context.serves_as(seen).is_some_and(|node| node.node.ready == Ready::True);
            serves_as || joined_as().is_some_and(|name| self.cluster.answers(name))
        };
        let answers = || seen.nodes.iter().any(|name| self.cluster.answers(name));
        let rank = match machine_state {
            MachineState::Answers => Rank::Present,
            // Its cloud denies it, or shows it no more, and it serves. Where its lease is silent, the counts counts it as away.
            MachineState::CannotTell(_) if self.answers_itself(key, seen) => Rank::Present,
            // The cloud cannot be read any more. A machine that had a problem still counts as having it; otherwise the
            // failed read would end a freeze (seed 3300706).
            MachineState::CannotTell(_) if was_unhealthy() && !serves() => Rank::Unhealthy,
            // It is Ready, and not in service yet. A broken add-on, by which five GPU machines kept their startup taint for days,
            // froze the repair of all others: what is Ready is not away, whatever else is wrong with it.
            MachineState::Starting(_) if answers() => Rank::Present,
            MachineState::CannotTell(_) | MachineState::Starting(_) => Rank::Undecided,
            MachineState::Excused(_) if seen.instance.state == InstanceState::Building => Rank::Undecided,
            MachineState::Excused(_) => Rank::Leaving,
            MachineState::Absent(absence) => match absence.kind {
                // The pool waits for no join. A machine that has not joined is no loss to the cluster: eight such machines
                // beside six that serve would freeze the roster for good.
                FaultKind::NeverJoined | FaultKind::NotReady if absence.due_after.is_none() => {
                    Rank::Unawaited
                }
                // A machine that the controller saw being created is still provisioning until its deadline.
                FaultKind::NeverJoined if !self.is_late(key, absence) => Rank::Undecided,
                FaultKind::Ghost if is_denied_lately() => Rank::Unhealthy,
                FaultKind::StuckDeleting | FaultKind::StuckLeaving | FaultKind::Ghost => Rank::Leaving,
                // The machine serves, under a Node that it took over, or beside a second Node that any client with the
                // right to create Nodes may have made. A person needs days to tell the two apart: until then, four such
                // machines of ten would freeze everything.
                FaultKind::Duplicate if (seen.nodes.is_empty() && serves()) || answers() => Rank::Present,
                FaultKind::NotInService if answers() => Rank::Present,
                // A machine that a failed live migration left in ERROR also serves, for months.
                FaultKind::Errored if answers() => Rank::Present,
                _ => Rank::Unhealthy,
            },
        };
        let goes = seen.goes() && stands(Safeguard::GoingUncounted);
        let is_unknown = |name: &NodeName| {
            self.cluster.nodes.get(name).is_some_and(|node| node.node.ready == Ready::Unknown)
        };
        let unheard = !seen.nodes.is_empty() && seen.nodes.iter().all(is_unknown);
        // Another machine writes its Node, which may be in another zone: it counts, and for no zone (seed 9053960).
        let is_duplicate =
            matches!(machine_state, MachineState::Absent(absence) if absence.kind == FaultKind::Duplicate);
        let zone = context.zone(seen).filter(|_| !is_duplicate || self.answers_itself(key, seen));
        Some(Place { pool, zone, rank, goes, unheard })
    }

    /// One of its Nodes is Ready, and no other machine runs under that: one that was made again under its name, in another zone,
    /// says nothing of its own (seeds 5600181, 5650373).
    fn answers_itself(&self, key: &MachineKey, seen: &Seen) -> bool {
        let context = self.context();
        let is_own =
            |node: &NodeSeen| context.views().runs_on(&node.node).is_none_or(|machine| machine == *key);
        let nodes = || seen.nodes.iter().filter(|name| self.cluster.answers(name));
        self.cluster.source.trust(self.now).is_given()
            && nodes().filter_map(|name| self.cluster.nodes.get(name)).any(is_own)
    }

    /// Where a machine is counted that only the ledger knows, because no list of its cloud has shown it since the restart: its
    /// Node tells. Half of a fleet was silent, in a cloud that could not be read any more, and a restart ended the freeze.
    pub(super) fn place_unseen(&self, key: &MachineKey) -> Option<Place> {
        let memory =
            self.out_of_sight.unseen().get(key).filter(|memory| memory.left.is_none() && !memory.disowned)?;
        let MachineKey::Instance(cloud, _) = key else { return None };
        let pool = memory.pool.clone().filter(|name| {
            let pool = self.roster.pools.get(name);
            pool.is_some_and(|pool| pool.cloud == *cloud)
        })?;
        let node = memory.node.as_ref().and_then(|name| self.cluster.nodes.get(name));
        let node = node.filter(|node| node.link.is_none());
        let is_absence = |case: &Case| case.incident.key.kind.is_absence();
        let rank = match node {
            _ if self.is_long_gone(key) => return None,
            Some(node) if node.lost => Rank::Undecided,
            Some(node) if node.node.ready == Ready::True => Rank::Present,
            Some(_) => Rank::Unhealthy,
            None if self.incidents.of(&Subject::Machine(key.clone())).any(is_absence) => Rank::Unhealthy,
            None => return None,
        };
        let unheard = node.is_some_and(|node| node.node.ready == Ready::Unknown);
        let zone = node.and_then(|node| node.node.zone.clone());
        Some(Place { pool, zone, rank, goes: false, unheard })
    }

    /// Something else than a denial says that it was taken away: a cloud that merely cannot be reached says nothing of the kind.
    fn is_taken_away(&self, seen: &Seen) -> bool {
        let leaves = |node: &NodeSeen| {
            node.node.cordoned || node.node.intent.deleting || node.node.intent.leaving.is_some()
        };
        let by_group = hosting::group(seen).is_some_and(|group| group.phase == GroupPhase::Leaving);
        let ended = hosting::of(seen).is_some_and(|hosting| hosting.ended.is_some());
        by_group
            || ended
            || seen.instance.state.is_leaving()
            || seen.left.is_some()
            || self.book.deleted_by_us(&seen.instance.id)
            || seen.nodes.iter().filter_map(|name| self.cluster.nodes.get(name)).any(leaves)
    }

    /// From then on its cloud has denied it for so long that an outage of the cloud is no likely reason. What was not watched
    /// is no part of that: a clock that was set ahead by forty minutes ended the freeze of an outage.
    pub(super) fn long_gone_at(&self, machine: &MachineKey) -> Option<Time> {
        let key = IncidentKey { subject: Subject::Machine(machine.clone()), kind: FaultKind::Ghost };
        self.incidents.get(&key).map(|case| case.watched_from + LONG_GONE)
    }

    fn is_long_gone(&self, machine: &MachineKey) -> bool {
        self.long_gone_at(machine).is_some_and(|at| self.now >= at)
    }

    /// The Nodes of a machine count towards the silence of the fleet while the machine is part of the fleet. A scale-down
    /// from twelve machines to three left nine Nodes that no controller deleted, and they made the fleet dark for good; so did
    /// fifteen machines of no pool that their owner shut down.
    pub(super) fn note_fleet(&mut self, key: &MachineKey) {
        let MachineKey::Instance(cloud, id) = key else { return };
        let leaves = self.counts.place(key).is_none_or(|place| place.rank == Rank::Leaving);
        let seen = self.clouds.get(cloud).and_then(|view| view.instances.get(id));
        for name in seen.into_iter().flat_map(|seen| &seen.nodes) {
            self.cluster.set_left_over(name, leaves);
        }
    }

    /// The machine's deadline has passed, counted from the first sight of its fault. A restart, or a time without reads,
    /// starts its timer again, but the fleet is no better for that.
    fn is_late(&self, machine: &MachineKey, absence: &Absence) -> bool {
        let Some(after) = absence.due_after else { return false };
        let key = IncidentKey { subject: Subject::Machine(machine.clone()), kind: absence.kind };
        self.incidents.get(&key).is_some_and(|case| self.now.since(case.incident.first_seen) >= after)
    }

    /// What is frozen because too many are away, and what recovers from that: where machines come back one after another,
    /// those that are still away come back as well.
    pub(super) fn review_freezes(&mut self) {
        let zones = &self.counts;
        self.freezes.retain(self.roster.pools.len() + zones.zones().count() + 1, |scope| match scope {
            Scope::Zone(cloud, zone) => zones.zone_of(cloud, zone).total() > 0,
            Scope::Pool(_) | Scope::Roster => true,
        });
        let (now, settle, limits) = (self.now, self.roster.timing.settle, self.roster.limits);
        let too_many = |count: Count| limits.are_too_many(count.unhealthy, count.total());
        let (back, counts) = (self.counts.take_back(), &self.counts);
        let away = |is_in: &dyn Fn(&Place) -> bool| {
            counts.away().filter(|(_, place)| is_in(place)).map(|(key, _)| key.clone()).collect()
        };
        for name in self.roster.pools.keys() {
            let count = counts.pool(name);
            if count.total() > 0 {
                let away = || away(&|place| place.pool == *name);
                self.freezes.review(now, settle, Scope::Pool(name.clone()), too_many(count), &back, away);
            }
        }
        for (cloud, zone) in counts.zones() {
            let frozen = interlock::dark_zone(counts, cloud, zone).is_some();
            // Also those of other clouds: where it is one zone, they come back together.
            let away = || away(&|place| place.zone.as_ref() == Some(zone));
            let scope = Scope::Zone(cloud.clone(), zone.clone());
            self.freezes.review(now, settle, scope, frozen, &back, away);
        }
        let all = counts.all();
        if all.total() > 0 {
            let frozen = too_many(all)
                || interlock::dark_fleet(&self.cluster, all).is_some()
                || interlock::most_are_away(&limits, all);
            self.freezes.review(now, settle, Scope::Roster, frozen, &back, || away(&|_| true));
        }
    }

    /// A watch that loses what happens, or a list that is old, goes on calling Nodes Ready. Their leases tell: a machine none of
    /// whose Nodes has a lease that is renewed is away, whatever the Nodes are said to be. One whose lease is renewed again is
    /// back, and keeps the others of its freeze from being touched a while longer (seed 3502351).
    pub(super) fn review_silent(&mut self) {
        if self.cluster.silent_leases() == 0 && self.out_of_sight.unseen().is_empty() {
            self.cluster.count_silence(None);
            return self.counts.set_silent(BTreeSet::new());
        }
        let silent_after = self.roster.timing.lease_silent_after;
        let views = self.context().views();
        let unseen =
            self.out_of_sight.unseen().iter().filter_map(|(key, memory)| Some((memory.node.as_ref()?, key)));
        let unseen: BTreeMap<&NodeName, &MachineKey> = unseen.collect();
        // One that another machine took over is silent where that one is, perhaps in another zone (seed 3271897).
        let machine_of = |name: &NodeName, seen: &NodeSeen| {
            let linked = views.runs_on(&seen.node).or_else(|| seen.link.as_ref().map(Link::machine));
            linked.or_else(|| unseen.get(name).map(|key| (*key).clone()))
        };
        let mut machines: BTreeMap<MachineKey, bool> = BTreeMap::new();
        for (name, seen) in &self.cluster.nodes {
            let Some(is_silent) = self.cluster.lease_age(name).map(|age| age > silent_after) else {
                continue;
            };
            if let Some(key) = machine_of(name, seen) {
                machines.entry(key).and_modify(|silent| *silent &= is_silent).or_insert(is_silent);
            }
        }
        let counts =
            |key: &MachineKey| self.counts.place(key).is_some_and(|place| place.rank != Rank::Leaving);
        machines.retain(|key, _| counts(key));
        let total = machines.len() as u32;
        machines.retain(|_, is_silent| *is_silent);
        self.cluster.count_silence(Some((machines.len() as u32, total)));
        self.counts.set_silent(machines.into_keys().collect());
    }

    /// Where leases cannot be listed any more, what the last list said does not count for good.
    pub(super) fn review_unlisted_leases(&mut self) {
        if self.cluster.forget_old_leases(self.now) {
            self.cluster.count_silence(None);
            self.counts.forget_silent();
        }
    }
}

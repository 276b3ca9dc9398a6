//! Incidents that something blocks, indexed by what they wait for: the engine decides again as many as can go on.
//!
//! ```text
//!  decide ─▶ Held ─▶ index ─┬─ NetworkSlot, RepairSlot, Domain … ─ room at the end of a step ─▶ the oldest is decided
//!                           ├─ Gate ─ a gate flips (`review_gates`) ──────────────────────▶ all of Gate are decided
//!                           └─ Itself ─ its subject is judged, or its timer rings ─────────▶ it is decided
//! ```
//!
//! An incident (case) with several blockers waits for one of them, which is enough: while that one stands, the incident
//! cannot go on, whatever else changes. When the engine decides it again and another blocker stands, it moves in the index.
//! The engine asks for room after every step, so an outcome, a verdict or a closed incident cannot forget to wake another
//! one. Before this index every outcome decided all held incidents again: 4,000 machines that lost a security group cost 73
//! s of engine time at the default limits.
//!
//! The oldest incident goes first, also before one that became ripe in the same step, so that new faults cannot starve old
//! ones. An old incident whose repair failed backs off outside of the queue and lets the others pass. The Nodes of machines
//! that are gone come last, however old: they are not urgent, and there may be many.
//!
//! The index decides nothing. The engine asks `decide` each time what an incident may do.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::blocker::Blocker;
use crate::model::class::Class;
use crate::model::id::IncidentId;
use crate::model::incident::{FaultKind, IncidentKey, MachineKey, Subject};
use crate::record::Domain;
use crate::remedies::RepairStep;
use crate::safeguard::{Safeguard, stands};

use super::{State, Wake};

/// What a held incident waits for. The order is that of the queues in the index.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum WaitFor {
    /// A slot of the repairs that lose nothing.
    NetworkSlot,
    /// A slot of the repairs that can hurt, and room within the hour.
    RepairSlot,
    /// The same for what tidies up, which has a share of the hour.
    CleanupSlot,
    /// Room in its domain, which may cool down.
    Domain(Domain),
    /// A condition that `review_gates` watches for all cases, or that calls `rouse_held` when it changes.
    Gate,
    /// Something of its own subject, or time alone: it has a timer.
    Itself,
}

impl WaitFor {
    /// Room for it is asked for after every step.
    const fn has_queue(&self) -> bool {
        matches!(self, Self::NetworkSlot | Self::RepairSlot | Self::CleanupSlot | Self::Domain(_))
    }

    /// What tidies up waits for it.
    fn is_of_cleanups(&self) -> bool {
        match self {
            Self::CleanupSlot => true,
            Self::Domain(domain) => domain.kind == FaultKind::Ghost,
            _ => false,
        }
    }

    /// The repair step that asks for room within the hour; none where that has no limit.
    fn repair_step(&self) -> Option<RepairStep> {
        let counts = matches!(self, Self::RepairSlot | Self::CleanupSlot | Self::Domain(_));
        counts.then(|| if self.is_of_cleanups() { RepairStep::Cleanup } else { RepairStep::Reboot })
    }

    /// The end of this wait is noticed in the very step in which it comes.
    pub(super) const fn is_noticed_at_once(&self) -> bool {
        !matches!(self, Self::Itself)
    }
}

/// The index.
#[derive(Clone, Debug, Default)]
pub(super) struct Waiting {
    of: BTreeMap<IncidentKey, (WaitFor, IncidentId)>,
    queues: BTreeMap<WaitFor, BTreeMap<IncidentId, IncidentKey>>,
}

impl Waiting {
    /// The case waits for this from now on, and for nothing else.
    pub(super) fn put(&mut self, key: &IncidentKey, incident: IncidentId, wait: WaitFor) {
        self.remove(key);
        self.queues.entry(wait.clone()).or_default().insert(incident, key.clone());
        self.of.insert(key.clone(), (wait, incident));
    }

    /// The case does not wait any more.
    pub(super) fn remove(&mut self, key: &IncidentKey) {
        let Some((wait, incident)) = self.of.remove(key) else { return };
        if let Some(queue) = self.queues.get_mut(&wait) {
            queue.remove(&incident);
            if queue.is_empty() {
                self.queues.remove(&wait);
            }
        }
    }

    /// What the case waits for.
    pub(super) fn of(&self, key: &IncidentKey) -> Option<&WaitFor> {
        self.of.get(key).map(|(wait, _)| wait)
    }

    /// The cases that wait for a gate, the oldest first.
    fn gated(&self) -> impl Iterator<Item = &IncidentKey> {
        self.queues.get(&WaitFor::Gate).into_iter().flat_map(BTreeMap::values)
    }

    /// Queues that open by room, each with its oldest incident.
    fn queued(&self) -> impl Iterator<Item = (&WaitFor, IncidentId, &IncidentKey)> {
        let queues = self.queues.iter().take_while(|(wait, _)| wait.has_queue());
        queues.filter_map(|(wait, queue)| {
            let (incident, key) = queue.first_key_value()?;
            Some((wait, *incident, key))
        })
    }
}

impl State {
    /// Decides every waiting case again. Call it when something changed that may stand against any of them and that no gate
    /// of `review_gates` watches: a pause, the ledger, faults that were forgiven. A freed slot, a domain that is wider or
    /// that has cooled down, and a gate that flipped need no call.
    pub(super) fn rouse_held(&mut self) {
        self.ripe.extend(self.waiting.of.keys().cloned());
    }

    /// Decides the cases again that a gate holds.
    pub(super) fn rouse_gated(&mut self) {
        self.ripe.extend(self.waiting.gated().cloned());
    }

    /// Decides the waiting cases of one subject again: it was judged, or something that was under way for it has ended.
    pub(super) fn rouse_subject(&mut self, subject: &Subject) {
        let waits: Vec<IncidentKey> = self
            .incidents
            .keys_of(subject)
            .into_iter()
            .filter(|key| self.waiting.of(key).is_some())
            .collect();
        self.ripe.extend(waits);
    }

    /// Decides the waiting cases for which there is room, the oldest first and cleanups last, until there is room for no other.
    pub(super) fn decide_with_room(&mut self) {
        // A queue whose first case does not leave it although there is room is asked once a step.
        let mut stuck: BTreeSet<WaitFor> = BTreeSet::new();
        while let Some((wait, key)) = self.next_with_room(&stuck) {
            self.decide_case(&key);
            if self.waiting.of(&key) == Some(&wait) {
                stuck.insert(wait);
            }
        }
        self.wake_for_room();
    }

    fn next_with_room(&self, stuck: &BTreeSet<WaitFor>) -> Option<(WaitFor, IncidentKey)> {
        if !stands(Safeguard::FreedRoom) {
            return None;
        }
        let [repairs, cleanups] =
            [WaitFor::RepairSlot, WaitFor::CleanupSlot].map(|wait| self.has_room(&wait));
        let open = self.waiting.queued().filter(|(wait, ..)| {
            let slot = if wait.is_of_cleanups() { cleanups } else { repairs };
            let may = **wait == WaitFor::NetworkSlot || slot;
            may && !stuck.contains(*wait) && self.has_room(wait)
        });
        let first = open.min_by_key(|(wait, incident, _)| (wait.is_of_cleanups(), *incident));
        first.map(|(wait, _, key)| (wait.clone(), key.clone()))
    }

    /// The budgets leave room for one more of these. The same conditions as in `plan::interlock`, told by the same book.
    fn has_room(&self, wait: &WaitFor) -> bool {
        let (book, limits, now) = (&self.book, self.roster.limits, self.now);
        match wait {
            WaitFor::NetworkSlot => book.network_under_way() < limits.network_at_once,
            WaitFor::RepairSlot | WaitFor::CleanupSlot => {
                let slot = book.places_taken(now) < limits.at_once || !stands(Safeguard::AtOnce);
                let used_up = |repair_step| book.used_up(now, &limits, repair_step).is_some();
                slot && (!wait.repair_step().is_some_and(used_up) || !stands(Safeguard::PerHour))
            }
            WaitFor::Domain(domain) => {
                let width = book.width(domain, now);
                let cools_down =
                    width.not_before.is_some_and(|until| now < until) && stands(Safeguard::CoolDown);
                let is_used_up =
                    book.places_taken_in(domain, now) >= width.width && stands(Safeguard::ProbeWidth);
                !cools_down && !is_used_up
            }
            WaitFor::Gate | WaitFor::Itself => false,
        }
    }

    /// Room that comes with time alone gets one timer for all that wait for it.
    fn wake_for_room(&mut self) {
        if self.book.destructive_under_way() >= self.roster.limits.at_once {
            return;
        }
        let comes = |(wait, ..): (&WaitFor, IncidentId, &IncidentKey)| {
            let used_up = self.book.used_up(self.now, &self.roster.limits, wait.repair_step()?);
            let cools = |wait: &WaitFor| match wait {
                WaitFor::Domain(domain) => self.book.width(domain, self.now).not_before,
                _ => None,
            };
            used_up.map_or_else(|| cools(wait), |used_up| used_up.free_at)
        };
        let waits = |(wait, ..): (&WaitFor, IncidentId, &IncidentKey)| *wait != WaitFor::NetworkSlot;
        let late = self.waiting.queued().any(waits).then(|| self.book.places.next_free(self.now)).flatten();
        let at = self.waiting.queued().filter_map(comes).filter(|at| *at > self.now).chain(late).min();
        if let Some(at) = at {
            self.timers.set(at, Wake::Room);
        }
    }

    /// The one thing that this held case waits for: of all that stands against it, what most cases wait for together.
    pub(super) fn wait_for(
        &self,
        key: &IncidentKey,
        repair_step: RepairStep,
        blockers: &[Blocker],
    ) -> WaitFor {
        if blockers.iter().any(|blocker| self.is_gate(key, blocker)) {
            return WaitFor::Gate;
        }
        if blockers.iter().any(|blocker| matches!(blocker, Blocker::AtOnce { .. } | Blocker::PerHour { .. }))
        {
            return match repair_step.class() {
                Class::Cleanup => WaitFor::CleanupSlot,
                class if class.is_destructive() => WaitFor::RepairSlot,
                _ => WaitFor::NetworkSlot,
            };
        }
        let of_domain =
            blockers.iter().any(|blocker| matches!(blocker, Blocker::Width { .. } | Blocker::CoolingDown(_)));
        let domain = self.incidents.get(key).filter(|_| of_domain).and_then(|case| self.domain_of(case));
        domain.map_or(WaitFor::Itself, WaitFor::Domain)
    }

    /// `review_gates` watches it, it never ends in this process, or `rouse_held` is called when it ends.
    fn is_gate(&self, key: &IncidentKey, blocker: &Blocker) -> bool {
        match blocker {
            Blocker::Off(_)
            | Blocker::Propose(_)
            | Blocker::DryRun
            | Blocker::NotLeading
            | Blocker::Ledger(_)
            | Blocker::Paused { .. }
            | Blocker::AgentsLost { .. }
            | Blocker::ZoneDark { .. }
            | Blocker::FleetDark { .. }
            | Blocker::MostAway { .. }
            | Blocker::Breaker { .. }
            | Blocker::Rolling(_)
            | Blocker::PoolMinimum { .. }
            | Blocker::RouterFull { .. } => true,
            // Of a source as a whole, or of this machine alone, which its newest list lacks.
            Blocker::Blind { .. } => self.is_blind_to(key),
            _ => false,
        }
    }

    fn is_blind_to(&self, key: &IncidentKey) -> bool {
        let cloud = match &key.subject {
            Subject::Machine(MachineKey::Instance(cloud, _))
            | Subject::Group(cloud, _)
            | Subject::Router(cloud, _)
            | Subject::User(cloud, _) => self.clouds.get(cloud),
            _ => None,
        };
        let blind_cloud = cloud.is_some_and(|cloud| !cloud.source.trust(self.now).is_given());
        let blind_cluster =
            !self.cluster.source.trust(self.now).is_given() || self.cluster.is_blind_to_leases(self.now);
        blind_cloud || blind_cluster
    }
}

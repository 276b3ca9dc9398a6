//! What a restart remembers: it replays the ledger's records into a state, and the controller then observes before it
//! decides.
//!
//! Incidents come back with their first sight, tries and attempts. An intent without an outcome comes back as "unknown
//! whether it happened". The controller verifies it by a fresh read before it decides anything else for that subject. Of
//! machines, only the memory that they had joined comes back: the cluster and the clouds must say what they are now.
//! `checkpoint` writes the records with which a rotated ledger begins.

mod intents;
mod machines;
mod verdicts;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::model::attempt::Attempt;
use crate::model::id::{IncidentId, IntentId};
use crate::model::incident::{Asked, Incident, IncidentKey};
use crate::model::jump::Jump;
use crate::model::roster::Roster;
use crate::model::time::{Span, Time};
use crate::plan::budget::{Counted, Operation, Phase, Tried, Width};
use crate::plan::context::Case;
use crate::record::{Domain, Record, Verdict};
use crate::remedies::RepairStep;
use crate::safeguard::{Safeguard, stands};

use super::newcomers::Newcomer;
use super::verification::boots;
use super::{Closed, Start, State, Wake};

/// How a restart began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Restored {
    /// Our fencing number, and whether we act.
    pub start: Start,
    /// When we begin.
    pub now: Time,
    /// When the last process was last known to be alive; `None` if that is unknown. Timers go on counting only when the gap
    /// is no longer than a pause that the roster allows.
    pub last_alive: Option<Time>,
}

struct Replay {
    state: State,
    keys: BTreeMap<IncidentId, IncidentKey>,
    open_intents: BTreeMap<IntentId, IncidentKey>,
    /// Repairs that were proved by the end of their incident, by domain, and whose trust is recorded next.
    landed: BTreeMap<Domain, u32>,
}

impl State {
    /// Replays a ledger.
    pub fn restore(roster: Roster, how: Restored, records: impl IntoIterator<Item = Record>) -> Self {
        let mut replay = Replay {
            state: Self::new(roster, how.start),
            keys: BTreeMap::new(),
            open_intents: BTreeMap::new(),
            landed: BTreeMap::new(),
        };
        let records: Vec<Record> = records.into_iter().collect();
        // A time of the ledger that lies beyond this is one of no clock that is known.
        replay.state.now = how.last_alive.map_or(how.now, |last| last.max(how.now)) + set_back(&records);
        for record in records {
            replay.take(record);
        }
        replay.finish(how)
    }
}

/// By how much the clock was set back over all of a ledger: when it began, the clock was ahead of the one that wrote its end by
/// so much.
fn set_back(records: &[Record]) -> Span {
    let by = records.iter().map(|record| match record {
        Record::Numbered { at, jumped_from: Some(before), .. } => before.since(*at),
        _ => Span::ZERO,
    });
    by.fold(Span::ZERO, |all, by| all + by)
}

/// Since when things are so of an incident that is opened, as its record tells.
struct OpenedSince {
    away_since: Option<Time>,
    served_since: Option<Time>,
    watched_from: Option<Time>,
    resumed_at: Option<Time>,
}

impl Replay {
    fn take(&mut self, record: Record) {
        let numbers = &mut self.state.numbers;
        match record {
            Record::Started { at, .. } => {
                for case in self.state.incidents.cases_mut() {
                    case.resumed_at = case.resumed_at.or(Some(at));
                }
            }
            Record::Cluster { cluster, .. } => self.state.cluster.identity.expect(cluster),
            Record::OthersActed { .. }
            | Record::Joined { .. }
            | Record::LostTogether { .. }
            | Record::Born { .. }
            | Record::Cordoned { .. }
            | Record::Left { .. }
            | Record::Traced { .. }
            | Record::Forgotten { .. }
            | Record::Departed { .. }
            | Record::Paused { .. }
            | Record::Returned { .. } => self.take_machines(record),
            Record::Opened {
                at,
                incident,
                key,
                pool,
                label,
                served_since,
                away_since,
                watched_from,
                resumed_at,
            } => {
                numbers.incident = numbers.incident.max(incident);
                self.keys.insert(incident, key.clone());
                let since = OpenedSince { away_since, served_since, watched_from, resumed_at };
                self.open(at, incident, key, pool, label, since);
            }
            Record::Diagnosed { incident, findings, .. } => {
                self.with(incident, |found| found.findings = findings);
            }
            Record::Asked { at, machine, value, incident } => {
                if let Some(incident) = incident {
                    let asked = Asked { at, value: value.clone() };
                    self.with(incident, |found| found.asked = Some(asked));
                }
                self.state.requests.note(&machine, value);
            }
            Record::Kept { incident, until, .. } => self.state.incidents.keep(incident, until),
            Record::GivenUp { incident, .. } => self.with(incident, |found| found.given_up = true),
            Record::Closed { at, incident, verdict, watched_from } => {
                self.close((at, watched_from.unwrap_or(at)), incident, verdict);
            }
            Record::Width { .. }
            | Record::FaultSeen { .. }
            | Record::Arrived { .. }
            | Record::FaultsForgiven { .. }
            | Record::Counted { .. }
            | Record::Numbered { .. } => self.take_counts(record),
            Record::Tried { incident, attempt, repair_step } => {
                numbers.intent = numbers.intent.max(attempt.intent);
                if let Some(key) = self.keys.get(&incident) {
                    self.state.incidents.note_begun(key, incident, attempt.intent);
                }
                self.with(incident, |found| {
                    let intent = attempt.intent;
                    if let Some(known) = found.attempts.iter_mut().find(|known| known.intent == intent) {
                        *known = attempt;
                        return;
                    }
                    found.repair_step = repair_step;
                    found.tries += u32::from(!attempt.held());
                    found.attempts.push(attempt);
                });
            }
            Record::CarriedOver { .. } => self.take_escalation(record),
            intent => self.take_intent(intent),
        }
    }

    /// Where an incident stands on its escalation, and what it keeps.
    fn take_escalation(&mut self, record: Record) {
        let Record::CarriedOver {
            incident,
            repair_step,
            tries,
            not_before,
            unconfirmed,
            lapsed,
            place,
            late_since,
            outlasted,
        } = record
        else {
            return;
        };
        if let Some(place) = place {
            self.state.book.places.keep(incident, place);
        }
        if let Some(since) = late_since {
            self.state.book.set_late_since(incident, since);
        }
        if let Some(until) = not_before {
            self.state.book.wait_unseen(incident, until);
        }
        if let Some(case) = self.keys.get(&incident).and_then(|key| self.state.incidents.get_mut(key)) {
            case.gathered.unconfirmed = unconfirmed;
            case.lapsed = lapsed;
            case.outlasted = outlasted;
        }
        self.with(incident, |found| found.carry_over(repair_step, tries, not_before));
    }

    /// What is counted for and against pools, and of each repair; how far all that is counted has come, and the gaps between.
    fn take_counts(&mut self, record: Record) {
        match record {
            Record::Width { at, domain, width, not_before, failures, proved, successor } => {
                match proved {
                    Some(intent) => self.landed_proved(&domain, intent, successor),
                    None if width > 1 && not_before.is_none() => self.proved(at, &domain),
                    None => {}
                }
                self.state.book.set_width(domain, Width { width, not_before, failures, since: at, proved });
            }
            Record::FaultSeen { pool, instance, fault, .. } => {
                self.state.newcomers.set_witnesses_aside(&pool, &fault);
                if self.state.book.count_fault(&pool, &instance, &fault) {
                    self.state.book.note_counted(Counted { pool, instance, fault });
                }
            }
            Record::Arrived { pool, machine, after, beside, .. } => {
                let after = after.unwrap_or(self.state.numbers.intent);
                self.state.recall_newcomer(pool, Newcomer::new(machine, after, beside));
            }
            Record::FaultsForgiven { pool, .. } => self.state.forgive_faults(&pool),
            Record::Counted { repair, requested, verified, .. } => {
                // A repair that this version does not have is not shown by it either.
                if let Some(repair_step) = RepairStep::named(&repair) {
                    self.state.book.count_earlier(repair_step, Tried { requested, verified });
                }
            }
            Record::Numbered { at, incident, intent, begun, tidied, deleted, unseen_since, jumped_from } => {
                let numbers = &mut self.state.numbers;
                numbers.incident = numbers.incident.max(incident);
                numbers.intent = numbers.intent.max(intent);
                if let Some(before) = jumped_from {
                    let jump = Jump::between(before, at);
                    if let Jump::Back { by } = jump {
                        self.state.now = self.state.now - by;
                    }
                    self.state.over(jump);
                }
                self.state.book.set_begun(begun, tidied, deleted);
                let since = std::mem::replace(&mut self.state.nodes_seen.unseen_since, unseen_since);
                if let Some(since) = since.filter(|_| unseen_since.is_none()) {
                    self.doubt_births(since, at);
                }
            }
            _ => {}
        }
    }

    fn open(
        &mut self,
        at: Time,
        id: IncidentId,
        key: IncidentKey,
        pool: Option<crate::model::id::PoolName>,
        label: Arc<str>,
        since: OpenedSince,
    ) {
        let incident = Incident::opened(id, key.clone(), pool, label, at);
        let OpenedSince { away_since, served_since, watched_from, resumed_at } = since;
        // A checkpoint does not hold the earlier incident, which is closed by then.
        let away_since = away_since.unwrap_or_else(|| self.state.away_since(&key, at).0).min(at);
        let watched_from = watched_from.unwrap_or(at);
        let case = Case { away_since, served_since, watched_from, resumed_at, ..Case::new(incident) };
        self.state.incidents.insert(case);
    }

    fn with(&mut self, id: IncidentId, change: impl FnOnce(&mut Incident)) {
        let Some(key) = self.keys.get(&id) else { return };
        if let Some(case) = self.state.incidents.get_mut(key).filter(|case| case.incident.id == id) {
            change(&mut case.incident);
        }
    }

    fn note(&mut self, intent: IntentId, change: impl FnOnce(&mut Attempt)) {
        if let Some(key) = self.open_intents.get(&intent) {
            self.state.incidents.note_attempt(key, intent, change);
        }
    }

    fn close(&mut self, (at, watched_from): (Time, Time), id: IncidentId, verdict: Verdict) {
        let Some(key) = self.keys.remove(&id) else { return };
        if self.state.incidents.get(&key).is_none_or(|case| case.incident.id != id) {
            return;
        }
        // As in the process before (`land_closed`): a machine that is gone, as was wanted, keeps its slot until its pool is well;
        // anything else that was being proved is proved, or has nothing left to prove.
        let is_answered = self.state.incidents.get(&key).is_some_and(|case| {
            case.incident.attempts.last().is_some_and(|attempt| attempt.ending.is_some())
        });
        let is_over = matches!(verdict, Verdict::Mended | Verdict::Recovered);
        let keeps = |operation: &Operation| match operation.phase {
            Phase::Proving { .. } if boots(operation) => verdict == Verdict::Superseded,
            Phase::Proving { .. } => operation.repair_step == RepairStep::Replace && !is_over,
            // A call on its way is waited for, whatever became of the fault.
            Phase::Recording | Phase::Calling { .. } | Phase::Verifying { .. } => !(is_over && is_answered),
        };
        let landed = self.state.book.operation_of(id).filter(|(_, operation)| {
            matches!(operation.phase, Phase::Proving { .. })
                && matches!(verdict, Verdict::Mended | Verdict::Recovered)
        });
        if let Some(domain) = landed.and_then(|(_, operation)| operation.domain.clone()) {
            *self.landed.entry(domain).or_default() += 1;
        }
        if verdict == Verdict::SubjectGone && !self.state.book.is_of(id) {
            self.state.book.places.free(id);
        }
        self.state.book.operations.retain(|_, operation| operation.incident != id || keeps(operation));
        if matches!(verdict, Verdict::Mended | Verdict::Recovered) {
            self.state.book.doubt_no_more(id);
        }
        if let Some(case) = self.state.incidents.remove(&key) {
            self.state.land_superseded(&key, id, verdict);
            let closed = Closed { incident: case.incident, at, watched_from, verdict };
            self.state.incidents.close(closed, |id| self.state.book.is_of(id));
        }
    }

    /// Timers go on only across a short gap; intents without an outcome are read back first.
    fn finish(self, how: Restored) -> State {
        let mut state = self.state;
        state.resumed = !state.out_of_sight.unseen().is_empty()
            || !self.keys.is_empty()
            || state.incidents.closed().next().is_some();
        state.inherited = state.numbers.intent;
        state.forget_newcomers();
        let timing = state.roster.timing;
        let pause = timing.pause_jump;
        let blind = how.last_alive.is_none_or(|last| how.now < last || how.now.since(last) > pause);
        state.now = how.now;
        match how.last_alive {
            Some(before) if blind => {
                state.over(Jump::between(before, how.now));
                state.tell_jump(before);
            }
            Some(before) => state.wait_on(Jump::between(before, how.now)),
            // For how long nothing was watched is not known: what was looked for has its whole time.
            None => state.book.look_afresh(how.now),
        }
        // The record of this start comes behind what is replayed here.
        for case in state.incidents.cases_mut() {
            case.resumed_at = Some(case.resumed_at.map_or(how.now, |at| at.min(how.now)));
        }
        if blind && stands(Safeguard::UnbrokenSight) {
            for case in state.incidents.cases_mut() {
                case.incident.counted_from = how.now;
            }
        }
        state.pauses.forget_old(how.now, state.longest_boot());
        state.await_remembered_nodes();
        state.inherit_homes();
        state.begin_unseen(how.last_alive);
        state.resume_operations();
        if how.last_alive.is_none_or(|last| how.now < last || State::was_long_gap(last, how.now)) {
            state.rollouts.doubt();
        }
        // Of a clock that went back it is not known for how long, and that it was for hours is the rarer case (seed 7920069).
        match how.last_alive {
            Some(last) => state.end_tries_after(how.now.since(last)),
            None => state.begin_escalations_again(),
        }
        state.ripe.extend(state.incidents.open().keys().cloned());
        state.dirty.extend(state.out_of_sight.unseen().keys().cloned());
        // The clock may have gone back since the ledger was written. This finds each trace its place, too: none has one yet.
        state.go_back_to(how.now);
        state.alive_before = how.last_alive.filter(|last| *last <= how.now);
        state
    }
}

impl State {
    /// What was under way is looked for afresh. The clock may have gone back since the ledger was written.
    fn resume_operations(&mut self) {
        let (now, timing) = (self.now, self.roster.timing);
        let seen_by = now + timing.settle + timing.verify_within;
        for intent in self.book.operations.keys().copied().collect::<Vec<_>>() {
            let patience = self.book.operations.get(&intent).map(|operation| self.patience(operation));
            let longest = now + patience.unwrap_or_default();
            let Some(operation) = self.book.operations.get_mut(&intent) else { continue };
            if let Phase::Proving { deadline, .. } = &mut operation.phase {
                // The successor may have come while no process was looking: it gets the time to be seen and to prove
                // itself.
                let pool = operation.domain.as_ref().and_then(|domain| self.roster.pools.get(&domain.pool));
                let dwell = pool.map_or(Span::ZERO, |pool| pool.deadlines.dwell);
                *deadline = (*deadline).min(longest).max(seen_by + dwell);
                let until = *deadline;
                self.timers.set(until, Wake::Operation(intent));
                continue;
            }
            if !stands(Safeguard::Unfinished) {
                self.book.operations.remove(&intent);
                continue;
            }
            operation.phase = match operation.phase {
                // It may have shown while no process was looking: it gets the time to be seen.
                Phase::Verifying { unseen_until, .. } => {
                    let unseen_until = unseen_until.min(longest).max(seen_by);
                    if let Some(case) = self.incidents.get_mut(&operation.key) {
                        case.incident.not_before = Some(unseen_until);
                    }
                    Phase::Verifying { deadline: now + timing.verify_within, unseen_until }
                }
                _ => Phase::Calling { since: now },
            };
            self.timers.set(now, Wake::Operation(intent));
        }
    }
}

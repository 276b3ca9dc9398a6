//! What a restart remembers: it replays the ledger's records into a state, and the controller then observes before it
//! decides.
//!
//! Incidents come back with their first sight, tries and attempts. An intent without an outcome comes back as "unknown
//! whether it happened". The controller verifies it by a fresh read before it decides anything else for that subject. Of
//! machines, only the memory that they had joined comes back: the cluster and the clouds must say what they are now.
//! `checkpoint` writes the records with which a rotated ledger begins.

mod verdicts;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::effect::{Call, Outcome};
use crate::guard::{Guard, stands};
use crate::model::attempt::{Attempt, Ending};
use crate::model::id::{IncidentId, IntentId};
use crate::model::incident::{Asked, Incident, IncidentKey, MachineKey};
use crate::model::jump::Jump;
use crate::model::roster::Roster;
use crate::model::signs;
use crate::model::time::{Span, Time};
use crate::observe::cloud::Left;
use crate::observe::remembered::{Remembered, Signs};
use crate::plan::budget::{Counted, Flight, Phase, Tried, Width};
use crate::plan::desk::Case;
use crate::plan::others::Others;
use crate::record::{Domain, Joined, Record, Verdict};
use crate::remedies::{DeleteInstance, Rung, ladder};

use super::flights::may_be_allowed;
use super::proofs::boots;
use super::rollouts::Editions;
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
            Record::Tried { incident, attempt, rung } => {
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
                    found.rung = rung;
                    found.tries += u32::from(!attempt.held());
                    found.attempts.push(attempt);
                });
            }
            Record::CarriedOver { .. } => self.take_ladder(record),
            intent => self.take_intent(intent),
        }
    }

    /// Where an incident stands on its ladder, and what it keeps.
    fn take_ladder(&mut self, record: Record) {
        let Record::CarriedOver {
            incident,
            rung,
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
        self.with(incident, |found| found.carry_over(rung, tries, not_before));
    }

    /// What is counted for and against pools, and of each repair; how far all that is counted has come, and the gaps between.
    fn take_counts(&mut self, record: Record) {
        match record {
            Record::Width { at, domain, width, not_before, failures, proved } => {
                match proved {
                    Some(intent) => self.landed_proved(&domain, intent),
                    None if width > 1 && not_before.is_none() => self.proved(at, &domain),
                    None => {}
                }
                self.state.book.set_width(domain, Width { width, not_before, failures, since: at, proved });
            }
            Record::FaultSeen { pool, instance, fault, .. } => {
                self.state.newcomers.dismiss_witnesses(&pool);
                if self.state.book.count_fault(&pool, &instance, &fault) {
                    self.state.book.note_counted(Counted { pool, instance, fault });
                }
            }
            Record::Arrived { pool, machine, .. } => self.state.recall_arrival(pool, machine),
            Record::FaultsForgiven { pool, .. } => self.state.forgive_faults(&pool),
            Record::Counted { repair, requested, verified, .. } => {
                // A repair that this version does not have is not shown by it either.
                if let Some(rung) = Rung::named(&repair) {
                    self.state.book.count_earlier(rung, Tried { requested, verified });
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

    /// What the ledger knows of machines, and of other clients that are at work on them, for the process that sees them
    /// next.
    fn take_machines(&mut self, record: Record) {
        match record {
            Record::OthersActed { at, pools, until, rollout: true, since, images, versions, .. } => {
                let told = Editions {
                    images: images.into_iter().collect(),
                    versions: versions.into_iter().collect(),
                };
                let since = (at, since.unwrap_or(at).min(at));
                for pool in pools {
                    self.state.rollouts.remember(pool, until, since, told.clone());
                }
            }
            Record::OthersActed { at, pools, until, what, since, .. } => {
                let since = since.unwrap_or(at).min(at);
                let others = Others { since, at, until, what };
                pools.iter().for_each(|pool| self.state.others.note(pool, &others));
            }
            Record::Joined { .. } if !stands(Guard::JoinedMemory) => {}
            Record::Joined { machines, .. } => {
                for Joined { machine, node, pool } in machines {
                    self.state.cluster.lost_together.remove(&machine);
                    self.state.set_seen_to_go(&machine, false);
                    let memory = self.state.out_of_sight.entry(machine);
                    memory.node = Some(node);
                    memory.pool = pool;
                    (memory.left, memory.lost_together) = (None, false);
                    // It joined in an earlier life of ours: being Ready in this one is no news, and credits no replacement.
                    memory.born = None;
                }
            }
            Record::LostTogether { machines, .. } => machines.into_iter().for_each(|it| self.state.lose(it)),
            Record::Born { at, machine } => {
                let at = at.min(self.state.now);
                self.state.out_of_sight.entry(machine).born = Some(at);
            }
            Record::Cordoned {
                machine, cordoned, sign, paused, locked, apart, gone, missing_since, ..
            } => {
                self.state.set_seen_to_go(&machine, gone);
                self.state.out_of_sight.set_fate(&machine, missing_since);
                let removal = sign.or_else(|| cordoned.then(|| Arc::from(signs::DRAINED)));
                let paused = paused || removal.as_deref() == Some(signs::PAUSE);
                self.state.out_of_sight.entry(machine).signs = Signs { removal, paused, locked, apart };
            }
            Record::Left { at, machine, why } => {
                let left = Left { at: at.min(self.state.now), sign: why };
                self.state.out_of_sight.entry(machine).left = Some(Box::new(left));
            }
            Record::Traced { at, machine, trace, told } => {
                let heard = told.as_ref().map(|told| told.hold.clone());
                self.state.agents.remember(machine.clone(), heard);
                self.state.traces.restore(machine, trace, told, at.min(self.state.now));
            }
            Record::Forgotten { machines, .. } => self.depart(machines, false),
            Record::Departed { machines, disowned, .. } => self.depart(machines, disowned),
            Record::Paused { at, scope, over } => self.state.pauses.take(at, scope, over),
            Record::Returned { at, machines } => self.state.return_at(at, &machines),
            _ => {}
        }
    }

    /// These went out of sight. A disk that was full for a moment has this said again of those that had gone before, and what is
    /// known of them stays: a person had taken the marks off a machine and drained its Node, and it was repaired once they put
    /// the marks back.
    fn depart(&mut self, machines: Vec<MachineKey>, disowned: bool) {
        for key in machines {
            let memory = std::mem::take(self.state.out_of_sight.entry(key.clone()));
            // Of no pool any more, as when its marks were seen to be off.
            let pool = memory.pool.clone().filter(|_| !disowned);
            self.state.depart(key, Remembered { pool, disowned, ..memory });
        }
    }

    /// A gap in our sight of the nodes was over then. What was being built before its last hour may have served in it, as for the
    /// process that saw its end (`engine::unwatched`).
    fn doubt_births(&mut self, since: Time, until: Time) {
        if !State::was_long_gap(since, until) {
            return;
        }
        for (_, memory) in self.state.out_of_sight.all_mut() {
            let is_young = |at: &Time| !State::was_long_gap(*at, until);
            memory.born = memory.born.filter(|at| memory.node.is_some() || is_young(at));
        }
    }

    fn take_outcome(&mut self, at: Time, intent: IntentId, outcome: Outcome) {
        if let Some(flight) = self.state.book.flights.get(&intent).cloned() {
            // One that was answered late has two outcomes, and was one request.
            if self
                .state
                .incidents
                .attempt(&flight.key, intent)
                .is_none_or(|attempt| attempt.ending.is_none())
            {
                self.state.book.count_requested(flight.rung);
            }
            if outcome.denies() {
                self.state.book.not_deleted(&flight.call);
                if let Some(counted) = &flight.counted {
                    self.state.book.uncount_fault(counted);
                }
            }
            if outcome.never_happened() && flight.rung.class().is_destructive() {
                self.state.book.unbegin(at, flight.rung);
            }
            if matches!(outcome, Outcome::Failed { .. }) {
                self.state.expect_late_reboot(&flight);
                self.state.keep_place(&flight, at);
                self.state.book.doubt(intent, &Flight { phase: Phase::Calling { since: at }, ..flight });
            }
        }
        let ending = Ending::Answered { at, outcome: outcome.clone() };
        self.note(intent, |attempt| attempt.ending = Some(ending));
        match outcome {
            Outcome::Accepted { .. } | Outcome::AlreadySo { .. } | Outcome::Unknown { .. } => {
                self.awaits_effect(at, intent);
            }
            // What was refused for good is not asked again: the next rung.
            Outcome::Refused { .. } if !self.state.book.flights.get(&intent).is_some_and(may_be_allowed) => {
                self.failed(at, intent, u32::MAX);
            }
            // It did not happen at all: that says nothing of the remedy.
            Outcome::Moved { .. }
            | Outcome::Failed { .. }
            | Outcome::NotSent { .. }
            | Outcome::Denied { .. }
            | Outcome::Limit { .. }
            | Outcome::Refused { .. }
            | Outcome::Fenced {} => self.failed(at, intent, 0),
        }
    }

    fn take_intent(&mut self, record: Record) {
        let state = &mut self.state;
        match record {
            Record::Intended { at, intent, incident, rung, call, before, domain, .. } => {
                state.numbers.intent = state.numbers.intent.max(intent);
                let Some(key) = self.keys.get(&incident).cloned() else { return };
                let Some(step) = ladder(key.kind).get(usize::from(rung)).copied() else { return };
                if step.class().is_destructive() {
                    state.book.begin(at, step);
                }
                if let Call::DeleteInstance(DeleteInstance { instance, .. }) = &call {
                    state.book.note_deleted(instance);
                }
                let phase = Phase::Recording;
                let flight = Flight {
                    incident,
                    key: key.clone(),
                    rung: step,
                    call: call.clone(),
                    before,
                    domain,
                    phase,
                    counted: None,
                };
                // It is tried once more.
                state.book.places.free(incident);
                state.incidents.note_begun(&key, incident, intent);
                state.book.flights.insert(intent, flight);
                self.open_intents.insert(intent, key);
                self.begun_again(incident, rung, &call);
                self.with(incident, |found| {
                    found.begin_attempt(intent, call, at);
                });
            }
            Record::Dropped { at, intent, why } => {
                if let Some(flight) = state.book.flights.remove(&intent) {
                    state.book.not_deleted(&flight.call);
                    if flight.rung.class().is_destructive() {
                        state.book.unbegin(at, flight.rung);
                    }
                }
                self.note(intent, |attempt| attempt.ending = Some(Ending::Dropped { at, why }));
                self.open_intents.remove(&intent);
            }
            Record::Ended { at, intent, outcome } => self.take_outcome(at, intent, outcome),
            Record::Judged { at, intent, held, text } => {
                if let Some(flight) = state.book.undoubt(intent) {
                    // Its call was answered as failed, and its machine went after all.
                    self.open_intents.insert(intent, flight.key.clone());
                    state.book.flights.insert(intent, flight);
                }
                if let Some(flight) = state.book.flights.get(&intent).filter(|_| held) {
                    let (rung, incident) = (flight.rung, flight.incident);
                    state.book.count_verified(rung);
                    state.book.doubt_no_more(incident);
                }
                self.note(intent, |attempt| attempt.judge(at, held, text));
                if held {
                    self.held(at, intent);
                } else {
                    self.state.count_for_closed(intent);
                    self.came_to_nothing(at, intent);
                    self.cool_down(at, intent);
                    let unmade = self.is_reboot(intent) && self.was_unmade(intent);
                    self.failed(at, intent, u32::from(!unmade));
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

    /// The same again after it had held: it did not stick, which is a try, once for each that held. A call that is denied for an
    /// hour is made again and again, and is none.
    fn begun_again(&mut self, id: IncidentId, rung: u8, call: &Call) {
        let Some(case) = self.keys.get(&id).and_then(|key| self.state.incidents.get_mut(key)) else { return };
        if case.incident.id != id {
            return;
        }
        let held = |tried: &&Attempt| tried.held() && tried.call.is_same_change(call);
        let held = case.incident.attempts.iter().rev().find(held).map(|tried| tried.intent);
        if case.incident.rung != rung {
            (case.incident.rung, case.incident.tries) = (rung, 0);
        } else if held.is_some_and(|held| case.note_lapse(held)) {
            case.incident.tries += 1;
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
        let keeps = |flight: &Flight| match flight.phase {
            Phase::Proving { .. } if boots(flight) => verdict == Verdict::Superseded,
            Phase::Proving { .. } => flight.rung == Rung::Replace && !is_over,
            // A call on its way is waited for, whatever became of the fault.
            Phase::Recording | Phase::Calling { .. } | Phase::Verifying { .. } => !(is_over && is_answered),
        };
        let landed = self.state.book.flight_of(id).filter(|(_, flight)| {
            matches!(flight.phase, Phase::Proving { .. })
                && matches!(verdict, Verdict::Mended | Verdict::Recovered)
        });
        if let Some(domain) = landed.and_then(|(_, flight)| flight.domain.clone()) {
            *self.landed.entry(domain).or_default() += 1;
        }
        if verdict == Verdict::SubjectGone && !self.state.book.is_of(id) {
            self.state.book.places.free(id);
        }
        self.state.book.flights.retain(|_, flight| flight.incident != id || keeps(flight));
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
        if blind && stands(Guard::UnbrokenSight) {
            for case in state.incidents.cases_mut() {
                case.incident.counted_from = how.now;
            }
        }
        state.pauses.forget_old(how.now, state.longest_boot());
        state.await_remembered_nodes();
        state.begin_unseen(how.last_alive);
        state.resume_flights();
        if how.last_alive.is_none_or(|last| how.now < last || State::was_long_gap(last, how.now)) {
            state.rollouts.doubt();
        }
        state.ripe.extend(state.incidents.open().keys().cloned());
        state.dirty.extend(state.out_of_sight.unseen().keys().cloned());
        // The clock may have gone back since the ledger was written. This finds each trace its place, too: none has one yet.
        state.go_back_to(how.now);
        state
    }
}

impl State {
    /// What was under way is looked for afresh. The clock may have gone back since the ledger was written.
    fn resume_flights(&mut self) {
        let (now, timing) = (self.now, self.roster.timing);
        let seen_by = now + timing.settle + timing.verify_within;
        for intent in self.book.flights.keys().copied().collect::<Vec<_>>() {
            let patience = self.book.flights.get(&intent).map(|flight| self.patience(flight));
            let longest = now + patience.unwrap_or_default();
            let Some(flight) = self.book.flights.get_mut(&intent) else { continue };
            if let Phase::Proving { deadline, .. } = &mut flight.phase {
                // The successor may have come while no process was looking: it gets the time to be seen and to prove
                // itself.
                let pool = flight.domain.as_ref().and_then(|domain| self.roster.pools.get(&domain.pool));
                let dwell = pool.map_or(Span::ZERO, |pool| pool.deadlines.dwell);
                *deadline = (*deadline).min(longest).max(seen_by + dwell);
                let until = *deadline;
                self.timers.set(until, Wake::Flight(intent));
                continue;
            }
            if !stands(Guard::Unfinished) {
                self.book.flights.remove(&intent);
                continue;
            }
            flight.phase = match flight.phase {
                // It may have shown while no process was looking: it gets the time to be seen.
                Phase::Verifying { unseen_until, .. } => {
                    let unseen_until = unseen_until.min(longest).max(seen_by);
                    if let Some(case) = self.incidents.get_mut(&flight.key) {
                        case.incident.not_before = Some(unseen_until);
                    }
                    Phase::Verifying { deadline: now + timing.verify_within, unseen_until }
                }
                _ => Phase::Calling { since: now },
            };
            self.timers.set(now, Wake::Flight(intent));
        }
    }
}

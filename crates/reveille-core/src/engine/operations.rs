//! From a decision to a verdict. The controller records an intent, makes the call, verifies it by a fresh read, and waits
//! for the proof that it helped.
//!
//! ```text
//!  decide ─▶ Record(Intended) ─▶ recorded ─▶ asked again ─▶ Call ─▶ Done ─▶ Look … Look ─▶ held / did not hold
//!                                     └▶ Dropped (the world moved on)                  └▶ proved / failed (machines)
//! ```
//!
//! A crash between any two of these steps neither repeats nor loses the intent. On restart, `restore` first verifies what
//! the ledger holds, before the controller decides anything else for that subject.

use std::sync::Arc;

use crate::decide::{self, Decision, Next};
use crate::effect::{Call, Effect, Look, Outcome};
use crate::model::attempt::{Attempt, Ending, Why};
use crate::model::class::Class;
use crate::model::id::{IntentId, RecordId};
use crate::model::incident::IncidentKey;
use crate::model::time::{Span, Time};
use crate::plan::budget::{Counted, Operation, Phase, normalise_fault};
use crate::record::Record;
use crate::remedies::{AddRoutes, DeleteInstance, NudgeRouter, RemoveRoutes, RepairStep, escalation};
use crate::safeguard::{Safeguard, stands};

use super::outbox::Acknowledged;
use super::retries::may_be_allowed;
use super::waits::WaitFor;
use super::{LEDGER_RETRY, LookFor, State, Wake};

/// After "it moved on since we read it".
const MOVED_WAIT: Span = Span::from_s(2);
/// A lease that is nearly silent is looked at again after this.
const LEASES_AGAIN: Span = Span::from_s(5);
/// A call without an answer counts as "unknown" after this; the performers of calls have shorter deadlines of their own.
const CALL_WITHIN: Span = Span::from_min(3);

impl State {
    pub(super) fn decide_ripe(&mut self) {
        loop {
            // First the cases that wait for room: new faults must not starve old ones.
            self.decide_with_room();
            let Some(first) = self.ripe.pop_first() else { return };
            self.decide_case(&first);
            while let Some(key) = self.ripe.pop_first() {
                self.decide_case(&key);
            }
        }
    }

    pub(super) fn decide_case(&mut self, key: &IncidentKey) {
        let Some(case) = self.incidents.get(key) else { return self.waiting.remove(key) };
        let (decision, incident) = (decide::decide(&self.context(), case), case.incident.id);
        self.decisions += 1;
        self.touched.insert(key.clone());
        match decision.next {
            Next::Held { repair_step, .. } => return self.hold(key, repair_step, &decision),
            Next::Blind(_) => return self.waiting.put(key, incident, WaitFor::Gate),
            _ => {}
        }
        self.waiting.remove(key);
        match decision.next {
            Next::Gather(looks) => self.gather(key, looks),
            Next::Act { repair_step, call } if !self.did_not_last(key, repair_step, &call) => {
                self.begin(key, repair_step, call)
            }
            Next::Wait { until, .. } => self.wait_until(key, until),
            Next::Ask(_) => self.ask_again_later(key.clone()),
            _ => {}
        }
    }

    /// Its deadline, or the moment before that at which its evidence is read.
    fn wait_until(&mut self, key: &IncidentKey, until: Time) {
        let ahead = self.incidents.get(key).and_then(|case| decide::read_ahead_at(&self.context(), case));
        let at = ahead.filter(|at| *at > self.now).map_or(until, |at| at.min(until));
        self.timers.set(at, Wake::Case(key.clone()));
    }

    /// Something stands against it: it waits for that, and is decided again much later even if that never ends.
    fn hold(&mut self, key: &IncidentKey, repair_step: RepairStep, decision: &Decision) {
        self.begin_keeping(key, decision);
        let blockers = decision.held.iter().rev().find(|(held, _)| *held == repair_step);
        let wait = self.wait_for(key, repair_step, blockers.map_or(&[], |(_, blockers)| blockers));
        let again = if wait.is_noticed_at_once() {
            Some(self.now + self.roster.timing.backoff_max)
        } else {
            self.held_until(&decision.held)
        };
        if let Some(incident) = self.incidents.get(key).map(|case| case.incident.id) {
            self.waiting.put(key, incident, wait);
        }
        if let Some(at) = again.into_iter().chain(decision.offered_until).min() {
            self.timers.set(at, Wake::Case(key.clone()));
        }
    }

    fn gather(&mut self, key: &IncidentKey, looks: Vec<Look>) {
        let now = self.now;
        if let Some(case) = self.incidents.get_mut(key) {
            case.gathered.asked_at = Some(now);
            case.gathered.missed = false;
            case.gathered.outstanding.clone_from(&looks);
        }
        for look in looks {
            self.reads.ask(look, LookFor::Evidence(key.clone()));
        }
        // An answer may never come, and what another read tells meanwhile may be enough.
        self.timers.set(now + decide::EVIDENCE_WITHIN, Wake::Case(key.clone()));
    }

    /// The controller made this same change before, saw its effect, and wants it again: the effect did not last. That
    /// counts as a try. The fault as a whole never looked well in between, because another part of it was still there.
    fn did_not_last(&mut self, key: &IncidentKey, repair_step: RepairStep, call: &Call) -> bool {
        if !matches!(repair_step.class(), Class::Network | Class::Access) {
            return false;
        }
        let (now, timing) = (self.now, self.roster.timing);
        let Some(case) = self.incidents.get_mut(key) else { return false };
        let held = |tried: &&Attempt| tried.call.is_same_change(call) && tried.held();
        let Some(last) = case.incident.attempts.iter().rev().find(held).map(|tried| tried.intent) else {
            return false;
        };
        if !case.note_lapse(last) {
            return false;
        }
        let used_up = case.count_try(now, &timing, repair_step.tries(timing.tries));
        self.ripe.insert(key.clone());
        self.count_lapse(key, used_up);
        true
    }

    /// What only a person can mend now (a full router, a locked machine) may be ours again later; what was given up is not.
    fn ask_again_later(&mut self, key: IncidentKey) {
        let open =
            self.incidents.get(&key).is_some_and(|case| !case.incident.given_up && case.due_after.is_some());
        if open && !escalation(key.kind).is_empty() {
            self.timers.set(self.now + self.roster.timing.backoff_max, Wake::Case(key));
        }
    }

    /// Holds that end by time alone say when; others end by an event. An offer to a person ends by time, too.
    fn held_until(&self, held: &[(RepairStep, Vec<crate::model::blocker::Blocker>)]) -> Option<Time> {
        use crate::model::blocker::Blocker;
        let timing = &self.roster.timing;
        let spans = held.iter().flat_map(|(_, blockers)| blockers).map(|blocker| match blocker {
            Blocker::Settling(left)
            | Blocker::AgentAwaited(left)
            | Blocker::CoolingDown(left)
            | Blocker::Kept(left)
            | Blocker::Recovering { left, .. } => *left,
            Blocker::PerHour { free_in, .. } => *free_in,
            // It may fall silent, and nothing else would say so.
            Blocker::AgentHeard(age) => {
                Span::from_ms((timing.agent_silent_after.ms - age.ms).max(0)).max(LEASES_AGAIN)
            }
            // The next list of leases may tell.
            Blocker::LeaseFresh { age, .. } => {
                Span::from_ms(timing.lease_silent_after.ms - age.ms).max(LEASES_AGAIN).min(timing.backoff_min)
            }
            _ => timing.backoff_min,
        });
        spans.min().map(|span| self.now + span + Span::from_ms(1))
    }

    fn begin(&mut self, key: &IncidentKey, repair_step: RepairStep, call: Call) {
        let at = self.now;
        self.numbers.intent = self.numbers.intent.next();
        let intent = self.numbers.intent;
        let Some(case) = self.incidents.get(key) else { return };
        let domain = repair_step.class().is_destructive().then(|| self.domain_of(case)).flatten();
        let before = self.before(case, &call);
        let incident = case.incident.id;
        let position = escalation(key.kind).iter().position(|known| *known == repair_step).unwrap_or(0) as u8;
        let record = Record::Intended {
            at,
            intent,
            incident,
            repair_step: position,
            fence: self.start.fence,
            call: call.clone(),
            before: before.clone(),
            domain: domain.clone(),
        };
        let id = self.outbox.emit(record);
        if repair_step.class().is_destructive() {
            self.book.begin(at, repair_step);
        }
        if let Call::DeleteInstance(DeleteInstance { instance, .. }) = &call {
            self.book.note_deleted(instance);
        }
        self.book.places.free(incident);
        self.incidents.note_begun(key, incident, intent);
        if let Some(case) = self.incidents.get_mut(key) {
            if position != case.incident.repair_step {
                case.incident.repair_step = position;
                case.incident.tries = 0;
            }
            if let Some(replaced) = case.incident.begin_attempt(intent, call.clone(), at) {
                self.incidents.forget_intent(replaced);
            }
        }
        let phase = Phase::Recording;
        self.book.operations.insert(
            intent,
            Operation { incident, key: key.clone(), repair_step, call, before, domain, phase, counted: None },
        );
        if !stands(Safeguard::IntentFirst) {
            self.on_recorded(id);
        }
    }

    /// Counted as soon as the deletion goes out, so that a crash before its answer does not lose it. An answer that says that
    /// nothing happened takes it back.
    fn count_same_fault(&mut self, key: &IncidentKey, repair_step: RepairStep) -> Option<Counted> {
        if repair_step != RepairStep::Replace {
            return None;
        }
        let context = self.context();
        let (_, seen) = context.seen_of(&key.subject)?;
        let (pool, fault) = (seen.pool().cloned()?, seen.instance.fault.as_ref()?);
        let (instance, fault) = (seen.instance.id.clone(), normalise_fault(&fault.message));
        let counted = Counted { pool, instance, fault };
        self.count_fault_of(&counted).then_some(counted)
    }

    /// True where it was not counted before.
    pub(super) fn count_fault_of(&mut self, counted: &Counted) -> bool {
        let Counted { pool, instance, fault } = counted.clone();
        let new = self.book.count_fault(&pool, &instance, &fault);
        self.newcomers.set_witnesses_aside(&pool, &fault);
        let at = self.now;
        self.outbox.record(Record::FaultSeen { at, pool, instance, fault });
        new
    }

    /// Nothing came of it: it is no deletion, counts for no fault and takes no room within the hour. A failure may have come
    /// after the deed, so its room stays taken.
    fn nothing_came_of(&mut self, operation: &Operation, outcome: &Outcome) {
        self.book.not_deleted(&operation.call);
        if let Some(counted) = &operation.counted {
            self.uncount_fault(counted);
        }
        if outcome.never_happened() && operation.repair_step.class().is_destructive() {
            let began = match operation.phase {
                Phase::Calling { since } => since,
                _ => self.now,
            };
            self.book.unbegin(began, operation.repair_step);
        }
    }

    pub(super) fn on_recorded(&mut self, record: RecordId) {
        let Acknowledged { intent, works_again } = self.outbox.acknowledge(record);
        if works_again {
            self.rouse_held();
        }
        let Some(intent) = intent else { return };
        let Some(operation) = self.book.operations.remove(&intent) else { return };
        let destructive = operation.repair_step.class().is_destructive();
        if destructive {
            self.book.unbegin(self.now, operation.repair_step);
        }
        match self.still_right(&operation) {
            Ok(()) => {
                if destructive {
                    self.book.begin(self.now, operation.repair_step);
                }
                let (call, fence, operation_repair_step) =
                    (operation.call.clone(), self.start.fence, operation.repair_step);
                let key = operation.key.clone();
                // The log that was read directly before shows nothing of the one before this. Not sooner: an intent that was not
                // kept left a reboot that came late after all without its time.
                if let (Call::Reboot(_), Some(case)) = (&call, self.incidents.get_mut(&key)) {
                    case.gathered.unconfirmed = None;
                }
                let phase = Phase::Calling { since: self.now };
                let counted = self.count_same_fault(&key, operation_repair_step);
                self.book.operations.insert(intent, Operation { phase, counted, ..operation });
                self.book.count_requested(operation_repair_step);
                self.timers.set(self.now + CALL_WITHIN, Wake::Operation(intent));
                self.outbox.push(Effect::Call { intent, fence, call });
            }
            Err(why) => {
                let at = self.now;
                self.book.not_deleted(&operation.call);
                self.incidents.note_attempt(&operation.key, intent, |attempt| {
                    attempt.ending = Some(Ending::Dropped { at, why: why.clone() });
                });
                self.outbox.record(Record::Dropped { at, intent, why });
                self.back_off_from_drops(&operation.key);
                self.ripe.insert(operation.key);
            }
        }
    }

    /// What is decided and dropped again and again goes on at the pace of the disk otherwise.
    fn back_off_from_drops(&mut self, key: &IncidentKey) {
        let until = self.now + self.roster.timing.backoff_min;
        let case = self.incidents.get_mut(key).filter(|case| case.incident.was_dropped_twice());
        if let Some(case) = case {
            case.incident.not_before = case.incident.not_before.max(Some(until));
        }
    }

    /// Asked again when the ledger has it, without counting the intent itself: the world does not wait for a disk.
    fn still_right(&self, operation: &Operation) -> Result<(), Why> {
        if !stands(Safeguard::AskedAgain) {
            return Ok(());
        }
        let Some(case) = self.incidents.get(&operation.key) else { return Err(Why::FaultOver) };
        if case.incident.well_since.is_some() {
            return Err(Why::FaultCleared);
        }
        let blockers = operation.repair_step.blockers(&self.context(), case, Some(&operation.call));
        blockers.into_iter().next().map_or(Ok(()), |hold| Err(Why::Held(hold)))
    }

    pub(super) fn on_record_failed(&mut self, record: RecordId) {
        self.timers.set(self.now + LEDGER_RETRY, Wake::Ledger);
        let Some(intent) = self.outbox.refuse(record) else { return };
        if let Some(operation) = self.book.operations.remove(&intent) {
            self.book.not_deleted(&operation.call);
            if operation.repair_step.class().is_destructive() {
                self.book.unbegin(self.now, operation.repair_step);
            }
            if let Some(case) = self.incidents.get_mut(&operation.key) {
                case.incident.attempts.retain(|attempt| attempt.intent != intent);
                // The evidence was read directly before this, and the disk may be full for long.
                case.gathered.asked_at = None;
            }
            self.incidents.forget_intent(intent);
            self.waiting.put(&operation.key, operation.incident, WaitFor::Gate);
        }
    }

    pub(super) fn on_done(&mut self, intent: IntentId, outcome: Outcome) {
        let outcome = self.of_ours(intent, outcome);
        // Without an answer in time it is read back meanwhile; an answer that comes then and proves that nothing happened
        // still counts: a reboot that was never made is no try, and no reason to delete.
        let takes = |operation: &Operation| match operation.phase {
            Phase::Calling { .. } => true,
            Phase::Verifying { .. } => outcome.never_happened(),
            Phase::Recording | Phase::Proving { .. } => false,
        };
        let Some(operation) = self.book.operations.get(&intent).filter(|operation| takes(operation)).cloned()
        else {
            return;
        };
        let at = self.now;
        self.outbox.record(Record::Ended { at, intent, outcome: outcome.clone() });
        self.incidents.note_attempt(&operation.key, intent, |attempt| {
            attempt.ending = Some(Ending::Answered { at, outcome: outcome.clone() });
        });
        if outcome.denies() {
            self.nothing_came_of(&operation, &outcome);
        }
        self.count_again(&operation);
        self.hear_answer(&operation.call, &outcome);
        if let (Call::AddRoutes(AddRoutes { router, .. }), Outcome::Accepted { .. }) =
            (&operation.call, &outcome)
        {
            self.routes.forget_limit(router);
        }
        self.follow(intent, &operation, outcome);
        self.rouse_subject(&operation.key.subject);
    }

    /// What comes after this answer.
    fn follow(&mut self, intent: IntentId, operation: &Operation, outcome: Outcome) {
        match outcome {
            Outcome::Accepted { .. } | Outcome::AlreadySo { .. } | Outcome::Unknown { .. } => {
                if let Some(case) = self.incidents.get_mut(&operation.key) {
                    case.unmade = 0;
                    if !matches!(outcome, Outcome::Unknown { .. }) {
                        case.unreached = 0;
                    }
                }
                self.refresh_stopped(operation);
                if stands(Safeguard::FreshRead) {
                    self.verify(intent);
                } else {
                    self.took_effect(intent, operation, Arc::from("it was accepted"));
                }
            }
            Outcome::Moved { .. } => {
                self.book.operations.remove(&intent);
                self.drop_node(&operation.call);
                self.refresh_subject(operation);
                if let Call::RemoveRoutes(RemoveRoutes { unless_used, .. }) = &operation.call {
                    self.routes.doubt(self.now, unless_used, self.roster.timing.backoff_max);
                }
                // An instance that changed is read again first, which takes longer than a revision does.
                let of_port = matches!(operation.call, Call::SetPortGroups(_) | Call::AddPortPairs(_));
                let least = match operation.call.owned() {
                    Some(_) if !of_port => self.roster.timing.backoff_min,
                    _ => MOVED_WAIT,
                };
                self.wait_to_make_it(operation, least);
            }
            Outcome::Failed { retry_after, .. } => {
                self.book.operations.remove(&intent);
                self.doubt_answer(intent, operation);
                self.postpone(operation, retry_after.unwrap_or_default(), None);
            }
            Outcome::NotSent { retry_after, .. } => {
                self.book.operations.remove(&intent);
                let least = retry_after.unwrap_or_default().max(self.roster.timing.backoff_min);
                self.wait_to_make_it(operation, least);
            }
            Outcome::Limit { limit, text } => {
                self.book.operations.remove(&intent);
                if !self.learn_limit(operation, limit) {
                    self.postpone(operation, self.roster.timing.backoff_max, Some(&text));
                }
            }
            Outcome::Denied { .. } if stands(Safeguard::RightsReturn) => {
                self.book.operations.remove(&intent);
                self.wait_to_make_it(operation, self.roster.timing.backoff_min);
            }
            // What is harsher needs more of a reason than that this was refused, and what was refused may be allowed in an hour:
            // Neutron refuses a route while the leg of its next hop is being attached.
            Outcome::Refused { text } if may_be_allowed(operation) && stands(Safeguard::RightsReturn) => {
                self.book.operations.remove(&intent);
                self.postpone(operation, self.roster.timing.backoff_max, Some(&text));
            }
            Outcome::Denied { text } | Outcome::Refused { text } => {
                self.book.operations.remove(&intent);
                self.escalate_from(operation, &text);
            }
            Outcome::Fenced {} => {
                self.book.operations.remove(&intent);
                self.leading = false;
            }
        }
    }

    /// Another client deleted a machine that was gone, or going, when our deletion came, and may delete the next one too:
    /// the controller treats that like any other foreign change. `undoubt` finds the case in which our own earlier
    /// deletion, which seemed to fail, removed the machine.
    fn of_ours(&self, intent: IntentId, outcome: Outcome) -> Outcome {
        let call = self.book.operations.get(&intent).map(|operation| &operation.call);
        match outcome {
            Outcome::AlreadySo { text } if matches!(call, Some(Call::DeleteInstance(_))) => {
                Outcome::Moved { text }
            }
            other => other,
        }
    }

    /// The router is full. The same is tried again after the long backoff for as long as the route is missing: it may get room.
    fn learn_limit(&mut self, operation: &Operation, limit: Option<u32>) -> bool {
        let (cloud, router, more) = match &operation.call {
            Call::AddRoutes(AddRoutes { cloud, router, routes, .. }) => (cloud, router, routes.len()),
            Call::NudgeRouter(NudgeRouter { cloud, router, .. }) => (cloud, router, 1),
            _ => return false,
        };
        // Neutron's quota engine says `Quota exceeded for resources: ['router_route'].` and no number. What the router holds
        // and what was refused tell: it takes fewer than both together.
        let held = self.clouds.get(cloud).and_then(|view| view.routers.get(router));
        let fewer =
            held.map(|held| u32::try_from(held.routes.len() + more).unwrap_or(u32::MAX).saturating_sub(1));
        let Some(limit) = limit.or(fewer) else { return false };
        self.routes.learn_limit(self.now, router, limit);
        self.dirty_projects.insert(cloud.clone());
        self.wait_to_make_it(operation, self.roster.timing.backoff_max);
        true
    }
}

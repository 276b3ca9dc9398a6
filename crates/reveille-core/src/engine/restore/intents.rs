//! Replays what was begun for incidents: an intent, how its call ended, and what a fresh read told of it. One without an outcome
//! stays open, and is read back before anything else is decided for its subject (`State::resume_operations`).

use crate::effect::{Call, Outcome};
use crate::model::attempt::{Attempt, Ending};
use crate::model::id::{IncidentId, IntentId};
use crate::model::time::Time;
use crate::plan::budget::{Operation, Phase};
use crate::record::Record;
use crate::remedies::{DeleteInstance, escalation};

use super::super::retries::may_be_allowed;
use super::Replay;

impl Replay {
    fn take_outcome(&mut self, at: Time, intent: IntentId, outcome: Outcome) {
        if let Some(operation) = self.state.book.operations.get(&intent).cloned() {
            // One that was answered late has two outcomes, and was one request.
            if self
                .state
                .incidents
                .attempt(&operation.key, intent)
                .is_none_or(|attempt| attempt.ending.is_none())
            {
                self.state.book.count_requested(operation.repair_step);
            }
            if outcome.denies() {
                self.state.book.not_deleted(&operation.call);
                if let Some(counted) = &operation.counted {
                    self.state.uncount_fault(counted);
                }
            }
            if outcome.never_happened() && operation.repair_step.class().is_destructive() {
                self.state.book.unbegin(at, operation.repair_step);
            }
            if matches!(outcome, Outcome::Failed { .. }) {
                self.state.expect_late_reboot(&operation);
                self.state.keep_place(&operation, at);
                self.state
                    .book
                    .doubt(intent, &Operation { phase: Phase::Calling { since: at }, ..operation });
            }
        }
        let ending = Ending::Answered { at, outcome: outcome.clone() };
        self.note(intent, |attempt| attempt.ending = Some(ending));
        match outcome {
            Outcome::Accepted { .. } | Outcome::AlreadySo { .. } | Outcome::Unknown { .. } => {
                self.awaits_effect(at, intent);
            }
            // What was refused for good is not asked again: the next repair step.
            Outcome::Refused { .. }
                if !self.state.book.operations.get(&intent).is_some_and(may_be_allowed) =>
            {
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

    pub(super) fn take_intent(&mut self, record: Record) {
        let state = &mut self.state;
        match record {
            Record::Intended { at, intent, incident, repair_step, call, before, domain, .. } => {
                state.forget_newcomers();
                state.numbers.intent = state.numbers.intent.max(intent);
                let Some(key) = self.keys.get(&incident).cloned() else { return };
                let Some(step) = escalation(key.kind).get(usize::from(repair_step)).copied() else { return };
                if step.class().is_destructive() {
                    state.book.begin(at, step);
                }
                if let Call::DeleteInstance(DeleteInstance { instance, .. }) = &call {
                    state.book.note_deleted(instance);
                }
                let phase = Phase::Recording;
                let operation = Operation {
                    incident,
                    key: key.clone(),
                    repair_step: step,
                    call: call.clone(),
                    before,
                    domain,
                    phase,
                    counted: None,
                };
                // It is tried once more.
                state.book.places.free(incident);
                state.incidents.note_begun(&key, incident, intent);
                state.book.operations.insert(intent, operation);
                self.open_intents.insert(intent, key);
                self.begun_again(incident, repair_step, &call);
                self.with(incident, |found| {
                    found.begin_attempt(intent, call, at);
                });
            }
            Record::Dropped { at, intent, why } => {
                if let Some(operation) = state.book.operations.remove(&intent) {
                    state.book.not_deleted(&operation.call);
                    if operation.repair_step.class().is_destructive() {
                        state.book.unbegin(at, operation.repair_step);
                    }
                }
                self.note(intent, |attempt| attempt.ending = Some(Ending::Dropped { at, why }));
                self.open_intents.remove(&intent);
            }
            Record::Ended { at, intent, outcome } => self.take_outcome(at, intent, outcome),
            Record::Judged { at, intent, held, text } => {
                if let Some(operation) = state.book.undoubt(intent) {
                    // Its call was answered as failed, and its machine went after all.
                    self.open_intents.insert(intent, operation.key.clone());
                    state.book.operations.insert(intent, operation);
                }
                if let Some(operation) = state.book.operations.get(&intent).filter(|_| held) {
                    let (repair_step, incident) = (operation.repair_step, operation.incident);
                    state.book.count_verified(repair_step);
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

    /// The same again after it had held: it did not stick, which is a try, once for each that held. A call that is denied for an
    /// hour is made again and again, and is none.
    fn begun_again(&mut self, id: IncidentId, repair_step: u8, call: &Call) {
        let Some(case) = self.keys.get(&id).and_then(|key| self.state.incidents.get_mut(key)) else { return };
        if case.incident.id != id {
            return;
        }
        let held = |tried: &&Attempt| tried.held() && tried.call.is_same_change(call);
        let held = case.incident.attempts.iter().rev().find(held).map(|tried| tried.intent);
        if case.incident.repair_step != repair_step {
            (case.incident.repair_step, case.incident.tries) = (repair_step, 0);
        } else if held.is_some_and(|held| case.note_lapse(held)) {
            case.incident.tries += 1;
        }
    }
}

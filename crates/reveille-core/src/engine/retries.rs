//! What follows a call that was not made, failed or did not help: the same once more later, the next step, or a person.
//!
//! ```text
//!  never made ─▶ wait_to_make_it: no try              unreached ─▶ postpone ─▶ too often ─┐
//!  made, and in vain ─▶ try_again ─▶ tries used up ─▶ next_repair_step ─▶ none is left ─┴─▶ give_up: a person is asked
//! ```
//!
//! Which of these follows an outcome, `operations` and `proofs` say.

use std::sync::Arc;

use crate::model::class::Class;
use crate::model::incident::IncidentKey;
use crate::model::time::Span;
use crate::plan::budget::Operation;
use crate::record::Record;
use crate::remedies::{RepairStep, escalation};

use super::State;

/// So often in a row the same answer may come before a person is asked.
const UNREACHED_MAX: u32 = 24;
/// No service says for longer than this when a repair may go on: a machine that is down waits for it.
const RETRY_AFTER_MAX: Span = Span::from_min(10);

impl State {
    /// It did not happen at all: the same is tried again, later and later. Where the other side answers so each time, a person is
    /// asked in the end (`why`); where it is away (`None`), it goes on for as long as the fault lasts: a database that took no
    /// writes for a night ended the repair of a port for good.
    pub(super) fn postpone(&mut self, operation: &Operation, at_least: Span, why: Option<&str>) {
        let timing = self.roster.timing;
        let now = self.now;
        let Some(case) = self.incidents.get_mut(&operation.key) else { return };
        let at_least = at_least.min(timing.backoff_max.max(RETRY_AFTER_MAX));
        let wait = timing.backoff_min.doubled(case.unreached, timing.backoff_max).max(at_least);
        case.unreached = case.unreached.saturating_add(1);
        case.incident.not_before = Some(now + wait);
        let over = why.filter(|_| case.unreached >= UNREACHED_MAX);
        self.ripe.insert(operation.key.clone());
        if let Some(why) = over {
            self.give_up(&operation.key, Arc::from(why));
        }
    }

    /// The call was never made: it was not sent, the credential may not, or the other side was in no state for it. That is no
    /// try of this step, and a reboot that was never made is no reason to delete. The same is tried again, later and later, for
    /// as long as the fault lasts: a right that came back after 75 s left a port without its group for good.
    pub(super) fn wait_to_make_it(&mut self, operation: &Operation, least: Span) {
        let (now, longest) = (self.now, self.roster.timing.backoff_max);
        let Some(case) = self.incidents.get_mut(&operation.key) else { return };
        let wait = least.doubled(case.unmade, longest);
        case.unmade = case.unmade.saturating_add(1);
        case.incident.not_before = Some(now + wait);
        self.ripe.insert(operation.key.clone());
    }

    /// One more try of this repair step after a backoff, or the next repair step when its tries are used up.
    pub(super) fn try_again(&mut self, operation: &Operation) {
        let timing = self.roster.timing;
        let now = self.now;
        let Some(case) = self.incidents.get_mut(&operation.key) else { return };
        let used_up = case.count_try(now, &timing, operation.repair_step.tries(timing.tries));
        let tries = case.incident.tries;
        self.ripe.insert(operation.key.clone());
        if used_up {
            let why = format!("tried {} times and did not hold: {}", tries, operation.repair_step.says());
            self.next_repair_step(&operation.key, &why);
        }
    }

    /// The next repair step, where the incident is still that of the call: its machine may have had another fault meanwhile,
    /// and this one again, with a number of its own. A refusal that comes late gave that one up.
    pub(super) fn escalate_from(&mut self, operation: &Operation, why: &str) {
        if self.incidents.is_open(operation.incident) {
            self.next_repair_step(&operation.key, why);
        }
    }

    pub(super) fn next_repair_step(&mut self, key: &IncidentKey, why: &str) {
        let Some(case) = self.incidents.get_mut(key) else { return };
        case.incident.repair_step = case.incident.repair_step.saturating_add(1);
        case.incident.tries = 0;
        let repair_steps = escalation(key.kind).len();
        self.ripe.insert(key.clone());
        if usize::from(case.incident.repair_step) >= repair_steps {
            self.give_up(key, Arc::from(why));
        }
    }

    pub(super) fn give_up(&mut self, key: &IncidentKey, why: Arc<str>) {
        let at = self.now;
        let Some(case) = self.incidents.get_mut(key) else { return };
        if std::mem::replace(&mut case.incident.given_up, true) {
            return;
        }
        let incident = case.incident.id;
        self.outbox.record(Record::GivenUp { at, incident, why });
    }
}

/// A refusal is no reason for a more harmful step, and no reason to give up steps that harm no machine. When a nudge of the
/// group is refused, the other nudge is left, which asks another service.
pub(super) fn may_be_allowed(operation: &Operation) -> bool {
    match operation.repair_step.class() {
        Class::Reboot => true,
        Class::Network | Class::Access => operation.repair_step != RepairStep::NudgeGroup,
        // An admission policy refuses the deletion of a left-over Node until its owner has mended it. No harsher step follows.
        Class::Cleanup => true,
        Class::Rejoin | Class::Replace => false,
    }
}

//! An incident that looks well and waits for a person's word alone: what of it is over all the same.
//!
//! ```text
//!  well ─ its dwell ─▶ the request for a repair is over ─ an hour ─▶ what was tried is over: another problem would be a new one
//! ```
//!
//! Both are written down at that moment, and not when the machine has a problem again. A restart, and a gap between two steps
//! of ours, let the dwell begin from zero: a machine that had been well for ten hours fell silent half an hour after a restart,
//! and was deleted without a reboot, because the escalation stood where it had been left the day before. The hour counts from the
//! end of the first dwell: where we were restarted each 50 minutes it began from zero each time, and was never over. A machine
//! that is seen to have the fault takes that back, also within its dwell. In each process it has to be well for its dwell before
//! either.

use crate::model::incident::IncidentKey;
use crate::model::time::{Span, Time};
use crate::plan::budget::Phase;
use crate::plan::context::Case;

use super::{RECURS_WITHIN, State, Wake};

/// What was tried counts over a gap for so long: of each machine that is dead a restart each hour or two would begin with a
/// reboot, and come to no other step.
const TRIES_COUNT_FOR: Span = Span::from_min(6 * 60);

impl State {
    /// Its dwell was over then, and it has looked well since.
    pub(super) fn outlast(&mut self, key: &IncidentKey, over: Time) {
        let Some(case) = self.incidents.get_mut(key) else { return };
        let is_first = case.outlasted.is_none() && is_begun(case);
        if is_first {
            case.outlasted = Some(over);
        }
        let over = case.outlasted.unwrap_or(over);
        let is_long = self.now.since(over) > RECURS_WITHIN;
        if is_long && is_begun(case) {
            // Had a person confirmed, this were another incident by now.
            case.begin_again();
            self.record_escalation(key);
        } else if !is_long {
            // Had a person confirmed, the request had ended with the incident.
            if case.incident.asked.take().is_some() || is_first {
                self.record_escalation(key);
            }
            self.timers.set(over + RECURS_WITHIN + Span::from_ms(1), Wake::Case(key.clone()));
        }
    }
}

impl State {
    /// Nothing was seen for so long.
    pub(super) fn end_tries_after(&mut self, gap: Span) {
        if gap > TRIES_COUNT_FOR {
            self.begin_escalations_again();
        }
    }

    /// For hours no process looked: a machine that was power-cycled in vain before may have been well since, and the next step
    /// would be its deletion. What was tried is over, but for what is under way or what a person wants.
    pub(super) fn begin_escalations_again(&mut self) {
        let is_over = |case: &&Case| {
            let incident = &case.incident;
            let is_wanted = incident.asked.is_some() || incident.kept_until.is_some() || incident.given_up;
            let is_begun = (incident.repair_step, incident.tries) != (0, 0);
            let operation = self.book.operation_of(incident.id);
            let is_made = operation.is_none_or(|(_, it)| matches!(it.phase, Phase::Proving { .. }));
            incident.key.kind.is_absence() && is_begun && !is_wanted && is_made
        };
        let over = self.incidents.open().values().filter(is_over);
        for key in over.map(|case| case.incident.key.clone()).collect::<Vec<_>>() {
            if let Some(case) = self.incidents.get_mut(&key) {
                case.begin_again();
            }
            self.record_escalation(&key);
        }
    }
}

/// Something of what was tried or wanted still counts.
fn is_begun(case: &Case) -> bool {
    let incident = &case.incident;
    let counts =
        (incident.repair_step, incident.tries, incident.not_before) != (0, 0, None) || incident.given_up;
    let wanted = incident.asked.is_some() || incident.kept_until.is_some();
    let lasts =
        incident.attempts.last().is_some_and(|last| last.held() && !case.lapsed.contains(&last.intent));
    counts || wanted || lasts
}

//! What the verdict on a repair step means on replay, as it meant for the process that gave it (`engine::verification`).
//!
//! ```text
//!  Judged, it took effect ─┬▶ what has to be proved keeps its place until its time is over
//!                          └▶ the rest is over: what it should have helped is seen or not seen from here on
//!  Judged, it did not      ──▶ a try, once, for the incident that it was made for; the escalation follows from the tries
//!  Width, proved           ──▶ nothing is left to judge
//! ```
//!
//! What people and clouds answered to a call is read in the file beside.

use crate::effect::Call;
use crate::model::attempt::Attempt;
use crate::model::class::Class;
use crate::model::id::IntentId;
use crate::model::incident::MachineKey;
use crate::model::time::Time;
use crate::plan::budget::{Operation, Phase};
use crate::record::Domain;
use crate::remedies::RepairStep;

use super::super::verification::must_be_proved;
use super::Replay;

impl Replay {
    /// The patience for a reboot that shows nothing counts from its answer, as for the process that heard it: began it with each
    /// process, the next step was never tried where we are restarted a little more often.
    pub(super) fn awaits_effect(&mut self, at: Time, intent: IntentId) {
        let reboot = self
            .state
            .book
            .operations
            .get(&intent)
            .filter(|operation| operation.repair_step.class() == Class::Reboot);
        let Some(patience) = reboot.map(|operation| self.state.patience(operation)) else { return };
        // The clock may have gone back since.
        let deadline = at.min(self.state.now) + self.state.roster.timing.verify_within;
        let unseen_until = deadline.max(at.min(self.state.now) + patience);
        if let Some(operation) = self.state.book.operations.get_mut(&intent) {
            operation.phase = Phase::Verifying { deadline, unseen_until };
        }
    }

    /// It took effect: nothing to verify again. What has to be proved keeps its slot until its time is over, because how well the
    /// pool was before is not known any more; for the rest, what it should have helped is seen or not seen from here on.
    pub(super) fn held(&mut self, at: Time, intent: IntentId) {
        // The clock may have gone back since.
        let at = at.min(self.state.now);
        let mut proving = false;
        let patience =
            self.state.book.operations.get(&intent).map(|operation| self.state.patience(operation));
        let wait = match self.state.book.operations.get_mut(&intent) {
            Some(operation) if must_be_proved(operation) => {
                proving = true;
                let deadline = at + patience.unwrap_or_default();
                operation.phase = Phase::Proving { deadline, since: at };
                patience.unwrap_or_default()
            }
            _ => {
                self.state.book.operations.remove(&intent);
                self.state.roster.timing.verify_within
            }
        };
        // One that is still being proved may be judged once more: it took effect and did not help.
        let key =
            if proving { self.open_intents.get(&intent).cloned() } else { self.open_intents.remove(&intent) };
        if let Some(case) = key.and_then(|key| self.state.incidents.get_mut(&key)) {
            case.incident.not_before = Some(at + wait);
        }
    }

    /// The domain was widened, in a ledger that does not say by what: what closed its incident a moment before has helped, or
    /// else the oldest intent that was being proved there, which need not be judged again.
    pub(super) fn proved(&mut self, at: Time, domain: &Domain) {
        if let Some(landed) = self.landed.get_mut(domain).filter(|landed| **landed > 0) {
            *landed -= 1;
            return;
        }
        let proving = self.state.book.operations.iter().find(|(_, operation)| {
            let is_proving = matches!(operation.phase, Phase::Proving { since, .. } if since <= at);
            operation.domain.as_ref() == Some(domain) && is_proving
        });
        if let Some(intent) = proving.map(|(intent, _)| *intent) {
            self.landed_proved(domain, intent, None);
        }
    }

    /// This intent was proved, and need not be judged again. What closed its incident before has landed with that.
    pub(super) fn landed_proved(&mut self, domain: &Domain, intent: IntentId, successor: Option<MachineKey>) {
        self.open_intents.remove(&intent);
        let Some(operation) = self.state.book.operations.remove(&intent) else {
            if let Some(landed) = self.landed.get_mut(domain) {
                *landed = landed.saturating_sub(1);
            }
            return;
        };
        if operation.repair_step == RepairStep::Replace {
            // A successor joined, which proves no other: whatever was wrong with those before it is over.
            self.state.newcomers.credit(&domain.pool, intent, successor);
            self.state.forgive_faults(&domain.pool);
        }
    }

    pub(super) fn is_reboot(&self, intent: IntentId) -> bool {
        self.state
            .book
            .operations
            .get(&intent)
            .is_some_and(|operation| operation.repair_step.class() == Class::Reboot)
    }

    /// No answer came, and nothing was seen of it.
    pub(super) fn was_unmade(&self, intent: IntentId) -> bool {
        let key = self.state.book.operations.get(&intent).map(|operation| &operation.key);
        let attempt = key.and_then(|key| self.state.incidents.attempt(key, intent));
        attempt.is_some_and(Attempt::came_to_nothing)
    }

    /// The controller never saw the call take effect, so it charges the change to no client yet. If the change shows later,
    /// our call may have made it.
    pub(super) fn came_to_nothing(&mut self, at: Time, intent: IntentId) {
        let unseen = |operation: &&Operation| !matches!(operation.phase, Phase::Proving { .. });
        if let Some(operation) = self.state.book.operations.get(&intent).filter(unseen).cloned() {
            self.state.book.not_deleted(&operation.call);
            if let (Call::Reboot(_), Some(case)) =
                (&operation.call, self.state.incidents.get_mut(&operation.key))
            {
                // It may only be late.
                case.gathered.unconfirmed =
                    operation.before.as_ref().and_then(|before| before.action.clone());
            }
            self.state.book.doubt(intent, &Operation { phase: Phase::Calling { since: at }, ..operation });
        }
    }

    /// A crash may have come between the verdict and the record of what it means for its domain.
    pub(super) fn cool_down(&mut self, at: Time, intent: IntentId) {
        let domain = self.state.book.operations.get(&intent).and_then(|operation| operation.domain.clone());
        if let Some(domain) = domain {
            self.state.book.failed(&domain, at);
        }
    }

    pub(super) fn failed(&mut self, at: Time, intent: IntentId, tries: u32) {
        let operation = self.state.book.operations.remove(&intent);
        let (repair_step, of) =
            operation.map(|operation| (operation.repair_step, operation.incident)).unzip();
        let timing = self.state.roster.timing;
        if let Some(case) =
            self.open_intents.remove(&intent).and_then(|key| self.state.incidents.get_mut(&key))
        {
            // Counted when the fault came back, or when another fault gave it back under a number of its own.
            let is_counted = case.lapsed.contains(&intent) || of.is_some_and(|of| of != case.incident.id);
            if tries > 0 && is_counted {
                return;
            }
            let incident = &mut case.incident;
            incident.tries = incident.tries.saturating_add(tries);
            let doublings = incident.tries.saturating_sub(1);
            incident.not_before = Some(at + timing.backoff_min.doubled(doublings, timing.backoff_max));
            // The move to the next repair step is in no record: it follows from the tries, now as it did then.
            // What was no try leads nowhere, however many there were before.
            if tries > 0
                && repair_step.is_some_and(|repair_step| incident.tries >= repair_step.tries(timing.tries))
            {
                incident.repair_step = incident.repair_step.saturating_add(1);
                incident.tries = 0;
            }
        }
    }
}

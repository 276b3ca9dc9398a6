//! Whether a repair whose effect was seen helped, and what follows where it did, or did not.
//!
//! ```text
//!  readback: it took effect ─▶ Proving ─┬─ well for its dwell, or a successor is ─▶ earn: more at a time here
//!                                       └─ not in time, or the incident comes back ─▶ land_failed: fewer, and the next step
//! ```
//!
//! For a group, a rule or a route, a fresh read that shows the effect is enough. A reboot or a replacement must also help:
//! the machine, or one made since, is Ready again for the pool's dwell. Until then the repair keeps its slot. A failure
//! lowers the number of repairs at a time in its domain, and a proof raises it. The number of other Ready machines in the
//! pool proves nothing meanwhile, because people scale pools up and down.

use std::sync::Arc;

use crate::effect::Call;
use crate::model::attempt::Ending;
use crate::model::class::Class;
use crate::model::id::{IncidentId, IntentId};
use crate::model::incident::{IncidentKey, MachineKey};
use crate::model::time::Span;
use crate::plan::budget::{Counted, Operation, Phase, REPLACEMENT_FAILED, Width};
use crate::plan::context::Case;
use crate::record::{Domain, Record, Verdict};
use crate::remedies::{DeleteInstance, RepairStep};
use crate::safeguard::{Safeguard, stands};

use super::{State, Wake};

impl State {
    /// Counts a replacement that did not help. After so many in a row, the controller suspects the image or template of the
    /// pool.
    pub(super) fn count_failed_replacement(&mut self, replacement: IntentId, operation: &Operation) {
        let (Call::DeleteInstance(DeleteInstance { instance, .. }), Some(domain)) =
            (&operation.call, &operation.domain)
        else {
            return;
        };
        let (pool, instance) = (domain.pool.clone(), instance.clone());
        self.count_fault_of(&Counted { pool, instance, fault: Arc::from(REPLACEMENT_FAILED) });
        self.recall_witnesses(&domain.pool, replacement);
    }

    /// The intent failed: its domain cools down, and the case tries again later or escalates.
    pub(super) fn land_failed(&mut self, intent: IntentId, operation: &Operation) {
        self.book.operations.remove(&intent);
        self.timers.clear(&Wake::Operation(intent));
        if let Some(domain) = &operation.domain {
            let width = self.book.failed(domain, self.now);
            self.record_width(domain, width, None);
        }
        // An answer that never came, and nothing to be seen of it: that was no try, and no reason for a harsher step.
        let unmade =
            self.incidents.attempt(&operation.key, intent).filter(|attempt| attempt.came_to_nothing());
        match unmade.and_then(|attempt| attempt.ending.as_ref()).map(Ending::to_string) {
            Some(said)
                if operation.repair_step.class() == Class::Reboot && stands(Safeguard::RightsReturn) =>
            {
                self.postpone(operation, Span::ZERO, Some(&said));
            }
            _ if self.has_lapsed(intent, operation) => {
                self.ripe.insert(operation.key.clone());
            }
            // Another fault took the place of its own meanwhile, and may have given it back: that was counted then.
            _ if !self.incidents.is_open(operation.incident) => {}
            _ => self.try_again(operation),
        }
        self.rouse_subject(&operation.key.subject);
    }

    /// It held, looked mended and came back: that was counted as a try then.
    fn has_lapsed(&self, intent: IntentId, operation: &Operation) -> bool {
        self.incidents.get(&operation.key).is_some_and(|case| case.lapsed.contains(&intent))
    }

    fn record_width(&mut self, domain: &Domain, width: Width, successor: Option<MachineKey>) {
        let (at, domain) = (self.now, domain.clone());
        let Width { width, not_before, failures, proved, .. } = width;
        self.outbox.record(Record::Width { at, domain, width, not_before, failures, proved, successor });
    }

    pub(super) fn earn(&mut self, domain: &Domain, intent: IntentId) {
        let width = self.book.proved(domain, self.now, intent);
        self.record_width(domain, width, None);
    }

    /// A case is over: what was under way for it is proved, or has nothing left to prove.
    pub(super) fn land_closed(&mut self, case: &Case, verdict: Verdict) {
        if matches!(verdict, Verdict::Mended | Verdict::Recovered) {
            self.book.doubt_no_more(case.incident.id);
        }
        if verdict == Verdict::SubjectGone && !self.book.is_of(case.incident.id) {
            // Nothing boots there any more.
            self.book.places.free(case.incident.id);
        }
        self.land_superseded(&case.incident.key, case.incident.id, verdict);
        let Some((intent, operation)) = self.book.operation_of(case.incident.id) else { return };
        let operation = operation.clone();
        let replaced = operation.repair_step == RepairStep::Replace;
        match (&operation.phase, verdict) {
            // The machine is gone, as was wanted: the pool's health is the proof, and keeps the slot.
            (Phase::Proving { .. }, Verdict::SubjectGone | Verdict::Superseded) if replaced => {}
            // It boots still, whatever the fault is called by now.
            (Phase::Proving { .. }, Verdict::Superseded) if boots(&operation) => {}
            (Phase::Proving { .. } | Phase::Verifying { .. }, Verdict::Mended | Verdict::Recovered) => {
                self.book.operations.remove(&intent);
                self.timers.clear(&Wake::Operation(intent));
                if let Some(domain) = operation.domain.clone().filter(|_| self.earns(case, &operation)) {
                    self.earn(&domain, intent);
                }
            }
            (Phase::Proving { .. }, _) => {
                self.book.operations.remove(&intent);
                self.timers.clear(&Wake::Operation(intent));
            }
            // Our stop took longer than its call, and its start was never made: that has an incident of its own by now.
            (Phase::Verifying { .. }, Verdict::Superseded) if self.is_shown_off(&operation) => {
                self.did_not_hold(intent, &operation, Arc::from("it was stopped, and not started"));
            }
            // Calls on their way are waited for: their outcome belongs into the ledger.
            _ => {}
        }
    }

    /// A rebooted machine got another fault while it booted (its Node was deleted). It keeps its slot: without that, the
    /// controller rebooted a second machine beside it. The slot is free when the machine has no open incident any more, or
    /// when its time to boot is over.
    pub(super) fn land_superseded(&mut self, key: &IncidentKey, closed: IncidentId, verdict: Verdict) {
        let is_away = verdict != Verdict::SubjectGone
            && self.incidents.of(&key.subject).any(|other| other.incident.key.kind.is_absence());
        if verdict == Verdict::Superseded || !key.kind.is_absence() || is_away {
            return;
        }
        let is_over = |operation: &Operation| {
            let is_open = self.incidents.is_open(operation.incident);
            operation.key.subject == key.subject
                && operation.incident != closed
                && boots(operation)
                && !is_open
        };
        let over = self
            .book
            .operations
            .iter()
            .filter(|(_, operation)| is_over(operation))
            .map(|(intent, _)| *intent);
        for intent in over.collect::<Vec<_>>() {
            self.book.operations.remove(&intent);
            self.timers.clear(&Wake::Operation(intent));
        }
    }

    /// It has been well for its dwell and only a person's word is missing: what was under way for it is proved.
    pub(super) fn prove_unconfirmed(&mut self, key: &IncidentKey) {
        let Some(case) = self.incidents.get(key) else { return };
        let Some((intent, operation)) = self.book.operation_of(case.incident.id) else { return };
        let (domain, earned) = (operation.domain.clone(), self.earns(case, operation));
        self.book.operations.remove(&intent);
        self.timers.clear(&Wake::Operation(intent));
        if let Some(domain) = domain {
            if earned {
                self.earn(&domain, intent);
            }
            self.quieten(domain);
        }
        self.rouse_subject(&key.subject);
    }

    /// Credit needs a machine that answers, too: one whose Node is back and not Ready has only got another fault. 36 machines
    /// lost their Nodes and then stood still; each reboot brought a Node for seconds, and three at a time were rebooted on that.
    fn earns(&self, case: &Case, operation: &Operation) -> bool {
        let key = &case.incident.key;
        let absent = |other: &Case| other.incident.key != *key && other.incident.key.kind.is_absence();
        // One that is started is on its way up: that it runs is all that was wanted.
        let must_answer = matches!(operation.call, Call::Reboot(_)) && stands(Safeguard::OwnProof);
        earned(case, operation) && !(must_answer && self.incidents.of(&key.subject).any(absent))
    }

    /// Others that came back prove nothing of a successor: a replacement is proved when a machine that was made since answers for
    /// its dwell, and one newcomer is the successor of one.
    pub(super) fn review_proofs(&mut self) {
        while let Some((intent, successor)) = self.next_proved() {
            self.timers.clear(&Wake::Operation(intent));
            let operation = self.book.operations.remove(&intent);
            let Some(domain) = operation.and_then(|operation| operation.domain) else { continue };
            self.newcomers.credit(&domain.pool, intent, Some(successor.clone()));
            let width = self.book.proved(&domain, self.now, intent);
            self.record_width(&domain, width, Some(successor));
            self.forgive_faults(&domain.pool);
            // The machine that was replaced is long gone: no case of it will say that the domain has fallen quiet.
            self.quieten(domain);
        }
    }
}

/// Credit needs the act's own effect: a machine that became well with the boot id that it had before the call was not made
/// well by its reboot. Without an earlier boot id, it became well after the effect was seen.
pub(super) fn earned(case: &Case, operation: &Operation) -> bool {
    if !stands(Safeguard::OwnProof) {
        return true;
    }
    let Phase::Proving { since, .. } = operation.phase else { return false };
    // That a stopped instance runs is seen on the instance itself.
    if !matches!(operation.call, Call::Reboot(_)) {
        return true;
    }
    let before = operation.before.as_ref().and_then(|before| before.node_boot.as_ref());
    match before {
        Some(before) => case.well_boot.as_ref().is_some_and(|boot| boot != before),
        None => case.incident.well_since.is_some_and(|well| well > since),
    }
}

/// That it took effect does not show that it helped: its place is kept until that is seen, or its time is over.
pub(super) const fn must_be_proved(operation: &Operation) -> bool {
    let is_nudge = matches!(operation.call, Call::NudgeGroup(_) | Call::NudgeRouter(_));
    is_nudge || matches!(operation.repair_step.class(), Class::Reboot | Class::Replace)
}

/// Its effect was seen, and its machine is on its way up.
pub(super) fn boots(operation: &Operation) -> bool {
    operation.repair_step.class() == Class::Reboot && matches!(operation.phase, Phase::Proving { .. })
}

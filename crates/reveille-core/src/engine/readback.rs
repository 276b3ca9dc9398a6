//! After the call: fresh reads until the effect is seen, or its time is over.
//!
//! ```text
//!  called ─▶ verify: a read ─▶ effect_of ─┬─ seen ─────────────────────────▶ took_effect: it holds, or has to be proved
//!                                         ├─ not seen by the deadline ─────▶ did_not_hold
//!                                         └─ cannot be seen, and no patience is left ─▶ did_not_hold
//! ```
//!
//! Sometimes no fresh read can show the effect: EC2 shows nothing of a reboot in place until the kubelet is back. The
//! reboot then gets its whole patience before it counts as not confirmed and the controller considers the next step. A
//! machine that recovered meanwhile with the boot id from before recovered by itself, and the reboot gets no credit.
//! Whether what was seen also helped, `proofs` says.

use std::sync::Arc;

use crate::decide::EVIDENCE_WITHIN;
use crate::effect::{Call, Look, Outcome, ReadError};
use crate::event::Answer;
use crate::model::before::{ActionMark, Before};
use crate::model::class::Class;
use crate::model::id::IntentId;
use crate::model::incident::{IncidentKey, Subject};
use crate::model::instance::InstanceState;
use crate::model::time::{Span, Time};
use crate::observe::cluster::ClusterChange;
use crate::plan::budget::{Operation, Phase};
use crate::plan::context::{Case, PlanContext};
use crate::record::{Place, Record};
use crate::remedies::{AddRules, DeleteNode, Effectiveness, Reboot, RepairStep};
use crate::safeguard::{Safeguard, stands};

use super::verification::must_be_proved;
use super::{LookFor, State, Wake};

/// Between two reads for a verdict.
const READ_AGAIN: Span = Span::from_s(5);

/// The same once an effect would have been seen if it could be: for the rest of its patience.
const READ_UNSEEN_AGAIN: Span = Span::from_s(30);

/// A node whose agent was asked is back within this: a reset and a join take minutes, and the agent's own deadline for one
/// attempt is shorter.
const BACK_WITHIN: Span = Span::from_min(5);

impl State {
    pub(super) fn verify(&mut self, intent: IntentId) {
        let now = self.now;
        let asked = self
            .book
            .operations
            .get(&intent)
            .is_some_and(|operation| operation.repair_step == RepairStep::Rejoin);
        let within = if asked { BACK_WITHIN } else { self.roster.timing.verify_within };
        let deadline = now + within;
        let Some(patience) = self.book.operations.get(&intent).map(|operation| self.patience(operation))
        else {
            return;
        };
        let unseen_until = deadline.max(now + patience);
        if let Some(operation) = self.book.operations.get_mut(&intent) {
            operation.phase = Phase::Verifying { deadline, unseen_until };
            // Should the fault become another one meanwhile (its Node is deleted), the wait goes on in that one's incident.
            if matches!(operation.repair_step.class(), Class::Reboot)
                && let Some(case) = self.incidents.get_mut(&operation.key)
            {
                case.incident.not_before = Some(unseen_until);
            }
        }
        self.read_back(intent);
    }

    fn read_back(&mut self, intent: IntentId) {
        let Some(operation) = self.book.operations.get(&intent) else { return };
        let again = match operation.phase {
            Phase::Verifying { deadline, unseen_until } if self.now >= deadline => {
                (self.now + READ_UNSEEN_AGAIN).min(unseen_until.max(self.now + READ_AGAIN))
            }
            _ => self.now + READ_AGAIN,
        };
        for look in operation.call.looks_after(operation.before.as_ref()) {
            self.reads.ask(look, LookFor::Verdict(intent));
        }
        self.timers.set(again, Wake::Operation(intent));
    }

    pub(super) fn refresh_subject(&mut self, operation: &Operation) {
        for look in operation.call.looks_after(operation.before.as_ref()) {
            self.reads.ask(look, LookFor::Refresh);
        }
        // Whose the instance is may be what changed: only the instance itself tells, not its log of actions.
        if let Some((cloud, id, _)) = operation.call.owned() {
            self.reads.ask(Look::Instance(cloud.clone(), id.clone()), LookFor::Refresh);
        }
    }

    /// A listing showed the machine stopped while it was stopped and started: it is not, by the time of the answer.
    pub(super) fn refresh_stopped(&mut self, operation: &Operation) {
        if let Some((cloud, instance, _)) = operation.call.owned().filter(|_| self.is_shown_off(operation)) {
            self.reads.ask(Look::Instance(cloud.clone(), instance.clone()), LookFor::Refresh);
        }
    }

    /// The machine that this stops and starts is shown as stopped.
    pub(super) fn is_shown_off(&self, operation: &Operation) -> bool {
        let Call::Reboot(Reboot { cloud, instance, hard: true, .. }) = &operation.call else { return false };
        let seen = self.clouds.get(cloud).and_then(|view| view.instances.get(instance));
        seen.is_some_and(|seen| seen.instance.state == InstanceState::Stopped)
    }

    /// What the act that is decided changes, as it is before the call.
    pub(super) fn before(&self, case: &Case, call: &Call) -> Option<Before> {
        // What starts or ends shows in the instance's own state.
        let Call::Reboot(_) = call else { return None };
        let context = self.context();
        let seen = context.seen_of(&case.incident.key.subject).map(|(_, seen)| seen);
        let node = seen.and_then(|seen| seen.nodes.first().or(seen.joined.as_ref())).cloned();
        let agent_boot = self.agent_boot(&case.incident.key.subject);
        let (action, node_boot) = (case.gathered.newest_reboot.clone(), self.node_boot(&case.incident.key));
        Some(Before { action, node, node_boot, agent_boot })
    }

    /// The boot id that the machine's Node carries now.
    pub(super) fn node_boot(&self, key: &IncidentKey) -> Option<Arc<str>> {
        let context = self.context();
        let (_, seen) = context.seen_of(&key.subject)?;
        context.node(seen)?.1.node.boot_id.clone()
    }

    fn agent_boot(&self, subject: &Subject) -> Option<Arc<str>> {
        let Subject::Machine(machine) = subject else { return None };
        self.agents.latest(machine)?.1.report.who.boot.clone()
    }

    pub(super) fn on_verdict_answer(&mut self, intent: IntentId, answer: Result<Answer, ReadError>) {
        let Some(operation) = self.book.operations.get(&intent).cloned() else { return };
        let Phase::Verifying { deadline, unseen_until } = operation.phase else { return };
        let before = operation.before.as_ref().and_then(|before| before.action.as_ref());
        if let (Call::Reboot(_), Some(before), Ok(Answer::Actions(log))) = (&operation.call, before, &answer)
        {
            self.note_own_request(&operation.key, before, log);
            self.keep_own_request(&operation.key, log);
        }
        let effect = match &answer {
            Err(error) => Effectiveness::Unseen(Arc::from(format!("could not be read back: {}", error.text))),
            Ok(answer) => self.effect_of(&operation, answer),
        };
        let patient = stands(Safeguard::UnseenPatience);
        match effect {
            Effectiveness::Seen(text) => self.took_effect(intent, &operation, text),
            Effectiveness::NotSeen(text) if self.now >= deadline => {
                self.not_confirmed(intent, &operation, text)
            }
            Effectiveness::Unseen(text) if self.now >= unseen_until || (!patient && self.now >= deadline) => {
                self.not_confirmed(intent, &operation, Arc::from(format!("not confirmed: {text}")));
            }
            // The next read is planned already.
            Effectiveness::NotSeen(_) | Effectiveness::Unseen(_) => {}
        }
    }

    fn not_confirmed(&mut self, intent: IntentId, operation: &Operation, text: Arc<str>) {
        // If the instance goes later, the controller cannot tell which client deleted it: it may be another client, or our
        // own call that was only late.
        self.book.not_deleted(&operation.call);
        let phase = Phase::Calling { since: self.now };
        self.book.doubt(intent, &Operation { phase, ..operation.clone() });
        self.expect_late_reboot(operation);
        self.did_not_hold(intent, operation, text);
    }

    /// It may only be late, or have been answered as failed on its way back: the action log is read once more before the next
    /// step, however fresh the evidence is.
    pub(super) fn expect_late_reboot(&mut self, operation: &Operation) {
        if let (Call::Reboot(_), Some(case)) = (&operation.call, self.incidents.get_mut(&operation.key)) {
            case.gathered.asked_at = None;
            case.gathered.unconfirmed = operation.before.as_ref().and_then(|before| before.action.clone());
        }
    }

    /// It was answered as failed, and may have been made all the same.
    pub(super) fn doubt_answer(&mut self, intent: IntentId, operation: &Operation) {
        self.book.doubt(intent, operation);
        self.expect_late_reboot(operation);
        self.keep_place(operation, self.now);
    }

    /// Until it would have been seen, the place of a call that was answered as failed is not free. Of a reboot the log of actions
    /// tells, which is read once the next try is due.
    pub(super) fn keep_place(&mut self, operation: &Operation, answered: Time) {
        let settled = answered + self.roster.timing.verify_within;
        let until = match operation.repair_step.class() {
            Class::Replace => settled,
            Class::Reboot => settled + EVIDENCE_WITHIN,
            _ => return,
        };
        self.book.places.forget_free(self.now);
        let place = Place { domain: operation.domain.clone(), settled, until };
        self.book.places.keep(operation.incident, place);
    }

    /// A reboot that was not confirmed happened after all: the machine is on its way up, and has its whole patience.
    pub(super) fn note_late_reboot(&mut self, key: &IncidentKey, shown: &ActionMark, asked_at: Time) {
        let until = self.now + self.boot_patience(key);
        let domain = self.incidents.get(key).and_then(|case| self.domain_of(case));
        let Some(case) = self.incidents.get_mut(key) else { return };
        let incident = case.incident.id;
        // While the log shows nothing new it may come yet: it did so between two reads (seeds 4000609, 4001004).
        let Some(_) = case.gathered.unconfirmed.take_if(|before| before != shown) else {
            return self.book.places.read_in_vain(incident, asked_at);
        };
        if stands(Safeguard::UnseenPatience) {
            case.incident.not_before = case.incident.not_before.max(Some(until));
        }
        // Another machine is not rebooted beside it while it boots, also by the next process: no record of an act tells it.
        self.book.places.keep(incident, Place { domain, settled: until, until });
        self.record_escalation(key);
    }

    /// Rules may be there in another spelling than ours: what counts is that nothing is missing any more.
    fn effect_of(&self, operation: &Operation, answer: &Answer) -> Effectiveness {
        if let (Call::AddRules(AddRules { cloud, group, .. }), Answer::Group(Some(_))) =
            (&operation.call, answer)
            && let Some(view) = self.clouds.get(cloud)
            && crate::diagnose::faults::rules_needed(&self.roster, view, group).is_empty()
        {
            return Effectiveness::Seen(Arc::from("read back: no pod rule is missing"));
        }
        let was = operation.before.as_ref().and_then(|before| before.agent_boot.as_ref());
        if let (Call::Reboot(_), Some(was)) = (&operation.call, was)
            && let Some(is) = self.agent_boot(&operation.key.subject).filter(|is| is != was)
        {
            return Effectiveness::Seen(Arc::from(format!("its agent reports another boot id: {is}")));
        }
        operation.call.judge(operation.before.as_ref(), answer)
    }

    pub(super) fn took_effect(&mut self, intent: IntentId, operation: &Operation, text: Arc<str>) {
        let at = self.now;
        self.outbox.record(Record::Judged { at, intent, held: true, text: text.clone() });
        self.book.count_verified(operation.repair_step);
        self.book.doubt_no_more(operation.incident);
        self.incidents.note_attempt(&operation.key, intent, |attempt| attempt.judge(at, true, text));
        self.drop_node(&operation.call);
        self.timers.clear(&Wake::Operation(intent));
        let patience = self.patience(operation);
        if let Some(case) = self.incidents.get_mut(&operation.key) {
            case.incident.not_before = Some(at + patience);
        }
        if must_be_proved(operation) {
            if let Some(operation) = self.book.operations.get_mut(&intent) {
                let deadline = at + patience;
                operation.phase = Phase::Proving { deadline, since: at };
            }
            self.timers.set(at + patience, Wake::Operation(intent));
        } else {
            self.book.operations.remove(&intent);
            if let Some(domain) = operation.domain.clone() {
                self.earn(&domain, intent);
                self.quieten(domain);
            }
        }
        if let Subject::Machine(key) = &operation.key.subject {
            self.dirty.insert(key.clone());
            self.judge_dirty();
        }
        self.ripe.insert(operation.key.clone());
        self.rouse_subject(&operation.key.subject);
    }

    /// The Node that was to be deleted is no more: a fresh read or the API's own precondition said so of this very object, and a
    /// watch that has lost its end would go on showing it.
    pub(super) fn drop_node(&mut self, call: &Call) {
        let Call::DeleteNode(DeleteNode { name, uid, .. }) = call else { return };
        let mut change = ClusterChange::default();
        self.cluster.delete(name, uid, &mut change);
        self.after_cluster_change(change);
    }

    /// How long a repair may take to help before the next is thought of.
    pub(super) fn patience(&self, operation: &Operation) -> Span {
        // Its domain is of the pool that the machine was in when this was decided, which the ledger knows before any list does.
        // The case may be closed, as that of a machine that is gone.
        let domain = operation.domain.as_ref().and_then(|domain| self.roster.pools.get(&domain.pool));
        let pool = domain.or_else(|| self.pool_of(&operation.key));
        let deadlines = pool.map(|pool| pool.deadlines).unwrap_or_default();
        let boot = deadlines.boot_patience();
        match operation.repair_step.class() {
            Class::Replace => deadlines.build_within + boot,
            Class::Reboot if self.may_boot_twice(operation) => boot + boot,
            Class::Reboot => boot,
            _ => self.roster.timing.verify_within,
        }
    }

    /// The same was asked for before, and may only be late: it may boot once more while this boot is waited for.
    fn may_boot_twice(&self, operation: &Operation) -> bool {
        let Some(case) = self.incidents.get(&operation.key) else { return false };
        let Some((last, earlier)) = case.incident.attempts.split_last() else { return false };
        earlier.iter().any(|it| it.call.is_same_change(&last.call) && it.may_come_late())
            && stands(Safeguard::UnseenPatience)
    }

    /// How long a machine that boots may take until it has been well for its dwell.
    pub(super) fn boot_patience(&self, key: &IncidentKey) -> Span {
        self.pool_of(key).map(|pool| pool.deadlines).unwrap_or_default().boot_patience()
    }

    pub(super) fn did_not_hold(&mut self, intent: IntentId, operation: &Operation, text: Arc<str>) {
        let at = self.now;
        self.outbox.record(Record::Judged { at, intent, held: false, text: text.clone() });
        self.incidents.note_attempt(&operation.key, intent, |attempt| attempt.judge(at, false, text));
        self.count_for_closed(intent);
        self.count_again(operation);
        self.land_failed(intent, operation);
    }

    pub(super) fn on_operation_timer(&mut self, intent: IntentId) {
        let Some(operation) = self.book.operations.get(&intent).cloned() else { return };
        match operation.phase {
            Phase::Recording => {}
            // Answered while an earlier process ran: what came of it is looked for, and its answer stays what it was.
            Phase::Calling { .. }
                if self
                    .incidents
                    .attempt(&operation.key, intent)
                    .is_some_and(|attempt| attempt.outcome().is_some()) =>
            {
                self.verify(intent);
            }
            Phase::Calling { .. } => {
                let text = Arc::from("no answer came");
                self.on_done(intent, Outcome::Unknown { text });
            }
            // Also past the deadline: the last read was before it, and one more decides.
            Phase::Verifying { .. } => {
                if let Subject::Machine(machine) = &operation.key.subject {
                    self.dirty.insert(machine.clone());
                }
                self.read_back(intent);
            }
            Phase::Proving { deadline, .. } if self.now >= deadline => {
                self.count_failed_replacement(intent, &operation);
                let text = Arc::from("it took effect and did not help in time");
                self.did_not_hold(intent, &operation, text);
            }
            Phase::Proving { .. } => {}
        }
    }

    /// A machine that goes after its deletion was answered as failed, or was read back as not done, went through us for all that
    /// is known: that it helps has to be proved as for any other.
    pub(super) fn review_doubted(&mut self) {
        let goes = |(intent, operation): (IntentId, &Operation)| {
            let (cloud, id) = PlanContext::instance_of(&operation.key.subject)?;
            let seen = self.clouds.get(cloud).and_then(|view| view.instances.get(id));
            let goes = match seen {
                Some(seen) => seen.goes(),
                None => self.out_of_sight.has_gone(cloud, id),
            };
            (goes && self.book.operation_of(operation.incident).is_none()).then_some(intent)
        };
        let gone: Vec<IntentId> = self.book.doubted().filter_map(goes).collect();
        for intent in gone {
            let Some(operation) = self.book.undoubt(intent) else { continue };
            self.book.operations.insert(intent, operation.clone());
            if let Some(counted) = &operation.counted {
                self.count_fault_of(counted);
            }
            let judged = self
                .incidents
                .attempt(&operation.key, intent)
                .is_some_and(|attempt| attempt.readback.is_some());
            let although =
                if judged { "it was read back as not done" } else { "the call was answered as failed" };
            self.took_effect(intent, &operation, Arc::from(format!("it goes, although {although}")));
        }
    }
}

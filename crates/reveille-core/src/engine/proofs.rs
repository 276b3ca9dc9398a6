//! After the call: fresh reads until the effect is seen or its time is over, and then whether the repair helped.
//!
//! For a group, a rule or a route, a fresh read that shows the effect is enough. A reboot or a replacement must also help:
//! the machine, or one made since, is Ready again for the pool's dwell. Until then the repair keeps its slot. A failure
//! lowers the number of repairs at a time in its domain, and a proof raises it. The number of other Ready machines in the
//! pool proves nothing meanwhile, because people scale pools up and down.
//!
//! Sometimes no fresh read can show the effect: EC2 shows nothing of a reboot in place until the kubelet is back. The
//! reboot then gets its whole patience before it counts as not confirmed and the controller considers the next step. A
//! machine that recovered meanwhile with the boot id from before recovered by itself, and the reboot gets no credit.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::effect::{Call, Look, Outcome, ReadError};
use crate::event::Answer;
use crate::guard::{Guard, stands};
use crate::model::attempt::Ending;
use crate::model::before::{ActionMark, Before};
use crate::model::class::Class;
use crate::model::id::{IncidentId, IntentId, PoolName};
use crate::model::incident::{IncidentKey, MachineKey, Subject};
use crate::model::instance::InstanceState;
use crate::model::time::{Span, Time};
use crate::observe::cluster::ClusterChange;
use crate::plan::budget::{Flight, Phase, REPLACEMENT_FAILED, Width};
use crate::plan::decide::EVIDENCE_WITHIN;
use crate::plan::desk::{Case, Desk};
use crate::record::{Domain, Place, Record, Verdict};
use crate::remedies::{AddRules, DeleteInstance, DeleteNode, Effectiveness, Reboot, Rung};

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
        let asked = self.book.flights.get(&intent).is_some_and(|flight| flight.rung == Rung::Rejoin);
        let within = if asked { BACK_WITHIN } else { self.roster.timing.verify_within };
        let deadline = now + within;
        let Some(patience) = self.book.flights.get(&intent).map(|flight| self.patience(flight)) else {
            return;
        };
        let unseen_until = deadline.max(now + patience);
        if let Some(flight) = self.book.flights.get_mut(&intent) {
            flight.phase = Phase::Verifying { deadline, unseen_until };
            // Should the fault become another one meanwhile (its Node is deleted), the wait goes on in that one's incident.
            if matches!(flight.rung.class(), Class::Reboot)
                && let Some(case) = self.incidents.get_mut(&flight.key)
            {
                case.incident.not_before = Some(unseen_until);
            }
        }
        self.read_back(intent);
    }

    fn read_back(&mut self, intent: IntentId) {
        let Some(flight) = self.book.flights.get(&intent) else { return };
        let again = match flight.phase {
            Phase::Verifying { deadline, unseen_until } if self.now >= deadline => {
                (self.now + READ_UNSEEN_AGAIN).min(unseen_until.max(self.now + READ_AGAIN))
            }
            _ => self.now + READ_AGAIN,
        };
        for look in flight.call.looks_after(flight.before.as_ref()) {
            self.reads.ask(look, LookFor::Verdict(intent));
        }
        self.timers.set(again, Wake::Flight(intent));
    }

    pub(super) fn refresh_subject(&mut self, flight: &Flight) {
        for look in flight.call.looks_after(flight.before.as_ref()) {
            self.reads.ask(look, LookFor::Refresh);
        }
        // Whose the instance is may be what changed: only the instance itself tells, not its log of actions.
        if let Some((cloud, id, _)) = flight.call.owned() {
            self.reads.ask(Look::Instance(cloud.clone(), id.clone()), LookFor::Refresh);
        }
    }

    /// A listing showed the machine stopped while it was stopped and started: it is not, by the time of the answer.
    pub(super) fn refresh_stopped(&mut self, flight: &Flight) {
        if let Some((cloud, instance, _)) = flight.call.owned().filter(|_| self.is_shown_off(flight)) {
            self.reads.ask(Look::Instance(cloud.clone(), instance.clone()), LookFor::Refresh);
        }
    }

    /// The machine that this stops and starts is shown as stopped.
    fn is_shown_off(&self, flight: &Flight) -> bool {
        let Call::Reboot(Reboot { cloud, instance, hard: true, .. }) = &flight.call else { return false };
        let seen = self.clouds.get(cloud).and_then(|view| view.instances.get(instance));
        seen.is_some_and(|seen| seen.instance.state == InstanceState::Stopped)
    }

    /// What the act that is decided changes, as it is before the call.
    pub(super) fn before(&self, case: &Case, call: &Call) -> Option<Before> {
        // What starts or ends shows in the instance's own state.
        let Call::Reboot(_) = call else { return None };
        let desk = self.desk();
        let seen = desk.seen_of(&case.incident.key.subject).map(|(_, seen)| seen);
        let node = seen.and_then(|seen| seen.nodes.first().or(seen.joined.as_ref())).cloned();
        let agent_boot = self.agent_boot(&case.incident.key.subject);
        let (action, node_boot) = (case.gathered.newest_reboot.clone(), self.node_boot(&case.incident.key));
        Some(Before { action, node, node_boot, agent_boot })
    }

    /// The boot id that the machine's Node carries now.
    pub(super) fn node_boot(&self, key: &IncidentKey) -> Option<Arc<str>> {
        let desk = self.desk();
        let (_, seen) = desk.seen_of(&key.subject)?;
        desk.node(seen)?.1.node.boot_id.clone()
    }

    fn agent_boot(&self, subject: &Subject) -> Option<Arc<str>> {
        let Subject::Machine(machine) = subject else { return None };
        self.agents.latest(machine)?.1.report.who.boot.clone()
    }

    pub(super) fn on_verdict_answer(&mut self, intent: IntentId, answer: Result<Answer, ReadError>) {
        let Some(flight) = self.book.flights.get(&intent).cloned() else { return };
        let Phase::Verifying { deadline, unseen_until } = flight.phase else { return };
        let before = flight.before.as_ref().and_then(|before| before.action.as_ref());
        if let (Call::Reboot(_), Some(before), Ok(Answer::Actions(log))) = (&flight.call, before, &answer) {
            self.note_own_request(&flight.key, before, log);
            self.keep_own_request(&flight.key, log);
        }
        let effect = match &answer {
            Err(error) => Effectiveness::Unseen(Arc::from(format!("could not be read back: {}", error.text))),
            Ok(answer) => self.effect_of(&flight, answer),
        };
        let patient = stands(Guard::UnseenPatience);
        match effect {
            Effectiveness::Seen(text) => self.took_effect(intent, &flight, text),
            Effectiveness::NotSeen(text) if self.now >= deadline => self.not_confirmed(intent, &flight, text),
            Effectiveness::Unseen(text) if self.now >= unseen_until || (!patient && self.now >= deadline) => {
                self.not_confirmed(intent, &flight, Arc::from(format!("not confirmed: {text}")));
            }
            // The next read is planned already.
            Effectiveness::NotSeen(_) | Effectiveness::Unseen(_) => {}
        }
    }

    fn not_confirmed(&mut self, intent: IntentId, flight: &Flight, text: Arc<str>) {
        // If the instance goes later, the controller cannot tell which client deleted it: it may be another client, or our
        // own call that was only late.
        self.book.not_deleted(&flight.call);
        let phase = Phase::Calling { since: self.now };
        self.book.doubt(intent, &Flight { phase, ..flight.clone() });
        self.expect_late_reboot(flight);
        self.did_not_hold(intent, flight, text);
    }

    /// It may only be late, or have been answered as failed on its way back: the action log is read once more before the next
    /// step, however fresh the evidence is.
    pub(super) fn expect_late_reboot(&mut self, flight: &Flight) {
        if let (Call::Reboot(_), Some(case)) = (&flight.call, self.incidents.get_mut(&flight.key)) {
            case.gathered.asked_at = None;
            case.gathered.unconfirmed = flight.before.as_ref().and_then(|before| before.action.clone());
        }
    }

    /// It was answered as failed, and may have been made all the same.
    pub(super) fn doubt_answer(&mut self, intent: IntentId, flight: &Flight) {
        self.book.doubt(intent, flight);
        self.expect_late_reboot(flight);
        self.keep_place(flight, self.now);
    }

    /// Until it would have been seen, the place of a call that was answered as failed is not free. Of a reboot the log of actions
    /// tells, which is read once the next try is due.
    pub(super) fn keep_place(&mut self, flight: &Flight, answered: Time) {
        let settled = answered + self.roster.timing.verify_within;
        let until = match flight.rung.class() {
            Class::Replace => settled,
            Class::Reboot => settled + EVIDENCE_WITHIN,
            _ => return,
        };
        self.book.places.forget_free(self.now);
        let place = Place { domain: flight.domain.clone(), settled, until };
        self.book.places.keep(flight.incident, place);
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
        if stands(Guard::UnseenPatience) {
            case.incident.not_before = case.incident.not_before.max(Some(until));
        }
        // Another machine is not rebooted beside it while it boots, also by the next process: no record of an act tells it.
        self.book.places.keep(incident, Place { domain, settled: until, until });
        self.record_ladder(key);
    }

    /// Rules may be there in another spelling than ours: what counts is that nothing is missing any more.
    fn effect_of(&self, flight: &Flight, answer: &Answer) -> Effectiveness {
        if let (Call::AddRules(AddRules { cloud, group, .. }), Answer::Group(Some(_))) =
            (&flight.call, answer)
            && let Some(view) = self.clouds.get(cloud)
            && crate::diagnose::faults::rules_needed(&self.roster, view, group).is_empty()
        {
            return Effectiveness::Seen(Arc::from("read back: no pod rule is missing"));
        }
        let was = flight.before.as_ref().and_then(|before| before.agent_boot.as_ref());
        if let (Call::Reboot(_), Some(was)) = (&flight.call, was)
            && let Some(is) = self.agent_boot(&flight.key.subject).filter(|is| is != was)
        {
            return Effectiveness::Seen(Arc::from(format!("its agent reports another boot id: {is}")));
        }
        flight.call.judge(flight.before.as_ref(), answer)
    }

    pub(super) fn took_effect(&mut self, intent: IntentId, flight: &Flight, text: Arc<str>) {
        let at = self.now;
        self.outbox.record(Record::Judged { at, intent, held: true, text: text.clone() });
        self.book.count_verified(flight.rung);
        self.book.doubt_no_more(flight.incident);
        self.incidents.note_attempt(&flight.key, intent, |attempt| attempt.judge(at, true, text));
        self.drop_node(&flight.call);
        self.timers.clear(&Wake::Flight(intent));
        let patience = self.patience(flight);
        if let Some(case) = self.incidents.get_mut(&flight.key) {
            case.incident.not_before = Some(at + patience);
        }
        if must_be_proved(flight) {
            if let Some(flight) = self.book.flights.get_mut(&intent) {
                let deadline = at + patience;
                // What an earlier process called for may have its successor already, and that counts.
                let inherited = intent <= self.inherited;
                flight.phase = Phase::Proving { deadline, since: at, inherited, well_since: None };
            }
            self.timers.set(at + patience, Wake::Flight(intent));
        } else {
            self.book.flights.remove(&intent);
            if let Some(domain) = flight.domain.clone() {
                self.earn(&domain, intent);
                self.quieten(domain);
            }
        }
        if let Subject::Machine(key) = &flight.key.subject {
            self.dirty.insert(key.clone());
            self.judge_dirty();
        }
        self.ripe.insert(flight.key.clone());
        self.rouse_subject(&flight.key.subject);
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
    pub(super) fn patience(&self, flight: &Flight) -> Span {
        // Its domain is of the pool that the machine was in when this was decided, which the ledger knows before any list does.
        // The case may be closed, as that of a machine that is gone.
        let domain = flight.domain.as_ref().and_then(|domain| self.roster.pools.get(&domain.pool));
        let pool = domain.or_else(|| self.pool_of(&flight.key));
        let deadlines = pool.map(|pool| pool.deadlines).unwrap_or_default();
        let boot = deadlines.boot_patience();
        match flight.rung.class() {
            Class::Replace => deadlines.build_within + boot,
            Class::Reboot if self.may_boot_twice(flight) => boot + boot,
            Class::Reboot => boot,
            _ => self.roster.timing.verify_within,
        }
    }

    /// The same was asked for before, and may only be late: it may boot once more while this boot is waited for.
    fn may_boot_twice(&self, flight: &Flight) -> bool {
        let Some(case) = self.incidents.get(&flight.key) else { return false };
        let Some((last, earlier)) = case.incident.attempts.split_last() else { return false };
        earlier.iter().any(|it| it.call.is_same_change(&last.call) && it.may_come_late())
            && stands(Guard::UnseenPatience)
    }

    /// How long a machine that boots may take until it has been well for its dwell.
    pub(super) fn boot_patience(&self, key: &IncidentKey) -> Span {
        self.pool_of(key).map(|pool| pool.deadlines).unwrap_or_default().boot_patience()
    }

    fn did_not_hold(&mut self, intent: IntentId, flight: &Flight, text: Arc<str>) {
        let at = self.now;
        self.outbox.record(Record::Judged { at, intent, held: false, text: text.clone() });
        self.incidents.note_attempt(&flight.key, intent, |attempt| attempt.judge(at, false, text));
        self.count_for_closed(intent);
        self.count_again(flight);
        self.land_failed(intent, flight);
    }

    /// Counts a replacement that did not help. After so many in a row, the controller suspects the image or template of the
    /// pool.
    fn count_failed_replacement(&mut self, flight: &Flight) {
        let (Call::DeleteInstance(DeleteInstance { instance, .. }), Some(domain)) =
            (&flight.call, &flight.domain)
        else {
            return;
        };
        let fault: Arc<str> = Arc::from(REPLACEMENT_FAILED);
        self.book.count_fault(&domain.pool, instance, &fault);
        self.newcomers.dismiss_witnesses(&domain.pool);
        let (at, pool, instance) = (self.now, domain.pool.clone(), instance.clone());
        self.outbox.record(Record::FaultSeen { at, pool, instance, fault });
    }

    /// The intent failed: its domain cools down, and the case tries again later or climbs.
    fn land_failed(&mut self, intent: IntentId, flight: &Flight) {
        self.book.flights.remove(&intent);
        self.timers.clear(&Wake::Flight(intent));
        if let Some(domain) = &flight.domain {
            let width = self.book.failed(domain, self.now);
            self.record_width(domain, width);
        }
        // An answer that never came, and nothing to be seen of it: that was no try, and no reason for a harsher step.
        let unmade = self.incidents.attempt(&flight.key, intent).filter(|attempt| attempt.came_to_nothing());
        match unmade.and_then(|attempt| attempt.ending.as_ref()).map(Ending::to_string) {
            Some(said) if flight.rung.class() == Class::Reboot && stands(Guard::RightsReturn) => {
                self.postpone(flight, Span::ZERO, &said);
            }
            _ if self.has_lapsed(intent, flight) => {
                self.ripe.insert(flight.key.clone());
            }
            // Another fault took the place of its own meanwhile, and may have given it back: that was counted then.
            _ if !self.incidents.is_open(flight.incident) => {}
            _ => self.try_again(flight),
        }
        self.rouse_subject(&flight.key.subject);
    }

    /// It held, looked mended and came back: that was counted as a try then.
    fn has_lapsed(&self, intent: IntentId, flight: &Flight) -> bool {
        self.incidents.get(&flight.key).is_some_and(|case| case.lapsed.contains(&intent))
    }

    fn record_width(&mut self, domain: &Domain, width: Width) {
        let (at, domain) = (self.now, domain.clone());
        let Width { width, not_before, failures, proved, .. } = width;
        self.outbox.record(Record::Width { at, domain, width, not_before, failures, proved });
    }

    fn earn(&mut self, domain: &Domain, intent: IntentId) {
        let width = self.book.proved(domain, self.now, intent);
        self.record_width(domain, width);
    }

    pub(super) fn on_flight_timer(&mut self, intent: IntentId) {
        let Some(flight) = self.book.flights.get(&intent).cloned() else { return };
        match flight.phase {
            Phase::Recording => {}
            // Answered while an earlier process ran: what came of it is looked for, and its answer stays what it was.
            Phase::Calling { .. }
                if self
                    .incidents
                    .attempt(&flight.key, intent)
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
                if let Subject::Machine(machine) = &flight.key.subject {
                    self.dirty.insert(machine.clone());
                }
                self.read_back(intent);
            }
            Phase::Proving { deadline, .. } if self.now >= deadline => {
                self.count_failed_replacement(&flight);
                let text = Arc::from("it took effect and did not help in time");
                self.did_not_hold(intent, &flight, text);
            }
            Phase::Proving { .. } => {}
        }
    }

    /// A machine that goes after its deletion was answered as failed, or was read back as not done, went through us for all that
    /// is known: that it helps has to be proved as for any other.
    pub(super) fn review_doubted(&mut self) {
        let goes = |(intent, flight): (IntentId, &Flight)| {
            let (cloud, id) = Desk::instance_of(&flight.key.subject)?;
            let seen = self.clouds.get(cloud).and_then(|view| view.instances.get(id));
            let goes = match seen {
                Some(seen) => seen.goes(),
                None => self.out_of_sight.has_gone(cloud, id),
            };
            (goes && self.book.flight_of(flight.incident).is_none()).then_some(intent)
        };
        let gone: Vec<IntentId> = self.book.doubted().filter_map(goes).collect();
        for intent in gone {
            let Some(flight) = self.book.undoubt(intent) else { continue };
            self.book.flights.insert(intent, flight.clone());
            if let Some(counted) = &flight.counted {
                self.count_fault_of(counted);
            }
            let judged =
                self.incidents.attempt(&flight.key, intent).is_some_and(|attempt| attempt.readback.is_some());
            let although =
                if judged { "it was read back as not done" } else { "the call was answered as failed" };
            self.took_effect(intent, &flight, Arc::from(format!("it goes, although {although}")));
        }
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
        let Some((intent, flight)) = self.book.flight_of(case.incident.id) else { return };
        let flight = flight.clone();
        let replaced = flight.rung == Rung::Replace;
        match (&flight.phase, verdict) {
            // The machine is gone, as was wanted: the pool's health is the proof, and keeps the slot.
            (Phase::Proving { .. }, Verdict::SubjectGone | Verdict::Superseded) if replaced => {}
            // It boots still, whatever the fault is called by now.
            (Phase::Proving { .. }, Verdict::Superseded) if boots(&flight) => {}
            (Phase::Proving { .. } | Phase::Verifying { .. }, Verdict::Mended | Verdict::Recovered) => {
                self.book.flights.remove(&intent);
                self.timers.clear(&Wake::Flight(intent));
                if let Some(domain) = flight.domain.clone().filter(|_| self.earns(case, &flight)) {
                    self.earn(&domain, intent);
                }
            }
            (Phase::Proving { .. }, _) => {
                self.book.flights.remove(&intent);
                self.timers.clear(&Wake::Flight(intent));
            }
            // Our stop took longer than its call, and its start was never made: that has an incident of its own by now.
            (Phase::Verifying { .. }, Verdict::Superseded) if self.is_shown_off(&flight) => {
                self.did_not_hold(intent, &flight, Arc::from("it was stopped, and not started"));
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
        let is_over = |flight: &Flight| {
            let is_open = self.incidents.is_open(flight.incident);
            flight.key.subject == key.subject && flight.incident != closed && boots(flight) && !is_open
        };
        let over = self.book.flights.iter().filter(|(_, flight)| is_over(flight)).map(|(intent, _)| *intent);
        for intent in over.collect::<Vec<_>>() {
            self.book.flights.remove(&intent);
            self.timers.clear(&Wake::Flight(intent));
        }
    }

    /// It has been well for its dwell and only a person's word is missing: what was under way for it is proved.
    pub(super) fn prove_unconfirmed(&mut self, key: &IncidentKey) {
        let Some(case) = self.incidents.get(key) else { return };
        let Some((intent, flight)) = self.book.flight_of(case.incident.id) else { return };
        let (domain, earned) = (flight.domain.clone(), self.earns(case, flight));
        self.book.flights.remove(&intent);
        self.timers.clear(&Wake::Flight(intent));
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
    fn earns(&self, case: &Case, flight: &Flight) -> bool {
        let key = &case.incident.key;
        let absent = |other: &Case| other.incident.key != *key && other.incident.key.kind.is_absence();
        // One that is started is on its way up: that it runs is all that was wanted.
        let must_answer = matches!(flight.call, Call::Reboot(_)) && stands(Guard::OwnProof);
        earned(case, flight) && !(must_answer && self.incidents.of(&key.subject).any(absent))
    }

    /// A replacement is proved when a newcomer of the pool answers for its dwell.
    pub(super) fn review_proofs(&mut self) {
        let now = self.now;
        let mut proved = Vec::new();
        let mut wake = None;
        let mut arrived = self.arrived_and_well();
        let mut taken = BTreeMap::new();
        for (intent, flight) in &mut self.book.flights {
            let (Phase::Proving { since, inherited, well_since, .. }, Some(domain)) =
                (&mut flight.phase, &flight.domain)
            else {
                continue;
            };
            if flight.rung != Rung::Replace {
                continue;
            }
            // Others that came back prove nothing of the successor: one that was made since must be among those who answer, and
            // one newcomer is the successor of one.
            let helped = match inherited {
                true => take_one(&mut arrived, &domain.pool),
                false => self.newcomers.next_since(&domain.pool, *since, &mut taken, &self.tally),
            };
            if helped {
                let dwell = self.roster.pools.get(&domain.pool).map_or(Span::ZERO, |p| p.deadlines.dwell);
                let over = *well_since.get_or_insert(now) + dwell;
                if now >= over {
                    proved.push((*intent, domain.clone()));
                } else {
                    wake = Some(over);
                }
            } else {
                *well_since = None;
            }
        }
        if let Some(at) = wake {
            self.timers.set(at, Wake::Proofs);
        }
        for (intent, domain) in proved {
            match self.book.flights.remove(&intent).map(|flight| flight.phase) {
                Some(Phase::Proving { inherited: true, .. }) => self.credit_arrival(&domain.pool),
                Some(Phase::Proving { since, .. }) => {
                    self.newcomers.credit(&domain.pool, since, &self.tally);
                }
                _ => {}
            }
            self.timers.clear(&Wake::Flight(intent));
            self.earn(&domain, intent);
            self.forgive_faults(&domain.pool);
            // The machine that was replaced is long gone: no case of it will say that the domain has fallen quiet.
            self.quieten(domain);
        }
    }

    /// A machine that the controller did not know to have joined is Ready for the first time. It was made after the last process
    /// looked, or in our sight. The controller keeps it while a replacement of an earlier process waits for its successor.
    pub(super) fn note_arrival(&mut self, machine: &MachineKey, pool: &PoolName) {
        let unproved = |flight: &Flight| match flight.phase {
            Phase::Proving { inherited, .. } => inherited,
            Phase::Calling { .. } | Phase::Verifying { .. } => flight.rung == Rung::Replace,
            Phase::Recording => false,
        };
        let inherited = self.book.flights.range(..=self.inherited);
        if inherited.map(|(_, flight)| flight).any(unproved) {
            self.arrived.insert(machine.clone(), pool.clone());
        }
    }

    /// How many of a pool arrived, and answer.
    fn arrived_and_well(&self) -> BTreeMap<PoolName, u32> {
        let mut well = BTreeMap::new();
        for (machine, pool) in &self.arrived {
            if self.tally.is_present(machine) {
                *well.entry(pool.clone()).or_default() += 1;
            }
        }
        well
    }

    /// Each that arrived is the successor of one.
    fn credit_arrival(&mut self, pool: &PoolName) {
        let one = self.arrived.iter().find(|(machine, of)| *of == pool && self.tally.is_present(machine));
        if let Some(machine) = one.map(|(machine, _)| machine.clone()) {
            self.arrived.remove(&machine);
        }
    }
}

/// Credit needs the act's own effect: a machine that became well with the boot id that it had before the call was not made
/// well by its reboot. Without an earlier boot id, it became well after the effect was seen.
pub(super) fn earned(case: &Case, flight: &Flight) -> bool {
    if !stands(Guard::OwnProof) {
        return true;
    }
    let Phase::Proving { since, .. } = flight.phase else { return false };
    // That a stopped instance runs is seen on the instance itself.
    if !matches!(flight.call, Call::Reboot(_)) {
        return true;
    }
    let before = flight.before.as_ref().and_then(|before| before.node_boot.as_ref());
    match before {
        Some(before) => case.well_boot.as_ref().is_some_and(|boot| boot != before),
        None => case.incident.well_since.is_some_and(|well| well > since),
    }
}

/// That it took effect does not show that it helped: its place is kept until that is seen, or its time is over.
pub(super) const fn must_be_proved(flight: &Flight) -> bool {
    let is_nudge = matches!(flight.call, Call::NudgeGroup(_) | Call::NudgeRouter(_));
    is_nudge || matches!(flight.rung.class(), Class::Reboot | Class::Replace)
}

/// Its effect was seen, and its machine is on its way up.
pub(super) fn boots(flight: &Flight) -> bool {
    flight.rung.class() == Class::Reboot && matches!(flight.phase, Phase::Proving { .. })
}

fn take_one(arrived: &mut BTreeMap<PoolName, u32>, pool: &PoolName) -> bool {
    let Some(left) = arrived.get_mut(pool).filter(|left| **left > 0) else { return false };
    *left -= 1;
    true
}

//! The trail: facts, reads, records and refusals in their order, and the fouls of procedure in it.
//!
//! Events go in as the engine gets them, records as it asks for them. A record counts once the ledger has acknowledged it;
//! what a crash swallowed was never there.

use std::sync::Arc;

use reveille_core::effect::{Call, Look, Outcome};
use reveille_core::event::{CloudFact, CloudSnapshot, ClusterFact, Event, Scope};
use reveille_core::model::id::{CloudName, IncidentId, InstanceId, IntentId};
use reveille_core::model::incident::{FaultKind, IncidentKey, MachineKey, Subject};
use reveille_core::model::roster::{Claim, Roster};
use reveille_core::model::time::{Span, Time};
use reveille_core::record::{Domain, Record};
use reveille_core::remedies::Reboot;

use super::{Intent, Opened, Oracle, Scene};

/// A reader of the trail is this much more patient than the engine: a timer may be repair step a moment early or late.
const SLACK: Span = Span::from_s(5);
/// After the ledger refused a record it is left alone for almost as long; then the next intent itself may try it.
const LEDGER_RETRY: Span = Span::from_s(25);
/// No caller waits longer for the answer to a call: a later answer is lost.
const ANSWER_WITHIN: Span = Span::from_min(3);
/// By so much at most a record is asked for later than what it tells, once one was refused.
const WRITTEN_LATE: Span = Span::from_s(30);
/// What a domain waits for at least after a failed probe.
const COOL_DOWN: Span = Span::from_s(60);

impl Oracle {
    pub(super) fn note_event(&mut self, event: &Event, roster: &Roster) {
        let now = self.now;
        if self.stepped_at.is_some_and(|last| now < last || now.since(last) > roster.timing.pause_jump) {
            self.sight_back = now;
        }
        self.hands.note(now, event);
        match event {
            Event::Cloud { cloud, fact: CloudFact::Snapshot { snapshot, .. } } => {
                self.note_listed(cloud, snapshot, roster);
                self.full_heard = self.full_heard.max((snapshot.scope == Scope::Full).then_some(now));
                let unbroken =
                    self.cloud_heard.is_some_and(|at| now.since(at) <= roster.timing.cloud_stale_after);
                if !unbroken {
                    self.sight_back = now;
                }
                self.cloud_heard = Some(now);
            }
            Event::Cluster(ClusterFact::Failed(_) | ClusterFact::Leases(_) | ClusterFact::NodeEvent(_)) => {}
            Event::Cluster(_) => {
                let unbroken =
                    self.cluster_heard.is_some_and(|at| now.since(at) <= roster.timing.cluster_stale_after);
                if !unbroken {
                    self.sight_back = now;
                }
                self.cluster_heard = Some(now);
            }
            Event::Recorded(id) => {
                self.refused_at = None;
                if let Some(record) = self.asked.remove(id) {
                    self.keep(&record);
                }
            }
            Event::RecordFailed(_) => self.refused_at = Some(now),
            Event::Looked { look: id, answer } => {
                self.read_at = Some(now);
                let look = self.looks.remove(id);
                if let Some(look) = &look {
                    self.note_roles(*id, look, answer);
                }
                let of = look.and_then(|look| match look {
                    Look::Console(_, id) | Look::LogEvidence(_, id, _) | Look::Actions(_, id) => Some(id),
                    _ => None,
                });
                if let (Some(id), Ok(_)) = (of, answer) {
                    self.evidence.insert(id, now);
                }
            }
            Event::Done { intent, outcome } => self.note_answer(*intent, outcome),
            _ => {}
        }
    }

    fn note_listed(&mut self, cloud: &CloudName, snapshot: &CloudSnapshot, roster: &Roster) {
        for instance in &snapshot.instances {
            let Claim::Pool(pool) = roster.claim(cloud, instance) else {
                // Without its marks it is in no pool, and a process that sees neither their return nor its end knows of none
                // (seed 7950080).
                self.listed.remove(&instance.id);
                self.hands.forget(&instance.id);
                continue;
            };
            self.hands.note_listed(self.now, instance);
            // What ended stays in EC2's listings for an hour, and tells of no machine that was there.
            if !instance.state.is_leaving() && !self.listed.contains(&instance.id) {
                self.listed.insert(instance.id.clone());
            }
            let Some(image) = &instance.image else { continue };
            let told = self.images_told.entry(pool).or_default();
            if !told.contains(image.as_str()) {
                told.insert(Arc::from(image.as_str()));
            }
        }
    }

    /// The first answer to a call counts; it may come twice.
    fn note_answer(&mut self, intent: IntentId, outcome: &Outcome) {
        let now = self.now;
        let Some(intent) = self.intents.get_mut(&intent).filter(|intent| !intent.answered) else { return };
        intent.answered = true;
        // Judged in vain, it is over.
        if intent.failed {
            return;
        }
        let given_up = intent.called.map(|at| at + ANSWER_WITHIN).filter(|at| *at <= now);
        if let Some(given_up) = given_up.filter(|_| !outcome.never_happened()) {
            intent.done_at = Some(given_up);
            return;
        }
        intent.denied = matches!(outcome, Outcome::Denied { .. });
        let moved_on = matches!(
            outcome,
            Outcome::Failed { .. }
                | Outcome::NotSent { .. }
                | Outcome::Moved { .. }
                | Outcome::Refused { .. }
        );
        // What is gone, or not there, is not deleted by us. With a credential of another project it is there all the same
        // (seed 5805980).
        let not_by_us =
            matches!((outcome, &intent.call), (Outcome::AlreadySo { .. }, Call::DeleteInstance(_)));
        intent.came_to_nothing = moved_on || intent.denied || not_by_us;
        if intent.denied {
            // What was forbidden was not done: it may be asked for again for as long as the fault lasts.
            let call = intent.call.clone();
            if let Some(place) = self.acted.iter().rposition(|(_, acted)| *acted == call) {
                self.acted.remove(place);
            }
        }
        if !intent.came_to_nothing {
            intent.done_at = Some(now);
        }
        match outcome {
            Outcome::Limit { limit, .. } => self.limit_told = limit.map(|limit| limit as usize),
            Outcome::Failed { .. } => {
                let call = intent.call.clone();
                self.failed.push((now, call));
            }
            _ => {}
        }
    }

    /// The ledger has it.
    fn keep(&mut self, record: &Record) {
        if let Record::Joined { machines, .. } = record {
            self.joined.extend(machines.iter().filter_map(|one| instance_ref(&one.machine).cloned()));
        }
        if let Record::Forgotten { machines, .. } = record {
            for gone in machines.iter().filter_map(instance_ref) {
                if let Some(gone) = self.joined.take(gone) {
                    self.joined_and_went.insert(gone);
                }
            }
        }
        if let Record::Returned { machines, .. } = record {
            for back in machines.iter().filter_map(instance_ref) {
                if let Some(back) = self.joined_and_went.take(back) {
                    self.joined.insert(back);
                }
            }
        }
    }

    /// A reboot that is credited with a repair happened.
    fn judge_credit(&mut self, intent: IntentId, scene: &Scene<'_>) {
        let Some(credited) = self.intents.get(&intent) else { return };
        let (Call::Reboot(Reboot { instance, .. }), Some(_)) = (&credited.call, credited.called) else {
            return;
        };
        // One that was answered as failed may have happened all the same.
        let of_it = self.intents.values().filter(|other| other.incident == credited.incident);
        let reboots = of_it.filter(|other| matches!(other.call, Call::Reboot(_)));
        let Some(called) = reboots.filter_map(|other| other.called).min() else { return };
        let what = format!("{} is credited, and the machine has not booted since", credited.call);
        // Of one that ended meanwhile the world knows no boot any more (seed 2303699).
        let Some(booted) = scene.world.booted_at(instance) else { return };
        // A person rebooted it a moment before, and no answer said which request was ours (seed 3220326).
        let a_moment_before = |boot: Time| boot < called && called.since(boot) < Span::from_min(1);
        let unseen = |boot: Time| scene.world.is_let_boot_unseen(instance, boot);
        if booted.is_some_and(|boot| unseen(boot) || !credited.answered && a_moment_before(boot)) {
            return;
        }
        if booted.is_none_or(|boot| boot < called) {
            self.foul("unearned credit", what);
        }
    }

    pub(super) fn judge_record(&mut self, record: &Record, scene: &Scene<'_>) {
        match record {
            Record::Opened { incident, key, pool, .. } => {
                if let (FaultKind::NeverJoined, Subject::Machine(machine)) = (key.kind, &key.subject)
                    && instance_ref(machine).is_some_and(|id| self.joined.contains(id))
                {
                    self.foul("it joined once", format!("{} is called never-joined", key.subject));
                }
                // A refused record is asked for again; the first time counts. What is first seen while the ledger refuses
                // is not asked for before the next retry.
                let at = self.written_at();
                let opened = Opened { key: key.clone(), pool: pool.clone(), at };
                self.open.entry(*incident).or_insert(opened);
            }
            Record::Width { proved: Some(intent), .. } => self.judge_credit(*intent, scene),
            Record::Closed { incident, .. } => {
                self.kept.remove(incident);
                self.open.remove(incident);
            }
            Record::Intended { intent, incident, call, .. } => {
                if self.refused_at.is_some_and(|at| self.ago(at) < LEDGER_RETRY) {
                    self.foul("the ledger refused", format!("{call} is decided while records are refused"));
                }
                self.judge_giving(call, scene.roster);
                let opened = self.open.get(incident);
                let kind = opened.map(|opened| opened.key.kind);
                let domain = opened.and_then(|opened| domain(opened, scene));
                let cooling = domain
                    .as_ref()
                    .filter(|_| call.is_destructive())
                    .and_then(|domain| self.cooling.get(domain))
                    .is_some_and(|failed_at| self.felt(*failed_at) + SLACK < COOL_DOWN);
                if cooling {
                    self.foul("cool-down", format!("{call}, and the last of its kind there has just failed"));
                }
                let intended = Intent {
                    incident: *incident,
                    kind,
                    domain,
                    call: call.clone(),
                    called: None,
                    answered: false,
                    came_to_nothing: false,
                    denied: false,
                    held: false,
                    failed: false,
                    failed_at: None,
                    done_at: None,
                };
                self.intents.insert(*intent, intended);
            }
            // Its process died before the refusal was durable: the next one has heard of none.
            Record::Ended { intent, outcome: Outcome::Unknown { .. }, .. } => {
                if let Some(intent) = self.intents.get_mut(intent).filter(|intent| intent.denied) {
                    (intent.denied, intent.came_to_nothing) = (false, false);
                }
            }
            Record::Kept { incident, until, .. } => {
                let pool = self.open.get(incident).and_then(|opened| opened.pool.clone());
                self.kept.insert(*incident, (pool, *until));
            }
            Record::Judged { intent, held, .. } => self.judge_verdict(*intent, *held),
            _ => {}
        }
    }

    /// When what a record tells may have happened: it is asked for later while the ledger refuses.
    pub(super) fn written_at(&self) -> Time {
        let refuses = self.refused_at.is_some_and(|at| self.ago(at) <= WRITTEN_LATE + SLACK);
        let late = if refuses { WRITTEN_LATE } else { Span::ZERO };
        Time::from_ms(self.now.ms - late.ms)
    }

    fn judge_verdict(&mut self, intent: IntentId, held: bool) {
        let Some(intended) = self.intents.get(&intent).cloned() else { return };
        if let Some(kept) = self.intents.get_mut(&intent).filter(|_| held) {
            if std::mem::replace(&mut kept.held, true) {
                return;
            }
            let read = self.read_at.zip(intended.done_at).is_some_and(|(read, done)| read >= done);
            if intended.done_at.is_some() && !read {
                self.foul("read back", format!("{} counts as done, and it was not looked at", intended.call));
            }
            self.judge_given(&intended);
            return;
        }
        let Some(kept) = self.intents.get_mut(&intent) else { return };
        kept.done_at = None;
        if std::mem::replace(&mut kept.failed, true) {
            return;
        }
        kept.failed_at = Some(self.now);
        if let Some(domain) = intended.domain.filter(|_| intended.call.is_destructive()) {
            self.cooling.insert(domain, self.written_at());
        }
    }

    /// How long an incident has been open by the trail, as far as the process could tell; none for one that is not.
    pub(super) fn open_for(
        &self,
        incident: reveille_core::model::id::IncidentId,
    ) -> Option<(FaultKind, Span)> {
        let opened = self.open.get(&incident)?;
        Some((opened.key.kind, self.felt(opened.at)))
    }

    /// Since when another fault of the same machine is open.
    pub(super) fn open_since(&self, id: &InstanceId, kind: FaultKind) -> Option<Time> {
        let opened = self.open.values().filter(|opened| opened.is_of(id, kind));
        opened.map(|opened| opened.at).min()
    }

    /// This incident is open, and is of this fault of this machine.
    pub(super) fn is_of(&self, incident: IncidentId, id: &InstanceId, kind: FaultKind) -> bool {
        self.open.get(&incident).is_some_and(|opened| opened.is_of(id, kind))
    }

    /// When sight last came back.
    pub(super) const fn sight_back(&self) -> Time {
        self.sight_back
    }
}

impl Opened {
    fn is_of(&self, id: &InstanceId, kind: FaultKind) -> bool {
        instance_of(&self.key) == Some(id) && self.key.kind == kind
    }
}

/// The instance that an incident is about.
pub(super) const fn instance_of(key: &IncidentKey) -> Option<&InstanceId> {
    match &key.subject {
        Subject::Machine(MachineKey::Instance(_, id)) => Some(id),
        _ => None,
    }
}

fn domain(opened: &Opened, scene: &Scene<'_>) -> Option<Domain> {
    let zone = scene.world.ground_truth(instance_of(&opened.key)?)?.zone;
    Some(Domain { pool: opened.pool.clone()?, zone, kind: opened.key.kind })
}

fn instance_ref(key: &MachineKey) -> Option<&InstanceId> {
    match key {
        MachineKey::Instance(_, id) => Some(id),
        MachineKey::Node(_) => None,
    }
}

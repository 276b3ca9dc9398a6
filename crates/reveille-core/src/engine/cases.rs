//! Opens, refreshes and closes the incidents of a machine that was judged (`judging`).
//!
//! A fault that the controller sees opens an incident. When the controller sees the fault again, it refreshes the
//! incident's findings. When the fault is no longer there, the incident closes after the machine has looked well for the
//! pool's dwell. While the state of the machine is unknown, no incident opens or closes, and no timer runs out.

use std::sync::Arc;

use crate::diagnose::fault::Fault;
use crate::model::attempt::Attempt;
use crate::model::evidence::{Evidence, Line};
use crate::model::id::PoolName;
use crate::model::incident::{FaultKind, Finding, Incident, IncidentKey, Subject};
use crate::model::roster::Pool;
use crate::model::time::{Span, Time};
use crate::plan::budget::Phase;
use crate::plan::context::Case;
use crate::plan::{annotations, interlock};
use crate::record::{Domain, Record, Verdict};
use crate::remedies::escalation;
use crate::safeguard::{Safeguard, stands};

use super::{Closed, RECURS_WITHIN, State, Wake, verification};

/// Evidence kept per finding: an incident stays small however much there is to quote.
const EVIDENCE_MAX: usize = 12;

impl State {
    /// Brings the open incidents of a subject in line with the faults that are seen now.
    pub(super) fn settle_cases(
        &mut self,
        subject: &Subject,
        faults: Vec<Fault>,
        blind: Blind,
        label: Arc<str>,
        pool: Option<PoolName>,
    ) {
        let kinds: Vec<FaultKind> = faults.iter().map(|fault| fault.kind).collect();
        for fault in faults {
            let key = IncidentKey { subject: subject.clone(), kind: fault.kind };
            if self.incidents.open().contains_key(&key) {
                self.refresh(&key, fault, &label);
            } else {
                self.open(key, fault, label.clone(), pool.clone());
            }
        }
        let open: Vec<IncidentKey> =
            self.incidents.keys_of(subject).into_iter().filter(|key| !kinds.contains(&key.kind)).collect();
        let other_absence = kinds.iter().any(|kind| kind.is_absence());
        for key in open {
            // A node that is there and not Ready is a new question; that the machine would not join is answered. So is one
            // that is Ready and not in service, whatever was asked before.
            let joined = match key.kind {
                FaultKind::NeverJoined | FaultKind::Vanished => {
                    kinds.contains(&FaultKind::NotReady) || kinds.contains(&FaultKind::NotInService)
                }
                FaultKind::NotReady => kinds.contains(&FaultKind::NotInService),
                _ => false,
            };
            // So is one that runs again: that it was shut off is over, and that its node is not Ready yet is another matter.
            let runs = key.kind == FaultKind::Stopped
                && kinds.iter().all(|kind| !kind.is_absence() || kind.is_of_one_that_runs());
            if key.kind.is_absence() && other_absence && !joined && !runs {
                self.close(&key, Verdict::Superseded);
            } else if !blind.to(self.incidents.get(&key)) {
                self.look_well(&key);
            }
        }
        // A blocker of this subject's incident may have been the subject's own state.
        self.rouse_subject(subject);
        self.touched.extend(self.incidents.keys_of(subject));
    }

    fn open(&mut self, key: IncidentKey, fault: Fault, label: Arc<str>, pool: Option<PoolName>) {
        self.numbers.incident = self.numbers.incident.next();
        let at = self.now;
        let id = self.numbers.incident;
        let (repair_step, tries, not_before) = self.begins_at(&key);
        let kept_until = self.still_kept(&key);
        let opened = Incident::opened(id, key.clone(), pool.clone(), label.clone(), at);
        let mut incident = Incident { repair_step, tries, not_before, kept_until, ..opened };
        let (away_since, served_since) = self.away_since(&key, at);
        let away_since = self.silent_since(&key).map_or(away_since, |since| since.min(away_since));
        let earlier = Some(away_since).filter(|since| *since < at);
        self.outbox.record(Record::Opened {
            at,
            incident: id,
            key: key.clone(),
            pool,
            label,
            served_since,
            away_since: earlier,
            watched_from: None,
            resumed_at: None,
        });
        if (repair_step, tries, not_before) != (0, 0, None) {
            self.outbox.record(Record::CarriedOver {
                incident: id,
                repair_step,
                tries,
                not_before,
                unconfirmed: None,
                lapsed: Vec::new(),
                place: None,
                late_since: None,
                outlasted: None,
            });
        }
        if let Some(until) = kept_until {
            self.outbox.record(Record::Kept { at, incident: id, until });
        }
        if tries >= self.roster.timing.tries && stands(Safeguard::TriesEnd) {
            incident.given_up = true;
            let why = Arc::from("it was mended and came back too often");
            self.outbox.record(Record::GivenUp { at, incident: id, why });
        }
        let mut findings = vec![bounded(fault.finding)];
        findings.extend(fault.more.into_iter().map(bounded));
        incident.findings.clone_from(&findings);
        self.outbox.record(Record::Diagnosed { at, incident: id, findings });
        let Fault { due_after, rests_on_cluster, .. } = fault;
        let case = Case { away_since, served_since, due_after, rests_on_cluster, ..Case::new(incident) };
        self.incidents.insert(case);
        self.note_lost_with_others(&key);
        if let Subject::Machine(machine) = &key.subject {
            self.traces.tell(machine);
        }
        self.ripe.insert(key);
    }

    fn refresh(&mut self, key: &IncidentKey, fault: Fault, label: &Arc<str>) {
        let now = self.now;
        let Some(case) = self.incidents.get_mut(key) else { return };
        if case.due_after != fault.due_after {
            self.ripe.insert(key.clone());
        }
        case.due_after = fault.due_after;
        case.incident.counted_from = case.incident.counted_from.max(fault.counted_from);
        case.rests_on_cluster = fault.rests_on_cluster;
        let incident = &mut case.incident;
        if incident.label != *label {
            incident.label = label.clone();
        }
        let well_since = incident.well_since.take();
        let counted = well_since.and_then(|since| self.relapse(key, since));
        let Some(case) = self.incidents.get_mut(key) else { return };
        let incident = &mut case.incident;
        let mut findings = vec![bounded(fault.finding)];
        findings.extend(fault.more.into_iter().map(bounded));
        // After a restart the evidence behind a finding is not at hand until it is read again: a plainer one does not
        // replace it before. Who deleted a node is told for an hour only: silence later does not unsay it.
        let fades = key.kind == FaultKind::Vanished;
        let plainer = (fades || case.gathered.asked_at.is_none())
            && incident.findings.first().map(|finding| finding.confidence)
                > findings.first().map(|finding| finding.confidence);
        if !plainer && !same_conclusion(&incident.findings, &findings) {
            let id = incident.id;
            incident.findings.clone_from(&findings);
            self.ripe.insert(key.clone());
            self.tell_findings(key, Record::Diagnosed { at: now, incident: id, findings });
        }
        if let Some(used_up) = counted {
            self.count_lapse(key, used_up);
        }
        // It has the fault: that it was well, in this process or in an earlier one, is no news for the next one any more.
        if self.incidents.get_mut(key).is_some_and(|case| case.outlasted.take().is_some()) {
            self.record_escalation(key);
        }
    }

    /// A kubelet writes the conditions of its Node as often as it likes: of a machine whose findings change again and again the
    /// ledger is told seldom.
    fn tell_findings(&mut self, key: &IncidentKey, told: Record) {
        match &key.subject {
            Subject::Machine(machine) if !self.findings_told.may_tell(machine, self.now) => {
                self.findings_told.put_off(machine, false);
            }
            _ => self.outbox.record(told),
        }
    }

    /// Tells what is found now on machines whose findings changed too often.
    pub(super) fn tell_findings_put_off(&mut self) {
        for machine in self.findings_told.due(self.now) {
            self.findings_told.take(&machine);
            self.findings_told.may_tell(&machine, self.now);
            let subject = Subject::Machine(machine);
            let open = self.incidents.of(&subject);
            let told = open.map(|case| (case.incident.id, case.incident.findings.clone()));
            for (incident, findings) in told.collect::<Vec<_>>() {
                self.outbox.record(Record::Diagnosed { at: self.now, incident, findings });
            }
        }
    }

    /// What held did not last, which was counted as a try. The ledger has to know: no record of an act tells it, and the next
    /// process would count that one again.
    pub(super) fn count_lapse(&mut self, key: &IncidentKey, used_up: bool) {
        if used_up {
            self.next_repair_step(key, "it was mended and came back too often");
        }
        if self.incidents.get(key).is_some_and(|case| !case.incident.given_up) {
            self.record_escalation(key);
        }
    }

    /// It looked well since then, and does not any more. Whether this was the last try of its step, where it counts as one.
    fn relapse(&mut self, key: &IncidentKey, since: Time) -> Option<bool> {
        let (now, timing) = (self.now, self.roster.timing);
        let (over, confirms) = (since + self.dwell(key), self.confirms(key));
        let case = self.incidents.get_mut(key)?;
        self.ripe.insert(key.clone());
        let outlasted = case.outlasted.unwrap_or(over);
        // It was well for so long that only a person's word was missing: the waiting begins again.
        let unconfirmed = confirms && now >= over;
        if unconfirmed {
            case.incident.counted_from = now;
        } else if key.kind.is_absence() {
            case.give_time(now);
        }
        // Once: a Node that flaps four times after its reboot was rebooted once.
        let last = case.incident.attempts.last().filter(|last| last.held()).map(|last| last.intent);
        let lapsed = last.is_some_and(|last| case.note_lapse(last));
        if unconfirmed {
            // It may not have been looked at since: while our sight was gone, or at the very moment.
            self.outlast(key, over);
            if now.since(outlasted) > RECURS_WITHIN {
                return None;
            }
        }
        let case = self.incidents.get_mut(key)?;
        // It looked mended and is back within the dwell: that repair did not hold.
        let repair_step = escalation(key.kind).get(usize::from(case.incident.repair_step));
        let allowed = repair_step.map_or(timing.tries, |repair_step| repair_step.tries(timing.tries));
        lapsed.then(|| case.count_try(now, &timing, allowed))
    }

    /// It is not seen any more: the dwell begins, or is over.
    fn look_well(&mut self, key: &IncidentKey) {
        let dwell = self.dwell(key);
        let now = self.now;
        let boot = self.node_boot(key);
        let Some(case) = self.incidents.get_mut(key) else { return };
        if case.incident.well_since.is_none() {
            case.well_boot = boot;
        }
        let since = *case.incident.well_since.get_or_insert(now);
        let over = since + dwell;
        if now < over {
            self.timers.set(over, Wake::Case(key.clone()));
            return;
        }
        let operation = self.book.operation_of(case.incident.id);
        let is_awaited = |phase: &Phase| match phase {
            Phase::Proving { .. } => false,
            // Nothing that could be read by now shows its effect: the machine came right without it.
            Phase::Verifying { deadline, .. } => now < *deadline,
            Phase::Recording | Phase::Calling { .. } => true,
        };
        if operation.is_some_and(|(_, operation)| is_awaited(&operation.phase)) {
            // A listing came before the fresh read of our own call. Until that read is in, the controller cannot tell
            // whether the instance went through another client. Every operation (operation) ends by its own deadline.
            self.timers.set(now + self.roster.timing.cloud_period, Wake::Case(key.clone()));
            return;
        }
        let waits = self
            .incidents
            .get(key)
            .is_some_and(|case| annotations::unconfirmed(&self.context(), case).is_some());
        if waits {
            self.prove_unconfirmed(key);
            self.outlast(key, over);
            return;
        }
        let Some(case) = self.incidents.get(key) else { return };
        let operation = self.book.operation_of(case.incident.id);
        let is_ours = operation.is_none_or(|(_, operation)| verification::earned(case, operation));
        let mended = is_ours && case.incident.attempts.iter().any(Attempt::held);
        self.close(key, if mended { Verdict::Mended } else { Verdict::Recovered });
    }

    /// How long it has to look well until the incident is over.
    pub(super) fn dwell(&self, key: &IncidentKey) -> Span {
        let pool = self.pool_of(key);
        // What is read back afresh needs no dwell of a machine's length, only one more look.
        match (key.kind.is_absence() || key.kind == FaultKind::Unreachable, pool) {
            (true, Some(pool)) => pool.deadlines.dwell,
            _ => self.roster.timing.cloud_period,
        }
    }

    fn confirms(&self, key: &IncidentKey) -> bool {
        self.pool_of(key).is_some_and(|pool| pool.deadlines.confirm)
    }

    /// The pool that an open incident is charged to, as the roster has it: the one that its machine is in now. One that was moved
    /// to a pool of slow machines boots as slowly as those.
    pub(super) fn pool_of(&self, key: &IncidentKey) -> Option<&Pool> {
        let is_in = self.context().seen_of(&key.subject).and_then(|(_, seen)| seen.pool());
        let charged = || self.incidents.get(key)?.incident.pool.as_ref();
        self.roster.pools.get(is_in.or_else(charged)?)
    }

    pub(super) fn close(&mut self, key: &IncidentKey, verdict: Verdict) {
        let Some(case) = self.incidents.remove(key) else { return };
        if let Subject::Machine(machine) = &key.subject {
            self.traces.place(machine, self.incidents.has_open(machine));
        }
        let at = self.now;
        self.ripe.remove(key);
        self.waiting.remove(key);
        self.timers.clear(&Wake::Case(key.clone()));
        self.outbox.record(Record::Closed { at, incident: case.incident.id, verdict, watched_from: None });
        self.land_closed(&case, verdict);
        if key.kind == FaultKind::GroupMissing {
            // The missing security group kept the machine from joining. The group is there now, so the join timer starts
            // again from zero.
            let follower = IncidentKey { subject: key.subject.clone(), kind: FaultKind::NeverJoined };
            if let Some(follower) = self.incidents.get_mut(&follower) {
                follower.incident.counted_from = at;
            }
        }
        let domain = self.domain_of(&case);
        let closed = Closed { incident: case.incident, at, watched_from: at, verdict };
        self.incidents.close(closed, |id| self.book.is_of(id));
        if let Some(domain) = domain {
            self.quieten(domain);
        }
        self.rouse_subject(&key.subject);
    }

    /// When no machine of a domain has an open incident any more, the controller repairs one machine at a time there again,
    /// whatever it proved before.
    pub(super) fn quieten(&mut self, domain: Domain) {
        // Nothing falls back where there is only the default: a thousand incidents that close need not ask each other.
        if !self.book.is_trusted(&domain) {
            return;
        }
        let at = self.now;
        let is_unwell = |other: &&Case| annotations::unconfirmed(&self.context(), other).is_none();
        let of = |other: &Case| self.domain_of(other).as_ref() == Some(&domain);
        let busy = self.incidents.open().values().filter(is_unwell).any(of);
        if !busy && self.book.under_way_in(&domain) == 0 && self.book.quiet(&domain, at) {
            self.outbox.record(Record::Width {
                at,
                domain,
                width: 1,
                not_before: None,
                failures: 0,
                proved: None,
                successor: None,
            });
        }
    }

    pub(super) fn domain_of(&self, case: &Case) -> Option<Domain> {
        let context = self.context();
        let (_, seen) = context.seen_of(&case.incident.key.subject)?;
        interlock::domain(&context, case, seen)
    }
}

/// Whether it can be seen that a fault is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Blind {
    /// It can.
    No,
    /// Not of faults that rest on the cluster's word: the group of a port is seen on the port.
    ToCluster,
    /// It cannot.
    Yes,
}

impl Blind {
    fn to(self, case: Option<&Case>) -> bool {
        match self {
            Self::No => false,
            Self::ToCluster => case.is_none_or(|case| case.rests_on_cluster),
            Self::Yes => true,
        }
    }
}

fn bounded(mut finding: Finding) -> Finding {
    finding.evidence.truncate(EVIDENCE_MAX);
    finding.against.truncate(EVIDENCE_MAX);
    finding.follows.truncate(EVIDENCE_MAX);
    finding.follows = finding.follows.into_iter().map(bounded).collect();
    finding
}

/// Findings are alike when they conclude the same from the same sources and signs; times and ages in a quote may differ, or
/// every reading would be news.
fn same_conclusion(a: &[Finding], b: &[Finding]) -> bool {
    fn alike(a: &Finding, b: &Finding) -> bool {
        let same_place = |(a, b): (&Evidence, &Evidence)| {
            let sign = |line: &Option<Line>| line.as_ref().map(|line| line.sign.clone());
            a.source == b.source && sign(&a.line) == sign(&b.line)
        };
        let evidence =
            a.evidence.len() == b.evidence.len() && a.evidence.iter().zip(&b.evidence).all(same_place);
        (&a.cause, a.stage, a.confidence) == (&b.cause, b.stage, b.confidence)
            && evidence
            && a.against.len() == b.against.len()
            && same_conclusion(&a.follows, &b.follows)
    }
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| alike(a, b))
}

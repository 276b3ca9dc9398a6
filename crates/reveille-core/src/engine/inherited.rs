//! What a new incident takes over from others of its machine: since when it is away, what was tried, the time of a boot, the
//! time for which a person may look at it.

use crate::effect::Call;
use crate::model::attempt::Attempt;
use crate::model::id::IntentId;
use crate::model::incident::{FaultKind, Incident, IncidentKey, Subject};
use crate::model::node::Ready;
use crate::model::time::Time;
use crate::observe::source::Trust;
use crate::plan::budget::{Operation, Phase};
use crate::record::Verdict;
use crate::remedies::escalation;
use crate::safeguard::{Safeguard, stands};

use super::{Closed, RECURS_WITHIN, State};

impl State {
    /// Since when the machine is away, where a fault of this kind opens at this time: another may be open, which closes after
    /// this one opened. Its Node was not Ready for hours, and is deleted. And since when it had been seen to serve by then: the
    /// cluster was in sight without a break, and no such fault of it was open.
    pub(super) fn away_since(&self, key: &IncidentKey, at: Time) -> (Time, Option<Time>) {
        let others = self.incidents.of(&key.subject).filter(|case| case.incident.key.kind.is_absence());
        let first = others.map(|case| (case.away_since, case.served_since)).min_by_key(|(since, _)| *since);
        let sighted = match self.cluster.source.trust(self.now) {
            Trust::Since(since) => Some(since),
            Trust::No(_) => None,
        };
        // Where the list of what closed is full, what closed before its first is not known.
        let forgot = self.incidents.first_known();
        let back = self.closed_lately(&key.subject).find(|closed| closed.incident.key.kind.is_absence());
        let back = back.into_iter().chain(forgot).map(|closed| closed.at).max();
        let served = sighted.map(|since| back.map_or(since, |back| since.max(back)));
        first.filter(|_| key.kind.is_absence()).unwrap_or((at, served))
    }

    /// Since when the Node of an absent machine is not Ready. Its incident opens later where its cloud told nothing then, and was
    /// taken to have served meanwhile with a fault of its network (seed 8581731).
    pub(super) fn silent_since(&self, key: &IncidentKey) -> Option<Time> {
        let (_, seen) = self.context().seen_of(&key.subject).filter(|_| key.kind.is_absence())?;
        let (_, node) = self.context().node(seen)?;
        (node.node.ready != Ready::True).then_some(node.ready_since)
    }

    /// Where a new incident begins on its escalation, with how many tries of that step, and from when on something may be done.
    pub(super) fn begins_at(&self, key: &IncidentKey) -> (u8, u32, Option<Time>) {
        // One that closed a moment ago and is back did not hold: it goes on counting.
        let recurs = self.incidents.closed().rev().find(|closed| {
            closed.incident.key == *key
                && closed.verdict == Verdict::Mended
                && self.now.since(closed.at) <= RECURS_WITHIN
        });
        let (repair_step, tries) = recurs.map_or_else(
            || self.goes_on(key),
            |closed| (closed.incident.repair_step, closed.incident.tries.saturating_add(1)),
        );
        let timing = self.roster.timing;
        let wait = (tries > 0).then(|| timing.backoff_min.doubled(tries - 1, timing.backoff_max));
        let not_before = wait.map(|wait| self.now + wait);
        (repair_step, tries, not_before.max(self.still_waited_for(key)).max(self.still_given_time(key)))
    }

    /// The machine had another fault a moment ago, for which it was rebooted: that act has its whole patience, whatever the fault
    /// is called by now (its Node was not Ready, and the cloud controller deleted it). The other incident may be open still: it
    /// closes after this one opened. Others may have come and gone in between: we start a machine of bare metal, the incident of
    /// its being off ends because it runs, its old Node is not Ready, and ten minutes later that is deleted.
    pub(super) fn still_given_time(&self, key: &IncidentKey) -> Option<Time> {
        // What is stopped is not on its way up.
        if !key.kind.is_absence() || key.kind == FaultKind::Stopped {
            return None;
        }
        let of_it = |last: &&Closed| last.incident.key.subject == key.subject;
        let closed = self.incidents.closed().rev().find(of_it);
        let acted = |last: &Incident| last.attempts.last().is_some_and(|attempt| !attempt.came_to_nothing());
        let closed = closed.filter(|last| last.verdict.leaves_the_fault() && acted(&last.incident));
        let closed = closed.and_then(|last| last.incident.not_before);
        let others = self.open_of(key).filter(|other| other.key.kind.is_absence());
        let open = others.filter_map(|other| self.boots_until(other)).max();
        let before = self.boots_for_another(key);
        let late = self.boots_after_all(key).max(self.may_boot_late(key));
        closed.max(open).max(before).max(late).filter(|until| self.now < *until)
    }

    /// Until when the machine may boot by a reboot that took effect within the dwell before its incident was over: it had come
    /// right by itself before that, and goes away by our reboot (hunt, seed 5202307).
    fn boots_after_all(&self, key: &IncidentKey) -> Option<Time> {
        let late = |closed: &&Closed| {
            let within = closed.at - self.dwell(&closed.incident.key);
            let is_late = |tried: &Attempt| {
                tried.may_boot() && tried.readback.as_ref().is_some_and(|it| it.held && it.at >= within)
            };
            closed.incident.attempts.last().is_some_and(is_late)
        };
        self.closed_lately(&key.subject).filter(late).filter_map(|closed| closed.incident.not_before).max()
    }

    /// Until when the machine may boot by what we did for another of its faults since it went away, be that one over or not. A
    /// reboot that was judged to have been in vain is over.
    fn boots_for_another(&self, key: &IncidentKey) -> Option<Time> {
        let (away_since, _) = self.away_since(key, self.now);
        let open = self.open_of(key).filter(|other| other.key.kind.is_absence());
        let of_it = |closed: &&Closed| closed.incident.key.subject == key.subject && closed.at >= away_since;
        let closed = self.incidents.closed().filter(of_it).map(|closed| &closed.incident);
        let boots = |incident: &&Incident| {
            let last = incident.attempts.last();
            last.is_some_and(|tried| tried.may_boot() && (tried.readback.is_none() || tried.held()))
        };
        open.chain(closed).filter(boots).filter_map(|incident| incident.not_before).max()
    }

    /// Until when a person has the machine kept for a look, where another fault takes the place of the one that it failed by:
    /// they delete its Node, so that its kubelet registers again. Where it went out of sight meanwhile, it is kept as well.
    pub(super) fn still_kept(&self, key: &IncidentKey) -> Option<Time> {
        let open = self.open_of(key);
        let closed = self.closed_lately(&key.subject).take_while(|closed| closed.verdict.leaves_the_fault());
        let others = open.chain(closed.map(|closed| &closed.incident));
        let until = others.filter_map(|incident| incident.kept_until).max();
        until.filter(|until| key.kind.is_absence() && self.now < *until)
    }

    /// A reboot of this machine that was not seen to take effect may be what took it away just now: answered with 504, it came
    /// minutes after the one that was made for it once more, and the machine was deleted while it booted for the second time. The
    /// other incident may be open still.
    pub(super) fn may_boot_late(&self, key: &IncidentKey) -> Option<Time> {
        let late = |tried: &Attempt| tried.may_boot() && !tried.seen;
        let open = self.open_of(key);
        // A clock that was set ahead, or a sleep, is no part of the hour: what is late waits in a queue of the cloud.
        let is_late = |closed: &&Closed| self.now.since(closed.watched_from) <= RECURS_WITHIN;
        let closed = self.incidents.closed().rev().take_while(is_late);
        let closed = closed.filter(|closed| closed.incident.key.subject == key.subject);
        let mut lately = closed.map(|closed| &closed.incident).chain(open);
        let may = lately.any(|incident| incident.attempts.iter().any(late));
        (may && stands(Safeguard::UnseenPatience)).then(|| self.now + self.boot_patience(key))
    }

    /// The open incidents of the same subject.
    fn open_of(&self, key: &IncidentKey) -> impl Iterator<Item = &Incident> {
        self.incidents.of(&key.subject).map(|case| &case.incident)
    }

    /// The incidents of this subject that closed a moment ago, the last that closed first.
    pub(super) fn closed_lately(&self, subject: &Subject) -> impl Iterator<Item = &Closed> {
        let lately = |closed: &&Closed| self.now.since(closed.at) <= RECURS_WITHIN;
        self.incidents
            .closed()
            .rev()
            .take_while(lately)
            .filter(move |closed| closed.incident.key.subject == *subject)
    }

    /// Where the escalation of this fault stood when another fault took its place, a moment ago, and nothing has helped since: a
    /// machine that our own stop left off is started, and has the same fault again.
    pub(super) fn goes_on(&self, key: &IncidentKey) -> (u8, u32) {
        let being_off = |closed: &&Closed| closed.incident.key.kind == FaultKind::Stopped;
        let mut before = self.closed_lately(&key.subject).filter(|it| !being_off(it));
        let unmended = before.by_ref().take_while(|closed| closed.verdict.leaves_the_fault());
        let same = unmended.map(|closed| &closed.incident).find(|last| last.key == *key);
        same.map_or((0, 0), |last| self.goes_on_from(last))
    }

    /// Where the escalation of this incident, which closed, goes on.
    fn goes_on_from(&self, last: &Incident) -> (u8, u32) {
        // What took effect, or had no verdict yet, when the other fault came has not helped: here is the fault again.
        let in_vain =
            |tried: &Attempt| !tried.came_to_nothing() && (tried.readback.is_none() || tried.held());
        let tries = last.tries + u32::from(last.attempts.last().is_some_and(in_vain));
        let repair_step = escalation(last.key.kind).get(usize::from(last.repair_step));
        let used_up =
            repair_step.is_some_and(|repair_step| tries >= repair_step.tries(self.roster.timing.tries));
        if used_up { (last.repair_step.saturating_add(1), 0) } else { (last.repair_step, tries) }
    }

    /// The try of an incident that is closed was in vain, as for the one that goes on from it.
    pub(super) fn count_for_closed(&mut self, intent: IntentId) {
        let is_in_vain = |tried: &Attempt| tried.intent == intent && !tried.came_to_nothing();
        let mut closed = self.incidents.closed_mut().rev().map(|closed| &mut closed.incident);
        if let Some(incident) = closed.find(|incident| incident.attempts.iter().any(is_in_vain)) {
            incident.tries = incident.tries.saturating_add(1);
        }
    }

    /// A call was on its way when its incident closed and this one of the same key opened, which counted it as a try in vain.
    /// Where it turns out that nothing was made, that was none: a power cycle that was never sent had the machine deleted.
    pub(super) fn count_again(&mut self, operation: &Operation) {
        let Some(case) = self.incidents.get(&operation.key).filter(|case| case.incident.attempts.is_empty())
        else {
            return;
        };
        let before = self.incidents.closed().rev().find(|closed| closed.incident.key == operation.key);
        let goes_on =
            |closed: &&Closed| closed.incident.id == operation.incident && closed.verdict.leaves_the_fault();
        let Some(before) = before.filter(goes_on) else { return };
        let (repair_step, tries) = self.goes_on_from(&before.incident);
        if (repair_step, tries) >= (case.incident.repair_step, case.incident.tries) {
            return;
        }
        let Some(case) = self.incidents.get_mut(&operation.key) else { return };
        (case.incident.repair_step, case.incident.tries, case.incident.given_up) =
            (repair_step, tries, false);
        self.ripe.insert(operation.key.clone());
        self.record_escalation(&operation.key);
    }

    /// Until when the reboot that is under way for this incident may show its effect.
    pub(super) fn boots_until(&self, incident: &Incident) -> Option<Time> {
        let (_, operation) = self.book.operation_of(incident.id)?;
        if !matches!(operation.call, Call::Reboot(_) | Call::Start(_)) {
            return None;
        }
        match operation.phase {
            Phase::Recording => None,
            Phase::Calling { since } => Some(since + self.patience(operation)),
            Phase::Verifying { deadline, unseen_until } => Some(deadline.max(unseen_until)),
            Phase::Proving { deadline, .. } => Some(deadline),
        }
    }

    /// The same was tried in vain a moment ago, under another number: its backoff goes on.
    pub(super) fn still_waited_for(&self, key: &IncidentKey) -> Option<Time> {
        let last = self.incidents.newest_closed().find(|last| last.key == *key)?;
        let held = last.attempts.last().is_none_or(Attempt::held);
        last.not_before.filter(|until| !held && self.now < *until)
    }
}

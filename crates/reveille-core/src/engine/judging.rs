//! Judges each dirty machine once: how it stands, what is wrong with it, what it counts as, and when it is looked at again.
//!
//! ```text
//!  dirty ─▶ machine state ─▶ faults ─┬─▶ place in the counts
//!                                    ├─▶ cases: incidents open, refresh, close
//!                                    └─▶ gone, and nothing holds it: forget
//! ```
//!
//! `diagnose` concludes, `cases` keeps the incidents, and `nodes_only` judges Nodes that no listed instance explains.

use std::sync::Arc;

use crate::diagnose::fault::Fault;
use crate::diagnose::faults;
use crate::diagnose::machine_state::MachineState;
use crate::diagnose::{absence, agent_evidence, hosting, service};
use crate::effect::{Call, Look};
use crate::model::id::InstanceName;
use crate::model::incident::{FaultKind, IncidentKey, MachineKey, Subject};
use crate::model::instance::InstanceState;
use crate::model::time::{Span, Time};
use crate::observe::cloud::{Seen, Unlisted};
use crate::observe::remembered::Remembered;
use crate::plan::budget::Phase;
use crate::plan::context::Case;
use crate::record::{Record, Verdict};
use crate::remedies::Reboot;

use super::cases::Blind;
use super::{LookFor, State, Wake};

/// The machine is shown as stopped, and our own stop and start of it says why.
#[derive(Clone, Copy)]
struct OurStop {
    /// From then on it counts as stopped, if nothing else is read until then. `None`: another event ends the wait.
    until: Option<Time>,
}

/// The engine asks again, after this, for an instance that its cloud denied by id while its Node is still there.
const DENIED_AGAIN: Span = Span::from_min(2);

/// The longest wait before that: a Node that a new instance has taken over names the denied one for as long as the new one
/// lives.
const DENIED_SELDOM: Span = Span::from_min(90);

/// So many denials of an instance whose Node is silent are the last word: three hours of asking.
const DENIED_ENOUGH: u8 = 8;

/// That a machine is contested is an incident of its own after so long.
const CONTEST_SETTLES: Span = Span::from_s(60);

#[derive(Default)]
struct Presence {
    gone: bool,
    look: Option<Look>,
}

impl State {
    pub(super) fn judge_dirty(&mut self) {
        while let Some(key) = self.dirty.pop_first() {
            match &key {
                MachineKey::Instance(..) => self.judge_machine(&key),
                MachineKey::Node(name) => self.judge_node_only(&key, &name.clone()),
            }
        }
    }

    /// The state of a machine now; the status report asks as well.
    pub fn machine_state(&self, key: &MachineKey) -> Option<MachineState> {
        let context = self.context();
        let (cloud, seen) = context.seen(key)?;
        Some(absence::judge_instance(context.judge_context(cloud), seen))
    }

    /// No cloud lists it.
    fn judge_unlisted(&mut self, key: &MachineKey) {
        // After a restart, the ledger may name a machine that its cloud has not listed yet. Its state is unknown, so
        // the controller closes no incident of it.
        if self.out_of_sight.unseen().contains_key(key) {
            let place = self.place_unseen(key);
            self.counts.set(key, place);
        } else if self.has_listed(key) {
            self.note_gone_with_incident(key);
            self.forget(key, Verdict::SubjectGone);
        } else {
            // Its cloud's list is doubted. When that ends the machine is gone, or was never ours, and counts no more.
            self.unsure.insert(key.clone());
        }
    }

    fn judge_machine(&mut self, key: &MachineKey) {
        let context = self.context();
        let Some((cloud, seen)) = context.seen(key) else { return self.judge_unlisted(key) };
        let machine_state = absence::judge_instance(context.judge_context(cloud), seen);
        // This holds also for an instance in ERROR: the client that drained its Node may have done so because of that (seed
        // 3600191).
        if matches!(machine_state, MachineState::Absent(_)) && self.note_removed_unseen(key) {
            return self.judge_machine(key);
        }
        if self.waits_for_word(key) {
            return;
        }
        let context = self.context();
        let Some((cloud, seen)) = context.seen(key) else { return };
        let sighted = cloud.source.trust(self.now).is_given();
        let mut faults: Vec<Fault> = Vec::new();
        if let MachineState::Absent(absence) = &machine_state {
            faults.push(Fault::from(absence.clone()));
        }
        let steady = is_expected(&machine_state) && seen.unlisted.is_none();
        if sighted && steady {
            faults.extend(faults::of_machine(&self.roster, cloud, &self.cluster, seen, self.now));
            if let Some((_, agent)) = self.agents.fresh(self.now, key) {
                hosting::announced_to_agent(&agent.report, agent.heard, &mut faults);
            }
        }
        // EC2 shows `stopping` and `stopped` while our own stop and start is being made: that is no fault of its own.
        let state = seen.instance.state;
        let our_stop = (state == InstanceState::Stopped).then(|| self.our_stop(key)).flatten();
        let is_ours = our_stop.is_some();
        faults.retain(|fault| !(is_ours && fault.kind == FaultKind::Stopped));
        let subject = Subject::Machine(key.clone());
        let has_joined = seen.joined.is_some();
        let contest_until = self.await_contest(&subject, has_joined, &mut faults);
        self.enrich(key, &mut faults);
        let context = self.context();
        let Some((_, seen)) = context.seen(key) else { return };
        let place = self.place(key, seen, &machine_state);
        let asked = seen.own_nodes().find_map(|name| self.cluster.nodes.get(name)?.node.intent.asks.clone());
        let (label, pool) = (label(seen), seen.pool().cloned());
        // What is being made or removed does not get well by that: its incidents end when it runs, or is gone.
        let passing = is_ours
            || matches!(machine_state, MachineState::Excused(_))
                && (state.is_leaving() || state == InstanceState::Building);
        let (forget, wake) = self.watch_presence(key, seen, &machine_state);
        self.counts.set(key, place);
        self.note_fleet(key);
        let settled = our_stop.and_then(|stop| stop.until);
        if let Some(at) = wake.into_iter().chain(settled).chain(contest_until).min() {
            self.timers.set(at, Wake::Machine(key.clone()));
        }
        if let Some(look) = forget.look {
            let MachineKey::Instance(cloud, id) = key else { return };
            self.reads.ask(look, LookFor::Missing(cloud.clone(), id.clone()));
        }
        if forget.gone {
            self.forget(key, Verdict::SubjectGone);
            return;
        }
        let blind = !sighted || matches!(machine_state, MachineState::CannotTell(_));
        if blind || passing {
            // A machine that looked well while no list came is looked at again when sight returns: no timer is left for it. One
            // that we stopped and started is pending for a moment, and may have joined again by then.
            self.unsure.insert(key.clone());
        }
        let blind = if passing || contest_until.is_some() || (blind && !(sighted && steady)) {
            Blind::Yes
        } else if blind {
            Blind::ToCluster
        } else {
            Blind::No
        };
        self.settle_cases(&subject, faults, blind, label, pool);
        if let Some(node) = self.context().seen(key).and_then(|(_, seen)| seen.joined.clone()) {
            self.incidents.note_joined_as(&node, key);
        }
        self.note_shown(key);
        self.note_seen_to_go(key);
        self.note_signs(key);
        if let Some(value) = asked.and_then(|asks| asks.repair) {
            self.hear_request(key, &machine_state, value);
        }
    }

    /// Events may come that tell who removed its Node: until then all stays as it is. What a process knows before that, another
    /// one would take for the whole.
    fn waits_for_word(&mut self, key: &MachineKey) -> bool {
        let until = self.context().seen(key).and_then(|(_, seen)| seen.awaits_word_until);
        let until = until.filter(|until| self.now < *until);
        if let Some(until) = until {
            self.unsure.insert(key.clone());
            self.timers.set(until, Wake::Machine(key.clone()));
        }
        until.is_some()
    }

    /// That a machine is contested becomes an incident of its own once it has lasted. What is open about it goes on until then,
    /// and nothing is done. One kubelet that showed the UUIDs of three dead machines in turn, for ten seconds each, began their
    /// deadlines from zero each time: none was repaired, and each was three records in the ledger. Returns when it has lasted.
    ///
    /// That a machine never joined is over at once where it has: it took over the Node of another.
    fn await_contest(
        &mut self,
        subject: &Subject,
        has_joined: bool,
        faults: &mut Vec<Fault>,
    ) -> Option<Time> {
        let now = self.now;
        let is_contested = faults.iter().any(|fault| fault.kind == FaultKind::Duplicate);
        let open = self.incidents.keys_of(subject).into_iter().filter(|key| key.kind.is_absence());
        let open: Vec<IncidentKey> = open.collect();
        let is_answered =
            |kind: FaultKind| kind == FaultKind::Duplicate || kind == FaultKind::NeverJoined && has_joined;
        if open.iter().any(|key| is_answered(key.kind)) {
            return None;
        }
        let mut until = None;
        for key in open {
            let Some(case) = self.incidents.get_mut(&key) else { continue };
            let since = is_contested.then(|| case.contested_since.unwrap_or(now));
            if case.contested_since != since {
                case.contested_since = since;
                self.ripe.insert(key);
            }
            until = until.or(since.map(|since| since + CONTEST_SETTLES).filter(|at| now < *at));
        }
        if until.is_some() {
            faults.retain(|fault| fault.kind != FaultKind::Duplicate);
        }
        until
    }

    /// A stop and start of it is under way: it is not answered, or was not read back, or what was read of the machine may be
    /// older than the answer.
    fn our_stop(&self, key: &MachineKey) -> Option<OurStop> {
        let MachineKey::Instance(cloud, id) = key else { return None };
        let settles_within = self.clouds.get(cloud).map_or(Span::ZERO, |view| view.settles_within);
        let of = |case: &Case| {
            let (_, operation) = self.book.operation_of(case.incident.id)?;
            if !matches!(operation.call, Call::Reboot(Reboot { hard: true, .. })) {
                return None;
            }
            let awaits_reading =
                || self.reads.is_asked(Look::Instance(cloud.clone(), id.clone()), LookFor::Refresh);
            match operation.phase {
                Phase::Calling { .. } => Some(OurStop { until: None }),
                // A listing is that much older than the answer. What is still stopped then was not started: EC2 may take minutes
                // to stop a machine, and the call had ended before that.
                Phase::Verifying { deadline, .. } => (self.now < deadline).then_some(OurStop { until: None }),
                // One part of EC2 shows the launch, and another still shows `stopped`.
                Phase::Proving { since, .. } if self.now.since(since) < settles_within => {
                    Some(OurStop { until: Some(since + settles_within) })
                }
                Phase::Proving { .. } => awaits_reading().then_some(OurStop { until: None }),
                Phase::Recording => None,
            }
        };
        self.incidents.of(&Subject::Machine(key.clone())).find_map(of)
    }

    fn has_listed(&self, key: &MachineKey) -> bool {
        match key {
            MachineKey::Instance(cloud, _) => {
                self.clouds.get(cloud).is_none_or(|view| view.is_known(self.now))
            }
            MachineKey::Node(_) => self.cluster.synced_once(),
        }
    }

    /// What else must happen for a machine that is being proved gone, or whose state has a deadline.
    fn watch_presence(
        &self,
        key: &MachineKey,
        seen: &Seen,
        machine_state: &MachineState,
    ) -> (Presence, Option<Time>) {
        let mut presence = Presence::default();
        let deadlines = seen.pool().and_then(|pool| self.roster.pools.get(pool)).map(|pool| pool.deadlines);
        let deadline = deadlines.and_then(|deadlines| match seen.instance.state {
            InstanceState::Building => Some(seen.state_since + deadlines.build_within),
            InstanceState::Deleting | InstanceState::Gone => Some(seen.state_since + deadlines.delete_within),
            _ => None,
        });
        let judge_context = |cloud| self.context().judge_context(cloud);
        let cloud = self.context().seen(key).map(|(cloud, _)| cloud);
        let failed = cloud.and_then(|view| view.failed_reads(&seen.instance.id));
        let deadline = deadline.or_else(|| service::excused_until(judge_context(cloud?), seen));
        let excused = matches!(machine_state, MachineState::Excused(_) | MachineState::Starting(_));
        let mut wake = deadline.filter(|at| *at > self.now && excused);
        // That its agent fell silent is news, and nothing else would say so.
        let unhealthy = matches!(machine_state, MachineState::Absent(_));
        if let Some((_, agent)) = self.agents.fresh(self.now, key).filter(|_| unhealthy) {
            let silent_at = self.now + self.agents.silent_in(self.now, agent);
            wake = Some(wake.map_or(silent_at, |at| at.min(silent_at)));
        }
        if let Some(unlisted) = seen.unlisted {
            if unlisted.is_gone() {
                presence.gone = seen.nodes.is_empty();
                // A Node stands for what was denied: one of the two is wrong, and a listing of changes need not say which. Where
                // it is silent as well, it may be left for ever, as with k3s, and nothing more is to be learned.
                let answers = || seen.nodes.iter().any(|name| self.cluster.answers(name));
                let asks = !presence.gone && (unlisted.denials < DENIED_ENOUGH || answers());
                let long_gone = self.long_gone_at(key).filter(|at| !presence.gone && *at > self.now);
                wake = long_gone.or(wake);
                if let (true, Some(last), MachineKey::Instance(cloud, id)) = (asks, unlisted.last_denial, key)
                {
                    let times = unlisted.denials.saturating_sub(Unlisted::DENIALS);
                    let again = last + DENIED_AGAIN.doubled(times.into(), DENIED_SELDOM);
                    let again = failed.map_or(again, |it| again.max(it.again(DENIED_AGAIN, DENIED_SELDOM)));
                    if self.now >= again {
                        presence.look = Some(Look::Instance(cloud.clone(), id.clone()));
                    }
                    let again = again.max(self.now + Unlisted::APART);
                    wake = Some(long_gone.map_or(again, |at| at.min(again)));
                }
            } else if let (Some(last), MachineKey::Instance(cloud, id)) = (unlisted.last_denial, key) {
                let again = last + Unlisted::APART;
                let again = failed.map_or(again, |it| again.max(it.again(Unlisted::APART, DENIED_AGAIN)));
                if self.now >= again {
                    presence.look = Some(Look::Instance(cloud.clone(), id.clone()));
                } else {
                    wake = Some(again);
                }
            }
        }
        (presence, wake)
    }

    /// Findings that rest on evidence read on purpose replace the first guess.
    fn enrich(&self, key: &MachineKey, faults: &mut [Fault]) {
        for fault in faults {
            let incident = IncidentKey { subject: Subject::Machine(key.clone()), kind: fault.kind };
            let context = self.context();
            if let (Some(case), Some((cloud, seen))) = (self.incidents.get(&incident), context.seen(key)) {
                faults::enrich(fault, &case.gathered, &self.roster, cloud, seen, self.now);
            }
            if let Some((_, agent)) = self.agents.latest(key) {
                let silent = !self.agents.is_fresh(self.now, agent);
                agent_evidence::hear(fault, &agent.report, agent.heard, silent);
            }
        }
    }

    /// The machine is no more: everything about it closes, and the ledger may forget it.
    fn forget(&mut self, key: &MachineKey, verdict: Verdict) {
        for incident in self.incidents.keys_of(&Subject::Machine(key.clone())) {
            self.close(&incident, verdict);
        }
        self.counts.set(key, None);
        self.timers.clear(&Wake::Machine(key.clone()));
        let MachineKey::Instance(cloud, id) = key else { return self.forget_for_good(key) };
        let Some(seen) = self.clouds.get_mut(cloud).and_then(|view| view.remove(id)) else { return };
        self.let_go_of_nodes(&seen);
        if let Some(joined) = &seen.joined {
            self.incidents.note_joined_as(joined, key);
        }
        let at = self.now;
        if seen.joined.is_some() || seen.pool().is_some() {
            self.outbox.record(Record::Forgotten { at, machines: vec![key.clone()] });
        }
        // It may join and be drained while its cloud denies it.
        self.depart(key.clone(), Remembered { born: None, ..Remembered::of(&seen) });
    }
}

/// Of one that is taken away, or was taken out, nothing is missed, however long it is still there.
fn is_expected(machine_state: &MachineState) -> bool {
    match machine_state {
        MachineState::Excused(_) => false,
        MachineState::Absent(absence) => absence.kind != FaultKind::StuckLeaving,
        _ => true,
    }
}

/// The name of the machine for people: its instance's name, or its id where it has none.
fn label(seen: &Seen) -> Arc<str> {
    let name: &InstanceName = &seen.instance.name;
    if name.as_str().is_empty() { seen.instance.id.shared() } else { name.shared() }
}

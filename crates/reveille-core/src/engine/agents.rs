//! Takes what agents report into the view. The controller then judges their machines again, decides blocked incidents
//! again, and traces the stages of the join.
//!
//! ```text
//!  Said ─▶ AgentsView ─▶ news? ─▶ machine dirty, its incidents ripe ─▶ trace ─▶ Record::Traced, while it has an incident
//! ```
//!
//! A heartbeat that says nothing new costs a few lookups in maps. The controller keeps a trace for each machine whose agent
//! has reported. The ledger holds the trace while the machine has an open incident, and when its agent says that the
//! machine is to go: a restart must not forget that. The controller seldom records a trace in which only the number of
//! attempts changed.

use crate::effect::{Call, Outcome};
use crate::event::AgentFact;
use crate::model::agent::HoldKind;
use crate::model::incident::{MachineKey, Subject};
use crate::model::jump::Jump;
use crate::model::time::{Span, Time};
use crate::model::trace::Trace;
use crate::record::{AgentTold, Record};
use crate::remedies::AskAgent;

use super::State;

/// The controller keeps this many traces. Among machines without an open incident, it drops the trace that has not changed
/// for the longest time. It keeps the trace of a machine that is to go: a restart must not forget that.
const TRACES_MAX: usize = 512;
/// A trace without news is recorded no more often than this.
const TRACED_AGAIN: Span = Span::from_min(2);

/// A machine's trace, and how far the ledger knows it.
#[derive(Clone, Debug, Default)]
pub(super) struct Traced {
    pub(super) trace: Trace,
    /// When it changed last.
    pub(super) changed: Time,
    /// The ledger lacks something that must not be forgotten.
    news: bool,
    /// When it was recorded last, and differs since.
    recorded: Option<Time>,
    differs: bool,
    /// The ledger says that the machine is to go.
    kept_leaving: bool,
    /// Its agent, and what that holds, as the ledger knows it.
    pub(super) told: Option<AgentTold>,
    /// Where it stands among those that may give way; none while it may not.
    place: Option<Time>,
}

impl State {
    pub(super) fn on_agent(&mut self, fact: AgentFact) {
        use crate::observe::agents::Heard;
        let now = self.now;
        match fact {
            AgentFact::Said { agent, report } => match self.agents.said(now, &agent, &report) {
                Heard::PassedOver => {}
                Heard::Same => self.note_stages(&agent),
                Heard::News => {
                    // Not all that have no link: 20,000 agents that are heard before their clouds are listed would cost
                    // 20,000 x 20,000 look-ups.
                    let touched = self.agents.relink_one(&agent, &self.clouds, &self.cluster);
                    self.dirty.extend(touched);
                    self.note_stages(&agent);
                    self.review_agent(&agent);
                }
            },
            AgentFact::Parted { agent, why } => {
                if self.agents.parted(&agent, &why) {
                    self.review_agent(&agent);
                }
            }
            AgentFact::Listening => self.agents.listens(now),
            AgentFact::Deaf(_) => self.agents.is_deaf(now),
        }
    }

    /// Machines came, went or got their ids: agents that hung on a weak link, or on none, may belong elsewhere now.
    pub(super) fn relink_agents(&mut self) {
        if self.agents.is_empty() {
            return;
        }
        let touched = self.agents.relink(&self.clouds, &self.cluster);
        self.dirty.extend(touched);
    }

    /// The agent's report is news for its machine: the engine judges the machine again, and decides its blocked incidents
    /// again.
    pub(super) fn review_agent(&mut self, agent: &crate::model::id::AgentId) {
        let Some(machine) = self.machine_of(agent) else { return };
        let cases: Vec<_> = self.cases_of(&Subject::Machine(machine.clone())).collect();
        self.ripe.extend(cases);
        self.dirty.insert(machine);
    }

    /// The machine that this agent speaks for.
    fn machine_of(&self, agent: &crate::model::id::AgentId) -> Option<MachineKey> {
        let machine = &self.agents.get(agent)?.link.as_ref()?.machine;
        self.agents.of(machine).any(|(of, _)| of == agent).then(|| machine.clone())
    }

    /// The stages that its agent speaks of, and what it holds.
    fn note_stages(&mut self, agent: &crate::model::id::AgentId) {
        let Some(machine) = self.machine_of(agent) else { return };
        let Some(report) = self.agents.get(agent).map(|seen| seen.report.clone()) else { return };
        let now = self.now;
        let hold = if report.unsaid { self.agents.hold(&machine).cloned() } else { report.hold.clone() };
        let told = AgentTold { agent: agent.clone(), hold };
        let traced = self.trace_of(&machine);
        let before = traced.trace.clone();
        let mut news = traced.trace.hears(&report.stages, now);
        let kind = |told: &AgentTold| told.hold.as_ref().map(|hold| hold.kind);
        news |= traced.told.as_ref().map(kind) != Some(kind(&told));
        traced.told = Some(told);
        traced.news |= news;
        if news || traced.trace != before {
            (traced.changed, traced.differs) = (now, true);
        }
        self.place_trace(&machine);
        self.untold.insert(machine);
    }

    /// How far clouds and cluster show a machine that has an agent.
    pub(super) fn note_shown(&mut self, machine: &MachineKey) {
        if self.agents.latest(machine).is_none() {
            return;
        }
        let Some(stage) =
            self.desk().seen(machine).map(|(_, seen)| crate::diagnose::way::shown(&self.cluster, seen))
        else {
            return;
        };
        let now = self.now;
        let traced = self.trace_of(machine);
        if traced.trace.shows(stage, now) {
            (traced.changed, traced.differs, traced.news) = (now, true, true);
            self.untold.insert(machine.clone());
        }
        self.place_trace(machine);
    }

    /// An agent that answered lives, and one that could not be reached cannot be asked until it is heard again.
    pub(super) fn hear_answer(&mut self, call: &Call, outcome: &Outcome) {
        let Call::AskAgent(AskAgent { agent, .. }) = call else { return };
        match outcome {
            Outcome::Accepted { .. } | Outcome::AlreadySo { .. } | Outcome::Refused { .. } => {
                self.agents.answered(self.now, agent);
            }
            Outcome::Failed { text, .. } => {
                self.agents.parted(agent, text);
            }
            _ => {}
        }
    }

    fn trace_of(&mut self, machine: &MachineKey) -> &mut Traced {
        let is_full = !self.traces.contains_key(machine) && self.traces.len() >= TRACES_MAX;
        if is_full && let Some((_, oldest)) = self.idle_traces.pop_first() {
            self.traces.remove(&oldest);
        }
        self.traces.entry(machine.clone()).or_default()
    }

    /// Sets again whether a trace may be dropped, and in which order. The code that changes a trace, or opens or closes an
    /// incident, calls this. A search for the oldest trace instead walks over all of them for each machine of an outage,
    /// and finds none to drop.
    pub(super) fn place_trace(&mut self, machine: &MachineKey) {
        let amiss = self.is_amiss(machine);
        let Some(traced) = self.traces.get_mut(machine) else { return };
        let place = (!amiss && !traced.is_leaving()).then_some(traced.changed);
        let before = std::mem::replace(&mut traced.place, place);
        if before == place {
            return;
        }
        if let Some(before) = before {
            self.idle_traces.remove(&(before, machine.clone()));
        }
        if let Some(place) = place {
            self.idle_traces.insert((place, machine.clone()));
        }
    }

    pub(super) fn drop_trace(&mut self, machine: &MachineKey) {
        if let Some(place) = self.traces.remove(machine).and_then(|traced| traced.place) {
            self.idle_traces.remove(&(place, machine.clone()));
        }
    }

    /// The clock went back.
    pub(super) fn traces_go_back_to(&mut self, now: Time) {
        self.traces.values_mut().for_each(|traced| traced.go_back_to(now));
        let machines: Vec<_> = self.traces.keys().cloned().collect();
        machines.iter().for_each(|machine| self.place_trace(machine));
    }

    /// What a restart must not forget of the traces that changed.
    pub(super) fn record_traces(&mut self) {
        let at = self.now;
        for machine in std::mem::take(&mut self.untold) {
            let amiss = self.is_amiss(&machine);
            let Some(traced) = self.traces.get_mut(&machine) else { continue };
            let leaving = traced.is_leaving();
            let again = traced.recorded.is_none_or(|last| at.since(last) >= TRACED_AGAIN);
            let due = traced.news || (traced.differs && again);
            // What is taken back is told, too: of a machine that serves the ledger would say for ever that it is to go.
            if !(due && (amiss || leaving || traced.kept_leaving)) {
                continue;
            }
            (traced.news, traced.differs, traced.recorded) = (false, false, Some(at));
            traced.kept_leaving = leaving;
            let (trace, told) = (traced.trace.clone(), traced.told.clone());
            self.outbox.record(Record::Traced { at, machine, trace, told });
        }
    }

    /// A machine's way through the stages, as far as its agent reported it.
    pub fn trace(&self, machine: &MachineKey) -> Option<&Trace> {
        self.traces.get(machine).map(|traced| &traced.trace)
    }

    /// Its incidents are open, and the ledger does not know yet how far it came.
    pub(super) fn tell_trace(&mut self, machine: &MachineKey) {
        if let Some(traced) = self.traces.get_mut(machine) {
            traced.news = true;
            self.untold.insert(machine.clone());
            self.place_trace(machine);
        }
    }

    /// The traces that the ledger keeps: of machines with an open incident, and of those that are to go.
    pub(super) fn kept_traces(&self) -> impl Iterator<Item = (&MachineKey, &Traced)> {
        let kept = |(machine, traced): &(&MachineKey, &Traced)| traced.is_leaving() || self.is_amiss(machine);
        self.traces.iter().filter(kept)
    }

    fn is_amiss(&self, machine: &MachineKey) -> bool {
        self.cases_of(&Subject::Machine(machine.clone())).next().is_some()
    }
}

impl Traced {
    pub(super) fn of_ledger(trace: Trace, told: Option<AgentTold>, at: Time) -> Self {
        let known = Self {
            trace,
            changed: at,
            news: false,
            recorded: Some(at),
            differs: false,
            told,
            ..Self::default()
        };
        Self { kept_leaving: known.is_leaving(), ..known }
    }

    /// Its times go over a jump.
    pub(super) fn over(&mut self, jump: Jump) {
        // The place follows from when it changed: `State::traces_go_back_to`, directly afterwards.
        let Self { trace, changed, recorded, news: _, differs: _, kept_leaving: _, told: _, place: _ } = self;
        trace.over(jump);
        jump.stands([changed]);
        jump.stands(recorded);
    }

    /// The clock went back.
    pub(super) fn go_back_to(&mut self, now: Time) {
        self.trace.go_back_to(now);
        self.changed = self.changed.min(now);
        self.recorded = self.recorded.map(|at| at.min(now));
    }

    /// Its agent said that it is to go, and has not taken it back.
    pub(super) fn is_leaving(&self) -> bool {
        let hold = self.told.as_ref().and_then(|told| told.hold.as_ref());
        hold.is_some_and(|hold| hold.kind == HoldKind::Leaving)
    }
}

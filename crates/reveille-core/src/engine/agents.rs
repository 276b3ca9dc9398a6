//! Agents into the view, and what follows: machines are judged anew, what was held is decided again, stages are traced.
//!
//! ```text
//!  Said ─▶ AgentsView ─▶ news? ─▶ its machine is dirty, its cases are ripe ─▶ trace ─▶ Record::Traced, while it is amiss
//! ```
//!
//! A heartbeat that says nothing new costs one look into a map. A trace is kept for machines whose agent was heard; it goes
//! into the ledger while something is amiss with the machine, and when its agent says that it is to go: that a restart must
//! not forget. Attempts alone are recorded seldom.

use crate::effect::{Call, Outcome};
use crate::event::AgentFact;
use crate::model::agent::HoldKind;
use crate::model::incident::{MachineKey, Subject};
use crate::model::time::{Span, Time};
use crate::model::trace::Trace;
use crate::record::{AgentTold, Record};

use super::State;

/// So many traces are kept; of machines with which nothing is amiss, the one that stood still the longest gives way. The
/// trace of a machine that is to go stays: a restart must not forget that.
const TRACES_MAX: usize = 512;
/// What is no news of a trace is recorded no more often than this.
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
    /// Its agent, and what that holds, as the ledger knows it.
    pub(super) told: Option<AgentTold>,
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

    /// What its agent says is news for its machine: it is judged again, and what was held is decided again.
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
    }

    /// An agent that answered lives, and one that could not be reached cannot be asked until it is heard again.
    pub(super) fn hear_answer(&mut self, call: &Call, outcome: &Outcome) {
        let Call::AskAgent { agent, .. } = call else { return };
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
        if !self.traces.contains_key(machine) && self.traces.len() >= TRACES_MAX {
            let idle = |key: &&MachineKey| self.cases_of(&Subject::Machine((*key).clone())).next().is_none();
            let quiet = self.traces.iter().filter(|(key, traced)| idle(key) && !traced.is_leaving());
            let oldest = quiet.min_by_key(|(_, traced)| traced.changed).map(|(key, _)| key.clone());
            if let Some(oldest) = oldest {
                self.traces.remove(&oldest);
            }
        }
        self.traces.entry(machine.clone()).or_default()
    }

    /// What a restart must not forget of the traces that changed.
    pub(super) fn record_traces(&mut self) {
        let at = self.now;
        for machine in std::mem::take(&mut self.untold) {
            let amiss = self.cases_of(&Subject::Machine(machine.clone())).next().is_some();
            let Some(traced) = self.traces.get_mut(&machine) else { continue };
            let leaving = traced.is_leaving();
            let again = traced.recorded.is_none_or(|last| at.since(last) >= TRACED_AGAIN);
            let due = traced.news || (traced.differs && again);
            if !(due && (amiss || leaving)) {
                continue;
            }
            (traced.news, traced.differs, traced.recorded) = (false, false, Some(at));
            let (trace, told) = (traced.trace.clone(), traced.told.clone());
            self.record(Record::Traced { at, machine, trace, told });
        }
    }

    /// A machine's way through the stages, as far as anybody told.
    pub fn trace(&self, machine: &MachineKey) -> Option<&Trace> {
        self.traces.get(machine).map(|traced| &traced.trace)
    }

    /// Its incidents are open, and the ledger does not know yet how far it came.
    pub(super) fn tell_trace(&mut self, machine: &MachineKey) {
        if let Some(traced) = self.traces.get_mut(machine) {
            traced.news = true;
            self.untold.insert(machine.clone());
        }
    }

    /// The traces that the ledger keeps: of machines with which something is amiss, and of those that are to go.
    pub(super) fn kept_traces(&self) -> impl Iterator<Item = (&MachineKey, &Traced)> {
        let kept = |(machine, traced): &(&MachineKey, &Traced)| {
            traced.is_leaving() || self.cases_of(&Subject::Machine((*machine).clone())).next().is_some()
        };
        self.traces.iter().filter(kept)
    }
}

impl Traced {
    pub(super) fn of_ledger(trace: Trace, told: Option<AgentTold>, at: Time) -> Self {
        Self { trace, changed: at, news: false, recorded: Some(at), differs: false, told }
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

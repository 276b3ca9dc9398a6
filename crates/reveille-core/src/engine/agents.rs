//! Takes what agents report into the view. The controller then judges their machines again, decides blocked incidents
//! again, and traces the stages of the join (`traces`).
//!
//! ```text
//!  Said ─▶ AgentsView ─▶ news? ─▶ machine dirty, its incidents ripe ─▶ Traces ─▶ Record::Traced
//! ```
//!
//! A heartbeat that says nothing new costs a few lookups in maps.

use crate::effect::{Call, Outcome};
use crate::event::AgentFact;
use crate::model::incident::{MachineKey, Subject};
use crate::model::trace::Trace;
use crate::record::AgentTold;
use crate::remedies::AskAgent;

use super::State;

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
        self.ripe.extend(self.incidents.keys_of(&Subject::Machine(machine.clone())));
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
        let blocker =
            if report.unsaid { self.agents.blocker(&machine).cloned() } else { report.blocker.clone() };
        let told = AgentTold { agent: agent.clone(), blocker };
        let has_open = self.incidents.has_open(&machine);
        self.traces.hear(machine, &report.stages, told, now, has_open);
    }

    /// How far clouds and cluster show a machine that has an agent.
    pub(super) fn note_shown(&mut self, machine: &MachineKey) {
        if self.agents.latest(machine).is_none() {
            return;
        }
        let Some(stage) =
            self.context().seen(machine).map(|(_, seen)| crate::diagnose::way::shown(&self.cluster, seen))
        else {
            return;
        };
        let has_open = self.incidents.has_open(machine);
        self.traces.show(machine, stage, self.now, has_open);
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

    /// What a restart must not forget of the traces that changed.
    pub(super) fn record_traces(&mut self) {
        let records = self.traces.take_untold(self.now, |machine| self.incidents.has_open(machine));
        records.into_iter().for_each(|record| self.outbox.record(record));
    }

    /// A machine's way through the stages, as far as its agent reported it.
    pub fn trace(&self, machine: &MachineKey) -> Option<&Trace> {
        self.traces.get(machine)
    }
}

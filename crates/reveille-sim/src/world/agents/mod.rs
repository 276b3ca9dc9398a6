//! Agents on the machines: the shipped [`reveille_agent::State`], once for each, with this world around it.
//!
//! ```text
//!  plan (given) ─▶ start ─▶ State::step ─▶ InvariantChecker ─▶ effects ─▶ answers (what is so) ─▶ Event, later
//!                              ▲                        └──────▶ acts (what is done)  ─▶ guests, watchdogs
//!                              └── wake-ups, answers, peers' questions ◀─────────────────────┘
//! ```
//!
//! The world decides nothing for an agent: the crate that ships the agent decides what it concludes and does. The invariant
//! checker of that crate's tests checks the agent after each of its steps. Agents draw their delays from a stream of their own,
//! so that a world with none is what it was, byte for byte. The engine knows only agents that a layout lets report (`reports`).

mod acts;
mod answers;
pub(crate) mod reports;

use std::collections::{BTreeMap, BTreeSet};

use reveille_agent::effect::Verb;
use reveille_agent::invariants::InvariantChecker;
use reveille_agent::model::{Device, Machine, OperationId, PeerAnswer, Role};
use reveille_agent::{Effect, Event, Memory, Start, State};
use reveille_core::model::id::{InstanceId, NodeName, ZoneName};
use reveille_core::model::time::{Span, Time};

use crate::rng::{Rng, Stream};

use super::agent_plan::{Oddity, Whom};
use super::kubelet_credentials::KubeletCredentials;
use super::{Task, World};

/// From whom a machine is cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// From the API server alone.
    Api,
    /// From every other host.
    All,
}

/// A step of an agent that waits for its time.
#[derive(Clone, Debug)]
pub(crate) enum AgentTask {
    Start,
    Hear(Event),
    Wake(u64),
    Look(OperationId),
    Do(OperationId, Verb),
    Bite,
    /// A report is due, unless another was since.
    Report(u64),
}

/// One agent.
#[derive(Clone, Debug)]
pub(super) struct Agent {
    state: State,
    checker: InvariantChecker,
    /// What is durable on its disk.
    memory: Memory,
    machine: Machine,
    /// Whom it was told of last.
    peers: BTreeMap<NodeName, Option<ZoneName>>,
    /// Its process; what was planned for one before it is void.
    life: u64,
    wakes: u64,
    /// What its watchdog is set to, and whether it obeys.
    watchdog: Option<Span>,
    fed_at: Time,
    obeys: bool,
    has_token: bool,
}

/// An agent said or did something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentSaid {
    /// When.
    pub at: Time,
    /// On which machine.
    pub machine: InstanceId,
    /// What.
    pub text: String,
}

/// An agent did something to its machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentAct {
    /// When it was asked for.
    pub at: Time,
    /// To which machine.
    pub machine: InstanceId,
    /// What.
    pub verb: Verb,
}

/// All of them, and what they find.
#[derive(Clone, Debug)]
pub(super) struct Agents {
    on: BTreeMap<InstanceId, Agent>,
    pub(super) cuts: BTreeMap<InstanceId, Cut>,
    /// Orders that stand in the API.
    orders: BTreeSet<InstanceId>,
    /// The agents that report to Reveille.
    reporters: BTreeMap<InstanceId, reports::Reporter>,
    /// Ways to Reveille that are bad.
    ways: BTreeMap<InstanceId, reports::Way>,
    /// Who says wrongly that an order stands for whom.
    lies: BTreeSet<(InstanceId, InstanceId)>,
    said: Vec<AgentSaid>,
    untold: usize,
    acts: Vec<AgentAct>,
    broken: Vec<(Time, String)>,
    delays: Rng,
}

impl Agents {
    pub(super) const fn new(seed: u64) -> Self {
        Self {
            on: BTreeMap::new(),
            cuts: BTreeMap::new(),
            orders: BTreeSet::new(),
            reporters: BTreeMap::new(),
            ways: BTreeMap::new(),
            lies: BTreeSet::new(),
            said: Vec::new(),
            untold: 0,
            acts: Vec::new(),
            broken: Vec::new(),
            delays: Rng::new(seed, Stream::Agents),
        }
    }
}

/// Before an agent's process runs, after its machine does.
const STARTS_WITHIN: (i64, i64) = (400, 900);

impl World {
    /// True when the layout asks for an agent anywhere.
    pub fn has_agents(&self) -> bool {
        !self.layout.agents.on.is_empty()
    }

    /// The machine runs: so does its agent, if it is to have one.
    pub(super) fn start_agent(&mut self, id: &InstanceId) {
        if !self.layout.agents.on.iter().any(|whom| self.means(whom, id)) {
            return;
        }
        let life = self.agents.on.get(id).map_or(0, |agent| agent.life) + 1;
        let machine =
            self.agents.on.get(id).map_or_else(|| self.machine_of(id), |agent| agent.machine.clone());
        let memory = self.agents.on.get(id).map(|agent| agent.memory.clone()).unwrap_or_default();
        let pool = self.project.servers.get(id).and_then(|server| server.pool.clone());
        let own = pool.and_then(|pool| self.layout.agents.of_pool.get(&pool));
        let Ok((config, warnings)) = own.unwrap_or(&self.layout.agents.settings).check() else { return };
        let name = self.node_name_of(id);
        let checker = self.agents.on.get(id).map(|agent| agent.checker.clone());
        let mut checker = checker.unwrap_or_else(|| InvariantChecker::new(name.clone(), *config.settings()));
        checker.restart();
        let start = Start { name, config, warnings, memory: memory.clone() };
        let peers = self.agents.on.get(id).map(|agent| agent.peers.clone()).unwrap_or_default();
        let agent = Agent {
            state: State::new(start),
            checker,
            memory,
            machine,
            peers,
            life,
            wakes: 0,
            watchdog: None,
            fed_at: self.now,
            obeys: true,
            has_token: false,
        };
        self.agents.on.insert(id.clone(), agent);
        self.plan_for(id, STARTS_WITHIN, AgentTask::Start);
        self.begin_to_speak(id);
    }

    /// What speaks of an agent speaks of this machine.
    fn means(&self, whom: &Whom, id: &InstanceId) -> bool {
        let Some(server) = self.project.servers.get(id) else { return false };
        match whom {
            Whom::Named(names) => names.iter().any(|name| *name == *server.instance.name.as_str()),
            Whom::OfPool(pool) => server.pool.as_ref() == Some(pool),
            Whom::OfZone(zone) => server.pool.is_some() && server.instance.zone.as_ref() == Some(zone),
            Whom::All => server.pool.is_some(),
        }
    }

    pub(super) fn is_odd(&self, id: &InstanceId, oddity: Oddity) -> bool {
        self.layout.agents.odd.iter().any(|(whom, odd)| *odd == oddity && self.means(whom, id))
    }

    /// The credentials that a machine is made with.
    pub(super) fn credentials_of_old(&self, id: &InstanceId) -> KubeletCredentials {
        let odd = self.layout.agents.odd.iter().find_map(|(whom, odd)| match odd {
            Oddity::KubeletCredentials(kubelet_credentials) if self.means(whom, id) => {
                Some(*kubelet_credentials)
            }
            _ => None,
        });
        odd.unwrap_or_default()
    }

    fn machine_of(&self, id: &InstanceId) -> Machine {
        let spare = self.layout.agents.odd.iter().find_map(|(whom, odd)| match odd {
            Oddity::ControlPlane(spare) if self.means(whom, id) => Some(*spare),
            _ => None,
        });
        let watchdog = if self.is_odd(id, Oddity::NoWatchdog) {
            Device::Absent
        } else if self.is_odd(id, Oddity::WatchdogForbidden) {
            Device::Forbidden
        } else {
            Device::Usable
        };
        Machine {
            zone: self.project.servers.get(id).and_then(|server| server.instance.zone.clone()),
            watchdog,
            may_reboot: !self.is_odd(id, Oddity::MayNotReboot),
            role: spare.map_or(Role::Worker, |spare| Role::ControlPlane { spare }),
            joining: false,
        }
    }

    fn plan_for(&mut self, id: &InstanceId, (from_ms, to_ms): (i64, i64), task: AgentTask) {
        let Some(life) = self.agents.on.get(id).map(|agent| agent.life) else { return };
        let after = self.agents.delays.span(Span::from_ms(from_ms), Span::from_ms(to_ms));
        self.plan(after, Task::Agent(id.clone(), life, task));
    }

    pub(super) fn run_agent(&mut self, id: &InstanceId, life: u64, task: AgentTask) {
        if let AgentTask::Bite = task {
            return self.bite(id);
        }
        let powered = self.vms.get(id).is_some_and(|vm| vm.powered);
        let Some(agent) = self.agents.on.get(id).filter(|agent| agent.life == life && powered) else {
            return;
        };
        match task {
            AgentTask::Start => {
                let machine = agent.machine.clone();
                let peers = agent.peers.clone();
                self.let_hear(id, Event::Found(machine));
                self.let_hear(id, Event::PeersListed(peers));
                self.tell_peers(id);
            }
            AgentTask::Hear(event) => self.let_hear(id, event),
            AgentTask::Wake(wake) if agent.wakes == wake => self.let_hear(id, Event::Tick),
            AgentTask::Wake(_) | AgentTask::Bite => {}
            AgentTask::Look(operation) => {
                let found = self.inspection(id);
                self.let_hear(id, Event::Inspected { operation, found });
            }
            AgentTask::Do(operation, verb) => self.do_verb(id, operation, verb),
            AgentTask::Report(due) => self.speak(id, due),
        }
    }

    fn let_hear(&mut self, id: &InstanceId, event: Event) {
        let now = self.now;
        let Some(agent) = self.agents.on.get_mut(id) else { return };
        agent.checker.hear(now, &event);
        let effects = agent.state.step(now, event);
        if let Err(violation) = agent.checker.check(now, &effects) {
            self.agents.broken.push((now, violation.to_string()));
        }
        for effect in effects {
            self.perform_for(id, effect);
        }
        self.speak_of_news(id);
    }

    fn perform_for(&mut self, id: &InstanceId, effect: Effect) {
        match effect {
            Effect::Report(report) => {
                self.agents.said.push(AgentSaid {
                    at: self.now,
                    machine: id.clone(),
                    text: report.to_string(),
                });
            }
            Effect::WakeAt(at) => {
                let Some(agent) = self.agents.on.get_mut(id) else { return };
                agent.wakes += 1;
                let (life, wake) = (agent.life, agent.wakes);
                let after = at.since(self.now);
                self.plan(after, Task::Agent(id.clone(), life, AgentTask::Wake(wake)));
            }
            Effect::Record(operation, memory, _) => {
                if let Some(agent) = self.agents.on.get_mut(id) {
                    agent.memory = memory;
                }
                self.plan_for(id, (5, 60), AgentTask::Hear(Event::Recorded(operation)));
            }
            Effect::Act(operation, verb, _) => {
                self.agents.acts.push(AgentAct { at: self.now, machine: id.clone(), verb });
                self.begin_verb(id, operation, verb);
            }
            Effect::SetWatchdog(operation, to, _) => self.set_watchdog(id, operation, to),
            Effect::FeedWatchdog => self.feed_watchdog(id),
            question => self.answer_agent(id, question),
        }
    }

    /// What agents said since this was last asked.
    pub(crate) fn take_said(&mut self) -> Vec<AgentSaid> {
        let new = self.agents.said[self.agents.untold..].to_vec();
        self.agents.untold = self.agents.said.len();
        new
    }

    /// Everything that agents said.
    pub fn agents_said(&self) -> &[AgentSaid] {
        &self.agents.said
    }

    /// Everything that agents did.
    pub fn agent_acts(&self) -> &[AgentAct] {
        &self.agents.acts
    }

    /// What an agent may never do, and did.
    pub fn agents_broken(&self) -> &[(Time, String)] {
        &self.agents.broken
    }

    /// The agent of a machine, as it stands.
    pub fn agent(&self, id: &InstanceId) -> Option<&State> {
        self.agents.on.get(id).map(|agent| &agent.state)
    }

    /// The watchdog of a machine with an agent is armed.
    pub fn is_watchdog_armed(&self, id: &InstanceId) -> bool {
        self.agents.on.get(id).is_some_and(|agent| agent.watchdog.is_some())
    }

    fn lies_about(&self, peer: &InstanceId, asker: &InstanceId) -> Option<PeerAnswer> {
        self.agents.lies.contains(&(peer.clone(), asker.clone())).then_some(PeerAnswer::Order)
    }
}

//! What an agent does to its machine, and what people and accidents do to agents.
//!
//! A verb is carried out after a while and answered then. The watchdog device alone does a reboot by watchdog: it fires when no
//! process fed it for its timeout, whichever process set it.

use reveille_agent::Event;
use reveille_agent::effect::Verb;
use reveille_agent::model::{OperationId, Outcome, Role};
use reveille_core::model::id::InstanceId;
use reveille_core::model::time::Span;

use super::super::agent_plan::Oddity;
use super::super::kubelet_credentials::KubeletCredentials;
use super::super::vm::{FirstBoot, Kubelet, Trouble};
use super::super::{Task, World};
use super::{AgentTask, Cut};

impl World {
    pub(super) fn begin_verb(&mut self, id: &InstanceId, operation: OperationId, verb: Verb) {
        let takes = match verb {
            Verb::RequestToken => (200, 900),
            Verb::RestartKubelet | Verb::Bootstrap => (1_000, 3_000),
            Verb::Reset => (8_000, 20_000),
            Verb::Join => (10_000, 40_000),
            Verb::RebootBySystem => (2_000, 5_000),
            Verb::RebootByWatchdog => {
                let fed_at = self.agents.on.get(id).map_or(self.now, |agent| agent.fed_at);
                let timeout = self.agents.on.get(id).and_then(|agent| agent.watchdog);
                if let (Some(timeout), Some(agent)) = (timeout, self.agents.on.get(id)) {
                    let (life, after) = (agent.life, (fed_at + timeout).since(self.now));
                    self.plan(after, Task::Agent(id.clone(), life, AgentTask::Bite));
                }
                return;
            }
        };
        self.plan_for(id, takes, AgentTask::Do(operation, verb));
    }

    pub(super) fn do_verb(&mut self, id: &InstanceId, operation: OperationId, verb: Verb) {
        let outcome = match verb {
            Verb::RequestToken => self.give_token(id),
            Verb::RestartKubelet => {
                self.restart_kubelet_by(id, "its agent");
                Outcome::Done
            }
            Verb::Bootstrap => self.bootstrap(id),
            Verb::Reset => self.reset(id),
            Verb::Join => self.join(id),
            Verb::RebootByWatchdog => Outcome::Done,
            Verb::RebootBySystem => return self.reboot_by_agent(id, "its agent reboots"),
        };
        self.let_hear(id, Event::Done { operation, outcome });
    }

    fn give_token(&mut self, id: &InstanceId) -> Outcome {
        if self.layout.agents.no_tokens || !self.reaches_api(id) {
            return Outcome::Failed("no component gives out bootstrap tokens".into());
        }
        if let Some(agent) = self.agents.on.get_mut(id) {
            agent.has_token = true;
        }
        Outcome::Done
    }

    fn bootstrap(&mut self, id: &InstanceId) -> Outcome {
        let Some(vm) = self.vms.get_mut(id) else { return Outcome::Failed("it is gone".into()) };
        if vm.kubelet_credentials == KubeletCredentials::Expired {
            vm.kubelet_credentials = KubeletCredentials::Good;
        }
        vm.trouble = vm.trouble.filter(|trouble| *trouble != Trouble::BadToken);
        self.restart_kubelet_by(id, "its agent");
        Outcome::Done
    }

    fn reset(&mut self, id: &InstanceId) -> Outcome {
        self.watch_for_agents_harm(id, "resets");
        let name = self.name_of(id);
        self.tell(format!("what an earlier join left on {name} is taken away"));
        if let Some(vm) = self.vms.get_mut(id) {
            vm.kubelet_credentials = KubeletCredentials::Nothing;
            vm.kubelet = Kubelet::Off;
        }
        self.review(id);
        Outcome::Done
    }

    fn join(&mut self, id: &InstanceId) -> Outcome {
        if !self.agents.on.get(id).is_some_and(|agent| agent.has_token) || !self.reaches_api(id) {
            return Outcome::Failed("no token, or no API server".into());
        }
        let vain = self.is_odd(id, Oddity::JoinsInVain);
        let Some(vm) = self.vms.get_mut(id) else { return Outcome::Failed("it is gone".into()) };
        vm.kubelet_credentials = if vain { KubeletCredentials::Refused } else { KubeletCredentials::Good };
        vm.first_boot = FirstBoot::Done;
        if let Some(agent) = self.agents.on.get_mut(id) {
            agent.has_token = false;
        }
        self.restart_kubelet_by(id, "its agent");
        Outcome::Done
    }

    pub(super) fn bite(&mut self, id: &InstanceId) {
        let Some(agent) = self.agents.on.get(id) else { return };
        let hungry = agent.watchdog.is_some_and(|timeout| self.now.since(agent.fed_at) >= timeout);
        if hungry {
            self.reboot_by_agent(id, "the watchdog reboots");
        }
    }

    fn reboot_by_agent(&mut self, id: &InstanceId, who: &str) {
        self.watch_for_agents_harm(id, "reboots");
        let name = self.name_of(id);
        self.tell(format!("{who} {name}"));
        self.power_off(id);
        self.boot(id);
        self.review(id);
    }

    pub(super) fn set_watchdog(&mut self, id: &InstanceId, operation: OperationId, to: Option<Span>) {
        let now = self.now;
        if let Some(agent) = self.agents.on.get_mut(id).filter(|agent| agent.obeys) {
            (agent.watchdog, agent.fed_at) = (to, now);
        }
        self.plan_for(id, (1, 10), AgentTask::Hear(Event::WatchdogSet { operation, outcome: Outcome::Done }));
    }

    pub(super) fn feed_watchdog(&mut self, id: &InstanceId) {
        let now = self.now;
        if let Some(agent) = self.agents.on.get_mut(id) {
            agent.fed_at = now;
        }
    }

    /// These machines reach no API server any more, or no other host at all.
    pub(crate) fn cut_off(&mut self, id: &InstanceId, cut: Cut, lasts: Span) {
        let name = self.name_of(id);
        let from = if cut == Cut::Api { "the API server" } else { "everybody" };
        self.tell(format!("{name} is cut off from {from} for {lasts}"));
        self.agents.cuts.insert(id.clone(), cut);
        self.plan(lasts, Task::Reconnect(id.clone()));
        self.review(id);
    }

    pub(in super::super) fn reconnect(&mut self, id: &InstanceId) {
        let name = self.name_of(id);
        self.tell(format!("{name} is cut off no more"));
        self.agents.cuts.remove(id);
        self.review(id);
    }

    /// Its credentials are these from now on.
    pub(crate) fn spoil_credentials(&mut self, id: &InstanceId, kubelet_credentials: KubeletCredentials) {
        let name = self.name_of(id);
        self.tell(format!("the credentials of {name} go bad: {}", kubelet_credentials.clause()));
        if let Some(vm) = self.vms.get_mut(id) {
            vm.kubelet_credentials = kubelet_credentials;
        }
        self.review(id);
    }

    /// An order to go down stands in the API.
    pub(crate) fn order_down(&mut self, id: &InstanceId) {
        let name = self.name_of(id);
        self.tell(format!("an order to go down stands in the API for {name}"));
        self.agents.orders.insert(id.clone());
    }

    /// It says of this machine, whatever is so, that an order stands.
    pub(crate) fn slander(&mut self, who: &InstanceId, about: &str) {
        let name = self.name_of(who);
        self.tell(format!("{name} says wrongly that an order stands for {about}"));
        let about = self.project.servers.iter().find(|(_, server)| server.instance.name.as_str() == about);
        if let Some((about, _)) = about.map(|(id, server)| (id.clone(), server)) {
            self.agents.lies.insert((who.clone(), about));
        }
    }

    /// A join begins on the machine, or is over.
    pub(crate) fn set_joining(&mut self, id: &InstanceId, joining: bool) {
        let name = self.name_of(id);
        self.tell(if joining {
            format!("a join begins on {name}")
        } else {
            format!("the join on {name} is over")
        });
        self.change_machine(id, |machine| machine.joining = joining);
    }

    /// The other members of the control plane keep their quorum without it, or do not.
    pub(crate) fn set_spare(&mut self, id: &InstanceId, spare: bool) {
        let name = self.name_of(id);
        let word = if spare { "can spare" } else { "needs" };
        self.tell(format!("the control plane {word} {name}"));
        self.change_machine(id, |machine| machine.role = Role::ControlPlane { spare });
    }

    fn change_machine(&mut self, id: &InstanceId, change: impl FnOnce(&mut reveille_agent::model::Machine)) {
        let Some(agent) = self.agents.on.get_mut(id) else { return };
        change(&mut agent.machine);
        let found = agent.machine.clone();
        self.plan_for(id, (5, 50), AgentTask::Hear(Event::Found(found)));
    }

    /// A person tells the agent to do nothing, or takes it back.
    pub(crate) fn tell_agent(&mut self, id: &InstanceId, cancel: bool) {
        let name = self.name_of(id);
        let word = if cancel { "is told to do nothing" } else { "may act again" };
        self.tell(format!("the agent of {name} {word}"));
        let event = if cancel { Event::Cancelled } else { Event::Resumed };
        self.plan_for(id, (5, 50), AgentTask::Hear(event));
    }

    /// The device takes no orders any more.
    pub(crate) fn break_watchdog(&mut self, id: &InstanceId) {
        let name = self.name_of(id);
        self.tell(format!("the watchdog of {name} does not obey any more"));
        if let Some(agent) = self.agents.on.get_mut(id) {
            agent.obeys = false;
        }
    }
}

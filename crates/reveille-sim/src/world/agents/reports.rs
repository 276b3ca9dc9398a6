//! What agents say to Reveille, and what Reveille asks of them: the way between the two, which loses, repeats and delays.
//!
//! ```text
//!  agent ─▶ State::account, stages of its guest, its journal judged ─▶ report ─▶ lost? late? twice? ─▶ the engine's listener
//!  Call::AskAgent ─▶ connected? whose? does it hold? ─▶ Event::Asked ─▶ the shipped State
//! ```
//!
//! Only machines that a layout names have an agent that reports. The shipped agent crate words what the agent says of its own
//! decisions; the rest is the true state of the machine. The way leads to the registration server, not to the API server: an
//! agent that lost the one may well reach the other.

use std::sync::Arc;

use reveille_agent::Event as AgentEvent;
use reveille_core::effect::Outcome;
use reveille_core::event::{AgentFact, Event};
use reveille_core::model::agent::{AgentBlockerKind, ApiSaid, Ask, KubeletSaid, StageError, StageSaid, Who};
use reveille_core::model::agent_report::AgentReport;
use reveille_core::model::evidence::Source;
use reveille_core::model::id::{AgentId, InstanceId};
use reveille_core::model::log_findings::LogFinding;
use reveille_core::model::node::Ready;
use reveille_core::model::stage::Stage;
use reveille_core::model::time::Span;

use super::super::agent_plan::Oddity;
use super::super::kubelet_credentials::KubeletCredentials;
use super::super::vm::{FirstBoot, Kubelet, Vm};
use super::super::{Task, World};
use super::{AgentTask, Cut};

/// Between two reports that say nothing new.
const EVERY: (i64, i64) = (18_000, 22_000);
/// After something changed.
const NEWS: (i64, i64) = (50, 400);
/// How long a report travels.
const TRAVEL: (i64, i64) = (20, 300);
/// How late one is on a bad way: later ones overtake it.
const LATE: (i64, i64) = (1_000, 70_000);

/// How the way from a machine is bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Way {
    /// Nothing comes through.
    Lost,
    /// Everything comes twice.
    Twice,
    /// Everything comes late, and in another order.
    Late,
}

/// The reports of one agent.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct Reporter {
    number: u64,
    /// What it said last, but for the number.
    said: Option<AgentReport>,
    /// The next report that is due by itself; one that was planned before is void.
    due: u64,
}

/// What the server knows when a session has begun.
fn arrival(report: AgentReport) -> AgentReport {
    AgentReport {
        unsaid: true,
        kubelet: KubeletSaid::CannotTell,
        api: ApiSaid::CannotTell,
        work: None,
        blocker: None,
        may: Default::default(),
        ..report
    }
}

impl World {
    /// Its process runs: it connects and reports.
    pub(super) fn begin_to_speak(&mut self, id: &InstanceId) {
        if self.layout.agents.speaks.iter().any(|whom| self.means(whom, id)) {
            self.agents.reporters.insert(id.clone(), Reporter::default());
            self.plan_for(id, (500, 3_000), AgentTask::Report(0));
        }
    }

    /// The next report is due: by itself, or because something changed.
    pub(super) fn speak(&mut self, id: &InstanceId, due: u64) {
        if self.agents.reporters.get(id).is_none_or(|reporter| reporter.due != due) {
            return;
        }
        let Some(report) = self.report_of(id) else { return };
        let Some(reporter) = self.agents.reporters.get_mut(id) else { return };
        reporter.number += 1;
        reporter.due += 1;
        let (number, next) = (reporter.number, reporter.due);
        // A session begins with who the machine is and how far it came; what its agent does and holds comes with a heartbeat.
        let begins = reporter.said.replace(report.clone()).is_none();
        let report = if begins { arrival(report) } else { report };
        self.send(id, AgentReport { number, ..report });
        self.plan_for(id, if begins { NEWS } else { EVERY }, AgentTask::Report(next));
    }

    /// What it would say differs from what it said: it says so at once.
    pub(super) fn speak_of_news(&mut self, id: &InstanceId) {
        let Some(said) = self.agents.reporters.get(id).map(|reporter| reporter.said.clone()) else { return };
        if said.is_none() || said == self.report_of(id) {
            return;
        }
        let Some(reporter) = self.agents.reporters.get_mut(id) else { return };
        reporter.due += 1;
        let due = reporter.due;
        self.plan_for(id, NEWS, AgentTask::Report(due));
    }

    fn send(&mut self, id: &InstanceId, report: AgentReport) {
        let way = self.agents.ways.get(id).copied();
        if way == Some(Way::Lost) || !self.reaches_us(id) {
            return;
        }
        let event = Event::Agent(AgentFact::Said { agent: agent_of(id), report: Arc::new(report) });
        let times = if way == Some(Way::Twice) { 2 } else { 1 };
        let travel = if way == Some(Way::Late) { LATE } else { TRAVEL };
        for _ in 0..times {
            let after = self.agents.delays.span(Span::from_ms(travel.0), Span::from_ms(travel.1));
            self.plan(after, Task::Deliver(self.session, event.clone()));
        }
    }

    /// The registration server is not the API server: a cut from the one is none from the other.
    fn reaches_us(&self, id: &InstanceId) -> bool {
        let powered = self.vms.get(id).is_some_and(|vm| vm.powered);
        let zone = self.project.servers.get(id).and_then(|server| server.instance.zone.clone());
        let dark = zone.is_some_and(|zone| self.lies.dark_zones.contains(&zone));
        let alone = self.agents.cuts.get(id) == Some(&Cut::All);
        let still = self.network_faults.still.contains(id);
        powered && !dark && !alone && !still && !self.network_faults.fleet_dark
    }

    /// What it says now; its number is the sender's business.
    fn report_of(&self, id: &InstanceId) -> Option<AgentReport> {
        let (agent, vm) = (self.agents.on.get(id)?, self.vms.get(id)?);
        let account = agent.state.account();
        let nameless = self.is_odd(id, Oddity::KnowsOnlyItsName);
        let own = || (!nameless).then(|| id.clone());
        let node = Some(self.node_name_of(id));
        let boot = Some(vm.boot_id.clone());
        let ready = self
            .nodes_of(id)
            .iter()
            .any(|name| self.cluster.nodes.get(name).is_some_and(|node| node.ready == Ready::True));
        let stages = self.stages_of(id, vm, ready);
        let failed = stages.last().is_some_and(|stage| stage.error.is_some());
        let told = if failed { told_by(vm) } else { Vec::new() };
        let kubelet =
            if vm.kubelet == Kubelet::Off || refuses(vm) { KubeletSaid::Stopped } else { KubeletSaid::Runs };
        Some(AgentReport {
            who: Who { instance: own(), system_uuid: own(), node, boot },
            life: Arc::from(format!("{}/{}", vm.boot_id, agent.life)),
            number: 0,
            stages,
            told,
            unsaid: false,
            kubelet,
            api: account.api,
            work: account.work,
            blocker: account.blocker,
            may: account.may,
        })
    }

    /// Every stage up to the one where it stands, as seen from inside.
    fn stages_of(&self, id: &InstanceId, vm: &Vm, ready: bool) -> Vec<StageSaid> {
        let stands = if ready {
            Stage::Stay
        } else if let Some(trouble) = vm.trouble.filter(|trouble| trouble.stage() >= Stage::OsBoot) {
            trouble.stage()
        } else if !self.nodes_of(id).is_empty() {
            Stage::Ready
        } else {
            match (vm.first_boot, vm.kubelet) {
                (FirstBoot::Due | FirstBoot::Failed, _) => Stage::FetchConfig,
                (FirstBoot::Done, Kubelet::Off) => Stage::KubeletStart,
                _ => Stage::Register,
            }
        };
        let trouble = vm.trouble.filter(|trouble| !ready && trouble.stage() == stands);
        let stages = Stage::ALL.into_iter().filter(|stage| (Stage::OsBoot..=stands).contains(stage));
        let row = |stage: Stage| {
            let here = trouble.filter(|_| stage == stands);
            let error = here.map(|trouble| {
                let code = trouble.label().unwrap_or("failed");
                StageError::new(code.to_uppercase().replace('-', "_"), trouble.sentence())
            });
            let attempts = 1 + self.agents.on.get(id).map_or(0, |agent| agent.memory.attempts);
            StageSaid {
                stage,
                passed: stage < stands,
                attempts: if stage == stands { attempts } else { 1 },
                error,
            }
        };
        stages.map(row).collect()
    }

    /// The controller asks the agent of a machine.
    pub(in super::super) fn ask_agent(&mut self, id: &InstanceId, agent: &AgentId, ask: Ask) -> Outcome {
        let failed = |text: &str| Outcome::Failed { text: text.into(), retry_after: None };
        let lost = self.agents.ways.get(id) == Some(&Way::Lost);
        if !self.agents.reporters.contains_key(id) || lost || !self.reaches_us(id) {
            return failed("no agent is connected");
        }
        if *agent != agent_of(id) {
            return Outcome::Refused { text: "the agent is on another machine".into() };
        }
        let Some(own) = self.agents.on.get(id) else { return failed("no agent is connected") };
        // What may pass is not refused for good: it looks again when it is asked.
        let lasting = |kind: AgentBlockerKind| kind != AgentBlockerKind::Other;
        if let Some(blocker) = own.state.blocker().filter(|blocker| lasting(blocker.kind)) {
            return Outcome::Refused { text: blocker.text };
        }
        let name = self.name_of(id);
        if self.is_odd(id, Oddity::SaysDone) {
            self.tell(format!("the agent of {name} says that it does it, and does nothing"));
        } else {
            self.tell(format!("the agent of {name} is asked to {}", ask.says()));
            self.plan_for(id, (5, 50), AgentTask::Hear(AgentEvent::Asked(ask)));
        }
        Outcome::Accepted { request: None }
    }

    /// The way from these machines to us is bad for so long.
    pub(crate) fn spoil_way(&mut self, id: &InstanceId, way: Way, lasts: Span) {
        let name = self.name_of(id);
        let how = match way {
            Way::Lost => "get lost",
            Way::Twice => "come twice",
            Way::Late => "come late and out of order",
        };
        self.tell(format!("the reports of {name} {how} for {lasts}"));
        self.agents.ways.insert(id.clone(), way);
        self.plan(lasts, Task::MendWay(id.clone(), way));
    }

    pub(in super::super) fn mend_way(&mut self, id: &InstanceId, way: Way) {
        if self.agents.ways.get(id) == Some(&way) {
            self.agents.ways.remove(id);
        }
    }
}

/// The id under which the registration server knows the agent.
fn agent_of(id: &InstanceId) -> AgentId {
    AgentId::new(format!("agent-{id}"))
}

/// Its kubelet ends as soon as it starts, or is not let in.
fn refuses(vm: &Vm) -> bool {
    use super::super::trouble::Bites;
    vm.kubelet_credentials != KubeletCredentials::Good
        || matches!(vm.bites(), Some(Bites::Kubelet | Bites::FirstBoot | Bites::Silence))
}

/// Its checkup reads its own journal, which in this world is what stands on its console.
fn told_by(vm: &Vm) -> Vec<LogFinding> {
    let journal: Vec<&str> = vm.console.iter().map(String::as_str).collect();
    let mut told = crate::catalogue::judge().log_findings(Ok(&journal.join("\n")), &[]).told;
    for quote in told.iter_mut().flat_map(|told| told.proof.iter_mut().chain(&mut told.against)) {
        quote.source = Source::Named("agent: journal".into());
    }
    told.truncate(AgentReport::TOLD_MAX);
    told
}

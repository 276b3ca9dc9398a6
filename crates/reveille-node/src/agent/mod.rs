//! The agent's process: holds the link to the registration server, applies the machine's plan, drives the agent's decisions, and
//! says where the machine is.
//!
//! ```text
//!  courier ◀─ link ─▶ registration server          plan ─▶ files, then Target ─▶ Driver (State, hands)
//!     │  Heard: plan, token, order, wait                                             │ Said
//!     └────────────▶ Agent ◀────────────────────────────────────────────────────────┘
//!                      └─▶ progress: which of the fourteen stages, since when, why not further ─▶ courier
//! ```
//!
//! What the machine is to be is on its disk: an agent that starts without its server goes on with the plan it has. The server
//! orders; the agent's own reasons decide whether an order is carried out. Nothing that comes over the link names a program, and
//! nothing is written outside the few folders that a node's configuration lives in.

mod courier;
mod plan;
mod progress;
mod tokens;

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;

use reveille_agent::effect::Report;
use reveille_agent::model::NodeSeen;
use reveille_agent::{Config, Event, Settings};
use reveille_core::model::agent::{Ask, KubeletSaid};
use reveille_core::model::time::Time;
use reveille_wire::agent::frame::{self, Account, Done, Ended, Heartbeat, Order, StageReport};
use reveille_wire::agent::text::{List, Sentence, Tail, Word};
use reveille_wire::agent::{AgentFrame, Facts, Plan, Refused, Secret, Verb};
use thiserror::Error;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use crate::driver::{Begin, BeginError, Driver, Said};
use crate::hands::{Hands, JoinSettings};
use crate::inspect::Inspector;
use crate::link::{KeyringError, Link, LinkError};
use crate::memory_file::MemoryFile;
use crate::root::Root;

pub use courier::Heard;
pub use plan::{PlanError, Shelf};

use courier::Courier;
use progress::Progress;
use tokens::FromServer;

/// Frames and things heard wait here for no longer than a step takes.
const QUEUED: usize = 256;

/// How an agent begins.
#[derive(Debug)]
pub struct Setup {
    /// The machine's files.
    pub root: Root,
    /// Its own folder.
    pub folder: PathBuf,
    /// Where the server is; none when this machine was enrolled before.
    pub link: Option<Link>,
    /// An invitation, as long as the machine is not enrolled.
    pub invitation: Option<Secret>,
    /// The cloud's id of this machine, where it is known.
    pub instance_id: Option<String>,
    /// What this agent says of its machine.
    pub facts: Facts,
    /// Its settings.
    pub settings: Settings,
}

/// Why an agent ended.
#[derive(Debug, Error)]
pub enum AgentError {
    /// The machine was never enrolled, and nothing says where.
    #[error("this machine is not enrolled, and no server was named; run what \"reveille invite\" prints")]
    NotEnrolled,
    /// It was refused, and asking again changes nothing.
    #[error("the registration server does not enrol this machine")]
    Refused(#[source] LinkError),
    /// What it keeps of its enrolment cannot be read or written.
    #[error(transparent)]
    Keyring(#[from] KeyringError),
    /// Its plan cannot be kept.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// Its memory cannot be read.
    #[error(transparent)]
    Begin(#[from] BeginError),
    /// Its settings cannot work.
    #[error(transparent)]
    Settings(#[from] reveille_agent::settings::SettingsError),
}

/// What happens, for a log. Every text is masked.
#[derive(Debug)]
pub enum Told<'a> {
    /// Over the link.
    Link(&'a Heard),
    /// On the machine.
    Machine(&'a Said),
    /// A stage was entered, left or tried again.
    Stage(&'a StageReport),
    /// A step of the plan failed.
    Plan(&'a str),
}

/// Runs until it cannot go on.
///
/// # Errors
///
/// Why.
pub async fn run(setup: Setup, mut tell: impl FnMut(Time, Told<'_>)) -> Result<(), AgentError> {
    let shelf = Shelf::within(&setup.folder);
    let (config, _) = setup.settings.check()?;
    let (heard_in, heard) = mpsc::channel(QUEUED);
    let (say, frames) = mpsc::channel(QUEUED);
    let mut held = shelf.read()?;
    let joined = held.as_ref().is_some_and(|plan| shelf.has_joined(plan));
    let known = courier::Known { plan: held.as_ref(), joined };
    let courier = Courier::new(&setup, known, heard_in, frames).await?;
    let courier = tokio::spawn(courier.run());
    let mut desk = Desk { progress: Progress::default(), say: say.clone(), order: None, account: None };
    desk.progress.runs();
    let (token_in, tokens) = watch::channel(None);
    let mut agent = Agent { setup, shelf, config, say, heard, courier, desk, token_in, tokens };
    loop {
        held = match held.take() {
            None => Some(agent.await_plan(&mut tell).await?),
            Some(plan) => {
                agent.shelf.keep(&plan)?;
                agent.desk.progress.has_plan();
                let root = &agent.setup.root;
                let files = plan::apply_files(root, &plan, |step| agent.desk.send(AgentFrame::Step(step)));
                match files {
                    Ok(()) => Some(agent.live(&plan, &mut tell).await?),
                    Err(failure) => {
                        tell(crate::driver::now(), Told::Plan(&failure.to_string()));
                        agent.desk.progress.stands("PLAN_FAILED", &failure.to_string());
                        None
                    }
                }
            }
        };
    }
}

/// An agent that runs: both ends of its link, what it keeps, and what it says.
struct Agent {
    setup: Setup,
    shelf: Shelf,
    config: Config,
    say: mpsc::Sender<AgentFrame>,
    heard: mpsc::Receiver<Heard>,
    courier: JoinHandle<Result<(), AgentError>>,
    desk: Desk,
    token_in: watch::Sender<Option<Secret>>,
    tokens: watch::Receiver<Option<Secret>>,
}

/// The driver of one plan's join, and the ways to it.
struct Life {
    inspector: Arc<Inspector>,
    orders: mpsc::Sender<Event>,
    said: mpsc::Receiver<Said>,
    task: AbortOnDrop,
}

/// A driver ends with the plan that it is of.
struct AbortOnDrop(JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Agent {
    /// Waits for the machine's plan; waits and refusals become the trouble of the stage that fetches it.
    async fn await_plan(&mut self, tell: &mut impl FnMut(Time, Told<'_>)) -> Result<Plan, AgentError> {
        loop {
            let Some(next) = self.heard.recv().await else { return Err(self.link_ended().await) };
            tell(crate::driver::now(), Told::Link(&next));
            match next {
                Heard::Plan(plan) => return Ok(*plan),
                Heard::Wait(refused) => self.desk.wait_for_plan(&refused, tell),
                Heard::Order(order) => self.desk.decline(&order, "no plan was given to this machine yet"),
                Heard::Up { .. } => self.desk.tell_all(),
                Heard::Token(_) | Heard::Removed | Heard::Down(_) | Heard::Peers(_) => {}
            }
        }
    }

    /// Why nothing comes over the link any more.
    async fn link_ended(&mut self) -> AgentError {
        match (&mut self.courier).await {
            Ok(Err(failure)) => failure,
            Ok(Ok(())) | Err(_) => AgentError::NotEnrolled,
        }
    }

    fn begin(&self, plan: &Plan) -> Result<Life, AgentError> {
        let aim = plan::target(plan)?;
        let root = self.setup.root.clone();
        let inspector = Arc::new(Inspector::new(root, aim.target, aim.node_name, aim.distribution));
        let tokens = FromServer { want: self.say.clone(), tokens: self.tokens.clone() };
        let copies = self.setup.folder.join("before-reset");
        let settings = JoinSettings { config: aim.config, copies, ..JoinSettings::default() };
        let hands = Hands::new(Arc::clone(&inspector), tokens, settings);
        let memory = MemoryFile::within(&self.setup.folder);
        let begin = Begin { inspector: Arc::clone(&inspector), hands, memory, config: self.config };
        let driver = Driver::new(begin)?;
        let (orders, ordered) = mpsc::channel(QUEUED);
        if !self.shelf.has_joined(plan) {
            // There is room for it: nothing was sent yet.
            orders.try_send(Event::Ordered).ok();
        }
        let (said_in, said) = mpsc::channel(QUEUED);
        let task = tokio::spawn(driver.run(ordered, move |_, said: &Said| {
            // Whoever is slow to listen does not hold the machine up; what is so is said again.
            said_in.try_send(said.clone()).ok();
            ControlFlow::<()>::Continue(())
        }));
        Ok(Life { inspector, orders, said, task: AbortOnDrop(task) })
    }

    /// Drives the join of this plan until there is another.
    async fn live(&mut self, plan: &Plan, tell: &mut impl FnMut(Time, Told<'_>)) -> Result<Plan, AgentError> {
        let mut life = self.begin(plan)?;
        loop {
            tokio::select! {
                heard = self.heard.recv() => {
                    let Some(heard) = heard else { return Err(self.link_ended().await) };
                    tell(crate::driver::now(), Told::Link(&heard));
                    match heard {
                        Heard::Plan(next) if next.checksum != plan.checksum => return Ok(*next),
                        // The one that it has; or another word that changes nothing here.
                        Heard::Plan(_) | Heard::Wait(_) | Heard::Down(_) | Heard::Peers(_) => {}
                        Heard::Token(token) => drop(self.token_in.send_replace(Some(token))),
                        Heard::Order(order) => self.desk.take_order(order, &life.inspector, &life.orders),
                        Heard::Removed => life.inspector.is_removed(),
                        Heard::Up { .. } => self.desk.tell_all(),
                    }
                }
                said = life.said.recv() => {
                    let Some(said) = said else { return Ok(plan.clone()) };
                    tell(crate::driver::now(), Told::Machine(&said));
                    if matches!(said, Said::Report(Report::Back)) {
                        self.shelf.mark_joined(plan)?;
                    }
                    if let Said::Account(account) = &said {
                        self.desk.account = Some(of_account(account, life.inspector.kubelet_runs()));
                        self.desk.tell_all();
                    }
                    self.desk.hear(&said, tell);
                }
                _ = &mut life.task.0 => return Ok(plan.clone()),
            }
        }
    }
}

/// What is said to the server, and the order that is under way.
struct Desk {
    progress: Progress,
    say: mpsc::Sender<AgentFrame>,
    order: Option<Order>,
    account: Option<Account>,
}

impl Desk {
    fn send(&self, frame: AgentFrame) {
        // A full queue is a link that is down; what is so is said when it is up again.
        self.say.try_send(frame).ok();
    }

    fn flush(&mut self, tell: &mut impl FnMut(Time, Told<'_>)) {
        let reports = self.progress.reports(crate::driver::now());
        if !reports.is_empty() {
            self.tell_all();
        }
        for report in reports {
            tell(crate::driver::now(), Told::Stage(&report));
            self.send(AgentFrame::Stage(report));
        }
    }

    /// A session stands: it is told where the machine is.
    fn tell_all(&self) {
        let stage = self.progress.stage();
        self.send(AgentFrame::Heartbeat(Heartbeat {
            stage: Some(stage),
            joined: self.progress.has_joined(),
            account: self.account.clone(),
        }));
    }

    fn wait_for_plan(&mut self, refused: &Refused, tell: &mut impl FnMut(Time, Told<'_>)) {
        self.progress.stands(refused.reason.code(), &refused.to_string());
        self.flush(tell);
    }

    fn hear(&mut self, said: &Said, tell: &mut impl FnMut(Time, Told<'_>)) {
        self.progress.hear(said);
        self.flush(tell);
        // That it is begun is the answer: whether it works, whoever asked sees for himself.
        let ended = match said {
            Said::Report(report @ Report::Rejoins(..)) => (Ended::Done, report.to_string()),
            Said::Report(report @ Report::Holds(_)) => (Ended::Declined, report.to_string()),
            Said::Report(report @ (Report::Failed(..) | Report::GaveUp(_))) => {
                (Ended::Failed, report.to_string())
            }
            Said::Report(report @ Report::Back) => (Ended::AlreadySo, report.to_string()),
            Said::Found(found) if found.inspection.node == NodeSeen::Ready => {
                (Ended::AlreadySo, "its node is Ready".to_owned())
            }
            _ => return,
        };
        if let Some(order) = self.order.take() {
            self.answer(order.id, ended.0, &ended.1);
        }
    }

    fn take_order(&mut self, order: Order, inspector: &Arc<Inspector>, orders: &mpsc::Sender<Event>) {
        match order.verb {
            Verb::Join | Verb::RestartKubelet => {
                if let Some(before) = self.order.replace(order.clone()) {
                    self.answer(before.id, Ended::Declined, "another order came after it");
                }
                let ask = if order.verb == Verb::Join { Ask::Rejoin } else { Ask::RestartKubelet };
                if orders.try_send(Event::Asked(ask)).is_err() {
                    self.decline(&order, "the agent is busy");
                }
            }
            Verb::Probe => {
                let (inspector, say) = (Arc::clone(inspector), self.say.clone());
                tokio::spawn(async move {
                    let answered = inspector.check_api().await;
                    let (outcome, tail) = match answered {
                        Ok(answer) => (Ended::Done, format!("the API server answers {}", answer.status)),
                        Err(unanswered) => (Ended::Failed, unanswered.why),
                    };
                    let done = Done { id: order.id, outcome, tail: Tail::tail(&tail) };
                    say.try_send(AgentFrame::Done(done)).ok();
                });
            }
            Verb::CollectEvidence => self.decline(&order, "this agent does not collect evidence yet"),
        }
    }

    fn decline(&self, order: &Order, why: &str) {
        self.answer(order.id, Ended::Declined, why);
    }

    fn answer(&self, id: u64, outcome: Ended, tail: &str) {
        self.send(AgentFrame::Done(Done { id, outcome, tail: Tail::tail(tail) }));
    }
}

/// In the words of the protocol.
fn of_account(account: &reveille_agent::account::Account, kubelet: Option<bool>) -> Account {
    let kubelet = match kubelet {
        Some(true) => KubeletSaid::Runs,
        Some(false) => KubeletSaid::Stopped,
        None => KubeletSaid::CannotTell,
    };
    let work = account.work.as_ref().map(|work| frame::Work {
        what: Word::cut(&work.what),
        attempt: work.attempt,
        of: work.of,
    });
    let hold = account
        .hold
        .as_ref()
        .map(|hold| frame::Hold { kind: Word::cut(hold.kind.name()), text: Sentence::cut(&hold.text) });
    Account {
        kubelet: Word::cut(kubelet.name()),
        api: Word::cut(account.api.name()),
        work,
        hold,
        may: List::first(account.may.iter().map(|ask| Word::cut(ask.name()))),
    }
}

/// A stamp of this machine's clock, for people.
fn stamp(at: Time) -> Word {
    Word::cut(&reveille_wire::stamp::Stamp(at).to_string())
}

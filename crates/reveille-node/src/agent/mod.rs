//! The agent's process: it holds the link to the registration server, applies the machine's plan, drives the agent's
//! decisions, and reports the machine's stage.
//!
//! ```text
//!  session ◀─ link ─▶ registration server          plan ─▶ files, then Target ─▶ Driver (State, executor)
//!     │  Heard: plan, token, order, wait                                             │ Said
//!     └────────────▶ Agent ◀────────────────────────────────────────────────────────┘
//!                      └─▶ progress: which of the fourteen stages, since when, why not further ─▶ session
//! ```
//!
//! The plan of the machine is on its disk: an agent that starts without its server goes on with the plan that it has. The
//! server orders; the agent's own checks decide whether it carries an order out. No message of the link names a program,
//! and the agent writes only to the few directories of a node's configuration.

mod enrolling;
mod evidence;
mod life;
mod peer_listener;
mod plan;
mod planner;
mod progress;
mod provider;
mod reports;
mod session;
mod tokens;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use reveille_agent::{Config, Settings};
use reveille_core::model::id::ZoneName;
use reveille_core::model::time::Time;
use reveille_wire::agent::frame::{Order, Peer, StageReport};
use reveille_wire::agent::text::Word;
use reveille_wire::agent::{AgentFrame, Facts, Plan, Refused, Secret};
use thiserror::Error;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use crate::driver::{BeginError, Said};
use crate::link::{Carrier, Keyring, KeyringError, Link, LinkError};
use crate::memory_file::MemoryFile;
use crate::pause::Pause;
use crate::peers::PeerSet;
use crate::private::{self, FolderError};
use crate::probe::Metadata;
use crate::root::Root;

pub use plan::{PlanError, Shelf};

use evidence::Collector;
use life::Life;
use planner::Planner;
use session::SessionTask;

/// A message from the link.
#[derive(Debug)]
pub enum Heard {
    /// A session has begun.
    Up {
        /// How its frames travel.
        carrier: Carrier,
        /// The session's number.
        session: u64,
    },
    /// There is no session: the reason.
    Down(String),
    /// The machine's plan.
    Plan(Box<Plan>),
    /// A bootstrap token.
    Token(Secret),
    /// An order.
    Order(Order),
    /// The machine has to wait: the reason.
    Wait(Box<Refused>),
    /// An operator removed this machine.
    Removed,
    /// The other machines.
    Peers(Vec<Peer>),
}

/// The length of queues of this machine's own messages, which are small: they wait no longer than a step takes.
const QUEUED: usize = 256;
/// The length of the queue of messages from the link. A plan has up to a mebibyte, and takes a few when it is read.
const HEARD_MAX: usize = 4;

/// The settings with which an agent starts.
#[derive(Debug)]
pub struct Setup {
    /// The machine's files.
    pub root: Root,
    /// The agent's own folder.
    pub folder: PathBuf,
    /// The server for the invitation; none when this machine was enrolled before.
    pub link: Option<Link>,
    /// An invitation: used while the machine is not enrolled, and when its enrolment does not count any more.
    pub invitation: Option<Secret>,
    /// The cloud's id of this machine, where it is known.
    pub instance_id: Option<String>,
    /// What this agent says about its machine.
    pub facts: Facts,
    /// The agent's settings.
    pub settings: Settings,
    /// The metadata service in which the provider announces what it will do to the machine.
    pub metadata: Metadata,
    /// The address of the listener for other machines' agents; none: no listener.
    pub peer_listen: Option<SocketAddr>,
}

#[cfg(test)]
impl Setup {
    /// An agent with this folder that knows no server.
    fn of_test(machine: &std::path::Path) -> Self {
        Self {
            root: Root::new(machine),
            folder: machine.join("agent"),
            link: None,
            invitation: None,
            instance_id: None,
            facts: Facts::default(),
            settings: Settings::default(),
            metadata: Metadata::Nowhere,
            peer_listen: None,
        }
    }
}

/// Why an agent ended.
#[derive(Debug, Error)]
pub enum AgentError {
    /// The machine was never enrolled, and no server is named.
    #[error("this machine is not enrolled, and no server was named; run what \"reveille invite\" prints")]
    NotEnrolled,
    /// The server refused the enrolment, and asking again is useless.
    #[error("the registration server does not enrol this machine")]
    Refused(#[source] LinkError),
    /// The agent refuses its folder: another account may change it, or it is not a plain directory.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// The files of the enrolment cannot be read or written.
    #[error(transparent)]
    Keyring(#[from] KeyringError),
    /// The plan cannot be kept.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The memory cannot be read.
    #[error(transparent)]
    Begin(#[from] BeginError),
    /// The settings cannot work.
    #[error(transparent)]
    Settings(#[from] reveille_agent::settings::SettingsError),
}

/// What happens, for a log. Every text is masked.
#[derive(Debug)]
pub enum LogEvent<'a> {
    /// A message from the link.
    Link(&'a Heard),
    /// An event on the machine.
    Machine(&'a Said),
    /// A stage was entered, left or tried again.
    Stage(&'a StageReport),
    /// A step of the plan failed.
    Plan(&'a str),
}

/// Runs until the agent cannot go on.
///
/// # Errors
///
/// The reason why the agent ended.
pub async fn run(mut setup: Setup, mut tell: impl FnMut(Time, LogEvent<'_>)) -> Result<(), AgentError> {
    private::folder(&setup.folder)?;
    let shelf = Shelf::within(&setup.folder);
    let (config, _) = setup.settings.check()?;
    let (heard_in, mut heard) = mpsc::channel(HEARD_MAX);
    let (say, frames) = mpsc::channel(QUEUED);
    let mut held = shelf.read()?;
    let joined = held.as_ref().is_some_and(|plan| shelf.has_joined(plan));
    let account = planner::remembered(&MemoryFile::within(&setup.folder).read().map_err(BeginError::from)?);
    let known = session::Known { plan: held.as_ref(), joined, account: account.clone() };
    let zone = setup.facts.zone.as_ref().map(|zone| ZoneName::from(zone.as_str()));
    let peer_set = Arc::new(PeerSet::remembering(&setup.folder, zone));
    let _peer_listener = peer_listener::open(&mut setup, &peer_set).await;
    let (parts, evidence) = mpsc::channel(1);
    let is_invited = Keyring::open(&setup.folder.join(private::KEYS))?.is_none();
    let out = session::Out { frames, evidence };
    let session_task = {
        let mut enrolled = pin!(SessionTask::new(&setup, known, heard_in, out, &peer_set));
        loop {
            tokio::select! {
                session_task = &mut enrolled => break session_task?,
                Some(next) = heard.recv() => tell(crate::driver::now(), LogEvent::Link(&next)),
            }
        }
    };
    let session_task = tokio::spawn(session_task.run());
    let mut planner = Planner::new(say.clone(), Collector::new(&setup, parts));
    planner.account = account;
    planner.progress.runs();
    let (token_in, tokens) = watch::channel(None);
    let mut agent = Agent {
        setup,
        shelf,
        config,
        peer_set,
        say,
        heard,
        session_task,
        planner,
        token_in,
        tokens,
        is_invited,
        is_up: false,
    };
    let mut pause = Pause::default();
    loop {
        let Some(plan) = held.take() else {
            held = Some(agent.await_plan(&mut tell).await?);
            continue;
        };
        held = Some(match agent.follow(&plan, &mut tell).await {
            Ok(next) if next.checksum != plan.checksum => {
                pause = Pause::default();
                next
            }
            // The driver broke off: the agent does not restart it at once.
            Ok(plan) => agent.another_or(plan, pause.next(None), &mut tell).await?,
            Err(AgentError::Plan(failure)) => {
                tell(crate::driver::now(), LogEvent::Plan(&failure.to_string()));
                agent.planner.plan_failed(&failure.to_string(), &mut tell);
                agent.another_or(plan, pause.next(None), &mut tell).await?
            }
            Err(failure) => return Err(failure),
        });
    }
}

/// A running agent: both ends of its link, its files, and its messages.
struct Agent {
    setup: Setup,
    shelf: Shelf,
    config: Config,
    peer_set: Arc<PeerSet>,
    say: mpsc::Sender<AgentFrame>,
    heard: mpsc::Receiver<Heard>,
    session_task: JoinHandle<Result<(), AgentError>>,
    planner: Planner,
    token_in: watch::Sender<Option<Secret>>,
    tokens: watch::Receiver<Option<Secret>>,
    /// This process enrolled the machine, and no join has held since.
    is_invited: bool,
    /// A session stands: the server has admitted this machine.
    is_up: bool,
}

/// A task that ends when this value is dropped: a driver ends with its plan.
struct AbortOnDrop(JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Agent {
    /// Keeps the plan, writes its files, and drives its join until another plan comes.
    async fn follow(
        &mut self,
        plan: &Plan,
        tell: &mut impl FnMut(Time, LogEvent<'_>),
    ) -> Result<Plan, AgentError> {
        plan::may_be_followed(plan)?;
        // A plan whose join is invalid does not replace another plan on the disk.
        plan::target(&self.setup.root, plan)?;
        self.shelf.keep(plan)?;
        self.planner.progress.has_plan();
        let planner = &self.planner;
        plan::apply_files(&self.setup.root, plan, |step| planner.send(AgentFrame::Step(step)))?;
        self.live(plan, tell).await
    }

    /// Waits for another plan, or after a pause tries this one again. Its obstacle may pass, and the server, which knows
    /// that the plan arrived, does not send it again.
    async fn another_or(
        &mut self,
        plan: Plan,
        pause: Duration,
        tell: &mut impl FnMut(Time, LogEvent<'_>),
    ) -> Result<Plan, AgentError> {
        match tokio::time::timeout(pause, self.await_plan(tell)).await {
            Ok(another) => another,
            Err(_) => Ok(plan),
        }
    }

    /// Waits for the machine's plan; waits and refusals become the trouble of the stage that fetches it.
    async fn await_plan(&mut self, tell: &mut impl FnMut(Time, LogEvent<'_>)) -> Result<Plan, AgentError> {
        loop {
            let Some(next) = self.heard.recv().await else { return Err(self.link_ended().await) };
            tell(crate::driver::now(), LogEvent::Link(&next));
            self.notes(&next);
            match next {
                Heard::Plan(plan) => return Ok(*plan),
                Heard::Wait(refused) => self.planner.wait_for_plan(&refused, tell),
                Heard::Order(order) => self.planner.take_order(order, None),
                Heard::Up { .. } => self.planner.tell_all(),
                Heard::Down(_) => self.planner.link_ended(),
                Heard::Peers(peers) => self.peer_set.know(&peers),
                Heard::Token(_) | Heard::Removed => {}
            }
        }
    }

    /// Notes whether a session stands, for a driver that starts meanwhile.
    fn notes(&mut self, heard: &Heard) {
        match heard {
            Heard::Up { .. } => self.is_up = true,
            Heard::Down(_) | Heard::Removed => self.is_up = false,
            _ => {}
        }
    }

    /// Why no message comes from the link any more.
    async fn link_ended(&mut self) -> AgentError {
        match (&mut self.session_task).await {
            Ok(Err(failure)) => failure,
            Ok(Ok(())) | Err(_) => AgentError::NotEnrolled,
        }
    }
}

/// A time of this machine's clock as text, for people.
fn stamp(at: Time) -> Word {
    Word::cut(&at.to_string())
}

#[cfg(test)]
mod tests;

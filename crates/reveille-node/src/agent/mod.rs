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
mod desk;
mod door;
mod enrolling;
mod evidence;
mod life;
mod plan;
mod progress;
mod provider;
mod reports;
mod tokens;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use reveille_agent::{Config, Settings};
use reveille_core::model::id::ZoneName;
use reveille_core::model::time::Time;
use reveille_wire::agent::frame::StageReport;
use reveille_wire::agent::text::Word;
use reveille_wire::agent::{AgentFrame, Facts, Plan, Secret};
use thiserror::Error;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use crate::driver::{BeginError, Said};
use crate::link::{Keyring, KeyringError, Link, LinkError};
use crate::memory_file::MemoryFile;
use crate::pause::Pause;
use crate::peers::Circle;
use crate::private::{self, FolderError};
use crate::probe::Metadata;
use crate::root::Root;

pub use courier::Heard;
pub use plan::{PlanError, Shelf};

use courier::Courier;
use desk::Desk;
use evidence::Collector;
use life::Life;

/// Frames and things heard wait here for no longer than a step takes.
const QUEUED: usize = 256;
/// How an agent begins.
#[derive(Debug)]
pub struct Setup {
    /// The machine's files.
    pub root: Root,
    /// Its own folder.
    pub folder: PathBuf,
    /// Where the server is, for the invitation; none when this machine was enrolled before.
    pub link: Option<Link>,
    /// An invitation: used while the machine is not enrolled, and when what it was enrolled with counts no more.
    pub invitation: Option<Secret>,
    /// The cloud's id of this machine, where it is known.
    pub instance_id: Option<String>,
    /// What this agent says of its machine.
    pub facts: Facts,
    /// Its settings.
    pub settings: Settings,
    /// Where its provider tells the machine what it will do to it.
    pub metadata: Metadata,
    /// Where other machines' agents are answered; nowhere where none is given.
    pub peer_listen: Option<SocketAddr>,
}

#[cfg(test)]
impl Setup {
    /// An agent below this folder that knows of no server.
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
    /// The machine was never enrolled, and nothing says where.
    #[error("this machine is not enrolled, and no server was named; run what \"reveille invite\" prints")]
    NotEnrolled,
    /// It was refused, and asking again changes nothing.
    #[error("the registration server does not enrol this machine")]
    Refused(#[source] LinkError),
    /// Its folder is not this machine's alone.
    #[error(transparent)]
    Folder(#[from] FolderError),
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
pub async fn run(mut setup: Setup, mut tell: impl FnMut(Time, Told<'_>)) -> Result<(), AgentError> {
    private::folder(&setup.folder)?;
    let shelf = Shelf::within(&setup.folder);
    let (config, _) = setup.settings.check()?;
    let (heard_in, mut heard) = mpsc::channel(QUEUED);
    let (say, frames) = mpsc::channel(QUEUED);
    let mut held = shelf.read()?;
    let joined = held.as_ref().is_some_and(|plan| shelf.has_joined(plan));
    let account = desk::remembered(&MemoryFile::within(&setup.folder).read().map_err(BeginError::from)?);
    let known = courier::Known { plan: held.as_ref(), joined, account: account.clone() };
    let zone = setup.facts.zone.as_ref().map(|zone| ZoneName::from(zone.as_str()));
    let circle = Arc::new(Circle::remembering(&setup.folder, zone));
    let _door = door::open(&mut setup, &circle).await;
    let (parts, evidence) = mpsc::channel(1);
    let is_invited = Keyring::open(&setup.folder.join(private::KEYS))?.is_none();
    let out = courier::Out { frames, evidence };
    let courier = {
        let mut enrolled = pin!(Courier::new(&setup, known, heard_in, out, &circle));
        loop {
            tokio::select! {
                courier = &mut enrolled => break courier?,
                Some(next) = heard.recv() => tell(crate::driver::now(), Told::Link(&next)),
            }
        }
    };
    let courier = tokio::spawn(courier.run());
    let mut desk = Desk::new(say.clone(), Collector::new(&setup, parts));
    desk.account = account;
    desk.progress.runs();
    let (token_in, tokens) = watch::channel(None);
    let mut agent = Agent {
        setup,
        shelf,
        config,
        circle,
        say,
        heard,
        courier,
        desk,
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
            // Its driver broke off: not again at once.
            Ok(plan) => agent.another_or(plan, pause.next(None), &mut tell).await?,
            Err(AgentError::Plan(failure)) => {
                tell(crate::driver::now(), Told::Plan(&failure.to_string()));
                agent.desk.plan_failed(&failure.to_string(), &mut tell);
                agent.another_or(plan, pause.next(None), &mut tell).await?
            }
            Err(failure) => return Err(failure),
        });
    }
}

/// An agent that runs: both ends of its link, what it keeps, and what it says.
struct Agent {
    setup: Setup,
    shelf: Shelf,
    config: Config,
    circle: Arc<Circle>,
    say: mpsc::Sender<AgentFrame>,
    heard: mpsc::Receiver<Heard>,
    courier: JoinHandle<Result<(), AgentError>>,
    desk: Desk,
    token_in: watch::Sender<Option<Secret>>,
    tokens: watch::Receiver<Option<Secret>>,
    /// It was enrolled by this process, and no join has held since.
    is_invited: bool,
    /// A session stands: the server has let this machine in.
    is_up: bool,
}

/// A driver ends with the plan that it is of.
struct AbortOnDrop(JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Agent {
    /// Keeps the plan, writes its files, and drives its join until there is another.
    async fn follow(
        &mut self,
        plan: &Plan,
        tell: &mut impl FnMut(Time, Told<'_>),
    ) -> Result<Plan, AgentError> {
        plan::may_be_followed(plan)?;
        // A join that cannot be meant takes no other's place on the disk.
        plan::target(&self.setup.root, plan)?;
        self.shelf.keep(plan)?;
        self.desk.progress.has_plan();
        let desk = &self.desk;
        plan::apply_files(&self.setup.root, plan, |step| desk.send(AgentFrame::Step(step)))?;
        self.live(plan, tell).await
    }

    /// Another plan, or after a pause this one once more: what stands in its way may pass, and the server, which knows that it
    /// came, does not send it again.
    async fn another_or(
        &mut self,
        plan: Plan,
        pause: Duration,
        tell: &mut impl FnMut(Time, Told<'_>),
    ) -> Result<Plan, AgentError> {
        match tokio::time::timeout(pause, self.await_plan(tell)).await {
            Ok(another) => another,
            Err(_) => Ok(plan),
        }
    }

    /// Waits for the machine's plan; waits and refusals become the trouble of the stage that fetches it.
    async fn await_plan(&mut self, tell: &mut impl FnMut(Time, Told<'_>)) -> Result<Plan, AgentError> {
        loop {
            let Some(next) = self.heard.recv().await else { return Err(self.link_ended().await) };
            tell(crate::driver::now(), Told::Link(&next));
            self.notes(&next);
            match next {
                Heard::Plan(plan) => return Ok(*plan),
                Heard::Wait(refused) => self.desk.wait_for_plan(&refused, tell),
                Heard::Order(order) => self.desk.take_order(order, None),
                Heard::Up { .. } => self.desk.tell_all(),
                Heard::Down(_) => self.desk.link_ended(),
                Heard::Peers(peers) => self.circle.know(&peers),
                Heard::Token(_) | Heard::Removed => {}
            }
        }
    }

    /// Whether a session stands, for a driver that begins while it does.
    fn notes(&mut self, heard: &Heard) {
        match heard {
            Heard::Up { .. } => self.is_up = true,
            Heard::Down(_) | Heard::Removed => self.is_up = false,
            _ => {}
        }
    }

    /// Why nothing comes over the link any more.
    async fn link_ended(&mut self) -> AgentError {
        match (&mut self.courier).await {
            Ok(Err(failure)) => failure,
            Ok(Ok(())) | Err(_) => AgentError::NotEnrolled,
        }
    }
}

/// A stamp of this machine's clock, for people.
fn stamp(at: Time) -> Word {
    Word::cut(&at.to_string())
}

#[cfg(test)]
mod tests;

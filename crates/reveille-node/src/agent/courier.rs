//! Keeps the link up: enrols, opens a session, renews the certificate, and tries again with a pause that grows and has jitter.
//!
//! ```text
//!  no keyring, or one that counts no more, and an invitation ─▶ enrol
//!     ─▶ keyring ─▶ session ─▶ frames both ways, heartbeats ─▶ it breaks ─▶ 1 s … 60 s ─▶ session
//! ```
//!
//! Stage reports are kept until the server has acknowledged them, and said again in the next session. Everything else is of the
//! moment, and lost with its session. A server that is away is no reason for anything on the machine.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use reveille_core::model::id::NodeName;
use reveille_wire::agent::frame::{Account, Heartbeat, Hello, Order, Peer};
use reveille_wire::agent::text::Word;
use reveille_wire::agent::{
    AgentFrame, Facts, Identity, PROTOCOL, Plan, Reason, Refused, Secret, ServerFrame,
};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use crate::driver::now;
use crate::identity;
use crate::link::{Carrier, Keyring, LinkError, RenewError, Session};
use crate::pause::{Pause, jittered};
use crate::peers::Circle;
use crate::private;
use crate::root::Root;

use super::enrolling::{Anew, AnewError, counts_no_more, enrol};
use super::reports::Reports;
use super::{AgentError, Setup, plan};

/// After a session that lasted for so long, pauses begin anew.
const WELL: Duration = Duration::from_secs(60);
/// Renewing is tried again after so long.
const RENEW_AGAIN: Duration = Duration::from_secs(10 * 60);

/// What comes over the link.
#[derive(Debug)]
pub enum Heard {
    /// A session stands.
    Up {
        /// How its frames travel.
        carrier: Carrier,
        /// Which session of this machine.
        session: u64,
    },
    /// There is none, and why.
    Down(String),
    /// The machine's plan.
    Plan(Box<Plan>),
    /// A bootstrap token.
    Token(Secret),
    /// Something to do.
    Order(Order),
    /// Not yet, and why.
    Wait(Box<Refused>),
    /// This machine was removed on purpose.
    Removed,
    /// Who else is there.
    Peers(Vec<Peer>),
}

/// The link's keeper.
pub(super) struct Courier {
    root: Root,
    folder: PathBuf,
    circle: Arc<Circle>,
    keyring: Keyring,
    identity: Identity,
    facts: Facts,
    /// An invitation that was not tried.
    anew: Option<Anew>,
    held: Option<reveille_wire::agent::plan::Held>,
    heard: mpsc::Sender<Heard>,
    out: Out,
    reports: Reports,
    beat: Heartbeat,
}

/// What is to be sent.
pub(super) struct Out {
    /// What is said at once.
    pub(super) frames: mpsc::Receiver<AgentFrame>,
    /// What was ordered, one frame at a time: whoever collects waits for the link, and nothing else does.
    pub(super) evidence: mpsc::Receiver<AgentFrame>,
}

/// What is on the machine's disk when its agent begins.
pub(super) struct Known<'a> {
    /// The plan.
    pub(super) plan: Option<&'a Plan>,
    /// Its join has held once.
    pub(super) joined: bool,
    /// What it says of itself before any plan is followed.
    pub(super) account: Option<Account>,
}

/// Which machine this is, in the words of the protocol.
fn identity(root: &Root) -> (Identity, Option<NodeName>) {
    let own = identity::Identity::read(root);
    let word = |text: &Option<String>| text.as_deref().map(Word::cut);
    let name = own.node_name();
    let read = Identity {
        instance_id: None,
        machine_id: word(&own.machine_id),
        system_uuid: own.system_uuid.as_ref().map(|uuid| Word::cut(&uuid.to_lowercase())),
        boot_id: word(&own.boot_id).unwrap_or_default(),
    };
    (read, name)
}

impl Courier {
    /// With what was kept of an enrolment, or a new one.
    pub(super) async fn new(
        setup: &Setup,
        known: Known<'_>,
        heard: mpsc::Sender<Heard>,
        out: Out,
        circle: &Arc<Circle>,
    ) -> Result<Self, AgentError> {
        let (mut identity, name) = identity(&setup.root);
        identity.instance_id = setup.instance_id.as_deref().map(Word::cut);
        let root = setup.root.clone();
        let folder = setup.folder.join(private::KEYS);
        let anew = Anew::of(setup, name.clone());
        let keyring = match Keyring::open(&folder)? {
            Some(keyring) => keyring,
            None => enrol(setup, &folder, &identity, name, &heard).await?,
        };
        circle.shows(&keyring);
        Ok(Self {
            circle: Arc::clone(circle),
            root,
            folder,
            keyring,
            identity,
            facts: setup.facts.clone(),
            anew,
            held: known.plan.map(plan::held),
            heard,
            out,
            reports: Reports::default(),
            beat: Heartbeat { stage: None, joined: known.joined, account: known.account },
        })
    }

    /// Keeps a session up until the agent ends.
    pub(super) async fn run(mut self) -> Result<(), AgentError> {
        let mut pause = Pause::default();
        loop {
            let began = Instant::now();
            let failure = match self.open().await {
                Ok(session) => self.hold(session).await,
                Err(failure) => failure,
            };
            if self.heard.is_closed() {
                return Ok(());
            }
            if began.elapsed() >= WELL {
                pause = Pause::default();
            }
            if matches!(failure.reason(), Some(Reason::CertificateRevoked)) && self.goes_back() {
                continue;
            }
            if counts_no_more(&failure) && self.enrol_anew().await {
                pause = Pause::default();
                continue;
            }
            let removed = matches!(failure.reason(), Some(Reason::NodeRemoved | Reason::MachineRemoved));
            if removed {
                self.heard.send(Heard::Removed).await.ok();
            }
            // Its node stays away, perhaps for longer than a certificate lasts; the machine is to be there when it is let in.
            if matches!(failure.reason(), Some(Reason::NodeRemoved)) && self.keyring.is_due(now()) {
                self.renew().await;
            }
            let asked_s = failure.retry_after_s();
            self.heard.send(Heard::Down(failure.with_causes())).await.ok();
            self.rest(pause.next(asked_s)).await;
        }
    }

    /// With the key that was welcomed last, in place of one that never was and is void. True where there is one.
    fn goes_back(&mut self) -> bool {
        match self.keyring.go_back() {
            Ok(true) => {
                tracing::warn!(
                    "the server refused the renewed key of this machine before its first use: a copy of the machine's disk may \
                     renew, too. The agent goes back to the key before, and renews again"
                );
                self.circle.shows(&self.keyring);
                true
            }
            Ok(false) => false,
            Err(failure) => {
                tracing::warn!("the key that was welcomed last cannot be kept: {failure}");
                false
            }
        }
    }

    /// With the invitation that was given, in place of a certificate that counts no more. True when it was let in.
    async fn enrol_anew(&mut self) -> bool {
        let Some(anew) = &self.anew else { return false };
        let failure = match anew.enrol(&self.folder, &self.identity, &self.facts).await {
            Ok(keyring) => {
                (self.keyring, self.anew) = (keyring, None);
                self.circle.shows(&self.keyring);
                return true;
            }
            Err(failure) => failure,
        };
        self.heard.send(Heard::Down(anew.told(&failure))).await.ok();
        if matches!(&failure, AnewError::Link(failure) if failure.is_final()) {
            self.anew = None;
        }
        false
    }

    /// Waits, and keeps what is reported meanwhile.
    async fn rest(&mut self, pause: Duration) {
        let until = Instant::now() + pause;
        loop {
            tokio::select! {
                () = sleep_until(until) => return,
                frame = self.out.frames.recv() => match frame {
                    Some(frame) => drop(self.keep(frame)),
                    None => return,
                },
                // Nobody waits for it any more.
                Some(_) = self.out.evidence.recv() => {}
            }
        }
    }

    /// The frame as it is said.
    fn keep(&mut self, frame: AgentFrame) -> AgentFrame {
        match frame {
            AgentFrame::Stage(report) => AgentFrame::Stage(self.reports.keep(report)),
            AgentFrame::Heartbeat(beat) => {
                self.beat = beat.clone();
                AgentFrame::Heartbeat(beat)
            }
            // Of the moment: whoever waits for it has stopped waiting when a session stands again.
            other => other,
        }
    }

    /// What could not be read when the agent began may be there by now: the server refuses one that leaves it out.
    fn complete_identity(&mut self) {
        let (read, _) = identity(&self.root);
        let own = &mut self.identity;
        own.machine_id = own.machine_id.take().or(read.machine_id);
        own.system_uuid = own.system_uuid.take().or(read.system_uuid);
    }

    async fn open(&mut self) -> Result<Session, LinkError> {
        self.complete_identity();
        let link = self.keyring.link().ok_or_else(|| LinkError::Key("its pins cannot be read".to_owned()))?;
        let hello = Hello {
            protocol: PROTOCOL,
            identity: self.identity.clone(),
            facts: self.facts.clone(),
            plan: self.held.clone(),
            joined: self.beat.joined,
        };
        let session = link.session(&self.keyring.credential, hello).await?;
        self.keyring.is_welcomed();
        let pins = session.welcome.ca_pins.iter().map(ToString::to_string).collect();
        match self.keyring.trust(pins) {
            Ok(true) => self.circle.shows(&self.keyring),
            Ok(false) => {}
            Err(failure) => tracing::warn!("the server's new pins cannot be kept: {failure}"),
        }
        self.reports.welcomed(session.welcome.reports_kept);
        let up = Heard::Up { carrier: session.carrier, session: session.welcome.session };
        self.heard.send(up).await.ok();
        Ok(session)
    }

    /// Frames both ways, until the session is over; returns why. A session that the next certificate opens takes over from
    /// the one that stands, so that the key before counts no longer than that takes.
    async fn hold(&mut self, mut session: Session) -> LinkError {
        loop {
            if let Err(failure) = self.speak(&mut session).await {
                return failure;
            }
            session = match self.open().await {
                Ok(next) => next,
                Err(failure) => return failure,
            };
        }
    }

    /// Frames both ways, until the certificate was renewed.
    async fn speak(&mut self, session: &mut Session) -> Result<(), LinkError> {
        for report in self.reports.waiting() {
            session.say(AgentFrame::Stage(report)).await?;
        }
        let beat_every = Duration::from_secs(u64::from(session.welcome.heartbeat_s.clamp(1, 300)));
        let mut beat_at = Instant::now();
        let mut renew_at = Instant::now() + Duration::from_secs(5);
        loop {
            tokio::select! {
                frame = session.next() => if self.take(frame?).await.is_break() {
                    return Err(LinkError::Key("the agent ends".to_owned()));
                },
                frame = self.out.frames.recv() => {
                    let Some(frame) = frame else { return Err(LinkError::Key("the agent ends".to_owned())) };
                    let frame = self.keep(frame);
                    session.say(frame).await?;
                }
                Some(part) = self.out.evidence.recv() => {
                    session.say(part).await?;
                }
                () = sleep_until(beat_at) => {
                    beat_at = Instant::now() + jittered(beat_every);
                    session.say(AgentFrame::Heartbeat(self.beat.clone())).await?;
                }
                () = sleep_until(renew_at) => {
                    renew_at = Instant::now() + RENEW_AGAIN;
                    if self.keyring.is_due(now()) && self.renew().await {
                        return Ok(());
                    }
                }
            }
        }
    }

    async fn take(&mut self, frame: ServerFrame) -> std::ops::ControlFlow<()> {
        let heard = match frame {
            ServerFrame::Plan(plan) => {
                self.held = Some(plan::held(&plan));
                Heard::Plan(Box::new(plan))
            }
            ServerFrame::Token(token) => Heard::Token(token.token),
            ServerFrame::Do(order) => Heard::Order(order),
            ServerFrame::Wait(refused) => Heard::Wait(Box::new(refused)),
            ServerFrame::Peers { peers } => Heard::Peers(peers.to_vec()),
            ServerFrame::Ack { .. }
            | ServerFrame::Rival(_)
            | ServerFrame::Welcome(_)
            | ServerFrame::Refuse(_)
            | ServerFrame::Unknown => return std::ops::ControlFlow::Continue(()),
        };
        match self.heard.send(heard).await {
            Ok(()) => std::ops::ControlFlow::Continue(()),
            Err(_) => std::ops::ControlFlow::Break(()),
        }
    }

    /// A certificate that cannot be renewed now is renewed later: it has a third of its life left. True when it was.
    async fn renew(&mut self) -> bool {
        let Some(link) = self.keyring.link() else { return false };
        match self.keyring.renewed(&link, now()).await {
            Ok(keyring) => {
                self.keyring = keyring;
                self.circle.shows(&self.keyring);
                return true;
            }
            Err(RenewError::Link(failure)) => {
                tracing::warn!("the certificate was not renewed: {}", failure.with_causes());
            }
            Err(failure) => tracing::warn!("the renewed certificate cannot be kept: {failure}"),
        }
        false
    }
}

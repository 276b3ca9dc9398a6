//! Keeps the link up: enrols, opens a session, renews the certificate, and tries again after a pause that grows and has
//! jitter.
//!
//! ```text
//!  no keyring, or one that counts no more, and an invitation ─▶ enrol
//!     ─▶ keyring ─▶ session ─▶ frames both ways, heartbeats ─▶ it breaks ─▶ 1 s … 60 s ─▶ session
//! ```
//!
//! The agent keeps stage reports until the server has acknowledged them, and sends them again in the next session. All
//! other frames are of the moment, and are lost with their session. A server that is away causes no change on the
//! machine.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use reveille_core::model::id::NodeName;
use reveille_wire::agent::frame::{Account, Heartbeat, Hello};
use reveille_wire::agent::text::Word;
use reveille_wire::agent::{AgentFrame, Facts, Identity, PROTOCOL, Plan, Reason, ServerFrame};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use crate::driver::now;
use crate::identity;
use crate::link::{Keyring, LinkError, RenewError, Session};
use crate::pause::{Pause, jittered};
use crate::peers::PeerSet;
use crate::private;
use crate::root::Root;

use super::enrolling::{Reenrol, ReenrolError, counts_no_more, enrol, refuses_key};
use super::reports::Reports;
use super::{AgentError, Heard, Setup, plan};

/// After a session that lasted this long, pauses start from the shortest again.
const WELL: Duration = Duration::from_secs(60);
/// The pause before the agent tries again to renew.
const RENEW_AGAIN: Duration = Duration::from_secs(10 * 60);

/// The task that keeps the link.
pub(super) struct SessionTask {
    root: Root,
    folder: PathBuf,
    peer_set: Arc<PeerSet>,
    keyring: Keyring,
    identity: Identity,
    facts: Facts,
    /// An invitation that was not tried.
    reenrol: Option<Reenrol>,
    held: Option<reveille_wire::agent::plan::Held>,
    heard: mpsc::Sender<Heard>,
    out: Out,
    reports: Reports,
    beat: Heartbeat,
}

/// The frames to send.
pub(super) struct Out {
    /// Frames that are sent at once.
    pub(super) frames: mpsc::Receiver<AgentFrame>,
    /// Frames of evidence, one at a time: only the task that collects evidence waits for the link, and no other.
    pub(super) evidence: mpsc::Receiver<AgentFrame>,
}

/// What the agent finds on the machine's disk at its start.
pub(super) struct Known<'a> {
    /// The plan.
    pub(super) plan: Option<&'a Plan>,
    /// The join of this plan has held once.
    pub(super) joined: bool,
    /// The agent's account of itself before it follows a plan.
    pub(super) account: Option<Account>,
}

/// This machine's identity, in the words of the protocol.
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

impl SessionTask {
    /// A task with the kept enrolment, or a new one.
    pub(super) async fn new(
        setup: &Setup,
        known: Known<'_>,
        heard: mpsc::Sender<Heard>,
        out: Out,
        peer_set: &Arc<PeerSet>,
    ) -> Result<Self, AgentError> {
        let (mut identity, name) = identity(&setup.root);
        identity.instance_id = setup.instance_id.as_deref().map(Word::cut);
        let root = setup.root.clone();
        let folder = setup.folder.join(private::KEYS);
        let reenrol = Reenrol::of(setup, name.clone());
        let keyring = match Keyring::open(&folder)? {
            Some(keyring) => keyring,
            None => enrol(setup, &folder, &identity, name, &heard).await?,
        };
        peer_set.shows(&keyring);
        Ok(Self {
            peer_set: Arc::clone(peer_set),
            root,
            folder,
            keyring,
            identity,
            facts: setup.facts.clone(),
            reenrol,
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
            if refuses_key(&failure) && self.goes_back(&failure) {
                continue;
            }
            if counts_no_more(&failure) && self.enrol_again().await {
                pause = Pause::default();
                continue;
            }
            let removed = matches!(failure.reason(), Some(Reason::NodeRemoved | Reason::MachineRemoved));
            if removed {
                self.heard.send(Heard::Removed).await.ok();
            }
            // The machine's Node is removed, perhaps for longer than a certificate lasts; the machine has to have a valid
            // certificate when it is readmitted.
            if matches!(failure.reason(), Some(Reason::NodeRemoved)) && self.keyring.is_due(now()) {
                self.renew().await;
            }
            let asked_s = failure.retry_after_s();
            self.heard.send(Heard::Down(failure.with_causes())).await.ok();
            self.rest(pause.next(asked_s)).await;
        }
    }

    /// Uses the key of the last welcome instead of one that was never welcomed and is void. True where there is one.
    fn goes_back(&mut self, failure: &LinkError) -> bool {
        match self.keyring.go_back(now()) {
            Ok(true) => {
                tracing::warn!(
                    "the renewed key of this machine did not count at its first use ({}): a copy of the machine's disk may \
                     renew, too, or the server gave a certificate that is not its own. The agent goes back to the key before, and renews again",
                    failure.with_causes()
                );
                self.peer_set.shows(&self.keyring);
                true
            }
            Ok(false) => false,
            Err(failure) => {
                tracing::warn!("the key that was welcomed last cannot be kept: {failure}");
                false
            }
        }
    }

    /// Uses the given invitation instead of a certificate that does not count any more. True when the server admitted the
    /// machine.
    async fn enrol_again(&mut self) -> bool {
        let Some(reenrol) = &self.reenrol else { return false };
        let failure = match reenrol.enrol(&self.folder, &self.identity, &self.facts).await {
            Ok(keyring) => {
                (self.keyring, self.reenrol) = (keyring, None);
                self.peer_set.shows(&self.keyring);
                return true;
            }
            Err(failure) => failure,
        };
        self.heard.send(Heard::Down(reenrol.told(&failure))).await.ok();
        if matches!(&failure, ReenrolError::Link(failure) if failure.is_final()) {
            self.reenrol = None;
        }
        false
    }

    /// Waits, and keeps the reports that come meanwhile.
    async fn rest(&mut self, pause: Duration) {
        let until = Instant::now() + pause;
        loop {
            tokio::select! {
                () = sleep_until(until) => return,
                frame = self.out.frames.recv() => match frame {
                    Some(frame) => drop(self.keep(frame)),
                    None => return,
                },
                // No receiver waits for this evidence any more.
                Some(_) = self.out.evidence.recv() => {}
            }
        }
    }

    /// The frame as the agent sends it.
    fn keep(&mut self, frame: AgentFrame) -> AgentFrame {
        match frame {
            AgentFrame::Stage(report) => AgentFrame::Stage(self.reports.keep(report)),
            AgentFrame::Heartbeat(beat) => {
                self.beat = beat.clone();
                AgentFrame::Heartbeat(beat)
            }
            // A frame of the moment: when a session begins again, the server does not wait for it any more.
            other => other,
        }
    }

    /// An id that could not be read at the agent's start may be readable by now: the server refuses a hello that leaves
    /// it out.
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
        match self.keyring.trust(pins, session.known_by) {
            Ok(true) => self.peer_set.shows(&self.keyring),
            Ok(false) => {}
            Err(failure) => tracing::warn!("the server's new pins cannot be kept: {failure}"),
        }
        self.reports.welcomed(session.welcome.reports_kept);
        let up = Heard::Up { carrier: session.carrier, session: session.welcome.session };
        self.heard.send(up).await.ok();
        Ok(session)
    }

    /// Exchanges frames until the session ends; returns the reason. A session with the next certificate takes over from
    /// the current one, so that the key before counts no longer than necessary.
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

    /// Exchanges frames until the certificate was renewed.
    async fn speak(&mut self, session: &mut Session) -> Result<(), LinkError> {
        for report in self.reports.waiting() {
            self.say(session, AgentFrame::Stage(report)).await?;
        }
        let beat_every = Duration::from_secs(u64::from(session.welcome.heartbeat_s.clamp(1, 300)));
        let mut beat_at = Instant::now();
        let mut renew_at = Instant::now() + Duration::from_secs(5);
        loop {
            tokio::select! {
                frame = session.next() => self.take(frame?).await?,
                frame = self.out.frames.recv() => {
                    let frame = self.keep(frame.ok_or_else(ends)?);
                    self.say(session, frame).await?;
                }
                Some(part) = self.out.evidence.recv() => self.say(session, part).await?,
                () = sleep_until(beat_at) => {
                    beat_at = Instant::now() + jittered(beat_every);
                    self.say(session, AgentFrame::Heartbeat(self.beat.clone())).await?;
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

    /// Sends a frame, and takes those that come while there is no room for it.
    async fn say(&mut self, session: &mut Session, frame: AgentFrame) -> Result<(), LinkError> {
        while let Some(heard) = session.next_unless_room().await? {
            self.take(heard).await?;
        }
        session.say(frame).await
    }

    async fn take(&mut self, frame: ServerFrame) -> Result<(), LinkError> {
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
            | ServerFrame::Unknown => return Ok(()),
        };
        self.heard.send(heard).await.map_err(|_| ends())
    }

    /// A certificate that cannot be renewed now is renewed later: it has a third of its life left. True when it was
    /// renewed.
    async fn renew(&mut self) -> bool {
        let Some(link) = self.keyring.link() else { return false };
        match self.keyring.renewed(&link, now()).await {
            Ok(keyring) => {
                self.keyring = keyring;
                self.peer_set.shows(&self.keyring);
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

/// No task hears the link any more, or none says anything.
fn ends() -> LinkError {
    LinkError::Key("the agent ends".to_owned())
}

//! The agents of other machines: whom to ask whether the API server answers, and what to say when one of them asks.
//!
//! ```text
//!  server ─▶ peers ─▶ Circle ─▶ peers.json     Effect::AskPeers ─▶ ask ═ TLS, both certificates ═▶ listen ─▶ Event::PeerAsked
//!  keyring ─▶ certificate, pins ─▶ Circle      Event::PeerAnswered ◀════ what it saw, how old ══════════ Effect::AnswerPeer
//! ```
//!
//! Asking works when the registration server is away: peers, certificate and pins are on the disk. Both sides show the
//! certificate that the registration server gave them and accept none but its authority's (`trust`); whoever is asked must be
//! the machine that was meant, by its record. What is said is what was seen and its age: a peer is a witness and gives no orders.
//! Everything is bounded: connections, bytes, time, and how often a question makes this machine look itself.

mod ask;
mod listen;
mod trust;

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use reveille_agent::model::PeerAnswer;
use reveille_core::model::id::{NodeName, ZoneName};
use reveille_wire::agent::frame::Peer;
use reveille_wire::agent::peer::{Saw, address};
use reveille_wire::agent::text::{List, Word};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use tokio_rustls::rustls::{ClientConfig, ServerConfig};

use crate::durable::replace;
use crate::link::Keyring;

pub use listen::{Listener, own_address};

/// Questions that wait for this machine's own look. As many as the agent answers in one go.
const ASKED_MAX: usize = 64;
/// What is older says nothing of now.
pub const FRESH: Duration = Duration::from_secs(30);
/// Questions in a shorter time do not make this machine look once more.
pub const LOOK_EVERY: Duration = Duration::from_secs(2);

/// A peer that can be asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Known {
    /// Its record, which its certificate names.
    machine: Word,
    at: SocketAddr,
    zone: Option<ZoneName>,
}

/// Somebody asks. The answer is a sign that what was seen is as new as it gets.
#[derive(Debug)]
pub struct Question {
    /// The record of the machine that asks, as its certificate names it.
    pub from: NodeName,
    /// Where the answer goes.
    pub reply: oneshot::Sender<PeerAnswer>,
}

/// This machine among its peers.
pub struct Circle {
    file: PathBuf,
    zone: Option<ZoneName>,
    known: Mutex<BTreeMap<NodeName, Known>>,
    shown: Mutex<Option<Shown>>,
    /// Its registration server is on this machine, as in a rig: then its peers may be, too.
    may_be_here: AtomicBool,
    seen: Mutex<Option<(bool, Instant)>>,
    questions: mpsc::Sender<Question>,
    /// For whoever drives the machine's join; nobody does while there is no plan.
    pub(crate) asked: tokio::sync::Mutex<mpsc::Receiver<Question>>,
}

/// Both ends of the certificate that this machine has now.
#[derive(Clone)]
struct Shown {
    client: Arc<ClientConfig>,
    server: Arc<ServerConfig>,
}

impl std::fmt::Debug for Circle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Circle").field("file", &self.file).finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Circle {
    /// With the peers that were remembered. What cannot be read of them is nobody: the server tells again.
    pub fn remembering(folder: &Path, zone: Option<ZoneName>) -> Self {
        let file = folder.join("peers.json");
        let read = std::fs::read(&file).ok().and_then(|text| {
            serde_json::from_slice::<List<Peer, 256>>(&text)
                .map_err(|error| tracing::warn!("{} is not read: {error}", file.display()))
                .ok()
        });
        let (questions, asked) = mpsc::channel(ASKED_MAX);
        Self {
            known: Mutex::new(read.map(|peers| to_be_asked(&peers.into_vec())).unwrap_or_default()),
            file,
            zone,
            shown: Mutex::new(None),
            may_be_here: AtomicBool::new(false),
            seen: Mutex::new(None),
            questions,
            asked: tokio::sync::Mutex::new(asked),
        }
    }

    /// The server told who is there. They are remembered; a disk that refuses costs the memory alone.
    pub fn know(&self, peers: &[Peer]) {
        *lock(&self.known) = to_be_asked(peers);
        let is_kept = |peer: &&Peer| peer.answers_at.as_ref().is_none_or(|at| address(at, true).is_some());
        let kept: Vec<&Peer> = peers.iter().filter(is_kept).collect();
        let kept = serde_json::to_vec(&kept).unwrap_or_default();
        if let Err(error) = replace(&self.file, &kept) {
            tracing::warn!("peers cannot be remembered in {}: {error}", self.file.display());
        }
    }

    /// Who can be asked, each with its zone.
    pub fn peers(&self) -> BTreeMap<NodeName, Option<ZoneName>> {
        let known = lock(&self.known);
        let asked = known.iter().filter(|(_, known)| self.may_ask(known));
        asked.map(|(name, known)| (name.clone(), known.zone.clone())).collect()
    }

    /// A machine can be at its address, and it is not this one.
    fn may_ask(&self, known: &Known) -> bool {
        let may_be_here = self.may_be_here.load(Ordering::Relaxed);
        address(&known.at.to_string(), may_be_here).is_some()
    }

    /// This machine's failure domain.
    pub fn zone(&self) -> Option<ZoneName> {
        self.zone.clone()
    }

    /// From now on it shows this, and accepts those whom these pins vouch for.
    pub fn shows(&self, keyring: &Keyring) {
        let server = keyring.link().map(|link| link.server.host);
        let is_here = server.is_some_and(|host| {
            host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.to_canonical().is_loopback())
        });
        self.may_be_here.store(is_here, Ordering::Relaxed);
        let shown = trust::configure(keyring);
        if let Err(why) = &shown {
            tracing::warn!("peers are neither asked nor answered: {why}");
        }
        *lock(&self.shown) = shown.ok().map(|(client, server)| Shown { client, server });
    }

    /// This machine looked at the API server itself.
    pub fn saw(&self, answers: bool) {
        *lock(&self.seen) = Some((answers, Instant::now()));
    }

    /// What it saw lately enough to be said again.
    pub fn saw_just_now(&self) -> Option<bool> {
        lock(&self.seen).filter(|(_, at)| at.elapsed() < LOOK_EVERY).map(|(answers, _)| answers)
    }

    /// Somebody drives this machine's join, and looks when a peer asks.
    fn is_driven(&self) -> bool {
        self.asked.try_lock().is_err()
    }

    /// What it saw, for whoever asks.
    fn says(&self) -> Saw {
        match *lock(&self.seen) {
            None => Saw { api: Saw::CANNOT_TELL.into(), age_s: None },
            Some((answers, at)) => Saw {
                api: if answers { Saw::ANSWERS } else { Saw::SILENT }.into(),
                age_s: Some(u32::try_from(at.elapsed().as_secs()).unwrap_or(u32::MAX)),
            },
        }
    }

    /// Asks one of them; none where it does not answer within this.
    pub async fn ask(&self, peer: &NodeName, within: Duration) -> Option<PeerAnswer> {
        let known = lock(&self.known).get(peer).filter(|known| self.may_ask(known)).cloned()?;
        let shown = lock(&self.shown).clone()?;
        match tokio::time::timeout(within, ask::ask(&known, shown.client)).await {
            Ok(Ok(saw)) => Some(answer(&saw)),
            Ok(Err(why)) => {
                tracing::debug!("{peer} at {} does not answer: {why}", known.at);
                None
            }
            Err(_) => None,
        }
    }
}

/// What a peer's word is worth: "no order" is that it reached the API server just now. Whatever else it says, it was heard, and
/// does not speak for this machine's being alone in it.
fn answer(saw: &Saw) -> PeerAnswer {
    let fresh = saw.age_s.is_some_and(|age_s| u64::from(age_s) <= FRESH.as_secs());
    if saw.api.as_str() == Saw::ANSWERS && fresh { PeerAnswer::NoOrder } else { PeerAnswer::LostToo }
}

/// Those that say where they answer and who they are. Whoever says that it answers where no machine can is not among them: a
/// machine that lies must not have others ask a cloud's metadata, or themselves.
fn to_be_asked(peers: &[Peer]) -> BTreeMap<NodeName, Known> {
    let known = |peer: &Peer| {
        let said = peer.answers_at.as_ref()?;
        let at = address(said, true).or_else(|| {
            tracing::warn!("{} is not asked: no machine answers at {said}", peer.node_name);
            None
        })?;
        let zone = peer.zone.as_ref().map(|zone| ZoneName::from(zone.as_str()));
        let known = Known { machine: peer.machine.clone(), at, zone };
        (!peer.machine.is_empty()).then(|| (NodeName::from(peer.node_name.as_str()), known))
    };
    peers.iter().filter_map(known).collect()
}

#[cfg(test)]
mod tests;

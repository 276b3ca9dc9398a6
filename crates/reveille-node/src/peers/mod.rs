//! The agents of other machines: which to ask whether the API server answers, and the answer when one of them asks.
//!
//! ```text
//!  server ─▶ peers ─▶ PeerSet ─▶ peers.json     Effect::AskPeers ─▶ ask ═ TLS, both certificates ═▶ listen ─▶ Event::PeerAsked
//!  keyring ─▶ certificate, pins ─▶ PeerSet      Event::PeerAnswered ◀════ what it saw, how old ══════════ Effect::AnswerPeer
//! ```
//!
//! Asking works while the registration server is down: peers, certificate and pins are on the disk. Both sides show the
//! certificate of the registration server and accept only those of its authority (`trust`). The peer that answers must be
//! the machine that was meant, by its record. The answer is what the peer saw, with its age: a peer is a witness and
//! gives no orders. Everything is bounded: connections, bytes, time, and how often a question makes this machine check
//! the API server.

mod ask;
mod listen;
mod pace;
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
use pace::Pace;

pub use listen::{Listener, own_address};

/// The number of questions that wait for this machine's own check: as many as the agent answers at once.
const ASKED_MAX: usize = 64;
/// An older result says nothing about now.
pub const FRESH: Duration = Duration::from_secs(30);
/// Questions within this time do not cause another check.
pub const LOOK_EVERY: Duration = Duration::from_secs(2);

/// The number of lists that are written at once, and the time after which one more is. A server says a list only when it has
/// changed; one that was taken over may say a thousand in a second.
const KEPT_AT_ONCE: u32 = 16;
const KEPT_EVERY: Duration = Duration::from_secs(30);
/// Addresses at which no machine can be are reported at most once in this time.
const TOLD_EVERY: Duration = Duration::from_secs(10 * 60);

/// A peer that can be asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Known {
    /// The peer's record, which its certificate names.
    machine: Word,
    at: SocketAddr,
    zone: Option<ZoneName>,
}

/// A peer's question. Its answer is the result of a new check.
#[derive(Debug)]
pub struct Question {
    /// The record of the machine that asks, as its certificate names it.
    pub from: NodeName,
    /// The channel for the answer.
    pub reply: oneshot::Sender<PeerAnswer>,
}

/// This machine and its peers.
pub struct PeerSet {
    file: PathBuf,
    zone: Option<ZoneName>,
    known: Mutex<BTreeMap<NodeName, Known>>,
    shown: Mutex<Option<Shown>>,
    /// The registration server is on this machine, as in a rig: then peers may be here, too.
    may_be_here: AtomicBool,
    seen: Mutex<Option<(bool, Instant)>>,
    /// The list in the file, where this process wrote it, and when another one may be written.
    kept: Mutex<(Vec<u8>, Pace)>,
    /// When addresses at which no machine can be may be reported.
    told: Mutex<Pace>,
    questions: mpsc::Sender<Question>,
    /// Questions for the driver of the machine's join; without a plan there is no driver.
    pub(crate) asked: tokio::sync::Mutex<mpsc::Receiver<Question>>,
}

/// The TLS configurations for this machine's current certificate, as client and as server.
#[derive(Clone)]
struct Shown {
    client: Arc<ClientConfig>,
    server: Arc<ServerConfig>,
}

impl std::fmt::Debug for PeerSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PeerSet").field("file", &self.file).finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl PeerSet {
    /// The set with the remembered peers. Peers that cannot be read are dropped: the server sends them again.
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
            kept: Mutex::new((Vec::new(), Pace::new(KEPT_AT_ONCE, KEPT_EVERY))),
            told: Mutex::new(Pace::new(1, TOLD_EVERY)),
            questions,
            asked: tokio::sync::Mutex::new(asked),
        }
    }

    /// Takes the peers that the server sent. They are remembered at a pace; a list that is not, and a disk error, cost only
    /// that memory.
    pub fn know(&self, peers: &[Peer]) {
        let is_kept = |peer: &&Peer| peer.answers_at.as_ref().is_none_or(|at| address(at, true).is_some());
        let kept: Vec<&Peer> = peers.iter().filter(is_kept).collect();
        if let Some(first) = peers.iter().find(|peer| !is_kept(peer))
            && lock(&self.told).may(Instant::now())
        {
            tracing::warn!(
                "{} of {} peers are not asked, {} the first of them: no machine answers at their addresses",
                peers.len() - kept.len(),
                peers.len(),
                first.node_name
            );
        }
        *lock(&self.known) = to_be_asked(peers);
        let kept = serde_json::to_vec(&kept).unwrap_or_default();
        let mut last = lock(&self.kept);
        if last.0 == kept || !last.1.may(Instant::now()) {
            return;
        }
        match replace(&self.file, &kept) {
            Ok(()) => last.0 = kept,
            Err(error) => tracing::warn!("peers cannot be remembered in {}: {error}", self.file.display()),
        }
    }

    /// The peers that can be asked, each with its zone.
    pub fn peers(&self) -> BTreeMap<NodeName, Option<ZoneName>> {
        let known = lock(&self.known);
        let asked = known.iter().filter(|(_, known)| self.may_ask(known));
        asked.map(|(name, known)| (name.clone(), known.zone.clone())).collect()
    }

    /// True when the peer's address is possible, and not this machine's own.
    fn may_ask(&self, known: &Known) -> bool {
        let may_be_here = self.may_be_here.load(Ordering::Relaxed);
        address(&known.at.to_string(), may_be_here).is_some()
    }

    /// This machine's failure domain.
    pub fn zone(&self) -> Option<ZoneName> {
        self.zone.clone()
    }

    /// From now on this machine shows this keyring's certificate, and accepts peers by its pins.
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

    /// Notes this machine's own check of the API server.
    pub fn saw(&self, answers: bool) {
        *lock(&self.seen) = Some((answers, Instant::now()));
    }

    /// The result of a check that is recent enough to be repeated.
    pub fn saw_just_now(&self) -> Option<bool> {
        lock(&self.seen).filter(|(_, at)| at.elapsed() < LOOK_EVERY).map(|(answers, _)| answers)
    }

    /// True when a driver runs this machine's join, and checks when a peer asks.
    fn is_driven(&self) -> bool {
        self.asked.try_lock().is_err()
    }

    /// What this machine saw, as an answer to a peer.
    fn says(&self) -> Saw {
        match *lock(&self.seen) {
            None => Saw { api: Saw::CANNOT_TELL.into(), age_s: None },
            Some((answers, at)) => Saw {
                api: if answers { Saw::ANSWERS } else { Saw::SILENT }.into(),
                age_s: Some(u32::try_from(at.elapsed().as_secs()).unwrap_or(u32::MAX)),
            },
        }
    }

    /// Asks one of the peers; none where it does not answer within this time.
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

/// The meaning of a peer's answer. "No order" means that the peer reached the API server just now. Any other answer shows
/// that the peer was reached, which contradicts that this machine is alone.
fn answer(saw: &Saw) -> PeerAnswer {
    let fresh = saw.age_s.is_some_and(|age_s| u64::from(age_s) <= FRESH.as_secs());
    if saw.api.as_str() == Saw::ANSWERS && fresh { PeerAnswer::NoOrder } else { PeerAnswer::LostToo }
}

/// The peers that say their address and their record. A peer at an address where no machine can be is left out. A machine
/// that lies must not make others ask a cloud's metadata service, or themselves.
fn to_be_asked(peers: &[Peer]) -> BTreeMap<NodeName, Known> {
    let known = |peer: &Peer| {
        let said = peer.answers_at.as_ref()?;
        let at = address(said, true)?;
        let zone = peer.zone.as_ref().map(|zone| ZoneName::from(zone.as_str()));
        let known = Known { machine: peer.machine.clone(), at, zone };
        (!peer.machine.is_empty()).then(|| (NodeName::from(peer.node_name.as_str()), known))
    };
    peers.iter().filter_map(known).collect()
}

#[cfg(test)]
mod tests;

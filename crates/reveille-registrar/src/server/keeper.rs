//! The one owner of the registry, on a thread of its own: this thread may wait for a disk, and no other task has to.
//!
//! ```text
//!  routes, sockets, the binary ─▶ Word (bounded queue) ─▶ drain ─▶ step … step ─▶ records: one write, one fsync ─▶ the rest
//! ```
//!
//! Everything that waits when the thread comes back from the disk is one batch. Replies, frames and tokens go out after
//! the sync of their records. When the disk fails, nothing of the batch goes out and the thread ends. Waiting clients get
//! `UNAVAILABLE`. The process then has to be restarted, because the registry remembers more than the ledger.
//!
//! The frames of a session wait in its queue ([`super::senders`]). Tokens of joins live here, in memory, until they end.
//! A machine may be joining with a replaced token just now, so that token is deleted together with the one that replaced
//! it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use reveille_core::model::id::RosterName;
use reveille_core::model::time::{Span, Time};
use reveille_wire::agent::frame::Token;
use reveille_wire::agent::text::{List, Sentence, Word as Text};
use reveille_wire::agent::{Reason, Secret, ServerFrame};
use tokio::sync::{mpsc, oneshot};

use super::audit;
use super::clock;
use super::ear::Ear;
use super::senders::{FrameSender, FrameSenders, Outgoing, pair};
use super::store::Store;
use crate::registry::{Ask, Conn, Effect, Event, Heard, MachineId, OrderId, Registry, Reply};

/// The number of words that may wait for the thread.
const WORDS_MAX: usize = 4096;
/// The maximum number of events of one batch.
const BATCH_MAX: usize = 512;
/// The number of messages that may wait for the controller, and of tokens that may wait for the token issuer.
const EDGE_MAX: usize = 8192;

/// How long the thread waits for the token issuer, which may skip requests that are older than this. The limit is longer
/// than the time after which the registry asks again: a late token is still a token.
const MINT_WITHIN: Duration = Duration::from_secs(5 * 60);

/// The thread ended, or never answers.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the registry takes no more")]
pub struct Over;

/// A request about tokens of joins, for the token issuer outside of this crate.
#[derive(Debug)]
pub enum TokenRequest {
    /// Make a token.
    Make {
        /// The roster of the cluster.
        roster: RosterName,
        /// The machine.
        machine: MachineId,
        /// The token's lifetime.
        ttl: Span,
        /// The token, or why there is none. Closed when the server does not wait for the answer any more.
        reply: oneshot::Sender<Result<Secret, Sentence>>,
    },
    /// Delete a token, which would soon expire anyway.
    Drop {
        /// The roster of the cluster.
        roster: RosterName,
        /// The token.
        token: Secret,
    },
}

type View = Box<dyn FnOnce(&Registry, Time) + Send>;

enum Word {
    Event(Event),
    Asked(Ask, oneshot::Sender<Reply>, Event),
    Opened(Conn, FrameSender, Event),
    Minted(MachineId, Result<Secret, Sentence>),
    View(View),
    Pins(Vec<String>),
    End,
}

/// A handle to the thread; cheap to clone.
#[derive(Clone)]
pub struct Hand {
    words: mpsc::Sender<Word>,
    numbers: Arc<AtomicU64>,
}

/// The outputs of the thread, for the process that runs the server.
pub(super) struct Edges {
    pub(super) heard: mpsc::Receiver<Heard>,
    pub(super) token_requests: mpsc::Receiver<TokenRequest>,
}

impl Hand {
    /// Sends an event; waits while the thread has too much to do.
    ///
    /// # Errors
    ///
    /// The thread ended.
    pub async fn say(&self, event: Event) -> Result<(), Over> {
        self.words.send(Word::Event(event)).await.map_err(|_| Over)
    }

    /// Sends a request, and waits until its answer is durable.
    ///
    /// # Errors
    ///
    /// The thread ended.
    pub async fn ask(&self, event: impl FnOnce(Ask) -> Event) -> Result<Reply, Over> {
        let ask = Ask(self.number());
        let (sender, receiver) = oneshot::channel();
        self.words.send(Word::Asked(ask, sender, event(ask))).await.map_err(|_| Over)?;
        receiver.await.map_err(|_| Over)
    }

    /// Reads the registry between two events.
    ///
    /// # Errors
    ///
    /// The thread ended.
    pub async fn view<T: Send + 'static>(
        &self,
        look: impl FnOnce(&Registry, Time) -> T + Send + 'static,
    ) -> Result<T, Over> {
        let (sender, receiver) = oneshot::channel();
        // The caller may have stopped waiting.
        let view: View = Box::new(move |registry, now| drop(sender.send(look(registry, now))));
        self.words.send(Word::View(view)).await.map_err(|_| Over)?;
        receiver.await.map_err(|_| Over)
    }

    /// Why a queue was closed without a frame: the thread has ended, or the client took no frames for too long.
    pub(super) fn why_closed(&self) -> Reason {
        if self.words.is_closed() {
            Reason::Unavailable
        } else {
            Reason::TooMany { of: "frames that were not taken".into() }
        }
    }

    /// A new number for an order.
    pub fn order_id(&self) -> OrderId {
        OrderId(self.number())
    }

    /// Begins a connection's session; the receiver gets its frames.
    pub(super) async fn open(
        &self,
        event: impl FnOnce(Conn) -> Event,
    ) -> Result<(Conn, mpsc::Receiver<Outgoing>), Over> {
        let conn = Conn(self.number());
        let (sender, receiver) = pair();
        self.words.send(Word::Opened(conn, sender, event(conn))).await.map_err(|_| Over)?;
        Ok((conn, receiver))
    }

    /// Sets the authorities' pins.
    pub(super) async fn pins(&self, pins: Vec<String>) -> Result<(), Over> {
        self.words.send(Word::Pins(pins)).await.map_err(|_| Over)
    }

    /// Ends the thread after everything that was sent before.
    pub(super) async fn end(&self) {
        // A thread that has already ended needs no message.
        drop(self.words.send(Word::End).await);
    }

    fn number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }
}

/// Starts the thread.
pub(super) fn start(
    registry: Registry,
    store: Store,
    pins: Vec<String>,
) -> std::io::Result<(Hand, Edges, std::thread::JoinHandle<()>)> {
    let (words, inbox) = mpsc::channel(WORDS_MAX);
    let (heard_out, heard) = mpsc::channel(EDGE_MAX);
    let (mints_out, token_requests) = mpsc::channel(EDGE_MAX);
    // Numbers of orders must not repeat those of an earlier process: an agent ignores an order that it knows.
    let first = u64::try_from(clock::wall().ms).unwrap_or(0) << 20;
    let hand = Hand { words: words.clone(), numbers: Arc::new(AtomicU64::new(first)) };
    let keeper = Keeper {
        registry,
        store,
        words: words.downgrade(),
        asks: BTreeMap::new(),
        senders: FrameSenders::default(),
        secrets: BTreeMap::new(),
        dropped: BTreeMap::new(),
        pins,
        ear: Ear::new(heard_out),
        token_requests: mints_out,
        beat_at: Time::default(),
        clocks: clock::Clocks::default(),
        runtime: tokio::runtime::Handle::current(),
    };
    let thread = std::thread::Builder::new().name("registry".to_owned()).spawn(move || keeper.work(inbox))?;
    Ok((hand, Edges { heard, token_requests }, thread))
}

struct Keeper {
    registry: Registry,
    store: Store,
    words: mpsc::WeakSender<Word>,
    asks: BTreeMap<Ask, oneshot::Sender<Reply>>,
    senders: FrameSenders,
    /// The tokens of each machine that may still be valid, the newest last, and when they end by a monotonic clock.
    secrets: BTreeMap<MachineId, Vec<(Secret, Instant)>>,
    /// The tokens to delete when the batch is durable.
    dropped: BTreeMap<MachineId, Vec<Secret>>,
    pins: Vec<String>,
    ear: Ear,
    token_requests: mpsc::Sender<TokenRequest>,
    beat_at: Time,
    clocks: clock::Clocks,
    runtime: tokio::runtime::Handle,
}

impl Keeper {
    fn work(mut self, mut inbox: mpsc::Receiver<Word>) {
        while let Some(first) = inbox.blocking_recv() {
            let mut out = Vec::new();
            let mut next = Some(first);
            let mut count = 0;
            let mut ends = false;
            while let Some(word) = next.take() {
                ends |= self.take(word, &mut out);
                count += 1;
                if count < BATCH_MAX && !ends {
                    next = inbox.try_recv().ok();
                }
            }
            if !self.settle(out) || ends {
                break;
            }
        }
        // From here on no request succeeds; this comes before the first queue is closed.
        inbox.close();
        self.senders.farewell();
    }

    /// True for the last word.
    fn take(&mut self, word: Word, out: &mut Vec<Effect>) -> bool {
        let (now, set) = self.clocks.read();
        if let Some(by) = set {
            tracing::warn!(
                by_ms = by.ms,
                "the clock was set, or this process stood still; no machine is silent for that"
            );
            self.step(now, Event::ClockSet { by }, out);
        }
        let event = match word {
            Word::Event(event) => {
                if let Event::Gone(conn) = &event {
                    self.senders.gone(*conn);
                }
                event
            }
            Word::Asked(ask, sender, event) => {
                self.asks.insert(ask, sender);
                event
            }
            Word::Opened(conn, sender, event) => {
                self.senders.open(conn, sender);
                event
            }
            Word::Minted(machine, outcome) => {
                let ttl = Duration::from(self.registry.settings().token_ttl);
                let outcome = outcome.map(|token| {
                    let made = (token, Instant::now() + ttl);
                    self.secrets.entry(machine.clone()).or_default().push(made);
                });
                Event::TokenMade { machine, outcome }
            }
            Word::View(view) => {
                view(&self.registry, now);
                return false;
            }
            Word::Pins(pins) => {
                self.pins = pins;
                // A welcome names the pins, and an agent with a long session may not get another welcome for weeks: so
                // each connected machine reconnects now.
                self.senders.farewell();
                return false;
            }
            Word::End => return true,
        };
        self.step(now, event, out);
        false
    }

    fn step(&mut self, now: Time, event: Event, out: &mut Vec<Effect>) {
        let effects = self.registry.step(now, event);
        for effect in &effects {
            if let Effect::DropToken { machine, .. } = effect {
                // Only the tokens that exist now: a token that comes later in the same batch is for the machine that
                // waits then.
                let tokens = self.secrets.remove(machine).unwrap_or_default();
                let dropped = self.dropped.entry(machine.clone()).or_default();
                dropped.extend(tokens.into_iter().map(|(token, _)| token));
            }
        }
        out.extend(effects);
    }

    /// Makes the records durable, then performs the rest. False when the disk failed.
    fn settle(&mut self, out: Vec<Effect>) -> bool {
        let records = out.iter().filter_map(|effect| match effect {
            Effect::Record(record) => Some(record),
            _ => None,
        });
        let mut kept = self.store.keep(records);
        if kept.is_ok() && self.store.is_full() {
            kept = self.store.rotate(&self.registry.index().checkpoint());
        }
        let now = clock::wall();
        if kept.is_ok() && now.since(self.beat_at) >= Span::from_s(5) {
            self.beat_at = now;
            kept = self.store.beat(now);
            self.forget_ended_tokens();
        }
        if let Err(why) = kept {
            tracing::error!("the registrations' ledger takes nothing more, and no machine is let in: {why}");
            return false;
        }
        for effect in out {
            self.perform(effect);
        }
        true
    }

    fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::Record(_) => {}
            Effect::Reply(ask, reply) => {
                if let Some(sender) = self.asks.remove(&ask) {
                    // The client may have gone away; the record is durable all the same.
                    drop(sender.send(reply));
                }
            }
            Effect::Send(conn, mut frame) => {
                if let ServerFrame::Welcome(welcome) = &mut frame {
                    welcome.ca_pins = List::first(self.pins.iter().map(|pin| Text::cut(pin)));
                }
                self.senders.send(conn, frame);
            }
            Effect::SendToken(conn, machine) => {
                let ttl = self.registry.settings().token_ttl;
                let ttl_s = u32::try_from(ttl.ms / 1000).unwrap_or(u32::MAX);
                let newest = self.secrets.get(&machine).and_then(|tokens| tokens.last());
                if let Some(token) = newest.map(|(token, _)| token.clone()) {
                    self.senders.send(conn, ServerFrame::Token(Token { token, ttl_s }));
                }
            }
            Effect::Close(conn, refused) => self.senders.close(conn, refused),
            Effect::MakeToken { machine, roster, ttl } => self.make_token(machine, roster, ttl),
            Effect::DropToken { machine, roster } => {
                for token in self.dropped.remove(&machine).unwrap_or_default() {
                    // The token expires on its own if the token issuer does not delete it.
                    drop(self.token_requests.try_send(TokenRequest::Drop { roster: roster.clone(), token }));
                }
            }
            Effect::InvitationOver(over) => audit::over(&over),
            Effect::Tell(heard) => self.ear.tell(heard),
        }
    }

    fn forget_ended_tokens(&mut self) {
        let now = Instant::now();
        self.secrets.retain(|_, tokens| {
            tokens.retain(|(_, ends)| *ends > now);
            !tokens.is_empty()
        });
    }

    fn make_token(&self, machine: MachineId, roster: RosterName, ttl: Span) {
        let (reply, made) = oneshot::channel();
        let asked =
            self.token_requests.try_send(TokenRequest::Make { roster, machine: machine.clone(), ttl, reply });
        let words = self.words.clone();
        self.runtime.spawn(async move {
            let made = match asked {
                Ok(()) => match tokio::time::timeout(MINT_WITHIN, made).await {
                    Ok(made) => made.unwrap_or_else(|_| Err("no token issuer runs here".into())),
                    Err(_) => Err("the token issuer did not answer".into()),
                },
                Err(_) => Err("too many tokens wait to be made".into()),
            };
            if let Some(words) = words.upgrade() {
                // The registry itself gives up on a token without an answer.
                drop(words.send(Word::Minted(machine, made)).await);
            }
        });
    }
}

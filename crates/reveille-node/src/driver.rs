//! Runs the agent's step function on this machine: events go in, effects are performed; the driver decides nothing.
//!
//! ```text
//!  State::step(now, event) ─▶ Effect ─▶ a task with a deadline ─▶ Event ─▶ … ; reports and lines ─▶ the listener
//! ```
//!
//! Every effect that the agent waits for gets an answer, also when it took too long: the deadline is the effect's own.
//! Tasks end with the driver. The driver writes the memory before it takes the next event, so that it never reports
//! "durable" too early.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use reveille_agent::account::Account;
use reveille_agent::effect::{Effect, Report, Verb};
use reveille_agent::model::{Machine, NodeSeen, OperationId, Outcome, PeerAnswer, WatchdogSeen};
use reveille_agent::{Config, Event, Start, State};
use reveille_core::model::id::NodeName;
use reveille_core::model::time::{Span, Time};
use thiserror::Error;
use tokio::sync::{MutexGuard, mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};

use crate::executor::{Executor, Tokens};
use crate::inspect::{Found, Inspector, Unanswered};
use crate::memory_file::{MemoryError, MemoryFile};
use crate::peers::{PeerSet, Question};
use crate::private::{self, FolderError};

/// The length of the queue: events wait no longer than a step takes.
const QUEUED: usize = 64;
/// The interval at which the driver reads the machine again: an operator may join it by hand, or add a control plane. It
/// reads every process.
const MACHINE_EVERY: Duration = Duration::from_secs(5);
/// The interval while the Node is Ready: the agent does nothing to the machine then, and reads it first once that
/// changes.
const MACHINE_EVERY_SETTLED: Duration = Duration::from_secs(30);
/// The longest sleep, so that the driver notices when the clock was set.
const SLEEP_MOST: Duration = Duration::from_secs(60);

/// A message for the listener.
#[derive(Clone, Debug)]
pub enum Said {
    /// A report of the agent.
    Report(Report),
    /// A line of a program that the agent runs.
    Line(String),
    /// The result of an inspection of the join.
    Found(Box<Found>),
    /// A verb was not carried out: the reason.
    Undone(Verb, String),
    /// The API server answered, or the reason why not.
    Api(Option<Unanswered>),
    /// The agent's account of itself has changed.
    Account(Box<Account>),
    /// The memory could not be written, so the agent does nothing to the machine.
    MemoryFailed(String),
}

/// The parts with which an agent on this machine starts.
#[derive(Debug)]
pub struct Begin<T> {
    /// The part that inspects the machine.
    pub inspector: Arc<Inspector>,
    /// The part that changes the machine.
    pub executor: Executor<T>,
    /// The memory.
    pub memory: MemoryFile,
    /// The settings.
    pub config: Config,
    /// Other machines' agents; none where the agent asks no peers.
    pub peer_set: Option<Arc<PeerSet>>,
}

/// The driver.
#[derive(Debug)]
pub struct Driver<T> {
    state: State,
    inspector: Arc<Inspector>,
    executor: Arc<Executor<T>>,
    memory: MemoryFile,
    peer_set: Option<Arc<PeerSet>>,
    /// Peers that wait for this machine's own check of the API server.
    questions: BTreeMap<OperationId, oneshot::Sender<PeerAnswer>>,
    last_question: u64,
    machine: Option<Machine>,
    /// The last inspection found the Node Ready.
    is_settled: bool,
    account: Option<Account>,
    wake_at: Option<Time>,
    tasks: JoinSet<()>,
    sender: mpsc::Sender<Inner>,
    receiver: mpsc::Receiver<Inner>,
}

/// The agent cannot start.
#[derive(Debug, Error)]
pub enum BeginError {
    /// The memory cannot be read.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// The agent refuses its folder: another account may change it, or it is not a plain directory.
    #[error(transparent)]
    Folder(#[from] FolderError),
}

#[derive(Debug)]
enum Inner {
    Event(Event),
    Said(Said),
    Both(Event, Said),
}

/// This machine's clock.
pub fn now() -> Time {
    match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(after) => Time::default() + after.into(),
        Err(before) => Time::default() - before.duration().into(),
    }
}

impl<T: Tokens + 'static> Driver<T> {
    /// An agent that starts with the memory of the one before it.
    ///
    /// # Errors
    ///
    /// The memory exists and cannot be read, or is in a folder that other accounts may write.
    pub fn new(begin: Begin<T>) -> Result<Self, BeginError> {
        private::folder(begin.memory.folder())?;
        let memory = begin.memory.read()?;
        begin.inspector.clear_scratch();
        let name = begin.inspector.node_name().clone();
        let start = Start { name, config: begin.config, warnings: Vec::new(), memory };
        let (sender, receiver) = mpsc::channel(QUEUED);
        Ok(Self {
            state: State::new(start),
            inspector: begin.inspector,
            executor: Arc::new(begin.executor),
            memory: begin.memory,
            peer_set: begin.peer_set,
            questions: BTreeMap::new(),
            last_question: 0,
            machine: None,
            is_settled: false,
            account: None,
            wake_at: None,
            tasks: JoinSet::new(),
            sender,
            receiver,
        })
    }

    /// Runs until the listener ends it. `orders` brings events from outside: an order to join, a cancellation.
    pub async fn run<R>(
        mut self,
        mut orders: mpsc::Receiver<Event>,
        mut listen: impl FnMut(Time, &Said) -> ControlFlow<R>,
    ) -> R {
        let mut look_at = Instant::now();
        let mut orders_end = false;
        let peer_set = self.peer_set.clone();
        let mut asked = match &peer_set {
            Some(peer_set) => Some(peer_set.asked.lock().await),
            None => None,
        };
        if let Some(peer_set) = &peer_set {
            self.answer(Event::PeersListed(peer_set.peers()));
        }
        loop {
            let wake = self.wake();
            let inner = tokio::select! {
                inner = self.receiver.recv() => inner.unwrap_or(Inner::Event(Event::Tick)),
                order = orders.recv(), if !orders_end => {
                    orders_end = order.is_none();
                    Inner::Event(order.unwrap_or(Event::Tick))
                }
                question = next(&mut asked) => Inner::Event(self.peer_asks(question)),
                () = sleep_until(look_at) => {
                    look_at = Instant::now() + self.machine_every();
                    let Some(found) = self.look_at_machine() else { continue };
                    Inner::Event(found)
                }
                () = sleep_until(wake) => Inner::Event(Event::Tick),
            };
            let (event, said) = match inner {
                Inner::Event(event) => (Some(event), None),
                Inner::Said(said) => (None, Some(said)),
                Inner::Both(event, said) => (Some(event), Some(said)),
            };
            if let Some(said) = said
                && let ControlFlow::Break(end) = listen(now(), &said)
            {
                return end;
            }
            let Some(event) = event else { continue };
            let found = self.unsettles(&event).then(|| self.look_at_machine()).flatten();
            look_at = look_at.min(Instant::now() + self.machine_every());
            let effects = found.into_iter().chain([event]).flat_map(|event| self.state.step(now(), event));
            for effect in effects.collect::<Vec<_>>() {
                if let Some(said) = self.perform(effect)
                    && let ControlFlow::Break(end) = listen(now(), &said)
                {
                    return end;
                }
            }
            let account = self.state.account();
            if self.account.as_ref() != Some(&account) {
                self.account = Some(account.clone());
                if let ControlFlow::Break(end) = listen(now(), &Said::Account(Box::new(account))) {
                    return end;
                }
            }
            while self.tasks.try_join_next().is_some() {}
        }
    }

    /// The machine's state, if it has changed.
    fn look_at_machine(&mut self) -> Option<Event> {
        let zone = self.peer_set.as_ref().and_then(|peer_set| peer_set.zone());
        let machine = Machine { zone, ..self.inspector.machine() };
        if self.machine.as_ref() == Some(&machine) {
            return None;
        }
        self.machine = Some(machine.clone());
        Some(Event::Found(machine))
    }

    /// True when the Node was Ready and is not any more: then the machine was read some time ago. Notes the finding.
    fn unsettles(&mut self, event: &Event) -> bool {
        let Event::Inspected { found, .. } = event else { return matches!(event, Event::Asked(_)) };
        let before = std::mem::replace(&mut self.is_settled, found.node == NodeSeen::Ready);
        before && !self.is_settled
    }

    const fn machine_every(&self) -> Duration {
        if self.is_settled { MACHINE_EVERY_SETTLED } else { MACHINE_EVERY }
    }

    /// A peer asks: the driver knows it by the record in its certificate, and gives its question a number of its own.
    fn peer_asks(&mut self, question: Question) -> Event {
        self.questions.retain(|_, reply| !reply.is_closed());
        self.last_question += 1;
        let ask = OperationId(self.last_question);
        self.questions.insert(ask, question.reply);
        Event::PeerAsked { from: question.from, ask }
    }

    fn wake(&self) -> Instant {
        let left = self.wake_at.map_or(SLEEP_MOST, |at| at.since(now()).into());
        Instant::now() + left.min(SLEEP_MOST)
    }

    /// Starts an effect. Returns a message that has to be sent at once.
    fn perform(&mut self, effect: Effect) -> Option<Said> {
        match effect {
            Effect::Report(report) => return Some(Said::Report(report)),
            Effect::WakeAt(at) => self.wake_at = Some(at),
            Effect::Record(operation, memory, _) => match self.memory.write(&memory) {
                Ok(()) => self.answer(Event::Recorded(operation)),
                // There is no answer: the step after the deadline treats the write as failed.
                Err(failure) => return Some(Said::MemoryFailed(failure.to_string())),
            },
            Effect::CheckApi(operation, within) => self.check_api(operation, within),
            Effect::Inspect(operation, within) => {
                let inspector = Arc::clone(&self.inspector);
                self.spawn(async move {
                    let found = timeout(within.into(), inspector.inspect()).await.ok()?;
                    let event = Event::Inspected { operation, found: found.inspection.clone() };
                    Some(Inner::Both(event, Said::Found(Box::new(found))))
                });
            }
            Effect::Act(operation, verb, within) => self.act(operation, verb, within),
            Effect::ReadOrders(operation, within) => self.read_orders(operation, within),
            Effect::AskPeers(operation, peers, within) => self.ask_peers(operation, peers, within),
            Effect::AnswerPeer { ask, answer, .. } => {
                if let Some(reply) = self.questions.remove(&ask) {
                    // A peer that closed the connection needs no answer.
                    reply.send(answer).ok();
                }
            }
            // The machine reports that there is no watchdog.
            Effect::SetWatchdog(operation, ..) => {
                let outcome = Outcome::Failed("there is no watchdog".into());
                self.answer(Event::WatchdogSet { operation, outcome });
            }
            Effect::ReadWatchdog(operation, _) => {
                self.answer(Event::WatchdogRead { operation, found: WatchdogSeen::CannotTell });
            }
            Effect::FeedWatchdog => {}
        }
        None
    }

    fn check_api(&mut self, operation: OperationId, within: Span) {
        let (inspector, peer_set) = (Arc::clone(&self.inspector), self.peer_set.clone());
        self.spawn(async move {
            let silent = look(&inspector, peer_set.as_deref(), within).await;
            let why = silent.as_ref().map(|unanswered| Arc::from(unanswered.why.as_str()));
            let event = Event::ApiChecked { operation, silent: why };
            Some(Inner::Both(event, Said::Api(silent)))
        });
    }

    /// Checks whether this machine reaches the API server, for peers that ask. No order to go down is ever in the API:
    /// the check reads only that it answers. Of many questions at one moment, one makes a check.
    fn read_orders(&mut self, operation: OperationId, within: Span) {
        let (inspector, peer_set) = (Arc::clone(&self.inspector), self.peer_set.clone());
        self.spawn(async move {
            let answers = match peer_set.as_ref().and_then(|peer_set| peer_set.saw_just_now()) {
                Some(answers) => answers,
                None => look(&inspector, peer_set.as_deref(), within).await.is_none(),
            };
            let orders = if answers { Ok(BTreeSet::new()) } else { Err("the API server is silent".into()) };
            Some(Inner::Event(Event::OrdersRead { operation, orders }))
        });
    }

    fn ask_peers(&mut self, operation: OperationId, peers: Vec<NodeName>, within: Span) {
        let Some(peer_set) = self.peer_set.clone() else { return };
        for peer in peers {
            let peer_set = Arc::clone(&peer_set);
            self.spawn(async move {
                let answer = peer_set.ask(&peer, within.into()).await?;
                Some(Inner::Event(Event::PeerAnswered { operation, peer, answer }))
            });
        }
    }

    fn act(&mut self, operation: OperationId, verb: Verb, within: Span) {
        let (executor, inspector) = (Arc::clone(&self.executor), Arc::clone(&self.inspector));
        let sender = self.sender.clone();
        self.spawn(async move {
            let (lines, mut heard) = mpsc::channel(QUEUED);
            let acting = inspector.acts();
            let act = async {
                let done = timeout(within.into(), executor.act(verb, &lines)).await;
                drop(lines);
                done
            };
            let pass_on = async {
                while let Some(line) = heard.recv().await {
                    // A lost line changes nothing; a slow listener does not delay the program.
                    sender.try_send(Inner::Said(Said::Line(line))).ok();
                }
            };
            let (done, ()) = tokio::join!(act, pass_on);
            drop(acting);
            let why = match done {
                Ok(Ok(())) => return Some(Inner::Event(Event::Done { operation, outcome: Outcome::Done })),
                Ok(Err(failure)) => failure.to_string(),
                Err(_) => format!("it took longer than {} s", within.ms / 1000),
            };
            let outcome = Outcome::Failed(why.as_str().into());
            Some(Inner::Both(Event::Done { operation, outcome }, Said::Undone(verb, why)))
        });
    }

    fn answer(&mut self, event: Event) {
        self.spawn(async { Some(Inner::Event(event)) });
    }

    fn spawn(&mut self, task: impl Future<Output = Option<Inner>> + Send + 'static) {
        let sender = self.sender.clone();
        self.tasks.spawn(async move {
            if let Some(inner) = task.await {
                // Without a receiver the driver has ended: the message has no use.
                sender.send(inner).await.ok();
            }
        });
    }
}

/// Checks whether the API server answers. None when it does. Keeps the result for peers that ask.
async fn look(inspector: &Inspector, peer_set: Option<&PeerSet>, within: Span) -> Option<Unanswered> {
    let silent = match timeout(within.into(), inspector.check_api()).await {
        Ok(Ok(_)) => None,
        Ok(Err(unanswered)) => Some(unanswered),
        Err(_) => {
            let why = format!("no answer within {} s", within.ms / 1000);
            Some(Unanswered { why, lasts: false })
        }
    };
    if let Some(peer_set) = peer_set {
        peer_set.saw(silent.is_none());
    }
    silent
}

/// The next question of a peer; never returns where there are no peers.
async fn next(asked: &mut Option<MutexGuard<'_, mpsc::Receiver<Question>>>) -> Question {
    match asked {
        Some(asked) => match asked.recv().await {
            Some(question) => question,
            None => std::future::pending().await,
        },
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests;

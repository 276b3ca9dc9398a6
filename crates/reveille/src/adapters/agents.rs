//! The agents on the machines for the driver: it receives their reports and sends them the engine's requests.
//!
//! ```text
//!  registration server ─▶ AgentReports::said, parted, deaf ─▶ its own queue (bounded) ─▶ the driver's inbox ─▶ engine host
//!  engine's Call::AskAgent ─▶ AgentOrders::ask ─▶ Asking, over a bounded queue ─▶ registration server ─▶ Answered ─▶ Done
//! ```
//!
//! Both sides use plain types, so that neither knows how the other is built. The registration server serves the queue and
//! answers each [`Asking`] once; for a request that was dropped it is unknown whether it arrived. Where no registration
//! server runs, each request gets the answer that no agent is connected. The driver compared the fence before a request
//! comes here, and the request carries it along.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use reveille_core::effect::{Call, Outcome, ReadError, ReadErrorKind};
use reveille_core::event::{AgentFact, Event};
use reveille_core::model::agent::Ask;
use reveille_core::model::agent_report::AgentReport;
use reveille_core::model::id::{AgentId, Fence, InstanceId, IntentId};
use reveille_core::remedies::AskAgent;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

/// Requests that may wait for the registration server. The engine never has as many under way at once.
pub(crate) const ASKS_MAX: usize = 64;
/// Facts that wait for one driver.
const FACTS_MAX: usize = 1024;
/// The agent answers in this time that it accepted the request, not that it finished it.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);

/// A request to one agent.
#[derive(Debug)]
#[allow(dead_code, reason = "the fence goes along for the adapter that passes it on")]
pub(crate) struct Asking {
    /// Requests with the same number are the same request, however often they arrive.
    pub(crate) intent: IntentId,
    /// The fence of the controller that asks.
    pub(crate) fence: Fence,
    /// The agent.
    pub(crate) agent: AgentId,
    /// The machine that the agent must be on.
    pub(crate) instance: InstanceId,
    /// The request itself.
    pub(crate) ask: Ask,
    /// The channel for the answer.
    pub(crate) answer: oneshot::Sender<Answered>,
}

/// The result of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(dead_code, reason = "an agent that has nothing to do cannot say so yet")]
pub(crate) enum Answered {
    /// The agent accepted the request, and begins.
    Taken,
    /// The agent has nothing to do: its Node exists and is Ready.
    AlreadySo(Arc<str>),
    /// The agent leaves the join of its machine alone, and says why.
    Holds(Arc<str>),
    /// The agent was not asked: it is not connected, or too busy.
    NotAsked(Arc<str>),
}

/// The channel for the engine's requests to agents.
#[derive(Clone, Debug, Default)]
pub(crate) struct AgentOrders {
    asks: Option<mpsc::Sender<Asking>>,
}

impl AgentOrders {
    /// A sender for requests, and the queue that the registration server has to serve.
    pub(crate) fn new() -> (Self, mpsc::Receiver<Asking>) {
        let (asks, queue) = mpsc::channel(ASKS_MAX);
        (Self { asks: Some(asks) }, queue)
    }

    /// Sends a request and waits for the answer.
    pub(crate) async fn ask(&self, intent: IntentId, fence: Fence, call: Call) -> Outcome {
        let Call::AskAgent(AskAgent { instance, agent, ask, .. }) = call else {
            return Outcome::Refused { text: Arc::from("this is nothing to ask of an agent") };
        };
        let failed = |text: &str| Outcome::Failed { text: Arc::from(text), retry_after: None };
        let Some(asks) = &self.asks else { return failed("no agent is connected") };
        let (answer, answered) = oneshot::channel();
        if asks.try_send(Asking { intent, fence, agent, instance, ask, answer }).is_err() {
            return failed("not sent: the queue of requests to agents is full");
        }
        match timeout(ANSWER_WITHIN, answered).await {
            Ok(Ok(Answered::Taken)) => Outcome::Accepted { request: None },
            Ok(Ok(Answered::AlreadySo(text))) => Outcome::AlreadySo { text },
            Ok(Ok(Answered::Holds(text))) => Outcome::Refused { text },
            Ok(Ok(Answered::NotAsked(text))) => Outcome::Failed { text, retry_after: None },
            Ok(Err(_)) => Outcome::Unknown { text: Arc::from("it was passed on, and its result is unknown") },
            Err(_) => Outcome::Unknown { text: Arc::from("the agent did not answer within 30 s") },
        }
    }
}

/// Delivers the reports of agents to one engine, which takes them at its own pace.
///
/// An engine whose disk hangs takes no reports. If this channel waited for it, the reports of all other rosters would
/// wait too, so sending never waits. A report that finds a full queue is lost. The engine is then told that no agent can
/// be heard, before the loss can make a machine look silent. Once the engine has taken the waiting reports, it is told
/// that agents can be heard again.
#[derive(Clone, Debug)]
pub(crate) struct AgentReports {
    inbox: mpsc::Sender<Event>,
    queue: mpsc::Sender<AgentFact>,
    state: Arc<State>,
}

#[derive(Debug, Default)]
struct State {
    /// A report found no room since the engine was last told so.
    lost: AtomicBool,
    /// The server cannot hear any agent, whatever the queue holds.
    is_deaf: AtomicBool,
}

impl AgentReports {
    /// A channel for reports to the driver with this inbox.
    pub(crate) fn new(inbox: mpsc::Sender<Event>) -> Self {
        let (queue, facts) = mpsc::channel(FACTS_MAX);
        let state = Arc::default();
        tokio::spawn(pass_on(inbox.clone(), facts, Arc::clone(&state)));
        Self { inbox, queue, state }
    }

    /// An agent reported. False when the driver is gone.
    pub(crate) fn said(&self, agent: AgentId, report: AgentReport) -> bool {
        self.tell(AgentFact::Said { agent, report: Arc::new(report) })
    }

    /// The connection of an agent ended.
    pub(crate) fn parted(&self, agent: AgentId, why: Arc<str>) -> bool {
        self.tell(AgentFact::Parted { agent, why })
    }

    /// The server accepts connections of agents, for the first time or again.
    pub(crate) fn listening(&self) -> bool {
        self.state.is_deaf.store(false, Ordering::Release);
        self.tell(AgentFact::Listening)
    }

    /// The server accepts no connections, and why.
    pub(crate) fn deaf(&self, error: ReadError) -> bool {
        self.state.is_deaf.store(true, Ordering::Release);
        self.tell(AgentFact::Deaf(error))
    }

    fn tell(&self, fact: AgentFact) -> bool {
        if let Err(TrySendError::Full(_)) = self.queue.try_send(fact) {
            self.state.lost.store(true, Ordering::Release);
        }
        !self.inbox.is_closed()
    }
}

/// Passes waiting reports to one engine, until one of the two ends.
async fn pass_on(inbox: mpsc::Sender<Event>, mut facts: mpsc::Receiver<AgentFact>, state: Arc<State>) {
    let mut catches_up = false;
    while let Some(fact) = facts.recv().await {
        if inbox.send(Event::Agent(fact)).await.is_err() {
            return;
        }
        let lost = state.lost.swap(false, Ordering::AcqRel);
        let next = if lost {
            tracing::warn!("an engine does not take in what agents say; no machine of it is silent for that");
            catches_up = true;
            AgentFact::Deaf(takes_nothing())
        } else if catches_up && facts.is_empty() && !state.is_deaf.load(Ordering::Acquire) {
            tracing::info!("the engine has taken in what agents said");
            catches_up = false;
            AgentFact::Listening
        } else {
            continue;
        };
        if inbox.send(Event::Agent(next)).await.is_err() {
            return;
        }
    }
}

fn takes_nothing() -> ReadError {
    let text =
        Arc::from("the engine took nothing in, and some of what its agents said is lost; look at its disk");
    ReadError { kind: ReadErrorKind::Unavailable, text, retry_after: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call() -> Call {
        Call::AskAgent(AskAgent {
            cloud: "os".into(),
            instance: "i1".into(),
            agent: "a1".into(),
            ask: Ask::Rejoin,
            node: "n1".into(),
        })
    }

    #[tokio::test]
    async fn order_without_a_receiver_fails_as_no_agent_connected() {
        let outcome = AgentOrders::default().ask(IntentId(1), Fence(1), call()).await;
        assert_eq!(outcome, Outcome::Failed { text: "no agent is connected".into(), retry_after: None });
    }

    #[tokio::test]
    async fn each_answer_has_its_outcome_and_silence_is_not_a_failure() {
        let table = [
            (Some(Answered::Taken), Outcome::Accepted { request: None }),
            (Some(Answered::Holds("leaving".into())), Outcome::Refused { text: "leaving".into() }),
            (
                Some(Answered::NotAsked("gone".into())),
                Outcome::Failed { text: "gone".into(), retry_after: None },
            ),
            (None, Outcome::Unknown { text: "it was passed on, and its result is unknown".into() }),
        ];
        for (answered, wanted) in table {
            let (orders, mut queue) = AgentOrders::new();
            let serve = async {
                let asking = queue.recv().await.expect("it is asked");
                assert_eq!((asking.intent, asking.ask), (IntentId(7), Ask::Rejoin));
                if let Some(answered) = answered {
                    asking.answer.send(answered).expect("the request waits for its answer");
                }
            };
            let (outcome, ()) = tokio::join!(orders.ask(IntentId(7), Fence(2), call()), serve);
            assert_eq!(outcome, wanted);
        }
    }

    #[tokio::test]
    async fn what_an_agent_says_reaches_the_inbox_as_it_is() {
        let (inbox, mut events) = mpsc::channel(4);
        let reports = AgentReports::new(inbox);
        assert!(reports.parted("a1".into(), "closed".into()));
        assert!(reports.listening());
        let parted = AgentFact::Parted { agent: "a1".into(), why: "closed".into() };
        assert_eq!(events.recv().await, Some(Event::Agent(parted)));
        assert_eq!(events.recv().await, Some(Event::Agent(AgentFact::Listening)));
        drop(events);
        assert!(!reports.listening(), "the driver is gone");
    }

    #[tokio::test]
    async fn stuck_engine_is_told_it_is_deaf_and_delays_no_other_engine() {
        let (stuck, mut events) = mpsc::channel(1);
        let (well, mut others) = mpsc::channel(4);
        let (stuck, well) = (AgentReports::new(stuck), AgentReports::new(well));
        for number in 0..2 * FACTS_MAX {
            assert!(stuck.parted(number.to_string().as_str().into(), "closed".into()));
        }
        assert!(well.listening());
        assert_eq!(others.recv().await, Some(Event::Agent(AgentFact::Listening)));
        let first = events.recv().await;
        assert!(matches!(first, Some(Event::Agent(AgentFact::Parted { .. }))), "{first:?}");
        let deaf = events.recv().await;
        assert!(matches!(deaf, Some(Event::Agent(AgentFact::Deaf(_)))), "{deaf:?}");
        for _ in 1..FACTS_MAX {
            let waited = events.recv().await;
            assert!(matches!(waited, Some(Event::Agent(AgentFact::Parted { .. }))), "{waited:?}");
        }
        assert_eq!(events.recv().await, Some(Event::Agent(AgentFact::Listening)));
    }

    #[tokio::test]
    async fn engine_that_caught_up_hears_no_agent_until_the_server_runs() {
        let (inbox, mut events) = mpsc::channel(1);
        let reports = AgentReports::new(inbox);
        for number in 0..2 * FACTS_MAX {
            reports.parted(number.to_string().as_str().into(), "closed".into());
        }
        reports.deaf(takes_nothing());
        for _ in 0..=FACTS_MAX {
            assert_ne!(events.recv().await, Some(Event::Agent(AgentFact::Listening)));
        }
        tokio::task::yield_now().await;
        assert!(events.try_recv().is_err());
        reports.listening();
        assert_eq!(events.recv().await, Some(Event::Agent(AgentFact::Listening)));
    }
}

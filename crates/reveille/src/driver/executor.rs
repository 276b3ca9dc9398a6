//! Carries out effects: reads and calls run as tasks with a deadline, limited in number per adapter, and
//! each one ends with an event.
//!
//! ```text
//!  Look ─▶ a permit of the adapter ─▶ read ─▶ judge ─▶ Looked      no answer in time ─▶ Looked(TimedOut)
//!          (logs of a machine: from cloud and cluster, judged together)
//!  Call ─▶ a permit ─▶ fence still ours? ─▶ call ─▶ Done            not begun ─▶ NotSent · begun, no answer ─▶ Unknown
//!                          ├─ no ─▶ Done(Fenced)
//!                          └─ cannot be read ─▶ read again, longer and longer ─▶ Done(NotSent)
//! ```
//!
//! The executor compares the fence of a call with the one in the ledger's lock right before the call, after all waiting,
//! because another process may have taken over meanwhile. A lock that cannot be read (EMFILE, EIO) does not mean another
//! leader: the call waits, and is not sent while leadership is not proved. Every effect gets exactly one answer, also
//! when its task panics. Nothing is retried here.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::FutureExt as _;
use reveille_core::effect::{Call, Look, Outcome, ReadError, ReadErrorKind};
use reveille_core::event::{Answer, Event};
use reveille_core::model::id::{CloudName, Fence, IntentId, LookId};
use reveille_core::model::log_evidence::EvidenceQuery;
use reveille_core::model::time::Span;
use reveille_diagnose::Judge;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout, timeout_at};

use super::ledger_backend::{FenceCheck, Lead};
use crate::adapters::{Adapters, LimitedAdapter};

/// The limit for the wait for a permit and the read together.
const LOOK_WITHIN: Duration = Duration::from_secs(60);
/// The limit for the wait for a permit; a call that has not begun by then does not begin.
const PLACE_WITHIN: Duration = Duration::from_secs(30);
/// The limit for the call itself. Together with the wait it is shorter than the time after which the engine itself
/// assumes "unknown".
pub(super) const CALL_WITHIN: Duration = Duration::from_secs(120);

/// Judging a machine's logs takes milliseconds; if it takes this long, no thread was free for it.
const JUDGE_WITHIN: Duration = Duration::from_secs(if cfg!(test) { 2 } else { 30 });

/// The first wait before an unreadable lock is read again; it doubles each time.
const LOCK_AGAIN_MIN: Duration = Duration::from_millis(100);
/// The longest such wait.
const LOCK_AGAIN_MAX: Duration = Duration::from_secs(5);
/// The engine waits at least this long before it tries a call again that was not sent for this reason.
const LOCK_RETRY: Span = Span::from_s(10);

/// Carries out the effects of one roster.
pub(crate) struct Executor {
    adapters: Adapters,
    judge: Arc<Judge>,
    fence: FenceCheck,
    events: mpsc::Sender<Event>,
    under_way: UnderWay,
}

/// How many effects have no answer yet.
#[derive(Clone, Debug, Default)]
pub(crate) struct UnderWay {
    calls: Arc<AtomicUsize>,
    looks: Arc<AtomicUsize>,
}

impl UnderWay {
    /// The number of calls.
    pub(crate) fn calls(&self) -> usize {
        self.calls.load(Ordering::Acquire)
    }

    /// The number of reads.
    pub(crate) fn looks(&self) -> usize {
        self.looks.load(Ordering::Acquire)
    }
}

/// Counts one effect for as long as this value lives.
struct Counted(Arc<AtomicUsize>);

impl Counted {
    fn of(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::AcqRel);
        Self(count.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Executor {
    /// An executor that answers on `events`; it judges the logs of machines by this catalogue.
    pub(crate) fn new(
        adapters: Adapters,
        judge: Arc<Judge>,
        fence: FenceCheck,
        events: mpsc::Sender<Event>,
    ) -> Self {
        Self { adapters, judge, fence, events, under_way: UnderWay::default() }
    }

    /// The effects that have no answer yet.
    pub(crate) fn under_way(&self) -> UnderWay {
        self.under_way.clone()
    }

    /// Tells the cloud's poller to list now.
    pub(crate) fn list(&self, cloud: &CloudName) {
        if let Some(limited) = self.adapters.clouds.get(cloud) {
            limited.adapter.list_now();
        }
    }

    /// Runs a read, and answers with `Looked`.
    pub(crate) fn look(&self, id: LookId, look: Look) {
        let counted = Counted::of(&self.under_way.looks);
        let (events, adapters) = (self.events.clone(), self.adapters.clone());
        let judge = self.judge.clone();
        tokio::spawn(async move {
            let answer = match &look {
                Look::LogEvidence(_, _, evidence_query) => {
                    let (console, said) = futures::join!(
                        answered(adapters.of_look(&look), &look),
                        answered(Some(&adapters.cluster), &look)
                    );
                    weighed(judge.clone(), evidence_query.clone(), console, said).await
                }
                look => answered(adapters.of_look(look), look).await,
            };
            let event = judged(judge, Event::Looked { look: id, answer }).await;
            drop(events.send(event).await);
            drop(counted);
        });
    }

    /// Makes a call if this process still leads, and answers with `Done`.
    pub(crate) fn call(&self, intent: IntentId, fence: Fence, call: Call) {
        let counted = Counted::of(&self.under_way.calls);
        let (events, context) = (self.events.clone(), self.adapters.of_call(&call).cloned());
        let leads = self.fence.clone();
        let agents = self.adapters.agents.clone();
        tokio::spawn(async move {
            let outcome = match context {
                _ if matches!(call, Call::AskAgent(_)) => {
                    match proved(&leads, fence, &call, Instant::now() + PLACE_WITHIN).await {
                        Ok(()) => agents.ask(intent, fence, call).await,
                        Err(outcome) => outcome,
                    }
                }
                Some(context) => perform(&context, &leads, fence, call).await,
                None => Outcome::Refused { text: Arc::from("the roster has no such cloud") },
            };
            drop(events.send(Event::Done { intent, outcome }).await);
            drop(counted);
        });
    }
}

/// The answer of this adapter within the deadline, or why there is none.
async fn answered(limited: Option<&LimitedAdapter>, look: &Look) -> Result<Answer, ReadError> {
    let Some(limited) = limited else {
        return Err(unread(look, ReadErrorKind::Unavailable, "the roster has no such cloud"));
    };
    match timeout(LOOK_WITHIN, guarded(read(limited, look.clone()))).await {
        Ok(Some(answer)) => answer,
        Ok(None) => Err(unread(look, ReadErrorKind::Malformed, "the reader failed; this is a fault of ours")),
        Err(_) => Err(unread(look, ReadErrorKind::TimedOut, "no answer within 60 s")),
    }
}

async fn read(limited: &LimitedAdapter, look: Look) -> Result<Answer, ReadError> {
    // The program never closes the semaphore; the wait for a permit counts toward the caller's deadline.
    let _place = limited.looks.acquire().await;
    limited.adapter.look(look).await
}

/// Sixty kilobytes of console take milliseconds, and a thousand machines may fail at once, so the loop
/// does not judge them itself.
async fn judged(judge: Arc<Judge>, event: Event) -> Event {
    if !matches!(event, Event::Looked { answer: Ok(Answer::Console(_)), .. }) {
        return event;
    }
    let Event::Looked { look, .. } = event else { return event };
    let heard = on_blocking_thread(move || judge.heard(event)).await;
    heard.unwrap_or_else(|answer| Event::Looked { look, answer })
}

/// The logs of a machine, judged together, also outside the loop.
async fn weighed(
    judge: Arc<Judge>,
    evidence_query: Arc<EvidenceQuery>,
    console: Result<Answer, ReadError>,
    said: Result<Answer, ReadError>,
) -> Result<Answer, ReadError> {
    on_blocking_thread(move || judge.weigh(&evidence_query, console, said))
        .await
        .unwrap_or_else(|answer| answer)
}

/// Judges on a thread of its own; returns the given answer when judging fails or no thread is free.
async fn on_blocking_thread<T: Send + 'static>(
    judging: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Result<Answer, ReadError>> {
    let mut judging = tokio::task::spawn_blocking(judging);
    match timeout(JUDGE_WITHIN, &mut judging).await {
        Ok(Ok(judged)) => Ok(judged),
        Ok(Err(_)) => {
            Err(Ok(Answer::NoConsole(Arc::from("it could not be judged; this is a fault of ours"))))
        }
        Err(_) => {
            // A task that has not begun is cancelled, so that no work piles up for a thread that comes late.
            judging.abort();
            let text = "cannot judge what the machine said: all threads of this process are taken";
            Err(Err(ReadError { kind: ReadErrorKind::TimedOut, text: Arc::from(text), retry_after: None }))
        }
    }
}

async fn perform(limited: &LimitedAdapter, leads: &FenceCheck, fence: Fence, call: Call) -> Outcome {
    let until = Instant::now() + PLACE_WITHIN;
    let Ok(_place) = timeout_at(until, limited.calls.acquire()).await else {
        let text = "other calls to the same cloud took too long";
        return Outcome::NotSent { text: Arc::from(text), retry_after: None };
    };
    if let Err(outcome) = proved(leads, fence, &call, until).await {
        return outcome;
    }
    match timeout(CALL_WITHIN, guarded(limited.adapter.call(call))).await {
        Ok(Some(outcome)) => outcome,
        Ok(None) => Outcome::Unknown { text: Arc::from("the performer failed; this is a fault of ours") },
        Err(_) => Outcome::Unknown { text: Arc::from("no answer within 120 s") },
    }
}

/// Reads the lock until it shows the leader, or the time for a permit is over.
async fn proved(leads: &FenceCheck, fence: Fence, call: &Call, until: Instant) -> Result<(), Outcome> {
    let mut wait = LOCK_AGAIN_MIN;
    loop {
        let why = match leads(call) {
            Lead::Holds(held) if held == fence => return Ok(()),
            Lead::Holds(held) => {
                tracing::error!(
                    "another process holds the ledger: its lock names fence {held}, ours is {fence}"
                );
                return Err(Outcome::Fenced {});
            }
            Lead::Gone(why) => {
                tracing::error!("the ledger's lock is lost: {why}");
                return Err(Outcome::Fenced {});
            }
            Lead::Unread(why) => why,
        };
        tracing::warn!(next_try_ms = wait.as_millis(), "{why}: the call waits");
        if Instant::now() + wait > until {
            let text = format!("leadership is not proved: {why}");
            return Err(Outcome::NotSent { text: Arc::from(text), retry_after: Some(LOCK_RETRY) });
        }
        tokio::time::sleep(wait).await;
        wait = (wait * 2).min(LOCK_AGAIN_MAX);
    }
}

/// Turns a panic in an adapter into "no answer".
async fn guarded<T>(work: impl Future<Output = T>) -> Option<T> {
    AssertUnwindSafe(work).catch_unwind().await.ok()
}

fn unread(look: &Look, kind: ReadErrorKind, why: &str) -> ReadError {
    let what = match look {
        Look::Instance(_, id) => format!("instance {id}"),
        Look::Ports(_, id) => format!("the ports of instance {id}"),
        Look::Group(_, id) => format!("group {id}"),
        Look::Router(_, id) => format!("router {id}"),
        Look::Console(_, id) | Look::LogEvidence(_, id, _) => format!("the console of instance {id}"),
        Look::Actions(_, id) => format!("the action log of instance {id}"),
        Look::Roles(_, user, _) => format!("the roles of user {user}"),
        Look::Node(name) => format!("node {name}"),
        Look::NodeEvents(name) => format!("the events about node {name}"),
    };
    ReadError { kind, text: Arc::from(format!("cannot read {what}: {why}")), retry_after: None }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn without_a_thread_to_judge_on_a_look_ends_with_an_error() {
        let mut building = tokio::runtime::Builder::new_current_thread();
        let runtime = building.enable_all().max_blocking_threads(1).build().unwrap();
        let (free, taken) = channel::<()>();
        runtime.block_on(async {
            let held = tokio::task::spawn_blocking(move || taken.recv());
            let answer = Ok(Answer::Console(Arc::from("Kernel panic - not syncing")));
            let event = judged(Judge::built_in().unwrap(), Event::Looked { look: LookId(1), answer }).await;
            let Event::Looked { look: LookId(1), answer: Err(error) } = event else { panic!("{event:?}") };
            assert_eq!(error.kind, ReadErrorKind::TimedOut);
            free.send(()).unwrap();
            held.await.unwrap().unwrap();
        });
    }
}

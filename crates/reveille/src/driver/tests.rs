//! Tests the driver in a small fake world: what comes before what, and what a failing ledger or a lost lock prevents.
//!
//! The world has one machine whose port lacks its security group, and the roster allows that repair at once. The fakes
//! implement the two interfaces of the driver, [`Adapter`] and [`LedgerBackend`]; everything between them is real.

mod burst;
mod control_socket;
mod heartbeat;
mod listing;
mod lock;
mod log_lines;
mod refusals;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use reveille_core::effect::{Call, Look, Outcome, ReadError, ReadErrorKind};
use reveille_core::engine::{Restored, Start, State};
use reveille_core::event::{Answer, CloudFact, CloudSnapshot, ClusterFact, Event, Scope};
use reveille_core::model::id::{Fence, IntentId};
use reveille_core::model::instance::{Mark, Port};
use reveille_core::model::node::Ready;
use reveille_core::model::roster::Ownership;
use reveille_core::model::time::Time;
use reveille_core::record::Record;
use reveille_core::remedies::StartInstance;
use reveille_diagnose::Judge;
use tokio::sync::{Notify, mpsc, oneshot, watch};

use super::engine_host::{EngineHost, Input};
use super::executor::Executor;
use super::ledger_backend::{FenceCheck, Lead, LedgerBackend};
use super::ledger_writer::{Ack, LedgerWriter};
use super::ownership_check::OwnershipCheck;
use super::pauses::PauseContext;
use super::{Driver, Ended, Question, Until, clock};
use crate::adapters::agents::AgentOrders;
use crate::adapters::{Adapter, Adapters, LimitedAdapter};
use crate::fixture;

const PATIENCE: Duration = Duration::from_secs(10);

fn port(with_group: bool) -> Port {
    fixture::port("1", if with_group { &["g1"] } else { &[] })
}

/// One machine, and the requests to it, in order.
#[derive(Default)]
struct Fake {
    said: Mutex<Vec<String>>,
    mended: AtomicBool,
    /// Calls wait for this notification when it is set.
    hold: Option<Arc<Notify>>,
    panics: bool,
    /// Wakes the poller, as the adapter of a real cloud does.
    kick: Arc<Notify>,
}

impl Fake {
    fn say(&self, what: &str) {
        self.said.lock().unwrap().push(what.to_owned());
    }

    fn calls(&self) -> usize {
        self.said.lock().unwrap().iter().filter(|what| *what == "call").count()
    }
}

struct FakeAdapter(Arc<Fake>);

impl Adapter for FakeAdapter {
    fn look(&self, look: Look) -> BoxFuture<'static, Result<Answer, ReadError>> {
        self.0.say("look");
        let mended = self.0.mended.load(Ordering::SeqCst);
        async move {
            Ok(match look {
                Look::Ports(..) => Answer::Ports(vec![Arc::new(port(mended))]),
                Look::Instance(..) => Answer::Instance(Some(Arc::new(fixture::instance("1")))),
                _ => Answer::Actions(Vec::new()),
            })
        }
        .boxed()
    }

    fn call(&self, _: Call) -> BoxFuture<'static, Outcome> {
        let fake = self.0.clone();
        async move {
            fake.say("call");
            assert!(!fake.panics, "a performer with a bug");
            if let Some(hold) = &fake.hold {
                hold.notified().await;
            }
            fake.mended.store(true, Ordering::SeqCst);
            Outcome::Accepted { request: None }
        }
        .boxed()
    }

    fn list_now(&self) {
        self.0.kick.notify_one();
    }
}

/// A ledger in memory that can refuse records, or block.
#[derive(Clone, Default)]
struct Book {
    kept: Arc<Mutex<Vec<Record>>>,
    refuses: Arc<AtomicBool>,
    shut: Arc<AtomicBool>,
    over: Arc<AtomicBool>,
    checkpoints: Arc<AtomicU64>,
}

impl Book {
    fn kept(&self) -> Vec<Record> {
        self.kept.lock().unwrap().clone()
    }

    fn has(&self, wanted: impl Fn(&Record) -> bool) -> bool {
        self.kept.lock().unwrap().iter().any(wanted)
    }
}

impl LedgerBackend for Book {
    fn keep(&mut self, batch: &[Record]) -> Vec<Result<(), Arc<str>>> {
        while self.shut.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(5));
        }
        if self.refuses.load(Ordering::SeqCst) {
            return batch.iter().map(|_| Err(Arc::from("no space left"))).collect();
        }
        self.kept.lock().unwrap().extend(batch.iter().cloned());
        batch.iter().map(|_| Ok(())).collect()
    }

    fn rotation_due(&self) -> bool {
        false
    }

    fn rotate(&mut self, checkpoint: &[Record]) -> Result<(), String> {
        self.checkpoints.fetch_add(1, Ordering::SeqCst);
        *self.kept.lock().unwrap() = checkpoint.to_vec();
        Ok(())
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::SeqCst)
    }

    fn beat(&mut self, _: Time) -> Result<(), String> {
        Ok(())
    }
}

/// A running driver with the fakes, and the handles for a test.
struct Bench {
    fake: Arc<Fake>,
    book: Book,
    events: mpsc::Sender<Event>,
    asks: mpsc::Sender<Question>,
    stop: watch::Sender<bool>,
    running: tokio::task::JoinHandle<(State, Ended)>,
}

fn start(fake: Fake, book: &Book, state: State, until: Until, leads: FenceCheck) -> Bench {
    start_with(Arc::new(fake), book, Box::new(book.clone()), state, until, leads, clock::system())
}

/// The same with any backend and any clock.
fn start_with(
    fake: Arc<Fake>,
    book: &Book,
    ledger_backend: Box<dyn LedgerBackend>,
    state: State,
    until: Until,
    leads: FenceCheck,
    clock: clock::Clock,
) -> Bench {
    let (ledger_writer, acks) = LedgerWriter::start(ledger_backend).unwrap();
    let (events, inbox) = mpsc::channel(64);
    let (stop, stopped) = watch::channel(false);
    let (asks, questions) = mpsc::channel(1);
    let adapter = LimitedAdapter::new(Arc::new(FakeAdapter(fake.clone())));
    let adapters = Adapters {
        clouds: BTreeMap::from([("os".into(), adapter.clone())]),
        cluster: adapter,
        agents: AgentOrders::default(),
    };
    let driver = Driver {
        engine_host: EngineHost::new(state, ledger_writer),
        acks,
        inbox,
        executor: Executor::new(adapters, Judge::built_in().unwrap(), leads, events.clone()),
        pauses: PauseContext::new(Box::new(|| (BTreeSet::new(), Vec::new())), OwnershipCheck::default()),
        stop: stopped,
        questions,
        clock,
    };
    Bench { fake, book: book.clone(), events, asks, stop, running: tokio::spawn(driver.run(until)) }
}

fn fresh(fence: u64) -> State {
    State::new(fixture::roster(), Start { fence: Fence(fence), acting: true })
}

fn leads(fence: u64) -> FenceCheck {
    Arc::new(move |_| Lead::Holds(Fence(fence)))
}

/// A full listing of the one machine.
fn snapshot(mended: bool) -> CloudSnapshot {
    CloudSnapshot {
        instances: vec![Arc::new(fixture::instance("1"))],
        begun: None,
        scope: Scope::Full,
        ports: vec![("i1".into(), Arc::new(port(mended)))],
        in_use: Arc::default(),
        groups: Some(vec![Arc::new(fixture::group())]),
        routers: Vec::new(),
    }
}

impl Bench {
    /// All facts that show the engine that the port lacks its group.
    async fn show(&self) {
        let snapshot = snapshot(self.fake.mended.load(Ordering::SeqCst));
        let cloud = Event::Cloud { cloud: "os".into(), fact: CloudFact::read(snapshot) };
        let nodes = Event::Cluster(ClusterFact::Synced(vec![Arc::new(fixture::node("1", Ready::True))]));
        for event in [cloud, nodes, Event::Cluster(ClusterFact::Alive)] {
            self.events.send(event).await.unwrap();
        }
    }

    /// Waits until the condition holds, or fails.
    async fn until(&self, what: &str, so: impl Fn(&Self) -> bool) {
        let waiting = async {
            while !so(self) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        assert!(tokio::time::timeout(PATIENCE, waiting).await.is_ok(), "never came about: {what}");
    }

    async fn end(self) -> (State, Ended) {
        self.stop.send_replace(true);
        tokio::time::timeout(PATIENCE, self.running).await.unwrap().unwrap()
    }
}

fn is_intent(record: &Record) -> bool {
    matches!(record, Record::Intended { .. })
}

fn is_ended(record: &Record) -> bool {
    matches!(record, Record::Ended { .. })
}

#[tokio::test]
async fn nothing_is_called_before_the_ledger_has_it() {
    let book = Book::default();
    book.shut.store(true, Ordering::SeqCst);
    let bench = start(Fake::default(), &book, fresh(1), Until::Told, leads(1));
    bench.show().await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(bench.fake.calls(), 0, "the disk has not answered");
    book.shut.store(false, Ordering::SeqCst);
    bench
        .until("a held repair", |bench| bench.book.has(|r| matches!(r, Record::Judged { held: true, .. })))
        .await;
    assert_eq!(bench.fake.calls(), 1);
    let kept = book.kept();
    let place = |wanted: fn(&Record) -> bool| kept.iter().position(wanted).unwrap();
    assert!(place(is_intent) < place(is_ended));
    bench.end().await;
}

#[tokio::test]
async fn a_ledger_that_refuses_prevents_every_call() {
    let book = Book::default();
    book.refuses.store(true, Ordering::SeqCst);
    let bench = start(Fake::default(), &book, fresh(1), Until::Told, leads(1));
    bench.show().await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    let fake = bench.fake.clone();
    let (state, _) = bench.end().await;
    assert_eq!(fake.calls(), 0);
    assert!(state.context().ledger_error.is_some(), "and it says why");
}

#[tokio::test]
async fn a_lost_lock_fences_the_call_off_and_ends_all_acting() {
    let book = Book::default();
    let bench = start(Fake::default(), &book, fresh(1), Until::Told, leads(2));
    bench.show().await;
    bench.until("an outcome", |bench| bench.book.has(is_ended)).await;
    let fake = bench.fake.clone();
    let (state, ended) = tokio::time::timeout(PATIENCE, bench.running).await.unwrap().unwrap();
    assert_eq!((fake.calls(), ended), (0, Ended::Fenced));
    assert!(!state.context().leading, "another process leads");
    assert!(book.has(|record| matches!(record, Record::Ended { outcome: Outcome::Fenced {}, .. })));
}

#[tokio::test]
async fn after_a_crash_an_intent_is_read_back_and_not_repeated() {
    let book = Book::default();
    let hold = Arc::new(Notify::new());
    let first =
        start(Fake { hold: Some(hold.clone()), ..Fake::default() }, &book, fresh(1), Until::Told, leads(1));
    first.show().await;
    first.until("the call", |bench| bench.fake.calls() == 1).await;
    first.running.abort();
    // The call took effect, and the process ended before it got the answer.
    let fake = Fake { mended: AtomicBool::new(true), ..Fake::default() };
    let how = Restored {
        start: Start { fence: Fence(2), acting: true },
        now: clock::wall(),
        last_alive: Some(clock::wall()),
    };
    let state = State::restore(fixture::roster(), how, book.kept());
    let second = start(fake, &book, state, Until::Told, leads(2));
    second.show().await;
    second
        .until("a verdict", |bench| bench.book.has(|r| matches!(r, Record::Judged { held: true, .. })))
        .await;
    assert_eq!(second.fake.calls(), 0, "it was verified, not repeated");
    second.end().await;
}

#[tokio::test]
async fn stopping_waits_for_a_call_on_its_way_and_keeps_its_outcome() {
    let book = Book::default();
    let hold = Arc::new(Notify::new());
    let bench =
        start(Fake { hold: Some(hold.clone()), ..Fake::default() }, &book, fresh(1), Until::Told, leads(1));
    bench.show().await;
    bench.until("the call", |bench| bench.fake.calls() == 1).await;
    bench.stop.send_replace(true);
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(!bench.running.is_finished(), "a call is on its way");
    hold.notify_one();
    let (_, ended) = bench.end().await;
    assert_eq!(ended, Ended::Told);
    assert!(book.has(is_ended), "its outcome is in the ledger");
}

#[tokio::test]
async fn what_becomes_durable_while_stopping_is_not_called_any_more() {
    let book = Book::default();
    book.shut.store(true, Ordering::SeqCst);
    let bench = start(Fake::default(), &book, fresh(1), Until::Told, leads(1));
    bench.show().await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    bench.stop.send_replace(true);
    tokio::time::sleep(Duration::from_millis(50)).await;
    book.shut.store(false, Ordering::SeqCst);
    let fake = bench.fake.clone();
    bench.end().await;
    assert_eq!(fake.calls(), 0);
    assert!(book.has(is_intent), "it was decided before");
    assert!(book.has(|record| matches!(record, Record::Ended { outcome: Outcome::NotSent { .. }, .. })));
}

#[tokio::test]
async fn adapter_that_panics_leaves_an_unknown_outcome() {
    let book = Book::default();
    let bench = start(Fake { panics: true, ..Fake::default() }, &book, fresh(1), Until::Told, leads(1));
    bench.show().await;
    bench
        .until("an unknown outcome", |bench| {
            bench.book.has(|r| matches!(r, Record::Ended { outcome: Outcome::Unknown { .. }, .. }))
        })
        .await;
    bench.end().await;
}

#[tokio::test]
async fn a_ledger_that_is_over_ends_the_loop() {
    let book = Book::default();
    book.refuses.store(true, Ordering::SeqCst);
    book.over.store(true, Ordering::SeqCst);
    let bench = start(Fake::default(), &book, fresh(1), Until::Told, leads(1));
    bench.show().await;
    let fake = bench.fake.clone();
    let (_, ended) = tokio::time::timeout(PATIENCE, bench.running).await.unwrap().unwrap();
    assert_eq!((ended, fake.calls()), (Ended::LedgerOver, 0));
}

#[tokio::test]
async fn a_question_does_not_wait_behind_a_flood_of_events() {
    let bench = start(Fake::default(), &Book::default(), fresh(1), Until::Told, leads(1));
    let error = ReadError { kind: ReadErrorKind::Unavailable, text: "away".into(), retry_after: None };
    while bench
        .events
        .try_send(Event::Cloud { cloud: "os".into(), fact: CloudFact::Failed(error.clone()) })
        .is_ok()
    {}
    let (answer, answered) = oneshot::channel();
    let question: Question = Box::new(|state, _| {
        let source = &state.context().clouds["os"].source;
        answer.send(source.failing().map_or(0, |failing| failing.times)).unwrap();
    });
    bench.asks.try_send(question).unwrap();
    assert!(answered.await.unwrap() < 5, "events that were taken in first");
    bench.end().await;
}

#[tokio::test]
async fn once_ends_when_everything_due_has_settled() {
    let book = Book::default();
    let bench = start(Fake::default(), &book, fresh(1), Until::Settled(PATIENCE), leads(1));
    bench.show().await;
    let (state, ended) = tokio::time::timeout(PATIENCE, bench.running).await.unwrap().unwrap();
    assert_eq!(ended, Ended::Settled);
    assert!(state.is_settled() && bench.fake.calls() == 1);
    assert!(book.has(|record| matches!(record, Record::Judged { held: true, .. })));
}

#[tokio::test]
async fn a_ledger_that_comes_back_is_given_a_checkpoint() {
    let book = Book::default();
    let (mut ledger_writer, mut acks) = LedgerWriter::start(Box::new(book.clone())).unwrap();
    let started = |fence| Record::Started { at: Time::from_ms(1), fence: Fence(fence) };
    book.refuses.store(true, Ordering::SeqCst);
    ledger_writer.keep(vec![(reveille_core::model::id::RecordId(1), started(1))]).unwrap();
    assert!(matches!(acks.recv().await, Some(Ack::Refused(..))));
    book.refuses.store(false, Ordering::SeqCst);
    ledger_writer.keep(vec![(reveille_core::model::id::RecordId(2), started(2))]).unwrap();
    assert!(matches!(acks.recv().await, Some(Ack::Kept(_))));
    assert_eq!(acks.recv().await, Some(Ack::WantsCheckpoint), "memory and ledger differ");
    ledger_writer.rotate(vec![started(3)]);
    ledger_writer.end();
    assert_eq!(book.checkpoints.load(Ordering::SeqCst), 1);
    assert_eq!(book.kept(), [started(3)]);
}

#[tokio::test(start_paused = true)]
async fn unanswered_call_ends_unknown_and_unanswered_read_times_out() {
    let fake = Arc::new(Fake { hold: Some(Arc::new(Notify::new())), ..Fake::default() });
    let adapter = LimitedAdapter::new(Arc::new(FakeAdapter(fake.clone())));
    let adapters = Adapters {
        clouds: BTreeMap::from([("os".into(), adapter.clone())]),
        cluster: adapter.clone(),
        agents: AgentOrders::default(),
    };
    let (events, mut inbox) = mpsc::channel(8);
    let executor = Executor::new(adapters, Judge::built_in().unwrap(), leads(1), events);
    let owned = Ownership::of_cluster(Mark::Tag("k8s-cluster=prod".into()));
    executor.call(
        IntentId(1),
        Fence(1),
        Call::Start(StartInstance { cloud: "os".into(), instance: "i1".into(), owned }),
    );
    let Some(Event::Done { intent, outcome }) = inbox.recv().await else { panic!("a call is answered") };
    assert_eq!((intent, matches!(outcome, Outcome::Unknown { .. })), (IntentId(1), true), "{outcome}");
    let _all =
        adapter.looks.acquire_many(u32::try_from(adapter.looks.available_permits()).unwrap()).await.unwrap();
    executor.look(reveille_core::model::id::LookId(1), Look::Instance("os".into(), "i1".into()));
    let Some(Event::Looked { answer: Err(error), .. }) = inbox.recv().await else {
        panic!("a read is answered")
    };
    assert_eq!(error.kind, ReadErrorKind::TimedOut);
    assert_eq!(executor.under_way().calls() + executor.under_way().looks(), 0);
}

//! Many faults in one list: one step makes more records than any queue holds, on a real ledger and on a slow disk.

use super::*;
use crate::driver::ledger_store::{self, LedgerStore};

/// One list in which this many nodes are not Ready makes two records for each.
const MACHINES: usize = 10_000;

/// A backend that is slow for every batch.
struct SlowDisk(Book);

impl LedgerBackend for SlowDisk {
    fn keep(&mut self, batch: &[Record]) -> Vec<Result<(), Arc<str>>> {
        std::thread::sleep(Duration::from_millis(300));
        self.0.keep(batch)
    }

    fn rotation_due(&self) -> bool {
        false
    }

    fn rotate(&mut self, checkpoint: &[Record]) -> Result<(), String> {
        self.0.rotate(checkpoint)
    }

    fn is_over(&self) -> bool {
        false
    }

    fn beat(&mut self, _: Time) -> Result<(), String> {
        Ok(())
    }
}

/// A real ledger whose records are counted when they are durable.
struct Counted(LedgerStore, Arc<AtomicU64>);

impl LedgerBackend for Counted {
    fn keep(&mut self, batch: &[Record]) -> Vec<Result<(), Arc<str>>> {
        let answers = self.0.keep(batch);
        self.1.fetch_add(answers.iter().filter(|answer| answer.is_ok()).count() as u64, Ordering::SeqCst);
        answers
    }

    fn rotation_due(&self) -> bool {
        self.0.rotation_due()
    }

    fn rotate(&mut self, checkpoint: &[Record]) -> Result<(), String> {
        self.0.rotate(checkpoint)
    }

    fn is_over(&self) -> bool {
        self.0.is_over()
    }

    fn beat(&mut self, now: Time) -> Result<(), String> {
        self.0.beat(now)
    }
}

/// A fleet whose nodes are all Ready, and then all not Ready in one list.
async fn all_at_once(bench: &Bench) {
    let numbers: Vec<String> = (1..=MACHINES).map(|number| number.to_string()).collect();
    let port = |number: &String| {
        let id = format!("i{number}").as_str().into();
        let mut port = fixture::port("1", &["g1"]);
        port.id = format!("p{number}").as_str().into();
        port.addresses = Box::new([]);
        (id, Arc::new(port))
    };
    let snapshot = CloudSnapshot {
        instances: numbers.iter().map(|number| Arc::new(fixture::instance(number))).collect(),
        scope: Scope::Full,
        ports: numbers.iter().map(port).collect(),
        groups: Some(vec![Arc::new(fixture::group())]),
        routers: Vec::new(),
        begun: None,
        in_use: Arc::default(),
    };
    let nodes = |ready: Ready| {
        let all = numbers.iter().map(|number| Arc::new(fixture::node(number, ready))).collect();
        Event::Cluster(ClusterFact::Synced(all))
    };
    let cloud = Event::Cloud { cloud: "os".into(), fact: CloudFact::read(snapshot) };
    for event in [cloud, nodes(Ready::True), Event::Cluster(ClusterFact::Alive), nodes(Ready::False)] {
        bench.events.send(event).await.unwrap();
    }
}

/// Asks the engine for the error of its ledger until all records are durable. The first error ends the wait.
async fn ledger_error(bench: &Bench, kept: impl Fn() -> u64, wanted: u64) -> Option<Arc<str>> {
    let asking = async {
        loop {
            let all = kept() >= wanted;
            let (answer, answered) = oneshot::channel();
            let question: Question = Box::new(|state, _| {
                answer.send(state.context().ledger_error.cloned()).unwrap();
            });
            bench.asks.send(question).await.unwrap();
            let error = answered.await.unwrap();
            if error.is_some() || all {
                return error;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let error = tokio::time::timeout(Duration::from_secs(300), asking).await;
    error.unwrap_or_else(|_| panic!("only {} of {wanted} records became durable", kept()))
}

#[tokio::test]
async fn burst_of_records_on_a_healthy_disk_keeps_acting_on() {
    let directory = tempfile::tempdir().unwrap();
    let opened = ledger_store::open(directory.path(), "reveille run", clock::wall()).unwrap();
    let (fence, count) = (opened.fence.0, Arc::new(AtomicU64::new(0)));
    let ledger_backend = Box::new(Counted(opened.ledger_store, count.clone()));
    let fake = Arc::new(Fake::default());
    let book = Book::default();
    let bench =
        start_with(fake, &book, ledger_backend, fresh(fence), Until::Told, leads(fence), clock::system());
    all_at_once(&bench).await;
    let error = ledger_error(&bench, || count.load(Ordering::SeqCst), 2 * MACHINES as u64).await;
    assert_eq!(error, None, "{} records are durable", count.load(Ordering::SeqCst));
    bench.end().await;
    let again = ledger_store::open(directory.path(), "reveille run", clock::wall()).unwrap();
    assert!(again.records.len() >= 2 * MACHINES, "{} records were read back", again.records.len());
}

#[tokio::test]
async fn burst_of_records_on_a_slow_disk_is_delayed_not_refused() {
    let book = Book::default();
    let ledger_backend = Box::new(SlowDisk(book.clone()));
    let fake = Arc::new(Fake::default());
    let bench = start_with(fake, &book, ledger_backend, fresh(1), Until::Told, leads(1), clock::system());
    all_at_once(&bench).await;
    let error = ledger_error(&bench, || book.kept.lock().unwrap().len() as u64, 2 * MACHINES as u64).await;
    assert_eq!(error, None);
    bench.end().await;
}

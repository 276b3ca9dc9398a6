//! What the heartbeat tells the next process.

use super::*;

/// A ledger that notes what each heartbeat says, and how many records were kept before it.
struct Heard(Arc<Mutex<Vec<(Time, usize)>>>, usize);

impl LedgerBackend for Heard {
    fn keep(&mut self, batch: &[Record]) -> Vec<Result<(), Arc<str>>> {
        self.1 += batch.len();
        batch.iter().map(|_| Ok(())).collect()
    }

    fn rotation_due(&self) -> bool {
        false
    }

    fn rotate(&mut self, _: &[Record]) -> Result<(), String> {
        Ok(())
    }

    fn beat(&mut self, now: Time) -> Result<(), String> {
        self.0.lock().unwrap().push((now, self.1));
        Ok(())
    }

    fn is_over(&self) -> bool {
        false
    }
}

/// After a sleep the timer of the heartbeat comes before the engine's next step: it tells of the step before the sleep, and the
/// one after that step waits behind the record of the sleep.
#[test]
fn heartbeat_carries_the_time_of_the_last_step() {
    let at = |s: i64| Time::from_ms(1_000 * s);
    let heard = Arc::new(Mutex::new(Vec::new()));
    let backend = Heard(heard.clone(), 0);
    let (ledger_writer, _acks) = LedgerWriter::start(Box::new(backend)).unwrap();
    let mut engine_host = EngineHost::new(fresh(1), ledger_writer);
    let written = |count: usize| {
        let deadline = std::time::Instant::now() + PATIENCE;
        while heard.lock().unwrap().len() < count {
            assert!(std::time::Instant::now() < deadline, "no heartbeat was written");
            std::thread::sleep(Duration::from_millis(1));
        }
        heard.lock().unwrap()[count - 1]
    };
    // None before the first step.
    engine_host.beat();
    let nodes = vec![Arc::new(fixture::node("1", Ready::True))];
    for event in [
        Event::Cloud { cloud: "os".into(), fact: CloudFact::read(snapshot(false)) },
        Event::Cluster(ClusterFact::Synced(nodes)),
        Event::Tick,
    ] {
        engine_host.take(at(10), Input::Event(event));
    }
    // The first one comes with the first step.
    assert_eq!(written(1).0, at(10));
    engine_host.beat();
    let before = written(2);
    assert_eq!(before.0, at(10));
    // Five hours of sleep lie between these two.
    engine_host.beat();
    assert_eq!(written(3).0, at(10));
    engine_host.take(at(5 * 3600), Input::Event(Event::Tick));
    engine_host.beat();
    let (told, kept) = written(4);
    let kept_before = before.1;
    assert!(told == at(5 * 3600) && kept > kept_before, "{told:?}: {kept} records");
    engine_host.end();
}

/// A disk that fills up. The heartbeat is rewritten in place, so it succeeds on a full one.
#[derive(Clone, Default)]
struct FullDisk {
    is_full: Arc<AtomicBool>,
    /// Each heartbeat, and `None` for each batch that was refused.
    heard: Arc<Mutex<Vec<Option<Time>>>>,
}

impl FullDisk {
    fn fills(&self, is_full: bool) {
        self.is_full.store(is_full, Ordering::SeqCst);
    }

    fn heard(&self) -> Vec<Option<Time>> {
        self.heard.lock().unwrap().clone()
    }
}

impl LedgerBackend for FullDisk {
    fn keep(&mut self, batch: &[Record]) -> Vec<Result<(), Arc<str>>> {
        if self.is_full.load(Ordering::SeqCst) {
            self.heard.lock().unwrap().push(None);
            return batch.iter().map(|_| Err(Arc::from("no space left"))).collect();
        }
        batch.iter().map(|_| Ok(())).collect()
    }

    fn rotation_due(&self) -> bool {
        false
    }

    fn rotate(&mut self, _: &[Record]) -> Result<(), String> {
        if self.is_full.load(Ordering::SeqCst) { Err("no space left".to_owned()) } else { Ok(()) }
    }

    fn beat(&mut self, now: Time) -> Result<(), String> {
        self.heard.lock().unwrap().push(Some(now));
        Ok(())
    }

    fn is_over(&self) -> bool {
        false
    }
}

/// The next process trusts that the ledger holds what happened before the heartbeat. A drained machine whose `Left` was
/// refused would be deleted.
#[test]
fn no_heartbeat_is_written_while_the_ledger_lags() {
    let at = |s: i64| Time::from_ms(1_000 * s);
    let disk = FullDisk::default();
    let (mut writer, mut acks) = LedgerWriter::start(Box::new(disk.clone())).unwrap();
    let started = || Record::Started { at: at(1), fence: Fence(1) };
    // Whether a checkpoint was asked for before the answer to one more record.
    let mut asked = |writer: &mut LedgerWriter| {
        writer.note(started()).unwrap();
        let mut asked = false;
        loop {
            match acks.blocking_recv().unwrap() {
                Ack::WantsCheckpoint => asked = true,
                _ => return asked,
            }
        }
    };
    writer.beat(at(1));
    asked(&mut writer);
    disk.fills(true);
    asked(&mut writer);
    // The engine offers no refused intent again, and may have nothing to record for hours.
    disk.fills(false);
    writer.beat(at(2));
    assert!(asked(&mut writer), "the heartbeat asks for what closes the gap");
    disk.fills(true);
    writer.rotate(vec![started()]);
    writer.beat(at(3));
    assert!(asked(&mut writer), "it is asked for again");
    disk.fills(false);
    writer.rotate(vec![started()]);
    writer.beat(at(4));
    assert!(!asked(&mut writer));
    writer.end();
    assert_eq!(disk.heard(), [Some(at(1)), None, None, Some(at(4))]);
}

/// While the engine holds back what came behind a refused record, a checkpoint from before that closes no gap.
#[test]
fn no_heartbeat_is_written_while_the_engine_holds_records() {
    let disk = FullDisk::default();
    let (ledger_writer, mut acks) = LedgerWriter::start(Box::new(disk.clone())).unwrap();
    let mut engine_host = EngineHost::new(fresh(1), ledger_writer);
    disk.fills(true);
    let nodes = vec![Arc::new(fixture::node("1", Ready::True))];
    for event in [
        Event::Cloud { cloud: "os".into(), fact: CloudFact::read(snapshot(false)) },
        Event::Cluster(ClusterFact::Synced(nodes)),
        Event::Tick,
    ] {
        engine_host.take(Time::from_ms(10_000), Input::Event(event));
    }
    let mut refused = Vec::new();
    let count = |acks: &[Ack]| -> usize {
        acks.iter().map(|ack| if let Ack::Refused(unkept) = ack { unkept.len() } else { 0 }).sum()
    };
    while count(&refused) < engine_host.unanswered() {
        refused.push(acks.blocking_recv().unwrap());
    }
    let refusals = disk.heard().len();
    disk.fills(false);
    // This one becomes durable before the engine is told of the refusal.
    let later = Time::from_ms(18_000_000);
    engine_host.take(later, Input::Event(Event::Tick));
    let mut is_closed = false;
    let mut refused = refused.into_iter();
    while !is_closed || refused.len() > 0 {
        let ack = refused.next().unwrap_or_else(|| acks.blocking_recv().unwrap());
        is_closed |= ack == Ack::WantsCheckpoint;
        engine_host.take(later, Input::Ack(ack));
    }
    engine_host.beat();
    // Here the engine offers all of them again.
    let again = Time::from_ms(later.ms + 31_000);
    engine_host.take(again, Input::Event(Event::Tick));
    engine_host.beat();
    engine_host.end();
    assert_eq!(disk.heard()[refusals..], [Some(again)]);
}

/// The heartbeat at the end of a run is no exception.
#[tokio::test]
async fn stop_on_a_full_disk_writes_no_heartbeat() {
    let (fake, book, disk) = (Arc::new(Fake::default()), Book::default(), FullDisk::default());
    disk.fills(true);
    let bench =
        start_with(fake, &book, Box::new(disk.clone()), fresh(1), Until::Told, leads(1), clock::system());
    bench.show().await;
    bench.until("a refusal", |_| disk.heard().contains(&None)).await;
    bench.end().await;
    let heard = disk.heard();
    let first_refusal = heard.iter().position(Option::is_none).unwrap();
    assert!(heard[first_refusal..].iter().all(Option::is_none), "{heard:?}");
}

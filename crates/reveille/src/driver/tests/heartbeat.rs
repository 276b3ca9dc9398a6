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

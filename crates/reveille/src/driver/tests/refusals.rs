//! Tests a ledger that refuses or breaks: the loop ends, or logs once what it could not write.

use super::*;

/// A ledger with a bug.
struct Broken;

impl LedgerBackend for Broken {
    fn keep(&mut self, _: &[Record]) -> Vec<Result<(), Arc<str>>> {
        panic!("a backend with a bug")
    }

    fn rotation_due(&self) -> bool {
        false
    }

    fn rotate(&mut self, _: &[Record]) -> Result<(), String> {
        Ok(())
    }

    fn beat(&mut self, _: Time) -> Result<(), String> {
        Ok(())
    }

    fn is_over(&self) -> bool {
        false
    }
}

#[tokio::test]
async fn a_ledger_whose_thread_panics_ends_the_loop() {
    let (fake, book) = (Arc::new(Fake::default()), Book::default());
    let bench = start_with(fake, &book, Box::new(Broken), fresh(1), Until::Told, leads(1), clock::system());
    bench.show().await;
    let fake = bench.fake.clone();
    let (_, ended) = tokio::time::timeout(PATIENCE, bench.running).await.unwrap().unwrap();
    assert_eq!((ended, fake.calls()), (Ended::LedgerOver, 0));
}

/// A disk stays full for an hour: each record is offered twice a minute, and logged once.
#[test]
fn a_record_that_is_offered_again_is_told_once() {
    let at = |s: i64| Time::from_ms(1_000 * s);
    let book = Book::default();
    book.refuses.store(true, Ordering::SeqCst);
    let (ledger_writer, mut acks) = LedgerWriter::start(Box::new(book.clone())).unwrap();
    let mut engine_host = EngineHost::new(fresh(1), ledger_writer);
    let pages = log_lines::Pages::default();
    let opened = || pages.text().lines().filter(|line| line.contains("group-missing")).count();
    tracing::subscriber::with_default(crate::cli::logging::text(pages.clone(), false), || {
        let nodes = vec![Arc::new(fixture::node("1", Ready::True))];
        for event in [
            Event::Cloud { cloud: "os".into(), fact: CloudFact::read(snapshot(false)) },
            Event::Cluster(ClusterFact::Synced(nodes)),
            Event::Cluster(ClusterFact::Alive),
        ] {
            engine_host.take(at(1), Input::Event(event));
        }
        let told = opened();
        assert!(told > 0, "{}", pages.text());
        let mut offered = 0;
        for round in 1..60 {
            while engine_host.unanswered() > 0 {
                offered += 1;
                let ack = acks.blocking_recv().unwrap();
                engine_host.take(at(60 * round), Input::Ack(ack));
            }
            engine_host.take(at(60 * round + 31), Input::Event(Event::Tick));
        }
        assert!(offered > 50, "{offered} answers");
        assert_eq!(opened(), told, "{}", pages.text());
        book.refuses.store(false, Ordering::SeqCst);
        while engine_host.unanswered() > 0 {
            let ack = acks.blocking_recv().unwrap();
            engine_host.take(at(4000), Input::Ack(ack));
        }
        engine_host.take(at(4040), Input::Event(Event::Tick));
        while engine_host.unanswered() > 0 {
            let ack = acks.blocking_recv().unwrap();
            engine_host.take(at(4040), Input::Ack(ack));
        }
        assert!(book.has(|record| matches!(record, Record::Opened { .. })));
        assert_eq!(opened(), told, "{}", pages.text());
    });
}

//! The loop and the real poller together, on paused time: a full listing ends a doubt, and the loop does
//! not ask for it too often.

use std::ops::Range;

use super::*;
use crate::adapters::poller::{Pace, Reader, poll};
use crate::adapters::post::Listener;
use reveille_core::model::time::Span;
use tokio::time::Instant;

/// The listings: the second of each one, and whether it was full.
type Listed = Arc<Mutex<Vec<(u64, bool)>>>;

/// A cloud with failures, in seconds since the start. Nova lists changes of servers (`changes-since`), so such a listing
/// shows nothing of a server that is only hidden. Neutron has no such filter, so every listing has all ports.
#[derive(Clone, Default)]
struct Trouble {
    /// Listings hold no port, as when Neutron answers with an empty list.
    torn: Range<u64>,
    /// Listings hold no server, as when a cell of Nova is down.
    down: Range<u64>,
    /// Listings fail.
    fails: Range<u64>,
}

struct TroubledReader {
    start: Instant,
    trouble: Trouble,
    listed: Listed,
}

impl Reader for TroubledReader {
    async fn list(&mut self, now_full: bool) -> Result<CloudSnapshot, ReadError> {
        let at = self.start.elapsed().as_secs();
        self.listed.lock().unwrap().push((at, now_full));
        if self.trouble.fails.contains(&at) {
            let text = Arc::from("503 Service Unavailable");
            return Err(ReadError { kind: ReadErrorKind::Unavailable, text, retry_after: None });
        }
        let numbers = ["1", "2", "3", "4"];
        let torn = self.trouble.torn.contains(&at) || self.trouble.down.contains(&at);
        let whole = |number: &&str| ((*number).into(), Arc::new(fixture::port(number, &["g1"])));
        Ok(CloudSnapshot {
            instances: match now_full && !self.trouble.down.contains(&at) {
                true => numbers.iter().map(|number| Arc::new(fixture::instance(number))).collect(),
                false => Vec::new(),
            },
            scope: if now_full { Scope::Full } else { Scope::Changes },
            ports: if torn { Vec::new() } else { numbers.iter().map(whole).collect() },
            groups: Some(vec![Arc::new(fixture::group())]),
            routers: Vec::new(),
            begun: None,
            in_use: Arc::default(),
        })
    }

    fn name(&self) -> &str {
        "troubled"
    }
}

/// Runs the loop with such a cloud and four Ready nodes for ten minutes. Returns the state and the listings.
async fn ten_minutes(trouble: Trouble, full_period: Span) -> (State, Vec<(u64, bool)>) {
    let start = Instant::now();
    let clock: clock::Clock = Arc::new(move || {
        let since = i64::try_from(start.elapsed().as_millis()).unwrap();
        Time::from_ms(1_792_400_400_000 + since)
    });
    let (fake, book, listed) = (Arc::new(Fake::default()), Book::default(), Listed::default());
    let kick = fake.kick.clone();
    let ledger_backend = Box::new(book.clone());
    let bench = start_with(fake, &book, ledger_backend, fresh(1), Until::Told, leads(1), clock);
    let reader = TroubledReader { start, trouble, listed: listed.clone() };
    let listeners = vec![Listener { cloud: "os".into(), events: bench.events.clone() }];
    let pace = Pace::of(Span::from_s(30), full_period);
    let polling = poll(reader, listeners, pace, kick, tokio::time::sleep(Duration::from_secs(599)));
    let nodes: Vec<_> =
        ["1", "2", "3", "4"].iter().map(|number| Arc::new(fixture::node(number, Ready::True))).collect();
    let events = bench.events.clone();
    let beating = async move {
        events.send(Event::Cluster(ClusterFact::Synced(nodes))).await.unwrap();
        loop {
            events.send(Event::Cluster(ClusterFact::Alive)).await.unwrap();
            tokio::time::sleep(Duration::from_secs(5)).await;
        }
    };
    tokio::select! {
        () = polling => {}
        () = beating => {}
    }
    let (state, _) = bench.end().await;
    let listed = listed.lock().unwrap().clone();
    (state, listed)
}

#[tokio::test(start_paused = true)]
async fn doubt_ends_by_a_full_listing_soon_after_its_cause() {
    // The failure hits the regular full listing, and the next regular one would begin at 480 s.
    let trouble = Trouble { down: 200..300, ..Trouble::default() };
    let (state, listed) = ten_minutes(trouble, Span::from_min(4)).await;
    let full: Vec<u64> = listed.iter().filter(|(_, full)| *full).map(|(at, _)| *at).collect();
    assert!(full.iter().any(|at| (300..=420).contains(at)), "full listings began at {full:?} s");
    let source = &state.context().clouds["os"].source;
    assert!(source.doubted().is_none(), "{listed:?}");
    assert!(listed.len() <= 25, "{} listings in ten minutes", listed.len());
}

#[tokio::test(start_paused = true)]
async fn lasting_doubt_does_not_flood_the_cloud() {
    let trouble = Trouble { torn: 0..10_000, ..Trouble::default() };
    let (state, listed) = ten_minutes(trouble, Span::from_min(10)).await;
    let source = &state.context().clouds["os"].source;
    assert!(source.doubted().is_some());
    let full = listed.iter().filter(|(_, full)| *full).count();
    assert!((2..=8).contains(&full), "{full} full listings of {}", listed.len());
    assert!(listed.len() <= 28, "{} listings in ten minutes", listed.len());
}

#[tokio::test(start_paused = true)]
async fn wanted_full_listing_survives_a_failure() {
    // The full listing that was requested fails, and so do the next tries.
    let trouble = Trouble { torn: 0..60, fails: 31..60, ..Trouble::default() };
    let (state, listed) = ten_minutes(trouble, Span::from_min(10)).await;
    assert!(state.context().clouds["os"].source.doubted().is_none(), "{listed:?}");
    let after = listed.iter().find(|(at, _)| *at >= 60).unwrap();
    assert!(after.1 && after.0 < 120, "the first listing that succeeds is a full one");
}

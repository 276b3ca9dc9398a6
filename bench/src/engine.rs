//! What the engine costs per event, per machine, and when nothing happens.

use std::time::{Duration, Instant};

use reveille_core::event::{ClusterFact, Event};
use reveille_core::model::node::Ready;
use reveille_core::model::time::Span;

use super::ALLOCATOR;
use super::fleet::{BySize, Fleet};

/// Other work on the machine only ever adds time: the fastest round comes nearest to what the thing itself costs.
fn fastest(samples: impl IntoIterator<Item = Duration>) -> Duration {
    samples.into_iter().min().unwrap_or_default()
}

/// A node turns not Ready and Ready again: judged, an incident opened, closed. Flat but for the depth of the maps.
pub(crate) fn cost_per_event() {
    println!("cost per event (one node turns not Ready, then Ready again)");
    let mut micros = BySize::new();
    for size in [1_000, 10_000, 100_000] {
        let mut fleet = Fleet::new(size);
        let rounds: Vec<Duration> = (0..9)
            .map(|round| {
                let picks: Vec<usize> = (0..200).map(|pick| (pick * 7919 + round * 104_729) % size).collect();
                let events: Vec<Event> = picks
                    .iter()
                    .flat_map(|pick| [fleet.turned(*pick, Ready::False), fleet.turned(*pick, Ready::True)])
                    .map(|node| Event::Cluster(ClusterFact::Applied(node)))
                    .collect();
                let count = events.len() as u32;
                let begun = Instant::now();
                for event in events {
                    fleet.feed(event);
                }
                let cost = begun.elapsed() / count;
                // Well again for longer than the dwell: the incidents close before the next round.
                fleet.now = fleet.now + Span::from_s(50);
                fleet.leases(round as u64 + 1);
                fleet.list(&|_| true);
                fleet.now = fleet.now + Span::from_s(50);
                fleet.leases(round as u64 + 100);
                fleet.list(&|_| true);
                cost
            })
            .collect();
        let cost = fastest(rounds).as_secs_f64() * 1e6;
        println!("  {size:>7} machines   {cost:8.2} µs");
        micros.insert(size, cost);
    }
    let (map_small, map_large) = (map_depth(1_000), map_depth(100_000));
    let depth = map_large / map_small;
    println!(
        "  one look-up in an ordered map of names: {:.0} ns at 1k, {:.0} ns at 100k = {depth:.2} x",
        map_small * 1e9,
        map_large * 1e9
    );
    if let (Some(small), Some(large)) = (micros.get(&1_000), micros.get(&100_000)) {
        let grown = (large - small) * 1e-6 / (map_large - map_small);
        println!("  what was added from 1k to 100k is worth {grown:.0} such look-ups per event");
        println!(
            "  100k / 1k           {:8.2} x      apart from map depth {:.2} x (target: at most 1.3)\n",
            large / small,
            large / small / depth
        );
    }
}

/// The limit for anything that keeps its order: a look-up by name in the standard library's ordered map, cold as in use.
fn map_depth(size: usize) -> f64 {
    let names: Vec<std::sync::Arc<str>> =
        (0..size).map(|n| format!("kks-bench-pool-{}-{n:05}", n % 4).into()).collect();
    let map: std::collections::BTreeMap<std::sync::Arc<str>, usize> =
        names.iter().cloned().zip(0..).collect();
    let picks: Vec<std::sync::Arc<str>> =
        (0..20_000).map(|pick| names[(pick * 7919) % size].to_string().into()).collect();
    let rounds = (0..9).map(|_| {
        let begun = Instant::now();
        let found: usize = picks.iter().filter_map(|name| map.get(name)).sum();
        std::hint::black_box(found);
        begun.elapsed()
    });
    fastest(rounds).as_secs_f64() / picks.len() as f64
}

/// Heap of an engine that has seen everything several times: live, at most while a listing is handed over that shares with
/// the one before what did not change (as the adapter does), and at most when every object in it differs at once.
pub(crate) fn memory() {
    println!("memory (heap of the engine with all its views)");
    for (size, limit) in [(10_000, 40.0), (50_000, 100.0)] {
        let before = ALLOCATOR.current_usage();
        let above = |bytes: usize| bytes.saturating_sub(before) as f64 / 1e6;
        let mut fleet = Fleet::new(size);
        let live = above(ALLOCATOR.current_usage());
        ALLOCATOR.reset_peak_usage();
        let event = fleet.relisted();
        fleet.feed(event);
        let shared = above(ALLOCATOR.peak_usage());
        // Made whole first, which takes more than the adapter ever holds; what counts is what lies there when it is handed over.
        let event = fleet.overturned();
        ALLOCATOR.reset_peak_usage();
        fleet.feed(event);
        let new = above(ALLOCATOR.peak_usage());
        println!(
            "  {size:>7} machines   {live:6.1} MB live ({:.0} bytes a machine), {shared:6.1} MB while a listing is handed over, {new:6.1} MB if every object in it differs   (target: at most {limit:.0} MB)",
            live * 1e6 / size as f64
        );
    }
    println!();
}

/// One quiet hour of 10,000 machines: listings every 30 s, leases every 10 s, and nothing to do.
pub(crate) fn idle() {
    println!("one quiet hour of 10,000 machines (a listing every 30 s, leases every 10 s)");
    let mut fleet = Fleet::new(10_000);
    let mut busy = Duration::ZERO;
    for tick in 0..360_u64 {
        fleet.now = fleet.now + Span::from_s(10);
        let listing = (tick % 3 == 0).then(|| fleet.listed(&|_| true));
        let begun = Instant::now();
        if let Some(listing) = listing {
            fleet.feed(listing);
        }
        fleet.leases(tick + 1_000);
        fleet.feed(Event::Cluster(ClusterFact::Alive));
        busy += begun.elapsed();
    }
    let share = busy.as_secs_f64() / 3600.0 * 100.0;
    println!(
        "  {:.2} s of one core = {share:.3} %   (target: below 1 %, adapters not counted)\n",
        busy.as_secs_f64()
    );
}

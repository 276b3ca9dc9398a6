//! What a burst of faults costs at the default limits, through the path of `run`, and that it grows as the burst does.
//!
//! ```text
//!  1,000 · 4,000 · 10,000 of 10,000 machines ─┬─ lose their security group ─▶ all are repaired, eight at a time
//!                                             └─ turn not Ready ─▶ ten minutes beyond their grace, four repairs an hour
//!  cost = processor time of the loop's thread, the disk's thread not counted;  cost(10,000) / cost(1,000) ≤ 12
//! ```
//!
//! Calls are accepted and take effect at once, reads are answered at once: what is measured is the loop. The ledger is a
//! real one, in a temporary directory. Time is made up and goes on only when nothing is under way.

use std::collections::VecDeque;
use std::error::Error;
use std::time::{Duration, Instant};

use reveille_core::effect::{Effect, Outcome};
use reveille_core::event::{ClusterFact, Event};
use reveille_core::model::node::Ready;
use reveille_core::model::roster::{Deadlines, Limits};
use reveille_core::model::time::Span;
use tokio::sync::mpsc::UnboundedReceiver;

use super::cycle::thread_cpu;
use super::driver::engine_host::{EngineHost, Input};
use super::driver::ledger_store;
use super::driver::ledger_writer::{Ack, LedgerWriter};
use super::fleet::Fleet;

const MACHINES: usize = 10_000;
const FAULTS: [usize; 3] = [1_000, 4_000, 10_000];
/// Ten times the faults may cost so many times as much.
const RATIO_MAX: f64 = 12.0;
/// A burst that is not over after so much of its own time is broken.
const LASTS_AT_MOST: Span = Span::from_min(60);
/// How long nodes stay not Ready beyond their grace.
const HELD_FOR: Span = Span::from_min(10);

/// One fleet behind the owner that `run` has.
struct Bench {
    fleet: Fleet,
    engine_host: EngineHost,
    acks: UnboundedReceiver<Ack>,
    _directory: tempfile::TempDir,
    calls: usize,
    /// Of the loop's thread.
    work: Duration,
}

impl Bench {
    fn new() -> Result<Self, Box<dyn Error>> {
        let fleet = Fleet::new(MACHINES);
        let directory = tempfile::tempdir()?;
        let opened = ledger_store::open(directory.path(), "bench", fleet.now)?;
        let (ledger_writer, acks) = LedgerWriter::start(Box::new(opened.ledger_store))?;
        let engine_host = EngineHost::new(fleet.state.clone(), ledger_writer);
        Ok(Self { fleet, engine_host, acks, _directory: directory, calls: 0, work: Duration::ZERO })
    }

    /// Takes in an event and all that follows from it, until nothing is under way.
    fn take(&mut self, event: Event) -> Result<(), Box<dyn Error>> {
        let begun = thread_cpu();
        let now = self.fleet.now;
        let mut events = VecDeque::from([event]);
        loop {
            let effects = if let Some(event) = events.pop_front() {
                self.engine_host.take(now, Input::Event(event))
            } else if self.engine_host.unanswered() > 0 {
                let ack = self.acks.blocking_recv().ok_or("the ledger's thread ended")?;
                self.engine_host.take(now, Input::Ack(ack))
            } else {
                break;
            };
            for effect in effects {
                match &effect {
                    Effect::Look { id, .. } => {
                        let look = *id;
                        let answer = self.fleet.answer(&effect).map(Ok);
                        events.extend(answer.map(|answer| Event::Looked { look, answer }));
                    }
                    Effect::Call { intent, .. } => {
                        self.calls += 1;
                        let (intent, outcome) = (*intent, Outcome::Accepted { request: None });
                        events.push_back(Event::Done { intent, outcome });
                    }
                    _ => {}
                }
            }
        }
        self.work += thread_cpu().saturating_sub(begun);
        Ok(())
    }

    /// Ten seconds pass, with what the adapters say in them and the loop's heartbeat.
    fn pass(&mut self) -> Result<(), Box<dyn Error>> {
        self.fleet.now = self.fleet.now + Span::from_s(10);
        let now = self.fleet.now;
        let begun = thread_cpu();
        self.engine_host.beat();
        self.work += thread_cpu().saturating_sub(begun);
        let round = (now.ms / 10_000) as u64;
        let leases = self.fleet.renewed(round);
        self.take(Event::Cluster(ClusterFact::Leases(leases)))?;
        self.take(Event::Cluster(ClusterFact::Alive))?;
        if round.is_multiple_of(3) {
            let listing = self.fleet.listed(&|_| true);
            self.take(listing)?;
        }
        Ok(())
    }

    fn open(&self) -> usize {
        self.engine_host.state().context().cases.len()
    }

    fn end(self) -> Result<(), Box<dyn Error>> {
        let broken = self.engine_host.violations().first().map(ToString::to_string);
        drop(self.engine_host.end());
        broken.map_or(Ok(()), |broken| Err(broken.into()))
    }
}

/// What one burst cost.
struct Cost {
    work: Duration,
    wall: Duration,
    decisions: u64,
    calls: usize,
    lasted: Span,
}

fn lost_groups(faults: usize) -> Result<Cost, Box<dyn Error>> {
    let mut bench = Bench::new()?;
    let event = bench.fleet.listed(&|number| number >= faults);
    let (begun, from, decisions) = (Instant::now(), bench.fleet.now, bench.engine_host.state().decisions());
    bench.take(event)?;
    // Repairs that found no room in the ledger's queue are written again, and a dwell ends each incident.
    while bench.open() > 0 {
        bench.pass()?;
        if bench.fleet.now.since(from) > LASTS_AT_MOST {
            return Err(format!("{} of {faults} faults are still open", bench.open()).into());
        }
    }
    finish(bench, begun, from, decisions)
}

fn not_ready(faults: usize) -> Result<Cost, Box<dyn Error>> {
    let mut bench = Bench::new()?;
    let (begun, from, decisions) = (Instant::now(), bench.fleet.now, bench.engine_host.state().decisions());
    for number in 0..faults {
        bench.take(Event::Cluster(ClusterFact::Applied(bench.fleet.turned(number, Ready::False))))?;
    }
    let until = from + Deadlines::default().not_ready_within + HELD_FOR;
    bench.fleet.silence(faults);
    while bench.fleet.now < until {
        bench.pass()?;
    }
    finish(bench, begun, from, decisions)
}

fn finish(
    bench: Bench,
    begun: Instant,
    from: reveille_core::model::time::Time,
    decisions: u64,
) -> Result<Cost, Box<dyn Error>> {
    let cost = Cost {
        work: bench.work,
        wall: begun.elapsed(),
        decisions: bench.engine_host.state().decisions() - decisions,
        calls: bench.calls,
        lasted: bench.fleet.now.since(from),
    };
    bench.end()?;
    Ok(cost)
}

/// One burst of so many faults, and what it cost.
type Burst = fn(usize) -> Result<Cost, Box<dyn Error>>;

/// Measures both bursts at every size; an error names the ratio that is broken.
pub(crate) fn at_default_limits() -> Result<(), Box<dyn Error>> {
    let Limits { at_once, per_hour, network_at_once, freeze_above_pct, .. } = Limits::default();
    println!(
        "bursts in {MACHINES} machines through the path of run, default limits: {network_at_once} network repairs at once, {at_once} other at once, {per_hour} an hour, frozen above {freeze_above_pct} %"
    );
    let mut broken = Vec::new();
    let bursts: [(&str, Burst); 2] = [
        ("lost groups, until all are repaired", lost_groups),
        ("nodes not Ready, for 15 minutes", not_ready),
    ];
    for (what, burst) in bursts {
        let mut works = Vec::new();
        for faults in FAULTS {
            let cost = burst(faults)?;
            let seconds = cost.work.as_secs_f64();
            println!(
                "  {what:<36} {faults:>6} faults   {seconds:7.2} s of one core, {:7.1} µs a fault   {:>7} decisions   {:>6} calls   {:.1} s on the wall, {} of its own time",
                seconds * 1e6 / faults as f64,
                cost.decisions,
                cost.calls,
                cost.wall.as_secs_f64(),
                cost.lasted,
            );
            works.push(seconds);
        }
        if let [small, .., large] = works[..] {
            let ratio = large / small;
            println!("  {what:<36} 10,000 / 1,000: {ratio:.1} x   (limit: {RATIO_MAX:.0} x)");
            if ratio > RATIO_MAX {
                broken.push(format!("{what}: ten times the faults cost {ratio:.1} times as much"));
            }
        }
    }
    println!();
    if broken.is_empty() { Ok(()) } else { Err(broken.join("; ").into()) }
}

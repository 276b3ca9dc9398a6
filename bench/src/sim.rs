//! How many days of how many machines the simulator plays in a second of one core, and how that grows with the fleet.
//!
//! It is the shipped engine's one function, driven by the simulated world with every check of the hunt. To a quiet fleet
//! nothing happens. Happenings are drawn from all faults there are: a usual fleet has one a day for ten days, a chaotic one
//! one every half hour for a day; each is played until it has come to rest. Counted in the processor time of this thread,
//! so that other work on the machine changes less. Each row is several seconds long: what is measured is the middle of a
//! run and not its start.

use std::time::Duration;

use reveille_core::model::time::Span;
use reveille_sim::drive::Drive;
use reveille_sim::hunt::{Quarry, play};
use reveille_sim::world::layout::Layout;

use super::cycle::thread_cpu;

const SIZES: [u32; 4] = [10, 100, 1_000, 10_000];
/// The size for which there is a target, and the target.
const TARGET_AT: u32 = 100;
const TARGET: f64 = 10_000.0;
const DAY: Span = Span::from_min(24 * 60);
/// So many machine-days are played for one figure, and at least one run.
const MACHINE_DAYS: u32 = 5_000;

/// What one size gave.
struct Played {
    machine_days: f64,
    steps: u64,
    took: Duration,
}

impl Played {
    fn per_core_s(&self) -> f64 {
        self.machine_days / self.took.as_secs_f64()
    }

    fn print(&self, machines: u32, fleet: &str) {
        let target =
            if machines == TARGET_AT { format!("   (target: at least {TARGET:.0})") } else { String::new() };
        println!(
            "  {machines:>7} machines, {fleet:<7}   {:>8.0} machine-days per core-second, {:>6.2} µs a step{target}",
            self.per_core_s(),
            self.took.as_secs_f64() * 1e6 / self.steps as f64,
        );
    }
}

/// Prints all sizes, and how a machine-day's cost grows from the size of the target to ten and a hundred times as many.
pub(crate) fn machine_days() {
    println!("simulated machine-days per second of one core");
    let fleets: [(_, fn(u32) -> Played); 3] = [("quiet", quiet), ("usual", usual), ("chaotic", chaotic)];
    for (fleet, played) in fleets {
        let mut at_target = None;
        let mut grown = Vec::new();
        for machines in SIZES {
            let played = played(machines);
            played.print(machines, fleet);
            match at_target {
                None if machines == TARGET_AT => at_target = Some(played.per_core_s()),
                Some(there) => grown.push(format!("{:.2} x at {machines}", there / played.per_core_s())),
                None => {}
            }
        }
        println!(
            "  a machine-day of a {fleet} fleet costs, against {TARGET_AT} machines: {}",
            grown.join(", ")
        );
    }
    println!();
}

/// The first minutes, in which everything is listed for the first time, are left out.
fn quiet(machines: u32) -> Played {
    let mut drive = Drive::new(&Layout { news_only: true, ..Layout::fleet(1, machines).routed() });
    drive.run_for(Span::from_min(10));
    let days = (10 * MACHINE_DAYS / machines).max(1);
    let (begun, steps) = (thread_cpu(), drive.counts().steps);
    for _ in 0..days {
        drive.run_for(DAY);
    }
    let took = thread_cpu().saturating_sub(begun);
    Played { machine_days: f64::from(machines * days), steps: drive.counts().steps - steps, took }
}

fn usual(machines: u32) -> Played {
    with_happenings(machines, Span::from_min(10 * 24 * 60), DAY)
}

fn chaotic(machines: u32) -> Played {
    with_happenings(machines, DAY, Span::from_min(30))
}

/// So long with a happening in each `every`, and the time until all is at rest. The whole run counts.
fn with_happenings(machines: u32, span: Span, every: Span) -> Played {
    let days = u32::try_from(span.ms / DAY.ms).unwrap_or(1);
    let begun = thread_cpu();
    let mut played = Played { machine_days: 0.0, steps: 0, took: Duration::ZERO };
    for seed in 0..u64::from((MACHINE_DAYS / machines / days).max(1)) {
        let quarry = Quarry::new(seed, machines, span, every);
        if let Ok(outcome) = play(&quarry) {
            played.machine_days += f64::from(machines) * outcome.ran.ms as f64 / DAY.ms as f64;
            played.steps += outcome.counts.steps;
        }
    }
    played.took = thread_cpu().saturating_sub(begun);
    played
}

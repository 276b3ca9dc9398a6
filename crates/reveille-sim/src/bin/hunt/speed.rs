//! How many days of how many machines one core plays in a second.
//!
//! Counted in the processor time of this process, so that a busy machine changes little. A quiet fleet is one to which
//! nothing happens; a chaotic one has a happening every half hour, and the day after its day of faults.

use reveille_core::model::time::Span;
use reveille_sim::drive::Drive;
use reveille_sim::hunt::{Quarry, play};
use reveille_sim::world::layout::Layout;

/// Seconds of processor time of this process; zero where the system does not say.
pub(crate) fn cpu_s() -> f64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|ns| ns.parse::<f64>().ok()).unwrap_or(0.0) / 1e9
}

/// Prints the table.
pub(crate) fn measure() {
    println!("{:>8} {:>10} {:>24} {:>12}", "machines", "fleet", "machine-days/core-s", "steps/day");
    for machines in [10, 100, 1000] {
        let days = 2_000 / i64::from(machines) + 1;
        for (fleet, news_only) in [("quiet", true), ("quiet, all told", false)] {
            quiet(machines, days, fleet, news_only);
        }
        chaotic(machines, (500 / u64::from(machines)).max(1));
    }
}

fn quiet(machines: u32, days: i64, fleet: &str, news_only: bool) {
    let mut drive = Drive::new(&Layout { news_only, ..Layout::fleet(1, machines).routed() });
    drive.run_for(Span::from_min(10));
    let (before, steps) = (cpu_s(), drive.counts().steps);
    drive.run_for(Span::from_min(24 * 60 * days));
    let took = cpu_s() - before;
    row(machines, fleet, days as f64, took, drive.counts().steps - steps);
}

fn chaotic(machines: u32, seeds: u64) {
    let before = cpu_s();
    let (mut days, mut steps) = (0.0, 0);
    for seed in 0..seeds {
        let quarry = Quarry::new(seed, machines, Span::from_min(1440), Span::from_min(30));
        if let Ok(outcome) = play(&quarry) {
            days += outcome.ran.ms as f64 / 86_400_000.0;
            steps += outcome.counts.steps;
        }
    }
    row(machines, "chaotic", days, cpu_s() - before, steps);
}

fn row(machines: u32, fleet: &str, days: f64, took: f64, steps: u64) {
    let rate = f64::from(machines) * days / took;
    println!("{machines:>8} {fleet:>16} {rate:>18.0} {:>12.0}", steps as f64 / days);
}

//! The output of the hunt: the story of a failure, a line of progress, and the sum at the end.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use reveille_sim::hunt::shrink::Small;
use reveille_sim::hunt::{Breach, Diagnoses, Outcome, Quarry};

/// The sums of a hunt.
pub(crate) struct Report {
    from: u64,
    runs: u64,
    machine_ms: f64,
    steps: u64,
    destructive: u64,
    calls: u64,
    diagnoses: Diagnoses,
    broken: BTreeMap<String, Vec<u64>>,
}

const DAY_MS: f64 = 86_400_000.0;

impl Report {
    pub(crate) const fn new(from: u64) -> Self {
        let diagnoses = Diagnoses { right: 0, symptom: 0, unknown: 0, wrong: 0 };
        let broken = BTreeMap::new();
        Self { from, runs: 0, machine_ms: 0.0, steps: 0, destructive: 0, calls: 0, diagnoses, broken }
    }

    pub(crate) fn add(&mut self, quarry: &Quarry, outcome: &Outcome) {
        self.runs += 1;
        self.machine_ms += f64::from(quarry.machines) * outcome.ran.ms as f64;
        self.steps += outcome.counts.steps;
        self.calls += outcome.counts.calls;
        self.destructive += outcome.destructive;
        self.diagnoses.right += outcome.diagnoses.right;
        self.diagnoses.symptom += outcome.diagnoses.symptom;
        self.diagnoses.unknown += outcome.diagnoses.unknown;
        self.diagnoses.wrong += outcome.diagnoses.wrong;
        if let Some(breach) = &outcome.breach {
            self.broken.entry(breach.rule.to_string()).or_default().push(quarry.seed);
        }
    }

    pub(crate) fn failures(&self) -> usize {
        self.broken.values().map(Vec::len).sum()
    }

    pub(crate) fn line(&self, elapsed: Duration) -> String {
        let days = self.machine_ms / DAY_MS;
        format!(
            "{} seeds, {days:.0} machine-days, {} broken, {:.0} s   ",
            self.runs,
            self.failures(),
            elapsed.as_secs_f64()
        )
    }

    pub(crate) fn print(&self, elapsed: Duration) {
        let days = self.machine_ms / DAY_MS;
        println!("seeds {}..{}", self.from, self.from + self.runs);
        println!("{days:.0} machine-days, {} steps of the engine", self.steps);
        println!("{} calls, {} of them can hurt", self.calls, self.destructive);
        let said = self.diagnoses;
        println!(
            "incidents named: {} right, {} by a symptom, {} unknown, {} wrong",
            said.right, said.symptom, said.unknown, said.wrong
        );
        let cpu = cpu_s();
        println!(
            "{:.0} s, {cpu:.0} core-seconds: {:.0} machine-days per core-second",
            elapsed.as_secs_f64(),
            days / cpu
        );
        if self.broken.is_empty() {
            println!("nothing is broken");
        }
        for (rule, seeds) in &self.broken {
            println!("BROKEN {rule}: seeds {seeds:?}");
        }
    }
}

/// Lines of a story among others; a replay tells the whole.
const TOLD_LINES: usize = 40;

/// A failure, after it was shrunk.
pub(crate) fn tell(small: &Small, path: &Path) {
    println!("── seed {}, shrunk in {} runs ──", small.quarry.seed, small.runs);
    happenings(&small.quarry);
    breach(&small.breach, TOLD_LINES);
    println!("again: cargo xtask hunt --replay {}\n", path.display());
}

/// What happens in a run.
pub(crate) fn happenings(quarry: &Quarry) {
    let Ok(scenario_run) = quarry.scenario_run() else { return };
    let machines = quarry.world.unwrap_or(quarry.machines);
    println!("{machines} machines, {}:", scenario_run.length);
    for (after, what) in &scenario_run.happenings {
        let s = after.ms / 1000;
        println!("  {:02}:{:02}:{:02}  {}  {what:?}", s / 3600, s / 60 % 60, s % 60, what.name());
    }
}

/// What was broken, and how it came to that: the last so many lines.
pub(crate) fn breach(breach: &Breach, lines: usize) {
    println!(
        "{} at step {}, {} after the beginning: {}",
        breach.rule, breach.step, breach.after, breach.what
    );
    let skip = breach.story.lines().count().saturating_sub(lines);
    breach.story.lines().skip(skip).for_each(|line| println!("{line}"));
}

/// Seconds of processor time of this process; zero where the system does not say.
fn cpu_s() -> f64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|ns| ns.parse::<f64>().ok()).unwrap_or(0.0) / 1e9
}

//! What came of the scenarios: told as each ends, summed up at the end.
//!
//! ```text
//!  lane ─▶ Played ─▶ one text, printed in one go: lanes side by side never mix their lines
//!             └────▶ the table of times, the closing line
//! ```
//!
//! A scenario that fails is not judged yet: it may be run a second time. What it said the first time stays in view.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::Error;

use crate::runner::Scenario;

/// Longest reason on a line, characters.
const REASON_MAX: usize = 300;

/// A scenario that ended in a lane.
pub struct Played<'a> {
    /// Which one.
    pub scenario: &'a Scenario,
    /// In which lane, from 1.
    pub lane: usize,
    /// How long it took.
    pub took: Duration,
    /// How long it took to clean up after it.
    pub cleaned: Duration,
    /// Why it did not pass, and what a person would want to see.
    pub failed: Option<Failed>,
}

/// Why a scenario did not pass.
pub struct Failed {
    /// Why.
    pub why: Error,
    /// What was seen afterwards.
    pub aftermath: String,
}

impl Failed {
    /// The reason on one line.
    fn line(&self) -> String {
        let words = format!("{:#}", self.why);
        let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
        match words.char_indices().nth(REASON_MAX) {
            Some((end, _)) => format!("{}…", &words[..end]),
            None => words,
        }
    }
}

/// The sum, and where it is told.
pub struct Score {
    counts: Mutex<Counts>,
    tell: fn(&str),
}

#[derive(Default)]
struct Counts {
    passed: usize,
    failed: usize,
    skipped: usize,
    flaky: usize,
    times: Vec<(Duration, Duration, usize, &'static str)>,
    /// Scenarios that were begun.
    begun: BTreeSet<&'static str>,
    /// Scenarios whose end was told.
    told: BTreeSet<&'static str>,
}

impl Score {
    /// Nothing was run yet. `tell` prints; a test of the score itself has its own, so that no log shows scenarios that are none.
    pub fn told_by(tell: fn(&str)) -> Self {
        Self { counts: Mutex::default(), tell }
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// It begins.
    pub fn begins(&self, scenario: &Scenario) {
        self.counts().begun.insert(scenario.name);
    }

    /// It passed.
    pub fn passed(&self, played: &Played<'_>) {
        self.time(played);
        let mut counts = self.counts();
        counts.passed += 1;
        counts.told.insert(played.scenario.name);
        drop(counts);
        (self.tell)(&format!("test {} ... ok ({:.1} s)\n", played.scenario.name, played.took.as_secs_f64()));
    }

    /// It was not run.
    pub fn not_run(&self, scenario: &Scenario, why: &str) {
        let mut counts = self.counts();
        counts.skipped += 1;
        counts.told.insert(scenario.name);
        drop(counts);
        (self.tell)(&format!("test {} ... not run ({why})\n", scenario.name));
    }

    /// It failed, and is judged later.
    pub fn failed_once(&self, played: &Played<'_>, failed: &Failed) {
        self.time(played);
        let (name, took) = (played.scenario.name, played.took.as_secs_f64());
        (self.tell)(&format!(
            "test {name} ... failed at its first run ({took:.1} s)\n    {:#}\n{}",
            failed.why, failed.aftermath
        ));
    }

    /// It failed, and that is the end of it; `runs` says how often it was tried.
    pub fn failed(&self, scenario: &Scenario, first: &Failed, runs: &str) {
        let mut counts = self.counts();
        counts.failed += 1;
        counts.told.insert(scenario.name);
        drop(counts);
        (self.tell)(&format!("test {} ... FAILED ({runs}; first: {})\n", scenario.name, first.line()));
    }

    /// The run is cut: tells each scenario whose end was not told, and the sum.
    pub fn cut(&self, chosen: &[&'static str]) {
        let mut counts = self.counts();
        let mut text = String::new();
        for name in chosen {
            if !counts.told.insert(name) {
                continue;
            }
            let end = if counts.begun.contains(name) {
                counts.failed += 1;
                "FAILED (the run was cut before this scenario passed)"
            } else {
                counts.skipped += 1;
                "not run (the run was cut before this scenario began)"
            };
            let _ = writeln!(text, "test {name} ... {end}");
        }
        drop(counts);
        (self.tell)(&format!("{text}{}{}", self.table(), self.sum()));
    }

    /// It passed at its second run.
    pub fn passed_at_last(&self, played: &Played<'_>, first: &Failed) {
        self.time(played);
        let mut counts = self.counts();
        counts.passed += 1;
        counts.flaky += 1;
        counts.told.insert(played.scenario.name);
        drop(counts);
        let (name, took) = (played.scenario.name, played.took.as_secs_f64());
        let why = first.line();
        (self.tell)(&format!(
            "test {name} ... FLAKY (passed at its second run, {took:.1} s; first: {why})\n"
        ));
    }

    /// Remembers how long it took.
    pub fn time(&self, played: &Played<'_>) {
        self.counts().times.push((played.took, played.cleaned, played.lane, played.scenario.name));
    }

    /// How long each took, the longest first.
    pub fn table(&self) -> String {
        let mut times = self.counts().times.clone();
        times.sort_by_key(|(took, ..)| std::cmp::Reverse(*took));
        let mut text = String::from("\n   took  cleanup  lane\n");
        for (took, cleaned, lane, name) in times {
            let (took, cleaned) = (took.as_secs_f64(), cleaned.as_secs_f64());
            let _ = writeln!(text, "{took:>5.1} s  {cleaned:>5.1} s  {lane:>4}  {name}");
        }
        text
    }

    /// The closing lines.
    pub fn sum(&self) -> String {
        let Counts { passed, failed, skipped, flaky, .. } = &*self.counts();
        let flaky = match flaky {
            0 => String::new(),
            some => format!("{some} of them flaky: passed only at the second run\n"),
        };
        format!("{flaky}{passed} passed, {failed} failed, {skipped} skipped\n")
    }

    /// Nothing failed.
    pub fn is_good(&self) -> bool {
        self.counts().failed == 0
    }
}

/// Prints in one go. When the output is closed, the run goes on.
pub fn say(text: &str) {
    let _ = std::io::stdout().lock().write_all(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runner::{Play, Stage};

    #[test]
    fn cut_run_counts_every_scenario_once() {
        let names = ["passed", "running", "waiting"];
        let [passed, running, _] = names.map(|name| Scenario {
            name,
            play: Play::Written(|_| Ok(())),
            usually_s: 1,
            stage: Stage::AnyLane,
        });
        let score = Score::told_by(|_| ());
        score.begins(&passed);
        let (took, cleaned) = (Duration::from_secs(1), Duration::ZERO);
        score.passed(&Played { scenario: &passed, lane: 1, took, cleaned, failed: None });
        score.begins(&running);
        score.cut(&names);
        assert_eq!(score.sum(), "1 passed, 1 failed, 1 skipped\n");
        score.cut(&names);
        assert_eq!(score.sum(), "1 passed, 1 failed, 1 skipped\n", "a second cut adds nothing");
    }
}

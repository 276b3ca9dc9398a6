//! All that must be true before anything is merged, step by step, and the sum of it.
//!
//! ```text
//!  fmt ─▶ clippy ─▶ tests ─▶ tidy ─▶ e2e ─▶ durations, what failed, what was not run and why, one closing line
//! ```
//!
//! A failed step does not stop the next one: whoever waited wants to know everything. The end-to-end package is tested
//! by the last step alone, so that each test counts once.

use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::tally::Tally;
use crate::{cargo, e2e, run, tidy};

/// Whether the rig's tests are to be run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rig {
    Wanted,
    Unwanted,
}

/// A step that is over.
pub(crate) struct Step {
    pub(crate) name: &'static str,
    pub(crate) took: Duration,
    pub(crate) tally: Tally,
}

const FMT_WITHIN: Duration = Duration::from_secs(300);
const CLIPPY_WITHIN: Duration = Duration::from_secs(1800);
const TESTS_WITHIN: Duration = Duration::from_secs(2400);

/// Runs all steps; true when nothing failed.
pub(crate) fn run(rig: Rig) -> Result<bool> {
    let fmt = cargo(&["fmt", "--all", "--check"]);
    let clippy = cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]);
    let tests = cargo(&["test", "--workspace", "--exclude", "reveille-tests", "--no-fail-fast"]);
    let mut steps = vec![
        check("fmt", fmt, FMT_WITHIN)?,
        check("clippy", clippy, CLIPPY_WITHIN)?,
        timed("tests", || test_programs("tests", tests, TESTS_WITHIN))?,
        timed("tidy", || Ok(Tally::one("tidy", tidy::run(&crate::root())?)))?,
    ];
    steps.push(match rig {
        Rig::Wanted => e2e::step(None)?,
        Rig::Unwanted => timed("e2e", || e2e::without_rig("--without-rig was given"))?,
    });
    Ok(finish(&steps))
}

/// Runs a step and says how long it took.
pub(crate) fn timed(name: &'static str, work: impl FnOnce() -> Result<Tally>) -> Result<Step> {
    println!("\n=== {name}");
    let begun = Instant::now();
    let tally = work()?;
    let took = begun.elapsed();
    let word = if tally.failed == 0 { "done" } else { "FAILED" };
    println!("=== {name}: {word} after {:.1} s", took.as_secs_f64());
    Ok(Step { name, took, tally })
}

fn check(name: &'static str, command: Command, within: Duration) -> Result<Step> {
    timed(name, || {
        let ended = run::to_the_end(command, within)?;
        if !ended.ok {
            println!("{}", ended.why);
        }
        Ok(Tally::one(name, ended.ok))
    })
}

/// Runs test programs and counts what they say. One that ends badly without naming a failed test is a failure itself.
pub(crate) fn test_programs(name: &str, command: Command, within: Duration) -> Result<Tally> {
    let ended = run::to_the_end(command, within)?;
    let mut tally = Tally::read(&ended.lines);
    if !ended.ok && tally.failed == 0 {
        tally.fail(&format!("{name} ({})", ended.why));
    }
    Ok(tally)
}

/// Prints the sum of all steps; true when nothing failed. The last line is for programs.
pub(crate) fn finish(steps: &[Step]) -> bool {
    println!();
    let mut all = Tally::default();
    for Step { name, took, tally } in steps {
        let Tally { passed, failed, skipped, .. } = tally;
        let took = took.as_secs_f64();
        println!("{name:<8} {took:>8.1} s   {passed:>5} passed  {failed:>3} failed  {skipped:>3} skipped");
        all.add(tally);
    }
    all.settle();
    for name in &all.failures {
        println!("failed   {name}");
    }
    for (name, reason) in &all.not_run {
        println!("not run  {name}: {reason}");
    }
    let gating: u64 = steps.iter().filter(|step| gates(step.name)).map(|step| step.tally.failed).sum();
    if gating == 0 && all.failed > 0 {
        println!(
            "the failures above are of the rig's scenarios, which {REPORT_ONLY} asks to report and not to gate on"
        );
    }
    println!("{} passed, {} failed, {} skipped", all.passed, all.failed, all.skipped);
    gating == 0
}

/// Set by a build server that wants the rig's scenarios run and their failures told, but not to decide over a merge.
const REPORT_ONLY: &str = "REVEILLE_E2E_REPORT_ONLY";

fn gates(step: &str) -> bool {
    step != "e2e" || std::env::var_os(REPORT_ONLY).is_none()
}

//! All that must be true before anything is merged, step by step, and the sum of it.
//!
//! ```text
//!  fmt ─▶ clippy ─▶ tests ─▶ dependencies ─▶ tidy ─▶ e2e ─▶ durations, what failed, what was not run and why, one closing line
//! ```
//!
//! A failed step does not stop the next one: a developer who waited wants to know every failure. Tests that need a rig are
//! reported as not run by one step and run by the last; in the sum each counts once.

use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::run::Ended;
use crate::tally::Tally;
use crate::{cargo, dependencies, e2e, run, tidy};

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
    let building = if rig == Rig::Wanted { e2e::build_beside() } else { None };
    let fmt = cargo(&["fmt", "--all", "--check"]);
    let clippy = cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]);
    let tests = cargo(&["test", "--workspace", "--no-fail-fast"]);
    // The program for machines is the same package without the controller: what is left must stand by itself.
    let on_machines = ["-p", "reveille", "--no-default-features"];
    let clippy_on_machines =
        cargo(&[&["clippy"], &on_machines[..], &["--all-targets", "--", "-D", "warnings"]].concat());
    let tests_on_machines = cargo(&[&["test"], &on_machines[..]].concat());
    let mut steps = vec![
        check("fmt", fmt, FMT_WITHIN)?,
        check("clippy", clippy, CLIPPY_WITHIN)?,
        check("clippy, for machines", clippy_on_machines, CLIPPY_WITHIN)?,
        timed("tests", || Ok(test_programs("tests", run::to_the_end(tests, TESTS_WITHIN)?)))?,
        timed("tests, for machines", || {
            Ok(test_programs("tests, for machines", run::to_the_end(tests_on_machines, TESTS_WITHIN)?))
        })?,
        timed("dependencies", dependencies::check)?,
        timed("tidy", || Ok(Tally::one("tidy", tidy::run(&crate::root())?)))?,
    ];
    steps.push(match rig {
        Rig::Wanted => e2e::step(None, building)?,
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

/// Counts what test programs said. One that ended badly without naming a failed test is a failure itself.
pub(crate) fn test_programs(name: &str, ended: Ended) -> Tally {
    let mut tally = Tally::read(&ended.lines);
    if !ended.ok && tally.failed == 0 {
        tally.fail(&format!("{name} ({})", ended.why));
    }
    tally
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
    for (name, reason) in &all.flaky {
        println!("flaky    {name}: {reason}");
    }
    for (name, reason) in &all.not_run {
        println!("not run  {name}: {reason}");
    }
    if !all.flaky.is_empty() {
        println!("{} of the passed ones flaky: they passed only at a second run", all.flaky.len());
    }
    println!("{} passed, {} failed, {} skipped", all.passed, all.failed, all.skipped);
    all.failed == 0
}

//! The long hunt, from a command line: `cargo xtask hunt --hours 8`.
//!
//! ```text
//!  seeds from --from on ─▶ play ─▶ progress
//!                           └▶ broke? shrink ─▶ seed file in target/hunt/ ─▶ its story and its replay command
//!  time is up ─▶ report
//! ```
//!
//! Reads the clock and writes files, which the library does not. One thread: several hunts with ranges of their own take
//! several cores.

mod order;
mod report;

use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use reveille_sim::hunt::seed::Seed;
use reveille_sim::hunt::{Breach, Quarry, play, shrink};

use order::{Hunt, Order};
use report::Report;

/// Runs that one failure may take to shrink.
const SHRINK_RUNS_MAX: u32 = 300;
/// Failures that are shrunk and told whole; of those after them the seed is named, and what broke.
const TOLD_MAX: usize = 12;
/// How often the progress is told on a terminal, where a line replaces the one before.
const TOLD_EVERY_TERMINAL: Duration = Duration::from_millis(500);
/// And in a file: what a hunt that was ended by hand has done is known to the minute.
const TOLD_EVERY_FILE: Duration = Duration::from_secs(60);

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let ended = order::read(&words).and_then(|order| match order {
        Order::Help => {
            print!("{}", order::USAGE);
            Ok(true)
        }
        Order::Faults => {
            print!("{}", reveille_sim::chaos::catalog::table());
            Ok(true)
        }
        Order::Replay(path) => replay(&path),
        Order::Hunt(order) => hunt(&order),
    });
    match ended {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(why) => {
            eprintln!("hunt: {why}");
            ExitCode::from(2)
        }
    }
}

fn hunt(order: &Hunt) -> Result<bool, String> {
    let &Hunt { from, runs, within, digests, ref like } = order;
    let begun = Instant::now();
    let mut report = Report::new(from);
    let mut told = Instant::now();
    let shown = std::io::stderr().is_terminal();
    for seed in from.. {
        let enough = runs.is_some_and(|runs| seed - from >= runs)
            || within.is_some_and(|within| begun.elapsed() >= within);
        if enough {
            break;
        }
        let quarry = Quarry { seed, ..like.clone() };
        let outcome = play(&quarry).map_err(|unknown| unknown.to_string())?;
        if let Some(breach) = &outcome.breach {
            eprintln!("\rseed {seed}: {}: {}", breach.rule, breach.what);
            if report.failures() < TOLD_MAX && !digests {
                let small = shrink::shrink(&quarry, breach.clone(), SHRINK_RUNS_MAX);
                let path = keep(&small.quarry, &small.breach)?;
                report::tell(&small, &path);
            }
        }
        if digests {
            println!(
                "{seed} {} {} bytes, {} steps",
                outcome.digest,
                outcome.digest.bytes(),
                outcome.counts.steps
            );
        }
        report.add(&quarry, &outcome);
        let tell_after = if shown { TOLD_EVERY_TERMINAL } else { TOLD_EVERY_FILE };
        if told.elapsed() > tell_after {
            told = Instant::now();
            let line = report.line(begun.elapsed());
            if shown { eprint!("\r{line}") } else { eprintln!("{line}") }
        }
    }
    if shown {
        eprintln!();
    }
    report.print(begun.elapsed());
    Ok(report.failures() == 0)
}

/// Writes the small run where it can be played again.
fn keep(quarry: &Quarry, breach: &Breach) -> Result<PathBuf, String> {
    let dir = PathBuf::from("target/hunt");
    std::fs::create_dir_all(&dir).map_err(|error| format!("cannot make {}: {error}", dir.display()))?;
    let path = dir.join(format!("seed-{}.txt", quarry.seed));
    let what: String = breach.what.chars().take(200).collect();
    let wrong = format!("{}: {}", breach.rule, what.replace('\n', " "));
    let seed = Seed { quarry: quarry.clone(), wrong, fixed_by: String::new() };
    std::fs::write(&path, seed.write())
        .map_err(|error| format!("cannot write {}: {error}", path.display()))?;
    Ok(path)
}

fn replay(path: &str) -> Result<bool, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("cannot read {path}: {error}"))?;
    let seed = Seed::read(&text).map_err(|why| format!("{path}: {why}"))?;
    let outcome = play(&seed.quarry).map_err(|unknown| unknown.to_string())?;
    report::happenings(&seed.quarry);
    match &outcome.breach {
        Some(breach) => report::breach(breach, usize::MAX),
        None => println!("nothing is broken; {} steps, {}", outcome.counts.steps, outcome.ran),
    }
    Ok(outcome.breach.is_none())
}

//! Runs scenarios one after the other on one rig, tells each as it ends, and always takes the rig down.
//!
//! ```text
//!  test NAME ... ok (12.3 s)            it was run and what its name says is so
//!  test NAME ... FAILED (3.4 s)         it was run and it is not so; why, the log's end, the ledger, what was broken
//!  test NAME ... not run (why)          it was not run; never counts as passed
//!  N passed, N failed, N skipped        the last line; exit code 1 when something failed
//! ```
//!
//! Without `REVEILLE_E2E=1` nothing is run and nothing is built, so that testing the workspace stays quick. An interrupted
//! run (SIGINT, SIGTERM) ends its programs and its rig before it ends.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::{ExitCode, exit};
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Instant;

use anyhow::{Context, Result, anyhow};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::NotRun;
use crate::lab::Lab;
use crate::process;
use crate::reveille::Reveille;
use crate::rig::Rig;

/// Asks for the scenarios to be run.
const ASKED: &str = "REVEILLE_E2E";
/// Only scenarios whose name contains this, or one of these, with commas between them.
const ONLY: &str = "REVEILLE_E2E_ONLY";
/// Begins the name of each rig and folder; the process id follows.
const PREFIX: &str = "e2e-";

/// One scenario.
#[derive(Clone, Copy)]
pub struct Scenario {
    /// What it proves, as a name.
    pub name: &'static str,
    /// What it does.
    pub play: fn(&mut Lab) -> Result<()>,
}

/// Makes a [`Scenario`] of each function, under its own name.
#[macro_export]
macro_rules! scenarios {
    ($($module:ident :: $name:ident),* $(,)?) => {
        &[$($crate::runner::Scenario { name: stringify!($name), play: $module::$name },)*]
    };
}

/// What the command line wants.
struct Wanted {
    list: bool,
    only: Vec<String>,
}

impl Wanted {
    /// Cargo's own flags for test programs are passed over.
    fn read() -> Self {
        let only = std::env::var(ONLY).unwrap_or_default();
        let mut wanted = Self { list: false, only: only.split(',').map(str::to_owned).collect() };
        for word in std::env::args().skip(1) {
            match word.as_str() {
                "--list" => wanted.list = true,
                flag if flag.starts_with('-') => {}
                _ => wanted.only.push(word),
            }
        }
        wanted.only.retain(|only| !only.is_empty());
        wanted
    }

    fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| name.contains(only.as_str()))
    }
}

#[derive(Default)]
struct Score {
    passed: usize,
    failed: usize,
    skipped: usize,
}

/// Runs what is asked for. The whole of a test program's `main`.
pub fn main(all: &[Scenario]) -> ExitCode {
    let wanted = Wanted::read();
    let chosen: Vec<&Scenario> = all.iter().filter(|scenario| wanted.wants(scenario.name)).collect();
    if wanted.list {
        chosen.iter().for_each(|scenario| println!("{}: test", scenario.name));
        return ExitCode::SUCCESS;
    }
    let mut score = Score::default();
    if std::env::var(ASKED).as_deref() == Ok("1") {
        play_all(&chosen, &mut score);
    } else {
        println!("{} scenarios were not run: they start a rig; set {ASKED}=1 to run them", chosen.len());
        score.skipped = chosen.len();
    }
    println!("{} passed, {} failed, {} skipped", score.passed, score.failed, score.skipped);
    if score.failed > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn play_all(chosen: &[&Scenario], score: &mut Score) {
    let name = format!("{PREFIX}{}", std::process::id());
    let work = std::env::temp_dir().join(format!("reveille-{name}"));
    take_down_forgotten();
    end_well_when_interrupted(&name);
    keep_panics_quiet();
    let mut lab = match open(&name, &work) {
        Ok(lab) => lab,
        Err(error) => {
            for scenario in chosen {
                tell(scenario, Instant::now(), Err(anyhow!("{error:#}")), error.is::<NotRun>(), score);
            }
            return;
        }
    };
    for scenario in chosen {
        let begun = Instant::now();
        lab.begin(scenario.name);
        let ended = catch_unwind(AssertUnwindSafe(|| (scenario.play)(&mut lab)));
        let ended = ended.unwrap_or_else(|_| Err(anyhow!("panicked: {}", last_panic())));
        let not_run = ended.as_ref().err().is_some_and(|error| error.is::<NotRun>());
        let failed = ended.is_err() && !not_run;
        tell(scenario, begun, ended, not_run, score);
        if failed {
            print!("{}", lab.aftermath());
        }
        lab.reset(!failed);
    }
    drop(lab);
    // Not empty when a scenario failed: its log and state stay for a look.
    let _ = std::fs::remove_dir(&work);
}

fn open(name: &str, work: &Path) -> Result<Lab> {
    let begun = Instant::now();
    let reveille = Reveille::build()?;
    println!("reveille is built ({:.1} s)", begun.elapsed().as_secs_f64());
    std::fs::create_dir_all(work).context("cannot make a folder for logs and state")?;
    let begun = Instant::now();
    let lab = Lab::open(name, reveille, work)?;
    println!("rig {name} is up ({:.1} s)", begun.elapsed().as_secs_f64());
    Ok(lab)
}

fn tell(scenario: &Scenario, begun: Instant, ended: Result<()>, not_run: bool, score: &mut Score) {
    let (name, time) = (scenario.name, begun.elapsed().as_secs_f64());
    match ended {
        Ok(()) => {
            score.passed += 1;
            println!("test {name} ... ok ({time:.1} s)");
        }
        Err(why) if not_run => {
            score.skipped += 1;
            println!("test {name} ... not run ({why:#})");
        }
        Err(why) => {
            score.failed += 1;
            println!("test {name} ... FAILED ({time:.1} s)\n    {why:#}");
        }
    }
}

/// Rigs of runs that were killed before they could take them down.
fn take_down_forgotten() {
    let home =
        std::env::var_os("RIG_HOME").map_or_else(|| std::env::temp_dir().join("reveille-rig"), PathBuf::from);
    for entry in std::fs::read_dir(home).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let process: Option<u32> = name.strip_prefix(PREFIX).and_then(|id| id.parse().ok());
        if process.is_some_and(|id| !Path::new(&format!("/proc/{id}")).exists()) {
            println!("rig {name} was forgotten by a run that is over; taking it down");
            Rig::take_down(&name);
        }
    }
}

fn end_well_when_interrupted(rig: &str) {
    let rig = rig.to_owned();
    let Ok(mut signals) = Signals::new([SIGINT, SIGTERM]) else { return };
    std::thread::spawn(move || {
        if signals.forever().next().is_some() {
            println!("interrupted: ending what runs, taking rig {rig} down");
            process::terminate_all();
            // A rig that is just coming up ends what it started when it is asked to end; give it that moment.
            std::thread::sleep(std::time::Duration::from_secs(2));
            Rig::take_down(&rig);
            exit(130);
        }
    });
}

static LAST_PANIC: Mutex<String> = Mutex::new(String::new());

/// A panic of a scenario is its failure and is told there.
fn keep_panics_quiet() {
    std::panic::set_hook(Box::new(|panic| {
        *LAST_PANIC.lock().unwrap_or_else(PoisonError::into_inner) = panic.to_string();
    }));
}

fn last_panic() -> String {
    LAST_PANIC.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

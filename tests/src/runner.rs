//! Runs scenarios in lanes, each with a rig of its own, tells each scenario as it ends, and always takes the rigs down.
//!
//! ```text
//!  scenarios, longest first ─┬▶ lane 1: rig, scenario after scenario ─┐
//!                            └▶ lane 2: rig, scenario after scenario ─┴▶ lane 1 alone: those that measure, second runs
//!
//!  test NAME ... ok (12.3 s)                     it was run and what its name says is so
//!  test NAME ... FAILED (3.4 s, …)               it was run and it is not so; why, the log's end, the ledger, what was broken
//!  test NAME ... FLAKY (passed at its second run, …)   it failed, and passed on a machine that did nothing else
//!  test NAME ... not run (why)                   it was not run; never counts as passed
//!  N passed, N failed, N skipped                 the last line; exit code 1 when something failed
//! ```
//!
//! Without `REVEILLE_E2E=1` nothing is run and nothing is built, so that testing the workspace stays quick. An interrupted
//! run (SIGINT, SIGTERM) tells what came of each scenario, and ends its programs and its rigs before it ends.

use std::num::NonZero;
use std::ops::RangeInclusive;
use std::path::Path;
use std::process::{ExitCode, exit};
use std::sync::Arc;

use anyhow::Result;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::agreed::{self, File};
use crate::lab::Lab;
use crate::lanes;
use crate::process;
use crate::rig::Rig;
use crate::score::{Score, say};

/// Asks for the scenarios to be run.
const ASKED: &str = "REVEILLE_E2E";
/// Only scenarios whose name contains this, or one of these, with commas between them.
const ONLY: &str = "REVEILLE_E2E_ONLY";
/// How many lanes, unless the machine is better known.
const LANES: &str = "REVEILLE_E2E_LANES";
/// A lane for each core: with three on two cores servers took over a minute to build now and then, four scenarios failed by
/// that, and all together took no less time. One lane waits most of its time, and a rig takes 1.5 GB.
const LANES_USUALLY: RangeInclusive<usize> = 2..=4;
/// Begins the name of each rig and folder; process id and lane follow.
const PREFIX: &str = "e2e-";

/// One scenario.
#[derive(Clone, Copy)]
pub struct Scenario {
    /// What it proves, as a name.
    pub name: &'static str,
    /// What it does.
    pub play: Play,
    /// How long it usually takes, seconds: the longest begin first.
    pub usually_s: u64,
    /// Where it may be played.
    pub stage: Stage,
}

/// What a scenario does.
#[derive(Clone, Copy)]
pub enum Play {
    /// This function.
    Written(fn(&mut Lab) -> Result<()>),
    /// These files, played beside each other and held against the simulator.
    Agreed(&'static [File]),
}

impl Play {
    /// Does it.
    ///
    /// # Errors
    /// When what it is to prove is not so.
    pub fn run(self, lab: &mut Lab) -> Result<()> {
        match self {
            Self::Written(play) => play(lab),
            Self::Agreed(files) => agreed::play(lab, files),
        }
    }
}

/// Where a scenario may be played.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// In any lane.
    AnyLane,
    /// In the first lane, because it uses something that costs too much to have in every lane.
    FirstLane,
    /// In the first lane when all others have ended, because it measures what a busy machine would blur.
    Alone,
}

impl Scenario {
    /// Every agreed scenario. They live as long as the program, as those that are written in it do.
    ///
    /// # Errors
    /// When a file cannot be read, or not be brought about on the rig.
    pub fn agreed() -> Result<Vec<Self>> {
        let of = |group: agreed::Group| Self {
            name: group.name.leak(),
            play: Play::Agreed(group.files.leak()),
            usually_s: group.usually_s,
            stage: Stage::AnyLane,
        };
        Ok(agreed::scenarios()?.into_iter().map(of).collect())
    }

    /// In the first lane, which has the fleet.
    #[must_use]
    pub const fn with_fleet(mut self) -> Self {
        self.stage = Stage::FirstLane;
        self
    }

    /// When all others have ended.
    #[must_use]
    pub const fn alone(mut self) -> Self {
        self.stage = Stage::Alone;
        self
    }
}

/// Makes a [`Scenario`] of a function, under its own name, with the seconds that it usually takes.
#[macro_export]
macro_rules! scenario {
    ($module:ident :: $name:ident, $usually_s:literal) => {
        $crate::runner::Scenario {
            name: stringify!($name),
            play: $crate::runner::Play::Written($module::$name),
            usually_s: $usually_s,
            stage: $crate::runner::Stage::AnyLane,
        }
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

/// Runs what is asked for. The whole of a test program's `main`.
pub fn main(all: &[Scenario]) -> ExitCode {
    let wanted = Wanted::read();
    let chosen: Vec<&Scenario> = all.iter().filter(|scenario| wanted.wants(scenario.name)).collect();
    if wanted.list {
        chosen.iter().for_each(|scenario| println!("{}: test", scenario.name));
        return ExitCode::SUCCESS;
    }
    let score = Arc::new(Score::told_by(say));
    if std::env::var(ASKED).as_deref() == Ok("1") {
        let names = rigs(&chosen);
        take_down_forgotten();
        let chosen_names = chosen.iter().map(|scenario| scenario.name).collect();
        end_well_when_interrupted(names.clone(), chosen_names, score.clone());
        let work = std::env::temp_dir().join(format!("reveille-{PREFIX}{}", std::process::id()));
        lanes::play(&chosen, &names, &work, &score);
        say(&score.table());
    } else {
        for scenario in &chosen {
            score.not_run(scenario, &format!("it starts a rig; set {ASKED}=1"));
        }
    }
    say(&score.sum());
    if score.is_good() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// A rig for each lane. No more lanes than scenarios that can be played beside each other.
fn rigs(chosen: &[&Scenario]) -> Vec<String> {
    let asked = std::env::var(LANES).ok().and_then(|lanes| lanes.parse().ok());
    let free = chosen.iter().filter(|scenario| scenario.stage == Stage::AnyLane).count();
    let pinned = usize::from(free < chosen.len());
    let lanes = asked.unwrap_or_else(lanes_usually).min(free + pinned).max(1);
    (1..=lanes).map(|lane| format!("{PREFIX}{}-{lane}", std::process::id())).collect()
}

fn lanes_usually() -> usize {
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    cores.clamp(*LANES_USUALLY.start(), *LANES_USUALLY.end())
}

/// Rigs of runs that were killed before they could take them down.
fn take_down_forgotten() {
    let home = std::env::var_os("RIG_HOME")
        .map_or_else(|| std::env::temp_dir().join("reveille-rig"), std::path::PathBuf::from);
    for entry in std::fs::read_dir(home).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if owner(&name).is_some_and(|id| !Path::new(&format!("/proc/{id}")).exists()) {
            println!("rig {name} was forgotten by a run that is over; taking it down");
            Rig::take_down(&name);
        }
    }
}

/// The process that a rig of ours is named after.
fn owner(rig: &str) -> Option<u32> {
    rig.strip_prefix(PREFIX)?.split('-').next()?.parse().ok()
}

fn end_well_when_interrupted(rigs: Vec<String>, chosen: Vec<&'static str>, score: Arc<Score>) {
    let Ok(mut signals) = Signals::new([SIGINT, SIGTERM]) else { return };
    std::thread::spawn(move || {
        if signals.forever().next().is_some() {
            println!("interrupted: ending what runs, taking the rigs {} down", rigs.join(", "));
            score.cut(&chosen);
            process::terminate_all();
            // A rig that is just coming up ends what it started when it is asked to end; give it that moment.
            std::thread::sleep(std::time::Duration::from_secs(2));
            std::thread::scope(|scope| {
                for rig in &rigs {
                    scope.spawn(|| Rig::take_down(rig));
                }
            });
            exit(130);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scenario(stage: Stage) -> Scenario {
        Scenario { name: "it_holds", play: Play::Written(|_| Ok(())), usually_s: 1, stage }
    }

    #[test]
    fn a_rig_names_the_process_that_it_belongs_to() {
        let [any, first, alone] = [Stage::AnyLane, Stage::FirstLane, Stage::Alone].map(scenario);
        let names = rigs(&[&any, &any, &any, &any, &alone]);
        assert!(LANES_USUALLY.contains(&names.len()), "{names:?}");
        assert!(names.iter().all(|name| owner(name) == Some(std::process::id())), "{names:?}");
        assert_eq!(rigs(&[&first, &first, &alone]).len(), 1, "one lane has the fleet");
        assert_eq!((owner("e2e-77"), owner("default"), owner("e2e-x-1")), (Some(77), None, None));
    }
}

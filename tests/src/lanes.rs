//! Scenarios side by side: each lane has a rig and plays one scenario after the other.
//!
//! ```text
//!  queue (longest first) ◀── take ── lane 1 ── lab ── play, clean up ─▶ Score
//!                        ◀── take ── lane 2 ── lab ── …
//!  when all lanes are done, their rigs down but the first one's:  measured ones, then what failed, once more
//! ```
//!
//! Services on a machine that others use are late now and then, and a scenario has deadlines. One that failed is played
//! once more, alone, on the first lane's cleaned-up rig; if it passes it is told as flaky, with what it said the first
//! time. When many fail, that is no coincidence, and none is played again.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result, anyhow};

use crate::NotRun;
use crate::lab::Lab;
use crate::reveille::Reveille;
use crate::runner::{Scenario, Stage};
use crate::score::{Failed, Played, Score, say};

/// More failures than this, a tenth of all scenarios, are no coincidence. One slow minute of a machine makes each lane's
/// scenario fail, and those after it.
const SECOND_RUNS_MAX: usize = 6;

/// What is to be played, and what failed at its first run.
struct Queue<'a> {
    waiting: Mutex<Vec<&'a Scenario>>,
    failed: Mutex<Vec<(&'a Scenario, Failed)>>,
}

impl<'a> Queue<'a> {
    fn of(chosen: &[&'a Scenario]) -> Self {
        let mut waiting: Vec<&Scenario> = chosen.to_vec();
        waiting.sort_by_key(|scenario| std::cmp::Reverse(scenario.usually_s));
        Self { waiting: Mutex::new(waiting), failed: Mutex::default() }
    }

    /// The next one for a lane: what only the first can play comes first there.
    fn take(&self, lane: usize) -> Option<&'a Scenario> {
        let pinned = (lane == 1).then(|| self.take_of(Stage::FirstLane)).flatten();
        pinned.or_else(|| self.take_of(Stage::AnyLane))
    }

    fn take_of(&self, stage: Stage) -> Option<&'a Scenario> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let place = waiting.iter().position(|scenario| scenario.stage == stage)?;
        Some(waiting.remove(place))
    }

    fn take_any(&self) -> Option<&'a Scenario> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }
}

/// Plays all, one lane for each of the rigs.
pub fn play(chosen: &[&Scenario], rigs: &[String], work: &Path, score: &Score) {
    keep_panics_quiet();
    let queue = Queue::of(chosen);
    let begun = Instant::now();
    let reveille = match Reveille::build() {
        Ok(reveille) => reveille,
        Err(why) => return no_lane_plays(&queue, &why, score),
    };
    say(&format!("reveille is built ({:.1} s)\n", begun.elapsed().as_secs_f64()));
    let Some((first, others)) = rigs.split_first() else { return };
    let mut lab = thread::scope(|scope| {
        for (lane, rig) in (2..).zip(others) {
            let (queue, reveille) = (&queue, reveille.clone());
            scope.spawn(move || match open(rig, reveille, &work.join(lane.to_string())) {
                Ok(mut lab) => play_lane(lane, &mut lab, queue, score),
                Err(why) => say(&format!("lane {lane} has no rig, others play for it: {why:#}\n")),
            });
        }
        let opened = open(first, reveille.clone(), &work.join("1"));
        opened.map(|mut lab| {
            play_lane(1, &mut lab, &queue, score);
            lab
        })
    });
    match &mut lab {
        Ok(lab) => {
            while let Some(scenario) = queue.take_of(Stage::Alone) {
                play_one(1, scenario, lab, &queue, score);
            }
            play_again(lab, &queue, score);
        }
        Err(why) => {
            no_lane_plays(&queue, why, score);
            judge(&queue, "one run, for want of a rig", score);
        }
    }
    drop(lab);
    // Not empty when a scenario failed: its log and state stay for a look.
    for lane in 1..=rigs.len() {
        let _ = std::fs::remove_dir(work.join(lane.to_string()));
    }
    let _ = std::fs::remove_dir(work);
}

fn open(rig: &str, reveille: Reveille, work: &Path) -> Result<Lab> {
    std::fs::create_dir_all(work).context("cannot make a folder for logs and state")?;
    let begun = Instant::now();
    let lab = Lab::open(rig, reveille, work)?;
    say(&format!("rig {rig} is up ({:.1} s)\n", begun.elapsed().as_secs_f64()));
    Ok(lab)
}

/// Whatever is left cannot be played.
fn no_lane_plays(queue: &Queue<'_>, why: &anyhow::Error, score: &Score) {
    while let Some(scenario) = queue.take_any() {
        if why.is::<NotRun>() {
            score.not_run(scenario, &format!("{why:#}"));
        } else {
            let failed = Failed { why: anyhow!("{why:#}"), aftermath: String::new() };
            score.failed(scenario, &failed, "nothing to play it with");
        }
    }
}

fn play_lane<'a>(lane: usize, lab: &mut Lab, queue: &Queue<'a>, score: &Score) {
    while let Some(scenario) = queue.take(lane) {
        play_one(lane, scenario, lab, queue, score);
    }
}

fn play_one<'a>(lane: usize, scenario: &'a Scenario, lab: &mut Lab, queue: &Queue<'a>, score: &Score) {
    score.begins(scenario);
    let mut played = run(lane, scenario, lab);
    match played.failed.take() {
        None => score.passed(&played),
        Some(failed) if failed.why.is::<NotRun>() => score.not_run(scenario, &format!("{:#}", failed.why)),
        Some(failed) => {
            score.failed_once(&played, &failed);
            queue.failed.lock().unwrap_or_else(PoisonError::into_inner).push((scenario, failed));
        }
    }
}

/// Plays a scenario and cleans up after it.
fn run<'a>(lane: usize, scenario: &'a Scenario, lab: &mut Lab) -> Played<'a> {
    let begun = Instant::now();
    lab.begin(scenario.name);
    let ended = catch_unwind(AssertUnwindSafe(|| scenario.play.run(lab)));
    let ended = ended.unwrap_or_else(|_| Err(anyhow!("panicked: {}", LAST_PANIC.take())));
    let took = begun.elapsed();
    let failed = ended.err().map(|why| Failed { why, aftermath: lab.aftermath() });
    let cleaning = Instant::now();
    lab.reset(failed.is_none());
    Played { scenario, lane, took, cleaned: cleaning.elapsed(), failed }
}

/// Second runs, and what came of them.
fn play_again(lab: &mut Lab, queue: &Queue<'_>, score: &Score) {
    let failed = std::mem::take(&mut *queue.failed.lock().unwrap_or_else(PoisonError::into_inner));
    if failed.len() > SECOND_RUNS_MAX {
        *queue.failed.lock().unwrap_or_else(PoisonError::into_inner) = failed;
        return judge(queue, "one run: too many failed for a coincidence", score);
    }
    for (scenario, first) in failed {
        let mut played = run(1, scenario, lab);
        match played.failed.take() {
            None => score.passed_at_last(&played, &first),
            Some(second) => {
                score.time(&played);
                let (took, why) = (played.took.as_secs_f64(), &second.why);
                score.failed(scenario, &first, &format!("twice, {took:.1} s"));
                say(&format!("    {why:#}\n{}", second.aftermath));
            }
        }
    }
}

/// What failed has failed.
fn judge(queue: &Queue<'_>, runs: &str, score: &Score) {
    for (scenario, first) in queue.failed.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
        score.failed(scenario, &first, runs);
    }
}

thread_local! {
    /// Each lane is a thread.
    static LAST_PANIC: RefCell<String> = const { RefCell::new(String::new()) };
}

/// A panic of a scenario is its failure and is told there.
fn keep_panics_quiet() {
    std::panic::set_hook(Box::new(|panic| LAST_PANIC.set(panic.to_string())));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runner::Play;

    fn scenario(name: &'static str, usually_s: u64, stage: Stage) -> Scenario {
        Scenario { name, play: Play::Written(|_| Ok(())), usually_s, stage }
    }

    #[test]
    fn the_longest_come_first_and_only_the_first_lane_has_the_fleet() {
        let list = [
            scenario("short", 5, Stage::AnyLane),
            scenario("fleet", 20, Stage::FirstLane),
            scenario("calm", 90, Stage::Alone),
            scenario("long", 60, Stage::AnyLane),
            scenario("middle", 30, Stage::AnyLane),
        ];
        let queue = Queue::of(&list.iter().collect::<Vec<_>>());
        let mut names = [2, 1, 1, 2, 2, 1].map(|lane| queue.take(lane).map(|scenario| scenario.name));
        assert_eq!(names, [Some("long"), Some("fleet"), Some("middle"), Some("short"), None, None]);
        names[0] = queue.take_of(Stage::Alone).map(|scenario| scenario.name);
        assert_eq!((names[0], queue.take_any().is_none()), (Some("calm"), true));
    }
}

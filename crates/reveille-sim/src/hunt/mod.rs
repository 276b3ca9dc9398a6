//! The hunt: random courses played one after another, each judged, each failure shrunk until a person can read it.
//!
//! ```text
//!  Quarry (seed, size, faults) ─ scenario_run ─▶ play ─▶ Outcome ─ broke? ─▶ shrink ─▶ smaller Quarry ─▶ tests/seeds/
//! ```
//!
//! A [`Quarry`] is everything that one run depends on, small enough for a text file and a command line. [`play`] runs it:
//! first its faults, with the invariants, harm and the oracle's whistle watched after every step; then a time without
//! faults, in which what can be cured has to be cured ([`liveness`]). Playing the same quarry twice gives the same bytes.
//!
//! It opens no file and starts no thread; the `hunt` binary does.

pub mod liveness;
pub mod seed;
pub mod shrink;

use std::panic::{self, AssertUnwindSafe};

use reveille_core::model::time::{Span, Time};

use crate::chaos::{Draft, Rate, Rates, ScenarioRun, UnknownFault};
use crate::drive::{Counts, Drive, Said};
use crate::trace::Digest;
use crate::world::layout::PoolPlan;

/// One run, before it is played.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quarry {
    /// The seed.
    pub seed: u64,
    /// Machines that the course was drawn for.
    pub machines: u32,
    /// For how long things happen, as drawn.
    pub length: Span,
    /// The mean time between two happenings.
    pub every: Span,
    /// The faults that are switched on; all, when empty.
    pub faults: Vec<String>,
    /// Of the drawn happenings, only these, by number; all, when none are named.
    pub keep: Option<Vec<u32>>,
    /// Machines that the world really has, when fewer than drawn for.
    pub world: Option<u32>,
}

/// What kind of rule was broken.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// An invariant of the engine, by number.
    Invariant(u8),
    /// Something was done to a machine that did not deserve it.
    Harm,
    /// A confident and wrong diagnosis led to an act that can hurt.
    Misled,
    /// The oracle whistled, by this rule of its own.
    Foul(&'static str),
    /// A rule of liveness.
    Liveness(&'static str),
    /// The program ended itself.
    Panicked,
}

impl std::fmt::Display for Rule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Invariant(number) => write!(f, "invariant {number}"),
            Self::Harm => f.write_str("harm"),
            Self::Misled => f.write_str("misled"),
            Self::Foul(rule) => write!(f, "foul: {rule}"),
            Self::Liveness(name) => write!(f, "liveness: {name}"),
            Self::Panicked => f.write_str("panic"),
        }
    }
}

/// A broken rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Breach {
    /// Which.
    pub rule: Rule,
    /// At which step of the engine.
    pub step: u64,
    /// How long after the beginning.
    pub after: Span,
    /// What broke it.
    pub what: String,
    /// The last lines of the run.
    pub story: String,
}

/// How many incidents were named how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Diagnoses {
    /// The real cause.
    pub right: u64,
    /// True, and only a symptom.
    pub symptom: u64,
    /// Said to be unknown.
    pub unknown: u64,
    /// Not so.
    pub wrong: u64,
}

/// How a run went.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The first rule that was broken, if any.
    pub breach: Option<Breach>,
    /// How long the run was, from the beginning to its end.
    pub ran: Span,
    /// What was asked of the outside.
    pub counts: Counts,
    /// Calls that can hurt, as the world took them.
    pub destructive: u64,
    /// How incidents were named.
    pub diagnoses: Diagnoses,
    /// The bytes of the run.
    pub digest: Digest,
}

/// Lines of the story that a breach keeps: the end of it.
const STORY_LINES: usize = 4000;

impl Quarry {
    /// All faults, at this size.
    pub const fn new(seed: u64, machines: u32, length: Span, every: Span) -> Self {
        Self { seed, machines, length, every, faults: Vec::new(), keep: None, world: None }
    }

    /// The number of each happening within the course's length, and when it is.
    pub(crate) fn drawn(&self) -> Vec<(u32, Span)> {
        let Ok(draft) = self.draw() else { return Vec::new() };
        let within = draft.all.iter().filter(|one| one.after <= draft.length);
        within.map(|one| (one.number, one.after)).collect()
    }

    /// Draws the course.
    pub fn scenario_run(&self) -> Result<ScenarioRun, UnknownFault> {
        let draft = self.draw()?;
        let mut scenario_run =
            draft.with(|number| self.keep.as_ref().is_none_or(|keep| keep.contains(&number)));
        if let Some(world) = self.world {
            // Machines are made in order, so those that stay have the ids that they were drawn with.
            let hosting = scenario_run.layout.pools.first().and_then(|plan| plan.hosting);
            scenario_run.layout.pools = vec![PoolPlan { hosting, ..PoolPlan::new("workers", world) }];
        }
        Ok(scenario_run)
    }

    fn draw(&self) -> Result<Draft, UnknownFault> {
        let rates = match self.faults.is_empty() {
            true => Rates::of_seed(self.seed),
            false => Rates::only(self.faults.iter().map(String::as_str))?,
        };
        let rate =
            Rate { machines: self.machines, length: self.length, every: self.every, ..Rate::default() };
        let mut draft = ScenarioRun::drawn(self.seed, rate, &rates);
        draft.layout.news_only = true;
        Ok(draft)
    }
}

/// Plays it, and judges.
pub fn play(quarry: &Quarry) -> Result<Outcome, UnknownFault> {
    let scenario_run = quarry.scenario_run()?;
    let mut drive = scenario_run.stage().judged();
    let start = scenario_run.layout.start;
    let ended = panic::catch_unwind(AssertUnwindSafe(|| hunt_through(&mut drive, scenario_run.length)));
    let breach = ended.unwrap_or_else(|cause| {
        let text = cause.downcast_ref::<String>().cloned();
        let text = text.or_else(|| cause.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        Some((Rule::Panicked, text.unwrap_or_else(|| "without a word".to_owned())))
    });
    let breach = breach.map(|(rule, what)| Breach {
        rule,
        step: drive.counts().steps,
        after: drive.now().since(start),
        what,
        story: drive.log().tail(STORY_LINES),
    });
    Ok(outcome(&drive, start, breach))
}

fn outcome(drive: &Drive, start: Time, breach: Option<Breach>) -> Outcome {
    let mut diagnoses = Diagnoses::default();
    for named in drive.named().values() {
        match named.said {
            Said::Right => diagnoses.right += 1,
            Said::Symptom => diagnoses.symptom += 1,
            Said::Unknown => diagnoses.unknown += 1,
            Said::Wrong => diagnoses.wrong += 1,
        }
    }
    Outcome {
        breach,
        ran: drive.now().since(start),
        counts: drive.counts(),
        destructive: drive.destructive_calls().len() as u64,
        diagnoses,
        digest: drive.digest(),
    }
}

/// The faults, and then the time without.
fn hunt_through(drive: &mut Drive, length: Span) -> Option<(Rule, String)> {
    let end = drive.now() + length;
    while drive.turn_before(end) {
        if let Some(broken) = broken(drive) {
            return Some(broken);
        }
    }
    drive.world.end_faults();
    drive.end_mishaps();
    liveness::wait(drive)
}

/// What is watched after every step.
pub(crate) fn broken(drive: &Drive) -> Option<(Rule, String)> {
    let violation = drive.violations().first().map(|v| (Rule::Invariant(v.invariant), v.what.clone()));
    let harm = || drive.world.harms().first().map(|harm| (Rule::Harm, harm.what.clone()));
    let misled = || drive.misled().first().map(|misled| (Rule::Misled, misled.what.clone()));
    let foul = || drive.fouls().first().map(|foul| (Rule::Foul(foul.rule), foul.what.clone()));
    violation.or_else(harm).or_else(misled).or_else(foul)
}

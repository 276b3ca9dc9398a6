//! Plays one staged world under several policies and counts what became of it.
//!
//! ```text
//!  Subject (a course, a scenario) ─▶ Drive ─ hand_to ─▶ run, five seconds at a time
//!                                                          └─▶ Score: acts judged, places cured, calls, reads
//! ```
//!
//! The counting is the same for every policy, by the world's truth: `Wrong` says what a wrong act is, `places` what a cure is.
//! The engine's invariants are counted for the engine only; a model has none to break.

pub mod report;
pub mod set;

use std::collections::BTreeMap;
use std::fmt;

use reveille_core::model::time::{Span, Time};

use crate::chaos::ScenarioRun;
use crate::drive::Drive;
use crate::policy::Policy;
use crate::policy::places::{LOOK, Places};
use crate::scenario::{Scenario, play_under};
use crate::world::Wrong;

/// Something to be played under every policy.
pub struct Subject {
    /// Its name in reports.
    pub name: String,
    /// What happens in it, in one sentence.
    pub about: String,
    /// How long it is played.
    pub length: Span,
    stage: Stage,
}

enum Stage {
    /// Its world, with everything scheduled and nothing run.
    ScenarioRun(Box<ScenarioRun>),
    /// Its world, and what happens when its time comes.
    Scenario(Box<Scenario>),
}

impl fmt::Debug for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subject")
            .field("name", &self.name)
            .field("length", &self.length)
            .finish_non_exhaustive()
    }
}

/// A destructive act, for telling it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// How long after the beginning.
    pub at: Span,
    /// What was done.
    pub what: String,
    /// Why it was wrong, if it was.
    pub wrong: Option<Wrong>,
}

/// What became of a subject, or of a set of them, under one policy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Score {
    /// Destructive acts that took effect.
    pub acts: u64,
    /// Those that were wrong, by reason.
    pub wrong: BTreeMap<Wrong, u64>,
    /// Places that lacked a working machine at some time, through what happened in the world.
    pub places: u64,
    /// Places that lacked one because a destructive act hit a healthy machine.
    pub broken: u64,
    /// How long each of them did that has one again, shortest first.
    pub cured: Vec<Span>,
    /// Calls that change something, whatever was answered.
    pub calls: u64,
    /// Reads of the cloud and the cluster.
    pub reads: u64,
    /// Of how many subjects all was well at the end.
    pub ended_well: u64,
    /// How many subjects this counts.
    pub subjects: u64,
    /// Invariants that were broken; the engine's own.
    pub violations: u64,
    /// Each destructive act; a sum holds none.
    pub told: Vec<Told>,
}

/// What became of it under each policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comparison {
    /// The subject's name, or the set's.
    pub name: String,
    /// What happens in it.
    pub about: String,
    /// Policies in the order that was asked for.
    pub scores: Vec<(Policy, Score)>,
}

impl Subject {
    /// A course of events, and so long after its end.
    pub fn of_run(name: &str, about: &str, scenario_run: ScenarioRun, after: Span) -> Self {
        let length = scenario_run.length + after;
        let stage = Stage::ScenarioRun(Box::new(scenario_run));
        Self { name: name.to_owned(), about: about.to_owned(), length, stage }
    }

    /// A scenario: what is given and what happens. What it expects of Reveille is not asked of others.
    pub fn of_scenario(scenario: Scenario) -> Self {
        Self {
            name: scenario.number.clone(),
            about: format!("{}.", scenario.title),
            length: scenario.ends,
            stage: Stage::Scenario(Box::new(scenario)),
        }
    }

    /// Plays it under this policy.
    pub fn play(&self, policy: Policy) -> Score {
        let mut places = Places::default();
        let mut score = Score::default();
        match &self.stage {
            Stage::ScenarioRun(scenario_run) => {
                let mut drive = scenario_run.stage();
                drive.hand_to(policy);
                let end = drive.now() + self.length;
                places.look(drive.now(), &drive.world);
                while drive.now() < end {
                    drive.run_for(Span::from_ms(LOOK.ms.min(end.since(drive.now()).ms)));
                    places.look(drive.now(), &drive.world);
                }
                score = Score::of(&drive, scenario_run.layout.start);
            }
            Stage::Scenario(scenario) => play_under(scenario, policy, LOOK, &mut |drive| {
                places.look(drive.now(), &drive.world);
                if drive.now() >= scenario.layout.start + scenario.ends {
                    score = Score::of(drive, scenario.layout.start);
                }
            }),
        }
        Score { places: places.opened(), broken: places.broken(), cured: places.times(), ..score }
    }

    /// Plays it under each of these.
    pub fn compare(&self, policies: &[Policy]) -> Comparison {
        let scores = policies.iter().map(|policy| (*policy, self.play(*policy))).collect();
        Comparison { name: self.name.clone(), about: self.about.clone(), scores }
    }
}

impl Comparison {
    /// The sum of these, under this name. All were asked for the same policies.
    pub fn sum(name: &str, about: &str, of: &[Self]) -> Self {
        let mut scores: Vec<(Policy, Score)> = Vec::new();
        for (policy, score) in of.iter().flat_map(|comparison| &comparison.scores) {
            match scores.iter_mut().find(|(known, _)| known == policy) {
                Some((_, sum)) => sum.add(score),
                None => scores.push((*policy, Score { told: Vec::new(), ..score.clone() })),
            }
        }
        Self { name: name.to_owned(), about: about.to_owned(), scores }
    }

    /// What became of it under this policy.
    pub fn score(&self, policy: Policy) -> Option<&Score> {
        self.scores.iter().find(|(known, _)| *known == policy).map(|(_, score)| score)
    }
}

impl Score {
    /// What a drive that has run tells; places are counted elsewhere.
    fn of(drive: &Drive, start: Time) -> Self {
        let acts = drive.world.acts();
        let mut score = Self {
            acts: acts.len() as u64,
            calls: drive.world.calls().len() as u64,
            reads: drive.reads(),
            ended_well: u64::from(drive.world.all_is_well()),
            subjects: 1,
            violations: drive.violations().len() as u64,
            ..Self::default()
        };
        for act in acts {
            if let Some(wrong) = act.wrong {
                *score.wrong.entry(wrong).or_default() += 1;
            }
            let what = format!("{} ({})", act.call, act.name);
            score.told.push(Told { at: act.at.since(start), what, wrong: act.wrong });
        }
        score
    }

    /// How many acts were wrong.
    pub fn wrongs(&self) -> u64 {
        self.wrong.values().sum()
    }

    /// The time within which so many of a hundred cures were done; none when there was none.
    pub fn cured_within(&self, pct: usize) -> Option<Span> {
        let last = self.cured.len().checked_sub(1)?;
        self.cured.get((self.cured.len() * pct).div_ceil(100).saturating_sub(1).min(last)).copied()
    }

    fn add(&mut self, other: &Self) {
        self.acts += other.acts;
        for (wrong, count) in &other.wrong {
            *self.wrong.entry(*wrong).or_default() += count;
        }
        self.places += other.places;
        self.broken += other.broken;
        self.cured.extend(&other.cured);
        self.cured.sort_unstable();
        self.calls += other.calls;
        self.reads += other.reads;
        self.ended_well += other.ended_well;
        self.subjects += other.subjects;
        self.violations += other.violations;
    }
}

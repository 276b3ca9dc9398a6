//! Plays one staged world under several policies and counts what became of it.
//!
//! ```text
//!  Subject::stage ─▶ Drive ─ hand_to ─▶ run, five seconds at a time ─▶ Score: acts judged, places cured, calls, reads
//! ```
//!
//! The same counting for everybody, by the world's truth: `Wrong` says what a wrong act is, `places` what a cure is. The
//! engine's invariants are counted for the engine only; a model has none to break.

use std::collections::BTreeMap;
use std::fmt;

use reveille_core::model::time::Span;

use super::Policy;
use super::places::{LOOK, Places};
use crate::chaos::Course;
use crate::drive::Drive;
use crate::world::Wrong;

/// Something to be played under every policy.
pub struct Subject {
    /// Its name in reports.
    pub name: String,
    /// What happens in it, in one sentence.
    pub about: String,
    /// How long it is played.
    pub length: Span,
    /// Its world, with everything scheduled and nothing run.
    stage: Box<dyn Fn() -> Drive>,
}

impl fmt::Debug for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subject")
            .field("name", &self.name)
            .field("length", &self.length)
            .finish_non_exhaustive()
    }
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
    /// A subject that this makes, again for every policy.
    pub fn new(
        name: impl Into<String>,
        about: impl Into<String>,
        length: Span,
        stage: impl Fn() -> Drive + 'static,
    ) -> Self {
        Self { name: name.into(), about: about.into(), length, stage: Box::new(stage) }
    }

    /// A course of events, and so long after its end.
    pub fn of_course(name: &str, about: &str, course: Course, after: Span) -> Self {
        Self::new(name, about, course.length + after, move || course.stage())
    }

    /// Plays it under this policy.
    pub fn play(&self, policy: Policy) -> Score {
        let mut drive = (self.stage)();
        drive.hand_to(policy);
        let mut places = Places::default();
        let end = drive.now() + self.length;
        places.look(drive.now(), &drive.world);
        while drive.now() < end {
            drive.run_for(Span::from_ms(LOOK.ms.min(end.since(drive.now()).ms)));
            places.look(drive.now(), &drive.world);
        }
        let mut score = Score {
            acts: drive.world.acts().len() as u64,
            places: places.opened(),
            broken: places.broken(),
            cured: places.times(),
            calls: drive.world.calls().len() as u64,
            reads: drive.reads(),
            ended_well: u64::from(drive.world.all_is_well()),
            subjects: 1,
            violations: drive.violations().len() as u64,
            ..Score::default()
        };
        for wrong in drive.world.acts().iter().filter_map(|act| act.wrong) {
            *score.wrong.entry(wrong).or_default() += 1;
        }
        score
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
                None => scores.push((*policy, score.clone())),
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

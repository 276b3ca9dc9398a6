//! How far a machine came: each of the fourteen stages with what both sides know of it.
//!
//! Times are of the server's clock, when it heard. What the machine's own clock said is kept beside it as text.

use std::collections::BTreeMap;

use reveille_core::model::stage::Stage;
use reveille_core::model::time::Time;
use reveille_wire::agent::frame::{StageStep, Trouble};
use reveille_wire::agent::text::Word;

use super::settings::stage_within;

/// One stage.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Leg {
    /// Heard to have begun.
    pub entered: Option<Time>,
    /// Heard to be over.
    pub left: Option<Time>,
    /// How often it was tried, as the machine counts.
    pub attempts: u32,
    /// Why it is not left, as the machine says; gone when it is left.
    pub agent_says: Option<Trouble>,
    /// Why it is not left, as this server says; gone when it is left.
    pub server_says: Option<Trouble>,
    /// When, on the machine's own clock, at its last report.
    pub stamp: Word,
}

/// The way of a machine.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Trace {
    legs: BTreeMap<Stage, Leg>,
}

impl Leg {
    /// When it should be over; none when it is, or has not begun.
    pub fn deadline(&self, stage: Stage) -> Option<Time> {
        self.entered.filter(|_| self.left.is_none()).map(|entered| entered + stage_within(stage))
    }
}

impl Trace {
    /// The stages of which something is known, in order.
    pub fn legs(&self) -> impl Iterator<Item = (Stage, &Leg)> {
        self.legs.iter().map(|(stage, leg)| (*stage, leg))
    }

    /// A stage.
    pub fn leg(&self, stage: Stage) -> Option<&Leg> {
        self.legs.get(&stage)
    }

    /// The furthest stage that was begun and is not over.
    pub fn at(&self) -> Option<Stage> {
        let open = |leg: &Leg| leg.entered.is_some() && leg.left.is_none();
        self.legs.iter().rev().find(|(_, leg)| open(leg)).map(|(stage, _)| *stage)
    }

    /// The machine said.
    pub(super) fn reported(&mut self, at: Time, report: &Report) {
        let leg = self.legs.entry(report.stage).or_default();
        leg.attempts = report.attempts;
        leg.stamp = report.stamp.clone();
        match report.step {
            StageStep::Entered => {
                *leg = Leg {
                    entered: Some(at),
                    attempts: leg.attempts,
                    stamp: leg.stamp.clone(),
                    ..Leg::default()
                };
                // Whoever is here has what comes after before it again, whatever it had passed.
                self.legs.retain(|stage, _| *stage <= report.stage);
            }
            StageStep::Tried => {
                leg.entered.get_or_insert(at);
                leg.left = None;
                leg.agent_says.clone_from(&report.error);
            }
            StageStep::Left => {
                leg.entered.get_or_insert(at);
                leg.left = Some(at);
                (leg.agent_says, leg.server_says) = (None, None);
            }
        }
    }

    /// This server says why a stage is not left; none: it is no longer in the way.
    pub(super) fn noted(&mut self, stage: Stage, trouble: Option<Trouble>) {
        self.legs.entry(stage).or_default().server_says = trouble;
    }

    /// A stage that this server itself sees to be over.
    pub(super) fn passed(&mut self, at: Time, stage: Stage) {
        let leg = self.legs.entry(stage).or_default();
        leg.entered.get_or_insert(at);
        leg.left = Some(at);
        (leg.agent_says, leg.server_says) = (None, None);
    }

    /// As it was kept.
    pub(super) fn restored(&mut self, stage: Stage, leg: Leg) {
        self.legs.insert(stage, leg);
    }
}

/// What a machine said of a stage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Its number, over all sessions.
    pub seq: u64,
    /// Which stage.
    pub stage: Stage,
    /// What happened with it.
    pub step: StageStep,
    /// How often it was tried.
    pub attempts: u32,
    /// Why it is not left.
    pub error: Option<Trouble>,
    /// When, on its own clock.
    pub stamp: Word,
}

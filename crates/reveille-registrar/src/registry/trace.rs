//! How far a machine came: each of the fourteen stages, with what the machine and the server know about it.
//!
//! Times are of the server's clock, at which it received the report. The time on the machine's own clock is kept beside
//! it as text.

use std::collections::BTreeMap;

use reveille_core::model::stage::Stage;
use reveille_core::model::time::Time;
use reveille_wire::agent::frame::{StageStep, Trouble};
use reveille_wire::agent::text::Word;

use super::settings::stage_within;

/// One stage.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Leg {
    /// When the server heard that the stage was entered.
    pub entered: Option<Time>,
    /// When the server heard that the stage was left.
    pub left: Option<Time>,
    /// The number of attempts, as the machine counts.
    pub attempts: u32,
    /// Why the stage is not left, as the machine says; cleared when the stage is left.
    pub agent_says: Option<Trouble>,
    /// Why the stage is not left, as this server says; cleared when the stage is left.
    pub server_says: Option<Trouble>,
    /// The time on the machine's own clock, at its last report.
    pub stamp: Word,
}

/// The stages of a machine.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Trace {
    legs: BTreeMap<Stage, Leg>,
}

impl Leg {
    /// When the stage should be left; none when it is left, or was not entered.
    pub fn deadline(&self, stage: Stage) -> Option<Time> {
        self.entered.filter(|_| self.left.is_none()).map(|entered| entered + stage_within(stage))
    }
}

impl Trace {
    /// The known stages, in order.
    pub fn legs(&self) -> impl Iterator<Item = (Stage, &Leg)> {
        self.legs.iter().map(|(stage, leg)| (*stage, leg))
    }

    /// A stage.
    pub fn leg(&self, stage: Stage) -> Option<&Leg> {
        self.legs.get(&stage)
    }

    /// The furthest stage that was entered and is not left.
    pub fn at(&self) -> Option<Stage> {
        let open = |leg: &Leg| leg.entered.is_some() && leg.left.is_none();
        self.legs.iter().rev().find(|(_, leg)| open(leg)).map(|(stage, _)| *stage)
    }

    /// Takes in a report of the machine.
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
                // A machine that enters this stage has the later stages before it again, even if it had passed them.
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

    /// Notes why a stage is not left, as this server says; none: this server does not block it any more.
    pub(super) fn noted(&mut self, stage: Stage, trouble: Option<Trouble>) {
        self.legs.entry(stage).or_default().server_says = trouble;
    }

    /// Notes that this server itself sees that the stage has ended.
    pub(super) fn passed(&mut self, at: Time, stage: Stage) {
        let leg = self.legs.entry(stage).or_default();
        leg.entered.get_or_insert(at);
        leg.left = Some(at);
        (leg.agent_says, leg.server_says) = (None, None);
    }

    /// Restores a stage from its record.
    pub(super) fn restored(&mut self, stage: Stage, leg: Leg) {
        self.legs.insert(stage, leg);
    }
}

/// A machine's report about a stage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The report's number, over all sessions.
    pub seq: u64,
    /// Which stage.
    pub stage: Stage,
    /// What happened to the stage.
    pub step: StageStep,
    /// The number of attempts.
    pub attempts: u32,
    /// Why the stage is not left.
    pub error: Option<Trouble>,
    /// The time on the machine's own clock.
    pub stamp: Word,
}

//! A join from its beginning to its end, and the one report about it when it has ended.
//!
//! ```text
//!  Enrolled, or a stage from authenticate to register is entered ─▶ JoinFlow ─▶ reports, notes, silences ─▶ its end ─▶ JoinOver
//! ```
//!
//! The trace says where a machine is; a flow says how one join went: an error in a stage stays in the flow when the
//! stage is left. A machine that lost its Node or its credentials joins again. A machine whose Node is not Ready for a
//! while, or whose agent was restarted, does not. Only records change a flow, so a restart rebuilds the same one. Its
//! end is a record, so the server reports each join once. A flow is bounded: fourteen stages, and the first few
//! silences. `joins` is how the registry ends them.

use std::collections::BTreeMap;

use reveille_core::model::stage::Stage;
use reveille_core::model::time::{Span, Time};
use reveille_wire::agent::frame::{StageStep, Trouble};
use reveille_wire::agent::{Distribution, StageWord};
use serde::{Deserialize, Serialize};

use super::settings::stage_within;
use super::trace::Report;

/// The number of silences that a flow keeps; later ones are only counted.
const SILENCES_MAX: usize = 16;

/// A join that has not ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JoinFlow {
    /// The beginning of the join.
    pub began: Time,
    /// The clock was set by this much since the beginning.
    #[serde(default)]
    pub set_by: Span,
    /// The stages that the machine entered.
    stretches: BTreeMap<StageWord, Stretch>,
    /// The first silences of the machine during the join.
    pub silences: Vec<Silence>,
    /// The number of all silences.
    pub silences_count: u32,
}

/// A stage of a join.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stretch {
    /// The first time at which the machine entered the stage.
    pub entered: Time,
    /// The last time at which the machine entered the stage.
    pub entered_last: Time,
    /// The last time at which the machine left the stage; none while it is in it.
    pub left: Option<Time>,
    /// How often the machine entered the stage.
    pub entries: u32,
    /// The highest number of attempts that the machine reported.
    pub attempts: u32,
    /// The last error that the machine reported.
    pub agent_said: Option<Said>,
    /// The last error that this server reported.
    pub server_said: Option<Said>,
}

/// An error, and when the server received or reported it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Said {
    /// The time.
    pub at: Time,
    /// The error.
    pub trouble: Trouble,
}

/// A time without a message from the machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Silence {
    /// The last message before the silence.
    pub since: Time,
    /// The first message after the silence.
    pub until: Option<Time>,
    /// The machine's stage.
    pub stage: Option<StageWord>,
}

/// The end of a join.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum JoinEnd {
    /// The Node is Ready and has stayed so.
    Held,
    /// The agent gave up; an operator has to look.
    GaveUp,
    /// The join did not end in time. The server reports nothing about it later.
    TimedOut,
    /// The machine, or its Node, was removed.
    Removed,
    /// The machine was reimaged during the join.
    BegunAgain,
}

/// A join that has ended, with facts about its machine that [`super::Who`] does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoinOver {
    /// The join.
    pub flow: JoinFlow,
    /// The end of the join.
    pub ended: Time,
    /// How the join ended.
    pub end: JoinEnd,
    /// The machine's pool.
    pub pool: String,
    /// The distribution that the plan names, where there is a plan.
    pub distribution: Option<Distribution>,
}

impl JoinEnd {
    /// The name of the end.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Held => "held",
            Self::GaveUp => "gave-up",
            Self::TimedOut => "timed-out",
            Self::Removed => "removed",
            Self::BegunAgain => "begun-again",
        }
    }
}

impl Stretch {
    /// The time at which the stage should have been left.
    pub fn deadline(&self, stage: Stage) -> Time {
        self.entered_last + stage_within(stage)
    }
}

impl JoinFlow {
    /// The machine was enrolled: this server saw it pass two stages.
    pub(super) fn enrolled(at: Time) -> Self {
        let mut flow = Self::empty(at);
        for stage in [Stage::Trust, Stage::Authenticate] {
            flow.enter(at, stage).left = Some(at);
        }
        flow
    }

    /// The flow that a report begins, where no join is under way.
    pub(super) fn begun_by(at: Time, report: &Report) -> Option<Self> {
        let begins = report.step == StageStep::Entered
            && (Stage::Authenticate..=Stage::Register).contains(&report.stage);
        begins.then(|| Self::empty(at))
    }

    fn empty(at: Time) -> Self {
        Self {
            began: at,
            set_by: Span::default(),
            stretches: BTreeMap::new(),
            silences: Vec::new(),
            silences_count: 0,
        }
    }

    /// The stages that the machine entered, in order.
    pub fn stretches(&self) -> impl Iterator<Item = (Stage, &Stretch)> {
        self.stretches.iter().map(|(stage, stretch)| (stage.0, stretch))
    }

    fn enter(&mut self, at: Time, stage: Stage) -> &mut Stretch {
        for (other, stretch) in &mut self.stretches {
            if other.0 != stage {
                // A machine that is in this stage has left the later ones, even if it never reported that.
                stretch.left.get_or_insert(at);
            }
        }
        let stretch = self.stretches.entry(StageWord(stage)).or_insert(Stretch {
            entered: at,
            entered_last: at,
            left: Some(at),
            entries: 0,
            attempts: 0,
            agent_said: None,
            server_said: None,
        });
        if stretch.left.take().is_some() {
            stretch.entered_last = at;
            stretch.entries = stretch.entries.saturating_add(1);
        }
        stretch
    }

    pub(super) fn reported(&mut self, at: Time, report: &Report) {
        let stretch = self.enter(at, report.stage);
        stretch.attempts = stretch.attempts.max(report.attempts);
        if let Some(trouble) = &report.error {
            stretch.agent_said = Some(Said { at, trouble: trouble.clone() });
        }
        if report.step == StageStep::Left {
            stretch.left = Some(at);
        }
    }

    pub(super) fn noted(&mut self, at: Time, stage: Stage, trouble: &Trouble) {
        let said = Some(Said { at, trouble: trouble.clone() });
        match self.stretches.get_mut(&StageWord(stage)) {
            Some(stretch) => stretch.server_said = said,
            None => {
                // This server reported an error of a stage that the machine has not reported yet: the stage ends when the
                // machine goes on.
                let (entries, attempts, agent_said) = (1, 0, None);
                let stretch = Stretch {
                    entered: at,
                    entered_last: at,
                    left: None,
                    entries,
                    attempts,
                    agent_said,
                    server_said: said,
                };
                self.stretches.insert(StageWord(stage), stretch);
            }
        }
    }

    pub(super) fn fell_silent(&mut self, since: Time) {
        self.silences_count = self.silences_count.saturating_add(1);
        if self.silences.len() < SILENCES_MAX {
            let open = |(_, stretch): &(&StageWord, &Stretch)| stretch.left.is_none();
            let stage = self.stretches.iter().rev().find(open).map(|(stage, _)| *stage);
            self.silences.push(Silence { since, until: None, stage });
        }
    }

    pub(super) fn heard_again(&mut self, at: Time) {
        if let Some(silence) = self.silences.last_mut() {
            silence.until.get_or_insert(at);
        }
    }

    pub(super) fn is_silent(&self) -> bool {
        self.silences.last().is_some_and(|silence| silence.until.is_none())
    }
}

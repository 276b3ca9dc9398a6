//! A join from its beginning to its end: what is told of it once, when it is over.
//!
//! ```text
//!  Enrolled, or a stage from authenticate to register is entered ─▶ Course ─▶ reports, notes, silences ─▶ its end ─▶ JoinOver
//! ```
//!
//! The trace says where a machine is; a course says what one join was like: what went wrong in a stage stays in it when the
//! stage is left. A machine that lost its node or its credentials joins again; one whose node is not Ready for a while, or whose
//! agent was started again, does not. It changes by records alone, so that a start has the same course, and its end is a
//! record, so that no join is told of twice. It is bounded: fourteen stages, and the first of its silences.

use std::collections::BTreeMap;

use reveille_core::model::stage::Stage;
use reveille_core::model::time::{Span, Time};
use reveille_wire::agent::frame::{StageStep, Trouble};
use reveille_wire::agent::{Distribution, StageWord};
use serde::{Deserialize, Serialize};

use super::ids::MachineId;
use super::machine::Machine;
use super::record::Record;
use super::settings::stage_within;
use super::trace::Report;
use super::{Registry, Turn, What};

/// Silences that are kept of one join; the others are counted.
const SILENCES_MAX: usize = 16;
/// The code by which an agent says that it will not try again by itself.
const GAVE_UP: &str = "GAVE_UP";

/// A join that is not over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Course {
    /// When it began.
    pub began: Time,
    /// By so much the clock was set since.
    #[serde(default)]
    pub set_by: Span,
    /// The stages that were entered.
    stretches: BTreeMap<StageWord, Stretch>,
    /// The first times at which nothing was heard of it.
    pub silences: Vec<Silence>,
    /// How often that was.
    pub silences_count: u32,
}

/// A stage of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stretch {
    /// When it was entered first.
    pub entered: Time,
    /// When it was entered last.
    pub entered_last: Time,
    /// When it was left last; none while it is not.
    pub left: Option<Time>,
    /// How often it was entered.
    pub entries: u32,
    /// How often it was tried, the most that the machine said.
    pub attempts: u32,
    /// The last that the machine said went wrong.
    pub agent_said: Option<Said>,
    /// The last that this server said went wrong.
    pub server_said: Option<Said>,
}

/// What went wrong, and when it was heard or said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Said {
    /// When.
    pub at: Time,
    /// What.
    pub trouble: Trouble,
}

/// A time without a word.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Silence {
    /// When it was heard last before.
    pub since: Time,
    /// When it was heard again.
    pub until: Option<Time>,
    /// In which stage.
    pub stage: Option<StageWord>,
}

/// How a join ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum JoinEnd {
    /// Its node is there and has stayed.
    Held,
    /// The agent gave up; a person has to look.
    GaveUp,
    /// It was not over in time. What becomes of it later is told no more.
    TimedOut,
    /// The machine, or its node, is to stay away.
    Removed,
    /// The machine was made anew meanwhile.
    BegunAnew,
}

/// A join that is over, with what is known of its machine beside [`super::Who`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoinOver {
    /// It.
    pub course: Course,
    /// When it was over.
    pub ended: Time,
    /// How.
    pub end: JoinEnd,
    /// Of which pool.
    pub pool: String,
    /// With what it was to join, where a plan says so.
    pub distribution: Option<Distribution>,
}

impl JoinEnd {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Held => "held",
            Self::GaveUp => "gave-up",
            Self::TimedOut => "timed-out",
            Self::Removed => "removed",
            Self::BegunAnew => "begun-anew",
        }
    }
}

impl Stretch {
    /// When it was to be over.
    pub fn deadline(&self, stage: Stage) -> Time {
        self.entered_last + stage_within(stage)
    }
}

impl Course {
    /// A machine was enrolled: this server saw it pass two stages.
    pub(super) fn enrolled(at: Time) -> Self {
        let mut course = Self::empty(at);
        for stage in [Stage::Trust, Stage::Authenticate] {
            course.enter(at, stage).left = Some(at);
        }
        course
    }

    /// The course that a report begins, where none is under way.
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

    /// The stages that were entered, in order.
    pub fn stretches(&self) -> impl Iterator<Item = (Stage, &Stretch)> {
        self.stretches.iter().map(|(stage, stretch)| (stage.0, stretch))
    }

    fn enter(&mut self, at: Time, stage: Stage) -> &mut Stretch {
        for (other, stretch) in &mut self.stretches {
            if other.0 != stage {
                // Who is here is not there any more, also where nobody said that it left.
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
                // Said by this server of a stage of which the machine has not spoken yet: it is over when that goes on.
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

impl Registry {
    /// The join of this machine is over, if one is under way: remembered, and told once.
    pub(super) fn end_join(&mut self, turn: &mut Turn, machine: &MachineId, end: JoinEnd) {
        let Some(known) = self.book.machine(machine) else { return };
        let Some(course) = known.course.clone() else { return };
        let distribution = self.plans.of(known).map(|template| template.distribution);
        let (known, pool) = (known.clone(), known.pool.to_string());
        self.record(turn, Record::JoinOver { at: turn.now, machine: machine.clone(), end });
        let over = JoinOver { course: *course, ended: turn.now, end, pool, distribution };
        turn.tell(&known, What::JoinOver(Box::new(over)));
    }

    /// A report after which the agent does no more by itself.
    pub(super) fn ends_by(report: &Report) -> Option<JoinEnd> {
        report.error.as_ref().filter(|error| error.code.as_str() == GAVE_UP).map(|_| JoinEnd::GaveUp)
    }

    /// Joins that were not over in time.
    pub(super) fn end_late_joins(&mut self, turn: &mut Turn) {
        let within: Span = self.settings.join_within;
        let late = |course: &Course| turn.now.since(course.began + course.set_by) >= within;
        let machines = self.book.machines();
        let late: Vec<MachineId> = machines
            .filter(|known| known.course.as_deref().is_some_and(late))
            .map(|known| known.id.clone())
            .collect();
        for machine in late {
            self.end_join(turn, &machine, JoinEnd::TimedOut);
        }
    }

    /// The clock was set: a join has as much time as it had.
    pub(super) fn joins_clock_set(&mut self, turn: &mut Turn, by: Span) {
        let set = |known: &Machine| {
            let mut course = known.course.clone()?;
            course.set_by = course.set_by + by;
            Some(Record::Joining { machine: known.id.clone(), course })
        };
        let joining: Vec<Record> = self.book.machines().filter_map(set).collect();
        joining.into_iter().for_each(|joining| self.record(turn, joining));
    }

    /// Nothing was heard of a machine that joins.
    pub(super) fn note_silence(&mut self, turn: &mut Turn, machine: &MachineId, since: Time) {
        let joins = self.book.machine(machine).and_then(|known| known.course.as_deref());
        if joins.is_some_and(|course| !course.is_silent()) {
            let (at, machine) = (turn.now, machine.clone());
            self.record(turn, Record::FellSilent { at, machine, since });
        }
    }

    /// And now something was.
    pub(super) fn note_heard(&mut self, turn: &mut Turn, machine: &MachineId) {
        let joins = self.book.machine(machine).and_then(|known| known.course.as_deref());
        if joins.is_some_and(Course::is_silent) {
            let (at, machine) = (turn.now, machine.clone());
            self.record(turn, Record::HeardAgain { at, machine });
        }
    }
}

//! What a repair of a record remembers: the journal, which is durable, and what its looks agreed on, which is not.
//!
//! The two escalations, `evict` and `mend`, read both and answer with what comes [`Next`]; `escalation` writes them.

use std::collections::BTreeSet;

use reveille_core::model::time::Time;

use super::observation::Observation;
use super::safeguards::node_ips;
use super::{Act, ActKind, Closing, Draft, Line, Order, Outcome, Pace};
use crate::model::{RecordName, Role};

/// What comes next.
pub(super) enum Next {
    Act(Act),
    Wait(String),
    Stop(String),
    Close(Closing),
}

/// What looks agreed on, and since when, by our clock.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub(super) struct Seen {
    pub(super) agreed_since: Option<Time>,
    pub(super) memberless_since: Option<Time>,
    pub(super) gone_since: Option<Time>,
    pub(super) clear_since: Option<Time>,
}

impl Seen {
    /// Whether two looks far enough apart found that nothing stands against it.
    pub(super) fn agrees(&mut self, now: Time, pace: Pace) -> bool {
        now.since(*self.agreed_since.get_or_insert(now)) >= pace.apart
    }
}

/// What is durable.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub(super) struct Journal {
    lines: Vec<Line>,
    /// Intents of processes before this one: an operator who starts the repair again grants as many tries, and as much time,
    /// again.
    earlier: usize,
}

impl Journal {
    pub(super) const fn with(lines: Vec<Line>) -> Self {
        Self { lines, earlier: 0 }
    }

    /// All of it was written by processes before this one.
    pub(super) fn of_earlier(lines: Vec<Line>) -> Self {
        let journal = Self::with(lines);
        Self { earlier: journal.intents().count(), ..journal }
    }

    pub(super) const fn len(&self) -> usize {
        self.lines.len()
    }

    pub(super) fn push(&mut self, line: Line) {
        self.lines.push(line);
    }

    /// What was meant, in order, and how it ended where that was noted.
    pub(super) fn steps(&self) -> impl Iterator<Item = (Time, &Act, Option<&Outcome>)> {
        self.intents().map(move |(number, at, act)| (at, act, self.outcome(number)))
    }

    /// Whether its Node had this role when it was begun.
    pub(super) fn had_role(&self, role: Role) -> bool {
        self.lines.iter().any(|line| matches!(line, Line::Begun { roles, .. } if roles.contains(&role)))
    }

    pub(super) fn intents(&self) -> impl DoubleEndedIterator<Item = (u32, Time, &Act)> {
        self.lines.iter().filter_map(|line| match line {
            Line::Intent { number, at_ms, what } => Some((*number, Time::from_ms(*at_ms), what)),
            _ => None,
        })
    }

    pub(super) fn outcome(&self, of: u32) -> Option<&Outcome> {
        self.lines.iter().find_map(|line| match line {
            Line::Ended { number, outcome } if *number == of => Some(outcome),
            _ => None,
        })
    }

    pub(super) fn of(&self, kind: ActKind) -> impl DoubleEndedIterator<Item = (u32, Time, &Act)> {
        self.intents().filter(move |(_, _, act)| act.kind() == kind)
    }

    /// Whether one of this kind happened, or may have.
    pub(super) fn may_have_begun(&self, kind: ActKind) -> bool {
        let never = |outcome: &Outcome| {
            matches!(outcome, Outcome::Moved | Outcome::Refused { .. } | Outcome::Failed { .. })
        };
        self.of(kind).any(|(number, _, _)| !self.outcome(number).is_some_and(never))
    }

    /// Whether one of this kind was said to be taken.
    pub(super) fn was_taken(&self, kind: ActKind) -> bool {
        self.of(kind).any(|(number, _, _)| {
            matches!(self.outcome(number), Some(Outcome::Accepted | Outcome::AlreadySo))
        })
    }

    /// The same, for what is done once.
    pub(super) fn has_done(&self, kind: ActKind) -> bool {
        self.was_taken(kind)
    }

    /// When this process meant the first of this kind.
    pub(super) fn first(&self, kind: ActKind) -> Option<Time> {
        self.own().find(|(_, _, act)| act.kind() == kind).map(|(_, at, _)| at)
    }

    /// What this process meant.
    pub(super) fn own(&self) -> impl Iterator<Item = (u32, Time, &Act)> {
        self.intents().skip(self.earlier)
    }

    /// When the last of this kind was meant.
    pub(super) fn last(&self, kind: ActKind) -> Option<Time> {
        self.of(kind).next_back().map(|(_, at, _)| at)
    }

    /// The uid of the Node that it was begun for.
    pub(super) fn node_uid(&self) -> Option<&str> {
        self.lines.iter().find_map(|line| match line {
            Line::Begun { node_uid, .. } => Some(node_uid.as_str()),
            _ => None,
        })
    }

    /// The addresses of the machine: those noted at the beginning, else those of now.
    pub(super) fn ips(&self, order: &Order, observation: &Observation) -> BTreeSet<String> {
        let noted = self.lines.iter().find_map(|line| match line {
            Line::Begun { ips, .. } => Some(ips.clone()),
            _ => None,
        });
        noted.unwrap_or_else(|| node_ips(observation.node(order)))
    }

    /// What was written last, or may have been.
    pub(super) fn written(&self) -> Option<(&RecordName, &Draft)> {
        self.of(ActKind::Write).next_back().and_then(|(_, _, act)| match act {
            Act::Write { record, draft, .. } => Some((record, draft)),
            _ => None,
        })
    }

    pub(super) fn closed(&self) -> Option<&Closing> {
        self.lines.iter().find_map(|line| match line {
            Line::Closed { how } => Some(how),
            _ => None,
        })
    }
}

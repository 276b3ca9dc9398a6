//! Agents of known machines, counted by when they were heard: how many reported since a given time, and lost the API
//! server.
//!
//! ```text
//!  heard at   1  2  5 │ 8  9  9        the mark moves on with time: reports that it passes are taken off the count behind it
//!                   mark ─ later ─▶
//! ```
//!
//! In an outage every heartbeat asks how many agents are fresh. A walk over all agents for each heartbeat would cost the
//! square of the fleet. Here the mark passes each report once, and a question walks only the reports between the mark and
//! the time that it asks about. The answer is right wherever the mark is, and cheap where the mark moves with the clock.

use std::collections::BTreeMap;

use crate::model::time::Time;

use super::AgentSeen;

/// So many agents, and so many of them that may speak of an outage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Count {
    pub(super) agents: usize,
    pub(super) lost: usize,
}

impl Count {
    const NONE: Self = Self { agents: 0, lost: 0 };

    const fn add(&mut self, other: Self) {
        self.agents += other.agents;
        self.lost += other.lost;
    }

    const fn take(&mut self, other: Self) {
        self.agents -= other.agents;
        self.lost -= other.lost;
    }

    /// Counted one by one.
    pub(super) fn of_all<'a>(agents: impl Iterator<Item = &'a AgentSeen>) -> Self {
        let mut count = Self::NONE;
        agents.filter_map(Self::of).for_each(|one| count.add(one));
        count
    }

    /// The count of one agent; none while its machine is unknown.
    fn of(seen: &AgentSeen) -> Option<Self> {
        let lost = usize::from(seen.report.api.may_be_everywhere());
        seen.link.as_ref().map(|_| Self { agents: 1, lost })
    }
}

/// All of them.
#[derive(Clone, Debug)]
pub(super) struct HeardTimes {
    at: BTreeMap<Time, Count>,
    all: Count,
    mark: Time,
    /// Those that were heard at the mark or later.
    later: Count,
}

impl HeardTimes {
    pub(super) const fn new() -> Self {
        Self { at: BTreeMap::new(), all: Count::NONE, mark: Time::from_ms(i64::MIN), later: Count::NONE }
    }

    /// Counts this agent from here on. The code that changes an agent takes it out of the count before.
    pub(super) fn add(&mut self, seen: &AgentSeen) {
        let Some(one) = Count::of(seen) else { return };
        self.at.entry(seen.heard).or_default().add(one);
        self.all.add(one);
        if seen.heard >= self.mark {
            self.later.add(one);
        }
    }

    /// It counts no more, or differently: as it was when it was added.
    pub(super) fn take(&mut self, seen: &AgentSeen) {
        let Some(one) = Count::of(seen) else { return };
        let Some(then) = self.at.get_mut(&seen.heard) else { return };
        then.take(one);
        if then.agents == 0 {
            self.at.remove(&seen.heard);
        }
        self.all.take(one);
        if seen.heard >= self.mark {
            self.later.take(one);
        }
    }

    /// Whenever they were heard.
    pub(super) const fn all(&self) -> Count {
        self.all
    }

    /// Those that were heard then or later.
    pub(super) fn since(&self, from: Time) -> Count {
        let mut count = self.later;
        if from < self.mark {
            self.between(from, self.mark).for_each(|then| count.add(then));
        } else {
            self.between(self.mark, from).for_each(|then| count.take(then));
        }
        count
    }

    /// From here on questions are about this moment, or one soon after.
    pub(super) fn move_mark(&mut self, to: Time) {
        self.later = self.since(to);
        self.mark = to;
    }

    /// What a question about this moment walks over.
    #[cfg(test)]
    pub(super) fn walked(&self, from: Time) -> usize {
        self.between(self.mark.min(from), self.mark.max(from)).count()
    }

    fn between(&self, from: Time, to: Time) -> impl Iterator<Item = Count> {
        self.at.range(from..to).map(|(_, then)| *then)
    }
}

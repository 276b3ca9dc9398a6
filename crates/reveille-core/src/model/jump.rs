//! What becomes of a stored time when the clock and what was watched part.
//!
//! ```text
//!             the clock went back      a gap: a sleep, a jump ahead, or no process ran
//!  stands     moves along              stays: a fact for people, or compared with the clock of a service
//!  counts     moves along              moves along: only what was watched counts towards what is counted from it
//!  ends       moves along              moves along where it was still ahead: it has as long to go as before
//!  restarts   is no later than now     begins from zero: what holds has to be seen to hold
//! ```
//!
//! Each owner of times has one function `over` that takes all of its fields apart, without `..`: a new time does not compile
//! before it is decided what becomes of it. A restart is a gap since the last process was alive. Where that lies ahead, the clock
//! went back by so much at least: it counts as if no time had passed between the two processes.

use super::attempt::{Attempt, Ending, Readback};
use super::incident::{Asked, Incident};
use super::time::{Span, Time};
use super::trace::{Passage, Trace};

/// A break in the controller's own time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Jump {
    /// The clock went back by so much: within one process that is known to the millisecond.
    Back {
        /// By how much.
        by: Span,
    },
    /// Nothing was watched between the two. The controller cannot tell a sleep from a clock that was set ahead.
    Gap {
        /// The last moment before it.
        before: Time,
        /// The first moment after it.
        now: Time,
    },
}

impl Jump {
    /// Our clock showed `before`, and shows `now` directly afterwards.
    pub fn between(before: Time, now: Time) -> Self {
        if now < before { Self::Back { by: before.since(now) } } else { Self::Gap { before, now } }
    }

    /// As far from now as it was from the moment before.
    pub fn along(self, at: Time) -> Time {
        match self {
            Self::Back { by } => at - by,
            Self::Gap { before, now } => at + now.since(before),
        }
    }

    /// A fact, for people or to be compared with the clock of a service.
    pub fn stands<'a>(self, times: impl IntoIterator<Item = &'a mut Time>) {
        self.move_those(times, |at, jump| matches!(jump, Self::Back { .. }).then(|| jump.along(at)));
    }

    /// Something is counted from then, such as an hour within which a late call is expected.
    pub fn counts<'a>(self, times: impl IntoIterator<Item = &'a mut Time>) {
        let was = |at: Time, jump: Self| !matches!(jump, Self::Gap { before, .. } if before < at);
        self.move_those(times, |at, jump| was(at, jump).then(|| jump.along(at)));
    }

    /// A deadline, or the end of a hold.
    pub fn ends<'a>(self, times: impl IntoIterator<Item = &'a mut Time>) {
        let is_ahead = |at: Time, jump: Self| !matches!(jump, Self::Gap { before, .. } if at <= before);
        self.move_those(times, |at, jump| is_ahead(at, jump).then(|| jump.along(at)));
    }

    /// Since when something holds without a break.
    pub fn restarts<'a>(self, times: impl IntoIterator<Item = &'a mut Time>) {
        self.move_those(times, |_, jump| match jump {
            Self::Back { .. } => None,
            Self::Gap { now, .. } => Some(now),
        });
    }

    fn move_those<'a>(
        self,
        times: impl IntoIterator<Item = &'a mut Time>,
        moved: impl Fn(Time, Self) -> Option<Time>,
    ) {
        for at in times {
            *at = moved(*at, self).unwrap_or(*at);
        }
    }
}

impl Incident {
    /// Its times go over a jump.
    pub fn over(&mut self, jump: Jump) {
        let Self {
            first_seen,
            counted_from,
            well_since,
            attempts,
            not_before,
            asked,
            kept_until,
            // Evidence says when it was read, for people.
            findings: _,
            id: _,
            key: _,
            pool: _,
            label: _,
            repair_step: _,
            tries: _,
            given_up: _,
        } = self;
        // For people; and a machine that is away is no nearer to being well after a gap, so that it counts as late in a freeze.
        jump.stands([first_seen]);
        // `State::keep_time` begins the timers from zero.
        jump.stands([counted_from]);
        jump.restarts(well_since);
        attempts.iter_mut().for_each(|attempt| attempt.over(jump));
        jump.ends(not_before);
        jump.ends(kept_until);
        // Against the attempts and the log of the cloud, as these.
        jump.stands(asked.as_mut().map(|Asked { at, value: _ }| at));
    }
}

impl Trace {
    /// Its times go over a jump.
    pub fn over(&mut self, jump: Jump) {
        for passage in self.seen.iter_mut().chain(&mut self.said) {
            let Passage { entered, left, stage: _, attempts: _, error: _ } = passage;
            // For people.
            jump.stands([entered]);
            jump.stands(left);
        }
    }
}

impl Attempt {
    /// Its times are compared with the cloud's log of actions. After a jump ahead they seem earlier by that log than they were,
    /// and what others did counts as done after them, which holds. Moved along after a sleep they would seem later than they
    /// were, and the reboot of a person that came after ours would count as done before it.
    fn over(&mut self, jump: Jump) {
        let Self { at, ending, readback, intent: _, call: _, seen: _, logged_as: _ } = self;
        jump.stands([at]);
        jump.stands(ending.as_mut().map(|ending| match ending {
            Ending::Dropped { at, why: _ } | Ending::Answered { at, outcome: _ } => at,
        }));
        jump.stands(readback.as_mut().map(|Readback { at, held: _, text: _ }| at));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_time_goes_over_each_jump_as_the_table_says() {
        let at = |min: i64| Time::from_ms(min * 60_000);
        let gap = Jump::Gap { before: at(10), now: at(70) };
        let back = Jump::Back { by: Span::from_min(5) };
        let kinds: [(fn(Jump, [&mut Time; 1]), _); 4] = [
            (|jump, time| jump.stands(time), [(9, 4), (20, 15), (9, 9), (20, 20)]),
            (|jump, time| jump.counts(time), [(9, 4), (20, 15), (9, 69), (20, 20)]),
            (|jump, time| jump.ends(time), [(9, 4), (20, 15), (9, 9), (20, 80)]),
            (|jump, time| jump.restarts(time), [(9, 9), (20, 20), (9, 70), (20, 70)]),
        ];
        for (kind, (moved, cases)) in kinds.into_iter().enumerate() {
            for ((before, after), jump) in cases.into_iter().zip([back, back, gap, gap]) {
                let mut time = at(before);
                moved(jump, [&mut time]);
                assert_eq!(time, at(after), "kind {kind}, {jump:?}");
            }
        }
    }
}

//! Timers: when the engine wakes by itself, and for what.
//!
//! ```text
//!  set(at, why) ─┐                        ┌─▶ due(now): each reason once, the earliest first
//!  clear(why) ───┴▶ one time per reason ──┤
//!  the clock jumps ─▶ move_those ─────────┘─▶ announce: the earliest, where it changed ─▶ Effect::WakeAt
//! ```
//!
//! Each reason has one time at most: `by_time` and `by_reason` hold the same pairs. What is done about a reason, `State` says.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::model::access::UserRef;
use crate::model::id::{CloudName, IntentId};
use crate::model::incident::{IncidentKey, MachineKey};
use crate::model::time::Time;

/// Why to wake.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Wake {
    Machine(MachineKey),
    Case(IncidentKey),
    Operation(IntentId),
    Access(CloudName, Arc<UserRef>),
    Ledger,
    Newcomers,
    /// Room in the budgets comes with time.
    Room,
}

/// Reasons to wake, with their times.
#[derive(Clone, Debug, Default)]
pub(super) struct Timers {
    by_time: BTreeSet<(Time, Wake)>,
    by_reason: BTreeMap<Wake, Time>,
    /// The time that the driver was told last.
    announced: Option<Time>,
}

impl Timers {
    /// From now on this reason has this time, and no earlier or later one.
    pub(super) fn set(&mut self, at: Time, why: Wake) {
        if let Some(old) = self.by_reason.insert(why.clone(), at) {
            if old == at {
                return;
            }
            self.by_time.remove(&(old, why.clone()));
        }
        self.by_time.insert((at, why));
    }

    pub(super) fn clear(&mut self, why: &Wake) {
        if let Some(old) = self.by_reason.remove(why) {
            self.by_time.remove(&(old, why.clone()));
        }
    }

    pub(super) fn has(&self, why: &Wake) -> bool {
        self.by_reason.contains_key(why)
    }

    /// Takes out the earliest reason whose time has come.
    pub(super) fn due(&mut self, now: Time) -> Option<Wake> {
        self.by_time.first().filter(|(at, _)| *at <= now)?;
        let (_, why) = self.by_time.pop_first()?;
        self.by_reason.remove(&why);
        Some(why)
    }

    /// The earliest time, where the driver was told another one last.
    pub(super) fn announce(&mut self) -> Option<Time> {
        let next = self.by_time.first().map(|(at, _)| *at);
        if next == self.announced {
            return None;
        }
        self.announced = next;
        next
    }

    /// Gives these reasons other times.
    pub(super) fn move_those(&mut self, is_moved: impl Fn(&Wake, Time) -> bool, moved: impl Fn(&mut Time)) {
        let those = self.by_reason.iter().filter(|(why, at)| is_moved(why, **at));
        let those: Vec<(Wake, Time)> = those.map(|(why, at)| (why.clone(), *at)).collect();
        for (why, mut at) in those {
            moved(&mut at);
            self.set(at, why);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(s: i64) -> Time {
        Time::from_ms(s * 1000)
    }

    #[test]
    fn reason_that_is_set_again_rings_once_at_its_last_time() {
        let mut timers = Timers::default();
        timers.set(at(10), Wake::Room);
        timers.set(at(5), Wake::Newcomers);
        timers.set(at(20), Wake::Room);
        timers.set(at(7), Wake::Ledger);
        timers.clear(&Wake::Ledger);
        assert!(timers.has(&Wake::Room) && !timers.has(&Wake::Ledger));
        assert_eq!(timers.due(at(4)), None);
        assert_eq!([timers.due(at(10)), timers.due(at(10))], [Some(Wake::Newcomers), None]);
        assert_eq!([timers.due(at(20)), timers.due(at(20))], [Some(Wake::Room), None]);
    }

    #[test]
    fn earliest_time_is_announced_when_it_changes() {
        let mut timers = Timers::default();
        assert_eq!(timers.announce(), None);
        timers.set(at(10), Wake::Room);
        assert_eq!([timers.announce(), timers.announce()], [Some(at(10)), None]);
        timers.clear(&Wake::Room);
        assert_eq!(timers.announce(), None);
        timers.set(at(10), Wake::Room);
        assert_eq!(timers.announce(), Some(at(10)), "it was taken back meanwhile");
    }

    #[test]
    fn reasons_that_are_moved_leave_nothing_at_their_old_times() {
        let mut timers = Timers::default();
        timers.set(at(10), Wake::Room);
        timers.set(at(30), Wake::Ledger);
        timers.move_those(|_, time| time > at(20), |time| *time = at(15));
        assert_eq!(timers.due(at(15)), Some(Wake::Room));
        assert_eq!(timers.due(at(15)), Some(Wake::Ledger));
        assert_eq!([timers.due(at(99)), timers.announce().map(|_| Wake::Room)], [None, None]);
    }
}

//! When the loop must look again: at the time that the engine asked for, and every ten seconds in any case.
//!
//! The engine says a time once and again only when it changes. A tick that comes earlier, because ten seconds are over, must
//! not make it forgotten; once it has passed, the engine has had its tick and says the next one.

use std::time::Duration;

use reveille_core::model::time::{Span, Time};

use crate::adapters::poller::duration;

/// The engine wants to be asked at least this often.
const TICK_MAX: Duration = Duration::from_secs(10);

/// The next time to look.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Alarm {
    at: Option<Time>,
}

impl Alarm {
    /// The engine wants a tick then. The newest wish counts.
    pub(super) const fn set(&mut self, at: Time) {
        self.at = Some(at);
    }

    /// How long nothing need happen.
    pub(super) fn nap(self, now: Time) -> Duration {
        // One millisecond more, so that the time is over when we look.
        self.at.map_or(TICK_MAX, |at| duration(at.since(now) + Span::from_ms(1)).min(TICK_MAX))
    }

    /// A tick is sent now.
    pub(super) fn tick(&mut self, now: Time) {
        self.at = self.at.filter(|at| *at > now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wish_outlives_earlier_ticks_and_ends_with_its_own() {
        let at = |s: i64| Time::from_ms(s * 1000);
        let mut alarm = Alarm::default();
        assert_eq!(alarm.nap(at(0)), Duration::from_secs(10));
        alarm.set(at(25));
        assert_eq!(alarm.nap(at(0)), Duration::from_secs(10));
        alarm.tick(at(10));
        assert_eq!(alarm.nap(at(20)), Duration::from_millis(5_001));
        alarm.tick(at(25));
        assert_eq!(alarm.nap(at(25)), Duration::from_secs(10));
        alarm.set(at(3));
        assert_eq!(alarm.nap(at(26)), Duration::from_millis(1), "a wish that has passed is due now");
    }
}

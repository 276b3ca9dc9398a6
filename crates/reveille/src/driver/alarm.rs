//! Decides when the loop ticks again: at the time that the engine asked for, and at least every ten seconds.
//!
//! The engine asks for a time once, and again only when it changes. An earlier tick, sent because ten seconds are over,
//! must not drop that time. Once the time has passed, the engine has had its tick and asks for the next one.

use std::time::Duration;

use reveille_core::model::time::{Span, Time};

/// The engine needs a tick at least this often.
const TICK_MAX: Duration = Duration::from_secs(10);

/// The time of the next tick.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Alarm {
    at: Option<Time>,
}

impl Alarm {
    /// The engine wants a tick at this time. The newest request counts.
    pub(super) const fn set(&mut self, at: Time) {
        self.at = Some(at);
    }

    /// How long the loop may sleep.
    pub(super) fn nap(self, now: Time) -> Duration {
        // One millisecond is added, so that the time is over at the tick.
        self.at.map_or(TICK_MAX, |at| Duration::from(at.since(now) + Span::from_ms(1)).min(TICK_MAX))
    }

    /// A tick is sent now, so a time that has passed is dropped.
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

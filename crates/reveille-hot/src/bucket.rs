//! Measures how often one object is written: two leaking buckets and a rate, in some seventy bytes.
//!
//! ```text
//!  a write ─▶ quick: leaks `at_once` a second, holds a burst          overflows ─▶ hot at once
//!          └▶ slow:  leaks `sustained` a second, holds five minutes of it  overflows ─▶ hot for a while
//! ```
//!
//! A bucket overflows exactly when an object was written faster than its rate for longer than the bucket's size allows: at 3
//! writes a second after ten seconds, at 50 a second after a fifth of one, at 0.4 a second after five minutes. Levels are
//! thousandths of a write.

use reveille_core::model::time::{Span, Time};

use crate::settings::{MilliRate, Settings};

/// A level, thousandths of a write, as of a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Bucket {
    level: u64,
    at: Time,
}

impl Bucket {
    /// What is left of it now.
    fn drained(self, now: Time, leak: MilliRate) -> u64 {
        // Milliwrites: writes in 1000 s, times milliseconds, in thousandths.
        let gone = u64::try_from(now.since(self.at).ms).unwrap_or(0) * u64::from(leak) / 1000;
        self.level.saturating_sub(gone)
    }

    /// One more write; true when it is more than the bucket holds.
    fn pour(&mut self, now: Time, leak: MilliRate, holds: u64) -> bool {
        let level = self.drained(now, leak) + 1000;
        *self = Self { level: level.min(holds + 1000), at: now };
        level > holds
    }
}

/// Which rate was exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exceeded {
    /// For longer than is allowed.
    Sustained,
    /// At once.
    AtOnce,
}

/// The writes of one object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Meter {
    quick: Bucket,
    slow: Bucket,
    first: Time,
    last: Time,
    writes: u64,
    /// The present stretch of the rate that is shown, and the one before.
    stretch_from: Time,
    stretch: u32,
    before: u32,
}

/// The shown rate is of the last one or two of these.
const STRETCH: Span = Span::from_s(15);

impl Meter {
    /// Nothing was written yet; counting begins.
    pub const fn new(now: Time) -> Self {
        let bucket = Bucket { level: 0, at: now };
        Self {
            quick: bucket,
            slow: bucket,
            first: now,
            last: now,
            writes: 0,
            stretch_from: now,
            stretch: 0,
            before: 0,
        }
    }

    /// One write.
    pub fn write(&mut self, now: Time, sustained: MilliRate, settings: &Settings) -> Option<Exceeded> {
        self.turn(now);
        (self.writes, self.stretch, self.last) = (self.writes + 1, self.stretch.saturating_add(1), now);
        let burst = u64::from(settings.burst) * 1000;
        let held = u64::from(sustained) * u64::try_from(settings.sustained_for.ms).unwrap_or(0) / 1000;
        let slow = self.slow.pour(now, sustained, held.max(burst));
        let quick = self.quick.pour(now, settings.at_once.max(sustained), burst);
        match (quick, slow) {
            (true, _) => Some(Exceeded::AtOnce),
            (_, true) => Some(Exceeded::Sustained),
            _ => None,
        }
    }

    fn turn(&mut self, now: Time) {
        let since = now.since(self.stretch_from).ms;
        if since >= STRETCH.ms {
            self.before = if since < 2 * STRETCH.ms { self.stretch } else { 0 };
            self.stretch = 0;
            self.stretch_from = if since < 2 * STRETCH.ms { self.stretch_from + STRETCH } else { now };
        }
    }

    /// Writes since counting began.
    pub const fn writes(&self) -> u64 {
        self.writes
    }

    /// When counting began.
    pub const fn first(&self) -> Time {
        self.first
    }

    /// When it was written last.
    pub const fn last(&self) -> Time {
        self.last
    }

    /// Writes of late, and in how long: the last 15 to 30 s, or since counting began.
    pub fn of_late(&mut self, now: Time) -> (u64, Span) {
        self.turn(now);
        let from = if self.before > 0 || self.stretch_from.since(self.first).ms >= STRETCH.ms {
            self.stretch_from - STRETCH
        } else {
            self.stretch_from
        };
        let from = from.max(self.first);
        (u64::from(self.before) + u64::from(self.stretch), now.since(from))
    }

    /// Neither bucket holds anything any more: nothing that is to come depends on what was.
    pub fn is_dry(&self, now: Time, sustained: MilliRate, settings: &Settings) -> bool {
        self.slow.drained(now, sustained) == 0
            && self.quick.drained(now, settings.at_once.max(sustained)) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes at a steady distance; when, in seconds, it is called hot.
    fn hot_after(every_ms: i64, for_s: i64) -> Option<(i64, Exceeded)> {
        let settings = Settings::default();
        let mut meter = Meter::new(Time::from_ms(0));
        (0..for_s * 1000 / every_ms).find_map(|nth| {
            let now = Time::from_ms(nth * every_ms);
            meter.write(now, settings.sustained, &settings).map(|exceeded| (now.ms / 1000, exceeded))
        })
    }

    #[test]
    fn a_rate_is_hot_when_it_has_lasted_as_long_as_it_may() {
        // At the rate that is allowed, for ever; twice that, after five minutes; above two a second, at once.
        assert_eq!(hot_after(5_000, 100_000), None);
        assert_eq!(hot_after(2_500, 3_600), Some((297, Exceeded::Sustained)));
        assert_eq!(hot_after(500, 3_600), Some((33, Exceeded::Sustained)));
        assert_eq!(hot_after(250, 3_600), Some((4, Exceeded::AtOnce)));
        assert_eq!(hot_after(20, 3_600), Some((0, Exceeded::AtOnce)));
    }

    #[test]
    fn a_burst_is_no_rate_and_leaves_nothing_behind() {
        let settings = Settings::default();
        let mut meter = Meter::new(Time::from_ms(0));
        for _ in 0..settings.burst {
            assert_eq!(meter.write(Time::from_ms(0), settings.sustained, &settings), None);
        }
        assert!(!meter.is_dry(Time::from_ms(10_000), settings.sustained, &settings));
        assert!(meter.is_dry(Time::from_ms(50_000), settings.sustained, &settings));
    }

    #[test]
    fn the_rate_of_late_forgets_what_was_long_ago() {
        let settings = Settings::default();
        let mut meter = Meter::new(Time::from_ms(0));
        for nth in 0..100 {
            meter.write(Time::from_ms(nth * 100), settings.sustained, &settings);
        }
        let (writes, span) = meter.of_late(Time::from_ms(10_000));
        assert_eq!((writes, span), (100, Span::from_s(10)));
        let (writes, span) = meter.of_late(Time::from_ms(100_000));
        assert_eq!(writes, 0);
        assert!(span.ms <= 30_000, "{span}");
    }
}

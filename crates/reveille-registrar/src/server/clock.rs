//! The server's reading of time: the only place of the crate that reads a clock.
//!
//! The server reads two clocks together. The wall clock is the one of other systems and of the records; an operator or
//! NTP may set it. The monotonic clock runs evenly. Where the two differ by more than slewing explains, the registry is
//! told the difference, so that setting the clock makes no machine silent. A tick comes each second. A much longer time
//! between two reads means that this process or its disk stood still, and messages of machines still wait to be read.
//! That makes no machine silent either.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use reveille_core::model::time::{Span, Time};

/// Between two reads a clock is slewed by less than this, and set by more.
const SET_BY: i64 = 2000;
/// In a time between two reads longer than this, in milliseconds, the server did not listen.
const LISTENED: i64 = 10_000;

/// This machine's wall clock, milliseconds since the epoch.
pub(super) fn wall() -> Time {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time::default() + Span::from(since)
}

/// The wall clock, and a monotonic clock beside it.
#[derive(Debug, Default)]
pub(super) struct Clocks {
    before: Option<(Time, Instant)>,
}

impl Clocks {
    /// The wall clock's time, and how much more it moved since the last read than the time in which the server listened.
    pub(super) fn read(&mut self) -> (Time, Option<Span>) {
        let now = wall();
        (now, self.compare(now, Instant::now()))
    }

    fn compare(&mut self, wall: Time, even: Instant) -> Option<Span> {
        let (wall_before, even_before) = self.before.replace((wall, even))?;
        let passed = even.saturating_duration_since(even_before).as_millis();
        let passed = i64::try_from(passed).unwrap_or(i64::MAX).min(LISTENED);
        let by = wall.ms.saturating_sub(wall_before.ms).saturating_sub(passed);
        (by.saturating_abs() >= SET_BY).then_some(Span::from_ms(by))
    }
}

/// Something with dates in it, made at a time of the clock.
#[derive(Debug)]
pub(super) struct Made {
    at: Instant,
    clocks: Clocks,
}

impl Made {
    /// Made now.
    pub(super) fn now() -> Self {
        Self::at(wall(), Instant::now())
    }

    /// True when it is older than that, or when the clock was set since it was made.
    pub(super) fn is_over(&mut self, lasts: Duration) -> bool {
        self.is_over_at(wall(), Instant::now(), lasts)
    }

    fn at(wall: Time, even: Instant) -> Self {
        Self { at: even, clocks: Clocks { before: Some((wall, even)) } }
    }

    fn is_over_at(&mut self, wall: Time, even: Instant, lasts: Duration) -> bool {
        self.clocks.compare(wall, even).is_some() || even.saturating_duration_since(self.at) >= lasts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clock_step_and_process_stall_are_told_from_normal_time() {
        let mut clocks = Clocks::default();
        let begun = Instant::now();
        let mut look = |wall_s: i64, even_s: u64| {
            let set = clocks.compare(Time::from_ms(wall_s * 1000), begun + Duration::from_secs(even_s));
            set.map(|by| by.ms / 1000)
        };
        let table = [
            (1000, 0, None),
            (1001, 1, None),
            (1011, 11, None),
            (1012, 11, None),
            (4612, 11, Some(3600)),
            (4613, 12, None),
            (1013, 12, Some(-3600)),
            (1013, 13, None),
            (1020, 14, Some(6)),
            (1090, 84, Some(60)),
        ];
        for (wall_s, even_s, set) in table {
            assert_eq!(look(wall_s, even_s), set, "{wall_s} beside {even_s}");
        }
    }

    #[test]
    fn dated_object_is_rebuilt_after_clock_step_or_expiry() {
        let (begun, lasts) = (Instant::now(), Duration::from_secs(60));
        let made = || Made::at(Time::from_ms(1_000_000), begun);
        let is_over = |made: &mut Made, wall_s: i64, even_s: u64| {
            made.is_over_at(
                Time::from_ms(1_000_000 + wall_s * 1000),
                begun + Duration::from_secs(even_s),
                lasts,
            )
        };
        for (wall_s, even_s, wanted) in [(1, 1, false), (-600, 1, true), (3600, 1, true), (9, 9, false)] {
            assert_eq!(is_over(&mut made(), wall_s, even_s), wanted, "{wall_s} beside {even_s}");
        }
        let mut made = made();
        assert_eq!((1..100).find(|s| is_over(&mut made, *s, s.unsigned_abs())), Some(60), "and in its time");
    }
}

//! Time as the engine knows it: an argument, never a reading.
//!
//! [`Time`] is milliseconds since the Unix epoch on *our* clock, [`Span`] a difference of two such. Nothing converts a
//! timestamp written by another machine into a [`Time`]; foreign timestamps stay text (evidence), so that they cannot be
//! subtracted by accident (docs/SAFETY.md, invariant 4).

use std::fmt;
use std::ops::{Add, Sub};
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A moment on our own clock, milliseconds since the Unix epoch.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Time {
    /// Milliseconds since 1970-01-01T00:00:00Z.
    pub ms: i64,
}

/// A length of time on our own clock, milliseconds. Never negative.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Span {
    /// Milliseconds.
    pub ms: i64,
}

impl Time {
    /// From milliseconds since the epoch.
    pub const fn from_ms(ms: i64) -> Self {
        Self { ms }
    }

    /// How long before `self` the moment `earlier` was; zero when it was not before.
    pub const fn since(self, earlier: Self) -> Span {
        let ms = self.ms - earlier.ms;
        Span { ms: if ms < 0 { 0 } else { ms } }
    }
}

impl Span {
    /// No time at all.
    pub const ZERO: Self = Self { ms: 0 };

    /// From milliseconds.
    pub const fn from_ms(ms: i64) -> Self {
        Self { ms }
    }

    /// From seconds.
    pub const fn from_s(s: i64) -> Self {
        Self { ms: s * 1000 }
    }

    /// From minutes.
    pub const fn from_min(min: i64) -> Self {
        Self { ms: min * 60_000 }
    }

    /// Doubled `times` times, and never more than `cap`.
    #[must_use]
    pub fn doubled(self, times: u32, cap: Self) -> Self {
        let factor = 1_i64.checked_shl(times.min(40)).unwrap_or(i64::MAX);
        Self { ms: self.ms.saturating_mul(factor).min(cap.ms) }
    }
}

/// A moment on the clock of a service, whole seconds. Two of the same service can be compared, which tells which came first
/// for that service; there is no way to a [`Time`], and none to a [`Span`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ServiceTime {
    /// Seconds since 1970-01-01T00:00:00Z, by the service's clock.
    pub s: i64,
}

impl ServiceTime {
    /// From seconds since the epoch.
    pub const fn from_s(s: i64) -> Self {
        Self { s }
    }

    /// Reads RFC 3339 in UTC, as clouds write it: `2026-11-21T10:00:00Z`, perhaps with a fraction. Anything else is `None`.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.strip_suffix('Z')?;
        let (text, fraction) = text.split_once('.').unwrap_or((text, "0"));
        let well_formed =
            text.len() == 19 && text.is_ascii() && fraction.bytes().all(|it| it.is_ascii_digit());
        if !well_formed {
            return None;
        }
        let marks = [(4, "-"), (7, "-"), (10, "T"), (13, ":"), (16, ":")];
        if marks.iter().any(|(at, mark)| text.get(*at..at + 1) != Some(mark)) {
            return None;
        }
        let number = |from: usize, to: usize| text.get(from..to)?.parse::<u32>().ok().map(i64::from);
        let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
        let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
        let in_range = (1..=12).contains(&month) && (1..=31).contains(&day);
        if !in_range || hour > 23 || minute > 59 || second > 60 {
            return None;
        }
        // Days since the epoch of a date in the civil calendar: years begin in March, so that leap days come last.
        let shifted = if month > 2 { year } else { year - 1 };
        let (era, of_era) = (shifted.div_euclid(400), shifted.rem_euclid(400));
        let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
        let days = era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468;
        Some(Self { s: days * 86_400 + hour * 3600 + minute * 60 + second })
    }

    /// So much later on the same clock.
    #[must_use]
    pub const fn later_by(self, span: Span) -> Self {
        Self { s: self.s + span.ms.div_euclid(1000) }
    }

    /// For how many milliseconds, to the second, that had been so on the same clock. Less than zero: it is later.
    pub const fn since(self, then: Self) -> i64 {
        (self.s - then.s) * 1000
    }

    /// So much earlier on the same clock.
    #[must_use]
    pub const fn earlier_by(self, span: Span) -> Self {
        Self { s: self.s - span.ms.div_euclid(1000) }
    }
}

impl Add<Span> for Time {
    type Output = Self;
    fn add(self, span: Span) -> Self {
        Self { ms: self.ms.saturating_add(span.ms) }
    }
}

impl Sub<Span> for Time {
    type Output = Self;
    fn sub(self, span: Span) -> Self {
        Self { ms: self.ms.saturating_sub(span.ms) }
    }
}

impl Add for Span {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self { ms: self.ms.saturating_add(other.ms) }
    }
}

/// A span as timers take it; a negative one ends at once.
impl From<Span> for Duration {
    fn from(span: Span) -> Self {
        Self::from_millis(u64::try_from(span.ms).unwrap_or(0))
    }
}

/// A measured duration, cut to whole milliseconds.
impl From<Duration> for Span {
    fn from(duration: Duration) -> Self {
        Self { ms: i64::try_from(duration.as_millis()).unwrap_or(i64::MAX) }
    }
}

/// The one unit a tired person reads fastest: `0.4 s`, `8 s`, `14 min`, `3 h`, `40 d`.
impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self.ms {
            ms if ms < 1_000 => format!("0.{} s", ms / 100),
            ms if ms < 120_000 => format!("{} s", ms / 1_000),
            ms if ms < 7_200_000 => format!("{} min", ms / 60_000),
            ms if ms < 172_800_000 => format!("{} h", ms / 3_600_000),
            ms => format!("{} d", ms / 86_400_000),
        };
        f.pad(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_read_in_one_unit() {
        let shown = |ms| Span::from_ms(ms).to_string();
        assert_eq!(shown(430), "0.4 s");
        assert_eq!(shown(8_000), "8 s");
        assert_eq!(shown(119_000), "119 s");
        assert_eq!(shown(14 * 60_000), "14 min");
        assert_eq!(shown(40 * 86_400_000), "40 d");
    }

    #[test]
    fn doubling_stops_at_the_cap() {
        let cap = Span::from_min(10);
        assert_eq!(Span::from_min(1).doubled(0, cap), Span::from_min(1));
        assert_eq!(Span::from_min(1).doubled(3, cap), Span::from_min(8));
        assert_eq!(Span::from_min(1).doubled(63, cap), cap);
    }

    #[test]
    fn span_and_duration_convert_and_stop_at_their_bounds() {
        assert_eq!(Duration::from(Span::from_ms(1_500)), Duration::from_millis(1_500));
        assert_eq!(Duration::from(Span::from_ms(-1)), Duration::ZERO);
        assert_eq!(Span::from(Duration::from_micros(1_999)), Span::from_ms(1));
        assert_eq!(Span::from(Duration::MAX), Span::from_ms(i64::MAX));
    }

    #[test]
    fn a_moment_in_the_future_is_no_time_ago() {
        assert_eq!(Time::from_ms(5).since(Time::from_ms(9)), Span::ZERO);
    }
}

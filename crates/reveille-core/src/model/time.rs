//! Time as the engine knows it: an argument, never a reading.
//!
//! [`Time`] is milliseconds since the Unix epoch on *our* clock, [`Span`] a difference of two such. Nothing converts a
//! timestamp written by another machine into a [`Time`]; foreign timestamps stay text (evidence), so that they cannot be
//! subtracted by accident (DESIGN, invariant 4).

use std::fmt;
use std::ops::{Add, Sub};

/// A moment on our own clock, milliseconds since the Unix epoch.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Time {
    /// Milliseconds since 1970-01-01T00:00:00Z.
    pub ms: i64,
}

/// A length of time on our own clock, milliseconds. Never negative.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
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
    fn a_moment_in_the_future_is_no_time_ago() {
        assert_eq!(Time::from_ms(5).since(Time::from_ms(9)), Span::ZERO);
    }
}

//! A time that an API server wrote, which may be compared with another of the same server, and with nothing else.
//!
//! `creationTimestamp` and the `Date` header of an answer are both of the API server's own clock, so that how old an object is
//! can be told without ours: a clock that is wrong here does not make a record older. Several API servers behind one address
//! may be some seconds apart; nothing is concluded from less than minutes. What cannot be read is no time.

use jiff::Timestamp;
use reveille_core::model::time::Span;

/// A moment on an API server's clock.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ServerTime(i64);

impl ServerTime {
    /// From a stamp of an object: RFC 3339.
    pub fn of_stamp(text: &str) -> Option<Self> {
        text.parse::<Timestamp>().ok().map(|at| Self(at.as_millisecond()))
    }

    /// From a `Date` header.
    pub fn of_header(text: &str) -> Option<Self> {
        let at = jiff::fmt::rfc2822::parse(text.trim()).ok()?;
        Some(Self(at.timestamp().as_millisecond()))
    }

    /// How long before `self` the moment `earlier` was; zero when it was not before.
    pub const fn since(self, earlier: Self) -> Span {
        Span::from_ms(if self.0 > earlier.0 { self.0 - earlier.0 } else { 0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_and_a_header_of_one_server_have_an_age_between_them() {
        let made = ServerTime::of_stamp("2026-11-22T20:50:00Z").unwrap();
        let now = ServerTime::of_header("Sun, 22 Nov 2026 21:00:00 GMT").unwrap();
        assert_eq!(now.since(made), Span::from_min(10));
        assert_eq!(made.since(now), Span::ZERO);
        assert_eq!(ServerTime::of_stamp("yesterday"), None);
        assert_eq!(ServerTime::of_header("soon"), None);
    }
}

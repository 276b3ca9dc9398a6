//! How far the controller may believe a data source: fresh, complete, plausible, and for how long without a gap.
//!
//! Each cloud and the cluster has one [`Source`]. Complete readings and failures go in; [`Trust`] comes out. Every timer
//! that rests on a source counts from `sight_since` at the earliest. So a source that cannot be read, a pause of the
//! process or a clock jump restarts all these timers at once, without touching any (docs/SAFETY.md, invariants 2 and 4).
//!
//! The source does not decide what is plausible: the views do, and tell it with [`Source::doubt`].

use std::fmt;
use std::sync::Arc;

use crate::model::read_error::ReadError;
use crate::model::time::{Span, Time};
use crate::safeguard::{Safeguard, stands};

/// One source of truth.
#[derive(Clone, Debug)]
pub struct Source {
    stale_after: Span,
    last_good: Option<Time>,
    sight_since: Option<Time>,
    /// We slept and have heard nothing since.
    woke: bool,
    failing: Option<Failing>,
    doubt: Option<Doubt>,
    /// It is not the source that it should be, and why.
    refused: Option<Arc<str>>,
}

/// A row of failures without a success between them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failing {
    /// When the first of them was.
    pub since: Time,
    /// How many.
    pub times: u32,
    /// The newest.
    pub error: ReadError,
}

/// Why a complete reading is not believed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Doubt {
    /// Since when.
    pub since: Time,
    /// What cannot be true, as a clause.
    pub why: Arc<str>,
}

/// Whether decisions may rest on a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trust {
    /// Yes, and without a gap since then.
    Since(Time),
    /// No, and why.
    No(Arc<str>),
}

impl Trust {
    /// True when decisions may rest on it.
    pub const fn is_given(&self) -> bool {
        matches!(self, Self::Since(_))
    }
}

impl fmt::Display for Trust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Since(_) => f.write_str("complete"),
            Self::No(why) => f.write_str(why),
        }
    }
}

impl Source {
    /// A source that has not been read yet.
    pub const fn new(stale_after: Span) -> Self {
        Self {
            stale_after,
            last_good: None,
            sight_since: None,
            woke: false,
            failing: None,
            doubt: None,
            refused: None,
        }
    }

    /// A complete reading, or a proof of life, arrived.
    pub fn heard(&mut self, now: Time) {
        let slept = std::mem::take(&mut self.woke);
        let unbroken = !slept && self.last_good.is_some_and(|last| now.since(last) <= self.stale_after);
        if (!unbroken && stands(Safeguard::UnbrokenSight)) || self.sight_since.is_none() {
            self.sight_since = Some(now);
        }
        self.last_good = Some(now);
        self.failing = None;
    }

    /// A reading failed or was incomplete. The last good one still stands until it is too old.
    pub fn failed(&mut self, now: Time, error: ReadError) {
        let (since, times) = self.failing.as_ref().map_or((now, 0), |f| (f.since, f.times));
        self.failing = Some(Failing { since, times: times.saturating_add(1), error });
    }

    /// The newest reading cannot be true, or (with `None`) is plausible again. Coming back restarts sight.
    pub fn doubt(&mut self, now: Time, why: Option<Arc<str>>) {
        match (why, &mut self.doubt) {
            (Some(why), Some(doubt)) => doubt.why = why,
            (Some(why), none) => *none = Some(Doubt { since: now, why }),
            (None, some @ Some(_)) => {
                *some = None;
                self.sight_since = Some(now);
            }
            (None, None) => {}
        }
    }

    /// It is not the source that it should be, or (with `None`) is again. Coming back restarts sight.
    pub fn refuse(&mut self, now: Time, why: Option<Arc<str>>) {
        let is_back = self.refused.is_some() && why.is_none();
        self.refused = why;
        if is_back && self.sight_since.is_some() {
            self.sight_since = Some(now);
        }
    }

    /// It is not the source that it should be: nothing that it says may be taken in.
    pub const fn is_refused(&self) -> bool {
        self.refused.is_some()
    }

    /// We slept, and have heard nothing since.
    pub const fn has_slept(&self) -> bool {
        self.woke
    }

    /// We slept, or the clock jumped: whatever was seen before counts for no timer, and sight returns with the next reading.
    pub fn restart_sight(&mut self, now: Time) {
        if self.sight_since.is_some() {
            self.sight_since = Some(now);
            self.woke = true;
        }
    }

    /// The clock went back: a reading that seems to come is as old as now, or silence would stay unseen until then.
    pub fn go_back_to(&mut self, now: Time) {
        self.last_good = self.last_good.map(|at| at.min(now));
        self.restart_sight(now);
    }

    /// May decisions rest on it now?
    pub fn trust(&self, now: Time) -> Trust {
        if let Some(why) = &self.refused {
            return Trust::No(why.clone());
        }
        if let Some(doubt) = &self.doubt {
            return Trust::No(doubt.why.clone());
        }
        let (Some(last), Some(since)) = (self.last_good, self.sight_since) else {
            return Trust::No(
                self.failing
                    .as_ref()
                    .map_or_else(|| Arc::from("not read yet"), |failing| failing.error.text.clone()),
            );
        };
        let age = now.since(last);
        if age > self.stale_after && stands(Safeguard::Freshness) {
            let text = match &self.failing {
                Some(failing) => format!("last read {age} ago: {}", failing.error.text),
                None => format!("silent for {age}"),
            };
            return Trust::No(Arc::from(text));
        }
        Trust::Since(since)
    }

    /// When the last complete reading was.
    pub const fn last_good(&self) -> Option<Time> {
        self.last_good
    }

    /// The failures since then.
    pub const fn failing(&self) -> Option<&Failing> {
        self.failing.as_ref()
    }

    /// The doubt, if any.
    pub const fn doubted(&self) -> Option<&Doubt> {
        self.doubt.as_ref()
    }

    /// When trust lapses if nothing more is heard.
    pub fn lapses_at(&self) -> Option<Time> {
        self.last_good.map(|last| last + self.stale_after + Span::from_ms(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::read_error::ReadErrorKind;

    const fn at(s: i64) -> Time {
        Time::from_ms(s * 1000)
    }

    fn refused() -> ReadError {
        ReadError {
            kind: ReadErrorKind::Unavailable,
            text: Arc::from("connection refused"),
            retry_after: None,
        }
    }

    #[test]
    fn sight_is_unbroken_while_readings_are_close() {
        let mut source = Source::new(Span::from_s(60));
        assert_eq!(source.trust(at(0)), Trust::No(Arc::from("not read yet")));
        source.heard(at(0));
        source.heard(at(50));
        assert_eq!(source.trust(at(100)), Trust::Since(at(0)));
    }

    #[test]
    fn failed_read_keeps_last_reading_until_stale() {
        let mut source = Source::new(Span::from_s(60));
        source.heard(at(0));
        source.failed(at(30), refused());
        assert!(source.trust(at(60)).is_given());
        assert_eq!(source.trust(at(61)), Trust::No(Arc::from("last read 61 s ago: connection refused")));
        source.heard(at(90));
        assert_eq!(source.trust(at(90)), Trust::Since(at(90)));
    }

    #[test]
    fn doubt_outweighs_freshness_and_its_end_restarts_sight() {
        let mut source = Source::new(Span::from_s(60));
        source.heard(at(0));
        source.doubt(at(10), Some(Arc::from("empty")));
        assert_eq!(source.trust(at(10)), Trust::No(Arc::from("empty")));
        source.heard(at(20));
        source.doubt(at(20), None);
        assert_eq!(source.trust(at(20)), Trust::Since(at(20)));
    }

    #[test]
    fn silence_is_seen_although_the_clock_went_back() {
        let mut source = Source::new(Span::from_s(60));
        source.heard(at(7200));
        source.go_back_to(at(100));
        assert_eq!(source.trust(at(100)), Trust::Since(at(100)));
        assert_eq!(source.trust(at(161)), Trust::No(Arc::from("silent for 61 s")));
    }

    #[test]
    fn a_pause_of_ours_restarts_sight() {
        let mut source = Source::new(Span::from_s(600));
        source.heard(at(0));
        source.restart_sight(at(300));
        assert_eq!(source.trust(at(300)), Trust::Since(at(300)));
        source.heard(at(329));
        source.heard(at(359));
        assert_eq!(
            source.trust(at(360)),
            Trust::Since(at(329)),
            "the age of what was read before is unknown"
        );
    }
}

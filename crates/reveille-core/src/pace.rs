//! When one project is listed next, and whether in full: the rule that the controller's poller and the simulator share.
//!
//! ```text
//!  begin ─▶ full or changes? ─▶ listed / failed ─▶ due ─▶ begin …
//!                                    want_full ──────┘ due sooner, and the next listing is a full one
//! ```
//!
//! A wish for a full listing stays until a full listing was read: neither a failure nor a listing of changes uses it up.
//! A wish never shortens the wait after a failure, and never makes two full listings begin within one period, so that a
//! doubt that lasts costs the cloud no more than its usual pace.
//!
//! Not here: the clock, the deadline of one listing, the jitter of a wait, and what a listing means.

use crate::model::time::{Span, Time};

/// How often, and how patiently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// From the beginning of one listing to the beginning of the next.
    pub period: Span,
    /// At the latest after this long a listing is a full one.
    pub full_period: Span,
    /// Shortest time from the end of one listing to the beginning of the next that was wished for.
    pub gap: Span,
    /// First wait after a failure; doubles.
    pub backoff_min: Span,
    /// Longest wait after a failure. There is no last try.
    pub backoff_max: Span,
}

impl Pace {
    /// The pace of these periods; the rest follows from them.
    pub fn of(period: Span, full_period: Span) -> Self {
        let period = period.max(Span::from_s(1));
        Self {
            period,
            full_period: full_period.max(period),
            gap: Span::from_s(2),
            backoff_min: Span::from_s(5),
            backoff_max: Span::from_s(60).max(period),
        }
    }
}

/// One project's listings, in time.
#[derive(Clone, Copy, Debug)]
pub struct Pacer {
    pace: Pace,
    /// When the newest listing began.
    begun: Time,
    /// When the newest full listing that succeeded began.
    full_at: Option<Time>,
    /// When the newest full listing began, whatever became of it.
    full_tried: Option<Time>,
    /// A full listing is wanted.
    wanted: bool,
    /// The listing under way answers a wish.
    answers_wish: bool,
    failures: u32,
    due: Time,
}

impl Pacer {
    /// The first listing is due now.
    pub const fn new(pace: Pace, now: Time) -> Self {
        Self {
            pace,
            begun: now,
            full_at: None,
            full_tried: None,
            wanted: false,
            answers_wish: false,
            failures: 0,
            due: now,
        }
    }

    /// When the next listing begins. It may have passed while a listing was under way.
    pub const fn due(&self) -> Time {
        self.due
    }

    /// Failures since the last success.
    pub const fn failures(&self) -> u32 {
        self.failures
    }

    /// A listing begins. True when it must be a full one.
    pub fn begin(&mut self, now: Time) -> bool {
        self.begun = now;
        self.answers_wish = std::mem::take(&mut self.wanted);
        let is_late = |at: Time| now.since(at) >= self.pace.full_period;
        let full = self.answers_wish || self.full_at.is_none_or(is_late);
        if full {
            self.full_tried = Some(now);
        }
        self.due = now + self.pace.period;
        full
    }

    /// The listing was read, in full or not.
    pub fn listed(&mut self, now: Time, full: bool) {
        self.failures = 0;
        if full {
            self.full_at = Some(self.begun);
        }
        self.due = self.begun + self.pace.period;
        self.end(now, full);
    }

    /// The listing failed, and the next begins after this wait.
    pub fn failed(&mut self, now: Time, wait: Span) {
        self.failures = self.failures.saturating_add(1);
        self.due = now + wait;
        self.end(now, false);
    }

    /// The wait after one more failure, before jitter and the service's own wish.
    pub fn backoff(&self) -> Span {
        self.pace.backoff_min.doubled(self.failures, self.pace.backoff_max)
    }

    /// A full listing is wanted as soon as the pace allows.
    pub fn want_full(&mut self, now: Time) {
        self.wanted = true;
        if self.failures > 0 {
            return;
        }
        let after_full = self.full_tried.map_or(now, |at| at + self.pace.period);
        self.due = self.due.min(after_full.max(now + self.pace.gap));
    }

    /// A wish that came meanwhile, or was not answered, goes on.
    fn end(&mut self, now: Time, full: bool) {
        let unanswered = std::mem::take(&mut self.answers_wish) && !full;
        if self.wanted || unanswered {
            self.want_full(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(s: i64) -> Time {
        Time::from_ms(s * 1000)
    }

    fn pacer() -> Pacer {
        Pacer::new(Pace::of(Span::from_s(30), Span::from_min(10)), at(0))
    }

    #[test]
    fn wish_is_answered_after_the_gap_and_in_full() {
        let mut pacer = pacer();
        assert!(pacer.begin(at(0)), "the first listing is a full one");
        pacer.listed(at(1), true);
        assert!(!pacer.begin(at(30)));
        pacer.listed(at(31), false);
        pacer.want_full(at(31));
        assert_eq!(pacer.due(), at(33));
        assert!(pacer.begin(at(33)));
    }

    #[test]
    fn wish_outlives_failures_and_listings_of_changes() {
        let mut pacer = pacer();
        pacer.begin(at(0));
        pacer.listed(at(1), true);
        pacer.want_full(at(40));
        assert!(pacer.begin(at(42)));
        pacer.failed(at(43), Span::from_s(5));
        pacer.want_full(at(44));
        assert_eq!(pacer.due(), at(48), "a wish does not shorten the wait after a failure");
        assert!(pacer.begin(at(48)), "the wish was not answered");
        pacer.listed(at(49), false);
        assert!(pacer.begin(pacer.due()), "nor by a listing of changes");
        pacer.listed(at(100), true);
        assert!(!pacer.begin(at(130)), "it is answered");
    }

    #[test]
    fn repeated_wishes_take_one_full_listing_a_period() {
        let mut pacer = pacer();
        let (mut full, mut now) = (0, at(0));
        while now < at(600) {
            full += usize::from(pacer.begin(now));
            pacer.listed(now, true);
            pacer.want_full(now);
            now = pacer.due();
        }
        assert_eq!(full, 20);
    }

    #[test]
    fn wish_during_a_listing_is_kept_for_the_next() {
        let mut pacer = pacer();
        pacer.begin(at(0));
        pacer.listed(at(1), true);
        assert!(!pacer.begin(at(30)));
        pacer.want_full(at(31));
        pacer.listed(at(32), false);
        assert_eq!(pacer.due(), at(34));
        assert!(pacer.begin(at(34)));
    }
}

//! How often something may be done that another machine causes: a few times at once, and then once in a while.

use std::time::Duration;

use tokio::time::Instant;

/// The times that are left.
#[derive(Debug)]
pub(super) struct Pace {
    at_once: u32,
    every: Duration,
    left: u32,
    /// The moment from which the next time is counted.
    since: Option<Instant>,
}

impl Pace {
    /// So often at once, and one time more each time that this span has passed.
    pub(super) const fn new(at_once: u32, every: Duration) -> Self {
        Self { at_once, every, left: at_once, since: None }
    }

    /// True when it may be done now, which is one time.
    pub(super) fn may(&mut self, now: Instant) -> bool {
        let since = *self.since.get_or_insert(now);
        let gained = now.saturating_duration_since(since).as_millis() / self.every.as_millis().max(1);
        let gained = u32::try_from(gained).unwrap_or(u32::MAX);
        if gained > 0 {
            self.left = self.left.saturating_add(gained).min(self.at_once);
            // Of a long rest nothing is saved beyond the times that are left.
            self.since = Some(since.checked_add(self.every.saturating_mul(gained)).unwrap_or(now).min(now));
        }
        let may = self.left > 0;
        self.left = self.left.saturating_sub(1);
        may
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_times_at_once_and_then_one_in_each_span() {
        let began = Instant::now();
        let mut pace = Pace::new(3, Duration::from_secs(10));
        let at = |tenths: u64| began + Duration::from_millis(tenths * 100);
        let times = (0..1000).filter(|tenths| pace.may(at(*tenths))).count();
        assert_eq!(times, 3 + 9);
        assert_eq!((0..10).filter(|_| pace.may(at(100_000))).count(), 3);
    }
}

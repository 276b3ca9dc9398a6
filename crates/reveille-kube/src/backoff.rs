//! How long to wait before trying again: doubling from a floor to a ceiling, with jitter, and never giving up.
//!
//! A controller whose API server is away can only try again, so there is no last try; the ceiling keeps the load low. Jitter
//! spreads replicas that lost the server at the same moment: half of each wait is fixed, half is random. A wait that the server
//! itself asked for counts when it is longer, up to a bound. So a broken header cannot stop the controller for a day.

use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};

/// The longest wait that a `Retry-After` can ask for.
const ASKED_MAX: Duration = Duration::from_secs(120);

/// The waits of one loop.
#[derive(Debug)]
pub(crate) struct Backoff {
    pace: ExponentialBuilder,
    waits: ExponentialBackoff,
}

impl Backoff {
    /// Waits that start at `floor` and end at `ceiling`.
    pub(crate) fn new(floor: Duration, ceiling: Duration) -> Self {
        // backon adds a random part of up to the whole delay, so its delays are the fixed halves.
        let pace = ExponentialBuilder::new().with_min_delay(floor / 2).with_max_delay(ceiling / 2);
        let pace = pace.with_jitter().without_max_times();
        Self { pace, waits: pace.build() }
    }

    /// It worked: the next failure waits the shortest time again.
    pub(crate) fn worked(&mut self) {
        self.waits = self.pace.build();
    }

    /// It failed: how long to wait now, given what the server asked for.
    pub(crate) fn failed(&mut self, asked: Option<Duration>) -> Duration {
        // Without a last try there is always a next wait.
        let ours = self.waits.next().unwrap_or(ASKED_MAX);
        ours.max(asked.unwrap_or_default().min(ASKED_MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLOOR: Duration = Duration::from_millis(800);
    const CEILING: Duration = Duration::from_secs(30);
    const CLOSE: Duration = Duration::from_millis(1);

    #[test]
    fn waits_double_between_floor_and_ceiling_and_start_again() {
        let mut backoff = Backoff::new(FLOOR, CEILING);
        for round in 0..100_u32 {
            let full = FLOOR.saturating_mul(1 << round.min(10)).min(CEILING);
            let wait = backoff.failed(None);
            // backon counts in fractions of 24 bits.
            let range = full / 2 - CLOSE..=full + CLOSE;
            assert!(range.contains(&wait), "round {round}: {wait:?} of {full:?}");
        }
        backoff.worked();
        assert!(backoff.failed(None) <= FLOOR + CLOSE);
    }

    #[test]
    fn the_server_is_obeyed_within_reason() {
        let mut backoff = Backoff::new(FLOOR, CEILING);
        assert_eq!(backoff.failed(Some(Duration::from_secs(17))), Duration::from_secs(17));
        assert_eq!(backoff.failed(Some(Duration::from_secs(86_400))), ASKED_MAX);
    }

    #[test]
    fn two_replicas_do_not_wait_alike() {
        let waits: std::collections::BTreeSet<Duration> =
            (0..16).map(|_| Backoff::new(CEILING, CEILING).failed(None)).collect();
        assert!(waits.len() > 1);
    }
}

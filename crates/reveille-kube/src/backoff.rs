//! How long to wait before trying again: doubling from a floor to a ceiling, with jitter, and never giving up.
//!
//! A controller whose API server is away can only try again, so there is no last try; the ceiling keeps the load low. Jitter
//! spreads replicas that lost the server at the same moment: half of each wait is fixed, half is random. A wait that the server
//! itself asked for counts when it is longer, up to a bound. So a broken header cannot stop the controller for a day.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

/// The longest wait that a `Retry-After` can ask for.
const ASKED_MAX: Duration = Duration::from_secs(120);

/// The waits of one loop.
#[derive(Debug)]
pub(crate) struct Backoff {
    floor: Duration,
    ceiling: Duration,
    failures: u32,
}

impl Backoff {
    /// Waits that start at `floor` and end at `ceiling`.
    pub(crate) const fn new(floor: Duration, ceiling: Duration) -> Self {
        Self { floor, ceiling, failures: 0 }
    }

    /// It worked: the next failure waits the shortest time again.
    pub(crate) const fn worked(&mut self) {
        self.failures = 0;
    }

    /// It failed: how long to wait now, given what the server asked for.
    pub(crate) fn failed(&mut self, asked: Option<Duration>) -> Duration {
        let full = self.floor.saturating_mul(1_u32.checked_shl(self.failures.min(20)).unwrap_or(u32::MAX));
        let full = full.min(self.ceiling);
        self.failures = self.failures.saturating_add(1);
        let half = full / 2;
        let ours = half + half.mul_f64(chance());
        ours.max(asked.unwrap_or_default().min(ASKED_MAX))
    }
}

/// Something between 0 and 1. The standard library seeds every hasher differently; that is chance enough for jitter.
fn chance() -> f64 {
    let drawn = RandomState::new().build_hasher().finish();
    (drawn >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLOOR: Duration = Duration::from_millis(800);
    const CEILING: Duration = Duration::from_secs(30);

    #[test]
    fn waits_double_between_floor_and_ceiling_and_start_anew() {
        let mut backoff = Backoff::new(FLOOR, CEILING);
        for round in 0..100_u32 {
            let full = FLOOR.saturating_mul(1 << round.min(10)).min(CEILING);
            let wait = backoff.failed(None);
            assert!(wait >= full / 2 && wait <= full, "round {round}: {wait:?} of {full:?}");
        }
        backoff.worked();
        assert!(backoff.failed(None) <= FLOOR);
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

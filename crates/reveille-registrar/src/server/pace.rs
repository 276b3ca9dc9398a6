//! How fast one connection is answered: requests beyond its pace wait their turn, and none is refused.
//!
//! An agent asks one thing of a connection, or polls twice a minute. Whoever asks as fast as it is answered would keep a core
//! busy with one connection; made to wait, it asks ten times a second, and has a few connections to do so.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep};

/// Requests at once: reports that waited for a network that was gone.
const BURST: u32 = 60;
/// And one more after so long.
const EACH: Duration = Duration::from_millis(100);

/// The pace of one connection.
#[derive(Debug)]
pub(super) struct Pace {
    /// All of the burst is there again then.
    free_at: Mutex<Instant>,
}

impl Pace {
    pub(super) fn new() -> Self {
        Self { free_at: Mutex::new(Instant::now()) }
    }

    /// Waits for the turn of one request. A connection has one at a time.
    pub(super) async fn turn(&self) {
        sleep(self.wait(Instant::now())).await;
    }

    fn wait(&self, now: Instant) -> Duration {
        let mut free_at = self.free_at.lock().unwrap_or_else(PoisonError::into_inner);
        *free_at = (*free_at).max(now) + EACH;
        free_at.saturating_duration_since(now + EACH * BURST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_is_answered_at_once_for_a_while_and_then_at_its_pace() {
        let (pace, begun) = (Pace::new(), Instant::now());
        let at_once: Vec<Duration> = (0..BURST).map(|_| pace.wait(begun)).collect();
        assert!(at_once.iter().all(|wait| wait.as_millis() <= 1), "{at_once:?}");
        let mut now = begun;
        for _ in 0..20 {
            let wait = pace.wait(now);
            assert!(wait > EACH - Duration::from_millis(2) && wait <= EACH, "{wait:?}");
            now += wait;
        }
        now += EACH * 2 * BURST;
        assert_eq!(pace.wait(now), Duration::ZERO, "after a rest it has all of it again");
    }
}

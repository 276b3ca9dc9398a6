//! How long to wait before asking again: 1 s, then twice as long each time up to 60 s, with jitter; longer when the
//! server says so.
//!
//! The jitter is between three quarters and five quarters, so that five thousand agents do not come back in one second.
//! The caller counts attempts and ends them.

use std::time::Duration;

const FIRST: Duration = Duration::from_secs(1);
const MOST: Duration = Duration::from_secs(60);
/// The longest pause that a server can ask for.
const ASKED_MOST: Duration = Duration::from_secs(600);

/// The next pause.
#[derive(Clone, Copy, Debug)]
pub struct Pause(Duration);

impl Default for Pause {
    fn default() -> Self {
        Self(FIRST)
    }
}

impl Pause {
    /// The next pause, at least as long as the server asked for; the one after it is longer.
    pub fn next(&mut self, asked_s: Option<u32>) -> Duration {
        let asked = Duration::from_secs(asked_s.unwrap_or(0).into()).min(ASKED_MOST);
        let pause = self.0.max(asked);
        self.0 = (self.0 * 2).min(MOST);
        jittered(pause)
    }
}

/// A random span between three quarters and five quarters of the pause.
pub(crate) fn jittered(pause: Duration) -> Duration {
    pause.mul_f64(0.75 + fastrand::f64() / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_minute_vary_and_follow_requested_delay() {
        let within = |pause: Duration, of_s: f64| (0.75 * of_s..=1.25 * of_s).contains(&pause.as_secs_f64());
        let mut pause = Pause::default();
        for of_s in [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0] {
            let next = pause.next(None);
            assert!(within(next, of_s), "{next:?}, not about {of_s}");
        }
        assert!(within(pause.next(Some(120)), 120.0));
        assert!(within(pause.next(Some(u32::MAX)), 600.0));
        let mut all: Vec<Duration> = (0..32).map(|_| Pause::default().next(None)).collect();
        all.dedup();
        assert!(all.len() > 16, "{all:?}");
    }
}

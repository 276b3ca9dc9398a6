//! Accepting, at every door of this server: what cannot be accepted is tried again after a pause.
//!
//! Where no descriptor is left, a connection stays pending and the next try fails at once, too: without a pause that is a whole
//! processor for as long as it lasts. A row of failures is told once.

use std::time::Duration;

use tokio::time::sleep;

/// After a failure before the next try. Short, because a descriptor may be free again in a moment, and machines wait.
const AGAIN_AFTER: Duration = Duration::from_millis(100);

/// What one door remembers of its last try.
#[derive(Debug)]
pub(super) struct Accepting {
    door: &'static str,
    fails: bool,
}

impl Accepting {
    pub(super) const fn at(door: &'static str) -> Self {
        Self { door, fails: false }
    }

    /// A connection, or none after a pause.
    pub(super) async fn next<T>(&mut self, accepts: impl Future<Output = std::io::Result<T>>) -> Option<T> {
        match accepts.await {
            Ok(connection) => {
                self.fails = false;
                Some(connection)
            }
            Err(error) => {
                if !std::mem::replace(&mut self.fails, true) {
                    tracing::warn!(door = self.door, "a connection cannot be accepted: {error}");
                }
                sleep(AGAIN_AFTER).await;
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::ready;

    use super::*;

    #[tokio::test]
    async fn what_cannot_be_accepted_is_tried_again_after_a_pause_and_told_once() {
        let (begun, mut accepting) = (std::time::Instant::now(), Accepting::at("a test"));
        for _ in 0..3 {
            let no_descriptor = std::io::Error::from_raw_os_error(24);
            assert_eq!(accepting.next::<()>(ready(Err(no_descriptor))).await, None);
            assert!(accepting.fails);
        }
        assert!(begun.elapsed() >= 3 * AGAIN_AFTER);
        assert_eq!((accepting.next(ready(Ok(7))).await, accepting.fails), (Some(7), false));
    }
}

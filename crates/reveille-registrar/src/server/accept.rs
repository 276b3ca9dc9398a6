//! Accepting connections at every listener of this server: after a failed accept the server pauses and tries again.
//!
//! Without a free descriptor, a connection stays pending and the next accept fails at once, too. Without a pause, that
//! loop would use a whole processor for as long as it lasts. The server logs a row of failures once.

use std::time::Duration;

use tokio::time::sleep;

/// The pause after a failed accept. It is short, because a descriptor may be free again in a moment, and machines wait.
const AGAIN_AFTER: Duration = Duration::from_millis(100);

/// What one listener remembers about its last accept.
#[derive(Debug)]
pub(super) struct Accepting {
    listener: &'static str,
    fails: bool,
}

impl Accepting {
    pub(super) const fn at(listener: &'static str) -> Self {
        Self { listener, fails: false }
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
                    tracing::warn!(listener = self.listener, "a connection cannot be accepted: {error}");
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
    async fn failed_accept_is_retried_after_pause_and_told_once() {
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

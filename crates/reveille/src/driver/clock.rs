//! The driver's reading of time: the only place of the loop that looks at a clock.
//!
//! The engine wants our own wall clock and notices itself when it jumps or stood still, so nothing is smoothed here. A
//! world with a time of its own (the demo) does not come through here: its moments carry their time along.

use std::time::{SystemTime, UNIX_EPOCH};

use reveille_core::model::time::Time;

/// Where the loop reads the time.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Clock {
    /// This machine's wall clock.
    Wall,
    /// The runtime's clock, counted from a given moment: tests pause and advance it.
    #[cfg(test)]
    Runtime {
        /// What time it was at `start`.
        base: Time,
        /// When it was that time.
        start: tokio::time::Instant,
    },
}

impl Clock {
    /// The time.
    pub(crate) fn now(self) -> Time {
        match self {
            Self::Wall => wall(),
            #[cfg(test)]
            Self::Runtime { base, start } => {
                let ms = i64::try_from(start.elapsed().as_millis()).unwrap_or(i64::MAX);
                base + reveille_core::model::time::Span::from_ms(ms)
            }
        }
    }
}

/// This machine's wall clock, milliseconds since the epoch.
pub(crate) fn wall() -> Time {
    let since = |ms: u128| i64::try_from(ms).unwrap_or(i64::MAX);
    Time::from_ms(match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(after) => since(after.as_millis()),
        Err(before) => -since(before.duration().as_millis()),
    })
}

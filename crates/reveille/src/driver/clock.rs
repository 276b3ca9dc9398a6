//! The driver's clock: the only place of the loop that reads one.
//!
//! The engine wants the wall clock of this host, and notices itself when it jumps or stands still, so nothing is smoothed
//! here. A simulated world with its own time (the demo) does not use this module, because its events carry their time.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use reveille_core::model::time::Time;

/// The clock of one loop: the wall clock of this host in production, a clock that follows paused time in tests.
pub(crate) type Clock = Arc<dyn Fn() -> Time + Send + Sync>;

/// The wall clock as a loop's clock.
pub(crate) fn system() -> Clock {
    Arc::new(wall)
}

/// This machine's wall clock, milliseconds since the epoch.
pub(crate) fn wall() -> Time {
    match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(after) => Time::default() + after.into(),
        Err(before) => Time::default() - before.duration().into(),
    }
}

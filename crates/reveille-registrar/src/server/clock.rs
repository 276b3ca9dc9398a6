//! The server's reading of time: the only place of the crate that looks at a clock.

use std::time::{SystemTime, UNIX_EPOCH};

use reveille_core::model::time::Time;

/// This machine's wall clock, milliseconds since the epoch.
pub(super) fn wall() -> Time {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time::from_ms(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

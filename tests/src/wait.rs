//! Waiting for something to become so, with a deadline and with the last thing that was seen instead.

use std::fmt::Display;
use std::time::{Duration, Instant};

use anyhow::bail;

/// Between two looks.
const PERIOD: Duration = Duration::from_millis(250);

/// Seconds, short to write in a scenario.
pub const fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Looks again and again until `look` finds it. `Err` is what was seen instead; it is told when time is up.
///
/// # Errors
/// When it is still not so after `within`.
pub fn until<T, E: Display>(
    what: &str,
    within: Duration,
    mut look: impl FnMut() -> Result<T, E>,
) -> anyhow::Result<T> {
    let end = Instant::now() + within;
    loop {
        match look() {
            Ok(found) => return Ok(found),
            Err(instead) if Instant::now() >= end => {
                bail!("waited {} s for {what}, in vain; seen instead: {instead:#}", within.as_secs())
            }
            Err(_) => std::thread::sleep(PERIOD),
        }
    }
}

/// Looks again and again for the whole time: it must be so from beginning to end.
///
/// # Errors
/// At the first look that says otherwise.
pub fn throughout(
    what: &str,
    time: Duration,
    mut look: impl FnMut() -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let begun = Instant::now();
    while begun.elapsed() < time {
        if let Err(otherwise) = look() {
            bail!("{what}: not so after {:.1} s: {otherwise:#}", begun.elapsed().as_secs_f64());
        }
        std::thread::sleep(PERIOD);
    }
    Ok(())
}

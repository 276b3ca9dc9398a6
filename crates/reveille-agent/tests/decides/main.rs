//! What an agent decides, event by event; the invariant checker checks every invariant after every step.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail by panicking")]
#![allow(unreachable_pub, reason = "one test binary, several files")]

mod fixture;
mod lost_api;
mod random;
mod rejoins;
mod watchdog;

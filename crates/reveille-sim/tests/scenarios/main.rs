//! Scenarios: the engine against the simulated world, one behaviour each, with the invariants checked after every step.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail by panicking")]
#![allow(unreachable_pub, reason = "one test binary, several files")]

mod behaviours;
mod blind;
mod boundaries;
mod crash;
mod days;
mod defects;
mod field;
mod found;
mod hidden;
mod hunting;

mod escalation;
mod joining;
mod leaders;
mod limits;
mod quiet;
mod rivals;
mod soak;
mod stages;
mod starts;
mod story;

//! Tests the binary as people and scripts use it: exit codes, texts, pipes, and two processes at once.
//!
//! Every test has a folder of its own for state and configuration. Its cluster and its cloud are at a port of 127.0.0.1
//! that was free a moment ago, so no server answers. Where a test needs answers, a small server gives recorded ones.

#![allow(clippy::unwrap_used, reason = "a test ends where its material is missing")]

mod abandoning;
mod bench;
mod demo;
mod diagnose;
mod proposing;
mod queries;
mod recording;
mod region;
mod renamed;
mod running;
mod simulate;
mod storm;
mod storms;
mod usage;
mod without_roster;
mod world;

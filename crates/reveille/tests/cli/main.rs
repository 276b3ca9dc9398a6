//! The binary as people and scripts meet it: exit codes, texts, pipes, and two of it beside each other.
//!
//! Every test has a folder of its own for state and configuration, and a cluster and a cloud that nobody answers for, at
//! a port of 127.0.0.1 that was free a moment ago; where answers are needed, a small world gives recorded ones.

#![allow(clippy::unwrap_used, reason = "a test ends where its material is missing")]

mod abandoning;
mod bench;
mod demo;
mod diagnose;
mod looking;
mod proposing;
mod recording;
mod region;
mod renamed;
mod running;
mod simulate;
mod storm;
mod storms;
mod usage;
mod world;

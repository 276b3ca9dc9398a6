//! The engine through its one door: events in, effects out. No world model here; each test says what the world says.

#![allow(unreachable_pub, reason = "one test binary, several files")]

mod fixture;
mod network;
mod presence;
mod restart;
mod restraint;

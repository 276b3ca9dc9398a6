//! Objects as the real systems write them, and the record that each of them is.
//!
//! ```text
//!  tests/fixtures/KIND/STATE.json ─▶ read ─▶ MachineRecord ─ compared with ─ Expected: what the state means
//! ```
//!
//! Where the objects come from stands in `tests/fixtures/SOURCES.md`. What is expected was written down from what the owner
//! means by the object, not from what the reader says. Mutilated objects are fed in `mutilated`.

#![allow(clippy::unwrap_used, reason = "in a test, what cannot be is a failure")]

mod cluster_api;
mod expected;
mod gardener;
mod karpenter;
mod metal3;
mod mutilated;
mod openshift;

//! What the end-to-end scenarios are made of: rigs, the real program, and eyes of their own.
//!
//! ```text
//!  runner ─▶ lanes ─▶ scenario ─▶ Lab ─┬─▶ rig        faults, machines, nodes; the fault proxy and its counts
//!                                      ├─▶ reveille   the built program: `run` in the background, the commands that look
//!                                      └─▶ cloud, kube   the services themselves, past the proxy: what is really so
//! ```
//!
//! What Reveille says of itself is never the proof of an effect: ports, rules, routes, servers and nodes are read from
//! the services, and what was asked of them is counted by the proxy. Nothing here judges; scenarios do.

pub mod agent;
pub mod agreed;
pub mod calls;
pub mod cloud;
pub mod ec2;
pub mod kube;
pub mod lab;
pub mod lanes;
pub mod ledger;
pub mod metadata;
pub mod node;
pub mod process;
pub mod rancher;
pub mod reveille;
pub mod rig;
pub mod roster;
pub mod runner;
pub mod score;
pub mod wait;

/// Why a scenario was not run, though it was asked for. Never counts as passed.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct NotRun(pub String);

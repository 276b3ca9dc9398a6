//! Writes of an API server, looked at: for a while, by a command, or all the time, beside the loop of `run`.
//!
//! ```text
//!  reveille_kube: kinds, writes, versions, counts ─▶ look ─▶ reveille_hot::State ─▶ look ─▶ Listener ─┬ command: lines and pages
//!                                                                                                      └ watcher: log, snapshot
//!  watcher of the cluster ─┐
//!  watcher of Rancher ─────┴▶ snapshot ─▶ roll, why
//! ```
//!
//! What is hot the detector decides; here stand the connections, their bounds and their end. Nothing is written to a cluster.

pub(crate) mod look;
pub(crate) mod snapshot;
pub(crate) mod watcher;

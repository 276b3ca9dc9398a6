//! Watches the writes of an API server: for a while, by a command, or all the time, beside the loop of `run`.
//!
//! ```text
//!  reveille_kube: kinds, writes, versions, counts ─▶ look ─▶ reveille_hot::State ─▶ look ─▶ Listener ─┬ command: lines and pages
//!                                                                                                      └ watcher: log, snapshot
//!  watcher of the cluster ─┐
//!  watcher of Rancher ─────┴▶ snapshot ─▶ status, why
//! ```
//!
//! The detector decides what is hot; this module has the connections, their limits and their end. It writes nothing to a cluster.

pub(crate) mod query;
pub(crate) mod snapshot;
pub(crate) mod watcher;

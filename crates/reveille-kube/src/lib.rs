//! The API server of the cluster as an adapter: `ClusterFact`s in, `Look`s and `Call`s out.
//!
//! ```text
//!                 list, watch (10 s each)      ┌─────────────┐  Synced, Applied, Deleted, Failed(Gap)
//!  nodes ────────────────────────────────────▶ │ node_watch  │ ──────────────────────────┐
//!  kube-system ── get, before each list ─────▶ │ identity    │ ── Identity ─────────────┤
//!  node leases ── list every 10 s ───────────▶ │ leases      │ ── Leases ───────────────┤  bounded
//!  events about nodes ── list, watch ────────▶ │ node_events │ ── NodeEvent ────────────┼─▶ channel
//!  one node, with the count of all ── 10 s ──▶ │ probe       │ ── Alive, Failed ────────┘
//!                                              └─────────────┘
//!  certificate requests ── list, when asked ─▶ requests
//!  nodes with their labels, without a cloud ─▶ labelled
//!  any kind, for hot objects ── list, watch ─▶ writes
//!
//!  the Lease of a roster's controller ── get, create, update ─▶ claim
//!
//!  Look ─▶ query ─▶ Answer        Call ─▶ perform ─▶ Outcome        commands that look once ─▶ observe_once
//! ```
//!
//! Every request goes through one `session`: it holds the credentials, gives each request a deadline, logs in once more
//! after a 401 or shortly before the credentials end, and turns each refusal into one `Failure`. What comes back is decoded
//! by `wire` into a few borrowed fields and mapped by `mapping` into the core's words. Long lists are split into their items
//! by `list_stream` while they arrive, so that memory holds what is kept of them and never their text.
//!
//! # Why not kube's `watcher`
//!
//! kube's client is used whole: kubeconfigs, credentials, TLS, requests. Its `watcher` is not, because it keeps bookmarks
//! and the end of each watch request to itself, and those are the only proofs that a quiet watch is a current one. The
//! loop in `node_watch` is the same list-then-watch with the proofs handed on (see `liveness` for the rule).
//!
//! # What it does not do
//!
//! The crate decides nothing and keeps no state that decisions rest on. It never writes, except for a `Call` from the engine and
//! the Lease that the caller told it to write. It never hands over half a list.

mod act;
mod api_client;
mod backoff;
mod beginning;
mod bootstrap;
mod claim;
mod cluster;
mod config;
mod failure;
mod hot_object_hook;
mod identity;
mod intern;
mod kind;
mod labelled;
mod leases;
mod list_stream;
mod listing;
mod liveness;
mod mapping;
mod node_events;
mod node_watch;
mod page;
mod paths;
mod plugin;
mod probe;
mod proxy;
mod query;
pub mod rbac;
mod requests;
mod sender;
mod session;
mod shared;
mod watch_request;
mod wire;
mod write_budget;
pub mod writes;

pub use api_client::{Denied, Granted, Wish};
pub use bootstrap::BootstrapToken;
pub use claim::{Claim, ClaimError, Renewal, claim_name};
pub use cluster::Cluster;
pub use config::{ClusterConfig, ConnectError, ContextInfo, contexts};
pub use http::Method;
pub use labelled::{LabelledNode, Labels, named_by};
pub use shared::Rhythm;

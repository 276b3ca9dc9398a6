//! Stage one: joins what the clouds and the cluster say into one entry per machine, with how far each source may be
//! believed.
//!
//! ```text
//!  CloudSnapshot ─▶ cloud::CloudView ──┐
//!                                      ├─▶ join::link ─▶ Seen.nodes / NodeSeen.link
//!  nodes, leases ─▶ cluster::ClusterView┤
//!  reports ───────▶ agents::AgentsView ─┘
//! ```
//!
//! Views hold facts and their freshness. They judge nothing, with one exception that only they can see: a view doubts a
//! reading that cannot be true, before the engine concludes anything from it.

pub mod access;
pub mod agents;
pub mod cloud;
pub mod cluster;
pub mod counts;
pub mod fresh;
mod holders;
mod identities;
pub mod identity;
pub mod join;
mod jump;
mod leases;
pub mod lost_nodes;
pub mod machine_signs;
mod node_events;
mod pack;
pub mod remembered;
mod seen;
pub mod sharing;
pub mod source;
pub mod taken_away;
mod unread;

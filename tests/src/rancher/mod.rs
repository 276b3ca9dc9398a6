//! What scenarios about Rancher's records are made of, on a real API server without a Rancher.
//!
//! ```text
//!  kinds    Rancher's custom resources          objects  records, Nodes, clusters as Rancher and kubelets write them
//!  syncer   Rancher's controllers, as far as they touch records     api  both write through it, past everything
//!  door     the program's own way in: shows one cluster's Nodes, counts writes, ends the program at a step of its book
//!  relay    its way to a member of etcd, beside a door: ends it there as well
//! ```
//!
//! The API server, its objects, revisions, uids and finalizers are real. Several clusters share it: a Node says by a label
//! whose it is, and a door asks for those alone.

pub mod api;
pub mod door;
pub mod kinds;
pub mod objects;
pub mod relay;
pub mod syncer;

/// The label of a Node that says which cluster it is of.
pub const OF: &str = "reveille.test/cluster";

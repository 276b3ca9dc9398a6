//! Rancher as one more adapter: it reads Rancher's records of nodes, judges them, and repairs them in the one safe order.
//!
//! ```text
//!  Ask ─▶ a client to an API server ─▶ bytes ─▶ doc ─▶ model ─▶ Sample ─▶ judge ─▶ Finding, Comparison
//!         (the binary has it)                                   └─▶ modern ─▶ MachineState
//! ```
//!
//! Rancher keeps what it knows of clusters as custom resources of a Kubernetes API server, the *management* cluster. This crate
//! knows their shapes ([`model`]), which requests read them ([`ask`]), in which order ([`reading`]), and what is wrong with them
//! ([`judge`], [`modern`]).
//!
//! # What it does not do
//!
//! It opens no connection and reads no clock: the caller has a client to an API server ([`ask::ApiClient`])
//! and passes the time. Secrets have no field in any type of it: keys and plans within records are passed
//! over unread.

pub mod ask;
mod doc;
pub mod judge;
pub mod model;
pub mod modern;
pub mod reading;
pub mod repair;
pub mod rights;
pub mod stamp;

//! Rancher as one more world: its records of nodes read, judged, and mended in the one safe order.
//!
//! ```text
//!  Ask ─▶ somebody's door to an API server ─▶ bytes ─▶ doc ─▶ model ─▶ Sample ─▶ judge ─▶ Finding, Comparison
//!         (the binary has it)                                            └─▶ modern ─▶ MachineState
//! ```
//!
//! Rancher keeps what it knows of clusters as custom resources of a Kubernetes API server, the *management* cluster. This
//! crate knows their shapes ([`model`]), which requests read them ([`ask`]), in which order ([`reading`]), and what is
//! amiss with them ([`judge`], [`modern`]).
//!
//! # What it does not do
//!
//! It opens no connection and reads no clock: whoever calls has a door to an API server ([`ask::Door`]) and says what time
//! it is. Secrets have no field in any type of it: keys and plans within records are passed over unread.

pub mod ask;
mod doc;
pub mod judge;
pub mod model;
pub mod modern;
pub mod reading;
pub mod repair;
pub mod rights;
pub mod stamp;

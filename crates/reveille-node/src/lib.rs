//! On the node: everything that `reveille-agent` decides about but does not touch.
//!
//! ```text
//!  files, /proc, sockets, units, the API server ──▶ probe ──▶ Facts ──▶ reveille_agent::checkup ──▶ what is wrong, in order
//!  kubeadm, k3s, rke2, systemctl              ◀── executor ◀── Effect ◀── reveille_agent::State::step ◀── Event ◀── inspect
//! ```
//!
//! Reading never changes the machine, never waits without a deadline, and never turns "the agent could not read it" into
//! "it does not exist". The agent's acts are a closed list of verbs, and no verb runs a shell. This crate decides
//! nothing.

pub mod agent;
pub mod api;
pub mod bundle;
pub mod bundle_hash;
pub mod certificate;
pub mod discovery;
pub mod distribution;
pub mod driver;
mod durable;
pub mod executor;
pub mod identity;
pub mod inspect;
pub mod join;
pub mod known;
mod lines;
pub mod link;
pub mod logs;
pub mod memory_file;
pub mod node_object;
pub mod pause;
pub mod peers;
pub mod pem;
pub mod pin;
pub mod pins;
pub mod private;
pub mod probe;
pub mod program;
pub mod report;
pub mod root;
mod short_chain;
mod signing_request;
pub mod target;
#[cfg(test)]
mod testing;
pub mod undumped;
mod verifier;

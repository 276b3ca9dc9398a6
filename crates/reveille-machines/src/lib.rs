//! Machine records of other systems: Karpenter's NodeClaims, Machines of Cluster API, Gardener and OpenShift, Metal3's hosts.
//!
//! ```text
//!  kinds/*.yaml ─▶ kinds() ─┬─▶ served::served(APIGroupList, APIResourceLists) ─▶ which kinds, in which version
//!                           └─▶ read(kind, version, object) ─▶ MachineRecord ─▶ stopped_at, evidence_lines
//! ```
//!
//! One reader reads all of them. What differs between the kinds is data: a map for each kind says where the provider ID, the
//! Node, the pool and the conditions are, which stage each condition proves, and which signals ask others to keep their hands
//! off. A new kind is a file.
//!
//! # What it does not do
//!
//! It sends no request, reads no clock and no file, and writes to no object: its caller brings JSON. Times of other systems
//! stay text, because their clocks are not ours. It judges nothing: whether a hold blocks a repair, and whether a machine is
//! late, is decided elsewhere. Pools (NodePool, MachineSet, MachineDeployment) and MachineHealthChecks are no machines and are
//! not read here.

mod bounded;
mod built_in;
mod duration;
pub mod inventory;
pub mod kind;
mod layout;
pub mod path;
pub mod pool;
mod reading;
pub mod record;
pub mod served;
pub mod sign;

pub use built_in::{kind_of, kinds};
pub use kind::Kind;
pub use reading::{Unreadable, read};
pub use record::MachineRecord;

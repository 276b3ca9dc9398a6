//! A world for the engine, with a clock of its own and one seed: everything that can go wrong, by name, over and over.
//!
//! ```text
//!  Layout ─▶ World ── events ─▶ Drive ── step ─▶ engine::State
//!             ▲                  │  └▶ invariants after every step, log, trace
//!             └──── effects ─────┘
//! ```
//!
//! [`world`] is a cloud project, its machines, a cluster and its controllers in memory. [`drive`] runs the engine against
//! it as the production loop does, on virtual time, with a ledger that acknowledges, refuses, and survives a crash.
//! [`policy`] puts models of other programs in the engine's place, for comparison. [`scenario`] plays what people write
//! down. [`rancher`] is a world beside it, of Rancher's records and a repair of one. [`story`] is one written course of
//! events that the demo plays.
//!
//! It opens no socket, reads no clock and no environment; two runs of one seed are the same bytes.

pub mod catalogue;
pub mod chaos;
pub mod compare;
pub mod drive;
pub mod hunt;
pub mod ledger;
pub mod oracle;
pub mod policy;
pub mod rancher;
pub mod rng;
pub mod scenario;
pub mod story;
pub mod trace;
pub mod world;

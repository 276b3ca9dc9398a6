//! The nouns: what the worlds say, in one vocabulary, and the roster that says what should be.
//!
//! Plain data. No stage of the pipeline lives here, nothing here decides, and nothing here is serialisable: the border
//! crates (`reveille-wire`, the adapters) map to and from these.

pub mod access;
pub mod agent;
pub mod attempt;
pub mod before;
pub mod call;
pub mod cause;
pub mod console;
pub mod hearing;
pub mod hidden;
pub mod hosting;
pub mod id;
pub mod incident;
pub mod instance;
pub mod intern;
pub mod lease;
pub mod network;
pub mod node;
pub mod outcome;
pub mod roster;
pub mod signs;
pub mod stage;
pub mod testimony;
pub mod time;
pub mod trace;

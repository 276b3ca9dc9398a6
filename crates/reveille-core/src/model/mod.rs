//! The nouns: what the worlds say, in one vocabulary, and the roster that says what should be.
//!
//! Plain data. No stage of the pipeline lives here, and nothing here decides. What ledger and recordings hold is these types
//! themselves: the fields' names are part of those formats, whose versions and golden files are `reveille-wire`'s. The
//! adapters map what services say to these.

pub mod access;
pub mod agent;
pub mod agent_report;
pub mod attempt;
pub mod before;
pub mod blocker;
pub mod call;
pub mod cause;
pub mod class;
pub mod console;
pub mod evidence;
pub mod guest;
pub mod hidden;
pub mod host_name;
pub mod hosting;
pub mod id;
pub mod incident;
pub mod instance;
pub mod intern;
pub mod jump;
pub mod lease;
pub mod log_evidence;
pub mod log_findings;
pub mod network;
pub mod node;
pub mod outcome;
pub mod read_error;
pub mod repair_step;
mod rfc3339;
pub mod roster;
pub mod signs;
pub mod stage;
pub mod time;
pub mod trace;
pub mod violation;

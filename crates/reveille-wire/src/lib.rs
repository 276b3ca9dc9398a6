//! The formats of Reveille: all data that the program writes down, or that another program or a person reads or writes.
//!
//! The crate has five formats, each in a module of its own. Recordings use the ledger's words; otherwise no module knows another:
//!
//! ```text
//!   roster.yaml ──▶ roster  ──▶ reveille_core::model::roster::Roster   what people write, checked as a whole
//!   Record     ◀──▶ ledger  ◀──▶ one JSON line                         what the engine must not forget
//!   Event, Effect ◀──▶ recording ◀──▶ one JSON line            what a replay needs to decide the same again
//!   plain facts ──▶ report  ──▶ JSON or YAML                           what the looking commands print for programs
//!   agent     ◀──▶ agent   ◀──▶ registration server                    frames, plans, refusals and waits
//! ```
//!
//! The ledger and recordings are private to Reveille, and use the core's own types, which carry serde. The roster file,
//! the reports and the agents' protocol are promises to others, and have types of their own here. A golden file or a
//! table of messages checks each promise. [`yaml`] reads YAML of others with bounds. Nothing here decides, talks to a
//! network or keeps state; only [`roster::read_file`] opens a file and asks for the home directory.

pub mod agent;
pub mod duration;
pub mod ledger;
pub mod recording;
pub mod report;
pub mod roster;
pub mod yaml;

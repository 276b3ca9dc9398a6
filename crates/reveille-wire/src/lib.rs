//! The border of Reveille: every shape that is written down or read back by somebody else.
//!
//! Five shapes cross here, each in a module of its own; recordings use the ledger's words, and no other knows another:
//!
//! ```text
//!   roster.yaml ──▶ roster  ──▶ reveille_core::model::roster::Roster   what people write, checked as a whole
//!   Record     ◀──▶ ledger  ◀──▶ one JSON line                         what the engine must not forget
//!   Event, Effect ◀──▶ recording ◀──▶ one JSON line            what a replay needs to decide the same again
//!   plain facts ──▶ report  ──▶ JSON or YAML                           what the looking commands print for programs
//!   agent     ◀──▶ agent   ◀──▶ registration server                    frames, plans, refusals and waits
//! ```
//!
//! What is ours alone, ledger and recordings, is the core's own types, which carry serde. What is a promise to others (the
//! roster's file, reports, the agents' protocol) has types of its own here. A golden file or a table of messages holds each
//! promise. Nothing here decides, talks to a network or keeps state; only [`roster::read_file`] opens a file and asks where
//! the home directory is.

pub mod agent;
pub mod duration;
pub mod ledger;
pub mod recording;
pub mod report;
pub mod roster;

//! Stage two: what has a problem, and why.
//!
//! `absence` judges whether one machine is a Ready Node, `service` whether a Ready one serves, and `vanished` what became of a
//! Node that is no more; `machine_state` is their answer. `network` compares groups, ports and routes with what the pools
//! need; `console` reads what a machine that never joined left on its console. `faults` puts them together into one list per
//! subject, with what was `gathered` on purpose. All of it is reading: nothing here proposes or remembers.

pub mod absence;
pub mod access_faults;
pub mod agent_evidence;
pub mod console;
pub mod fault;
pub mod faults;
pub mod gathered;
pub mod hosting;
pub mod machine_state;
pub mod network;
pub mod question;
pub mod route_faults;
pub mod service;
pub mod way;

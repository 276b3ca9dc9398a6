//! Stage three: what to do about an incident, what blocks it, and what it waits for.
//!
//! ```text
//!  Incident ─▶ remedies::ladder(kind) ─▶ rung.call(..) ─▶ interlock::holds(..) ─▶ decide::Decision
//!                                                    budget::Book ──┘
//! ```
//!
//! [`decide::decide`] is a pure function of the desk: it changes nothing, so the `plan` command and the acting engine ask
//! the same question. Its result is complete: a call with everything in it, or every reason against it.

pub mod budget;
pub mod decide;
pub mod desk;
pub mod freeze;
pub mod interlock;
mod jump;
pub mod ladder;
pub mod let_go;
pub mod others;
pub mod places;
pub mod routes;
pub mod wishes;

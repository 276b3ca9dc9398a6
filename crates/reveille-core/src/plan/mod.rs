//! Stage three: what to do about an incident, what blocks it, and what it waits for.
//!
//! ```text
//!  Incident ─▶ remedies::escalation(kind) ─▶ repair_step.call(..) ─▶ interlock::blockers(..) ─▶ decide::Decision
//!                                                    budget::Book ──┘
//! ```
//!
//! [`decide::decide`] is a pure function of the context: it changes nothing, so the `plan` command and the acting engine ask
//! the same question. Its result is complete: a call with everything in it, or every reason against it.

pub mod annotations;
pub mod budget;
pub mod context;
pub mod decide;
pub mod escalation;
pub mod freeze;
pub mod interlock;
mod jump;
pub mod let_go;
pub mod others;
pub mod places;
pub mod routes;

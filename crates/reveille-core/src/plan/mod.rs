//! Stage three: what a repair rests on before it is planned: the context, the budgets, and all that blocks an act.
//!
//! ```text
//!  views, incidents, pauses, budget::Book ─▶ context::PlanContext ─▶ interlock::blockers ─▶ Vec<Blocker>
//! ```
//!
//! It knows nothing of a single repair: those are in `remedies`, which rest on this, and `decide` puts the two together.

pub mod annotations;
pub mod budget;
pub mod context;
pub mod freeze;
pub mod interlock;
mod jump;
pub mod let_go;
pub mod others;
pub mod places;
pub mod routes;

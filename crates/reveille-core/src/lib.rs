//! The pipeline of Reveille, pure: events come in, effects go out, and between them nothing happens but functions.
//!
//! ```text
//!            observe        diagnose       plan          act           verify
//!  Event ─▶ facts, joined ─▶ findings ─▶ decisions ─▶ intents, calls ─▶ verdicts ─▶ Effect
//!                       engine::step(&mut State, now, Event) -> Vec<Effect>
//! ```
//!
//! Depends on no async runtime, HTTP, Kubernetes client, clock, environment, file system or randomness; iterates only
//! over ordered maps. The same events give the same bytes out on every run. A stage imports `model` and earlier stages,
//! never a later one: [`model`], [`observe`], [`diagnose`], [`plan`], [`remedies`] (what is true of one repair alone),
//! [`decide`], [`engine`].

pub mod decide;
pub mod diagnose;
pub mod effect;
pub mod engine;
pub mod event;
pub mod model;
pub mod observe;
pub mod pace;
pub mod plan;
pub mod record;
pub mod remedies;
pub mod safeguard;
mod safeguards;

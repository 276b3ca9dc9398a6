//! Finds the objects of an API server that clients update in a loop, and the clients that may do it.
//!
//! ```text
//!  watch: an object was written ─▶ bucket ─┐
//!  list: generation, age ──────────────────┤            ┌▶ Follow ─▶ versions ─▶ differ, managed ─▶ flips ─▶ class
//!  /metrics, twice ─▶ metrics ─▶ storms ───┼▶ state ─▶ case ─────────────────────────────────────────────▶ Verdict
//!  audit log ─▶ audit ─┐                   │
//!  klog ─────▶ klog ───┴▶ counts ─▶ files ──┘            budget: our own writes
//! ```
//!
//! Pure, as the engine is: `State::step(now, event) → effects`. The caller that performs the effects holds the connections. Each
//! witness stands alone and says what it rests on. Where one of them cannot be had (no right to read metrics, no audit log), the
//! others still count. Everything is bounded: objects, versions, fields, values, writers, verdicts.
//!
//! # What it does not do
//!
//! The crate stops no client and repairs nothing. It proves no culprit: a writer is suspected, and the verdict names where it was
//! seen. Values of secrets are never kept. Other machines' clocks are compared with themselves alone ([`stamp`]).

pub mod audit;
pub mod bucket;
pub mod budget;
mod case;
pub mod class;
pub mod counts;
pub mod differ;
pub mod event;
pub mod files;
pub mod flips;
pub mod kinds;
pub mod klog;
pub mod machine;
pub mod managed;
pub mod metrics;
pub mod object;
pub mod path;
pub mod settings;
pub mod stamp;
mod state;
mod storms;
pub mod verdict;

pub use budget::Budget;
pub use event::{Effect, Event};
pub use object::{Object, Resource};
pub use settings::Settings;
pub use state::State;
pub use verdict::Verdict;

//! Scenarios: what is given, what happens, what must follow, as text that a platform engineer writes and reads.
//!
//! ```text
//!  text ─▶ grammar ─▶ Scenario ─▶ player ─▶ Drive (world, engine, invariants after every step)
//!            │ refuses, with line,              │ turns
//!            ▼ reason and what to write         ▼
//!          Refusal                  timeline + verdict of each expectation ─▶ transcript
//! ```
//!
//! A file has a header, three sections, one statement on each line, and comments from `#` on:
//!
//! ```text
//! scenario A1 Young instance is left alone
//! source cluster-api machine health check
//! given
//!   pool workers of 5 machines in zones a, b
//!   deadline joined 20m
//! when
//!   at 10m  workers-6 starts, and its first boot finds no network
//!   ends at 29m
//! then
//!   by 12m  workers-6 is absent as never-joined
//!   never   a call
//! ```
//!
//! ```text
//! scenario E59 Zone goes dark
//! source an outage of one zone of three
//! given
//!   pool workers of 9 machines in zones a, b, c
//! when
//!   at 5m  zone a is cut off for 60m
//! then
//!   from 8m to 60m  no destructive call
//!   by 20m          workers-1 is held back: "zone a is dark"
//! ```
//!
//! Machines are called by their pool and a number, in the order in which they are made. Times count from the beginning of
//! the world. `given` statements change the fleet before it exists, `when` statements make something happen, `then`
//! statements are a window of time and a claim, about the world's truth (a machine answers, a call was made) or about
//! Reveille's word (a finding, a cause, what is held back and why). Every statement of each section is one phrase of one
//! table (`given`, `when`, `then`), so that the language is as long as these tables and no longer.
//!
//! Two expectations hold in every scenario, written or not: the twelve invariants hold after every step, and no machine is harmed
//! that did not deserve it. A scenario may be marked `not yet` with a reason: it is read and not played. Or `differs`, with a
//! reason: Reveille does something else than the source asks for, and the expectations say what it does.
//!
//! Nothing here judges machines or knows how the engine decides.

mod agent_claim;
mod agents;
mod cast;
mod claim;
mod counted;
mod deed;
mod given;
mod grammar;
mod happening;
mod hosting;
mod library;
mod phrase;
mod player;
mod refusal;
mod roster;
mod scene;
mod stage;
mod then;
mod timeline;
mod transcript;
mod when;
mod words;

use reveille_core::model::time::Span;

pub use grammar::parse;
pub use happening::{Happening, Happens};
pub use library::{Filed, library};
pub use player::{Ended, Expected, FinalSnapshot, Played, play, play_to_rest, play_under};
pub use refusal::Refusal;
pub use timeline::{Line, Side};
pub use transcript::transcript;

use crate::world::layout::Layout;

/// A scenario, read and checked.
#[derive(Debug)]
pub struct Scenario {
    /// Its number, as lists and people call it: `A1`.
    pub number: String,
    /// What it says, as a sentence.
    pub title: String,
    /// Where the idea comes from.
    pub source: String,
    /// Why it cannot be played yet.
    pub not_yet: Option<String>,
    /// What Reveille does otherwise than the source, and why.
    pub differs: Option<String>,
    /// The statements of `given`, as written.
    pub given: Vec<String>,
    pub(crate) layout: Layout,
    pub(crate) file: roster::File,
    pub(crate) acting: bool,
    pub(crate) events: Vec<when::Planned>,
    pub(crate) expectations: Vec<then::Expectation>,
    pub(crate) ends: Span,
}

/// Every phrase of a section, for people who write one: `given`, `when` and `then` in this order.
pub fn phrases() -> [(&'static str, Vec<&'static str>); 3] {
    [("given", given::forms()), ("when", when::forms()), ("then", then::forms())]
}

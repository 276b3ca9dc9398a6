//! A recording, played through this program's engine and compared with what was decided then.
//!
//! ```text
//!  recording: lines ─▶ header, steps ─▶ player: State::step ─▶ effects now ─┐
//!                                    │                                 ├─▶ compare ─▶ same, or first difference and count
//!                                    └ effects then ───────────────────┘        └─▶ story: one line for each decision
//! ```
//!
//! Under the same engine and roster the effects are the same, byte for byte, or something is wrong. Under another engine or
//! another roster they may part; then reads and calls are paired by what they ask (`player`), so that what follows is still
//! worth counting. What a recording cannot tell is what the world would have done next: after the first act that only one of
//! the two makes, the recorded world is no longer that of now, and the report says so.
//!
//! A recording can be cut down to one machine and kept as a regression test (`cut`, `filter`, `anonymise`).
//!
//! Another program than this one's engine cannot answer to recorded answers; a model of it looks on instead (`rival`).

pub(crate) mod anonymise;
pub(crate) mod compare;
pub(crate) mod cut;
pub(crate) mod filter;
pub(crate) mod player;
pub(crate) mod recording;
pub(crate) mod report;
pub(crate) mod rival;
pub(crate) mod shape;
pub(crate) mod story;

#[cfg(test)]
mod tests;

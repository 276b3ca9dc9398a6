//! Plays a recording through this program's engine, and compares the result with the recorded decisions.
//!
//! ```text
//!  recording: lines ─▶ header, steps ─▶ player: State::step ─▶ effects now ─┐
//!                                    │                                 ├─▶ compare ─▶ same, or first difference and count
//!                                    └ effects then ───────────────────┘        └─▶ story: one line for each decision
//! ```
//!
//! With the same engine and roster the effects are the same, byte for byte, or there is a bug. With another engine or
//! roster they may differ; then reads and calls are paired by their content (`player`), so that the rest is still worth
//! counting. A recording cannot show what the world would have done next. After the first action that only one of the two
//! takes, the recorded world does not fit the present decisions, and the report says so.
//!
//! A recording can be cut down to one machine and kept as a regression test (`cut`, `filter`, `anonymise`).
//!
//! A model of another program cannot use the recorded answers, so it only observes the recording (`rival`).

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

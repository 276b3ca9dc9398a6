//! Reports as text for people: calm, the most useful line first, columns aligned, nothing to decode.
//!
//! ```text
//!  report ─▶ roll | why | plan | incidents ─▶ String        Paper: width, colours, time zone
//! ```
//!
//! Everything arrives as plain data and leaves as one string, so that a page can be compared with a file. Colour only
//! underlines what a sign or a word says already. Foreign texts lose their control characters here. Nothing is decided.

pub(crate) mod incidents;
pub(crate) mod paper;
pub(crate) mod plan;
pub(crate) mod roll;
pub(crate) mod stage;
pub(crate) mod table;
pub(crate) mod why;

#[cfg(test)]
mod tests;

//! Weighs what a machine that never joined said of itself against its ports and groups.
//!
//! ```text
//!  LogFindings (judged outside the core) ─────┐
//!  ports, needed groups, instance ──────────┴▶ explain_never_joined ─▶ findings, ranked
//! ```
//!
//! The catalogue says what a text proves; see [`crate::model::log_findings`]. This module holds what the engine needs of texts
//! in any case: it masks them before any other code reads them, and bounds how much of a console is kept. This stage knows
//! no failure by its words.

mod explain;
mod lines;
mod mask;

use std::sync::Arc;

use crate::model::evidence::Evidence;

pub use explain::{NeverJoinedFacts, explain_never_joined};
pub use mask::{MASK, mask_secrets};

/// The last lines of a console log, masked, at most so many bytes; none where it says nothing.
pub fn last_lines(text: &str, bytes_max: usize) -> Option<Arc<str>> {
    let kept = keep(text.trim_end());
    let last = lines::end_of(&kept, bytes_max).trim();
    (!last.is_empty()).then(|| Arc::from(last))
}

/// As much of a console as an explanation quotes: its last lines, each still under its number.
pub fn as_quoted(text: &str) -> Arc<str> {
    Arc::from(lines::only_tail(text, explain::TAIL_LINES, Evidence::TEXT_BYTES_MAX))
}

/// How much of a console is judged, from its end.
pub const KEEP_BYTES_MAX: usize = 64 * 1024;

/// The end of a console log as it may be kept: masked, at most [`KEEP_BYTES_MAX`] bytes, from the start of a line.
pub fn keep(text: &str) -> Arc<str> {
    let masked = mask_secrets(lines::end_of(text, lines::READ_BYTES_MAX));
    Arc::from(lines::end_of(&masked, KEEP_BYTES_MAX))
}

//! What a request without success means, whichever cloud it went to: for a read, and for a change.
//!
//! An adapter's error says it of itself, once; [`report`](crate::report) makes the engine's terms of it.

use std::fmt;

use reveille_core::effect::ReadErrorKind;
use reveille_core::model::time::Span;

/// Why a request had no success, as an adapter reads it from its service.
pub trait Failure: fmt::Display {
    /// What it means for a read.
    fn read_kind(&self) -> ReadErrorKind;
    /// Not before this long, where a read that is repeated has to wait.
    fn retry_after(&self) -> Option<Span>;
    /// What it means for a change.
    fn ending(&self) -> Ending;
}

/// How a change without success ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It did not happen, and may go better later: not before this long, where that was said.
    NotDone(Option<Span>),
    /// It may have happened.
    Unknown,
    /// The credentials may not do it.
    Denied,
    /// A limit or quota is reached: this one, where it was said.
    Limit(Option<u32>),
    /// The thing is in another state than when this was decided.
    Moved,
    /// The service does not do it.
    Refused,
}

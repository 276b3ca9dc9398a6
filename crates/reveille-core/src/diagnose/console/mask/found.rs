//! A name that tells of a secret, where it was found in a text.

use std::ops::Range;

use super::names::Telling;
use super::value::Between;

/// A name that tells, and where its value begins.
#[derive(Clone, Debug)]
pub(super) struct Found {
    /// Where the name stands.
    pub(super) name: Range<usize>,
    /// What it tells.
    pub(super) telling: Telling,
    /// Where its value begins.
    pub(super) start: usize,
    /// What stands between them.
    pub(super) between: Between,
}

//! What a claim is held against: the play so far, and the window that the claim is about.

use reveille_core::model::time::Time;

use crate::drive::Drive;

use super::cast::Cast;
use super::counted::Kept;

/// What a claim is held against.
#[derive(Clone, Copy)]
pub(crate) struct Scene<'a> {
    pub(crate) drive: &'a Drive,
    pub(crate) cast: &'a Cast,
    pub(crate) kept: &'a Kept,
    /// When the play began.
    pub(crate) start: Time,
    /// Where the claim's window begins.
    pub(crate) from: Time,
    /// Several machines: one is enough. Otherwise it must be so of each.
    pub(crate) any: bool,
}

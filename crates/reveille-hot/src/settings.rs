//! The rates above which an object is hot, and the bounds of what the detector keeps.
//!
//! The two rates are those at which an API server begins to suffer. A write each five seconds for five minutes is no event but a
//! habit, and no controller needs two writes a second of one object. Kinds that are written by design have rates of their own
//! ([`kinds`](crate::kinds)).

use reveille_core::model::time::Span;

/// Writes for each thousand seconds: rates without fractions.
pub type MilliRate = u32;

/// Thresholds and bounds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// What an object may be written for ever, writes in 1000 s.
    pub sustained: MilliRate,
    /// For how long `sustained` may be exceeded, in writes at that rate.
    pub sustained_for: Span,
    /// What it may never be written, writes in 1000 s.
    pub at_once: MilliRate,
    /// So many writes in one go are a burst and no rate.
    pub burst: u32,
    /// A hot object that has been cool for this long is closed.
    pub cool_for: Span,
    /// Objects that are counted exactly. Above it the seldom written ones are forgotten first.
    pub objects_max: usize,
    /// Objects that are followed whole at once, to see what changes in them.
    pub followed_max: usize,
    /// Versions of one object that are looked at.
    pub versions_max: u32,
    /// An object is followed for so long at most.
    pub follow_for: Span,
    /// A verdict waits so long for what changes, and is then told without.
    pub told_within: Span,
    /// Verdicts that are open at once.
    pub verdicts_max: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            sustained: 200,
            sustained_for: Span::from_min(5),
            at_once: 2_000,
            burst: 10,
            cool_for: Span::from_min(2),
            objects_max: 50_000,
            followed_max: 8,
            versions_max: 60,
            follow_for: Span::from_s(60),
            told_within: Span::from_s(5),
            verdicts_max: 100,
        }
    }
}

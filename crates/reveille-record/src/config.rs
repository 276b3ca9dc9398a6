//! The bounds of a ledger: one struct, passed explicitly.
//!
//! On disk a ledger takes at most `segments_kept + 2` segments (kept ones, the current one, and a new one while it is
//! being written). A segment is at most `max(segment_bytes_max, 2 x its checkpoint)`, plus the one batch that made rotation
//! due. This holds as long as the caller rotates when [`crate::Ledger::rotation_due`] says so. The ledger does not refuse
//! records to keep this bound: rotation itself may fail on a full disk, and a record is worth more than the bound.

/// The size limits of a ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Rotation is due when the current segment reaches this many bytes, and at least half of it is not checkpoint.
    pub segment_bytes_max: u64,
    /// How many older segments stay for history, beside the current one.
    pub segments_kept: usize,
    /// The largest record, as JSON. A larger one is a mistake of the caller, and the ledger refuses it.
    pub record_bytes_max: usize,
    /// How many bytes may wait for `sync`.
    pub batch_bytes_max: usize,
}

impl Config {
    /// A segment holds 8 MiB, so a start reads it in well under a second. Eight older segments hold months of incidents.
    /// A record has at most 1 MiB (a console excerpt has 64 KiB), a batch at most 4 MiB.
    pub const STANDARD: Self = Self {
        segment_bytes_max: 8 << 20,
        segments_kept: 7,
        record_bytes_max: 1 << 20,
        batch_bytes_max: 4 << 20,
    };
}

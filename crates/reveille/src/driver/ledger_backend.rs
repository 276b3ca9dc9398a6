//! What the driver wants of a ledger, and the real one behind it.
//!
//! [`LedgerBackend`] is the seam for tests of the driver: a full disk, a slow one. In production it is
//! [`super::ledger_store::LedgerStore`], a ledger of wire-format lines in a directory that this process holds the lock of.
//! Nothing here knows what a record means.

use std::sync::Arc;

use reveille_core::effect::Call;
use reveille_core::model::id::Fence;
use reveille_core::model::time::Time;
use reveille_core::record::Record;

/// Where records become durable.
pub(crate) trait LedgerBackend: Send {
    /// Makes them durable, in order, and answers for each. A text says what went wrong and what to do.
    fn keep(&mut self, batch: &[Record]) -> Vec<Result<(), Arc<str>>>;
    /// True when a checkpoint should begin a new segment.
    fn rotation_due(&self) -> bool;
    /// Begins a new segment with these records, which restore everything that matters.
    fn rotate(&mut self, checkpoint: &[Record]) -> Result<(), String>;
    /// True when nothing more will ever be taken by this process.
    fn is_over(&self) -> bool;
    /// Notes that we live.
    fn beat(&mut self, now: Time) -> Result<(), String>;
}

/// Whether this process may act, as far as the ledger's lock tells now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Lead {
    /// The lock names this number.
    Holds(Fence),
    /// The lock file is gone: another process may lock a new one.
    Gone(Arc<str>),
    /// The lock file cannot be read at the moment (too many open files, an I/O error, no rights). That is no statement about
    /// who leads: it is read again.
    Unread(Arc<str>),
}

/// Tells whether this process may make this call now.
pub(crate) type FenceCheck = Arc<dyn Fn(&Call) -> Lead + Send + Sync>;

//! The driver's interface to a ledger, and its real implementation.
//!
//! Tests of the driver replace [`LedgerBackend`] by a full disk or a slow one. In production it is
//! [`super::ledger_store::LedgerStore`], a ledger of wire-format lines in a directory that this process has locked.
//! Nothing here knows what a record means.

use std::sync::Arc;

use reveille_core::effect::Call;
use reveille_core::model::id::Fence;
use reveille_core::model::time::Time;
use reveille_core::record::Record;

/// Where records become durable.
pub(crate) trait LedgerBackend: Send {
    /// Makes the records durable, in order, and answers for each. The text of an error says what went wrong and what to do.
    fn keep(&mut self, batch: &[Record]) -> Vec<Result<(), Arc<str>>>;
    /// True when a checkpoint should begin a new segment.
    fn rotation_due(&self) -> bool;
    /// Begins a new segment with these records, which hold all that a start needs.
    fn rotate(&mut self, checkpoint: &[Record]) -> Result<(), String>;
    /// True when this process can write no more records.
    fn is_over(&self) -> bool;
    /// Writes that this process is alive.
    fn beat(&mut self, now: Time) -> Result<(), String>;
}

/// Whether this process may act, as far as the ledger's lock shows now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Lead {
    /// The lock file holds this fence.
    Holds(Fence),
    /// The lock file is gone: another process may lock a new one.
    Gone(Arc<str>),
    /// The lock file cannot be read at the moment (too many open files, an I/O error, no permission). This does not tell
    /// which process leads, so the caller reads it again.
    Unread(Arc<str>),
}

/// Checks whether this process may make this call now.
pub(crate) type FenceCheck = Arc<dyn Fn(&Call) -> Lead + Send + Sync>;

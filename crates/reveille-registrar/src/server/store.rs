//! The registry's records on disk, in the same format and with the same care as every other ledger.

use std::path::Path;

use reveille_core::model::time::Time;
use reveille_record::{Config, Holder, Ledger, OpenError};

use crate::registry::Record;

/// A ledger of records, held by this process.
pub(super) struct Store(Ledger<Record>);

impl Store {
    /// Opens the ledger and reads it back.
    pub(super) fn open(directory: &Path, now: Time) -> Result<(Self, Vec<Record>), OpenError> {
        // A checkpoint of fifty thousand machines has about forty megabytes; larger segments rotate less often.
        let config = Config { segment_bytes_max: 32 << 20, segments_kept: 2, ..Config::STANDARD };
        let opened = Ledger::open(directory, &Holder::this_process("reveille run --listen", now.ms), config)?;
        for repair in &opened.repairs {
            tracing::info!(directory = %directory.display(), "the registrations' ledger was mended: {repair:?}");
        }
        Ok((Self(opened.ledger), opened.records))
    }

    /// Makes a batch durable, all of it, or returns an error. After an error the server must not answer any more: the
    /// registry then remembers more than the disk.
    pub(super) fn keep<'r>(&mut self, batch: impl Iterator<Item = &'r Record>) -> Result<(), String> {
        let mut some = false;
        for record in batch {
            some = true;
            if let Err(error) = self.0.append(record) {
                if !matches!(error, reveille_record::AppendError::BatchFull { .. }) {
                    return Err(error.to_string());
                }
                self.0.sync().map_err(|error| error.to_string())?;
                self.0.append(record).map_err(|error| error.to_string())?;
            }
        }
        if some { self.0.sync().map(drop).map_err(|error| error.to_string()) } else { Ok(()) }
    }

    /// A new segment is due.
    pub(super) const fn is_full(&self) -> bool {
        self.0.rotation_due()
    }

    /// Begins a new segment with a checkpoint.
    pub(super) fn rotate(&mut self, checkpoint: &[Record]) -> Result<(), String> {
        self.0.rotate(checkpoint).map(drop).map_err(|error| error.to_string())
    }

    /// Records that this process is alive.
    pub(super) fn beat(&self, now: Time) -> Result<(), String> {
        self.0.heartbeat(now.ms).map_err(|error| error.to_string())
    }
}

//! The ledger on disk as the driver's backend, and how a start restores its memory from it.
//!
//! ```text
//!  open: lock, repair, replay ─▶ records, fence, last heartbeat ─▶ State::restore
//!  keep: Record ─▶ wire line ─▶ append … append, one sync
//! ```
//!
//! Before each call the store compares the call's fence with the one in the lock file, which it reads again each time. A
//! process that took over has written a higher one there. A lock file that cannot be read proves nothing, and is read
//! again. This module does no other I/O than the ledger's.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use reveille_core::model::id::Fence;
use reveille_core::model::time::Time;
use reveille_core::record::Record;
use reveille_record::{
    AppendError, Config, FenceUnread, HeartbeatError, Holder, Ledger, OpenError, Repair, RotateError,
};
use reveille_wire::ledger::{FromWireError, LedgerLine, from_wire, to_wire};
use thiserror::Error;

use super::ledger_backend::{FenceCheck, Lead, LedgerBackend};

/// A ledger that this process has locked.
pub(crate) struct LedgerStore {
    ledger: Ledger<LedgerLine>,
    over: bool,
}

/// A ledger that was opened, and its content.
pub(crate) struct OpenLedgerStore {
    /// The store to write to.
    pub(crate) ledger_store: LedgerStore,
    /// What to restore from.
    pub(crate) records: Vec<Record>,
    /// The fence of this process.
    pub(crate) fence: Fence,
    /// When the previous process was last alive.
    pub(crate) last_alive: Option<Time>,
}

/// Why there is no usable ledger.
#[derive(Debug, Error)]
pub(crate) enum LedgerStoreError {
    /// The ledger could not be opened.
    #[error("cannot open the ledger")]
    Open(#[from] OpenError),
    /// A record is not readable for this version.
    #[error("cannot read record {number} of the ledger in {}", directory.display())]
    Record {
        /// The directory.
        directory: PathBuf,
        /// The number of the record, from 1.
        number: usize,
        /// The reason.
        source: FromWireError,
    },
}

/// Locks the ledger of a state directory, and creates it where there is none.
pub(crate) fn open(directory: &Path, command: &str, now: Time) -> Result<OpenLedgerStore, LedgerStoreError> {
    let holder = Holder::this_process(command, now.ms);
    let opened = Ledger::open(directory, &holder, Config::STANDARD)?;
    for repair in &opened.repairs {
        report(directory, repair);
    }
    let records = read_lines(directory, opened.records)?;
    Ok(OpenLedgerStore {
        ledger_store: LedgerStore { ledger: opened.ledger, over: false },
        records,
        fence: Fence(opened.fence.0),
        last_alive: opened.last_alive_ms.map(Time::from_ms),
    })
}

/// Converts lines into records.
pub(crate) fn read_lines(directory: &Path, lines: Vec<LedgerLine>) -> Result<Vec<Record>, LedgerStoreError> {
    let read = |(index, line)| {
        let fail =
            |source| LedgerStoreError::Record { directory: directory.to_owned(), number: index + 1, source };
        from_wire(line).map_err(fail)
    };
    lines.into_iter().enumerate().map(read).collect()
}

fn report(directory: &Path, repair: &Repair) {
    let directory = directory.display();
    match repair {
        Repair::TornTail { bytes, .. } => {
            tracing::info!(
                "the ledger in {directory} ended in {bytes} bytes that were never acknowledged; they were set aside"
            );
        }
        Repair::MissingNewline { .. } => tracing::debug!("the ledger in {directory} lacked its last newline"),
        Repair::UnfinishedRotation { file } => {
            tracing::info!(
                "the ledger in {directory} had begun a new segment ({file}); it goes on with the one before"
            );
        }
        Repair::HistoryDamaged { segment, what, .. } => {
            tracing::warn!(
                "segment {} of the ledger in {directory} is damaged: {what}. Nothing is restored from it",
                segment.0
            );
        }
    }
}

/// Reads the fence in the lock file before each call.
pub(crate) fn fence_check(directory: &Path) -> FenceCheck {
    let directory = directory.to_owned();
    Arc::new(move |_| lead(&directory))
}

/// What the lock file shows now.
fn lead(directory: &Path) -> Lead {
    match reveille_record::read_fence(directory) {
        Ok(fence) => Lead::Holds(Fence(fence.0)),
        Err(error @ FenceUnread::Gone { .. }) => Lead::Gone(chain(&error)),
        Err(error @ FenceUnread::Unreadable { .. }) => Lead::Unread(chain(&error)),
    }
}

impl LedgerBackend for LedgerStore {
    fn keep(&mut self, batch: &[Record]) -> Vec<Result<(), Arc<str>>> {
        let mut answers: Vec<Result<(), Arc<str>>> = Vec::with_capacity(batch.len());
        let mut unsynced = 0;
        for record in batch {
            let line = to_wire(record);
            let mut appended = self.ledger.append(&line);
            if matches!(appended, Err(AppendError::BatchFull { .. })) {
                self.sync(&mut answers, unsynced);
                unsynced = 0;
                appended = self.ledger.append(&line);
            }
            self.over |= matches!(appended, Err(AppendError::Broken));
            unsynced += 1;
            answers.push(appended.map(drop).map_err(|error| chain(&error)));
        }
        self.sync(&mut answers, unsynced);
        answers
    }

    fn rotation_due(&self) -> bool {
        self.ledger.rotation_due()
    }

    fn rotate(&mut self, checkpoint: &[Record]) -> Result<(), String> {
        let lines: Vec<LedgerLine> = checkpoint.iter().map(to_wire).collect();
        let rotated = self.ledger.rotate(&lines).map_err(|error| {
            self.over |= match &error {
                RotateError::Broken(_) => true,
                RotateError::Sync(sync) => sync.is_final(),
                RotateError::Checkpoint { .. } | RotateError::NotWritten { .. } => false,
            };
            chain(&error).to_string()
        })?;
        if let Some(error) = rotated.not_removed {
            tracing::warn!(
                "old segments of the ledger could not be removed: {error}; the next rotation tries again"
            );
        }
        Ok(())
    }

    fn beat(&mut self, now: Time) -> Result<(), String> {
        self.ledger.heartbeat(now.ms).map_err(|error| {
            self.over |= matches!(error, HeartbeatError::LockLost { .. });
            chain(&error).to_string()
        })
    }

    fn is_over(&self) -> bool {
        self.over
    }
}

impl LedgerStore {
    /// Makes the newest `count` answers true, or turns them into refusals.
    fn sync(&mut self, answers: &mut [Result<(), Arc<str>>], count: usize) {
        let Err(error) = self.ledger.sync() else { return };
        self.over |= error.is_final();
        let why = chain(&error);
        let from = answers.len().saturating_sub(count);
        for answer in &mut answers[from..] {
            *answer = Err(why.clone());
        }
    }
}

/// An error with its causes on one line.
fn chain(error: &dyn std::error::Error) -> Arc<str> {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    Arc::from(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn started(fence: u64) -> Record {
        Record::Started { at: Time::from_ms(1_000), fence: Fence(fence) }
    }

    #[test]
    fn ledger_is_read_back_and_second_process_is_told_its_holder() {
        let directory = tempfile::tempdir().unwrap();
        let mut first = open(directory.path(), "reveille run", Time::from_ms(5)).unwrap();
        assert!(first.records.is_empty() && first.last_alive.is_none());
        assert!(first.ledger_store.keep(&[started(1), started(2)]).iter().all(Result::is_ok));
        let Err(error) = open(directory.path(), "reveille run", Time::from_ms(6)) else { panic!("held") };
        assert!(chain(&error).contains("reveille run"), "{}", chain(&error));
        first.ledger_store.beat(Time::from_ms(7_000)).unwrap();
        drop(first);
        let second = open(directory.path(), "reveille run", Time::from_ms(8_000)).unwrap();
        assert_eq!(second.records, [started(1), started(2)]);
        assert_eq!(second.last_alive, Some(Time::from_ms(7_000)));
    }

    #[test]
    fn a_checkpoint_replaces_what_was_before() {
        let directory = tempfile::tempdir().unwrap();
        let mut ledger_store = open(directory.path(), "reveille run", Time::from_ms(5)).unwrap().ledger_store;
        assert!(ledger_store.keep(&[started(1)]).iter().all(Result::is_ok));
        ledger_store.rotate(&[started(9)]).unwrap();
        drop(ledger_store);
        let again = open(directory.path(), "reveille run", Time::from_ms(6)).unwrap();
        assert_eq!(again.records, [started(9)]);
    }

    #[test]
    fn the_fence_is_read_from_the_lock_each_time() {
        let directory = tempfile::tempdir().unwrap();
        let check = || lead(directory.path());
        assert!(matches!(check(), Lead::Gone(_)), "no process holds it");
        let first = open(directory.path(), "reveille run", Time::from_ms(5)).unwrap();
        assert_eq!(check(), Lead::Holds(first.fence));
        drop(first);
        let second = open(directory.path(), "reveille run", Time::from_ms(6)).unwrap();
        assert_eq!(check(), Lead::Holds(second.fence));
        let mut ledger_store = second.ledger_store;
        std::fs::remove_file(directory.path().join("ledger/lock")).unwrap();
        assert!(matches!(check(), Lead::Gone(_)), "without the lock no process leads");
        assert!(!ledger_store.is_over());
        assert!(ledger_store.beat(Time::from_ms(7)).is_err());
        assert!(ledger_store.is_over(), "and the process that lost it writes no more");
        assert!(ledger_store.keep(&[started(3)])[0].is_err());
    }
}

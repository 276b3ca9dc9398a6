//! The errors of the ledger and of the pauses: one type per operation, and each text says what to do next.
//!
//! Causes are kept as sources and not repeated in the text. Two facts decide what a caller can do: whether the ledger
//! is still usable (everything but `Broken`), and which records are not in it ([`SyncError::not_kept`]).

use std::io;
use std::ops::Range;
use std::path::PathBuf;

use thiserror::Error;

use crate::line::Seq;
use crate::lock::Holder;

/// A place in a file whose content is damaged.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{}, line {line}: {what}", file.display())]
pub struct Damage {
    /// Which file.
    pub file: PathBuf,
    /// Which line of it, from 1.
    pub line: usize,
    /// What is wrong there.
    pub what: String,
}

/// Why a ledger was not opened.
#[derive(Debug, Error)]
pub enum OpenError {
    /// Another process has it.
    #[error(
        "the ledger in {} is held by {}; only one process may write it. Stop that one first, or use another state directory",
        directory.display(),
        holder.as_ref().map_or_else(|| "another process that has not signed yet".into(), Holder::to_string)
    )]
    Held {
        /// The ledger's directory.
        directory: PathBuf,
        /// The process that holds it, when the lock file says so.
        holder: Option<Holder>,
    },
    /// The ledger is damaged in a place that had been durable, so a record that was acknowledged is lost.
    #[error(
        "the ledger is damaged in a place that was whole before: {0}. Nothing was changed. Put the file back from a copy, \
         or move the ledger's directory away to begin with an empty one (everything is then observed again before \
         anything is done)"
    )]
    Damaged(Damage),
    /// The record passed its checksum, but this version does not understand its content.
    #[error(
        "{}, line {line}: the record is whole, but not one that this version understands; use the version that wrote it",
        file.display()
    )]
    NotUnderstood {
        /// Which file.
        file: PathBuf,
        /// Which line of it.
        line: usize,
        /// What the decoder said.
        source: serde_json::Error,
    },
    /// The file system refused.
    #[error("cannot {doing} in {}; make the directory writable and see that its disk has space", directory.display())]
    Io {
        /// What was tried.
        doing: &'static str,
        /// Where.
        directory: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// Why a record was not taken. The ledger is as before.
#[derive(Debug, Error)]
pub enum AppendError {
    /// The record cannot be written as JSON, which is a mistake in its type.
    #[error("the record cannot be written as JSON; it was left out")]
    NotJson(#[source] serde_json::Error),
    /// The record is larger than the ledger takes.
    #[error("the record has {bytes} bytes and the ledger takes at most {most}; shorten its texts")]
    TooLarge {
        /// Its size.
        bytes: usize,
        /// The limit.
        most: usize,
    },
    /// Too much waits for `sync`.
    #[error("{waiting} bytes wait to be made durable, which is the most; sync first")]
    BatchFull {
        /// How much.
        waiting: usize,
    },
    /// An earlier failure left the files in an unknown state.
    #[error("the ledger was closed by an earlier failure; end the process, the next opening repairs it")]
    Broken,
}

/// Why a batch is not durable. None of its records is in the ledger, now or after a restart, unless it is `Broken`.
#[derive(Debug, Error)]
pub enum SyncError {
    /// The batch was not written, and the ledger removed the part of it that had been written. The ledger is usable.
    #[error(
        "{} not kept: the batch of {bytes} bytes could not be written and was taken back. \
         See that the disk has space; later records may succeed",
        were(not_kept)
    )]
    NotWritten {
        /// The numbers of these records; later records get them.
        not_kept: Range<Seq>,
        /// Size of the batch.
        bytes: usize,
        /// What the system said.
        source: io::Error,
    },
    /// The batch was not written, and the ledger could not remove its written part. The next opening finds
    /// whether the batch is there.
    #[error(
        "{} perhaps not kept, and the ledger is closed: a failed write could not be taken back. \
         See to the disk and end the process; the next opening repairs the ledger",
        were(in_doubt)
    )]
    Broken {
        /// The numbers of these records.
        in_doubt: Range<Seq>,
        /// What the system said to the second failure.
        source: io::Error,
    },
    /// The lock file was deleted or replaced: another process may write now.
    #[error(
        "{} not written: the lock file {} is no longer the one this process locked, so another may \
         hold the ledger. This process stops writing; end it, and leave the lock file alone",
        were(not_kept), lock.display()
    )]
    LockLost {
        /// The numbers of these records.
        not_kept: Range<Seq>,
        /// The lock file.
        lock: PathBuf,
    },
    /// An earlier failure closed the ledger.
    #[error("the ledger was closed by an earlier failure; end the process, the next opening repairs it")]
    Closed,
}

/// Subject and verb of a sentence about these records.
fn were(numbers: &Range<Seq>) -> String {
    match numbers.end.0.saturating_sub(numbers.start.0) {
        0 => "nothing waited, and more is".into(),
        1 => format!("record {} was", numbers.start),
        _ => format!("records {} to {} were", numbers.start, numbers.end.0 - 1),
    }
}

impl SyncError {
    /// Records that the caller must treat as not kept.
    pub fn not_kept(&self) -> Option<Range<Seq>> {
        match self {
            Self::NotWritten { not_kept, .. } | Self::LockLost { not_kept, .. } => Some(not_kept.clone()),
            Self::Broken { in_doubt, .. } => Some(in_doubt.clone()),
            Self::Closed => None,
        }
    }

    /// True when the ledger takes no more records in this process.
    pub const fn is_final(&self) -> bool {
        !matches!(self, Self::NotWritten { .. })
    }
}

/// Why the ledger was not rotated.
#[derive(Debug, Error)]
pub enum RotateError {
    /// The records that waited could not be made durable before the rotation.
    #[error("cannot rotate: what was appended before could not be made durable")]
    Sync(#[from] SyncError),
    /// A record of the checkpoint was not taken.
    #[error("cannot rotate: record {index} of the checkpoint was not taken; the current segment goes on")]
    Checkpoint {
        /// Which, from 0.
        index: usize,
        /// Why.
        source: AppendError,
    },
    /// The new segment could not be written. The current one goes on.
    #[error("cannot rotate: {doing} failed; the current segment goes on. See that the disk has space")]
    NotWritten {
        /// What was tried.
        doing: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// The new segment exists, but its name may not be durable. The ledger is closed.
    #[error(
        "the rotation is in doubt: the directory could not be made durable; end the process, the next opening repairs it"
    )]
    Broken(#[source] io::Error),
}

/// Why the heartbeat was not written.
#[derive(Debug, Error)]
pub enum HeartbeatError {
    /// The lock file was deleted or replaced.
    #[error("the lock file {} is no longer the one this process locked; another may hold the ledger. End this process", lock.display())]
    LockLost {
        /// The lock file.
        lock: PathBuf,
    },
    /// The file system refused. Nothing depends on a single heartbeat.
    #[error("cannot note in {} that this process is alive", lock.display())]
    Io {
        /// The lock file.
        lock: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// Why a ledger was not read.
#[derive(Debug, Error)]
pub enum ReadError {
    /// The ledger was damaged in a place that had been durable.
    #[error("the ledger is damaged: {0}. What is left can be read leniently")]
    Damaged(Damage),
    /// The record passed its checksum, but this version does not understand its content.
    #[error(
        "{}, line {line}: the record is whole, but not one that this version understands; use the version that wrote it",
        file.display()
    )]
    NotUnderstood {
        /// Which file.
        file: PathBuf,
        /// Which line of it.
        line: usize,
        /// What the decoder said.
        source: serde_json::Error,
    },
    /// The file system refused.
    #[error("cannot read the ledger in {}", directory.display())]
    Io {
        /// Where.
        directory: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// Why a pause was not set, removed or read.
#[derive(Debug, Error)]
pub enum PauseError {
    /// The name cannot name a pause.
    #[error(
        "\"{name}\" cannot name a pause: 1 to 80 of a-z, A-Z, 0-9, '.', '_', '-' and '%', not beginning with '.'"
    )]
    Name {
        /// As given.
        name: String,
    },
    /// The file is not a pause.
    #[error(
        "{} is not a pause that can be read; correct or remove it. Until then it may cover anything",
        file.display()
    )]
    Malformed {
        /// Which file.
        file: PathBuf,
        /// What the decoder said.
        source: serde_json::Error,
    },
    /// The file system refused.
    #[error("cannot {doing} {}", file.display())]
    Io {
        /// What was tried.
        doing: &'static str,
        /// With which file.
        file: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

//! What an opening repaired or noticed, as text for the log.
//!
//! None of it is a reason to stop. A tail that was cut off had never been acknowledged, and a fault in an older segment
//! does not affect the restored state. Damage that affects the restored state is an error of the opening.

use std::fmt;

use crate::segment::SegmentNumber;

/// A repair or an observation of [`crate::Ledger::open`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Repair {
    /// The tail of the current segment did not consist of whole lines. It was never acknowledged; it is cut off and kept
    /// in a `.torn` file.
    TornTail {
        /// Which segment.
        segment: SegmentNumber,
        /// How many bytes were cut off.
        bytes: u64,
    },
    /// The last line lacked only its newline; the line was kept.
    MissingNewline {
        /// Which segment.
        segment: SegmentNumber,
    },
    /// A rotation had not finished; its half-written segment was removed. The segment before it still holds all records.
    UnfinishedRotation {
        /// The file that was removed.
        file: String,
    },
    /// An older segment, from which no state is restored, is damaged or gone. The opening leaves it as it is.
    HistoryDamaged {
        /// Which segment.
        segment: SegmentNumber,
        /// Line in its file, from 1; none where the file itself cannot be read.
        line: Option<usize>,
        /// What is wrong with it.
        what: String,
    },
}

impl fmt::Display for Repair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TornTail { segment, bytes } => write!(
                f,
                "the last {bytes} bytes of segment {segment} were never acknowledged (a crash in the middle of a write); \
                 cut off and kept in {}",
                segment.torn_name()
            ),
            Self::MissingNewline { segment } => {
                write!(
                    f,
                    "the last line of segment {segment} had lost its newline; kept, and the newline put back"
                )
            }
            Self::UnfinishedRotation { file } => {
                write!(
                    f,
                    "a rotation was interrupted; its unfinished file {file} was removed, nothing is lost"
                )
            }
            Self::HistoryDamaged { segment, line: Some(line), what } => {
                write!(
                    f,
                    "history only: {}, line {line}: {what}; nothing is restored from it",
                    segment.file_name()
                )
            }
            Self::HistoryDamaged { segment, line: None, what } => {
                write!(f, "history only: {}: {what}; nothing is restored from it", segment.file_name())
            }
        }
    }
}

//! The errors of recordings, and what to do next.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// Why a recording cannot be written or read.
#[derive(Debug, Error)]
pub enum RecordingError {
    /// A file or directory of the recording refused an operation.
    #[error("cannot {doing} {}", path.display())]
    Io {
        /// What was tried.
        doing: &'static str,
        /// With what.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// This run alone fills the space that recordings may take.
    #[error(
        "this run alone fills the {bytes_max} bytes that recordings may take. Allow more, or start it again: a new run begins a new recording"
    )]
    Full {
        /// The bound.
        bytes_max: u64,
    },
    /// A byte differs from what was written.
    #[error("{}, frame {frame} at byte {byte}: {what}. What stands before it can be read up to there with --until", file.display())]
    Damaged {
        /// Which file.
        file: PathBuf,
        /// Which frame of it, from 1.
        frame: usize,
        /// Where it begins.
        byte: usize,
        /// What is wrong with it.
        what: &'static str,
    },
    /// Its format is a newer one.
    #[error("{} is of recording format {found}, and this program reads format 1. Replay it with the program that wrote it, or a newer one", file.display())]
    Format {
        /// Which file.
        file: PathBuf,
        /// Which format.
        found: String,
    },
    /// A segment is gone.
    #[error("segment {number} of the recording in {} is missing, and what comes after it rests on it", directory.display())]
    Missing {
        /// The directory of the recording.
        directory: PathBuf,
        /// The number of the segment.
        number: u32,
    },
    /// There is no recording at the path.
    #[error("{} is no recording", path.display())]
    None {
        /// Where.
        path: PathBuf,
    },
}

impl RecordingError {
    /// For `map_err`.
    pub(crate) fn io(doing: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { doing, path, source }
    }
}

//! Recordings on disk: lines that one process writes and a replay reads, compressed and with checksums. No decision
//! depends on them.
//!
//! ```text
//!  ROOT/RUN/0000000001.tape   "reveille-tape 1\n", then frames; the next segment begins when one is full
//!  ROOT/RUN/notice.txt        there while a recording is under way, and afterwards when it did not end well, with the reason
//!
//!  append(line) ─▶ zstd stream ─▶ flush: one frame [ "RVLF" length crc crc-of-this | bytes of the stream ] ─▶ write
//! ```
//!
//! A frame holds whole lines and is readable as soon as it is written. So a killed process loses only what it had not
//! flushed: the last frame of the last segment may be cut short, and a replay reads everything before it. Any other
//! changed byte is damage, and the reader refuses it and names its place. A segment is one zstd stream, because lines
//! repeat what earlier lines said. For the same reason a run is read from its first line on.
//!
//! All runs below one root share a size limit. The writer removes the oldest runs first, each as a whole. When one run
//! alone reaches the limit, its recording ends; a recording that began in its middle could not be replayed.
//!
//! The reader also takes a plain file of lines, which begins with `{`. Recordings that are kept beside the code have this
//! form, so that they can be reviewed.
//!
//! Deliberately not here: fsync (a recording may lose its end to a power cut), what a line means, and any clock.

mod error;
mod frame;
mod read;
mod write;

pub use error::RecordingError;
pub use read::{RecordingEnding, RecordingLine, RecordingReader, runs};
pub use write::{RecordingConfig, RecordingWriter};

/// The file in which a run keeps its status.
pub(crate) const NOTICE: &str = "notice.txt";

/// A segment's file name.
pub(crate) fn file_name(segment: u32) -> String {
    format!("{segment:010}.tape")
}

/// The segment's number in a file name.
pub(crate) fn segment_of(name: &str) -> Option<u32> {
    let digits = name.strip_suffix(".tape")?;
    let plain = digits.len() == 10 && digits.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| digits.parse().ok()).flatten()
}

#[cfg(test)]
mod tests;

//! Recordings on disk: lines that one process writes and a replay reads, compressed and checked; nothing rests on them.
//!
//! ```text
//!  ROOT/RUN/0000000001.tape   "reveille-tape 1\n", then frames; the next segment begins when one is full
//!  ROOT/RUN/notice.txt        there while a recording is under way, and afterwards when it did not end well, with the reason
//!
//!  append(line) ─▶ zstd stream ─▶ flush: one frame [ "RVLF" length crc crc-of-this | bytes of the stream ] ─▶ write
//! ```
//!
//! A frame holds whole lines and is readable as soon as it is written, so a process that was killed loses what it had not
//! flushed and nothing else: the last frame of the last segment may be cut short, and everything before it is read. Any
//! other byte that is not as it was written is damage, and is refused with its place. A segment is one zstd stream, because
//! lines repeat what earlier lines said; a run is read from its first line on for the same reason.
//!
//! All runs below one root share a bound. The oldest runs go first, each as a whole. A run that fills the bound alone is
//! over; a recording that began in its middle could not be replayed.
//!
//! A plain file of lines, one that begins with `{`, is read too: recordings that are kept beside the code are reviewed.
//!
//! Deliberately not here: fsync (a recording may lose its end to a power cut), what a line means, and any clock.

mod error;
mod frame;
mod read;
mod write;

pub use error::TapeError;
pub use read::{TapeEnding, TapeLine, TapeReader, runs};
pub use write::{TapeConfig, TapeWriter};

/// What the file of a run says about how it stands.
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

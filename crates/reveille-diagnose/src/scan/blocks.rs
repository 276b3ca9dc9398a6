//! Cuts a long source into blocks of whole lines.
//!
//! A line that fills a block by itself is cut at the bound of lines, and its rest is passed over. What was read before an error
//! counts: the block comes first, the error at the end.

use std::io::{self, BufRead, Read as _};

use memchr::memrchr;

use super::bounded_line;
use crate::lines::LINE_BYTES_MAX;

/// How much is held at a time.
pub(super) const BLOCK_BYTES: usize = 1 << 18;

/// The rest of a source.
pub(super) struct Blocks<'f, R> {
    from: &'f mut R,
    /// The beginning of a line that the last block did not hold whole.
    rest: Vec<u8>,
    bytes: usize,
    ended: bool,
    error: Option<io::Error>,
}

impl<'f, R: BufRead> Blocks<'f, R> {
    pub(super) fn of(from: &'f mut R, bytes: usize) -> Self {
        Self { from, rest: Vec::new(), bytes, ended: false, error: None }
    }

    /// Fills a block in place of what it held; false at the end, when it stays empty.
    pub(super) fn next(&mut self, block: &mut Vec<u8>) -> bool {
        block.clear();
        if self.ended {
            return false;
        }
        block.append(&mut self.rest);
        let room = self.bytes.saturating_sub(block.len()) as u64;
        let read = self.from.by_ref().take(room).read_to_end(block);
        self.ended = read.is_err() || block.len() < self.bytes;
        self.error = read.err();
        if !self.ended {
            match memrchr(b'\n', block) {
                Some(newline) => self.rest.extend(block.drain(newline + 1..)),
                None => self.cut(block),
            }
        }
        !block.is_empty()
    }

    /// A line that is longer than a block.
    fn cut(&mut self, block: &mut Vec<u8>) {
        block.truncate(LINE_BYTES_MAX);
        block.push(b'\n');
        if let Err(error) = bounded_line(self.from, &mut Vec::new()) {
            (self.ended, self.error) = (true, Some(error));
        }
    }

    /// The source's own error, if it ended with one.
    pub(super) fn end(self) -> io::Result<()> {
        self.error.map_or(Ok(()), Err)
    }
}

//! UTF-16 as UTF-8: what Windows tools write.

use std::io::{self, BufRead, Read};

/// Reads UTF-16 and yields UTF-8; what is no character becomes a replacement.
pub(super) struct Utf16<'p> {
    from: &'p mut dyn BufRead,
    little: bool,
    high: Option<u16>,
    out: Vec<u8>,
    at: usize,
}

impl<'p> Utf16<'p> {
    pub(super) fn new(from: &'p mut dyn BufRead, little: bool) -> Self {
        Self { from, little, high: None, out: Vec::new(), at: 0 }
    }

    fn fill(&mut self) -> io::Result<()> {
        const CHUNK_BYTES: u64 = 8192;
        let mut bytes = Vec::new();
        (&mut *self.from).take(CHUNK_BYTES).read_to_end(&mut bytes)?;
        self.out.clear();
        self.at = 0;
        let units = bytes.chunks_exact(2).map(|pair| match self.little {
            true => u16::from_le_bytes([pair[0], pair[1]]),
            false => u16::from_be_bytes([pair[0], pair[1]]),
        });
        let mut units: Vec<u16> = self.high.take().into_iter().chain(units).collect();
        // Half a pair waits for the next chunk.
        if units.last().is_some_and(|unit| (0xd800..0xdc00).contains(unit))
            && bytes.len() as u64 == CHUNK_BYTES
        {
            self.high = units.pop();
        }
        let mut letter = [0; 4];
        for c in char::decode_utf16(units) {
            let c = c.unwrap_or(char::REPLACEMENT_CHARACTER);
            if c != '\u{feff}' {
                self.out.extend_from_slice(c.encode_utf8(&mut letter).as_bytes());
            }
        }
        Ok(())
    }
}

impl Read for Utf16<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.at == self.out.len() {
            self.fill()?;
        }
        let length = buffer.len().min(self.out.len() - self.at);
        buffer[..length].copy_from_slice(&self.out[self.at..self.at + length]);
        self.at += length;
        Ok(length)
    }
}

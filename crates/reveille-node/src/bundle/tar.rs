//! Writes a tar archive (POSIX ustar) of small files: for each a header of 512 bytes, then its content, padded.
//!
//! Times and owners are 0, so that the same content gives the same bytes.

use std::io::{self, Write};

const BLOCK_BYTES: usize = 512;
/// The two fields of a name, of which the first ends at a slash.
const NAME_BYTES: usize = 100;
const PREFIX_BYTES: usize = 155;

/// An archive that is being written.
pub(super) struct Archive<W>(W);

impl<W: Write> Archive<W> {
    pub(super) const fn new(to: W) -> Self {
        Self(to)
    }

    /// Adds a file.
    pub(super) fn put(&mut self, name: &str, content: &[u8]) -> io::Result<()> {
        self.0.write_all(&header(name, content.len())?)?;
        self.0.write_all(content)?;
        let rest = content.len() % BLOCK_BYTES;
        if rest > 0 {
            self.0.write_all(&[0; BLOCK_BYTES][rest..])?;
        }
        Ok(())
    }

    /// Ends the archive with two empty blocks.
    pub(super) fn end(mut self) -> io::Result<W> {
        self.0.write_all(&[0; 2 * BLOCK_BYTES])?;
        Ok(self.0)
    }
}

fn header(name: &str, length: usize) -> io::Result<[u8; BLOCK_BYTES]> {
    let (prefix, name) =
        split(name).ok_or_else(|| io::Error::other(format!("the name {name} is too long")))?;
    let mut block = [0; BLOCK_BYTES];
    let mut put = |at: usize, bytes: &[u8]| block[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, name.as_bytes());
    put(100, b"0000600\0");
    put(108, b"0000000\0");
    put(116, b"0000000\0");
    put(124, format!("{length:011o}\0").as_bytes());
    put(136, b"00000000000\0");
    // The checksum counts its own field as blanks.
    put(148, b"        ");
    put(156, b"0");
    put(257, b"ustar\x0000");
    put(345, prefix.as_bytes());
    let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    Ok(block)
}

/// The name, split into its two fields.
fn split(name: &str) -> Option<(&str, &str)> {
    if name.len() <= NAME_BYTES {
        return Some(("", name));
    }
    let cuts = name.match_indices('/').map(|(at, _)| (&name[..at], &name[at + 1..]));
    cuts.into_iter().find(|(prefix, rest)| rest.len() <= NAME_BYTES && prefix.len() <= PREFIX_BYTES)
}

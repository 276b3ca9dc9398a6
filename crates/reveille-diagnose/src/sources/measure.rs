//! How much a packed source expands to: counted as it is read, and stopped where it is out of measure.
//!
//! ```text
//!  packed bytes ─▶ Counted ─▶ decoder ─▶ Measured ─▶ what reads on
//!                    └─ taken ────────────┤
//!                    Expanded, one for all decoders of a source, whether or not they came to their end
//! ```
//!
//! What is packed within packed counts each time: reading it costs time each time.

use std::cell::Cell;
use std::io::{self, BufRead, Read};
use std::rc::Rc;

use super::Limits;

/// Bytes that all decoders of a source yielded.
#[derive(Clone, Debug, Default)]
pub(super) struct Expanded(Rc<Cell<u64>>);

/// Counts what is taken from a packed source.
pub(super) struct Counted<'p> {
    from: &'p mut dyn BufRead,
    taken: Rc<Cell<u64>>,
}

impl<'p> Counted<'p> {
    pub(super) fn of(from: &'p mut dyn BufRead) -> Self {
        Self { from, taken: Rc::default() }
    }

    /// What will have been taken.
    pub(super) fn taken(&self) -> Rc<Cell<u64>> {
        self.taken.clone()
    }
}

impl Read for Counted<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.from.read(buffer)?;
        self.taken.set(self.taken.get() + read as u64);
        Ok(read)
    }
}

impl BufRead for Counted<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.from.fill_buf()
    }

    fn consume(&mut self, amount: usize) {
        self.taken.set(self.taken.get() + amount as u64);
        self.from.consume(amount);
    }
}

/// Stops a decoder whose output is out of measure.
pub(super) struct Measured<D> {
    decoder: D,
    taken: Rc<Cell<u64>>,
    out: u64,
    in_all: Expanded,
    limits: Limits,
}

impl<D> Measured<D> {
    pub(super) fn of(decoder: D, taken: Rc<Cell<u64>>, in_all: Expanded, limits: Limits) -> Self {
        Self { decoder, taken, out: 0, in_all, limits }
    }
}

impl<D: Read> Read for Measured<D> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Limits { expanded_bytes_max, expanded_bytes_free, expansion_max } = self.limits;
        let in_measure = expanded_bytes_free.max(self.taken.get().saturating_mul(expansion_max));
        let in_all = &self.in_all.0;
        if self.out >= in_measure || in_all.get() >= expanded_bytes_max {
            return Err(io::Error::other("it expands without measure; stopped there"));
        }
        let read = self.decoder.read(buffer)?;
        self.out += read as u64;
        in_all.set(in_all.get() + read as u64);
        Ok(read)
    }
}

//! Members of a zip archive, as a stream: what the local headers say, in their order.
//!
//! The directory at the end is not read: a stream has no end to seek to. Stored and deflated members are read; a stored one of
//! unknown length cannot be, and ends the reading with its reason. The `zip` crate wants that directory, or lengths that stand
//! before their members (ADR 13).

use std::io::{self, BufRead, BufReader, Read};

use super::Limits;
use super::measure::{Counted, Expanded, Measured};

const DEFLATED: u16 = 8;
const STORED: u16 = 0;

/// Hands each file to `take`, until it wants no more.
pub(super) fn each(
    from: &mut dyn BufRead,
    limits: Limits,
    expanded: &Expanded,
    mut take: impl FnMut(&str, &mut dyn BufRead) -> bool,
) -> io::Result<()> {
    loop {
        let mut signature = [0; 4];
        if from.read_exact(&mut signature).is_err() || signature != [b'P', b'K', 3, 4] {
            return Ok(());
        }
        let mut fixed = [0; 26];
        from.read_exact(&mut fixed)?;
        let short = |at: usize| u16::from_le_bytes([fixed[at], fixed[at + 1]]);
        let long = |at: usize| u32::from_le_bytes([fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]]);
        let (flags, method) = (short(2), short(4));
        let (packed, name_length, extra_length) = (u64::from(long(14)), short(22), short(24));
        let mut name = vec![0; usize::from(name_length)];
        from.read_exact(&mut name)?;
        let name = String::from_utf8_lossy(&name).into_owned();
        let mut extra = vec![0; usize::from(extra_length)];
        from.read_exact(&mut extra)?;
        let packed = if packed == u64::from(u32::MAX) { zip64_packed(&extra) } else { Some(packed) };
        let (encrypted, described) = (flags & 1 != 0, flags & 8 != 0);
        let packed = packed.ok_or_else(|| io::Error::other("a length is missing"))?;
        if method == DEFLATED && !encrypted {
            let mut part: Box<dyn BufRead + '_> =
                if described { Box::new(&mut *from) } else { Box::new((&mut *from).take(packed)) };
            let more = {
                let packed = Counted::of(&mut part);
                let taken = packed.taken();
                let decoder = flate2::bufread::DeflateDecoder::new(packed);
                let mut text = BufReader::new(Measured::of(decoder, taken, expanded.clone(), limits));
                let more = take(&name, &mut text);
                io::copy(&mut text, &mut io::sink())?;
                more
            };
            if !described {
                io::copy(&mut part, &mut io::sink())?;
            }
            drop(part);
            if described {
                descriptor(from)?;
            }
            if !more {
                return Ok(());
            }
        } else if described {
            return Err(io::Error::other(format!(
                "{} is packed in a way that cannot be read as a stream",
                super::shown(&name)
            )));
        } else {
            let mut part = (&mut *from).take(packed);
            let more = method != STORED || encrypted || name.ends_with('/') || take(&name, &mut part);
            io::copy(&mut part, &mut io::sink())?;
            if !more {
                return Ok(());
            }
        }
    }
}

/// What follows a member whose length was not known before: checksum and lengths, with or without a signature.
fn descriptor(from: &mut dyn BufRead) -> io::Result<()> {
    let mut first = [0; 4];
    from.read_exact(&mut first)?;
    let rest = if first == [b'P', b'K', 7, 8] { 12 } else { 8 };
    io::copy(&mut from.take(rest), &mut io::sink())?;
    // Lengths of eight bytes, where the next signature does not follow at once.
    let next = from.fill_buf()?;
    if next.len() >= 2 && &next[..2] != b"PK" {
        io::copy(&mut from.take(8), &mut io::sink())?;
    }
    Ok(())
}

/// The packed length of a large member: the second of the two numbers that stand in the extra field.
fn zip64_packed(extra: &[u8]) -> Option<u64> {
    let mut rest = extra;
    while rest.len() >= 4 {
        let length = usize::from(u16::from_le_bytes([rest[2], rest[3]]));
        let body = rest.get(4..4 + length)?;
        if rest[..2] == [1, 0] {
            return Some(u64::from_le_bytes(body.get(8..16)?.try_into().ok()?));
        }
        rest = rest.get(4 + length..)?;
    }
    None
}

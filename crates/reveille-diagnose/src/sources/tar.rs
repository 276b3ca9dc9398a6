//! Members of a tar archive, as a stream: header, bytes, padding.
//!
//! Plain, GNU long names and pax paths; links and devices are passed by. An archive that ends early is an error after the
//! members that were whole.

use std::io::{self, BufRead, Read};

const BLOCK: usize = 512;
/// A path that is longer was not made by a person.
const PATH_BYTES_MAX: u64 = 64 * 1024;

/// Whether the bytes begin with a tar header.
pub(super) fn is_header(head: &[u8]) -> bool {
    head.len() >= BLOCK && &head[257..262] == b"ustar" && checksum_holds(&head[..BLOCK])
}

/// Hands each file to `take`, until it wants no more.
pub(super) fn each(
    from: &mut dyn BufRead,
    mut take: impl FnMut(&str, &mut dyn BufRead) -> bool,
) -> io::Result<()> {
    let mut header = [0; BLOCK];
    let mut long_name: Option<String> = None;
    loop {
        match read_block(from, &mut header)? {
            false => return Ok(()),
            true if header.iter().all(|byte| *byte == 0) => return Ok(()),
            true => {}
        }
        if !checksum_holds(&header) {
            return Err(io::Error::other("a header is damaged"));
        }
        let size = number(&header[124..136]).ok_or_else(|| io::Error::other("a size is no number"))?;
        let padded = size.checked_next_multiple_of(BLOCK as u64);
        let padding = padded.ok_or_else(|| io::Error::other("a size is larger than any file"))? - size;
        match header[156] {
            b'L' | b'x' => {
                let mut bytes = Vec::new();
                let mut part = from.take(size);
                (&mut part).take(PATH_BYTES_MAX).read_to_end(&mut bytes)?;
                io::copy(&mut part, &mut io::sink())?;
                let found = if header[156] == b'L' { Some(text(&bytes)) } else { pax_path(&bytes) };
                long_name = found.or(long_name);
            }
            b'0' | 0 | b'7' => {
                let path = long_name.take().unwrap_or_else(|| name(&header));
                let mut part = from.take(size);
                let more = take(&path, &mut part);
                io::copy(&mut part, &mut io::sink())?;
                if part.limit() > 0 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                if !more {
                    return Ok(());
                }
            }
            _ => {
                long_name = None;
                io::copy(&mut from.take(size), &mut io::sink())?;
            }
        }
        io::copy(&mut from.take(padding), &mut io::sink())?;
    }
}

fn read_block(from: &mut dyn BufRead, block: &mut [u8; BLOCK]) -> io::Result<bool> {
    let mut bytes = Vec::with_capacity(BLOCK);
    from.take(BLOCK as u64).read_to_end(&mut bytes)?;
    if bytes.is_empty() {
        return Ok(false);
    }
    if bytes.len() < BLOCK {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    block.copy_from_slice(&bytes);
    Ok(true)
}

fn checksum_holds(header: &[u8]) -> bool {
    let sum: u64 = header
        .iter()
        .enumerate()
        .map(|(at, byte)| u64::from(if (148..156).contains(&at) { b' ' } else { *byte }))
        .sum();
    number(&header[148..156]) == Some(sum)
}

/// Octal text, or a big-endian number behind a set bit.
fn number(field: &[u8]) -> Option<u64> {
    if field.first().is_some_and(|byte| byte & 0x80 != 0) {
        return field[1..]
            .iter()
            .try_fold(0_u64, |n, byte| n.checked_mul(256)?.checked_add(u64::from(*byte)));
    }
    let digits = text(field);
    let digits = digits.trim();
    if digits.is_empty() { Some(0) } else { u64::from_str_radix(digits, 8).ok() }
}

fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

fn name(header: &[u8]) -> String {
    let (name, prefix) = (text(&header[0..100]), text(&header[345..500]));
    if prefix.is_empty() || &header[257..263] == b"ustar " { name } else { format!("{prefix}/{name}") }
}

/// `27 path=some/where\n`, among other records.
fn pax_path(bytes: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(bytes);
    text.lines().find_map(|line| line.split_once(' ')?.1.strip_prefix("path=").map(str::to_owned))
}

//! One line of a segment: how the ledger writes it, reads it and checks it.
//!
//! ```text
//!  {"c":"9f3a1c22","n":17,"b":0,"r":{…}}
//!        │          │      │    └ r: a record; o: an opening; s: the segment's header, always its first line
//!        │          │      └ place in its batch: line n - b was the first one of the same sync
//!        │          └ sequence number, one higher than the line before
//!        └ CRC-32 of all bytes behind it, without the newline
//! ```
//!
//! Lines are JSON, for `jq` and `less`. The checksum covers the number too, so it detects a line that was copied to another
//! place. CRC-32 is enough because lines are short: it finds every burst of up to 32 bits, and up to three flipped bits
//! below 11 KiB. An attacker who could forge a checksum could write the file anyway, and every toolbox can compute CRC-32.
//!
//! `b` tells a torn tail from damage. The ledger writes a batch only after the batch before it is durable. So a line
//! whose batch began behind a bad line proves that the bad line was durable once: that is damage. Bad lines without a
//! later batch are what a crash left of a batch that was never acknowledged.
//!
//! Not here: what is inside a record, and which lines may follow which (`segment`).

use std::fmt;

use serde::{Deserialize, Serialize};

/// Highest number of a line, a fence or a segment. No ledger comes near it. A higher one was not counted by a ledger, but is
/// damage; were it taken, the next one would overflow, and fences begin at 0 again.
pub(crate) const NUMBER_MAX: u64 = u64::MAX >> 1;

/// Number of a line in the ledger, from 1, without gaps over all segments. Openings and headers take one, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Seq(pub u64);

/// Number of an opening: strictly higher than that of every opening before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "u64")]
pub struct Fence(pub u64);

impl TryFrom<u64> for Fence {
    type Error = &'static str;

    fn try_from(number: u64) -> Result<Self, Self::Error> {
        if number > NUMBER_MAX { Err("a fence that no opening counted") } else { Ok(Self(number)) }
    }
}

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl fmt::Display for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// What a line holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Header,
    Opening,
    Record,
}

impl Kind {
    const fn letter(self) -> u8 {
        match self {
            Self::Header => b's',
            Self::Opening => b'o',
            Self::Record => b'r',
        }
    }

    const fn from_letter(letter: u8) -> Option<Self> {
        match letter {
            b's' => Some(Self::Header),
            b'o' => Some(Self::Opening),
            b'r' => Some(Self::Record),
            _ => None,
        }
    }
}

/// A line that passed its checksum, with its content still JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Line<'a> {
    pub(crate) number: Seq,
    pub(crate) in_batch: u64,
    pub(crate) kind: Kind,
    pub(crate) payload: &'a [u8],
}

impl Line<'_> {
    /// The number of the first line of the same sync.
    pub(crate) const fn batch_start(&self) -> u64 {
        self.number.0 - self.in_batch
    }
}

/// Bytes of `{"c":"` and of the checksum with what closes it: the covered part begins behind them.
const LEAD: &[u8] = b"{\"c\":\"";
const CHECKSUM_BYTES: usize = 8;
const BEHIND_CHECKSUM: &[u8] = b"\",";

/// Appends one line, with its newline, to `to`.
pub(crate) fn write(to: &mut Vec<u8>, line: &Line<'_>) {
    assert!(!line.payload.contains(&b'\n'), "compact JSON holds no raw newline");
    let begin = to.len();
    to.extend_from_slice(LEAD);
    to.extend_from_slice(&[b'0'; CHECKSUM_BYTES]);
    to.extend_from_slice(BEHIND_CHECKSUM);
    let covered = to.len();
    to.extend_from_slice(format!("\"n\":{},\"b\":{},\"", line.number, line.in_batch).as_bytes());
    to.push(line.kind.letter());
    to.extend_from_slice(b"\":");
    to.extend_from_slice(line.payload);
    to.push(b'}');
    let checksum = format!("{:08x}", crc32fast::hash(&to[covered..]));
    to[begin + LEAD.len()..begin + LEAD.len() + CHECKSUM_BYTES].copy_from_slice(checksum.as_bytes());
    to.push(b'\n');
}

/// Reads one line, given without its newline; the error says in a few words why it is not one.
pub(crate) fn parse(bytes: &[u8]) -> Result<Line<'_>, &'static str> {
    let rest = bytes.strip_prefix(LEAD).ok_or("it does not begin as a line of a ledger does")?;
    let (checksum, rest) = rest.split_at_checked(CHECKSUM_BYTES).ok_or("it is cut off")?;
    let covered = rest.strip_prefix(BEHIND_CHECKSUM).ok_or("its checksum has no end")?;
    if checksum != format!("{:08x}", crc32fast::hash(covered)).as_bytes() {
        return Err("its checksum does not fit its content");
    }
    parse_covered(covered).ok_or("its checksum fits, yet it is not written as a line of this format")
}

fn parse_covered(covered: &[u8]) -> Option<Line<'_>> {
    let (number, rest) = digits(covered.strip_prefix(b"\"n\":")?)?;
    let (in_batch, rest) = digits(rest.strip_prefix(b",\"b\":")?)?;
    let (kind, rest) = rest.strip_prefix(b",\"")?.split_first()?;
    let payload = rest.strip_prefix(b"\":")?.strip_suffix(b"}")?;
    let kind = Kind::from_letter(*kind)?;
    (in_batch < number && number <= NUMBER_MAX).then_some(Line {
        number: Seq(number),
        in_batch,
        kind,
        payload,
    })
}

fn digits(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let end = bytes.iter().position(|byte| !byte.is_ascii_digit())?;
    let (number, rest) = bytes.split_at(end);
    Some((std::str::from_utf8(number).ok()?.parse().ok()?, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(number: u64, in_batch: u64, kind: Kind, payload: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        write(&mut bytes, &Line { number: Seq(number), in_batch, kind, payload });
        bytes
    }

    #[test]
    fn a_line_is_json_with_a_checksum_that_zlib_agrees_with() {
        let bytes = written(17, 3, Kind::Record, br#"{"a":"b\n"}"#);
        let text = std::str::from_utf8(&bytes).unwrap();
        // Python's zlib.crc32 gives this checksum for the bytes behind it.
        assert_eq!(text, "{\"c\":\"bef7232c\",\"n\":17,\"b\":3,\"r\":{\"a\":\"b\\n\"}}\n");
        let json: serde_json::Value = serde_json::from_str(text).unwrap();
        assert_eq!(json["r"]["a"], "b\n");
    }

    #[test]
    fn what_was_written_is_read_back() {
        for (number, in_batch, kind, payload) in [
            (1, 0, Kind::Header, &b"{}"[..]),
            (2, 1, Kind::Opening, b"null"),
            (NUMBER_MAX, 0, Kind::Record, b"[\"}\",\"{\"]"),
        ] {
            let bytes = written(number, in_batch, kind, payload);
            let line = parse(bytes.strip_suffix(b"\n").unwrap()).unwrap();
            assert_eq!(line, Line { number: Seq(number), in_batch, kind, payload });
        }
    }

    #[test]
    fn no_single_changed_byte_and_no_cut_passes() {
        let bytes = written(17, 3, Kind::Record, br#"{"name":"kks-prod-w-7xk2p"}"#);
        let line = bytes.strip_suffix(b"\n").unwrap();
        for place in 0..line.len() {
            assert!(parse(&line[..place]).is_err(), "cut at {place}");
            for flip in 1..=255_u8 {
                let mut changed = line.to_vec();
                changed[place] ^= flip;
                assert!(parse(&changed).is_err(), "byte {place} changed by {flip:#x}");
            }
        }
    }
}

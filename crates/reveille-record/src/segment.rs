//! One segment file: what each line says, and whether the file can be trusted.
//!
//! ```text
//!  bytes ─▶ examine() ─▶ Examined { header, lines…, ending }
//!                          ending: clean │ unterminated (only the last newline is missing) │ torn (cut here)
//!                        or Flaw: damage in the middle, with the line
//! ```
//!
//! The ledger creates a segment as a whole (written aside, made durable, renamed). So its header and checkpoint are never
//! torn; only lines that were appended later can be. The batches behind a bad line decide whether it is a torn tail or
//! damage, as `line` explains.
//!
//! Not here: files, and the meaning of records.

use std::fmt;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::line::{self, Fence, Kind, Line, Seq};
use crate::lock::Holder;

/// The version of the format that this code writes, and the newest version that it reads.
pub(crate) const FORMAT: u32 = 1;

/// Number of a segment file, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SegmentNumber(pub u64);

impl SegmentNumber {
    /// Its file name.
    pub(crate) fn file_name(self) -> String {
        format!("{:010}.jsonl", self.0)
    }

    /// The file beside the segment that keeps the bytes cut off its end.
    pub(crate) fn torn_name(self) -> String {
        format!("{:010}.torn", self.0)
    }

    /// The number in `name`, which ends in `ending`.
    pub(crate) fn from_name(name: &str, ending: &str) -> Option<Self> {
        let digits = name.strip_suffix(ending)?;
        let plain = digits.len() >= 10 && digits.bytes().all(|byte| byte.is_ascii_digit());
        let number = plain.then(|| digits.parse().ok()).flatten()?;
        (number <= line::NUMBER_MAX).then_some(Self(number))
    }
}

impl fmt::Display for SegmentNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:010}", self.0)
    }
}

/// What the first line of a segment says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Header {
    /// Version of the format.
    pub(crate) format: u32,
    /// How many records behind the header are the checkpoint, which repeats earlier records.
    pub(crate) checkpoint: u64,
    /// The highest fence handed out when the segment began; none before the first opening.
    pub(crate) fence: Fence,
}

/// What an opening line says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Opening {
    pub(crate) fence: Fence,
    #[serde(flatten)]
    pub(crate) holder: Holder,
}

/// One record's JSON, by its place in the segment's bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) number: Seq,
    /// Line in the file, from 1.
    pub(crate) line: usize,
    pub(crate) payload: Range<usize>,
}

/// A segment that passed its checks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Examined {
    pub(crate) header: Header,
    pub(crate) first: Seq,
    /// Records, the checkpoint's first.
    pub(crate) records: Vec<Found>,
    /// The number that the next line gets.
    pub(crate) next: Seq,
    /// The highest fence that the header or an opening names.
    pub(crate) fence: Fence,
    /// Bytes of header and checkpoint.
    pub(crate) checkpoint_bytes: u64,
    /// Bytes up to the end of the last good line.
    pub(crate) good_bytes: u64,
    pub(crate) ending: Ending,
}

/// How a segment ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// With a whole line.
    Clean,
    /// With a whole line whose newline is missing: an editor removed it, or a crash cut the file exactly there.
    Unterminated,
    /// With bytes that are not whole lines; all bytes from `good_bytes` on were never acknowledged.
    Torn,
}

/// A place in a segment that fails its check although it was durable once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Flaw {
    /// Line in the file, from 1.
    pub(crate) line: usize,
    pub(crate) what: &'static str,
}

/// One piece of a file between newlines.
struct Piece<'a> {
    /// Line in the file, from 1.
    line: usize,
    start: usize,
    bytes: &'a [u8],
    terminated: bool,
}

impl Piece<'_> {
    const fn end(&self) -> usize {
        self.start + self.bytes.len() + self.terminated as usize
    }
}

fn pieces(bytes: &[u8]) -> impl Iterator<Item = Piece<'_>> {
    let mut start = 0;
    bytes.split_inclusive(|byte| *byte == b'\n').enumerate().map(move |(index, piece)| {
        let (content, terminated) =
            piece.strip_suffix(b"\n").map_or((piece, false), |content| (content, true));
        let piece = Piece { line: index + 1, start, bytes: content, terminated };
        start = piece.end();
        piece
    })
}

/// Reads a whole segment. The error is damage; a torn tail is no error.
pub(crate) fn examine(bytes: &[u8]) -> Result<Examined, Flaw> {
    let mut pieces = pieces(bytes);
    let mut examined = header(pieces.next())?;
    for piece in pieces.by_ref() {
        match follow(&mut examined, &piece) {
            Ok(()) => {}
            Err(what) => {
                // A line of a later batch proves that this line was durable once.
                let flaw = Flaw { line: piece.line, what };
                let later_batch = pieces
                    .filter_map(|piece| line::parse(piece.bytes).ok())
                    .any(|line| line.batch_start() > examined.next.0);
                let in_checkpoint = (examined.records.len() as u64) < examined.header.checkpoint;
                if later_batch || in_checkpoint {
                    return Err(flaw);
                }
                examined.ending = Ending::Torn;
                return Ok(examined);
            }
        }
    }
    if (examined.records.len() as u64) < examined.header.checkpoint {
        let line = examined.records.len() + 2;
        return Err(Flaw { line, what: "the file ends within the checkpoint that its first line announces" });
    }
    Ok(examined)
}

fn header(piece: Option<Piece<'_>>) -> Result<Examined, Flaw> {
    let flaw = |what| Flaw { line: 1, what };
    let piece = piece.ok_or(flaw("the file is empty"))?;
    let line = line::parse(piece.bytes).map_err(flaw)?;
    if line.kind != Kind::Header {
        return Err(flaw("the first line is not a segment's header"));
    }
    let header: Header = serde_json::from_slice(line.payload)
        .map_err(|_| flaw("the header is not one of this format; a newer version may have written it"))?;
    if header.format > FORMAT {
        return Err(flaw("a newer version wrote this segment; use that version"));
    }
    Ok(Examined {
        header,
        first: line.number,
        records: Vec::new(),
        next: Seq(line.number.0 + 1),
        fence: header.fence,
        checkpoint_bytes: piece.end() as u64,
        good_bytes: piece.end() as u64,
        ending: if piece.terminated { Ending::Clean } else { Ending::Unterminated },
    })
}

/// Accepts one more line, or says why it is not a valid line.
fn follow(examined: &mut Examined, piece: &Piece<'_>) -> Result<(), &'static str> {
    let line: Line<'_> = line::parse(piece.bytes)?;
    if line.number != examined.next {
        return Err("its number does not follow the line before");
    }
    match line.kind {
        Kind::Header => return Err("a second header"),
        Kind::Opening => {
            let opening: Opening =
                serde_json::from_slice(line.payload).map_err(|_| "it is not an opening of this format")?;
            examined.fence = examined.fence.max(opening.fence);
        }
        Kind::Record => {
            let end = piece.start + piece.bytes.len() - 1;
            let payload = end - line.payload.len()..end;
            examined.records.push(Found { number: line.number, line: piece.line, payload });
        }
    }
    examined.next = Seq(line.number.0 + 1);
    examined.good_bytes = piece.end() as u64;
    examined.ending = if piece.terminated { Ending::Clean } else { Ending::Unterminated };
    if examined.records.len() as u64 == examined.header.checkpoint && line.kind == Kind::Record {
        examined.checkpoint_bytes = examined.good_bytes;
    }
    Ok(())
}

/// Every line that passes its checksum, whatever surrounds it, and every place that does not. Operators read this list.
pub(crate) fn salvage(bytes: &[u8]) -> (Vec<Found>, Vec<Flaw>) {
    let (mut found, mut flaws) = (Vec::new(), Vec::new());
    let mut expected = None;
    for piece in pieces(bytes) {
        match line::parse(piece.bytes) {
            Err(what) => flaws.push(Flaw { line: piece.line, what }),
            Ok(line) => {
                if expected.is_some_and(|expected| expected != line.number)
                    && flaws.last().is_none_or(|flaw: &Flaw| flaw.line + 1 != piece.line)
                {
                    flaws.push(Flaw { line: piece.line, what: "its number does not follow the line before" });
                }
                expected = Some(Seq(line.number.0 + 1));
                if line.kind == Kind::Record {
                    let end = piece.start + piece.bytes.len() - 1;
                    found.push(Found {
                        number: line.number,
                        line: piece.line,
                        payload: end - line.payload.len()..end,
                    });
                }
            }
        }
    }
    (found, flaws)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A segment with a checkpoint of one record and these batches of records behind it.
    fn segment(batches: &[u64]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut number = 5;
        let mut push = |in_batch, kind, payload: &[u8]| {
            line::write(&mut bytes, &Line { number: Seq(number), in_batch, kind, payload });
            number += 1;
        };
        push(0, Kind::Header, br#"{"format":1,"checkpoint":1,"fence":3}"#);
        push(1, Kind::Record, b"\"all\"");
        for batch in batches {
            for in_batch in 0..*batch {
                push(in_batch, Kind::Record, b"\"news\"");
            }
        }
        bytes
    }

    /// The same segment with one changed byte in the middle of this line, counted from 1.
    fn spoiled(batches: &[u64], line: usize) -> Vec<u8> {
        let mut bytes = segment(batches);
        let piece = pieces(&bytes).nth(line - 1).map(|piece| piece.start + piece.bytes.len() / 2);
        bytes[piece.unwrap()] ^= 1;
        bytes
    }

    #[test]
    fn bad_line_is_damage_only_if_later_batch_or_checkpoint_follows() {
        // Batches, the spoiled line, and the records before it when it is a torn tail.
        let table: [(&[u64], usize, Option<usize>); 10] = [
            (&[], 2, None),
            (&[1], 1, None),
            (&[1], 2, None),
            (&[1], 3, Some(1)),
            (&[1, 1], 3, None),
            (&[1, 1], 4, Some(2)),
            (&[1, 3], 4, Some(2)),
            (&[1, 3], 5, Some(3)),
            (&[1, 3, 1], 5, None),
            (&[2, 2], 4, None),
        ];
        for (batches, line, kept) in table {
            match (examine(&spoiled(batches, line)), kept) {
                (Err(flaw), None) => assert_eq!(flaw.line, line, "{batches:?}"),
                (Ok(examined), Some(kept)) => {
                    assert_eq!(
                        (examined.ending, examined.records.len()),
                        (Ending::Torn, kept),
                        "{batches:?}, {line}"
                    );
                }
                (other, _) => panic!("{batches:?} spoiled at {line}: {other:?}"),
            }
        }
    }

    #[test]
    fn cut_at_any_byte_all_whole_lines_before_it_are_kept() {
        let whole = segment(&[1, 2, 1]);
        let ends: Vec<usize> = pieces(&whole).map(|piece| piece.end()).collect();
        for cut in ends[1]..whole.len() {
            let examined = examine(&whole[..cut]).unwrap();
            // A line that lacks only its newline counts as whole.
            let lines = ends.iter().filter(|end| **end <= cut + 1).count();
            assert_eq!(examined.records.len(), lines - 1, "cut at {cut}");
            let ending = match ends.iter().find(|end| **end >= cut) {
                Some(end) if *end == cut => Ending::Clean,
                Some(end) if *end == cut + 1 => Ending::Unterminated,
                _ => Ending::Torn,
            };
            assert_eq!(examined.ending, ending, "cut at {cut}");
        }
        for cut in 0..ends[0] {
            assert!(examine(&whole[..cut]).is_err() || cut + 1 == ends[0], "within the header, at {cut}");
        }
    }

    #[test]
    fn a_segment_of_a_newer_format_is_left_alone() {
        let mut bytes = Vec::new();
        let payload = format!("{{\"format\":{},\"checkpoint\":0,\"fence\":1}}", FORMAT + 1);
        let line = Line { number: Seq(1), in_batch: 0, kind: Kind::Header, payload: payload.as_bytes() };
        line::write(&mut bytes, &line);
        assert!(examine(&bytes).unwrap_err().what.contains("newer version"));
    }

    #[test]
    fn salvage_skips_what_is_bad_and_says_where() {
        let (found, flaws) = salvage(&spoiled(&[1, 1, 1], 4));
        assert_eq!(found.iter().map(|found| found.number.0).collect::<Vec<_>>(), [6, 7, 9]);
        assert_eq!(flaws.iter().map(|flaw| flaw.line).collect::<Vec<_>>(), [4]);
        let mut bytes = segment(&[1, 1]);
        let gap = pieces(&bytes).nth(2).map(|piece| piece.start..piece.end()).unwrap();
        bytes.drain(gap);
        let (_, flaws) = salvage(&bytes);
        assert_eq!(flaws, [Flaw { line: 3, what: "its number does not follow the line before" }]);
    }
}

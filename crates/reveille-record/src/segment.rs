//! One segment file: what its bytes say, line by line, and whether they may be believed.
//!
//! ```text
//!  bytes ─▶ examine() ─▶ Examined { header, lines…, ending }
//!                          ending: clean │ unterminated (only the last newline is missing) │ torn (cut here)
//!                        or Flaw: damage in the middle, with the line
//! ```
//!
//! A segment is created whole (written aside, made durable, renamed), so its header and checkpoint are never torn; only
//! what was appended later can be. Whether a bad line is a torn tail or damage follows from the batches behind it, as
//! `line` explains.
//!
//! Not here: files, and the meaning of records.

use std::fmt;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::line::{self, Fence, Kind, Line, Seq};
use crate::lock::Holder;

/// The version of the format that this code writes, and the newest that it reads.
pub(crate) const FORMAT: u32 = 1;

/// Number of a segment file, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SegmentNumber(pub u64);

impl SegmentNumber {
    /// Its file name.
    pub(crate) fn file_name(self) -> String {
        format!("{:010}.jsonl", self.0)
    }

    /// The file beside it that keeps what was cut off its end.
    pub(crate) fn torn_name(self) -> String {
        format!("{:010}.torn", self.0)
    }

    /// The number in `name`, which ends in `ending`.
    pub(crate) fn from_name(name: &str, ending: &str) -> Option<Self> {
        let digits = name.strip_suffix(ending)?;
        let plain = digits.len() >= 10 && digits.bytes().all(|byte| byte.is_ascii_digit());
        plain.then(|| digits.parse().ok().map(Self)).flatten()
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
    /// How many records behind the header are the checkpoint: a restatement, not news.
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

/// A segment that may be believed.
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
    /// With a whole line whose newline is missing: somebody's editor, or a cut exactly there.
    Unterminated,
    /// With bytes that are no lines; everything from `good_bytes` on was never acknowledged.
    Torn,
}

/// A place in a segment that cannot be believed although it was durable once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Flaw {
    /// Line in the file, from 1.
    pub(crate) line: usize,
    pub(crate) what: &'static str,
}

/// Something that [`crate::Ledger::open`] mended or noticed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Repair {
    /// The tail of the current segment was no whole lines; never acknowledged, cut off, and kept in a `.torn` file.
    TornTail {
        /// Which segment.
        segment: SegmentNumber,
        /// How many bytes were cut off.
        bytes: u64,
    },
    /// The last line was whole but for its newline; it was kept.
    MissingNewline {
        /// Which segment.
        segment: SegmentNumber,
    },
    /// A rotation had not come to its end; the half-written segment was removed. The one before it still holds all.
    UnfinishedRotation {
        /// The file that was removed.
        file: String,
    },
    /// An older segment, which no state is restored from, is damaged or gone; left as it is.
    HistoryDamaged {
        /// Which segment.
        segment: SegmentNumber,
        /// Line in its file, from 1; none where the file itself cannot be read.
        line: Option<usize>,
        /// What is wrong with it.
        what: String,
    },
}

impl fmt::Display for Repair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TornTail { segment, bytes } => write!(
                f,
                "the last {bytes} bytes of segment {segment} were never acknowledged (a crash in the middle of a write); \
                 cut off and kept in {}",
                segment.torn_name()
            ),
            Self::MissingNewline { segment } => {
                write!(
                    f,
                    "the last line of segment {segment} had lost its newline; kept, and the newline put back"
                )
            }
            Self::UnfinishedRotation { file } => {
                write!(
                    f,
                    "a rotation was interrupted; its unfinished file {file} was removed, nothing is lost"
                )
            }
            Self::HistoryDamaged { segment, line: Some(line), what } => {
                write!(
                    f,
                    "history only: {}, line {line}: {what}; nothing is restored from it",
                    segment.file_name()
                )
            }
            Self::HistoryDamaged { segment, line: None, what } => {
                write!(f, "history only: {}: {what}; nothing is restored from it", segment.file_name())
            }
        }
    }
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
                // A line of a later batch proves that this one was durable once.
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

/// Takes one more line in, or says why it is none.
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

/// Every line that passes its checksum, whatever is around it, and every place that does not: for people.
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

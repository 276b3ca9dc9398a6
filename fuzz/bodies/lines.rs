//! Any bytes as lines of a log: however they arrive, the same is seen, and no secret is quoted.
//!
//! ```text
//!  knobs (4 bytes), text ─┬▶ in one piece ──────────────────────────────┐
//!                         ├▶ in pieces of any size ─────────────────────┴▶ the same sightings
//!                         ├▶ cut early, one job ────────────────────────┐
//!                         ├▶ cut early, three jobs, in pieces ──────────┴▶ the same, and nothing that the whole does not show
//!                         └▶ with a secret in the middle of a line ──────▶ quotes without it
//! ```
//!
//! "Cut early" stands for a long log: a block of it is some hundred bytes here, so that a small text has many seams.

use std::collections::BTreeMap;
use std::io::{self, BufRead, Read};
use std::num::NonZeroUsize;

use reveille_diagnose::Reader;
use reveille_diagnose::lines::{comparable, readable};
use reveille_diagnose::scan::{Cuts, Seen};

use crate::{known, shown};

/// A made-up secret, of the shape of a bootstrap token's second half.
const CANARY: &str = "c4naryc4naryc4na";
const PIECE_BYTES_MAX: usize = 64;

/// One try.
pub(crate) fn run(bytes: &[u8]) {
    let Some((&[sizes, blocks, secret, place], text)) = bytes.split_first_chunk::<4>() else { return };
    of_one_line(text);
    let whole = seen(Reader::new(&known::SCANNER), text, 0);
    let in_pieces = seen(Reader::new(&known::SCANNER), text, sizes);
    assert_eq!(told(&whole), told(&in_pieces), "other pieces, other sightings");
    let cuts = Cuts { whole_bytes: usize::from(blocks % 16) * 8, block_bytes: 64 + usize::from(blocks) * 2 };
    let alone = seen(Reader::new(&known::SCANNER).with_cuts(cuts), text, 0);
    let jobs = NonZeroUsize::MIN.saturating_add(2);
    let together = seen(Reader::new(&known::SCANNER).with_cuts(cuts).with_jobs(jobs), text, sizes);
    assert_eq!(told(&alone), told(&together), "other jobs, other sightings");
    if text.split(|byte| *byte == b'\n').all(|line| line.len() < cuts.block_bytes) {
        nothing_more(&alone, &whole);
    }
    no_secret(text, secret, place);
}

/// What a reader sees when the bytes come in pieces; `0`: in one.
fn seen(mut reader: Reader<'_>, text: &[u8], sizes: u8) -> Seen {
    let mut whole = text;
    let mut pieces = Pieces { rest: text, dice: u32::from(sizes) };
    let from: &mut dyn BufRead = if sizes == 0 { &mut whole } else { &mut pieces };
    assert!(reader.lines("fuzzed", from).is_ok(), "bytes in memory do not fail");
    shown::quotes(&reader);
    reader.seen().clone()
}

/// Everything that was seen, comparable.
fn told(seen: &Seen) -> String {
    let Seen { platform, sources, sightings, lines, troubles, trouble, nodes, .. } = seen;
    let facts = &known::SCANNER.catalogue().signals;
    let sightings: BTreeMap<_, _> =
        sightings.iter().map(|((signal, source), what)| ((&facts[*signal].id, source), what)).collect();
    format!("{platform:?} {sources:?} {sightings:#?} {lines} {troubles} {trouble:#?} {nodes:?}")
}

/// Lines that are passed over tell nothing; those that are not tell what they always tell. Facts of tables are left out,
/// because a row means something else where the rows before it were not looked at.
fn nothing_more(alone: &Seen, whole: &Seen) {
    let signals = &known::SCANNER.catalogue().signals;
    for (key @ (signal, _), sighting) in &alone.sightings {
        if signals[*signal].fact.is_some() {
            continue;
        }
        let there = whole.sightings.get(key).map_or(0, |sighting| sighting.count);
        assert!(there > 0, "{} is seen in a long log only", signals[*signal].id);
        assert!(sighting.last_line <= whole.sightings[key].last_line, "{}", signals[*signal].id);
    }
}

/// The forms that a line takes are each made of any bytes.
fn of_one_line(text: &[u8]) {
    let line = String::from_utf8_lossy(text);
    let plain = comparable(&line);
    shown::readable(&plain);
    assert!(!plain.contains("  ") && plain.trim() == plain, "{plain:?}");
    let shown = readable(&line, 80);
    shown::readable(&shown);
    assert!(shown.chars().count() <= 81, "{shown}");
}

/// A line in which a program wrote a secret, in each of the ways in which programs do.
fn no_secret(text: &[u8], secret: u8, place: u8) {
    let text = String::from_utf8_lossy(text);
    // The highest numbers are forms that were added later: seeds keep what they mean.
    let written = match if secret < 252 { secret % 10 } else { secret } {
        252 => format!("DB_PASS={CANARY}"),
        253 => format!("K10ab::server:{CANARY}"),
        254 => format!("psk=\"{CANARY}\""),
        255 => format!("glpat-{CANARY}"),
        0 => format!("token={CANARY}"),
        1 => format!("{{\"adminPassword\": \"{CANARY}\"}}"),
        2 => format!("{{\\\"password\\\":\\\"{CANARY}\\\"}}"),
        3 => format!("\u{1b}[36mtoken\u{1b}[0m={CANARY}"),
        4 => format!("Authorization: Bearer {CANARY}"),
        5 => format!("abcdef.{CANARY}"),
        6 => format!("https://robot:{CANARY}@registry.example/v2/"),
        7 => format!("K3S_TOKEN='{CANARY}'"),
        8 => format!("\u{1b}[33mabcdef.{CANARY}\u{1b}[0m"),
        _ => format!("--token {CANARY}"),
    };
    let mut at = text.len() * usize::from(place) / 256;
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    let (before, after) = text.split_at(at);
    let leaks = |text: &str| {
        let mut reader = Reader::new(&known::SCANNER);
        reader.text("fuzzed", text);
        shown::quotes(&reader).into_iter().find(|quote| quote.contains(CANARY))
    };
    if let Some(quote) = leaks(&format!("{before} {written} {after}")) {
        // A long fuzz run writes the canary into the text itself, where it is no secret.
        let own = leaks(&text).or_else(|| leaks(&format!("{before} {after}")));
        assert!(own.is_some(), "a secret is quoted: {quote}");
    }
}

/// Bytes that arrive in pieces of any size.
struct Pieces<'t> {
    rest: &'t [u8],
    dice: u32,
}

impl Read for Pieces<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let piece = self.fill_buf()?;
        let count = piece.len().min(buffer.len());
        buffer[..count].copy_from_slice(&piece[..count]);
        self.consume(count);
        Ok(count)
    }
}

impl BufRead for Pieces<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        let count = 1 + self.dice as usize % PIECE_BYTES_MAX;
        Ok(&self.rest[..count.min(self.rest.len())])
    }

    fn consume(&mut self, amount: usize) {
        self.dice = self.dice.wrapping_mul(1_664_525).wrapping_add(1_013_904_223) >> 3;
        self.rest = &self.rest[amount..];
    }
}

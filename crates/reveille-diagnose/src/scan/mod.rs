//! Looks for the catalogue's signals in one source after another, and keeps what was seen in bounded memory.
//!
//! ```text
//!  BufRead ─▶ line (cut at a bound) ─▶ envelope off ─▶ comparable ─▶ literals (one automaton) ─▶ phrases ─▶ Sighting
//!                                       └─▶ listing ─▶ facts ──────────────────────────────────────────────▶ Sighting
//! ```
//!
//! All literals of all phrases are looked for in one pass; a pattern is tried only on a line that holds its literal. Of each
//! signal and source the first lines, the last one and counts are kept, however often it was seen. One message that
//! several components repeat in the same second counts once.

mod ahead;
mod blocks;
mod filter;
mod seen;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::io::{self, BufRead};
use std::num::NonZeroUsize;

use aho_corasick::AhoCorasick;
use memchr::memchr;

use crate::catalogue::{Catalogue, Signal};
use crate::lines::{self, LINE_BYTES_MAX, Level};
use crate::tables::{Fact, Listing};
use blocks::{BLOCK_BYTES, Blocks};
use filter::{LineFilter, Picked};
use seen::Owned;
pub use seen::{Hit, Seen, Sighting};

/// How much of a source is looked at line by line: all of a command's output, the beginning of a log.
const WHOLE_BYTES: usize = 1 << 20;

/// Where a long source is cut. Public for tests of the seams, which would need megabytes for each try otherwise.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cuts {
    /// So much is looked at line by line.
    pub whole_bytes: usize,
    /// The rest is looked at in blocks of this size.
    pub block_bytes: usize,
}

impl Default for Cuts {
    fn default() -> Self {
        Self { whole_bytes: WHOLE_BYTES, block_bytes: BLOCK_BYTES }
    }
}

/// Finds signals in lines: the catalogue's literals as one automaton.
#[derive(Debug)]
pub struct Scanner<'c> {
    catalogue: Cow<'c, Catalogue>,
    literals: AhoCorasick,
    /// For each literal the signals and phrases that need it.
    owners: Vec<Vec<(usize, usize)>>,
    filter: LineFilter,
}

/// The catalogue has more literals than an automaton can be made of.
#[derive(Debug, thiserror::Error)]
#[error("the catalogue's literals make no automaton")]
pub struct TooLarge(#[source] aho_corasick::BuildError);

impl Scanner<'static> {
    /// One that keeps the catalogue: for a caller that judges many times.
    pub fn owning(catalogue: Catalogue) -> Result<Self, TooLarge> {
        Self::over(Cow::Owned(catalogue))
    }
}

impl<'c> Scanner<'c> {
    /// Makes the automaton.
    pub fn new(catalogue: &'c Catalogue) -> Result<Self, TooLarge> {
        Self::over(Cow::Borrowed(catalogue))
    }

    fn over(catalogue: Cow<'c, Catalogue>) -> Result<Self, TooLarge> {
        let mut words: Vec<&str> = Vec::new();
        let mut owners: Vec<Vec<(usize, usize)>> = Vec::new();
        let mut places = std::collections::BTreeMap::new();
        for (signal_place, signal) in catalogue.signals.iter().enumerate() {
            for (phrase_place, phrase) in signal.says.iter().enumerate() {
                for literal in &phrase.literals {
                    let place = *places.entry(literal.as_str()).or_insert_with(|| {
                        words.push(literal);
                        owners.push(Vec::new());
                        owners.len() - 1
                    });
                    owners[place].push((signal_place, phrase_place));
                }
            }
        }
        let literals = AhoCorasick::new(&words).map_err(TooLarge)?;
        let filter = LineFilter::new(&catalogue);
        Ok(Self { catalogue, literals, owners, filter })
    }

    /// What is known.
    pub fn catalogue(&self) -> &Catalogue {
        &self.catalogue
    }

    /// Signals that a comparable line carries, each with where its words begin.
    fn signals(&self, comparable: &str, level: Level, found: &mut Vec<(usize, usize)>) {
        let mut tried = BTreeSet::new();
        for literal in self.literals.find_overlapping_iter(comparable) {
            for &(place, phrase) in &self.owners[literal.pattern().as_usize()] {
                if !tried.insert((place, phrase)) || found.iter().any(|(seen, _)| *seen == place) {
                    continue;
                }
                let signal = &self.catalogue.signals[place];
                if let Some(at) = carries(signal, phrase, comparable, level) {
                    found.push((place, at));
                }
            }
        }
        found.sort_unstable();
    }
}

fn carries(signal: &Signal, phrase: usize, comparable: &str, level: Level) -> Option<usize> {
    if level < signal.level {
        return None;
    }
    let at = signal.says[phrase].find(comparable)?;
    let excepted = signal.unless.iter().any(|phrase| phrase.find(comparable).is_some());
    (!excepted).then_some(at)
}

/// Reads sources and remembers what was seen.
#[derive(Debug)]
pub struct Reader<'s> {
    scanner: &'s Scanner<'s>,
    jobs: NonZeroUsize,
    cuts: Cuts,
    seen: Seen,
}

impl<'s> Reader<'s> {
    /// Nothing is read yet.
    pub fn new(scanner: &'s Scanner<'s>) -> Self {
        Self { scanner, jobs: NonZeroUsize::MIN, cuts: Cuts::default(), seen: Seen::default() }
    }

    /// So many threads pick the lines of a long source that may be of interest; what is found is the same.
    #[must_use]
    pub fn with_jobs(self, jobs: NonZeroUsize) -> Self {
        Self { jobs, ..self }
    }

    /// Cuts long sources elsewhere.
    #[doc(hidden)]
    #[must_use]
    pub fn with_cuts(self, cuts: Cuts) -> Self {
        Self { cuts, ..self }
    }

    /// Takes over what another reader saw in sources that come after ours.
    pub fn append(&mut self, after: Self) {
        for (source, hit) in self.seen.append(after.seen) {
            self.same_machine_id(source, &hit);
        }
    }

    /// Two sources name two machines with one id.
    fn same_machine_id(&mut self, source: usize, hit: &Hit) {
        let signals = self.scanner.catalogue.signals.iter().enumerate();
        for (place, signal) in signals.filter(|(_, signal)| signal.fact == Some(Fact::SameMachineId)) {
            if !self.seen.sighted(place) {
                self.seen.sight(signal, place, source, hit.line, None, &hit.text, &hit.text);
            }
        }
    }

    /// The platform, where the caller or a source names it.
    pub fn platform(&mut self, name: &str) {
        self.seen.platform = Some(name.to_ascii_lowercase());
    }

    /// Reads a source that is a text in memory; a line that is longer than the bound is cut.
    pub fn text(&mut self, source: &str, text: &str) {
        let mut open = self.open(source);
        for line in text.lines() {
            open.line(&line[..line.floor_char_boundary(LINE_BYTES_MAX)]);
        }
        open.close();
    }

    /// Reads a source line by line; a line that is longer than the bound is cut. Beyond the first mebibyte only lines that
    /// hold a word of the catalogue are looked at. The error is the source's own.
    pub fn lines(&mut self, source: &str, mut from: impl BufRead) -> io::Result<()> {
        let mut open = self.open(source);
        let result =
            open.whole(&mut from).and_then(|more| if more { open.filtered(&mut from) } else { Ok(()) });
        open.close();
        result
    }

    fn open<'r>(&'r mut self, source: &str) -> Open<'r, 's> {
        let source = self.seen.open(source);
        Open { reader: self, source, number: 0, listing: Listing::new(), found: Vec::new() }
    }

    /// Forgets signs that their source may not give.
    pub(crate) fn keep(&mut self, may_give: impl Fn(&str, &Signal) -> bool) {
        let (signals, Seen { sightings, sources, .. }) = (&self.scanner.catalogue.signals, &mut self.seen);
        sightings.retain(|(signal, source), _| may_give(&sources[*source], &signals[*signal]));
    }

    /// What was seen so far.
    pub fn seen(&self) -> &Seen {
        &self.seen
    }

    /// What is known.
    pub fn catalogue(&self) -> &'s Catalogue {
        self.scanner.catalogue()
    }
}

/// A source that is being read.
struct Open<'r, 's> {
    reader: &'r mut Reader<'s>,
    source: usize,
    number: u64,
    listing: Listing,
    found: Vec<(usize, usize)>,
}

impl Open<'_, '_> {
    /// Looks at every line of the beginning; true when there is more.
    fn whole(&mut self, from: &mut impl BufRead) -> io::Result<bool> {
        let (mut line, mut bytes) = (Vec::new(), 0);
        while bounded_line(from, &mut line)? {
            self.line(&String::from_utf8_lossy(&line));
            bytes += line.len() + 1;
            if bytes > self.reader.cuts.whole_bytes {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Looks at the lines of the rest that may be of interest, block by block.
    fn filtered(&mut self, from: &mut impl BufRead) -> io::Result<()> {
        let (filter, jobs) = (&self.reader.scanner.filter, self.reader.jobs);
        let mut blocks = Blocks::of(from, self.reader.cuts.block_bytes);
        ahead::each(filter, jobs, &mut blocks, |bytes, picked| self.block(bytes, picked));
        blocks.end()
    }

    /// The picked lines of a block, and all lines while a table goes on.
    fn block(&mut self, bytes: &[u8], picked: &Picked) {
        let mut next = picked.lines.iter().peekable();
        let (mut at, mut passed) = (0, 0);
        while at < bytes.len() {
            if !self.listing.is_open() {
                while next.next_if(|line| line.begin < at).is_some() {}
                let until =
                    next.next().map_or((bytes.len(), picked.newlines), |line| (line.begin, line.before));
                self.number += until.1 - passed;
                self.reader.seen.lines += until.1 - passed;
                (at, passed) = until;
                if at == bytes.len() {
                    return;
                }
            }
            let end = memchr(b'\n', &bytes[at..]).map_or(bytes.len(), |newline| at + newline);
            self.line(&String::from_utf8_lossy(&bytes[at..end.min(at + LINE_BYTES_MAX)]));
            (at, passed) = (end + 1, passed + 1);
        }
    }

    fn line(&mut self, raw: &str) {
        self.number += 1;
        let line = lines::unwrapped(raw);
        let comparable = lines::comparable(&line);
        if comparable.is_empty() {
            self.listing.read(self.number, "");
            return;
        }
        self.listing.read(self.number, &line);
        let level = lines::level(&comparable);
        self.found.clear();
        self.reader.scanner.signals(&comparable, level, &mut self.found);
        let signals = &self.reader.scanner.catalogue.signals;
        if self.found.iter().any(|(place, _)| signals[*place].excuses) {
            self.found.retain(|(place, _)| signals[*place].cause.is_none());
        }
        let seen = &mut self.reader.seen;
        seen.lines += 1;
        if self.found.is_empty() {
            seen.trouble(self.source, self.number, &line, &comparable, level);
            return;
        }
        let time_s = lines::seconds(&comparable);
        for &(place, at) in &self.found {
            let signal = &self.reader.scanner.catalogue.signals[place];
            seen.sight(signal, place, self.source, self.number, time_s, &line, &comparable[at..]);
        }
    }

    fn close(mut self) {
        let signals = &self.reader.scanner.catalogue.signals;
        self.reader.seen.listed(self.listing.nodes());
        let ids = self.listing.machine_ids();
        for shown in self.listing.end() {
            for (place, signal) in
                signals.iter().enumerate().filter(|(_, signal)| signal.fact == Some(shown.fact))
            {
                self.reader.seen.sight(
                    signal,
                    place,
                    self.source,
                    shown.line,
                    None,
                    &shown.text,
                    &shown.text,
                );
            }
        }
        for (id, owners, shown) in ids {
            let hit = Hit { line: shown.line, text: seen::quoted(&shown.text) };
            let owned = Owned { owners, source: self.source, hit };
            if let Some((source, hit)) = self.reader.seen.owned(id, owned) {
                self.reader.same_machine_id(source, &hit);
            }
        }
    }
}

/// The next line without its end, cut at the bound; false at the end of the source.
fn bounded_line(from: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<bool> {
    line.clear();
    let mut any = false;
    loop {
        let buffer = match from.fill_buf() {
            Ok(buffer) => buffer,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if buffer.is_empty() {
            return Ok(any);
        }
        any = true;
        let end = memchr(b'\n', buffer);
        let part = &buffer[..end.unwrap_or(buffer.len())];
        let room = LINE_BYTES_MAX.saturating_sub(line.len());
        line.extend_from_slice(&part[..part.len().min(room)]);
        let used = end.map_or(buffer.len(), |end| end + 1);
        from.consume(used);
        if end.is_some() {
            return Ok(true);
        }
    }
}

#[cfg(test)]
mod tests;

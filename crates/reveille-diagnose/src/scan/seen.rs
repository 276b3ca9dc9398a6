//! What was seen: of each signal in each source the first lines, the last, and how often. Bounded, whatever the input.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use reveille_core::diagnose::console::mask_secrets;

use crate::catalogue::Signal;
use crate::lines::{Level, readable};
use crate::tables::MachineId;

/// Lines that are kept of one signal in one source.
const KEPT_MAX: usize = 3;
/// Characters of a line that is kept.
const QUOTE_CHARACTERS_MAX: usize = 600;
/// Lines of unexplained trouble that are kept.
const TROUBLE_MAX: usize = 5;
/// Sources of which names are kept; those after it share one place.
const SOURCES_MAX: usize = 20_000;
/// What these names may take, bytes. A member's name within archives within archives has thousands of them.
const SOURCES_BYTES_MAX: usize = 8 << 20;
/// Nodes of listings that are kept.
const NODES_MAX: usize = 20_000;
/// Pairs of signal and source that are kept.
const SIGHTINGS_MAX: usize = 50_000;

/// Words that sound like trouble in a line that does not say its level.
pub(super) const TROUBLE_WORDS: [&str; 9] =
    ["error", "failed", "fatal", "unable to", "cannot", "refused", "denied", "panic", "timed out"];

/// A line that carries a signal, masked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hit {
    /// Its line in the source, from 1.
    pub line: u64,
    /// What it says, masked and readable.
    pub text: String,
}

/// A signal in one source.
#[derive(Clone, Debug, Default)]
pub struct Sighting {
    /// How often, not counting repetitions of one message by several components.
    pub count: u64,
    /// The first lines.
    pub first: Vec<Hit>,
    /// The last line's number.
    pub last_line: u64,
    /// When it was first seen, on the source's own scale.
    pub first_s: Option<i64>,
    /// When it was last seen.
    pub last_s: Option<i64>,
    /// It came soon after a mark that it waits for.
    pub soon: bool,
    last_core: u64,
}

impl Sighting {
    /// Sources beyond the bound share one place.
    fn append(&mut self, after: Self) {
        self.count += after.count;
        self.first.extend(after.first);
        self.first.truncate(KEPT_MAX);
        self.last_line = self.last_line.max(after.last_line);
        self.first_s = self.first_s.or(after.first_s);
        self.last_s = after.last_s.or(self.last_s);
        self.soon |= after.soon;
        self.last_core = after.last_core;
    }
}

/// Who has an id of a machine, and where that was first read.
#[derive(Clone, Debug)]
pub(super) struct Owned {
    pub(super) owners: BTreeSet<String>,
    pub(super) source: usize,
    pub(super) hit: Hit,
}

/// Everything that was seen.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// The platform, where the caller or a source named it.
    pub platform: Option<String>,
    /// Names of the sources, in order.
    pub sources: Vec<String>,
    /// What these names take, bytes.
    sources_bytes: usize,
    /// By signal and source.
    pub sightings: BTreeMap<(usize, usize), Sighting>,
    /// Nodes by name in lower case, and whether every listing that names one calls it Ready at its end.
    pub nodes: BTreeMap<String, bool>,
    /// Ids of machines, with who has them in any source.
    pub(super) machine_ids: BTreeMap<MachineId, Owned>,
    /// How many lines that were not empty.
    pub lines: u64,
    /// How many lines sounded like trouble and carried no signal.
    pub troubles: u64,
    /// The first of them: source and line.
    pub trouble: Vec<(usize, Hit)>,
}

impl Seen {
    /// Whether a signal was seen anywhere.
    pub fn sighted(&self, signal: usize) -> bool {
        self.of(signal).next().is_some()
    }

    /// Sightings of a signal, by source.
    pub fn of(&self, signal: usize) -> impl Iterator<Item = (usize, &Sighting)> {
        self.sightings
            .range((signal, 0)..=(signal, usize::MAX))
            .map(|((_, source), sighting)| (*source, sighting))
    }

    /// Whether a line names a node that is Ready: between characters that no name has.
    pub fn names_ready_node(&self, text: &str) -> bool {
        let text = text.to_ascii_lowercase();
        let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-' || c == '.'));
        words.map(|word| word.trim_matches('.')).any(|word| self.nodes.get(word) == Some(&true))
    }

    pub(super) fn listed(&mut self, nodes: BTreeMap<String, bool>) {
        for (name, ready) in nodes {
            if self.nodes.len() < NODES_MAX || self.nodes.contains_key(&name) {
                *self.nodes.entry(name).or_insert(ready) &= ready;
            }
        }
    }

    /// Records the owners of a machine id; returns the line where another source names a different owner.
    pub(super) fn owned(&mut self, id: MachineId, owned: Owned) -> Option<(usize, Hit)> {
        if self.machine_ids.len() >= NODES_MAX && !self.machine_ids.contains_key(&id) {
            return None;
        }
        match self.machine_ids.entry(id) {
            Entry::Vacant(vacant) => {
                vacant.insert(owned);
                None
            }
            Entry::Occupied(mut known) => {
                let known = &mut known.get_mut().owners;
                let others = *known != owned.owners;
                known.extend(owned.owners);
                others.then_some((owned.source, owned.hit))
            }
        }
    }

    pub(super) fn open(&mut self, source: &str) -> usize {
        let bytes = self.sources_bytes + source.len();
        let has_room = self.sources.len() < SOURCES_MAX && bytes <= SOURCES_BYTES_MAX;
        if has_room || self.sources.is_empty() {
            self.sources_bytes = bytes;
            self.sources.push(source.to_owned());
        }
        self.sources.len() - 1
    }

    /// Puts what was seen in later sources behind what was seen in these; gives the lines back that name another owner of an id
    /// than these do.
    pub(super) fn append(&mut self, after: Self) -> Vec<(usize, Hit)> {
        self.platform = after.platform.or(self.platform.take());
        let places: Vec<usize> = after.sources.iter().map(|source| self.open(source)).collect();
        for ((signal, source), sighting) in after.sightings {
            let key = (signal, places[source]);
            let full = self.sightings.len() >= SIGHTINGS_MAX;
            match self.sightings.entry(key) {
                Entry::Occupied(mut earlier) => earlier.get_mut().append(sighting),
                Entry::Vacant(_) if full => {}
                Entry::Vacant(vacant) => {
                    vacant.insert(sighting);
                }
            }
        }
        self.listed(after.nodes);
        self.lines += after.lines;
        self.troubles += after.troubles;
        let room = TROUBLE_MAX.saturating_sub(self.trouble.len());
        self.trouble.extend(after.trouble.into_iter().take(room).map(|(source, hit)| (places[source], hit)));
        let owned = after.machine_ids.into_iter();
        owned
            .filter_map(|(id, owned)| self.owned(id, Owned { source: places[owned.source], ..owned }))
            .collect()
    }

    #[allow(clippy::too_many_arguments, reason = "one line's facts, handed from the one place that has them")]
    pub(super) fn sight(
        &mut self,
        signal: &Signal,
        place: usize,
        source: usize,
        line: u64,
        time_s: Option<i64>,
        text: &str,
        core: &str,
    ) {
        let soon = signal.soon_after.iter().any(|mark| {
            let then = self.sightings.get(&(*mark, source)).and_then(|sighting| sighting.last_s);
            matches!((then, time_s), (Some(then), Some(now)) if (0..=i64::from(signal.soon_s)).contains(&(now - then)))
        });
        if self.sightings.len() >= SIGHTINGS_MAX && !self.sightings.contains_key(&(place, source)) {
            return;
        }
        let sighting = self.sightings.entry((place, source)).or_default();
        let core = fingerprint(core);
        let repeated = sighting.count > 0
            && sighting.last_core == core
            && line.saturating_sub(sighting.last_line) <= 3
            && sighting.last_s == time_s
            && time_s.is_some();
        sighting.last_core = core;
        sighting.last_line = sighting.last_line.max(line);
        sighting.soon |= soon;
        if time_s.is_some() {
            sighting.first_s = sighting.first_s.or(time_s);
            sighting.last_s = time_s;
        }
        if repeated {
            return;
        }
        sighting.count += 1;
        if sighting.first.len() < KEPT_MAX {
            sighting.first.push(Hit { line, text: quoted(text) });
        }
    }

    pub(super) fn trouble(&mut self, source: usize, line: u64, text: &str, comparable: &str, level: Level) {
        let sounds = match level {
            Level::Error => true,
            Level::Unsaid => TROUBLE_WORDS.iter().any(|word| says(comparable, word)),
            Level::Debug | Level::Info | Level::Warning => false,
        };
        if !sounds {
            return;
        }
        self.troubles += 1;
        if self.trouble.len() < TROUBLE_MAX {
            self.trouble.push((source, Hit { line, text: quoted(text) }));
        }
    }
}

/// Whether a word stands there for itself: `liberror-perl` is a package, and `panic=1` an argument of the kernel.
fn says(comparable: &str, word: &str) -> bool {
    let is_part = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    comparable.match_indices(word).any(|(at, _)| {
        let after = &comparable[at + word.len()..];
        let is_argument = word == "panic" && after.starts_with('=');
        !is_part(comparable[..at].chars().next_back()) && !is_part(after.chars().next()) && !is_argument
    })
}

pub(super) fn quoted(text: &str) -> String {
    // Masked before it is cut: a cut may take away what tells a secret.
    readable(&mask_secrets(text), QUOTE_CHARACTERS_MAX)
}

/// The same for two messages that differ in numbers only.
fn fingerprint(core: &str) -> u64 {
    const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01b3;
    core.bytes()
        .filter(|byte| !byte.is_ascii_digit())
        .take(64)
        .fold(OFFSET, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME))
}

//! Passes over the lines of a long log that can hold nothing of interest, without looking at them one by one.
//!
//! ```text
//!  block of raw bytes ─▶ every second window of four bytes ─▶ a bit of 262,144? ─▶ which words, compared ─▶ the next line that
//!                            └─ no, nearly always: the lines are counted                                   holds one is read
//! ```
//!
//! Of every literal of the catalogue the longest stretch is looked for, in any case, that holds no quote and nothing that a
//! quote or an escape stands beside: wrappers cannot hide it. Words of trouble and headers of tables pass as well. Three things
//! are lost in a long log beyond its beginning: bare ids, which no word announces; words that a program wrote with more than
//! one space between them; and lines that are cut within the only literal of a phrase.
//!
//! Each word is known by two neighbouring windows of four of its bytes, of which one stands at an even place wherever the word
//! stands, so that half of all places are looked at. Of a word's pairs of windows the one is taken that is rarest in ordinary
//! lines (`ordinary.txt`), and then in the catalogue's own examples. The bits fit into the nearest cache; an automaton over the
//! same words does not, and waits for memory at most bytes, which was three to five times slower.

use std::collections::{BTreeMap, BTreeSet};

use memchr::{memchr, memchr_iter, memrchr};

use super::seen::TROUBLE_WORDS;
use crate::catalogue::Catalogue;
use crate::tables::WORDS as TABLE_WORDS;

/// Bytes of a window.
const WINDOW: usize = 4;
/// From one window that is looked at to the next.
const STRIDE: usize = 2;
/// Windows whose bits are asked for before the answers are.
const AT_ONCE: usize = 8;
/// Bytes that these windows cover.
const CHUNK: usize = STRIDE * (AT_ONCE - 1) + WINDOW;
/// Lines of machines that are well, of every usual program: most of a long log is like these.
const ORDINARY: &str = include_str!("ordinary.txt");
/// An ordinary line stands for so many.
const ORDINARY_TIMES: u32 = 64;
/// A shorter word does not fill two windows.
const WORD_BYTES_MIN: usize = WINDOW + STRIDE - 1;
/// So many bits of a window's hash say where it is looked up.
const HASH_BITS: u32 = 18;
const BITS_WORDS: usize = (1 << HASH_BITS) / u64::BITS as usize;

/// The words, ready to be looked for.
#[derive(Debug)]
pub(super) struct LineFilter {
    words: Vec<Box<[u8]>>,
    /// What windows are multiplied with.
    factor: u32,
    /// One bit for each hash of a window that some word has.
    bits: Box<[u64; BITS_WORDS]>,
    /// For each hash where its windows begin in `windows`, and one more at the end.
    starts: Box<[u32]>,
    windows: Vec<Known>,
}

/// The lines of a block that hold a word.
#[derive(Clone, Debug, Default)]
pub(super) struct Picked {
    pub(super) lines: Vec<PickedLine>,
    /// Ends of lines in the whole block.
    pub(super) newlines: u64,
}

/// A line of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PickedLine {
    /// Where it begins.
    pub(super) begin: usize,
    /// Lines of the block before it.
    pub(super) before: u64,
}

fn newlines(bytes: &[u8]) -> u64 {
    memchr_iter(b'\n', bytes).count() as u64
}

/// A window that belongs to a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Known {
    hash: u32,
    folded: u32,
    word: u16,
    /// The word begins so many bytes before the window, or (for a byte that stands before it) after.
    begins: i16,
}

impl LineFilter {
    pub(super) fn new(catalogue: &Catalogue) -> Self {
        let words = words(catalogue);
        let examples = catalogue.signals.iter().flat_map(|signal| signal.yes.iter().chain(&signal.near));
        let mut common: BTreeMap<u32, u32> = BTreeMap::new();
        let mut count = |text: &str, times: u32| {
            for window in text.as_bytes().windows(WINDOW) {
                *common.entry(folded(window)).or_default() += times;
            }
        };
        examples.for_each(|example| count(example, 1));
        count(ORDINARY, ORDINARY_TIMES);
        let mut windows = Vec::new();
        for (place, word) in words.iter().enumerate() {
            // More words than this number holds are no catalogue that a person wrote.
            let place = u16::try_from(place).unwrap_or(u16::MAX);
            let mut note = |bytes: [u8; WINDOW], begins: i16| {
                windows.push(Known { hash: 0, folded: folded(&bytes), word: place, begins });
            };
            windows_of(word, &common, &mut note);
        }
        let factor = factor(&windows);
        for known in &mut windows {
            known.hash = hash(known.folded, factor);
        }
        windows.sort_unstable();
        windows.dedup();
        let mut bits = Box::new([0_u64; BITS_WORDS]);
        let mut starts = vec![0_u32; (1 << HASH_BITS) + 1].into_boxed_slice();
        for known in &windows {
            bits[known.hash as usize / 64] |= 1 << (known.hash % 64);
            starts[known.hash as usize + 1] += 1;
        }
        for place in 1..starts.len() {
            starts[place] += starts[place - 1];
        }
        Self { words, factor, bits, starts, windows }
    }

    /// The lines of a block of whole lines that hold a word.
    pub(super) fn pick(&self, block: &[u8], picked: &mut Picked) {
        picked.lines.clear();
        let (mut at, mut before) = (0, 0);
        while let Some(word) = self.find(&block[at..]) {
            let begin = memrchr(b'\n', &block[at..at + word]).map_or(at, |newline| at + newline + 1);
            before += newlines(&block[at..begin]);
            picked.lines.push(PickedLine { begin, before });
            let Some(end) = memchr(b'\n', &block[begin..]) else {
                picked.newlines = before;
                return;
            };
            (at, before) = (begin + end + 1, before + 1);
        }
        picked.newlines = before + newlines(&block[at..]);
    }

    /// Where the next word stands in the bytes.
    fn find(&self, bytes: &[u8]) -> Option<usize> {
        let mut at = 0;
        while let Some(chunk) = bytes.get(at..at + CHUNK) {
            let mut hits = 0_u32;
            for window in 0..AT_ONCE {
                let folded = folded(&chunk[window * STRIDE..window * STRIDE + WINDOW]);
                hits |= self.bit(hash(folded, self.factor)) << window;
            }
            while hits != 0 {
                let window = hits.trailing_zeros() as usize;
                let found = self.word_at(bytes, at + window * STRIDE);
                if found.is_some() {
                    return found;
                }
                hits &= hits - 1;
            }
            at += AT_ONCE * STRIDE;
        }
        (at..bytes.len()).step_by(STRIDE).find_map(|at| self.word_at(bytes, at))
    }

    const fn bit(&self, hash: u32) -> u32 {
        (self.bits[hash as usize / 64] >> (hash % 64)) as u32 & 1
    }

    /// Where the word begins whose window stands here.
    fn word_at(&self, bytes: &[u8], at: usize) -> Option<usize> {
        let mut window = [b'\n'; WINDOW];
        let there = &bytes[at..bytes.len().min(at + WINDOW)];
        window[..there.len()].copy_from_slice(there);
        let folded = folded(&window);
        let hash = hash(folded, self.factor) as usize;
        let known = &self.windows[self.starts[hash] as usize..self.starts[hash + 1] as usize];
        known.iter().filter(|known| known.folded == folded).find_map(|known| {
            let begin = at.checked_add_signed(-isize::from(known.begins))?;
            let word = &self.words[usize::from(known.word)];
            let there = bytes.get(begin..begin + word.len())?;
            there.eq_ignore_ascii_case(word).then_some(begin)
        })
    }
}

/// The two windows that are rarest, or for a short word every window that can stand where it stands.
fn windows_of(word: &[u8], common: &BTreeMap<u32, u32>, note: &mut impl FnMut([u8; WINDOW], i16)) {
    let often = |at: usize| common.get(&folded(&word[at..at + WINDOW])).copied().unwrap_or(0);
    if word.len() >= WORD_BYTES_MIN {
        let pairs = 0..=word.len() - WORD_BYTES_MIN;
        let rarest = pairs.min_by_key(|at| often(*at) + often(at + 1)).unwrap_or(0);
        for at in [rarest, rarest + 1] {
            let mut window = [0; WINDOW];
            window.copy_from_slice(&word[at..at + WINDOW]);
            note(window, i16::try_from(at).unwrap_or(i16::MAX));
        }
        return;
    }
    for beside in 0..=u8::MAX {
        let mut window = [beside; WINDOW];
        let kept = word.len().min(WINDOW);
        window[..kept].copy_from_slice(&word[..kept]);
        note(window, 0);
        let mut window = [beside; WINDOW];
        let kept = word.len().min(WINDOW - 1);
        window[1..=kept].copy_from_slice(&word[..kept]);
        note(window, -1);
    }
}

/// In one case, as far as letters go; other bytes fall together with some that are rare in logs.
fn folded(window: &[u8]) -> u32 {
    let mut bytes = [0; WINDOW];
    bytes.copy_from_slice(window);
    u32::from_le_bytes(bytes) | 0x2020_2020
}

/// The upper bits of a product with an odd number: neighbouring windows fall far apart.
const fn hash(folded: u32, factor: u32) -> u32 {
    folded.wrapping_mul(factor) >> (u32::BITS - HASH_BITS)
}

/// Of some odd numbers the one with which the fewest ordinary windows fall on a word's bit by chance. It is the same for the
/// same words, and changes nothing of what is found.
fn factor(windows: &[Known]) -> u32 {
    const FACTORS: u32 = 32;
    let ordinary: BTreeSet<u32> = ORDINARY.as_bytes().windows(WINDOW).map(folded).collect();
    let by_chance = |factor: u32| {
        let mut taken = vec![false; 1 << HASH_BITS];
        windows.iter().for_each(|known| taken[hash(known.folded, factor) as usize] = true);
        ordinary.iter().filter(|window| taken[hash(**window, factor) as usize]).count()
    };
    let factors = (0..FACTORS).map(|number| 0x9E37_79B1_u32.wrapping_add(number.wrapping_mul(0x85EB_CA6A)));
    factors.min_by_key(|factor| by_chance(*factor)).unwrap_or(0x9E37_79B1)
}

/// The words, none of which holds another: a word that does passes by the other.
fn words(catalogue: &Catalogue) -> Vec<Box<[u8]>> {
    let literals =
        catalogue.signals.iter().flat_map(|signal| &signal.says).flat_map(|phrase| &phrase.whole_literals);
    let mut words: Vec<&str> = literals.map(|literal| needle(literal)).collect();
    words.extend(TROUBLE_WORDS.iter().copied());
    words.extend(TABLE_WORDS);
    words.sort_unstable();
    words.dedup();
    let holds_none = |word: &&&str| !words.iter().any(|other| other != *word && word.contains(other));
    words.iter().filter(holds_none).map(|word| word.as_bytes().into()).collect()
}
/// What is looked for in the place of a literal: its longest stretch without what quotes and escapes stand beside.
fn needle(literal: &str) -> &str {
    let beside =
        |c: char| matches!(c, '=' | ',' | '{' | '}' | '[' | ']' | '(' | ')' | '<' | '>' | '\\' | '|');
    let stretches = literal.split(beside).map(str::trim);
    stretches.max_by_key(|stretch| stretch.len()).filter(|stretch| stretch.len() > 2).unwrap_or(literal)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines of machines that are well; a word that passes them makes a gigabyte slow.
    const QUIET: [&str; 6] = [
        "Nov 21 01:02:03 host systemd[1]: Started Daily apt download activities.",
        "Nov 21 01:00:22 w-1 kubelet[811]: I1121 01:00:33.222222     811 kubelet.go:2205] \"SyncLoop (PLEG): event for pod\" pod=\"kube-system/coredns-12312\" event={ID:123 Type:ContainerStarted Data:abcdef}",
        "time=\"2024-11-21T01:00:33.222Z\" level=info msg=\"StartContainer for \\\"abc\\\" returns successfully\"",
        "{\"level\":\"info\",\"ts\":\"2024-11-21T01:00:12.123Z\",\"caller\":\"mvcc/hash.go:137\",\"msg\":\"storing new hash\",\"hash\":12}",
        "2024-11-21T01:00:11.123456789Z stdout F 10.244.1.22 - - [21/Nov/2024:01:00:22 +0000] \"GET /healthz HTTP/1.1\" 200 2 \"-\" \"kube-probe/1.30\"",
        "I1121 01:00:22.222       1 trace.go:236] Trace[123]: \"Update\" accept:application/json,audit-id:abc,client:10.0.0.22,resource:leases (21-Nov-2024 01:00:22) (total time: 33ms)",
    ];

    #[test]
    fn every_example_of_the_catalogue_passes() {
        let catalogue = Catalogue::built_in().unwrap();
        let filter = LineFilter::new(&catalogue);
        for signal in catalogue.signals.iter().filter(|signal| !signal.says.is_empty()) {
            for text in &signal.yes {
                assert!(filter.find(text.as_bytes()).is_some(), "{}: {text}", signal.id);
            }
        }
        let passed: Vec<&str> =
            QUIET.iter().filter_map(|text| filter.find(text.as_bytes()).map(|at| &text[at..])).collect();
        assert!(passed.is_empty(), "{passed:?}");
    }

    #[test]
    fn words_are_whole() {
        assert_eq!(needle("no such host"), "no such host");
        assert_eq!(needle("reason=noroutecreated"), "noroutecreated");
        assert_eq!(needle("node.kubernetes.io/x"), "node.kubernetes.io/x");
    }

    /// What the windows find is what a look at every place finds, wherever the word stands.
    #[test]
    fn every_word_is_found_at_every_place() {
        let filter = LineFilter::new(&Catalogue::built_in().unwrap());
        for word in &filter.words {
            for before in 0..2 * CHUNK {
                for after in [0, 1, 3, CHUNK] {
                    let text =
                        [&b"~".repeat(before)[..], &word.to_ascii_uppercase(), &b"~".repeat(after)].concat();
                    assert_eq!(filter.find(&text), Some(before), "{}", String::from_utf8_lossy(&text));
                }
            }
        }
    }
}

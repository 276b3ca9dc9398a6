//! Passes over the lines of a long log that can hold nothing of interest, without looking at them one by one.
//!
//! ```text
//!  block of raw bytes ─▶ one automaton over single words ─▶ the next line that holds one ─▶ read like any other line
//!                              └─ none: the lines are counted
//! ```
//!
//! Of every literal of the catalogue the longest stretch is looked for, in any case, that holds no quote and nothing that a
//! quote or an escape stands beside: wrappers cannot hide it. Words of trouble and headers of tables pass as well. Three things
//! are lost in a long log beyond its beginning: bare ids, which no word announces; words that a program wrote with more than
//! one space between them; and lines that are cut within the only literal of a phrase.

use aho_corasick::{AhoCorasick, AhoCorasickKind, BuildError};

use super::seen::TROUBLE_WORDS;
use crate::catalogue::Catalogue;
use crate::tables::WORDS as TABLE_WORDS;

/// The automaton.
#[derive(Debug)]
pub(super) struct Sieve {
    words: AhoCorasick,
}

impl Sieve {
    pub(super) fn new(catalogue: &Catalogue) -> Result<Self, BuildError> {
        let literals = catalogue
            .signals
            .iter()
            .flat_map(|signal| &signal.says)
            .flat_map(|phrase| &phrase.whole_literals);
        let mut words: Vec<&str> = literals.map(|literal| needle(literal)).collect();
        words.extend(TROUBLE_WORDS.iter().copied());
        words.extend(TABLE_WORDS);
        words.sort_unstable();
        words.dedup();
        // A word that holds another one passes by the other.
        let least: Vec<&str> = words
            .iter()
            .filter(|word| !words.iter().any(|other| other != *word && word.contains(other)))
            .copied()
            .collect();
        let words = AhoCorasick::builder()
            .ascii_case_insensitive(true)
            .kind(Some(AhoCorasickKind::DFA))
            .build(&least)?;
        Ok(Self { words })
    }

    /// Where the next word stands in the bytes.
    pub(super) fn find(&self, bytes: &[u8]) -> Option<usize> {
        self.words.find(bytes).map(|found| found.start())
    }
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
        let sieve = Sieve::new(&catalogue).unwrap();
        for signal in catalogue.signals.iter().filter(|signal| !signal.says.is_empty()) {
            for text in &signal.yes {
                assert!(sieve.find(text.as_bytes()).is_some(), "{}: {text}", signal.id);
            }
        }
        let passed: Vec<(&str, &str)> = QUIET
            .iter()
            .flat_map(|text| sieve.words.find_iter(text).map(|found| (&text[found.range()], &text[..40])))
            .collect();
        assert!(passed.is_empty(), "{passed:?}");
    }

    #[test]
    fn words_are_whole() {
        assert_eq!(needle("no such host"), "no such host");
        assert_eq!(needle("reason=noroutecreated"), "noroutecreated");
        assert_eq!(needle("node.kubernetes.io/x"), "node.kubernetes.io/x");
    }
}

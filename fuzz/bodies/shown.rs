//! What must hold of everything that is shown to a person, whatever was read.
//!
//! ```text
//!  Reader ─▶ judge ─▶ every quote: one line, no control characters, no longer than a quote may be
//! ```
//!
//! Panics where something does not hold, which is how libFuzzer and a test both learn of it.

use reveille_diagnose::{Diagnosis, Finding, Quote, Reader, judge};

/// Characters of a quote, and the sign that it was cut.
const QUOTE_CHARACTERS_MAX: usize = 600 + 1;

/// One line without anything that a terminal would obey.
pub(crate) fn readable(text: &str) {
    assert!(!text.chars().any(char::is_control), "control characters are shown: {text:?}");
}

/// Everything that is quoted of what was read.
pub(crate) fn quotes(reader: &Reader<'_>) -> Vec<String> {
    let Diagnosis { findings, unknown } = judge(reader);
    let mut all = Vec::new();
    for finding in &findings {
        of_finding(finding, &mut all);
    }
    let unexplained = unknown.iter().flat_map(|unknown| &unknown.lines);
    all.extend(unexplained.inspect(|quote| check(quote)).map(|quote| quote.text.clone()));
    // Text that no page shows today may be shown tomorrow.
    let seen = reader.seen();
    let kept = seen.sightings.values().flat_map(|sighting| &sighting.first);
    let kept = kept.chain(seen.trouble.iter().map(|(_, hit)| hit));
    all.extend(kept.map(|hit| hit.text.clone()));
    for text in &all {
        readable(text);
        assert!(text.chars().count() <= QUOTE_CHARACTERS_MAX, "a quote is too long: {text}");
    }
    all
}

fn of_finding(finding: &Finding, all: &mut Vec<String>) {
    let quotes = finding.evidence.iter().chain(&finding.against);
    all.extend(quotes.inspect(|quote| check(quote)).map(|quote| quote.text.clone()));
    for follower in &finding.follows {
        of_finding(follower, all);
    }
}

fn check(quote: &Quote) {
    readable(&quote.source);
    assert!(quote.line > 0, "a quote without a line");
}

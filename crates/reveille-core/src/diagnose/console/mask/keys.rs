//! Private keys: between their marks, where one mark is cut off, and where both are.

use std::ops::Range;

use super::MASK;
use super::random::is_random_base64;
use super::shapes::{behind_a_name, is_base64, is_blob, is_public};
use super::value::{cut, found_once};

/// How a private key ends.
const END: &str = "-----END";

/// From `BEGIN … PRIVATE KEY` to its `END`. Where the end is cut off, as far as the lines look like key material.
pub(super) fn private_keys(text: &str, ranges: &mut Vec<Range<usize>>) {
    /// OpenVPN's static keys, and those of its second `tls-crypt`.
    const MARKS: [&str; 4] =
        ["PRIVATE KEY", "Static key V1", "tls-crypt-v2 server key", "tls-crypt-v2 client key"];
    for mark in MARKS {
        keys_of(text, mark, ranges);
    }
    of_putty(text, ranges);
    bare_blocks(text, ranges);
}

fn keys_of(text: &str, mark: &str, ranges: &mut Vec<Range<usize>>) {
    const NEAR_BYTES: usize = 16 * 1024;
    let (mut ends, mut spaced_ends) = (None, None);
    let mut from = 0;
    while let Some(at) = text[from..].find(mark).map(|at| from + at + mark.len()) {
        from = at;
        // PGP calls it a block; SSH2 has four dashes and a space.
        let rest = text[at..].strip_prefix(" BLOCK").unwrap_or(&text[at..]);
        let Some(rest) = rest.strip_prefix("-----").or_else(|| rest.strip_prefix(" ----")) else { continue };
        let at = text.len() - rest.len();
        if is_end_marker(text, at) {
            continue;
        }
        let near = |end: usize| Some(end - at).filter(|length| *length < NEAR_BYTES);
        let end = near(next(&mut ends, text, at, END))
            .or_else(|| near(next(&mut spaced_ends, text, at, "---- END")))
            .unwrap_or_else(|| key_lines(rest));
        if end > 0 {
            ranges.push(at..at + end);
        }
        from = at + end;
    }
}

/// PuTTY says how many lines of key follow: `Private-Lines: 14`.
fn of_putty(text: &str, ranges: &mut Vec<Range<usize>>) {
    const NAME: &str = "Private-Lines: ";
    const LINES_MAX: usize = 256;
    let mut until = 0;
    for (found, _) in text.match_indices(NAME) {
        let rest = &text[found + NAME.len()..];
        let digits = rest.bytes().take(4).take_while(u8::is_ascii_digit).count();
        let count = rest[..digits].parse().unwrap_or(0).min(LINES_MAX);
        let Some(line) = cut(rest, 64).find('\n').filter(|_| found >= until) else { continue };
        let mut at = found + NAME.len() + line + 1;
        for line in text[at..].split_inclusive('\n').take(count) {
            let end = at + line.trim_end().len();
            let word = text[at..end].rsplit(char::is_whitespace).next().unwrap_or("");
            if word.is_empty() || !word.bytes().all(is_base64) {
                break;
            }
            ranges.push(end - word.len()..end);
            at += line.len();
        }
        until = at;
    }
}

/// Where this stands next; asked for in the order of the text, it is looked for once.
fn next(known: &mut Option<(usize, usize)>, text: &str, from: usize, what: &str) -> usize {
    found_once(known, from, || text[from..].find(what).map_or(usize::MAX, |at| from + at))
}

/// The marker that ends a key has its `END` near by, and on the same line.
fn is_end_marker(text: &str, marker_end: usize) -> bool {
    const NEAR_BYTES: usize = 64;
    let near = &text.as_bytes()[marker_end.saturating_sub(NEAR_BYTES)..marker_end];
    let line = near.iter().rposition(|byte| *byte == b'\n').map_or(near, |at| &near[at + 1..]);
    line.windows(END.len()).any(|part| part == END.as_bytes() || part == b"---- END")
}

/// How many bytes of lines whose last word is key material follow.
fn key_lines(text: &str) -> usize {
    /// No line of a key is longer, whatever a logger writes before it.
    const LINE_BYTES_MAX: usize = 16 * 1024;
    let mut end = 0;
    while end < text.len() {
        let near = cut(&text[end..], LINE_BYTES_MAX);
        let line = near.split_inclusive('\n').next().unwrap_or(near);
        let word = line.split_whitespace().next_back().unwrap_or("");
        if !word.bytes().all(is_base64) {
            break;
        }
        end += line.len();
    }
    end
}

/// Lines of base64 alone, without any mark: the last of them may be too short to be known by itself.
fn bare_blocks(text: &str, ranges: &mut Vec<Range<usize>>) {
    const LINE_BYTES_MIN: usize = 60;
    const REST_BYTES_MIN: usize = 4;
    // How far in the last word of the line before began, when that was a line of a block.
    let mut block: Option<usize> = None;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let end = at + line.trim_end().len();
        let word = text[at..end].rsplit(char::is_whitespace).next().unwrap_or("");
        let start = end - word.len();
        let is_material = !word.is_empty() && word.bytes().all(is_base64);
        let is_full = word.len() >= LINE_BYTES_MIN
            && !is_public(&text[at..start], word)
            && is_material
            && (is_blob(word) || is_random_base64(word));
        let is_rest = block == Some(start - at)
            && is_material
            && word.len() >= REST_BYTES_MIN
            && word.len().is_multiple_of(4);
        if is_full || is_rest {
            ranges.push(end - behind_a_name(word).len()..end);
        }
        // A line that is masked already goes on.
        let is_masked = word == MASK && block == Some(start - at);
        block = (is_full || is_masked).then_some(start - at);
        at += line.len();
    }
}

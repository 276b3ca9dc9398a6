//! A name and its value as two entries: `{name: DB_PASSWORD, value: x}`, over two lines too, and `Key=…,Value=…` of tags.

use std::ops::Range;

use super::MASK;
use super::names::{Telling, telling};
use super::plain::is_plain;
use super::value::{self, Ends};

/// Within so many bytes behind the name its value begins.
const WINDOW_BYTES: usize = 192;

/// Whether this word introduces the name of a pair.
pub(super) fn names_a_pair(word: &str) -> bool {
    ["name", "key", "parameterkey", "variable", "field", "option"]
        .iter()
        .any(|name| word.eq_ignore_ascii_case(name))
}

fn holds_the_value(word: &str) -> bool {
    ["value", "parametervalue", "contents", "default"].iter().any(|name| word.eq_ignore_ascii_case(name))
}

/// Marks the value of the pair whose name is introduced here, when the name tells of a secret.
pub(super) fn value_of_pair(
    text: &str,
    word: &Range<usize>,
    ends: &mut Ends,
    ranges: &mut Vec<Range<usize>>,
) {
    let Some((start, _)) = value::start(text, word.start, word.end) else { return };
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    let start = start + text[start..].bytes().take_while(|byte| matches!(byte, b'"' | b'\'' | b'\\')).count();
    let end =
        start + text.as_bytes()[start..].iter().take(WINDOW_BYTES).take_while(|byte| is_name(byte)).count();
    let name = text[start..end].rsplit('.').next().unwrap_or("");
    let tells = telling(name).is_some_and(|telling| telling != Telling::IfRandom);
    if !tells {
        return;
    }
    let Some(found) = value_behind(text, end) else { return };
    let end = ends.quoted(text, found).unwrap_or_else(|| ends.entry(text, found));
    let value = &text[found..end];
    if !value.is_empty() && !value.starts_with(MASK) && !is_plain(value) {
        ranges.push(found..end);
    }
}

/// Where the value begins: the next name is `value`, and it is on this line or the next one.
fn value_behind(text: &str, from: usize) -> Option<usize> {
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric();
    let bytes = text.as_bytes();
    let mut end = (from + WINDOW_BYTES).min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let mut at = from;
    while at < end {
        let start = at + bytes[at..end].iter().position(is_word)?;
        if text[from..start].matches('\n').count() > 1 {
            return None;
        }
        let stop = start + bytes[start..end].iter().take_while(|byte| is_word(byte)).count();
        let word = &text[start..stop];
        if holds_the_value(word) {
            return value::start(text, start, stop).map(|(start, _)| start);
        }
        let is_ours = ["type", "string", "effect", "sensitive", "propagateatlaunch"];
        let skips = is_ours.iter().any(|ours| word.eq_ignore_ascii_case(ours))
            || word.chars().all(|c| c.is_ascii_digit());
        if !skips {
            return None;
        }
        at = stop;
    }
    None
}

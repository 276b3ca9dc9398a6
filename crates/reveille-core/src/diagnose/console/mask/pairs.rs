//! A name and its value as two entries, in either order: `{name: DB_PASSWORD, value: x}`, over two lines too.
//!
//! `path: /etc/k3s-token` and `content: x` of a file that user data writes, `Key=…,Value=…` of tags,
//! `--name …password --value x` are such pairs, too. Elements of XML are read where XML is.

use std::ops::Range;

use super::MASK;
use super::below::Below;
use super::found::Found;
use super::lines::prefix;
use super::names::{Telling, telling};
use super::plain::is_plain;
use super::value::{self, Between, Ends, quoted_end};

/// Within so many bytes of the name its value stands.
const WINDOW_BYTES: usize = 192;

/// Whether this word introduces the name of a pair.
pub(super) fn names_a_pair(word: &str) -> bool {
    let word = word.trim_start_matches('-');
    ["name", "key", "parameterkey", "variable", "field", "option", "path"]
        .iter()
        .any(|name| word.eq_ignore_ascii_case(name))
}

fn holds_the_value(word: &str) -> bool {
    ["value", "parametervalue", "content", "contents", "source", "default"]
        .iter()
        .any(|name| word.eq_ignore_ascii_case(name))
}

/// Marks the value of the pair whose name is introduced here, when the name tells of a secret.
pub(super) fn value_of_pair(
    text: &str,
    word: &Range<usize>,
    (ends, below): (&mut Ends, &mut Below),
    ranges: &mut Vec<Range<usize>>,
) {
    let Some((start, _)) = value::start(text, word.start, word.end) else { return };
    let is_name =
        |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'/' | b'~');
    let start = start + text[start..].bytes().take_while(|byte| matches!(byte, b'"' | b'\'' | b'\\')).count();
    let end =
        start + text.as_bytes()[start..].iter().take(WINDOW_BYTES).take_while(|byte| is_name(byte)).count();
    // `node.session.auth.password`, `/data/password` of a patch, `/metadata/annotations/example.com~1password`.
    let name = text[start..end].rsplit(['.', '/']).next().unwrap_or("");
    let name = name.strip_prefix("~1").unwrap_or(name);
    let name = name.rsplit("~1").next().unwrap_or("");
    let tells = telling(name).is_some_and(|telling| telling != Telling::IfRandom);
    if !tells {
        return;
    }
    let is_open = |value: &Range<usize>| {
        let value = &text[value.clone()];
        !value.is_empty() && !value.starts_with(MASK) && !is_plain(value)
    };
    let behind = value_behind(text, end);
    let ends_its_line = |behind: &Behind| text[behind.start..].starts_with(['\n', '\r']);
    let lines = behind.filter(|behind| behind.is_alone || ends_its_line(behind));
    let behind = behind.map(|found| found.start..found.end(text, ends));
    let value = behind.or_else(|| value_before(text, word.start)).filter(is_open);
    let is_secret = value.is_some();
    ranges.extend(value);
    // `value: |-`, and a scalar that goes on over lines.
    if let Some(Behind { name, start, .. }) = lines {
        let found = Found { name: name..start, telling: Telling::Phrase, start, between: Between::Colon };
        below.mark(text, &found, is_secret, ranges);
    }
}

/// Where a value and its name begin, and whether it has its line for itself.
#[derive(Clone, Copy, Debug)]
struct Behind {
    name: usize,
    start: usize,
    is_alone: bool,
}

impl Behind {
    fn end(self, text: &str, ends: &mut Ends) -> usize {
        let Self { start, is_alone, .. } = self;
        // `- name: DB_PASSWORD⏎  value: four words of one`.
        let bare = || if is_alone { ends_of_words(text, start) } else { None };
        ends.quoted(text, start).or_else(bare).unwrap_or_else(|| ends.entry(text, start))
    }
}

/// Where the words end that stand alone on their line.
fn ends_of_words(text: &str, start: usize) -> Option<usize> {
    let line = text[start..].split('\n').next().unwrap_or("").split(" #").next().unwrap_or("").trim_end();
    (line.len() <= WINDOW_BYTES && !line.contains([',', '}', '<'])).then_some(start + line.len())
}

/// What cloud-init's `write_files` says of a file.
const OF_FILE: [&str; 6] = ["permissions:", "owner:", "encoding:", "append:", "defer:", "overwrite:"];
/// What a chart, an application or a schema says of a parameter.
const OF_PARAMETER: [&str; 8] =
    ["description:", "displayName:", "required:", "type:", "forceString:", "sensitive:", "secret:", "label:"];

/// Where the value begins: the next name is `value`, and it is on this line or the next one.
fn value_behind(text: &str, from: usize) -> Option<Behind> {
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric();
    let bytes = text.as_bytes();
    let mut end = text.floor_char_boundary(from + WINDOW_BYTES);
    let mut at = from;
    let mut line = None;
    let mut of_file = OF_FILE.len();
    while at < end {
        let mut start = at + bytes[at..end].iter().position(is_word)?;
        if let Some(newline) = text[at..start].rfind('\n') {
            if line == Some(false) || text[at..start].matches('\n').count() > 1 {
                return None;
            }
            // A logger's prefix stands before the next line, too.
            let next = at + newline + 1;
            let words = next + prefix(&text[next..end]);
            start = words + bytes[words..end].iter().position(is_word)?;
            if text[words..start].contains('\n') {
                return None;
            }
            // `permissions: '0600'` stands between the path of a file and its content, and a comment between any two.
            let is_of_file = of_file > 0
                && (text[words..start].contains('#')
                    || OF_FILE.iter().chain(&OF_PARAMETER).any(|of| text[start..end].starts_with(of)));
            line = Some(is_of_file);
            if is_of_file {
                of_file -= 1;
                at = start + text[start..end].find('\n').unwrap_or(end - start);
                end = text.floor_char_boundary(at + WINDOW_BYTES);
                continue;
            }
        }
        let stop = start + bytes[start..end].iter().take_while(|byte| is_word(byte)).count();
        let word = &text[start..stop];
        if holds_the_value(word) {
            // `--value x`.
            let option = text[at..start].len() - text[at..start].trim_end_matches('-').len();
            let (value, between) = value::start(text, start - option, stop)?;
            // `"contents":{"source":"data:,x"}`.
            if text[value..].starts_with('{') {
                at = stop;
                continue;
            }
            let is_alone = between == Between::Colon && line.is_some();
            return Some(Behind { name: start, start: value, is_alone });
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

/// `{"value":"x","name":"DB_PASSWORD"}`, and on the line above: the entry before is the value, and no other one begins between.
fn value_before(text: &str, word: usize) -> Option<Range<usize>> {
    let from = text.ceil_char_boundary(word.saturating_sub(WINDOW_BYTES));
    let near = &text[from..word];
    let names = ["value", "Value", "content"].iter();
    let (at, end) = names.filter_map(|name| near.rfind(name).map(|at| (at, at + name.len()))).max()?;
    let (start, _) = value::start(text, from + at, from + end).filter(|(start, _)| *start < word)?;
    let value = &text[start..word];
    let line = value.find('\n').unwrap_or(value.len());
    let bare = || value[..line].find([',', ' ']).unwrap_or(line);
    let length = quoted_end(&value[..line]).unwrap_or_else(bare);
    let between = &value[length..];
    let (this, next) = between.split_once('\n').unwrap_or((between, ""));
    let is_sign = |c: char| matches!(c, ' ' | '\t' | '\r' | ',' | '"' | '\'' | '\\');
    let is_next =
        this.trim_matches(is_sign).is_empty() && next[prefix(next)..].trim_matches(is_sign).is_empty();
    is_next.then_some(start..start + length)
}

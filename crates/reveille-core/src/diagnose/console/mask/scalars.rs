//! Scalars of YAML that go on over lines, and values that stand beside their name as only YAML has them.
//!
//! ```text
//!  password: abc     password: "abc\     {user: bob, password:     ? password     password:
//!    def               def"                def}                    : def            value: def
//! ```
//!
//! A scalar goes on as long as lines are indented further than its name. One in quotes has to be closed on such a line; a bare
//! one ends at the first line that has a name, a dash or a comment. Behind a logger's prefix it is the same.
//!
//! Left out on purpose: the rest of a bare scalar behind an empty line, and one whose name is not the first on its line, because
//! messages of several lines look like that.

use std::ops::Range;

use super::MASK;
use super::columns::{before, column, indented};
use super::found::Found;
use super::lines::prefix;
use super::names::Telling;
use super::plain::{is_message, is_plain};
use super::value::{self, Between, cut, line_end, quoted_end};

/// A scalar goes on over so many lines at most.
const LINES_MAX: usize = 64;
/// Its first line is this long at most.
const LINE_BYTES_MAX: usize = 4096;

/// The lines below that belong to the value behind this name, whose own line holds its beginning.
pub(super) fn lines_below(text: &str, found: &Found, start: usize, is_secret: bool) -> Vec<Range<usize>> {
    let is_first = column(text, found.name.start).is_some();
    if !is_first && open_brace(text, found.name.start).is_none() {
        return Vec::new();
    }
    let near = cut(&text[start..], LINE_BYTES_MAX);
    let Some(line) = near.find('\n').map(|length| start + length) else { return Vec::new() };
    let value = text[start..line].trim_end();
    match value.as_bytes().first() {
        Some(quote @ (b'"' | b'\'')) => of_quoted(text, found.name.start, start + 1, *quote),
        Some(b'{' | b'[' | b'|' | b'>') => Vec::new(),
        Some(_) if is_secret && is_first && !value.contains(" #") => of_bare(text, found, line),
        _ => Vec::new(),
    }
}

/// The lines that go on with a bare scalar whose line ends here.
pub(super) fn of_bare(text: &str, found: &Found, line: usize) -> Vec<Range<usize>> {
    let mut lines = Vec::new();
    let mut line = line;
    while lines.len() < LINES_MAX {
        let Some(next) = next_line(text, found.name.start, line) else { break };
        let value = &text[next.clone()];
        let is_other = value.contains(": ")
            || value.ends_with(':')
            || value.starts_with(['-', '#', '{', '[', '?'])
            || is_plain(value)
            || is_message(value);
        // Only a pass phrase has words.
        if is_other || found.telling != Telling::Phrase && value.contains(' ') {
            break;
        }
        line = line_end(text, next.end);
        lines.push(next);
    }
    lines
}

/// The lines that go on with a scalar in quotes that was opened before here, when it is closed on one of them.
fn of_quoted(text: &str, name: usize, start: usize, quote: u8) -> Vec<Range<usize>> {
    let mut lines = Vec::new();
    let mut line = line_end(text, start);
    if closes(&text[start..line], quote).is_some() {
        return lines;
    }
    while lines.len() < LINES_MAX {
        let end = line + 1;
        if text.get(end..).is_some_and(|rest| rest.starts_with(['\n', '\r'])) {
            line = line_end(text, end);
            continue;
        }
        let Some(next) = next_line(text, name, line) else { break };
        if let Some(length) = closes(&text[next.clone()], quote) {
            lines.push(next.start..next.start + length);
            return lines;
        }
        line = line_end(text, next.end);
        lines.push(next);
    }
    Vec::new()
}

/// Where the quote stands that closes this scalar, itself included.
fn closes(value: &str, quote: u8) -> Option<usize> {
    let bytes = value.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        if quote == b'"' && bytes[at] == b'\\' {
            at += 1;
        } else if bytes[at] == quote {
            // `''` is one within single quotes.
            if quote == b'"' || bytes.get(at + 1) != Some(&quote) {
                return Some(at + 1);
            }
            at += 1;
        }
        at += 1;
    }
    None
}

/// The words of the next line, when it is indented further than the name.
fn next_line(text: &str, name: usize, line: usize) -> Option<Range<usize>> {
    let at = line + 1;
    let rest = text.get(at..).filter(|rest| !rest.is_empty())?;
    let rest = &rest[..line_end(rest, 0)];
    let words = indented(text, name, rest)?;
    let length = rest[words..].trim_end().len();
    (length > 0).then_some(at + words..at + words + length)
}

/// Where the brace stands on the line of this name that is open before it.
fn open_brace(text: &str, name: usize) -> Option<usize> {
    let (_, before) = before(text, name);
    before.rfind('{').filter(|opens| !before[*opens..].contains('}'))
}

/// `password: {sensitive: true, value: x}` of terraform and charts, or on the lines below: the value.
pub(super) fn value_within(text: &str, found: &Found) -> Option<Range<usize>> {
    const NEAR_BYTES: usize = 256;
    const VALUE: &str = "value";
    let near = cut(&text[found.start..], NEAR_BYTES);
    let is_flow = near.starts_with('{');
    let tells = matches!(found.telling, Telling::Word | Telling::Phrase) && found.between == Between::Colon;
    // `secrets` are names of objects.
    let is_list = || text[found.name.clone()].to_ascii_lowercase().ends_with("secrets");
    if !tells || !(is_flow || near.starts_with(['\n', '\r'])) || is_list() {
        return None;
    }
    let near = near.split('}').next().unwrap_or("");
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let (at, _) = near.match_indices(VALUE).find(|(at, _)| !near[..*at].ends_with(is_part))?;
    // Each line up to it is of the mapping.
    let is_within = |line: usize| {
        let at = found.start + line + 1;
        indented(text, found.name.start, cut(&text[at..], NEAR_BYTES).split('\n').next().unwrap_or(""))
            .is_some()
    };
    if !is_flow && !near[..at].match_indices('\n').all(|(line, _)| is_within(line)) {
        return None;
    }
    let name = found.start + at..found.start + at + VALUE.len();
    let (start, _) = value::start(text, name.start, name.end)?;
    let value = cut(&text[start..], NEAR_BYTES).split('\n').next().unwrap_or("").trim_end();
    let bare = || if is_flow { value.find([',', '}', ' ']) } else { value.find(" #") };
    let length = quoted_end(value).or_else(bare).unwrap_or(value.len());
    let value = &value[..length];
    let is_other = value.is_empty() || value.starts_with(['{', '[', '|', '>']) || value.starts_with(MASK);
    (!is_other && !is_plain(value)).then_some(start..start + length)
}

/// `{user: bob, password:⏎  x}`: the word on the next line, as far in as it likes.
pub(super) fn in_flow(text: &str, name: usize, line: usize) -> Option<Range<usize>> {
    open_brace(text, name)?;
    let at = line + 1;
    let rest = text.get(at..)?;
    let rest = &rest[..line_end(rest, 0)];
    let words = prefix(rest);
    let words = words + rest[words..].len() - rest[words..].trim_start().len();
    let value = &rest[words..];
    let bare = || value.find([',', '}', ' ']).unwrap_or(value.trim_end().len());
    let length = quoted_end(value).unwrap_or_else(bare);
    let is_other = value.starts_with(['{', '[', '}', '#']) || value[length..].starts_with(':');
    (length > 0 && !is_other && !is_plain(&value[..length])).then_some(at + words..at + words + length)
}

/// `? password⏎: x`: where the name's line begins and where its value does.
pub(super) fn explicit(text: &str, name: &Range<usize>) -> Option<(usize, usize)> {
    let rest = text[name.end..].trim_start_matches(['"', '\'']);
    let rest = rest.strip_prefix('\r').unwrap_or(rest).strip_prefix('\n')?;
    let (begins, before) = before(text, name.start);
    let words = before.trim_start();
    if !words.starts_with("? ") {
        return None;
    }
    let column = before.len() - words.len();
    let at = text.len() - rest.len();
    let line = at + prefix(&rest[..line_end(rest, 0)]);
    let spaces = text[line..].bytes().take(column + 1).take_while(|byte| *byte == b' ').count();
    let value = text[line + spaces..].strip_prefix(':').filter(|_| spaces == column)?;
    let value = value.starts_with([' ', '\n']).then(|| value.trim_start_matches(' '))?;
    Some((begins + column, text.len() - value.len()))
}

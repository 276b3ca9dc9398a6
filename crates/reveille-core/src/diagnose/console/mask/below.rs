//! Values that stand on the lines below their name.
//!
//! ```text
//!  password: |            token:              - --client-secret        --token \
//!    three                  abc               - abc                      abc
//!    lines
//! ```
//!
//! Between three quotes of TOML they stand as far in as they like: `password = '''`.
//!
//! A line belongs to the name above it when it is indented further than the name; a logger's prefix before both does no harm.

use std::ops::Range;

use super::MASK;
use super::columns::{before, column, indented, is_indicator};
use super::found::Found;
use super::lines::prefix;
use super::names::Telling;
use super::plain::{is_message, is_plain};
use super::prose::{is_chosen, is_made_up};
use super::scalars;
use super::value::{Between, behind_properties, cut, line_end, of_lines, quoted_end};

/// Three quotes that nothing closes hold so many lines.
const LINES_MAX: usize = 64;
/// Of a line so much is looked at for how a value begins.
const LINE_BYTES_MAX: usize = 512;

/// What was marked below names so far; a name within it marks nothing again.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Below {
    until: usize,
}

impl Below {
    /// Marks what stands below this name, when its own line holds no value or only how it begins. Whether that is one to mask
    /// was found before.
    pub(super) fn mark(
        &mut self,
        text: &str,
        found: &Found,
        is_secret: bool,
        ranges: &mut Vec<Range<usize>>,
    ) {
        if found.start < self.until || found.telling == Telling::IfRandom {
            return;
        }
        self.goes_on(text, found, is_secret, ranges);
        let is_assigned = matches!(found.between, Between::Colon | Between::Equals);
        if let Some(sign) = of_lines(&text[found.start..]).filter(|_| is_assigned) {
            return self.quoted(text, found.start + sign.len(), sign, ranges);
        }
        let Some(line) = line_end_near(text, found.start) else { return };
        let value = text[found.start..line].trim_end();
        let value = match found.between {
            // `token: !!str |`, and `token: &a` with its value below.
            Between::Colon => value[behind_properties(value)..].trim(),
            _ => value.trim(),
        };
        let value = if found.between == Between::Colon && is_property(value) { "" } else { value };
        match found.between {
            Between::Colon | Between::Equals if is_indicator(value) => {
                self.block(text, found.name.start, line, ranges);
            }
            Between::Colon | Between::Equals if value == "[" => self.list(text, found, line, true, ranges),
            Between::Colon if value.is_empty() => {
                self.scalar(text, found, line, ranges);
                let in_flow =
                    scalars::in_flow(text, found.name.start, line).filter(|value| value.end > self.until);
                self.push_all(text, in_flow, ranges);
                self.list(text, found, line, false, ranges);
            }
            Between::Comma if value.is_empty() => self.item(text, line, ranges),
            Between::Space | Between::Equals if value == "\\" => self.item(text, line, ranges),
            _ => {}
        }
    }

    /// A scalar of YAML that goes on below its own line.
    fn goes_on(&mut self, text: &str, found: &Found, is_secret: bool, ranges: &mut Vec<Range<usize>>) {
        if found.between != Between::Colon {
            return;
        }
        let rest = cut(&text[found.start..], LINE_BYTES_MAX);
        let rest = rest.split('\n').next().unwrap_or("");
        let start = found.start + behind_properties(rest);
        self.push_all(text, scalars::lines_below(text, found, start, is_secret), ranges);
    }

    fn push_all(
        &mut self,
        text: &str,
        lines: impl IntoIterator<Item = Range<usize>>,
        ranges: &mut Vec<Range<usize>>,
    ) {
        for line in lines {
            self.until = line.end;
            push(text, line, ranges);
        }
    }

    /// The item below an option that stands alone on its line.
    pub(super) fn option(&mut self, text: &str, name: &Range<usize>, ranges: &mut Vec<Range<usize>>) {
        if name.start >= self.until
            && let Some(line) = line_end_near(text, name.end)
        {
            self.item(text, line, ranges);
        }
    }

    /// The word on the line below a sentence that ends with a colon: `Password for the elastic user (reset with `x`):⏎  y`.
    pub(super) fn announced(&mut self, text: &str, name: &Range<usize>, ranges: &mut Vec<Range<usize>>) {
        const SENTENCE_BYTES_MAX: usize = 128;
        let near = cut(&text[name.end..], SENTENCE_BYTES_MAX);
        let Some(line) = near.find('\n').filter(|line| near[..*line].trim_end().ends_with(':')) else {
            return;
        };
        let Some(begins) = sentence(text, name.end) else { return };
        let at = name.end + line + 1;
        let end = line_end(text, at);
        let Some(words) = indented(text, begins, &text[at..end]) else { return };
        let value = text[at + words..end].trim_end();
        if !value.contains(' ') && (is_chosen(value) || is_made_up(value)) {
            push(text, at + words..end, ranges);
            self.until = end;
        }
    }

    /// What stands between three quotes on the lines below, up to those that close it.
    fn quoted(&mut self, text: &str, start: usize, sign: &str, ranges: &mut Vec<Range<usize>>) {
        let close = text[start..].find(sign).map_or(text.len(), |at| start + at);
        // On the line of its name it is a value like any other.
        let mut at = line_end(text, start);
        for _ in 0..LINES_MAX {
            if at >= close {
                break;
            }
            let end = line_end(text, at + 1).min(close);
            let words = at + 1 + prefix(&text[at + 1..end]);
            let words = words + text[words..end].len() - text[words..end].trim_start().len();
            if text[words..end].trim_end() != MASK {
                ranges.push(words..words + text[words..end].trim_end().len());
            }
            at = end;
        }
        self.until = at;
    }

    /// A block of YAML: every line that is indented further.
    pub(super) fn block(&mut self, text: &str, name: usize, line: usize, ranges: &mut Vec<Range<usize>>) {
        if name < self.until {
            return;
        }
        let mut at = line + 1;
        while at < text.len() {
            let end = line_end(text, at);
            let rest = &text[at..end];
            if !rest.trim().is_empty() {
                let Some(words) = indented(text, name, rest) else { break };
                push(text, at + words..end, ranges);
            }
            self.until = end;
            at = end + 1;
        }
    }

    /// One value alone on the next line.
    fn scalar(&mut self, text: &str, found: &Found, line: usize, ranges: &mut Vec<Range<usize>>) {
        let at = line + 1;
        if at >= text.len() {
            return;
        }
        let end = line_end(text, at);
        let words = indented(text, found.name.start, &text[at..end]);
        // `Admin password:⏎  x`: a sentence has a word there, and not one of a message.
        let of_sentence = || {
            let begins = sentence(text, found.name.start).filter(|_| found.telling == Telling::Phrase)?;
            let words = indented(text, begins, &text[at..end])?;
            let value = text[at + words..end].trim_end();
            (!value.contains(' ') && !is_message(value)).then_some(words)
        };
        let Some(words) = words.or_else(of_sentence) else { return };
        let value = &text[at + words..end];
        let is_key = value.contains(": ") || value.ends_with(':') || value.starts_with(['-', '#', '{', '[']);
        if !is_key && !is_plain(value) && (found.telling == Telling::Phrase || !value.trim().contains(' ')) {
            push(text, at + words..end, ranges);
            self.until = end;
            if column(text, found.name.start).is_some() {
                self.push_all(text, scalars::of_bare(text, found, end), ranges);
            }
        }
    }

    /// The items on the lines below: `password:⏎- x`, `password = [⏎  "x",⏎]`.
    fn list(
        &mut self,
        text: &str,
        found: &Found,
        line: usize,
        in_brackets: bool,
        ranges: &mut Vec<Range<usize>>,
    ) {
        const ITEMS_MAX: usize = 16;
        // `secrets` are names of objects.
        if text[found.name.clone()].to_ascii_lowercase().ends_with("secrets") {
            return;
        }
        let Some(column) = (if in_brackets { Some(0) } else { column(text, found.name.start) }) else {
            return;
        };
        let mut line = line;
        for _ in 0..ITEMS_MAX {
            let Some(rest) = text.get(line + 1..).map(|rest| &rest[..line_end(rest, 0)]) else { break };
            let begins = prefix(rest);
            let item = rest[begins..].trim_start();
            let is_item = if in_brackets { item.starts_with(['"', '\'']) } else { item.starts_with("- ") };
            let is_pair = item.contains(": ") || item.contains("\":") || item.trim_end().ends_with(':');
            // `Password:⏎- next thing`: one word, or one in quotes.
            let words = item.trim_start_matches(['-', ' ']).trim_end();
            let is_text = words.contains(' ') && !words.starts_with(['"', '\'']);
            if !is_item || is_pair || is_text || rest.len() - begins - item.len() < column {
                break;
            }
            self.item(text, line, ranges);
            line += 1 + rest.len();
        }
    }

    /// The item on the next line: `- x`, `"x",` or the rest of a command.
    fn item(&mut self, text: &str, line: usize, ranges: &mut Vec<Range<usize>>) {
        let at = line + 1;
        if at >= text.len() {
            return;
        }
        let end = line_end(text, at);
        let rest = &text[at..end];
        let begins = prefix(rest);
        let dash = rest[begins..].find("- ").filter(|dash| rest[begins..begins + dash].trim().is_empty());
        let words = begins + dash.map_or(0, |dash| dash + 2);
        let words = words + rest[words..].len() - rest[words..].trim_start().len();
        let value = &rest[words..];
        // `- >-` has its lines below.
        if let Some(dash) = dash.filter(|_| is_indicator(value.trim_end())) {
            return self.block(text, at + begins + dash, end, ranges);
        }
        let length =
            quoted_end(value).unwrap_or_else(|| value.find(char::is_whitespace).unwrap_or(value.len()));
        let value = &value[..length];
        if !value.is_empty() && !value.trim_matches(['"', '\'']).starts_with('-') && !is_plain(value) {
            push(text, at + words..at + words + length, ranges);
            self.until = at + words + length;
        }
    }
}

/// A tag or an anchor, alone.
fn is_property(value: &str) -> bool {
    value.starts_with(['!', '&']) && !value.contains(' ')
}

/// Where the line ends, when it does so soon: an indicator, a backslash or nothing is short.
fn line_end_near(text: &str, start: usize) -> Option<usize> {
    const NEAR_BYTES: usize = 64;
    text.as_bytes()[start..].iter().take(NEAR_BYTES).position(|byte| *byte == b'\n').map(|at| start + at)
}

/// Where the line of a name begins whose words are of a sentence: `Admin password:`.
fn sentence(text: &str, name_start: usize) -> Option<usize> {
    let (begins, before) = before(text, name_start);
    let words = before.trim_start();
    let is_word =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b' ' | b'\'' | b'(' | b')' | b'-');
    let is_code = words.starts_with("class ") || words.starts_with("def ");
    let is_sentence =
        !is_code && words.starts_with(|c: char| c.is_ascii_alphabetic()) && words.bytes().all(is_word);
    is_sentence.then_some(begins + before.len() - words.len())
}

fn push(text: &str, range: Range<usize>, ranges: &mut Vec<Range<usize>>) {
    let end = range.start + text[range.clone()].trim_end().len();
    let range = range.start..end;
    if !range.is_empty() && !text[range.clone()].starts_with(MASK) {
        ranges.push(range);
    }
}

//! How a tag of XML is read: its signs, its name, its attributes, and the text behind it.
//!
//! ```text
//!  <name a="x" b='y'>text</name>      <name/>      <name><![CDATA[text]]></name>      &lt;name&gt;      \u003cname\u003e
//! ```
//!
//! Signs may be spelled as pages and JSON have them. No part of a tag holds the sign that opens another one, so that no text is
//! read for two of them; attributes and space may go on over lines, behind a logger's prefix too.
//!
//! Left out on purpose: attributes without quotes, as HTML has them, and text that no tag of the same name closes.

use std::ops::Range;

use super::lines::prefix;
use super::value::cut;

/// A key in base64 is this long at most.
const TEXT_BYTES_MAX: usize = 16 * 1024;
const NAME_BYTES_MAX: usize = 128;
const ATTRIBUTES_MAX: usize = 48;
/// Of a line so much is looked at for a logger's prefix.
pub(super) const PREFIX_BYTES_MAX: usize = 256;

/// How a tag is opened and closed.
pub(super) type Signs = (&'static str, &'static str);

const SIGNS: [Signs; 6] = [
    ("<", ">"),
    ("&lt;", "&gt;"),
    ("&#60;", "&#62;"),
    ("\\u003c", "\\u003e"),
    ("\\u003C", "\\u003E"),
    ("\\x3c", "\\x3e"),
];
/// What a value of an attribute stands between.
const QUOTES: [&str; 10] =
    ["\"", "'", "\\\"", "\\'", "&quot;", "&apos;", "&#34;", "&#39;", "\\u0022", "\\u0027"];

/// The next signs that may open a tag, and where.
pub(super) fn next_signs(text: &str, from: usize) -> Option<(usize, Signs)> {
    let mut at = from;
    loop {
        at += text.as_bytes()[at..].iter().position(|byte| matches!(byte, b'<' | b'&' | b'\\'))?;
        if let Some(signs) = SIGNS.into_iter().find(|(open, _)| text[at..].starts_with(open)) {
            return Some((at, signs));
        }
        at += 1;
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Opens,
    Closes,
    IsEmpty,
}

#[derive(Clone, Debug)]
pub(super) struct Tag<'t> {
    pub(super) kind: Kind,
    pub(super) signs: Signs,
    pub(super) name: &'t str,
    /// Their names, and where their values stand.
    pub(super) attributes: Vec<(&'t str, Range<usize>)>,
    /// Behind its last sign.
    pub(super) end: usize,
}

impl<'t> Tag<'t> {
    /// The tag that begins here. No part of it holds the sign of another, so that no text is read for two of them.
    pub(super) fn read(text: &'t str, open: usize, signs: Signs) -> Option<Self> {
        let at = open + signs.0.len();
        let closes = text[at..].starts_with('/');
        let name = name_at(text, at + usize::from(closes));
        let mut at = at + usize::from(closes) + name.len();
        if name.is_empty() {
            return None;
        }
        let kind = if closes { Kind::Closes } else { Kind::Opens };
        let mut tag = Self { kind, signs, name, attributes: Vec::new(), end: at };
        for _ in 0..ATTRIBUTES_MAX {
            at = behind_space(text, at);
            let rest = &text[at..];
            let is_empty = rest.strip_prefix('/').filter(|rest| rest.starts_with(signs.1));
            if let Some(rest) = is_empty.or_else(|| rest.strip_prefix(signs.1).map(|_| rest)) {
                tag.kind = if is_empty.is_some() { Kind::IsEmpty } else { tag.kind };
                tag.end = text.len() - rest.len() + signs.1.len();
                return Some(tag);
            }
            let name = name_at(text, at);
            at += name.len();
            if name.is_empty() {
                return None;
            }
            let equals = behind_space(text, at);
            if text[equals..].starts_with('=') {
                let value = attribute_at(text, behind_space(text, equals + 1))?;
                at = value.1;
                tag.attributes.push((name, value.0));
            }
        }
        None
    }

    /// Without its namespace.
    pub(super) fn local(&self) -> &'t str {
        self.name.rsplit(':').next().unwrap_or(self.name)
    }

    /// The text that its closing tag follows; that of CDATA stands for it.
    pub(super) fn text(&self, text: &str) -> Option<Range<usize>> {
        let (open, close) = self.signs;
        let begins = behind_space(text, self.end);
        let begins = comment_end(text, begins, self.signs).map_or(begins, |end| behind_space(text, end));
        let rest = &text[begins..];
        if let Some(rest) = rest.strip_prefix(open).and_then(|rest| rest.strip_prefix(CDATA)) {
            let start = text.len() - rest.len();
            return cdata_bytes(cut(rest, TEXT_BYTES_MAX), open, close).map(|length| start..start + length);
        }
        let length = cut(rest, TEXT_BYTES_MAX).find(open)?;
        let behind = rest[length + open.len()..].strip_prefix('/');
        let closes = behind.is_some_and(|behind| behind.starts_with(self.name));
        (closes && length > 0).then_some(begins..begins + length)
    }
}

/// Where the comment that begins here ends.
fn comment_end(text: &str, at: usize, (open, close): Signs) -> Option<usize> {
    const BYTES_MAX: usize = 256;
    let rest = text[at..].strip_prefix(open).and_then(|rest| rest.strip_prefix("!--"))?;
    let end = cut(rest, BYTES_MAX).find("--").filter(|end| rest[end + 2..].starts_with(close))?;
    Some(text.len() - rest.len() + end + 2 + close.len())
}

const CDATA: &str = "![CDATA[";

/// How far CDATA goes, which holds no other one: what opens ten thousand of them is walked once.
fn cdata_bytes(text: &str, open: &str, close: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let is_sign = |at: &usize| matches!(bytes[*at], b']' | b'<' | b'&' | b'\\');
    for at in (0..bytes.len()).filter(is_sign) {
        let rest = &text[at..];
        // A mask ends with a bracket, too: `[masked]]]>`.
        if rest.strip_prefix("]]").is_some_and(|rest| rest.starts_with(close)) {
            return Some(at);
        }
        if rest.strip_prefix(open).is_some_and(|rest| rest.starts_with(CDATA)) {
            return None;
        }
    }
    None
}

fn name_at(text: &str, at: usize) -> &str {
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b':');
    let length = text.as_bytes()[at..].iter().take(NAME_BYTES_MAX).take_while(|byte| is_name(byte)).count();
    &text[at..at + length]
}

/// Behind space and line breaks; a logger's prefix may stand on each line.
pub(super) fn behind_space(text: &str, at: usize) -> usize {
    let mut at = at;
    loop {
        match text.as_bytes().get(at) {
            Some(b' ' | b'\t' | b'\r') => at += 1,
            Some(b'\n') => at += 1 + prefix(cut(&text[at + 1..], PREFIX_BYTES_MAX)),
            _ => return at,
        }
    }
}

/// The value between the quotes here, and where they end.
fn attribute_at(text: &str, at: usize) -> Option<(Range<usize>, usize)> {
    let quote = QUOTES.into_iter().find(|quote| text[at..].starts_with(quote))?;
    let start = at + quote.len();
    let mut end = start;
    loop {
        let stops = |byte: &u8| *byte == quote.as_bytes()[0] || matches!(byte, b'<' | b'\n');
        end += text.as_bytes()[end..].iter().position(stops)?;
        if text[end..].starts_with(quote) {
            return Some((start..end, end + quote.len()));
        }
        if matches!(text.as_bytes()[end], b'<' | b'\n') {
            return None;
        }
        end += 1;
    }
}

//! Secrets of XML: of its attributes, and what stands between the signs of an element.
//!
//! ```text
//!  <password value="x"/>  <add key="DbPassword" value="x"/>     the element, or an attribute that names ─▶ its `value`
//!  <ns:password type="plain">x</ns:password>                    the element ─▶ its text, as CDATA and over lines too
//!  <Password><Value>x</Value></Password>                        the element ─▶ the text of one that holds values
//!  <key>Password</key> ⏎ <string>x</string>                     the text of one that names ─▶ the next that holds values
//! ```
//!
//! Tags are read one by one, and what a tag says is kept until its value came or something else did. Text counts only when
//! its element is closed behind it: `login <user> <password>` is how a program is called. Signs may be spelled as pages and
//! JSON have them (`&lt;password&gt;`, `\u003cpassword\u003e`).
//!
//! Left out on purpose: entities within a name or a value, which nothing here resolves, and tags without quotes around their
//! attributes. `password="x"` is found by its name, like any assignment.

use std::ops::Range;

use super::MASK;
use super::lines::prefix;
use super::names::{Telling, of_setting, telling};
use super::plain::is_plain;
use super::random::{is_long_hex, is_random_base64, looks_random};
use super::value::cut;

/// A key in base64 is this long at most.
const TEXT_BYTES_MAX: usize = 16 * 1024;
/// So far behind its beginning an element that tells may still be open, and behind its name a value may begin.
const NEAR_BYTES_MAX: usize = 2048;
const NAME_BYTES_MAX: usize = 128;
const ATTRIBUTES_MAX: usize = 48;
/// Of a line so much is looked at for a logger's prefix.
const PREFIX_BYTES_MAX: usize = 256;

/// Marks the secrets of elements.
pub(super) fn xml_secrets(text: &str, ranges: &mut Vec<Range<usize>>) {
    let mut reader = Reader::default();
    let mut at = 0;
    while let Some((open, signs)) = next_signs(text, at) {
        match Tag::read(text, open, signs) {
            Some(tag) => {
                reader.tag(text, &tag, ranges);
                at = tag.end;
            }
            None => at = open + 1,
        }
    }
}

/// How a tag is opened and closed.
type Signs = (&'static str, &'static str);

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

fn next_signs(text: &str, from: usize) -> Option<(usize, Signs)> {
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
enum Kind {
    Opens,
    Closes,
    IsEmpty,
}

#[derive(Clone, Debug)]
struct Tag<'t> {
    kind: Kind,
    signs: Signs,
    name: &'t str,
    attributes: Vec<(&'t str, Range<usize>)>,
    /// Behind its last sign.
    end: usize,
}

impl<'t> Tag<'t> {
    /// The tag that begins here. No part of it holds the sign of another, so that no text is read for two of them.
    fn read(text: &'t str, open: usize, signs: Signs) -> Option<Self> {
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
    fn local(&self) -> &'t str {
        self.name.rsplit(':').next().unwrap_or(self.name)
    }

    /// The text that its closing tag follows; that of CDATA stands for it.
    fn text(&self, text: &str) -> Option<Range<usize>> {
        let (open, close) = self.signs;
        let begins = behind_space(text, self.end);
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
fn behind_space(text: &str, at: usize) -> usize {
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

/// What was said and waits for its value.
#[derive(Clone, Copy, Debug)]
struct Told<'t> {
    /// By which element.
    by: &'t str,
    telling: Telling,
    until: usize,
}

#[derive(Clone, Debug, Default)]
struct Reader<'t> {
    /// An element that tells is open.
    within: Option<Told<'t>>,
    /// The text of an element that names told.
    named: Option<Told<'t>>,
    /// The tag before opened this element.
    opened: Option<&'t str>,
    /// An element that names is open: its tag's name and end.
    names: Option<(&'t str, usize)>,
    /// What the name of the last element told: what repeats one is asked once.
    asked: (&'t str, Option<Telling>),
}

impl<'t> Reader<'t> {
    fn tag(&mut self, text: &'t str, tag: &Tag<'t>, ranges: &mut Vec<Range<usize>>) {
        let at_end = tag.end;
        let is_near = |told: &Told| at_end <= told.until;
        self.within = self.within.filter(is_near);
        self.named = self.named.filter(is_near);
        if tag.kind == Kind::Closes {
            return self.closes(text, tag);
        }
        let local = tag.local();
        if local != self.asked.0 {
            self.asked = (local, telling(local));
        }
        self.attributes(text, tag, ranges);
        let holds = holds_a_value(local);
        if tag.kind == Kind::Opens {
            self.opens(text, tag, ranges);
        } else if holds {
            self.named = None;
        }
        if !holds && !stands_between(local) {
            self.named = None;
        }
        self.names = (names_a_value(local) || self.opened == Some("entry") && local == "string")
            .then_some((tag.name, tag.end));
        self.opened = (tag.kind == Kind::Opens).then_some(local);
    }

    fn opens(&mut self, text: &'t str, tag: &Tag<'t>, ranges: &mut Vec<Range<usize>>) {
        let local = tag.local();
        let by_name = tag
            .attributes
            .iter()
            .filter(|(name, _)| names_a_value(name))
            .find_map(|(_, value)| tells(&text[value.clone()]));
        let told = by_name.or(self.asked.1);
        let waits = if holds_a_value(local) { self.named.or(self.within) } else { None };
        let Some(telling) = told.or(waits.map(|told| told.telling)) else { return };
        if let Some(value) = tag.text(text)
            && is_secret(&text[value.clone()], telling, local)
        {
            push_lines(text, value, ranges);
            self.named = None;
        }
        if told.is_some_and(|told| told != Telling::IfRandom) {
            self.within = Some(Told { by: tag.name, telling, until: tag.end + NEAR_BYTES_MAX });
        }
    }

    fn closes(&mut self, text: &'t str, tag: &Tag<'t>) {
        self.opened = None;
        if self.within.is_some_and(|told| told.by == tag.name) {
            self.within = None;
        }
        let Some((_, start)) = self.names.take().filter(|(name, _)| *name == tag.name) else { return };
        let length = tag.signs.0.len() + 1 + tag.name.len() + tag.signs.1.len();
        let Some(name) = tag.end.checked_sub(length).and_then(|end| text.get(start..end)) else { return };
        let name = name[behind_space(name, 0)..].split('\n').next().unwrap_or("");
        if let Some(telling) = tells(name) {
            self.named = Some(Told { by: tag.name, telling, until: tag.end + NEAR_BYTES_MAX });
        }
    }

    /// `<password value="x"/>`, `<add key="DbPassword" value="x"/>`.
    fn attributes(&self, text: &str, tag: &Tag<'t>, ranges: &mut Vec<Range<usize>>) {
        let names = |name: &str| names_a_value(name) || matches!(name, "id" | "type");
        let by_name = tag
            .attributes
            .iter()
            .filter(|(name, _)| names(name))
            .find_map(|(_, value)| tells(&text[value.clone()]));
        let told = by_name.or(self.asked.1.filter(|telling| *telling != Telling::IfRandom));
        let Some(telling) = told else { return };
        for (name, value) in &tag.attributes {
            if holds_a_value(name) && is_secret(&text[value.clone()], telling, name) {
                push_lines(text, value.clone(), ranges);
            }
        }
    }
}

/// Whether this element or attribute has a name for its text.
fn names_a_value(name: &str) -> bool {
    const NAMES: [&str; 14] = [
        "name",
        "key",
        "param-name",
        "property-name",
        "prop-name",
        "env-entry-name",
        "env-key",
        "variable",
        "var",
        "property",
        "field",
        "paramname",
        "parameter",
        "attribute",
    ];
    NAMES.iter().any(|known| name.eq_ignore_ascii_case(known))
}

/// Whether this element or attribute has the value for its text.
fn holds_a_value(name: &str) -> bool {
    const VALUES: [&str; 15] = [
        "value",
        "val",
        "string",
        "data",
        "content",
        "text",
        "default",
        "defaultvalue",
        "param-value",
        "property-value",
        "prop-value",
        "env-entry-value",
        "paramvalue",
        "plain",
        "initial",
    ];
    VALUES.iter().any(|known| name.eq_ignore_ascii_case(known))
}

/// Whether this element may stand between a name and its value.
fn stands_between(name: &str) -> bool {
    const BETWEEN: [&str; 9] = [
        "type",
        "description",
        "final",
        "env-entry-type",
        "display-name",
        "source",
        "required",
        "sensitive",
        "displayname",
    ];
    BETWEEN.iter().any(|known| name.eq_ignore_ascii_case(known))
}

fn tells(name: &str) -> Option<Telling> {
    of_setting(name).filter(|telling| *telling != Telling::IfRandom)
}

fn is_secret(value: &str, telling: Telling, name: &str) -> bool {
    const RANDOM_BYTES_MAX: usize = 128;
    let value = value.trim();
    if value.is_empty() || value == MASK || is_plain(value) {
        return false;
    }
    let near = cut(value, RANDOM_BYTES_MAX);
    // What `<key>` holds is a name more often than not.
    let is_hex = || is_long_hex(near) && !name.eq_ignore_ascii_case("key");
    telling != Telling::IfRandom
        || is_hex()
        || is_random_base64(near)
        || looks_random(near) && !is_long_hex(near)
}

/// Marks what stands on each line of a value.
fn push_lines(text: &str, value: Range<usize>, ranges: &mut Vec<Range<usize>>) {
    let mut at = value.start;
    for line in text[value.clone()].split_inclusive('\n') {
        let begins = if at == value.start { 0 } else { prefix(cut(line, PREFIX_BYTES_MAX)) };
        let words = line[begins..].trim();
        let start = at + line.len() - line[begins..].trim_start().len();
        if !words.is_empty() && words != MASK {
            ranges.push(start..start + words.len());
        }
        at += line.len();
    }
}

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
//! its element is closed behind it: `login <user> <password>` is how a program is called.
//!
//! Left out on purpose: entities within a name or a value, which nothing here resolves. `password="x"` is found by its name, like
//! any assignment.

use std::ops::Range;

use super::MASK;
use super::lines::prefix;
use super::names::{Telling, of_setting, telling};
use super::plain::is_plain;
use super::random::{is_long_hex, is_random_base64, looks_random};
use super::tags::{Kind, PREFIX_BYTES_MAX, Tag, behind_space, next_signs};
use super::value::cut;

/// So far behind its beginning an element that tells may still be open, and behind its name a value may begin.
const NEAR_BYTES_MAX: usize = 2048;

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
    /// An entry of a map was opened before.
    of_entry: bool,
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
        let holds = holds_a_value(local) || is_argument(local);
        if tag.kind == Kind::Opens {
            self.opens(text, tag, ranges);
        } else if holds {
            self.named = None;
        }
        if !holds && !stands_between(local) {
            self.named = None;
        }
        let names = names_an_element(local) || local == "string" || is_argument(local);
        self.names = names.then_some((tag.name, tag.end));
        self.of_entry = self.opened == Some("entry");
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
        let waits = self
            .named
            .or(self.within)
            .filter(|told| holds_a_value(local) || is_argument(local) && is_argument(told.by));
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
        // `<string>DB_PASSWORD</string><string>x</string>` of a map is in capitals; of a list, all are values.
        let is_of_list =
            tag.name == "string" && !self.of_entry && name.contains(|c: char| c.is_ascii_lowercase());
        let is_word = is_argument(tag.name) && !name.starts_with('-');
        if let Some(telling) = tells(name).filter(|_| !is_of_list && !is_word) {
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
    const NAMES: [&str; 8] =
        ["name", "key", "variable", "var", "property", "field", "parameter", "attribute"];
    NAMES.iter().any(|known| name.eq_ignore_ascii_case(known))
}

/// Whether this element has a name for its text: `<ParameterKey>`, `<env-entry-name>`.
fn names_an_element(name: &str) -> bool {
    let ends = |end: &str| {
        name.len() > end.len()
            && name.get(name.len() - end.len()..).is_some_and(|is| is.eq_ignore_ascii_case(end))
    };
    names_a_value(name) || ends("key") || ends("name")
}

/// `<arg>--password</arg><arg>x</arg>` of a command.
fn is_argument(name: &str) -> bool {
    matches!(name, "arg" | "argument")
}

/// Whether this element or attribute has the value for its text.
fn holds_a_value(name: &str) -> bool {
    const VALUES: [&str; 8] = ["val", "string", "data", "content", "text", "default", "plain", "item"];
    let is_value = |end: &str| end.eq_ignore_ascii_case("value");
    let ends = name.len().checked_sub("value".len()).and_then(|at| name.get(at..)).is_some_and(is_value);
    ends || VALUES.iter().any(|known| name.eq_ignore_ascii_case(known))
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

//! Secrets of Kubernetes as manifests: every value below `data` and `stringData` of an object whose kind is `Secret`.
//!
//! ```text
//!  line ─▶ behind a logger's prefix ─▶ how far in, which key ─▶ objects, by how far in they stand ─▶ values, kept ─▶ kind?
//! ```
//!
//! `kind` stands behind `data` when kubectl prints one, so that an object is looked through before its values are marked.
//! JSON that is printed over many lines has its keys as far in as YAML, and is read the same way; an object on one line is
//! read in that line.

use std::ops::Range;

use super::MASK;
use super::columns::is_indicator;
use super::lines::prefix;
use super::value::quoted_end;

/// Marks the values of Secrets.
pub(super) fn secret_manifests(text: &str, ranges: &mut Vec<Range<usize>>) {
    if !text.contains("Secret") {
        return;
    }
    let mut objects = Vec::new();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let begins = prefix(line);
        Line::of(at + begins, &line[begins..]).read(text, &mut objects, ranges);
        if holds_a_secret(line) {
            on_one_line(&text[..at + line.len()], at, ranges);
        }
        at += line.len();
    }
    end_from(&mut objects, 0, ranges);
}

/// So many objects stand in one another: a list's items, and a manifest that a `ConfigMap` holds.
const OBJECTS_MAX: usize = 8;

/// An object that is read.
#[derive(Clone, Debug, Default)]
struct Object {
    /// How far in its keys stand.
    column: usize,
    is_secret: bool,
    has_kind: bool,
    has_version: bool,
    /// Its `data` is read.
    in_data: bool,
    values: Vec<Range<usize>>,
}

/// Ends the objects whose keys stand this far in or further.
fn end_from(objects: &mut Vec<Object>, column: usize, ranges: &mut Vec<Range<usize>>) {
    while let Some(object) = objects.pop_if(|object| object.column >= column) {
        if object.is_secret {
            ranges.extend(object.values);
        }
    }
}

/// A line, behind a logger's prefix.
#[derive(Clone, Copy, Debug)]
struct Line<'t> {
    at: usize,
    /// Without what ends it.
    text: &'t str,
    /// How far in its first sign stands.
    column: usize,
    /// How far in its key stands: behind the dash of a list.
    key: usize,
}

impl<'t> Line<'t> {
    fn of(at: usize, line: &'t str) -> Self {
        let text = line.trim_end();
        // What diff writes before a line stands for a space.
        let column = text.len() - text.trim_start_matches(['+', ' ', '\t']).len();
        let dashes = &text[column..];
        let key = column + dashes.len() - dashes.trim_start_matches(['-', ' ']).len();
        let is_item = dashes.starts_with("- ");
        Self { at, text, column, key: if is_item { key } else { column } }
    }

    fn read(self, text: &str, objects: &mut Vec<Object>, ranges: &mut Vec<Range<usize>>) {
        let bare = &self.text[self.column..];
        if bare.is_empty() {
            return;
        }
        if bare == "---" || bare == "..." {
            end_from(objects, 0, ranges);
            return;
        }
        end_from(objects, self.column + 1, ranges);
        for object in &mut *objects {
            object.in_data &= self.column > object.column;
            if object.in_data {
                self.value(object);
            }
        }
        let Some((key, value)) = self.entry() else { return };
        if !matches!(key, "apiVersion" | "kind" | "data" | "stringData") {
            return;
        }
        let seen = |object: &Object| {
            object.column == self.key
                && (key == "kind" && object.has_kind || key == "apiVersion" && object.has_version)
        };
        if objects.last().is_some_and(seen) {
            end_from(objects, self.key, ranges);
        }
        if objects.last().is_none_or(|object| object.column != self.key) && objects.len() < OBJECTS_MAX {
            objects.push(Object { column: self.key, ..Object::default() });
        }
        let Some(object) = objects.last_mut() else { return };
        object.has_version |= key == "apiVersion";
        if key == "kind" {
            object.has_kind = true;
            object.is_secret |= value.trim_matches(['"', '\'', ',', ' ']).ends_with("Secret");
        }
        if matches!(key, "data" | "stringData") {
            object.in_data = true;
            let start = self.at + self.text.len() - value.len();
            let flow = value.find('{').map(|brace| start + brace);
            if let Some(flow) = flow {
                values_of(&text[..self.at + self.text.len()], flow, &mut object.values);
            }
        }
    }

    /// The key of this line and what stands behind its colon, without a comment.
    fn entry(self) -> Option<(&'t str, &'t str)> {
        let (key, value) = self.text[self.key..].split_once(':')?;
        let comment = value.find(" #").filter(|_| !value.contains('{')).unwrap_or(value.len());
        let key = key.trim_matches(['"', '\'', ' ']);
        Some((key, if key == "kind" { value[..comment].trim() } else { value }))
    }

    /// Keeps the value of this line; a line without a name goes on with the value of the one above.
    fn value(self, object: &mut Object) {
        let line = self.text;
        let is_name =
            |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'"' | b'\'');
        let name = line[self.column..].bytes().take_while(is_name).count();
        let has_name = name > 0 && line[self.column + name..].trim_start().starts_with(':');
        let start = if has_name {
            line[self.column..].find(':').map_or(0, |colon| self.column + colon + 1)
        } else {
            self.column
        };
        let start = start + line[start..].len() - line[start..].trim_start().len();
        let value = &line[start..];
        let is_value = !is_indicator(value) && !matches!(value, "{" | "}" | "}," | "]" | "],");
        if !value.is_empty() && is_value && value.trim_matches(['"', '\'', ',']) != MASK {
            object.values.push(self.at + start..self.at + line.len());
        }
    }
}

/// Whether the kind of an object on this line is that of a Secret: `"kind":"Secret"`, `\"kind\": \"Secret\"`,
/// `{kind: Secret, …}`.
fn holds_a_secret(line: &str) -> bool {
    line.match_indices("kind").any(|(at, kind)| {
        let rest = line[at + kind.len()..].trim_start_matches(['"', '\\', '\'', ' ', '\t']);
        let Some(rest) = rest.strip_prefix(':') else { return false };
        let rest = rest.trim_start_matches(['"', '\\', '\'', ' ', '\t']);
        let word = rest.bytes().take_while(u8::is_ascii_alphanumeric).count();
        rest[..word].ends_with("Secret")
    })
}

/// `"data":{"name":"value"}` and `stringData: {name: value}` of an object on one line.
fn on_one_line(text: &str, from: usize, ranges: &mut Vec<Range<usize>>) {
    let mut until = from;
    for (found, name) in text[from..].match_indices("ata").map(|(found, name)| (from + found, name)) {
        let behind = found + name.len();
        let signs = |byte: &u8| matches!(byte, b'"' | b'\'' | b'\\' | b':' | b' ' | b'\t');
        let open = behind + text[behind..].bytes().take_while(signs).count();
        if found >= until && text[behind..open].contains(':') && text[open..].starts_with('{') {
            until = values_of(text, open, ranges);
        }
    }
}

/// Marks every value of the object that opens here, and says where it ends.
fn values_of(text: &str, open: usize, ranges: &mut Vec<Range<usize>>) -> usize {
    let bytes = text.as_bytes();
    let mut is_value = false;
    let mut at = open + 1;
    while at < bytes.len() {
        let byte = bytes[at];
        match byte {
            b'}' => return at,
            b',' => is_value = false,
            b':' if !is_value => is_value = true,
            b' ' | b'\t' | b'{' | b'\n' | b'\r' => {}
            _ => {
                let quoted = quoted_end(&text[at..]);
                let stops: &[char] = if is_value { &[',', '}', '\n'] } else { &[',', '}', ':', '\n'] };
                let bare = || text[at..].find(stops).unwrap_or(text.len() - at);
                let length = quoted.unwrap_or_else(bare).max(1);
                let value = text[at..at + length].trim_matches(['"', '\'', '\\', ' ']);
                if is_value && !value.is_empty() && value != MASK {
                    ranges.push(at..at + text[at..at + length].trim_end().len());
                }
                at += length;
                continue;
            }
        }
        at += 1;
    }
    at
}

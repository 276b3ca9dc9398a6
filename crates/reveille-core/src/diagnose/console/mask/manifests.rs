//! Secrets of Kubernetes as manifests: every value below `data` and `stringData` of an object whose kind is `Secret`.
//!
//! `kind` stands behind `data` when kubectl prints one, so that an object is looked through before its values are marked.

use std::ops::Range;

use super::MASK;
use super::value::quoted_end;

/// Marks the values of Secrets.
pub(super) fn secret_manifests(text: &str, ranges: &mut Vec<Range<usize>>) {
    if text.contains("Secret") {
        in_yaml(text, ranges);
        in_json(text, ranges);
    }
}

fn in_yaml(text: &str, ranges: &mut Vec<Range<usize>>) {
    let mut object = Object::default();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let bare = line.trim();
        if bare == "---" || is_entry(bare, "apiVersion") {
            object.end(ranges);
        }
        if is_entry(bare, "kind") {
            // A list's own kind stands behind its items.
            object.is_secret |= bare.trim_end_matches(['"', '\'', ',']).ends_with("Secret");
        }
        object.line(at, line);
        at += line.len();
    }
    object.end(ranges);
}

fn is_entry(line: &str, name: &str) -> bool {
    let line = line.strip_prefix("- ").unwrap_or(line);
    line.strip_prefix(name).is_some_and(|rest| rest.starts_with(':'))
}

/// What was seen of an object so far.
#[derive(Clone, Debug, Default)]
struct Object {
    is_secret: bool,
    /// How far in its `data` stands, while its values are read.
    data: Option<usize>,
    values: Vec<Range<usize>>,
}

impl Object {
    fn line(&mut self, at: usize, line: &str) {
        let spaces = line.len() - line.trim_start().len();
        let bare = line.trim();
        if bare.is_empty() {
            return;
        }
        if let Some(data) = self.data {
            if spaces > data {
                self.value(at, line, spaces);
                return;
            }
            self.data = None;
        }
        if matches!(bare, "data:" | "stringData:") {
            self.data = Some(spaces);
        }
    }

    fn value(&mut self, at: usize, line: &str, spaces: usize) {
        let bare = line.trim_end();
        let is_name =
            |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'"' | b'\'');
        let name = bare[spaces..].bytes().take_while(is_name).count();
        let has_name = name > 0 && bare[spaces + name..].starts_with(':');
        let start = if has_name { spaces + name + 1 } else { spaces };
        let start = start + bare[start..].len() - bare[start..].trim_start().len();
        let value = &bare[start..];
        if !value.is_empty() && !matches!(value, "|" | ">" | "|-" | ">-" | "|+") && !value.starts_with(MASK) {
            self.values.push(at + start..at + bare.len());
        }
    }

    fn end(&mut self, ranges: &mut Vec<Range<usize>>) {
        if self.is_secret {
            ranges.append(&mut self.values);
        }
        *self = Self::default();
    }
}

/// `"kind":"Secret"` and `"data":{"name":"value"}` on one line, as an annotation keeps them.
fn in_json(text: &str, ranges: &mut Vec<Range<usize>>) {
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let is_secret = ["\"kind\":\"Secret\"", "\"kind\": \"Secret\"", "\\\"kind\\\":\\\"Secret\\\""]
            .iter()
            .any(|kind| line.contains(kind));
        if is_secret {
            let end = at + line.len();
            let mut until = at;
            for (found, _) in line.match_indices("ata").filter(|(found, _)| is_name(&line[found + 3..])) {
                if at + found >= until {
                    until = values_of(&text[..end], at + found + 3, ranges);
                }
            }
        }
        at += line.len();
    }
}

fn is_name(rest: &str) -> bool {
    rest.starts_with("\":") || rest.starts_with("\\\":")
}

/// Marks every value of the object that opens behind this name, and says where it ends.
fn values_of(text: &str, from: usize, ranges: &mut Vec<Range<usize>>) -> usize {
    let mut at =
        from + text[from..].bytes().take_while(|byte| matches!(byte, b'"' | b'\\' | b':' | b' ')).count();
    if !text[at..].starts_with('{') {
        return at;
    }
    let mut is_value = false;
    while at < text.len() {
        match text.as_bytes()[at] {
            b'}' => return at,
            b':' => is_value = true,
            b',' => is_value = false,
            b'"' | b'\\' => {
                let length = quoted_end(&text[at..]).unwrap_or(1);
                let value = text[at..at + length].trim_matches(['"', '\\']);
                if is_value && !value.is_empty() && value != MASK {
                    ranges.push(at..at + length);
                }
                at += length;
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    at
}

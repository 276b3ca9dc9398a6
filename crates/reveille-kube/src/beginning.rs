//! What the beginning of a watch line tells, when the line is too long to be kept.
//!
//! ```text
//!  {"type":"MODIFIED","object":{"kind":"Node","apiVersion":"v1","metadata":{"name":"a","uid":"…", ⋯ cut
//!                                                                                  each comma ─▶ }}} ─▶ read?
//! ```
//!
//! The API server writes what happened first, and of the object its metadata before all that others fill. A beginning is no
//! JSON; cut at a comma and closed again it is, unless the comma stands within a text. So the cuts are tried from the front
//! until name, UID and version were read. Nothing is guessed: what does not decode is not known.

use serde::Deserialize;

use crate::wire::Meta;

/// Kind, name, UID and version stand in the first kilobyte: a name has 253 bytes at most.
const BEGINNING_MAX_BYTES: usize = 4 << 10;

/// What can stand open at a comma: the line, its object, and a part of that.
const CLOSINGS: [&[u8]; 3] = [b"}}}", b"}}", b"}"];

/// A line whose end was not kept.
pub(crate) struct Beginning {
    /// The object was deleted; otherwise it was added or changed.
    pub(crate) is_gone: bool,
    /// As much of its metadata as was read; nothing, perhaps.
    pub(crate) meta: Meta,
}

#[derive(Deserialize)]
struct Closed {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    object: ClosedObject,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ClosedObject {
    metadata: Meta,
}

impl Beginning {
    /// Reads it from a line, or from its first bytes. `None` when it does not say what happened to an object.
    pub(crate) fn read(line: &[u8]) -> Option<Self> {
        let line = &line[..line.len().min(BEGINNING_MAX_BYTES)];
        let mut read: Option<Closed> = None;
        for (comma, _) in line.iter().enumerate().filter(|(_, byte)| **byte == b',') {
            if read.as_ref().is_some_and(Closed::is_enough) {
                break;
            }
            let closed = CLOSINGS.iter().find_map(|closing| {
                serde_json::from_slice::<Closed>(&[&line[..comma], closing].concat()).ok()
            });
            read = closed.or(read);
        }
        let Closed { kind, object } = read?;
        let is_gone = match &*kind {
            "ADDED" | "MODIFIED" => false,
            "DELETED" => true,
            _ => return None,
        };
        Some(Self { is_gone, meta: object.metadata })
    }
}

impl Closed {
    const fn is_enough(&self) -> bool {
        let meta = &self.object.metadata;
        meta.name.is_some() && meta.uid.is_some() && meta.resource_version.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_before_the_cut_is_read_and_nothing_is_guessed() {
        let as_written = r#"{"type":"DELETED","object":{"kind":"Node","apiVersion":"v1","metadata":{"name":"a",
            "uid":"u","resourceVersion":"7","labels":{"b":"}}},"}},"status":{"conditions":[{"message":"x,}"#;
        let name_alone = r#"{"type":"ADDED","object":{"metadata":{"name":"a"},"status":{"x":"#;
        let no_name = r#"{"type":"MODIFIED","object":{"status":{"x":["}},\"metadata\":{\"name\":\"b\"},"#;
        let quoted = r#"{"type":"MODIFIED","object":{"x":"\"},\"metadata\":{\"name\":\"b\"},","metadata":{"name":"a","y":"#;
        for (line, expected) in [
            (as_written, Some((true, Some("a"), Some("u"), Some("7")))),
            (name_alone, Some((false, Some("a"), None, None))),
            (no_name, Some((false, None, None, None))),
            (quoted, Some((false, Some("a"), None, None))),
            (r#"{"type":"ERROR","object":{"kind":"Status","message":"x"#, None),
            (r#"{"object":{"metadata":{"name":"a","uid":"u""#, None),
            ("xxxx", None),
            ("", None),
        ] {
            let read = Beginning::read(line.as_bytes());
            let told = read.as_ref().map(|read| {
                let meta = &read.meta;
                (read.is_gone, meta.name.as_deref(), meta.uid.as_deref(), meta.resource_version.as_deref())
            });
            assert_eq!(told, expected, "{line}");
        }
    }

    #[test]
    fn no_more_than_the_first_bytes_are_looked_at() {
        let late = format!(
            r#"{{"type":"ADDED","object":{{"x":"{}","metadata":{{"name":"a","y":1"#,
            "x".repeat(BEGINNING_MAX_BYTES)
        );
        assert!(Beginning::read(late.as_bytes()).is_some_and(|read| read.meta.name.is_none()));
    }
}

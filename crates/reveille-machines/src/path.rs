//! Where a value is in an object: `status.nodeRef.name`, `metadata.labels."karpenter.sh/nodepool"`.
//!
//! ```text
//!  text ─▶ Path::parse ─▶ Path ─▶ find(object) ─▶ Found: the value, nothing, or a value of a wrong type on the way
//! ```
//!
//! Names are separated by dots; a name that has dots itself stands in quotes. There are no indexes, no wildcards and no
//! filters: conditions are found by their type, not by a path. `null` is the same as a field that is not there, as it is for
//! the API server.

use std::fmt;

use serde::Deserialize;
use serde_json::Value;

/// Names in a path: more than any field of the kinds that we read has. A longer one is a mistake in a map.
pub const PARTS_MAX: usize = 8;
/// Bytes of a path. A label's key may have 317 bytes, and the names around it a few more.
pub const PATH_BYTES_MAX: usize = 400;

/// A place in an object.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Path {
    text: Box<str>,
    parts: Vec<Box<str>>,
}

/// A text that is no path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAPath {
    /// It has no name, or an empty one between two dots.
    #[error("path {0:?}: a name is empty; write names separated by single dots")]
    EmptyName(String),
    /// A quote is not closed, or a text follows a closing quote.
    #[error("path {0:?}: a quote does not enclose a whole name; write a.\"b.c/d\".e")]
    Quote(String),
    /// It has more names than [`PARTS_MAX`], or more bytes than [`PATH_BYTES_MAX`].
    #[error("path of {bytes} bytes and {parts} names: at most {PATH_BYTES_MAX} and {PARTS_MAX} are read")]
    TooLong {
        /// Bytes that it has.
        bytes: usize,
        /// Names that it has.
        parts: usize,
    },
}

/// What stands at a path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Found<'a> {
    /// This value, which is not `null`.
    Value(&'a Value),
    /// Nothing: the field, or one on the way to it, is not there or `null`.
    Missing,
    /// A field on the way to it is this value, which has no fields.
    Blocked(&'a Value),
}

impl Path {
    /// Reads a path.
    ///
    /// # Errors
    ///
    /// A name is empty, a quote does not enclose a whole name, or the path is longer than any field's.
    pub fn parse(text: &str) -> Result<Self, NotAPath> {
        let mut parts = Vec::new();
        let mut rest = text;
        loop {
            let (name, after) = first_name(rest).ok_or_else(|| NotAPath::Quote(shown(text)))?;
            if name.is_empty() {
                return Err(NotAPath::EmptyName(shown(text)));
            }
            parts.push(Box::from(name));
            if text.len() > PATH_BYTES_MAX || parts.len() > PARTS_MAX {
                return Err(NotAPath::TooLong { bytes: text.len(), parts: parts.len() });
            }
            match after {
                Some(after) => rest = after,
                None => return Ok(Self { text: text.into(), parts }),
            }
        }
    }

    /// The path as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// What stands there in this object.
    pub fn find<'a>(&self, object: &'a Value) -> Found<'a> {
        let mut at = object;
        for part in &self.parts {
            let Value::Object(fields) = at else { return Found::Blocked(at) };
            match fields.get(&**part) {
                None | Some(Value::Null) => return Found::Missing,
                Some(next) => at = next,
            }
        }
        Found::Value(at)
    }
}

/// The first name of a path, and what follows its dot. `None` where a quote does not enclose a whole name.
fn first_name(text: &str) -> Option<(&str, Option<&str>)> {
    if let Some(quoted) = text.strip_prefix('"') {
        let (name, after) = quoted.split_once('"')?;
        return match after {
            "" => Some((name, None)),
            after => Some((name, Some(after.strip_prefix('.')?))),
        };
    }
    let (name, after) = text.split_once('.').map_or((text, None), |(name, after)| (name, Some(after)));
    (!name.contains('"')).then_some((name, after))
}

/// As much of a wrong path as an error needs to show which one it is.
fn shown(text: &str) -> String {
    text.chars().take(80).collect()
}

impl TryFrom<String> for Path {
    type Error = NotAPath;

    fn try_from(text: String) -> Result<Self, NotAPath> {
        Self::parse(&text)
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn path_names_and_quotes_are_read() {
        for (text, parts) in [
            ("metadata", &["metadata"][..]),
            ("status.nodeRef.name", &["status", "nodeRef", "name"]),
            ("metadata.labels.\"karpenter.sh/nodepool\"", &["metadata", "labels", "karpenter.sh/nodepool"]),
            ("metadata.\"a.b\".c", &["metadata", "a.b", "c"]),
        ] {
            let path = Path::parse(text).unwrap();
            assert_eq!(path.parts.iter().map(|part| &**part).collect::<Vec<_>>(), parts, "{text}");
            assert_eq!(path.as_str(), text);
        }
    }

    #[test]
    fn wrong_path_is_refused() {
        for text in ["", ".", "a.", ".a", "a..b", "a.\"b", "a.\"b\"c", "a.b\"c\"", "a.\"\"", "\""] {
            assert!(Path::parse(text).is_err(), "{text}");
        }
        assert!(matches!(Path::parse(&"a.".repeat(20)), Err(NotAPath::TooLong { .. })));
        assert!(matches!(Path::parse(&"a".repeat(401)), Err(NotAPath::TooLong { .. })));
    }

    #[test]
    fn missing_value_differs_from_blocked_way() {
        let object = json!({"a": {"b": 1, "none": null}, "list": [1]});
        let found = |text: &str| Path::parse(text).unwrap().find(&object);
        assert_eq!(found("a.b"), Found::Value(&json!(1)));
        for missing in ["x", "a.x", "a.none", "a.none.c", "x.y.z"] {
            assert_eq!(found(missing), Found::Missing, "{missing}");
        }
        assert_eq!(found("a.b.c"), Found::Blocked(&json!(1)));
        assert_eq!(found("list.0"), Found::Blocked(&json!([1])));
    }
}

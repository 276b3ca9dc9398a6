//! The fields of one object: looked up by path, bounded, and told where they are of a wrong type.
//!
//! It knows JSON and the shape that all Kubernetes objects share (metadata, conditions), and nothing of a kind. What a field
//! means is the caller's part.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::bounded::{NAME_BYTES_MAX, PROVIDER_ID_BYTES_MAX, Sort, WORD_BYTES_MAX, identity, words};
use crate::kind::Layout;
use crate::path::{Found, Path};
use crate::record::{CONDITIONS_MAX, LABELS_MAX, MEMBERS_MAX, UNREAD_MAX, Unread};

/// What a list or a mapping that is not empty shows as its value: it is there.
const SET: &str = "set";

/// One object, its conditions, and what could not be read of it.
pub(super) struct Fields<'a> {
    pub(super) object: &'a Value,
    pub(super) unread: Vec<Unread>,
    conditions: Vec<Condition<'a>>,
}

/// A condition, as it is in the object. Its texts are not yet bounded.
#[derive(Clone, Copy, Debug)]
pub(super) struct Condition<'a> {
    name: &'a str,
    pub(super) status: &'a str,
    pub(super) reason: Option<&'a str>,
    pub(super) message: Option<&'a str>,
    pub(super) since: Option<&'a str>,
}

impl<'a> Fields<'a> {
    pub(super) fn of(object: &'a Value, layout: &Layout) -> Self {
        let mut fields = Self { object, unread: Vec::new(), conditions: Vec::new() };
        for path in &layout.conditions {
            match path.find(object) {
                Found::Missing => {}
                Found::Value(Value::Array(list)) => fields.read_conditions(path, list),
                Found::Value(other) | Found::Blocked(other) => {
                    fields.tell(path.as_str(), Sort::of(other), "a list of conditions");
                }
            }
        }
        fields
    }

    /// Notes a field that could not be read, once.
    pub(super) fn tell(&mut self, field: &str, is: Sort, expected: &'static str) {
        if self.unread.len() < UNREAD_MAX && !self.unread.iter().any(|unread| *unread.field == *field) {
            self.unread.push(Unread { field: words(field, PROVIDER_ID_BYTES_MAX), is, expected });
        }
    }

    /// The condition of this type.
    pub(super) fn condition(&self, name: &str) -> Option<&Condition<'a>> {
        self.conditions.iter().find(|condition| condition.name == name)
    }

    /// The first of these paths that has an identity.
    pub(super) fn identity(&mut self, paths: &[Path], bytes_max: usize) -> Option<Arc<str>> {
        for path in paths {
            let found = match path.find(self.object) {
                Found::Missing => continue,
                Found::Value(value) => identity(value, bytes_max),
                Found::Blocked(value) => Err(Sort::of(value)),
            };
            match found {
                Ok(text) => return Some(text.into()),
                // Go writes a text that is not set as an empty one, where its field is not left out.
                Err(Sort::EmptyText) => {}
                Err(is) => self.tell(path.as_str(), is, "a text that names it"),
            }
        }
        None
    }

    /// A list of identities, or of mappings that have them under a key.
    pub(super) fn identities(&mut self, path: &Path, key: Option<&str>) -> Vec<Arc<str>> {
        let list = match path.find(self.object) {
            Found::Missing => return Vec::new(),
            Found::Value(Value::Array(list)) => list,
            Found::Value(other) | Found::Blocked(other) => {
                self.tell(path.as_str(), Sort::of(other), "a list");
                return Vec::new();
            }
        };
        if list.len() > MEMBERS_MAX {
            self.tell(path.as_str(), Sort::LongList, "a list of 1,000 at most");
        }
        let mut identities = Vec::new();
        for (place, entry) in list.iter().take(MEMBERS_MAX).enumerate() {
            let value = key.map_or(Some(entry), |key| entry.get(key)).unwrap_or(&Value::Null);
            match identity(value, PROVIDER_ID_BYTES_MAX) {
                Ok(text) => identities.push(text.into()),
                Err(is) => self.tell(&format!("{path}[{place}]"), is, "a text that names it"),
            }
        }
        identities
    }

    /// Words at a path; none where they are empty.
    pub(super) fn words(&mut self, path: &Path, bytes_max: usize) -> Option<Arc<str>> {
        match path.find(self.object) {
            Found::Missing => None,
            Found::Value(Value::String(text)) => Some(words(text, bytes_max)).filter(|text| !text.is_empty()),
            Found::Value(other) | Found::Blocked(other) => {
                self.tell(path.as_str(), Sort::of(other), "a text");
                None
            }
        }
    }

    /// A field as a text: what a sign is compared with. An empty one is none, as Go writes what is not set.
    pub(super) fn scalar(&mut self, path: &Path) -> Option<Cow<'a, str>> {
        match path.find(self.object) {
            Found::Missing => None,
            Found::Value(value) => scalar(value).filter(|text| !text.is_empty()),
            Found::Blocked(value) => {
                self.tell(path.as_str(), Sort::of(value), "a mapping on the way to it");
                None
            }
        }
    }

    /// The value of an annotation.
    pub(super) fn annotation(&mut self, key: &str) -> Option<Cow<'a, str>> {
        self.metadata("annotations")?.get(key).map(|value| scalar(value).unwrap_or(Cow::from(SET)))
    }

    /// The first annotation of this key, or below it: `reboot.metal3.io/…`.
    pub(super) fn annotation_below(&mut self, prefix: &str) -> Option<(&'a str, Cow<'a, str>)> {
        let is_below =
            |key: &str| key.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        let (key, value) = self.metadata("annotations")?.iter().find(|(key, _)| is_below(key))?;
        Some((key, scalar(value).unwrap_or(Cow::from(SET))))
    }

    /// The value of a label.
    pub(super) fn label(&mut self, key: &str) -> Option<Cow<'a, str>> {
        self.metadata("labels")?.get(key).map(|value| scalar(value).unwrap_or(Cow::from(SET)))
    }

    /// The labels that are kept.
    pub(super) fn labels(&mut self) -> BTreeMap<Arc<str>, Arc<str>> {
        let Some(labels) = self.metadata("labels") else { return BTreeMap::new() };
        if labels.len() > LABELS_MAX {
            self.tell("metadata.labels", Sort::LongList, "64 labels at most");
        }
        let mut kept = BTreeMap::new();
        for (key, value) in labels.iter().take(LABELS_MAX) {
            let text = match identity(value, NAME_BYTES_MAX) {
                Ok(text) => text,
                Err(Sort::EmptyText) => "",
                Err(is) => {
                    self.tell(&format!("metadata.labels.\"{key}\""), is, "a text");
                    continue;
                }
            };
            match identity(&Value::from(key.as_str()), WORD_BYTES_MAX) {
                Ok(key) => {
                    kept.insert(Arc::from(key), Arc::from(text));
                }
                Err(is) => self.tell("metadata.labels", is, "keys of 316 bytes at most"),
            }
        }
        kept
    }

    fn metadata(&mut self, part: &str) -> Option<&'a Map<String, Value>> {
        match self.object.get("metadata")?.get(part)? {
            Value::Null => None,
            Value::Object(map) => Some(map),
            other => {
                self.tell(&format!("metadata.{part}"), Sort::of(other), "a mapping");
                None
            }
        }
    }

    fn read_conditions(&mut self, path: &Path, list: &'a [Value]) {
        if list.len() > CONDITIONS_MAX {
            self.tell(path.as_str(), Sort::LongList, "64 conditions at most");
        }
        for (place, entry) in list.iter().take(CONDITIONS_MAX).enumerate() {
            let mut text = |key: &str, is_needed: bool| match entry.get(key) {
                None | Some(Value::Null) if !is_needed => None,
                Some(Value::String(text)) => Some(text.as_str()),
                other => {
                    let is = other.map_or(Sort::Nothing, Sort::of);
                    self.tell(&format!("{path}[{place}].{key}"), is, "a text");
                    None
                }
            };
            let (name, status) = (text("type", true), text("status", true));
            let (reason, message) = (text("reason", false), text("message", false));
            let since = text("lastTransitionTime", false);
            let (Some(name), Some(status)) = (name, status) else { continue };
            if self.condition(name).is_none() {
                self.conditions.push(Condition { name, status, reason, message, since });
            }
        }
    }
}

/// A value as a text; a list or mapping that is not empty is `set`, an empty one nothing.
fn scalar(value: &Value) -> Option<Cow<'_, str>> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(Cow::from(text)),
        Value::Bool(_) | Value::Number(_) => Some(Cow::from(value.to_string())),
        Value::Array(list) => (!list.is_empty()).then_some(Cow::from(SET)),
        Value::Object(map) => (!map.is_empty()).then_some(Cow::from(SET)),
    }
}

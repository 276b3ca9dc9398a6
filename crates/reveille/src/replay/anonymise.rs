//! Replaces all names in a recording: instances, nodes, ports, groups, pools, marks, people.
//!
//! ```text
//!  lines ─▶ names, by the fields that hold them ─▶ dictionary ─▶ every text of every line, word by word ─▶ lines
//! ```
//!
//! Each name gets one other name everywhere, also inside sentences, so that references stay intact. The caller plays the
//! result again, so that the engine's effects are its own and not a translation. Addresses stay, because decisions depend
//! on whether an address lies in a range. Words of the format stay too, and so does the rest of free text: an operator
//! should read a recording before giving it away.

use std::collections::BTreeMap;

use anyhow::Context as _;
use reveille_core::model::incident::FaultKind;
use reveille_core::model::stage::Stage;
use serde_json::Value;

use crate::cli::failure::Failure;

/// Fields whose text, or list of texts, is a name, and the prefix of the new name.
const NAMING: [(&str, &str); 28] = [
    ("id", "thing"),
    ("name", "name"),
    ("uid", "uid"),
    ("node", "node"),
    ("instance", "thing"),
    ("systemUuid", "thing"),
    ("bootId", "boot"),
    ("life", "boot"),
    ("agent", "agent"),
    ("zone", "zone"),
    ("image", "image"),
    ("network", "network"),
    ("groups", "thing"),
    ("group", "thing"),
    ("router", "thing"),
    ("port", "thing"),
    ("rule", "thing"),
    ("project", "project"),
    ("cloud", "cloud"),
    ("clouds", "cloud"),
    ("pool", "pool"),
    ("tag", "mark"),
    ("metadata", "mark"),
    ("request", "request"),
    ("user", "user"),
    ("domain", "domain"),
    ("by", "user"),
    ("label", "name"),
];
/// Fields whose keys are names, and the prefix of the new names.
const KEYED: [(&str, &str); 2] = [("pools", "pool"), ("settles", "cloud")];
/// Shorter names stay unchanged: `a` is part of every sentence.
const NAME_BYTES_MIN: usize = 2;

/// The same lines with other names.
pub(crate) fn anonymise(lines: &[u8]) -> Result<Vec<u8>, Failure> {
    let mut values = Vec::new();
    for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        values.push(serde_json::from_slice::<Value>(line).context("cannot read a line of our own")?);
    }
    let mut names = Names::default();
    values.iter().for_each(|value| names.collect(value));
    let mut out = Vec::new();
    for mut value in values {
        names.replace(&mut value);
        serde_json::to_writer(&mut out, &value).context("cannot write a line")?;
        out.push(b'\n');
    }
    Ok(out)
}

#[derive(Default)]
struct Names {
    other: BTreeMap<String, String>,
    counts: BTreeMap<&'static str, u64>,
}

impl Names {
    fn collect(&mut self, value: &Value) {
        match value {
            Value::Object(fields) => {
                // The label of a cause is a word of the program; only the labels of machines and groups are names.
                let is_cause = fields.contains_key("says");
                for (field, value) in fields {
                    if is_cause && field == "label" {
                        continue;
                    }
                    if let (Some(kind), Value::Object(keyed)) = (keys_are(field), value) {
                        keyed.keys().for_each(|name| self.name(kind, name));
                    }
                    if let Some((_, kind)) = NAMING.iter().find(|(name, _)| name == field) {
                        self.named(kind, value);
                    }
                    self.collect(value);
                }
            }
            Value::Array(items) => items.iter().for_each(|item| self.collect(item)),
            _ => {}
        }
    }

    /// Registers a text, or a list of texts, as names.
    fn named(&mut self, kind: &'static str, value: &Value) {
        match value {
            Value::String(name) => self.name(kind, name),
            Value::Array(items) if items.iter().all(Value::is_string) => {
                items.iter().for_each(|item| self.named(kind, item));
            }
            _ => {}
        }
    }

    fn name(&mut self, kind: &'static str, name: &str) {
        if is_name(name) && !self.other.contains_key(name) {
            let count = self.counts.entry(kind).or_default();
            *count += 1;
            self.other.insert(name.to_owned(), format!("{kind}-{count}"));
        }
    }

    fn replace(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.text(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.replace(item)),
            Value::Object(fields) => {
                for (field, value) in fields.iter_mut() {
                    if let (Some(_), Value::Object(keyed)) = (keys_are(field), &mut *value) {
                        *keyed = std::mem::take(keyed)
                            .into_iter()
                            .map(|(name, of)| (self.text(&name), of))
                            .collect();
                    }
                    self.replace(value);
                }
            }
            _ => {}
        }
    }

    /// Replaces a text that is a name, or each word of a sentence that is one.
    fn text(&self, text: &str) -> String {
        if let Some(other) = self.other.get(text) {
            return other.clone();
        }
        let mut out = String::with_capacity(text.len());
        let mut word = String::new();
        for character in text.chars().chain([' ']) {
            if character.is_alphanumeric() || matches!(character, '-' | '_' | '.' | '=') {
                word.push(character);
                continue;
            }
            // A name at the end of a sentence has a full stop behind it.
            let bare = word.trim_end_matches('.');
            out.push_str(self.other.get(bare).map_or(bare, String::as_str));
            out.push_str(&word[bare.len()..]);
            word.clear();
            out.push(character);
        }
        out.pop();
        out
    }
}

/// The prefix for the keys below this field, where they are names.
fn keys_are(field: &str) -> Option<&'static str> {
    KEYED.iter().find(|(of, _)| *of == field).map(|(_, kind)| *kind)
}

/// Words of the format and addresses are not names.
fn is_name(text: &str) -> bool {
    const WORDS: [&str; 17] = [
        "cluster", "roster", "any", "other", "full", "changes", "active", "down", "unknown", "true", "false",
        "tick", "alive", "unset", "off", "propose", "act",
    ];
    text.len() >= NAME_BYTES_MIN
        && !WORDS.contains(&text)
        && Stage::from_name(text).is_none()
        && FaultKind::from_name(text).is_none()
        && text.parse::<std::net::IpAddr>().is_err()
        && text.parse::<ipnet::IpNet>().is_err()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anonymised_name_is_replaced_everywhere_and_nothing_else() {
        let line = serde_json::json!({
            "name": "prod-w-1", "id": "7f3a", "zone": "nova", "state": "active", "addresses": ["10.0.0.7"],
            "pools": {"gpu-a": {"name": "gpu-a", "limits": {}}},
            "marks": [{"tag": "k8s-cluster=prod"}, {"metadata": ["owner", "ann"]}],
            "message": "Node prod-w-1 (7f3a) left nova. See prod-w-10 and ann: k8s-cluster=prod",
        });
        let out = anonymise(line.to_string().as_bytes()).unwrap();
        let out: Value = serde_json::from_slice(&out).unwrap();
        let text = out.to_string();
        for gone in ["\"prod-w-1\"", "gpu-a", "7f3a", "nova", "k8s-cluster", "ann"] {
            assert!(!text.contains(gone), "{gone}: {text}");
        }
        assert_eq!(out["addresses"][0], "10.0.0.7");
        assert_eq!(out["state"], "active");
        let (name, id) = (out["name"].as_str().unwrap(), out["id"].as_str().unwrap());
        let message = out["message"].as_str().unwrap();
        assert!(
            message.starts_with(&format!("Node {name} ({id}) left zone-1. See prod-w-10 and ")),
            "{message}"
        );
    }
}

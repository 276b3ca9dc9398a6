//! Which fields of one object change, between which values, and which manager writes them.
//!
//! ```text
//!  version, version, version ─▶ differ ─▶ for each path: values, who wrote each, how often one came back  ─▶ Flip
//!                               managed ─▶ writers
//! ```
//!
//! A value that comes back after another replaced it (A, B, A) has two writers that disagree. The record is bounded; values are
//! shortened and masked before they are kept. Of secrets only the fact that they differ is kept.

use std::collections::{BTreeMap, BTreeSet};

use reveille_core::diagnose::console::mask_secrets;
use serde_json::Value;

use crate::differ::{Change, differ};
use crate::managed::{Manager, moved, owners};
use crate::path::Path;

/// Paths of one object that are kept.
const PATHS_MAX: usize = 64;
/// Values of one path that are kept.
const VALUES_MAX: usize = 8;
/// Characters of a value that are shown.
const SHOWN_MAX: usize = 60;
/// What a value looks like where it may not be shown.
const HIDDEN: &str = "(hidden)";

/// The changes of one object while it was followed.
#[derive(Clone, Debug, Default)]
pub struct Flips {
    hides: bool,
    last: Option<Value>,
    versions: u32,
    same: u32,
    paths: BTreeMap<Path, Trace>,
    writers: BTreeMap<Manager, u32>,
}

#[derive(Clone, Debug, Default)]
struct Trace {
    changes: u32,
    returns: u32,
    /// The value before the last one.
    before: Option<u64>,
    values: BTreeMap<u64, Seen>,
}

#[derive(Clone, Debug)]
struct Seen {
    shown: String,
    by: BTreeSet<Manager>,
}

/// A field that changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flip {
    /// Where.
    pub path: Path,
    /// How often it changed while it was followed.
    pub changes: u32,
    /// How often a value came back that had been there before the last one.
    pub returns: u32,
    /// Values and who wrote them, shortened and masked.
    pub values: Vec<(String, Vec<Manager>)>,
}

impl Flip {
    /// Two that want it otherwise: it came back more often than chance allows.
    pub const fn is_fight(&self) -> bool {
        self.returns >= 2 && self.returns * 2 >= self.changes
    }
}

impl Flips {
    /// Of an object whose values may, or may not, be shown.
    pub fn new(hides: bool) -> Self {
        Self { hides, ..Self::default() }
    }

    /// Takes in the next version.
    pub fn version(&mut self, object: Value) {
        let Some(last) = self.last.take() else {
            self.last = Some(object);
            return;
        };
        self.versions += 1;
        let changes = differ(&last, &object);
        if changes.is_empty() {
            self.same += 1;
        }
        let hands = moved(&last, &object);
        let mut by_all = BTreeSet::new();
        for change in &changes {
            let mut by = owners(&object, &change.path);
            // A field may have several managers that apply it; the manager whose entry changed is the writer.
            if by.len() > 1 && by.iter().any(|manager| hands.contains(manager)) {
                by.retain(|manager| hands.contains(manager));
            }
            if by.is_empty() {
                by.clone_from(&hands);
            }
            by_all.extend(by.iter().cloned());
            self.trace(change, by);
        }
        let by_all = if by_all.is_empty() { hands.into_iter().collect() } else { by_all };
        for manager in by_all {
            *self.writers.entry(manager).or_default() += 1;
        }
        self.last = Some(object);
    }

    fn trace(&mut self, change: &Change<'_>, by: Vec<Manager>) {
        if self.paths.len() >= PATHS_MAX && !self.paths.contains_key(&change.path) {
            return;
        }
        let hides = self.hides;
        let trace = self.paths.entry(change.path.clone()).or_default();
        let (old, new) = (mark(change.before), mark(change.after));
        trace.changes += 1;
        if trace.before == Some(new) && trace.values.contains_key(&new) {
            trace.returns += 1;
        }
        trace.before = Some(old);
        let mut keep = |mark: u64, value: Option<&Value>, by: Vec<Manager>| {
            if trace.values.len() < VALUES_MAX || trace.values.contains_key(&mark) {
                let shown = || shown(&change.path, value, hides);
                let seen =
                    trace.values.entry(mark).or_insert_with(|| Seen { shown: shown(), by: BTreeSet::new() });
                seen.by.extend(by);
            }
        };
        keep(old, change.before, Vec::new());
        keep(new, change.after, by);
    }

    /// Versions that came after the first.
    pub const fn versions(&self) -> u32 {
        self.versions
    }

    /// Versions in which nothing differed but the server's books.
    pub const fn same(&self) -> u32 {
        self.same
    }

    /// The version that came last.
    pub const fn last(&self) -> Option<&Value> {
        self.last.as_ref()
    }

    /// Who wrote, and how many versions; most first.
    pub fn writers(&self) -> Vec<(Manager, u32)> {
        let mut writers: Vec<_> =
            self.writers.iter().map(|(manager, count)| (manager.clone(), *count)).collect();
        writers.sort_by(|(a, many), (b, more)| (more, a).cmp(&(many, b)));
        writers
    }

    /// What changes: fights first, then by how often.
    pub fn flips(&self) -> Vec<Flip> {
        let flip = |(path, trace): (&Path, &Trace)| Flip {
            path: path.clone(),
            changes: trace.changes,
            returns: trace.returns,
            values: trace
                .values
                .values()
                .map(|seen| (seen.shown.clone(), seen.by.iter().cloned().collect()))
                .collect(),
        };
        let mut flips: Vec<Flip> = self.paths.iter().map(flip).collect();
        flips.sort_by_key(|flip| {
            (!flip.is_fight(), flip.path.is_time(), u32::MAX - flip.changes, flip.path.clone())
        });
        flips
    }
}

/// A value's mark, by which it is known again; FNV, because it is the same in every run.
fn mark(value: Option<&Value>) -> u64 {
    let text = value.map(Value::to_string).unwrap_or_default();
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// A value as a person may see it.
fn shown(path: &Path, value: Option<&Value>, hides: bool) -> String {
    let Some(value) = value else { return "(nothing)".to_owned() };
    let text = match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    // A secret may stand below this path as well as in it; its name is then part of the text.
    if hides || path.is_secret() {
        return HIDDEN.to_owned();
    }
    let named = format!("{path}: {text}");
    let masked = mask_secrets(&named);
    let masked = masked.strip_prefix(&format!("{path}: ")).unwrap_or(HIDDEN);
    let one_line: String = masked.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    match one_line.char_indices().nth(SHOWN_MAX) {
        Some((cut, _)) => format!("{}…", &one_line[..cut]),
        None => one_line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn version(nth: u32, manager: &str, name: &Value) -> Value {
        json!({"metadata": {"name": "m", "resourceVersion": nth.to_string(), "managedFields": [
            {"manager": manager, "operation": "Update", "time": format!("t{nth}"), "fieldsV1": {"f:spec": {"f:name": {}}}}]},
            "spec": {"name": name}})
    }

    fn followed(versions: impl IntoIterator<Item = Value>) -> Flips {
        let mut flips = Flips::new(false);
        versions.into_iter().for_each(|object| flips.version(object));
        flips
    }

    #[test]
    fn two_that_write_in_turn_are_both_named_with_what_each_wants() {
        let hand = |nth: u32| {
            if nth.is_multiple_of(2) { ("agent-a", json!("host-1")) } else { ("agent-b", json!("host-2")) }
        };
        let flips = followed((0..10).map(|nth| version(nth, hand(nth).0, &hand(nth).1)));
        let flip = &flips.flips()[0];
        assert_eq!(flip.path.to_string(), "spec.name");
        assert!(flip.is_fight(), "{flip:?}");
        let named: BTreeMap<_, _> =
            flip.values.iter().map(|(value, by)| (value.as_str(), by[0].name.as_str())).collect();
        assert_eq!(named, BTreeMap::from([("host-1", "agent-a"), ("host-2", "agent-b")]));
        let writers: BTreeSet<_> = flips.writers().into_iter().map(|(manager, _)| manager.name).collect();
        assert_eq!(writers, BTreeSet::from(["agent-a".to_owned(), "agent-b".to_owned()]));
    }

    #[test]
    fn one_that_counts_is_no_fight() {
        let flips = followed((0..10).map(|nth| version(nth, "counter", &json!(nth))));
        assert_eq!(flips.flips()[0].changes, 9);
        assert!(!flips.flips()[0].is_fight());
    }

    #[test]
    fn nothing_secret_is_kept() {
        let secret = "dG9wLXNlY3JldC12YWx1ZS10aGF0LW5vYm9keS1tYXktc2VlLWF0LWFsbA==";
        let versions = |path: &'static str| {
            (0..6).map(move |nth| json!({"spec": {path: format!("{secret}{}", nth % 2)}}))
        };
        for path in ["joinToken", "data", "note"] {
            let flips = followed(versions(path));
            assert!(!format!("{:?}", flips.flips()).contains("dG9wLXNl"), "{path}: {:?}", flips.flips());
        }
        let mut hidden = Flips::new(true);
        for nth in 0..4 {
            hidden.version(json!({"data": {"a": format!("short{}", nth % 2)}}));
        }
        assert!(!format!("{:?}", hidden.flips()).contains("short"));
        assert!(hidden.flips()[0].is_fight(), "that it flips is told all the same");
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let wide = |nth: u64| {
            let fields = (0..500_u64).map(|field| (format!("k{field}"), json!(nth * field + 1)));
            json!({"spec": serde_json::Map::from_iter(fields)})
        };
        let flips = followed((0..50).map(wide));
        assert!(flips.paths.len() <= PATHS_MAX);
        assert!(flips.paths.values().all(|trace| trace.values.len() <= VALUES_MAX));
    }
}

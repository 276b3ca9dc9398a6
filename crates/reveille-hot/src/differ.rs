//! What differs between two versions of an object: paths, with the value before and after.
//!
//! ```text
//!  before, after ─▶ maps by key, lists by the field that names their items ─▶ [(path, old, new)]
//! ```
//!
//! The API server's own fields (resource version, generation, managed fields) are left out: they differ each time and cause
//! nothing. Depth and count are bounded; a write that changes more than that counts as a change of everything.

use serde_json::{Map, Value};

use crate::path::{Path, Step};

/// Changes of one version that are looked at.
const CHANGES_MAX: usize = 100;
/// No object of the API is deeper.
const DEPTH_MAX: usize = 40;
/// Fields that name the items of a list, as Kubernetes' own kinds use them.
const KEYS: [&str; 6] = ["type", "name", "key", "uid", "ip", "containerPort"];

/// One change.
#[derive(Clone, Debug, PartialEq)]
pub struct Change<'a> {
    /// Where.
    pub path: Path,
    /// What was there.
    pub before: Option<&'a Value>,
    /// What is there.
    pub after: Option<&'a Value>,
}

/// What differs, in the order of paths.
pub fn differ<'a>(before: &'a Value, after: &'a Value) -> Vec<Change<'a>> {
    let mut changes = Vec::new();
    walk(&Path::default(), Some(before), Some(after), &mut changes);
    changes
}

/// The server writes these itself.
fn is_book(path: &Path) -> bool {
    ["resourceVersion", "generation", "managedFields"].iter().any(|own| path.begins(&["metadata", own]))
}

fn walk<'a>(path: &Path, before: Option<&'a Value>, after: Option<&'a Value>, into: &mut Vec<Change<'a>>) {
    if before == after || into.len() >= CHANGES_MAX || is_book(path) {
        return;
    }
    match (before, after) {
        (Some(Value::Object(old)), Some(Value::Object(new))) if path.0.len() < DEPTH_MAX => {
            fields(path, old, new, into);
        }
        (Some(Value::Array(old)), Some(Value::Array(new)))
            if path.0.len() < DEPTH_MAX && old.iter().chain(new).all(Value::is_object) =>
        {
            items(path, old, new, into);
        }
        _ => into.push(Change { path: path.clone(), before, after }),
    }
}

fn fields<'a>(
    path: &Path,
    old: &'a Map<String, Value>,
    new: &'a Map<String, Value>,
    into: &mut Vec<Change<'a>>,
) {
    let added = new.keys().filter(|key| !old.contains_key(*key));
    for key in old.keys().chain(added) {
        walk(&path.then(Step::Field(key.clone())), old.get(key), new.get(key), into);
    }
}

/// Items of two lists of objects. A list of scalars is one value.
fn items<'a>(path: &Path, old: &'a [Value], new: &'a [Value], into: &mut Vec<Change<'a>>) {
    let Some(key) = KEYS.into_iter().find(|key| names(old, key).is_some() && names(new, key).is_some())
    else {
        // Items without names: place by place.
        for place in 0..old.len().max(new.len()) {
            walk(&path.then(Step::Place(place)), old.get(place), new.get(place), into);
        }
        return;
    };
    let (Some(olds), Some(news)) = (names(old, key), names(new, key)) else { return };
    let count = into.len();
    let added = news.iter().filter(|name| !olds.contains(name));
    for name in olds.iter().chain(added) {
        let of = |names: &[String], items: &'a [Value]| {
            names.iter().position(|other| other == name).and_then(|place| items.get(place))
        };
        let step = Step::Keyed(key.to_owned(), name.clone());
        walk(&path.then(step), of(&olds, old), of(&news, new), into);
    }
    // Nothing but the order differs: a comparison that minds the order writes for ever.
    if into.len() == count && olds != news {
        into.push(Change { path: path.then(Step::Order), before: None, after: None });
    }
}

/// The names of all items by this field, when each has one of its own.
fn names(items: &[Value], key: &str) -> Option<Vec<String>> {
    let mut names: Vec<String> = Vec::with_capacity(items.len());
    for item in items {
        let name = match item.get(key)? {
            Value::String(name) => name.clone(),
            Value::Number(number) => number.to_string(),
            _ => return None,
        };
        if names.contains(&name) {
            return None;
        }
        names.push(name);
    }
    Some(names)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn paths(before: &Value, after: &Value) -> Vec<String> {
        differ(before, after).iter().map(|change| change.path.to_string()).collect()
    }

    #[test]
    fn what_differs_is_named_by_its_path() {
        let base = json!({"metadata": {"resourceVersion": "1", "labels": {"a": "1"}},
            "status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "Disk", "status": "x"}]}});
        let with = |change: &dyn Fn(&mut Value)| {
            let mut after = base.clone();
            change(&mut after);
            paths(&base, &after)
        };
        assert_eq!(with(&|v| v["metadata"]["resourceVersion"] = json!("2")), Vec::<String>::new());
        assert_eq!(with(&|v| v["metadata"]["labels"]["a"] = json!("2")), ["metadata.labels.a"]);
        assert_eq!(
            with(&|v| v["status"]["conditions"][0]["status"] = json!("False")),
            ["status.conditions[type=Ready].status"]
        );
        let order = |v: &mut Value| v["status"]["conditions"].as_array_mut().unwrap().reverse();
        assert_eq!(with(&order), ["status.conditions (order)"]);
        assert_eq!(with(&|v| v["spec"] = json!({"a": 1})), ["spec"]);
    }

    #[test]
    fn a_list_of_words_is_one_value() {
        let (before, after) = (json!({"finalizers": ["a", "b"]}), json!({"finalizers": ["a"]}));
        assert_eq!(paths(&before, &after), ["finalizers"]);
    }

    #[test]
    fn an_object_that_is_all_new_costs_no_more_than_the_bound() {
        let many =
            |offset: u32| Value::Object((0..10_000).map(|n| (format!("k{n}"), json!(n + offset))).collect());
        assert_eq!(differ(&many(0), &many(1)).len(), CHANGES_MAX);
    }
}

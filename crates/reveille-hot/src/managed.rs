//! Which manager wrote which field, by the API server's record: `metadata.managedFields`.
//!
//! ```text
//!  managedFields: [{manager, operation, subresource, time, fieldsV1}] ─▶ which manager owns this path now?
//! ```
//!
//! An update takes the ownership of each field that it changes, so the owner of a changed field in the new version is its writer.
//! A manager is a name that a program gives itself: two processes may share one, and any client may use another's. Hence
//! "suspected".

use serde_json::Value;

use crate::path::{Path, Step};

/// Entries that are read; Kubernetes keeps ten updates and one for each manager that applies.
const ENTRIES_MAX: usize = 50;

/// Who wrote, as far as the object itself tells.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Manager {
    /// The name that it gave itself.
    pub name: String,
    /// Through this subresource.
    pub subresource: Option<String>,
}

/// The managers that own this path, or what it stands in as a whole.
pub fn owners(object: &Value, path: &Path) -> Vec<Manager> {
    let mut owners = Vec::new();
    for entry in entries(object).filter(|entry| owns(&entry["fieldsV1"], &path.0)) {
        owners.extend(manager(entry).filter(|manager| !owners.contains(manager)));
    }
    owners
}

/// The managers whose entry changed. A manager that removed a field owns nothing of it afterwards, so only its entry shows the
/// removal.
pub fn moved(before: &Value, after: &Value) -> Vec<Manager> {
    let was = |entry: &Value| entries(before).any(|old| old == entry);
    entries(after).filter(|entry| !was(entry) && !is_lost(before, entry)).filter_map(manager).collect()
}

/// An entry that differs from the one before only in what it does not own any more, at the same time: another took it.
fn is_lost(before: &Value, entry: &Value) -> bool {
    let size = |entry: &Value| entry["fieldsV1"].to_string().len();
    entries(before)
        .any(|old| manager(old) == manager(entry) && old["time"] == entry["time"] && size(entry) < size(old))
}

fn entries(object: &Value) -> impl Iterator<Item = &Value> {
    let entries = object["metadata"]["managedFields"].as_array();
    entries.into_iter().flatten().take(ENTRIES_MAX)
}

fn manager(entry: &Value) -> Option<Manager> {
    let name = entry["manager"].as_str()?.to_owned();
    let subresource = entry["subresource"].as_str().filter(|sub| !sub.is_empty()).map(str::to_owned);
    Some(Manager { name, subresource })
}

/// True when these fields cover the path: all of its steps, or those down to a value that is owned as a whole.
fn owns(fields: &Value, steps: &[Step]) -> bool {
    let Some(map) = fields.as_object() else { return false };
    let Some((step, rest)) = steps.split_first() else { return true };
    // `{}`: a leaf. Whatever is below it goes with it.
    if map.is_empty() {
        return true;
    }
    let below = match step {
        Step::Field(name) => map.get(&format!("f:{name}")),
        Step::Keyed(key, value) => {
            map.iter().find(|(name, _)| is_key(name, key, value)).map(|(_, below)| below)
        }
        Step::Place(place) => map.get(&format!("i:{place}")),
        Step::Order => return true,
    };
    below.is_some_and(|below| owns(below, rest))
}

/// `k:{"type":"Ready"}` names the item whose type is Ready.
fn is_key(name: &str, key: &str, value: &str) -> bool {
    let Some(keys) = name.strip_prefix("k:") else { return false };
    let Ok(keys) = serde_json::from_str::<Value>(keys) else { return false };
    match &keys[key] {
        Value::String(text) => text == value,
        Value::Number(number) => number.to_string() == value,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::tests::path;
    use serde_json::json;

    fn object() -> Value {
        json!({"metadata": {"managedFields": [
            {"manager": "agent-a", "operation": "Update", "time": "t1", "fieldsV1": {"f:spec": {"f:worker": {}}}},
            {"manager": "agent-b", "operation": "Update", "time": "t2", "fieldsV1": {"f:spec": {"f:info": {}}}},
            {"manager": "kubelet", "operation": "Update", "time": "t1", "subresource": "status",
             "fieldsV1": {"f:status": {"f:conditions": {"k:{\"type\":\"Ready\"}": {"f:reason": {}}}}}}
        ]}})
    }

    fn names(owners: &[Manager]) -> Vec<&str> {
        owners.iter().map(|manager| manager.name.as_str()).collect()
    }

    #[test]
    fn field_is_owned_by_its_writer_or_that_of_its_parent() {
        let ready = path("status.conditions").then(Step::Keyed("type".to_owned(), "Ready".to_owned()));
        let table = [
            (path("spec.worker"), vec!["agent-a"]),
            (path("spec.info.name"), vec!["agent-b"]),
            (ready.then(Step::Field("reason".to_owned())), vec!["kubelet"]),
            (path("spec.etcd"), vec![]),
        ];
        for (path, wanted) in table {
            assert_eq!(names(&owners(&object(), &path)), wanted, "{path}");
        }
    }

    #[test]
    fn moved_manager_is_known_for_removed_field_without_owner() {
        let mut after = object();
        after["metadata"]["managedFields"][0]["time"] = json!("t3");
        after["metadata"]["managedFields"][1]["fieldsV1"] = json!({"f:spec": {}});
        assert_eq!(names(&moved(&object(), &after)), ["agent-a"]);
    }
}

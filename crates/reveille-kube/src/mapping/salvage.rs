//! A Node that does not decode: reads each field by itself, and lists those that could not be read.
//!
//! Reached only when the whole object was refused by the decoder, so its cost does not matter. Lists keep the entries that
//! can be read.

use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::wire::{Meta, NodeDoc, NodeInfo, NodeSpec, NodeStatus};

/// What can be read of a Node, and the fields that cannot.
pub(crate) fn node(raw: &RawValue) -> (NodeDoc, Vec<&'static str>) {
    let mut from =
        Wreck { value: serde_json::from_str(raw.get()).unwrap_or(Value::Null), unread: Vec::new() };
    let metadata = Meta {
        name: from.field("metadata.name"),
        uid: from.field("metadata.uid"),
        resource_version: from.field("metadata.resourceVersion"),
        creation_timestamp: from.field("metadata.creationTimestamp"),
        // Whatever it holds, its being there is the sign.
        deletion_timestamp: from.at("metadata.deletionTimestamp").map(|value| value.to_string()),
        labels: from.field("metadata.labels"),
        annotations: from.field("metadata.annotations"),
    };
    let spec = NodeSpec {
        provider_id: from.field("spec.providerID"),
        pod_cidr: from.field("spec.podCIDR"),
        pod_cidrs: from.entries("spec.podCIDRs"),
        taints: from.entries("spec.taints"),
        unschedulable: from.field("spec.unschedulable"),
    };
    let node_info = NodeInfo {
        system_uuid: from.field("status.nodeInfo.systemUUID"),
        boot_id: from.field("status.nodeInfo.bootID"),
        kubelet_version: from.field("status.nodeInfo.kubeletVersion"),
    };
    let status = NodeStatus {
        conditions: from.entries("status.conditions"),
        addresses: from.entries("status.addresses"),
        node_info: Some(node_info),
    };
    (NodeDoc { metadata, spec: Some(spec), status: Some(status) }, from.unread)
}

struct Wreck {
    value: Value,
    unread: Vec<&'static str>,
}

impl Wreck {
    /// What stands there: something, nothing, or no way to tell because a parent is not an object.
    fn at(&mut self, path: &'static str) -> Option<Value> {
        let mut value = &self.value;
        for key in path.split('.') {
            match value {
                Value::Object(fields) => value = fields.get(key).unwrap_or(&Value::Null),
                Value::Null => return None,
                _ => {
                    self.unread.push(path);
                    return None;
                }
            }
        }
        (!value.is_null()).then(|| value.clone())
    }

    fn field<T: DeserializeOwned>(&mut self, path: &'static str) -> Option<T> {
        let read = serde_json::from_value(self.at(path)?).ok();
        if read.is_none() {
            self.unread.push(path);
        }
        read
    }

    fn entries<T: DeserializeOwned>(&mut self, path: &'static str) -> Option<Vec<T>> {
        let Value::Array(entries) = self.at(path)? else {
            self.unread.push(path);
            return None;
        };
        let count = entries.len();
        let read: Vec<T> =
            entries.into_iter().filter_map(|entry| serde_json::from_value(entry).ok()).collect();
        if read.len() < count {
            self.unread.push(path);
        }
        Some(read)
    }
}

//! The machine's Node, as the API server returns it.

use std::collections::BTreeMap;

use reveille_agent::checkup::facts::{Condition, Node};
use reveille_core::model::signs;
use serde::Deserialize;

/// A Node of the API.
pub(super) fn node(body: &[u8]) -> Result<Node, serde_json::Error> {
    let read: NodeObject = serde_json::from_slice(body)?;
    let taints: Vec<String> = read.spec.taints.into_iter().map(|taint| taint.key).collect();
    let keys: Vec<&str> = taints.iter().map(String::as_str).collect();
    let is_deleted = read.metadata.deletion_timestamp.is_some();
    let intent = signs::read(&read.metadata.annotations, &keys, is_deleted, true);
    let info = read.status.node_info;
    Ok(Node {
        name: read.metadata.name,
        machine_id: info.machine_id,
        system_uuid: info.system_uuid,
        boot_id: info.boot_id,
        conditions: read.status.conditions.into_iter().map(condition).collect(),
        leaving: intent.leaving.map(|sign| sign.to_string()),
        taints,
        is_cordoned: read.spec.unschedulable,
        is_deleted,
    })
}

fn condition(read: ConditionObject) -> Condition {
    Condition { kind: read.kind, status: read.status, reason: read.reason, message: read.message }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct NodeObject {
    metadata: Metadata,
    spec: Spec,
    status: Status,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Metadata {
    name: String,
    annotations: BTreeMap<String, String>,
    deletion_timestamp: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Spec {
    taints: Vec<Taint>,
    unschedulable: bool,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Taint {
    key: String,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Status {
    conditions: Vec<ConditionObject>,
    node_info: Info,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Info {
    #[serde(rename = "machineID")]
    machine_id: String,
    #[serde(rename = "systemUUID")]
    system_uuid: String,
    #[serde(rename = "bootID")]
    boot_id: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ConditionObject {
    #[serde(rename = "type")]
    kind: String,
    status: String,
    reason: String,
    message: String,
}

//! What an agent reads from its own Node: whose Node it is, whether it is Ready, and whether an operator or a controller
//! removes the machine.

use std::collections::BTreeMap;

use reveille_agent::model::Leaving;
use reveille_core::model::signs::{self, Removal};
use serde::Deserialize;

/// The parts of a Node that the agent needs.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct NodeObject {
    metadata: Metadata,
    spec: Spec,
    status: Status,
}

/// The ids of the machine, as its Node says them.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(default)]
pub struct NodeInfo {
    /// The machine id.
    #[serde(rename = "machineID")]
    pub machine_id: String,
    /// The SMBIOS system UUID.
    #[serde(rename = "systemUUID")]
    pub system_uuid: String,
    /// The boot in which the kubelet registered, or last reported.
    #[serde(rename = "bootID")]
    pub boot_id: String,
}

/// The status of the Ready condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ready {
    /// Ready.
    Yes,
    /// The kubelet says that the Node is not Ready.
    No,
    /// The API server has not heard from the kubelet for a while, or never.
    Unknown,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Metadata {
    uid: String,
    resource_version: String,
    annotations: BTreeMap<String, String>,
    deletion_timestamp: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Spec {
    taints: Vec<Taint>,
    unschedulable: bool,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Taint {
    key: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Status {
    conditions: Vec<Condition>,
    node_info: NodeInfo,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Condition {
    #[serde(rename = "type")]
    kind: String,
    status: String,
    message: String,
}

impl NodeObject {
    /// The Node's uid: a Node of the same name with another uid is another Node.
    pub fn uid(&self) -> &str {
        &self.metadata.uid
    }

    /// The Node's resource version.
    pub fn revision(&self) -> &str {
        &self.metadata.resource_version
    }

    /// The ids of the Node's machine.
    pub const fn info(&self) -> &NodeInfo {
        &self.status.node_info
    }

    /// The Ready condition, and its message.
    pub fn ready(&self) -> (Ready, &str) {
        let condition = self.status.conditions.iter().find(|condition| condition.kind == "Ready");
        let Some(condition) = condition else { return (Ready::Unknown, "") };
        let ready = match condition.status.as_str() {
            "True" => Ready::Yes,
            "False" => Ready::No,
            _ => Ready::Unknown,
        };
        (ready, &condition.message)
    }

    /// The cloud controller has not initialised the Node yet.
    pub fn is_uninitialized(&self) -> bool {
        self.spec.taints.iter().any(|taint| taint.key == "node.cloudprovider.kubernetes.io/uninitialized")
    }

    /// The sign that an operator or a controller removes the machine. A cordon alone counts as a drain only once the Node
    /// is gone.
    pub fn leaving(&self) -> Option<Leaving> {
        let taints: Vec<&str> = self.spec.taints.iter().map(|taint| taint.key.as_str()).collect();
        let deleting = self.metadata.deletion_timestamp.is_some();
        let intent = signs::read(&self.metadata.annotations, &taints, deleting, true);
        if intent.deleting {
            return Some(Leaving::Finalizing);
        }
        signs::removal(&intent, self.spec.unschedulable).map(|removal| match removal {
            Removal::Marked(_) => Leaving::Tainted,
            // A pause or a keep mark of an operator counts like a cordon: only once the Node is gone.
            Removal::Drained | Removal::Reserved(_) => Leaving::Drained,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(json: &str) -> NodeObject {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn who_takes_it_away() {
        for (json, wanted) in [
            ("{}", None),
            (r#"{"spec":{"taints":[{"key":"node.kubernetes.io/not-ready","effect":"NoSchedule"}]}}"#, None),
            (r#"{"spec":{"taints":[{"key":"ToBeDeletedByClusterAutoscaler"}]}}"#, Some(Leaving::Tainted)),
            (r#"{"spec":{"unschedulable":true}}"#, Some(Leaving::Drained)),
            (r#"{"metadata":{"deletionTimestamp":"2026-11-22T10:00:00Z"}}"#, Some(Leaving::Finalizing)),
        ] {
            assert_eq!(node(json).leaving(), wanted, "{json}");
        }
    }

    #[test]
    fn ready_is_what_its_condition_says() {
        let with = |status: &str| {
            format!(
                r#"{{"status":{{"conditions":[{{"type":"DiskPressure","status":"False"}},{{"type":"Ready","status":"{status}","message":"m"}}]}}}}"#
            )
        };
        assert_eq!(node(&with("True")).ready(), (Ready::Yes, "m"));
        assert_eq!(node(&with("False")).ready(), (Ready::No, "m"));
        assert_eq!(node(&with("Unknown")).ready(), (Ready::Unknown, "m"));
        assert_eq!(node("{}").ready(), (Ready::Unknown, ""));
    }
}

//! What `rancher inspect` found in Rancher's records, and what `status` and `why` show of it.

use serde::{Deserialize, Serialize};

use reveille_core::model::time::Time;

/// The records of the clusters of a Rancher.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RancherReport {
    /// Rancher's API server, as `host:port`.
    pub server: String,
    /// Clusters, by id.
    pub clusters: Vec<RancherClusterReport>,
    /// Machines of clusters that Rancher provisions with v2 (Cluster API) and that are not ready, by namespace and name.
    pub machines: Vec<RancherMachineReport>,
    /// How many such machines there are.
    pub machines_seen: u32,
    /// What could not be read outside the clusters, each with the reason.
    pub unread: Vec<String>,
}

/// Rancher's records of a roster's cluster, read for a `status` or a `why`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RancherRecordsReport {
    /// Rancher's API server, as `host:port`; not there when it could not be reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// The cluster's id in Rancher, which is the namespace of its records; not there when it was not found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The display name of the cluster, or its name in the roster.
    pub name: String,
    /// Machines with broken records; in a `why`, only the machine of the question.
    pub troubles: Vec<RancherTroubleReport>,
    /// Machines of v2 provisioning (Cluster API) that are not ready; in a `why`, only the machine of the question.
    pub machines: Vec<RancherMachineReport>,
    /// What could not be read, each with the reason: nothing that depends on it is judged.
    pub unread: Vec<String>,
}

/// A cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RancherClusterReport {
    /// Its id, which is the namespace of its records.
    pub id: String,
    /// The display name of the cluster.
    pub name: String,
    /// Its driver, as in Rancher's record; empty when the cluster was never initialised.
    pub driver: String,
    /// `managed`: nodes register; `mirrored`: records mirror Nodes; `unset`: the cluster has no driver yet.
    pub kind: String,
    /// How many records there are; not there when they could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub records: Option<u32>,
    /// The number of records that could not be decoded, which `records` does not count.
    #[serde(default)]
    pub garbled: u32,
    /// How many Nodes there are; not there when they were not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<u32>,
    /// The problems, by machine.
    pub troubles: Vec<RancherTroubleReport>,
    /// What could not be read of the cluster, each with the reason: nothing that depends on it is judged.
    pub unread: Vec<String>,
}

/// The problem of one machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RancherTroubleReport {
    /// Its records.
    pub records: Vec<String>,
    /// Its Node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// Its addresses.
    pub addresses: Vec<String>,
    /// The findings, by predicate.
    pub findings: Vec<RancherFindingReport>,
    /// A healthy record for comparison.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sibling: Option<String>,
    /// The fields in which the two records differ.
    pub differs: Vec<RancherDifferenceReport>,
}

/// One predicate that holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RancherFindingReport {
    /// `P1` to `P8`.
    pub predicate: String,
    /// `high` or `medium`.
    pub certainty: String,
    /// What is wrong, as a clause.
    pub says: String,
    /// The fields that the finding is based on.
    pub evidence: Vec<RancherEvidenceReport>,
    /// What it means for the machine and its cluster.
    pub means: String,
    /// The first safe step.
    pub first: String,
    /// What makes it worse.
    pub never: String,
}

/// A field that was read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RancherEvidenceReport {
    /// The object.
    pub of: String,
    /// The path of the field.
    pub field: String,
    /// The value that was read.
    pub value: String,
}

/// A field in which a record differs from a healthy one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RancherDifferenceReport {
    /// The path of the field.
    pub field: String,
    /// The value of the healthy record.
    pub healthy: String,
    /// The value of this record.
    pub this: String,
}

/// A machine of v2 provisioning (Cluster API).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RancherMachineReport {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its cluster.
    pub cluster: String,
    /// Its Node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// Its phase, as in Rancher's record.
    pub phase: String,
    /// Its progress: `infrastructure`, `check-in`, `plan`, `probes`, `node`, `not-ready`, `deleting`.
    pub stage: String,
    /// Why it does not continue.
    pub cause: String,
    /// What to check first.
    pub first: String,
}

/// A repair that was begun and then abandoned: its steps, the present state, and what an operator has to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RancherAbandonReport {
    /// The cluster, as the roster calls it.
    pub cluster: String,
    /// The Node.
    pub node: String,
    /// `evict` or `mend`.
    pub way: String,
    /// The planned steps, in order.
    pub steps: Vec<RancherStepReport>,
    /// The present state, as far as it could be read.
    pub now: Vec<String>,
    /// What an operator has to do, in order.
    pub left: Vec<String>,
    /// Whether the repair has ended, so that another repair may begin.
    pub ended: bool,
}

/// A step of a repair.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RancherStepReport {
    /// When the step was planned.
    pub at: Time,
    /// The step.
    pub what: String,
    /// How it ended.
    pub ended: String,
}

/// The steps of a repair of a Rancher record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RancherRepairReport {
    /// The cluster.
    pub cluster: String,
    /// The Node.
    pub node: String,
    /// `evict` or `mend`.
    pub way: String,
    /// The steps, in order.
    pub steps: Vec<String>,
    /// What blocks the repair; it begins only when this is empty.
    pub against: Vec<String>,
    /// What an edit in place writes: `this` is the present value, `healthy` the new one.
    pub writes: Vec<RancherDifferenceReport>,
}

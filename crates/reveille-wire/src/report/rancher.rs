//! What `rancher inspect` found in Rancher's records, and what `status` and `why` show of it.

use serde::{Deserialize, Serialize};

use reveille_core::model::time::Time;

/// A look at the clusters of a Rancher.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RancherReport {
    /// Its API server, as `host:port`.
    pub server: String,
    /// Clusters, by id.
    pub clusters: Vec<RancherClusterReport>,
    /// Machines of clusters that are provisioned the modern way and are not ready, by namespace and name.
    pub machines: Vec<RancherMachineReport>,
    /// How many such machines there are.
    pub machines_seen: u32,
    /// What could not be read beside clusters, each with the reason.
    pub unread: Vec<String>,
}

/// Rancher's records of a roster's cluster, looked at when a roll or a `why` was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RancherLookReport {
    /// Its API server, as `host:port`; not there when there was no way to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// The cluster's id there, which is the namespace of its records; not there when it was not found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// What people call it, or what the roster calls it.
    pub name: String,
    /// Machines whose records are amiss; in a `why`, the one that was asked for alone.
    pub troubles: Vec<RancherTroubleReport>,
    /// Machines that are provisioned the modern way and are not ready; in a `why`, the one that was asked for alone.
    pub machines: Vec<RancherMachineReport>,
    /// What could not be read, each with the reason: what rests on it is not judged.
    pub unread: Vec<String>,
}

/// A cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RancherClusterReport {
    /// Its id, which is the namespace of its records.
    pub id: String,
    /// What people call it.
    pub name: String,
    /// Its driver, as Rancher writes it; empty when it was never initialised.
    pub driver: String,
    /// `managed`: nodes register; `mirrored`: records mirror nodes; `unset`: it has no driver yet.
    pub kind: String,
    /// How many records there are; not there when they could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub records: Option<u32>,
    /// How many records are there beside them, and cannot be decoded.
    #[serde(default)]
    pub garbled: u32,
    /// How many Nodes there are; not there when they were not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<u32>,
    /// What is amiss, by machine.
    pub troubles: Vec<RancherTroubleReport>,
    /// What could not be read of it, each with the reason: what rests on it is not judged.
    pub unread: Vec<String>,
}

/// What is amiss with one machine.
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
    /// What was found, by predicate.
    pub findings: Vec<RancherFindingReport>,
    /// The healthy record that it is shown beside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sibling: Option<String>,
    /// The fields in which they differ.
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
    /// What is so, as a clause.
    pub says: String,
    /// What it rests on.
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
    /// Whose.
    pub of: String,
    /// Which.
    pub field: String,
    /// What it said.
    pub value: String,
}

/// A field in which a record differs from a healthy one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RancherDifferenceReport {
    /// Which.
    pub field: String,
    /// Of the healthy one.
    pub healthy: String,
    /// Of this one.
    pub this: String,
}

/// A machine of a cluster that is provisioned the modern way.
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
    /// Its phase, as it is written.
    pub phase: String,
    /// How far it came: `infrastructure`, `check-in`, `plan`, `probes`, `node`, `not-ready`, `deleting`.
    pub stage: String,
    /// Why not further.
    pub cause: String,
    /// What to look at.
    pub first: String,
}

/// A repair that was begun and is given up: what was done, what is so, what is left to a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RancherAbandonReport {
    /// The cluster, as the roster calls it.
    pub cluster: String,
    /// The Node.
    pub node: String,
    /// `evict` or `mend`.
    pub way: String,
    /// What was meant, in order.
    pub steps: Vec<RancherStepReport>,
    /// What is so now, as far as it could be looked at.
    pub now: Vec<String>,
    /// What is left to a person, in order.
    pub left: Vec<String>,
    /// Whether it is ended, so that another repair may begin.
    pub ended: bool,
}

/// A step of a repair.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RancherStepReport {
    /// When it was meant.
    pub at: Time,
    /// What.
    pub what: String,
    /// How it ended.
    pub ended: String,
}

/// What an order to mend a record comes to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RancherRepairReport {
    /// The cluster.
    pub cluster: String,
    /// The Node.
    pub node: String,
    /// `evict` or `mend`.
    pub way: String,
    /// What would be done, in order.
    pub steps: Vec<String>,
    /// What stands against it; nothing is begun unless there is none.
    pub against: Vec<String>,
    /// What an edit in place writes: `this` stands there now, `healthy` would.
    pub writes: Vec<RancherDifferenceReport>,
}

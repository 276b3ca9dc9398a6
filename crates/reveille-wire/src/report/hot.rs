//! Which objects are written in a loop, and which clients may be writing them.

use serde::{Deserialize, Serialize};

use reveille_core::model::time::Time;

/// The result of `hot`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HotReport {
    /// When the report was made.
    pub at: Time,
    /// `host:port` of the API server; not there where only a file was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// How long `hot` watched the API server, seconds.
    pub looked_s: u64,
    /// Kinds whose objects were counted.
    pub kinds: u64,
    /// The hot objects, hottest first.
    pub verdicts: Vec<HotVerdict>,
    /// How much memory the API server uses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pressure: Option<PressureReport>,
    /// What `hot` could not find out, and why.
    pub notes: Vec<String>,
}

/// One hot object or kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HotVerdict {
    /// In a `status` or a `why`: `host:port` of Rancher's API server, where the object is there and not in
    /// the roster's own cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_rancher: Option<String>,
    /// Group of the kind; empty for the core group.
    pub group: String,
    /// Plural of the kind.
    pub resource: String,
    /// Its namespace, where it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The object; not there where the evidence does not identify it within its kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// `hot`, or `warm`: above the sustained limit, but not seen for long enough to be sure.
    pub heat: String,
    /// Since when, as far as `hot` watched.
    pub since: Time,
    /// How often, by each kind of evidence, the strongest first.
    pub rates: Vec<HotRate>,
    /// The pattern of the writes, as a name that never changes.
    pub class: String,
    /// What the pattern means.
    pub means: String,
    /// Clients that may be writing. They are suspected, never proved.
    pub suspects: Vec<HotSuspect>,
    /// The fields that change.
    pub fields: Vec<HotField>,
    /// The machine that the object belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine: Option<HotMachine>,
    /// Limits of the evidence.
    pub notes: Vec<String>,
    /// What to do, in order.
    pub first_aid: Vec<String>,
}

/// Writes over a time, from one kind of evidence.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HotRate {
    /// `watch`, `generation`, `lifetime`, `metrics`, `audit-log` or `server-log`.
    pub by: String,
    /// Writes.
    pub writes: u64,
    /// The time in seconds; zero when there is only one moment.
    pub over_s: f64,
    /// Writes per second; not there when there is only one moment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_s: Option<f64>,
}

/// A client that may be the cause.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HotSuspect {
    /// A field manager, or program, user and address.
    pub name: String,
    /// Its writes that were seen.
    pub writes: u64,
    /// The evidence: `managedFields` or `audit-log`.
    pub seen_in: String,
}

/// A field that changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HotField {
    /// The path of the field.
    pub path: String,
    /// How often the field changed while `hot` followed it.
    pub changes: u32,
    /// How often a client wrote a value back that another client had replaced.
    pub returns: u32,
    /// Values, shortened, secrets masked, and the writers of each.
    pub values: Vec<HotValue>,
}

/// A value of a field that changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HotValue {
    /// The value.
    pub value: String,
    /// The clients that wrote it.
    pub by: Vec<String>,
}

/// The machine that an object belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HotMachine {
    /// Rancher's id of its cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<String>,
    /// The cluster's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    /// Its node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// Its addresses.
    pub addresses: Vec<String>,
}

/// How much memory an API server uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PressureReport {
    /// Memory that it holds, bytes.
    pub resident_bytes: u64,
    /// Its growth since the watch began, bytes.
    pub grown_bytes: i64,
    /// Memory that its heap uses, bytes.
    pub heap_bytes: u64,
    /// Requests that it rejected while `hot` watched.
    pub rejected: u64,
    /// Memory is low, or will be soon, or the API server rejects requests.
    pub is_high: bool,
}

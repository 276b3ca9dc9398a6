//! What is written without end, and who may be writing it.

use serde::{Deserialize, Serialize};

use reveille_core::model::time::Time;

/// What `hot` found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HotReport {
    /// When it was made.
    pub at: Time,
    /// `host:port` of the API server that was looked at; nothing where a file was judged alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// How long it was looked at, seconds.
    pub looked_s: u64,
    /// Kinds whose objects were counted.
    pub kinds: u64,
    /// What is hot, hottest first.
    pub verdicts: Vec<HotVerdict>,
    /// How full the API server is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pressure: Option<PressureReport>,
    /// What could not be told, and why.
    pub notes: Vec<String>,
}

/// One thing that is hot.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HotVerdict {
    /// In a roll or a `why`: `host:port` of Rancher's API server, where it is there and not in the roster's own cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_rancher: Option<String>,
    /// Group of the kind; empty for the core group.
    pub group: String,
    /// Plural of the kind.
    pub resource: String,
    /// Its namespace, where it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The object; nothing where the evidence does not tell which one of its kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// `hot`, or `warm`: above what may last, and not seen for long enough to be sure.
    pub heat: String,
    /// Since when, as far as we looked.
    pub since: Time,
    /// How often, by each witness, the most telling first.
    pub rates: Vec<HotRate>,
    /// What it looks like, as a name that stays.
    pub class: String,
    /// What that means.
    pub means: String,
    /// Who may be writing. Suspected, never proved.
    pub suspects: Vec<HotSuspect>,
    /// What changes.
    pub fields: Vec<HotField>,
    /// The machine behind it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine: Option<HotMachine>,
    /// What is to be known of the evidence.
    pub notes: Vec<String>,
    /// What to do, in order.
    pub first_aid: Vec<String>,
}

/// Writes in a time, as one witness tells them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HotRate {
    /// `watch`, `generation`, `lifetime`, `metrics`, `audit-log` or `server-log`.
    pub by: String,
    /// Writes.
    pub writes: u64,
    /// In so many seconds; zero when there is only one moment.
    pub over_s: f64,
    /// Writes in a second; nothing when there is only one moment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_s: Option<f64>,
}

/// Somebody who may be the cause.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HotSuspect {
    /// A field manager, or program, user and address.
    pub name: String,
    /// Writes of it that were seen.
    pub writes: u64,
    /// Where: `managedFields` or `audit-log`.
    pub seen_in: String,
}

/// A field that changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HotField {
    /// Where.
    pub path: String,
    /// How often it changed while it was followed.
    pub changes: u32,
    /// How often a value came back that another had replaced.
    pub returns: u32,
    /// Values, shortened, secrets hidden, and who wrote each.
    pub values: Vec<HotValue>,
}

/// A value of a field that changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HotValue {
    /// The value.
    pub value: String,
    /// Who wrote it.
    pub by: Vec<String>,
}

/// The machine behind an object.
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

/// How full an API server is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PressureReport {
    /// Memory that it holds, bytes.
    pub resident_bytes: u64,
    /// How much more than when the look began, bytes.
    pub grown_bytes: i64,
    /// Memory that its heap uses, bytes.
    pub heap_bytes: u64,
    /// Requests that it turned away while we looked.
    pub rejected: u64,
    /// Memory is short, or will be soon, or requests are turned away.
    pub is_high: bool,
}

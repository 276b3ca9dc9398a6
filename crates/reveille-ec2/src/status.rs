//! Status checks, scheduled events, spot requests and types: what AWS says of the host below an instance.

use serde::Deserialize;

use crate::reply::Set;

/// `DescribeInstanceStatus`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Statuses {
    pub(crate) instance_status_set: Set<WireStatus>,
    pub(crate) next_token: Option<String>,
}

/// One instance's.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WireStatus {
    pub(crate) instance_id: String,
    pub(crate) system_status: Option<Checked>,
    pub(crate) instance_status: Option<Checked>,
    pub(crate) attached_ebs_status: Option<Checked>,
    #[serde(default)]
    pub(crate) events_set: Set<WireEvent>,
}

/// A check's verdict: `ok`, `impaired`, `initializing`, `insufficient-data`, `not-applicable`.
#[derive(Debug, Deserialize)]
pub(crate) struct Checked {
    #[serde(default)]
    pub(crate) status: String,
}

/// A scheduled event.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WireEvent {
    #[serde(default)]
    pub(crate) code: String,
    /// Begins with `[Completed]` or `[Canceled]` once it is over.
    #[serde(default)]
    pub(crate) description: String,
    pub(crate) not_before: Option<String>,
}

/// `DescribeSpotInstanceRequests`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SpotRequests {
    pub(crate) spot_instance_request_set: Set<SpotRequest>,
    pub(crate) next_token: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SpotRequest {
    pub(crate) spot_instance_request_id: String,
    pub(crate) instance_id: Option<String>,
    pub(crate) status: Option<SpotStatus>,
}

/// `fulfilled`, `marked-for-termination`, `instance-terminated-no-capacity`, …
#[derive(Debug, Deserialize)]
pub(crate) struct SpotStatus {
    #[serde(default)]
    pub(crate) code: String,
}

/// `DescribeInstanceTypes`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Kinds {
    pub(crate) instance_type_set: Set<Kind>,
    pub(crate) next_token: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Kind {
    pub(crate) instance_type: String,
    pub(crate) instance_storage_supported: Option<bool>,
}

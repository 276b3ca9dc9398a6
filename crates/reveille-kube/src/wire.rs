//! The fields of the API server's JSON that this crate reads: a few of each object, borrowed or copied once.
//!
//! Lists and watch lines are split into raw objects first, and each object is decoded by itself, so that one object that
//! cannot be decoded spoils none of the others. Fields that are absent and fields that are `null` are the same to the
//! server (Go writes empty lists as `null`), so they are here. Managed fields, images, capacities are skipped unread.
//!
//! The module does not judge: `mapping` decides what the fields mean.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::failure::Failure;

/// A list: its place in history and its items, not decoded yet.
#[derive(Deserialize)]
pub(crate) struct List<'a> {
    #[serde(default)]
    pub(crate) metadata: ListMeta,
    #[serde(borrow, default)]
    pub(crate) items: Option<Vec<&'a RawValue>>,
}

/// A list's metadata.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct ListMeta {
    pub(crate) resource_version: Option<String>,
    #[serde(rename = "continue")]
    pub(crate) next: Option<String>,
    pub(crate) remaining_item_count: Option<u64>,
    /// When the server answered, on its own clock, as its answer's head says.
    #[serde(skip)]
    pub(crate) date: Option<String>,
}

/// One line of a watch: the object not decoded yet.
#[derive(Deserialize)]
pub(crate) struct Line<'a> {
    #[serde(rename = "type", borrow)]
    pub(crate) kind: Cow<'a, str>,
    #[serde(borrow)]
    pub(crate) object: &'a RawValue,
}

/// The metadata of any object.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Meta {
    pub(crate) name: Option<String>,
    pub(crate) uid: Option<String>,
    pub(crate) resource_version: Option<String>,
    pub(crate) creation_timestamp: Option<String>,
    pub(crate) deletion_timestamp: Option<String>,
    pub(crate) labels: Option<BTreeMap<String, String>>,
    pub(crate) annotations: Option<BTreeMap<String, String>>,
}

/// Any object, for its metadata.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Headed {
    pub(crate) metadata: Meta,
}

/// A Node.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct NodeDoc {
    pub(crate) metadata: Meta,
    pub(crate) spec: Option<NodeSpec>,
    pub(crate) status: Option<NodeStatus>,
}

/// A Node's `spec`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct NodeSpec {
    #[serde(rename = "providerID")]
    pub(crate) provider_id: Option<String>,
    #[serde(rename = "podCIDR")]
    pub(crate) pod_cidr: Option<String>,
    #[serde(rename = "podCIDRs")]
    pub(crate) pod_cidrs: Option<Vec<String>>,
    pub(crate) taints: Option<Vec<Taint>>,
    pub(crate) unschedulable: Option<bool>,
}

/// A taint's key; its effect changes nothing for us.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Taint {
    pub(crate) key: String,
}

/// A Node's `status`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct NodeStatus {
    pub(crate) conditions: Option<Vec<ConditionDoc>>,
    pub(crate) addresses: Option<Vec<Address>>,
    pub(crate) node_info: Option<NodeInfo>,
}

/// A condition.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ConditionDoc {
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) status: String,
    pub(crate) reason: Option<String>,
    pub(crate) message: Option<String>,
}

/// An address.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Address {
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) address: String,
}

/// What the kubelet says of its machine.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct NodeInfo {
    #[serde(rename = "systemUUID")]
    pub(crate) system_uuid: Option<String>,
    #[serde(rename = "bootID")]
    pub(crate) boot_id: Option<String>,
    #[serde(rename = "kubeletVersion")]
    pub(crate) kubelet_version: Option<String>,
}

/// A lease, borrowed: ten thousand of them are read every ten seconds.
#[derive(Deserialize)]
pub(crate) struct LeaseDoc<'a> {
    #[serde(borrow)]
    pub(crate) metadata: LeaseMeta<'a>,
    #[serde(borrow, default)]
    pub(crate) spec: Option<LeaseSpec<'a>>,
}

/// A lease's metadata.
#[derive(Deserialize)]
pub(crate) struct LeaseMeta<'a> {
    #[serde(borrow)]
    pub(crate) name: Cow<'a, str>,
}

/// A lease's `spec`.
#[derive(Deserialize)]
pub(crate) struct LeaseSpec<'a> {
    #[serde(rename = "renewTime", borrow, default)]
    pub(crate) renewed: Option<&'a str>,
}

/// An Event.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct EventDoc {
    pub(crate) metadata: Meta,
    pub(crate) involved_object: Involved,
    pub(crate) reason: Option<String>,
    pub(crate) message: Option<String>,
    pub(crate) source: Option<EventSource>,
    pub(crate) reporting_component: Option<String>,
    pub(crate) first_timestamp: Option<String>,
    pub(crate) last_timestamp: Option<String>,
    pub(crate) event_time: Option<String>,
    pub(crate) series: Option<EventSeries>,
}

/// What an event is about.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Involved {
    pub(crate) name: Option<String>,
    pub(crate) uid: Option<String>,
}

/// Who wrote an event, in the older of two fields.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct EventSource {
    pub(crate) component: Option<String>,
}

/// When an event happened last, for those that repeat.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct EventSeries {
    pub(crate) last_observed_time: Option<String>,
}

/// A CertificateSigningRequest.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct RequestDoc {
    pub(crate) metadata: RequestMeta,
    pub(crate) spec: RequestSpec,
    pub(crate) status: Option<RequestStatus>,
}

/// Its metadata.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct RequestMeta {
    pub(crate) name: Option<String>,
    pub(crate) creation_timestamp: Option<String>,
}

/// Its `spec`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct RequestSpec {
    pub(crate) request: String,
    pub(crate) signer_name: String,
    pub(crate) username: String,
}

/// Its `status`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct RequestStatus {
    pub(crate) conditions: Option<Vec<ConditionDoc>>,
    pub(crate) certificate: Option<String>,
}

/// A refusal, as the API server writes it (`kind: Status`).
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Refusal {
    kind: Option<String>,
    pub(crate) code: Option<u16>,
    reason: Option<String>,
    message: Option<String>,
    details: Option<RefusalDetails>,
    #[serde(skip)]
    raw: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct RefusalDetails {
    name: Option<String>,
    retry_after_seconds: Option<u64>,
}

impl Refusal {
    /// Reads a body; one that is no `Status` (a proxy's page) is kept as its first words.
    pub(crate) fn read(body: &[u8]) -> Self {
        match serde_json::from_slice::<Self>(body) {
            Ok(refusal) if refusal.kind.as_deref() == Some("Status") => refusal,
            _ => Self { raw: String::from_utf8_lossy(body).into_owned(), ..Self::default() },
        }
    }

    /// As a failure of a request about the object of this name.
    pub(crate) fn into_failure(self, code: u16, asked: Option<Duration>, about: Option<&str>) -> Failure {
        let details = self.details.unwrap_or_default();
        let missing = code == 404
            && self.reason.as_deref() == Some("NotFound")
            && about.is_some_and(|name| details.name.as_deref() == Some(name));
        let asked = asked.or(details.retry_after_seconds.filter(|s| *s > 0).map(Duration::from_secs));
        let words = self.message.or(self.reason).unwrap_or(self.raw);
        Failure::of_status(code, &words, asked, missing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_api_server_404_for_the_object_means_it_is_missing() {
        let about_a = br#"{"kind":"Status","reason":"NotFound","message":"nodes \"a\" not found","details":{"name":"a","kind":"nodes"},"code":404}"#;
        let path = br#"{"kind":"Status","reason":"NotFound","message":"the server could not find the requested resource","details":{},"code":404}"#;
        let page = b"<html>404 page not found</html>";
        let missing = |body: &[u8], about| Refusal::read(body).into_failure(404, None, about).is_missing();
        assert!(missing(about_a, Some("a")));
        assert!(!missing(about_a, Some("b")));
        assert!(!missing(about_a, None));
        assert!(!missing(path, Some("a")));
        assert!(!missing(page, Some("a")));
    }

    #[test]
    fn the_wait_that_a_server_asks_for_is_found_in_header_or_body() {
        let body = br#"{"kind":"Status","code":429,"message":"slow down","details":{"retryAfterSeconds":7}}"#;
        let failure = Refusal::read(body).into_failure(429, None, None);
        assert_eq!(failure.retry_after, Some(Duration::from_secs(7)));
        let failure = Refusal::read(body).into_failure(429, Some(Duration::from_secs(3)), None);
        assert_eq!(failure.retry_after, Some(Duration::from_secs(3)));
        assert_eq!(failure.cause, "429 Too Many Requests: slow down");
    }
}

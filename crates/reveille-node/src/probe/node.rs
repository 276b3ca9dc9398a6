//! The machine's Node, and its requests for certificates, as the API server tells them.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reveille_agent::checkup::facts::{Condition, Node, Request, RequestState};
use reveille_core::model::signs;
use serde::Deserialize;
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::prelude::FromDer as _;

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

/// The requests for a certificate of this Node, oldest first.
pub(super) fn requests(body: &[u8], node: &str) -> Result<Vec<Request>, serde_json::Error> {
    let list: RequestList = serde_json::from_slice(body)?;
    let wanted = format!("system:node:{node}");
    let mut own: Vec<RequestObject> = list
        .items
        .into_iter()
        .filter(|one| common_name(&one.spec.request).as_deref() == Some(&*wanted))
        .collect();
    own.sort_by(|one, other| one.metadata.creation_timestamp.cmp(&other.metadata.creation_timestamp));
    Ok(own.into_iter().map(request).collect())
}

fn request(read: RequestObject) -> Request {
    let has = |kind: &str| read.status.conditions.iter().any(|one| one.kind == kind);
    let state = match read.status.certificate {
        _ if has("Denied") || has("Failed") => RequestState::Refused,
        Some(_) => RequestState::Issued,
        None if has("Approved") => RequestState::Approved,
        None => RequestState::Pending,
    };
    Request { name: read.metadata.name, signer: read.spec.signer_name, state }
}

/// For whom a certificate is asked: the request is base64 of PEM of DER.
fn common_name(request: &str) -> Option<String> {
    let pem = STANDARD.decode(request).ok()?;
    let (_, pem) = x509_parser::pem::parse_x509_pem(&pem).ok()?;
    let (_, request) = X509CertificationRequest::from_der(&pem.contents).ok()?;
    let name = request.certification_request_info.subject.iter_common_name().next()?;
    name.as_str().ok().map(str::to_owned)
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
    creation_timestamp: Option<String>,
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

#[derive(Default, Deserialize)]
#[serde(default)]
struct RequestList {
    items: Vec<RequestObject>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RequestObject {
    metadata: Metadata,
    spec: RequestSpec,
    status: RequestStatus,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct RequestSpec {
    request: String,
    signer_name: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RequestStatus {
    certificate: Option<String>,
    conditions: Vec<ConditionObject>,
}

//! The CertificateSigningRequests of a kubelet for its Node, as the API server returns them: parsed, and in words.
//!
//! A bootstrap token may list them. So a machine can see by itself that it waits for an approver and not for the network.
//! This module approves nothing.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reveille_agent::checkup::facts::{Request, RequestState};
use serde::Deserialize;
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::prelude::FromDer as _;

/// The path of the list: only requests of kubelets, and at most one page.
pub(crate) const PATH: &str = concat!(
    "/apis/certificates.k8s.io/v1/certificatesigningrequests?limit=500",
    "&fieldSelector=spec.signerName%3Dkubernetes.io%2Fkube-apiserver-client-kubelet"
);

/// The requests for a certificate of this Node, oldest first.
pub(crate) fn read(body: &[u8], node: &str) -> Result<Vec<Request>, serde_json::Error> {
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

/// What the kubelet waits for, by the newest request; none when it has its certificate.
pub(crate) fn awaited(requests: &[Request]) -> Option<String> {
    let Some(newest) = requests.last() else {
        return Some("its kubelet has asked for no certificate yet".to_owned());
    };
    let name = &newest.name;
    match newest.state {
        RequestState::Issued => None,
        RequestState::Pending => Some(format!(
            "its kubelet's request {name} waits for approval: kubectl certificate approve {name}"
        )),
        RequestState::Approved => {
            Some(format!("its kubelet's request {name} is approved and not signed yet"))
        }
        RequestState::Refused => Some(format!(
            "its kubelet's request {name} was denied: kubectl get csr {name} -o yaml says by whom"
        )),
    }
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

/// The subject of a request: the field is base64 of PEM of DER.
fn common_name(request: &str) -> Option<String> {
    let pem = STANDARD.decode(request).ok()?;
    let (_, pem) = x509_parser::pem::parse_x509_pem(&pem).ok()?;
    let (_, request) = X509CertificationRequest::from_der(&pem.contents).ok()?;
    let name = request.certification_request_info.subject.iter_common_name().next()?;
    name.as_str().ok().map(str::to_owned)
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Metadata {
    name: String,
    creation_timestamp: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Condition {
    #[serde(rename = "type")]
    kind: String,
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
    conditions: Vec<Condition>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, DnType, KeyPair};
    use serde_json::{Value, json};

    fn object(name: &str, at: &str, node: &str, status: Value) -> Value {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, format!("system:node:{node}"));
        let pem = params.serialize_request(&KeyPair::generate().unwrap()).unwrap().pem().unwrap();
        json!({
            "metadata": { "name": name, "creationTimestamp": at },
            "spec": { "request": STANDARD.encode(pem), "signerName": "kubernetes.io/kube-apiserver-client-kubelet" },
            "status": status,
        })
    }

    fn told(items: &[Value]) -> Option<String> {
        awaited(&read(json!({ "items": items }).to_string().as_bytes(), "w-1").unwrap())
    }

    #[test]
    fn a_kubelet_waits_for_what_became_of_its_own_newest_request() {
        let of = |at: &str, name: &str, status| object(name, at, "w-1", status);
        let (early, late) = ("2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z");
        let issued =
            of(early, "csr-1", json!({ "certificate": "x", "conditions": [{ "type": "Approved" }] }));
        let pending = of(late, "csr-2", json!({}));
        let others = object("csr-3", late, "w-2", json!({ "conditions": [{ "type": "Denied" }] }));
        for (items, wanted) in [
            (vec![], Some("asked for no certificate yet")),
            (vec![others.clone()], Some("asked for no certificate yet")),
            (vec![issued.clone()], None),
            (vec![pending, others, issued], Some("kubectl certificate approve csr-2")),
            (
                vec![of(late, "csr-2", json!({ "conditions": [{ "type": "Approved" }] }))],
                Some("not signed yet"),
            ),
            (vec![of(late, "csr-2", json!({ "conditions": [{ "type": "Denied" }] }))], Some("was denied")),
        ] {
            let told = told(&items);
            assert_eq!(told.is_some(), wanted.is_some(), "{told:?}");
            assert!(told.unwrap_or_default().contains(wanted.unwrap_or_default()), "{wanted:?}");
        }
    }
}

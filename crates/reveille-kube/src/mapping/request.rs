//! One CertificateSigningRequest: which node it is for, its purpose, and its state.
//!
//! A request belongs to the node that its subject names. Where the subject cannot be read, it belongs to the node that made it. A
//! kubelet that bootstraps authenticates with its token, and only the subject says which machine that is.
//!
//! A subject is whatever the client wrote that made the request. One whose name tells that it is no kubelet of that machine
//! counts for nothing: eight requests of another Node in a machine's name would push the machine's own out of those that are
//! looked at.

use std::sync::Arc;

use reveille_core::model::id::NodeName;
use reveille_core::model::log_evidence::{CertificateRequest, RequestState};
use serde_json::value::RawValue;

use super::subject::common_name;
use super::{NAME_MAX_BYTES, within};
use crate::failure::cut;
use crate::intern::Interner;
use crate::wire::{RequestDoc, RequestStatus};

/// Whom the API server takes a kubelet for.
const NODE: &str = "system:node:";
/// Whom it takes a pod for.
const ACCOUNT: &str = "system:serviceaccount:";
/// The one service account that machines bootstrap with: OpenShift's machines have its token in place of a bootstrap token.
const BOOTSTRAPPER: &str = "system:serviceaccount:openshift-machine-config-operator:node-bootstrapper";

/// Reads one. `None` when it cannot be decoded or is no node's; requests are hints, so nothing is lost with one.
pub(crate) fn request(raw: &RawValue, interner: &Interner) -> Option<(NodeName, CertificateRequest)> {
    let doc: RequestDoc = serde_json::from_str(raw.get()).ok()?;
    let spec = doc.spec;
    let subject = common_name(&spec.request).filter(|name| name.starts_with(NODE));
    let asks_for = subject.as_deref().unwrap_or(&spec.username);
    let node = asks_for.strip_prefix(NODE).filter(|name| !name.is_empty())?;
    if !may_ask(&spec.username, asks_for) {
        return None;
    }
    let node = within(node, NAME_MAX_BYTES);
    let status = doc.status.unwrap_or_default();
    let (state, message) = decided(&status);
    let request = CertificateRequest {
        name: doc.metadata.name.filter(|name| !name.is_empty())?.into(),
        signer: interner.share(within(&spec.signer_name, NAME_MAX_BYTES)),
        requester: interner.share(within(&spec.username, NAME_MAX_BYTES)),
        state,
        message: Arc::from(cut(message)),
        stamped: doc.metadata.creation_timestamp.unwrap_or_default().into(),
    };
    Some((NodeName::from(node), request))
}

/// A Node asks for itself alone, and no approver of Kubernetes lets it ask for another. A pod asks for no machine.
fn may_ask(requester: &str, asks_for: &str) -> bool {
    let is_another_node = requester.starts_with(NODE) && requester != asks_for;
    let is_a_pod = requester.starts_with(ACCOUNT) && requester != BOOTSTRAPPER;
    !is_another_node && !is_a_pod
}

fn decided(status: &RequestStatus) -> (RequestState, &str) {
    let conditions = status.conditions.as_deref().unwrap_or_default();
    let of = |kind: &str| conditions.iter().find(|condition| condition.kind == kind);
    let message = |kind: &str| of(kind).and_then(|it| it.message.as_deref()).unwrap_or_default();
    let signed = status.certificate.as_deref().is_some_and(|certificate| !certificate.is_empty());
    match () {
        () if of("Denied").is_some() => (RequestState::Denied, message("Denied")),
        () if of("Failed").is_some() => (RequestState::Failed, message("Failed")),
        () if signed => (RequestState::Issued, ""),
        () if of("Approved").is_some() => (RequestState::Approved, ""),
        () => (RequestState::Pending, ""),
    }
}

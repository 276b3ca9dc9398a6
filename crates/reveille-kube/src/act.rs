//! The one change that this adapter can make: it deletes a Node object that no machine stands behind.
//!
//! A [`Call`] goes in, its outcome comes out. The adapter reads the node from the store first: a watch may lag by minutes, and a
//! kubelet of another machine may have taken the object over, UID and all (kubernetes, pkg/kubelet/kubelet_node_status.go,
//! tryRegisterWithAPIServer). The Node then has another boot id, and the adapter leaves it alone: a kubelet does not make its
//! Node again before it is restarted.
//!
//! The delete request carries the UID that the decision was made for, so the API server refuses it when another object has the
//! name. The adapter reports "I do not know" whenever the request may have arrived and its answer did not. The caller checks the
//! fencing number, that is, whether this process may call at all.

use std::sync::Arc;
use std::time::Duration;

use http::header::HeaderMap;
use reveille_core::effect::{Call, Outcome};
use reveille_core::model::id::{NodeName, NodeUid, RequestId};
use reveille_core::remedies::DeleteNode;

use crate::failure::{Failure, Reached};
use crate::paths;
use crate::query;
use crate::session::Question;
use crate::shared::Shared;

const DELETE_WITHIN: Duration = Duration::from_secs(30);

/// Under which name the server's audit log holds the request.
const AUDIT_ID: &str = "audit-id";

/// Carries out one call.
pub(crate) async fn perform(cluster: &Shared, call: &Call) -> Outcome {
    match call {
        Call::DeleteNode(DeleteNode { name, uid, boot_id }) => {
            delete_node(cluster, name, uid, boot_id.as_ref()).await
        }
        other => refused(format!("cluster: cannot {other}: that is a cloud's business")),
    }
}

async fn delete_node(
    cluster: &Shared,
    name: &NodeName,
    uid: &NodeUid,
    boot_id: Option<&Arc<str>>,
) -> Outcome {
    if !paths::is_safe(name) {
        return refused(format!("cluster: {:?} cannot be the name of a node", name.as_str()));
    }
    if uid.as_str().is_empty() {
        return refused(format!(
            "cluster: node {name} is not deleted without its uid: it might be another by now"
        ));
    }
    if let Some(decided) = boot_id {
        match query::node(cluster, name).await {
            Ok(Some(node)) if node.uid == *uid && node.boot_id.as_ref() != Some(decided) => {
                return taken_over(name);
            }
            // Another object of the name, or none: the API server says so of this very uid.
            Ok(_) => {}
            Err(failure) => return unread(name, &failure),
        }
    }
    let ask = match paths::delete_node(name, uid) {
        Ok(ask) => ask,
        Err(error) => return refused(format!("cluster: cannot delete node {name}: {error}")),
    };
    let question = Question { ask, within: DELETE_WITHIN, about: Some(name.as_str().to_owned()) };
    let mut body = Vec::new();
    match cluster.session.read(question, &mut body).await {
        Ok(headers) => Outcome::Accepted { request: request_id(&headers) },
        Err(failure) => outcome(name, &failure),
    }
}

/// Another machine, or another boot of this one, runs as it by now: nothing is sent.
fn taken_over(name: &NodeName) -> Outcome {
    let text = format!("cluster: node {name} is not deleted: another machine, or boot, runs as it by now");
    Outcome::NotSent { text: Arc::from(text), retry_after: None }
}

/// What has to be known before could not be read: nothing is sent.
fn unread(name: &NodeName, failure: &Failure) -> Outcome {
    let text: Arc<str> =
        Arc::from(format!("cluster: node {name} is not deleted, since it cannot be read: {}", failure.cause));
    match failure.reached {
        Reached::Answered { code: 401 | 403, .. } => Outcome::Denied { text },
        _ => Outcome::Failed { text, retry_after: failure.retry_after.map(Into::into) },
    }
}

fn request_id(headers: &HeaderMap) -> Option<RequestId> {
    headers.get(AUDIT_ID)?.to_str().ok().map(RequestId::from)
}

fn outcome(name: &NodeName, failure: &Failure) -> Outcome {
    let text: Arc<str> = Arc::from(format!("cluster: cannot delete node {name}: {}", failure.cause));
    let later = |text| Outcome::Failed { text, retry_after: failure.retry_after.map(Into::into) };
    match failure.reached {
        Reached::NotSent => later(text),
        Reached::Unanswered | Reached::TooLong => Outcome::Unknown { text },
        Reached::Answered { missing: true, .. } => Outcome::AlreadySo { text },
        Reached::Answered { code, .. } => match code {
            // The answer came and broke off, or makes no sense: what was done is done.
            200..=299 => Outcome::Unknown { text },
            409 | 412 => Outcome::Moved { text },
            // Another credential, or a role binding, changes that.
            401 | 403 => Outcome::Denied { text },
            408 | 429 | 503 => later(text),
            // The server gave up on it, or something between us and it did: it may have happened.
            500..=599 => Outcome::Unknown { text },
            _ => Outcome::Refused { text },
        },
    }
}

fn refused(text: String) -> Outcome {
    Outcome::Refused { text: Arc::from(text) }
}

#[cfg(test)]
mod tests {
    use reveille_core::effect::ReadErrorKind;

    use super::*;

    #[test]
    fn what_may_have_happened_is_unknown_and_what_did_not_is_not() {
        let answered = |code| outcome(&NodeName::from("a"), &Failure::of_status(code, "", None, false));
        let word = |outcome: &Outcome| {
            format!("{outcome:?}").split([' ', '{']).next().unwrap_or_default().to_owned()
        };
        let table = [
            (400, "Refused"),
            (401, "Denied"),
            (403, "Denied"),
            (404, "Refused"),
            (405, "Refused"),
            (408, "Failed"),
            (409, "Moved"),
            (412, "Moved"),
            (422, "Refused"),
            (429, "Failed"),
            (500, "Unknown"),
            (502, "Unknown"),
            (503, "Failed"),
            (504, "Unknown"),
        ];
        for (code, wanted) in table {
            assert_eq!(word(&answered(code)), wanted, "{code}");
        }
        let lost =
            |reached| outcome(&NodeName::from("a"), &Failure::new(ReadErrorKind::Unavailable, reached, "x"));
        assert_eq!(word(&lost(Reached::NotSent)), "Failed");
        assert_eq!(word(&lost(Reached::Unanswered)), "Unknown");
        assert_eq!(word(&lost(Reached::Answered { code: 404, missing: true })), "AlreadySo");
    }
}

//! Which cluster the API server is of: the UID of the namespace `kube-system`.
//!
//! Kubernetes has no identity of a cluster of its own. This namespace is made with the cluster and lives as long, so its UID
//! stands for the cluster; OpenTelemetry defines `k8s.cluster.uid` by it. It is read before each complete list of nodes,
//! because a list says nothing of which cluster it is of.
//!
//! Where the controller may not read the namespace, it reports that, and lists as before. Any other failure counts as a failure
//! of the list, and both are tried again together.

use reveille_core::effect::{ReadError, ReadErrorKind};
use reveille_core::event::ClusterFact;
use reveille_core::model::id::ClusterUid;

use crate::failure::{Failure, Reached};
use crate::page::PAGE_WITHIN;
use crate::paths;
use crate::session::Question;
use crate::shared::Shared;
use crate::wire::Headed;

/// Longest UID that is taken: room for another kind than Kubernetes makes today.
const UID_MAX_BYTES: usize = 128;

/// Reads it, or why it cannot be known.
pub(crate) async fn read(cluster: &Shared) -> Result<ClusterFact, Failure> {
    let ask = paths::namespace(paths::KUBE_SYSTEM).map_err(|error| Failure::unsendable(&error))?;
    let about = Some(paths::KUBE_SYSTEM.to_owned());
    let mut body = Vec::new();
    match cluster.session.read(Question { ask, within: PAGE_WITHIN, about }, &mut body).await {
        Ok(_) => {}
        Err(failure) if may_not(&failure) => return Ok(ClusterFact::IdentityUnread(unread(&failure))),
        Err(failure) => return Err(failure),
    }
    let read: Headed =
        serde_json::from_slice(&body).map_err(|error| Failure::unread("namespace kube-system", &error))?;
    let uid = read.metadata.uid.filter(|uid| is_plain(uid));
    let uid =
        uid.ok_or_else(|| Failure::malformed("namespace kube-system has no UID that is a plain word"))?;
    Ok(ClusterFact::Identity(ClusterUid::from(uid.as_str())))
}

/// The API server makes a UUID of 36 bytes. The UID goes into the ledger, into logs, and into a command that a person is asked to
/// copy (`--confirm-cluster`), so that of a server in the cluster's place nothing else may come through.
fn is_plain(uid: &str) -> bool {
    (1..=UID_MAX_BYTES).contains(&uid.len())
        && uid.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

/// It is not allowed, or there is nothing at this path, as behind a proxy that lets only some paths through.
fn may_not(failure: &Failure) -> bool {
    let nothing_there = matches!(failure.reached, Reached::Answered { code: 404, .. });
    nothing_there || failure.kind == ReadErrorKind::Forbidden
}

fn unread(failure: &Failure) -> ReadError {
    let text = format!(
        "cluster: cannot read namespace kube-system: {}. Another cluster behind the kubeconfig would not be noticed; \
         reveille rbac prints the right that is missing",
        failure.cause
    );
    ReadError { kind: failure.kind, text: text.into(), retry_after: None }
}

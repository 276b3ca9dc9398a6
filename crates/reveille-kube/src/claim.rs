//! The Lease by which controllers of one roster find each other.
//!
//! ```text
//!  read_claim ─▶ Claim { holder, version } │ none          write_claim(over that version) ─▶ ours │ Moved: another was first
//! ```
//!
//! One Lease for each roster, in kube-system. It is written with the version that it was read at, or created, so of two
//! writers one succeeds. The time in it is for people: whether a holder lives, the caller tells by whether the version
//! changes while it looks, on its own clock. Not here: who may act, and when a claim counts as left behind.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;
use thiserror::Error;

use crate::cluster::Cluster;
use crate::failure::{Failure, Reached};
use crate::paths;
use crate::session::Question;

const WITHIN: Duration = Duration::from_secs(10);
/// The annotation that names who let the Lease go.
const LET_GO_BY: &str = "reveille.dev/let-go-by";
/// A holder is told with so much of its name. A controller's own is far shorter, and so is every version.
const HOLDER_MAX_BYTES: usize = 512;

/// What a roster's Lease says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Who holds it, in that controller's words; none when it was let go.
    pub holder: Option<String>,
    /// Who held it last, where it was let go.
    pub let_go_by: Option<String>,
    /// Changes with every renewal.
    pub version: String,
}

/// What is written into a roster's Lease.
#[derive(Clone, Copy, Debug)]
pub struct Renewal<'r> {
    /// Who holds it from now on; empty to let it go.
    pub holder: &'r str,
    /// Who held it last, where it is let go.
    pub let_go_by: Option<&'r str>,
    /// For people: when, RFC 3339 with microseconds.
    pub at: &'r str,
    /// For people: how long it holds without a renewal, seconds.
    pub lasts_s: u32,
}

/// Why a Lease was not read or written.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ClaimError {
    /// The cluster does not let us: no right to it, or no such API.
    #[error("{0}")]
    Denied(String),
    /// Another controller wrote it first.
    #[error("another controller wrote the Lease first")]
    Moved,
    /// No answer that counts.
    #[error("{0}")]
    Failed(String),
}

#[derive(Deserialize)]
struct Doc {
    metadata: DocMeta,
    spec: Option<DocSpec>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DocMeta {
    resource_version: String,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DocSpec {
    holder_identity: Option<String>,
}

/// Each client that may write the Lease writes these texts, and they are told in pauses and in the log.
fn cut(holder: &str) -> &str {
    holder.get(..holder.floor_char_boundary(HOLDER_MAX_BYTES)).unwrap_or_default()
}

/// Name of a roster's Lease.
pub fn claim_name(roster: &str) -> String {
    format!("reveille-{roster}")
}

impl Cluster {
    /// Reads a roster's Lease; none where there is none.
    ///
    /// # Errors
    /// Why it is not known.
    pub async fn read_claim(&self, roster: &str) -> Result<Option<Claim>, ClaimError> {
        let name = claim_name(roster);
        let ask = paths::claim(&name).map_err(|error| ClaimError::Failed(error.to_string()))?;
        let question = Question { ask, within: WITHIN, about: Some(name) };
        let mut body = Vec::new();
        match self.inner().session.read(question, &mut body).await {
            Ok(_) => {}
            Err(Failure { reached: Reached::Answered { missing: true, .. }, .. }) => return Ok(None),
            Err(failure) => return Err(denied_or_failed(failure)),
        }
        let mut doc: Doc = serde_json::from_slice(&body)
            .map_err(|error| ClaimError::Failed(Failure::unread("the Lease", &error).cause))?;
        if doc.metadata.resource_version.len() > HOLDER_MAX_BYTES {
            return Err(ClaimError::Failed("the Lease has a resourceVersion that is too long".into()));
        }
        let holder = doc.spec.and_then(|spec| spec.holder_identity).filter(|holder| !holder.is_empty());
        let holder = holder.map(|holder| cut(&holder).to_owned());
        let let_go_by = doc.metadata.annotations.remove(LET_GO_BY).filter(|_| holder.is_none());
        let let_go_by = let_go_by.map(|holder| cut(&holder).to_owned());
        Ok(Some(Claim { holder, let_go_by, version: doc.metadata.resource_version }))
    }

    /// Writes a roster's Lease over what was read, or creates it where there was none.
    ///
    /// # Errors
    /// `Moved` when it is not as it was read any more; otherwise why it is not known to be written.
    pub async fn write_claim(
        &self,
        roster: &str,
        over: Option<&Claim>,
        renewal: Renewal<'_>,
    ) -> Result<(), ClaimError> {
        let name = claim_name(roster);
        let mut lease = serde_json::json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": name, "namespace": "kube-system"},
            "spec": {
                "holderIdentity": renewal.holder,
                "leaseDurationSeconds": renewal.lasts_s,
                "renewTime": renewal.at,
            },
        });
        if let Some(by) = renewal.let_go_by {
            lease["metadata"]["annotations"] = serde_json::json!({ LET_GO_BY: by });
        }
        let ask = match over {
            Some(claim) => {
                lease["metadata"]["resourceVersion"] = claim.version.clone().into();
                paths::replace_claim(&name, lease.to_string().into_bytes())
            }
            None => paths::create_claim(lease.to_string().into_bytes()),
        };
        let ask = ask.map_err(|error| ClaimError::Failed(error.to_string()))?;
        let question = Question { ask, within: WITHIN, about: None };
        match self.inner().session.read(question, &mut Vec::new()).await {
            Ok(_) => Ok(()),
            Err(Failure { reached: Reached::Answered { code: 409, .. }, .. }) => Err(ClaimError::Moved),
            Err(failure) => Err(denied_or_failed(failure)),
        }
    }
}

fn denied_or_failed(failure: Failure) -> ClaimError {
    match failure.reached {
        Reached::Answered { code: 403..=405, .. } => ClaimError::Denied(failure.cause),
        _ => ClaimError::Failed(failure.cause),
    }
}

//! Volumes that are where a machine is: data that a drain leaves behind, and that cleaning the machine loses.
//!
//! ```text
//!  persistent volumes ─▶ claimed, and their node affinity names this Node ─▶ namespace/claim (volume)
//! ```
//!
//! Local disks, paths of the host and drivers that keep data on a Node all say so by the node affinity of their volumes.
//! Which pod uses the claim is beside the point: data of a pod that is scaled to nothing is data.

use serde::Deserialize;
use serde_json::Value;

use crate::ask::{ApiClient, Ask};
use crate::doc::Meta;
use crate::reading;

#[derive(Default, Deserialize)]
#[serde(default)]
struct VolumeDoc {
    metadata: Meta,
    spec: VolumeSpec,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct VolumeSpec {
    claim_ref: Option<ClaimRef>,
    node_affinity: Value,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ClaimRef {
    namespace: String,
    name: String,
}

impl VolumeDoc {
    /// Its claim, where the volume is claimed and names this Node as a place where it can be. Whichever driver provides it, a
    /// volume that can be anywhere names a zone or nothing.
    fn claim_on(self, node: &str) -> Option<String> {
        let terms = self.spec.node_affinity["required"]["nodeSelectorTerms"].as_array()?.clone();
        let of = |term: &Value, list: &str| term[list].as_array().cloned().unwrap_or_default();
        let asked =
            terms.iter().flat_map(|term| [of(term, "matchExpressions"), of(term, "matchFields")].concat());
        let is_here = asked.filter(|asked| asked["operator"] == "In").any(|asked| {
            asked["values"].as_array().is_some_and(|values| values.iter().any(|value| value == node))
        });
        let claim = self.spec.claim_ref.filter(|_| is_here)?;
        Some(format!("{}/{} ({})", claim.namespace, claim.name, self.metadata.name))
    }
}

/// Claims of volumes that can be on this Node alone, with the volumes' names; `None` when they cannot all be read.
pub(super) async fn on(downstream: &impl ApiClient, node: &str) -> Option<Vec<String>> {
    let decode = |text: &str| serde_json::from_str(text).map(|doc: VolumeDoc| doc.claim_on(node));
    let listed = reading::list(downstream, &Ask::Volumes, decode).await.ok()?;
    listed.garbled.is_empty().then_some(listed.items)
}

//! Reads what people and programs want with a Node, as far as they write it on the Node: annotations and taints.
//!
//! ```text
//!  annotations, taints ─▶ read ─▶ NodeIntent: leaving, paused, asks
//! ```
//!
//! The functions are pure, so that every holder of a Node (the cluster's adapter, a simulated cluster) reads the same. The
//! table of signs is closed, and each sign has its source. A sign of leaving stands here only when it means that a client
//! is *about to remove the Node, or works on it*. The controller does not expect a machine back that goes with such a sign
//! on its Node, so a sign too many hides a fault. Left out on purpose:
//!
//! * `DeletionCandidateOfClusterAutoscaler`: a candidate, and most candidates stay.
//! * `node.cloudprovider.kubernetes.io/shutdown`: a state that the cloud controller saw, not a client's request.
//! * `node.cluster.x-k8s.io/outdated-revision`: a rollout will come by some day; until then the node shall work.
//! * `weave.works/kured-reboot-in-progress`: the machine comes back, and a node that a cloud controller deletes while it
//!   reboots is the very fault that we look for.
//! * A plain cordon (`node.kubernetes.io/unschedulable`): says "no new pods", nothing else. It says more once the Node is
//!   gone: see [`removal`].

use std::collections::BTreeMap;
use std::sync::Arc;

use super::node::{Asks, NodeIntent};

/// A person asks to leave the machine alone: the literal `true`, and nothing else.
pub const PAUSE: &str = "reveille.dev/pause";
/// A person asks for a repair now. Any value but an empty one and `false`; each value counts once.
pub const REPAIR_NOW: &str = "reveille.dev/repair-now";
/// A person confirms that the incident of this number is over: `inc-7`.
pub const CONFIRM: &str = "reveille.dev/confirm";
/// A person wants to look at the machine before it is deleted: the literal `true`; the literal `false` lets it go.
pub const KEEP: &str = "reveille.dev/keep";

/// Of a longer value only this much is kept: it is recorded, and a ledger bounds its lines.
const VALUE_BYTES_MAX: usize = 128;

/// The taint by which a person says that a machine is off, and takes back by hand.
pub const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";

/// Taints that say that the node is being taken away.
pub const LEAVING_TAINTS: &[&str] = &[
    // Cluster Autoscaler marks the node before it drains and deletes it (cluster-autoscaler/utils/taints/taints.go).
    "ToBeDeletedByClusterAutoscaler",
    // Karpenter v1, before it drains the node (pkg/apis/v1/taints.go).
    "karpenter.sh/disrupted",
    // The same of Karpenter's v1beta1.
    "karpenter.sh/disruption",
    // Node Maintenance Operator drains the node for a person (medik8s, controllers/taint.go).
    "medik8s.io/drain",
    // AWS Node Termination Handler: the scaling group ends the instance; the spot market takes it (pkg/node/node.go).
    "aws-node-termination-handler/asg-lifecycle-termination",
    "aws-node-termination-handler/spot-itn",
    // A person says that the machine is off, so that its pods are deleted by force and its volumes detached at once: it must not
    // start until that person takes the taint off (Kubernetes, "Non-graceful node shutdown").
    OUT_OF_SERVICE,
    // A remediator of medik8s works on the machine: self node remediation puts it on before it reboots it (controllers).
    "medik8s.io/remediation",
    // The same of its fence agents, under the key of now and the one before (fence-agents-remediation, api/v1alpha1,
    // `FARNoExecuteTaintKey`): they power a machine off or cycle it by IPMI, of which no cloud tells.
    "remediation.medik8s.io/fence-agents-remediation",
    "medik8s.io/fence-agents-remediation",
    // GKE ends the instance within the hour (node termination handler).
    "cloud.google.com/impending-node-termination",
];

/// Annotations that say so: key, and the value that counts (`None`: any).
const LEAVING_ANNOTATIONS: &[(&str, Option<&str>)] = &[
    // Gardener's machine controller manager deletes the machine of a node with it (pkg/util/provider/machineutils).
    ("node.machine.sapcloud.io/trigger-deletion-by-mcm", Some("true")),
    // Cluster API puts it on Machines ("delete this one first", api/core machine types); on a node it says the same.
    ("cluster.x-k8s.io/delete-machine", None),
];

/// The sign of a Node that was cordoned until it was deleted, as `kubectl drain` and `kubectl delete node` do it.
pub const DRAINED: &str = "cordoned before it was deleted";

/// By which sign a Node that is gone was taken away on purpose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Removal {
    /// A program marked it before, with this key.
    Marked(Arc<str>),
    /// A person had paused repairs of it, or kept it to look at it: both stand although the Node does not.
    Reserved(&'static str),
    /// It was cordoned when it was deleted.
    Drained,
}

impl Removal {
    /// The sign in words: the key, or [`DRAINED`].
    pub fn sign(&self) -> Arc<str> {
        match self {
            Self::Marked(key) => key.clone(),
            Self::Reserved(key) => Arc::from(*key),
            Self::Drained => Arc::from(DRAINED),
        }
    }
}

/// The key of a program, among the signs by which a Node is taken away.
pub fn is_mark(sign: &str) -> bool {
    LEAVING_TAINTS.contains(&sign) || LEAVING_ANNOTATIONS.iter().any(|(key, _)| *key == sign)
}

/// What a Node's last state says of its deletion. The controller and the agents read it alike. A cordon counts only here: a
/// cordoned Node that stays is at work. Where the cloud controller says that it deleted the Node, a cordon says nothing,
/// because that controller deletes every Node whose instance it does not find.
pub fn removal(intent: &NodeIntent, cordoned: bool) -> Option<Removal> {
    let drained = || cordoned.then_some(Removal::Drained);
    let kept = intent.asks.as_ref().is_some_and(|asks| asks.keep == Some(true));
    let reserved = || intent.paused.then_some(PAUSE).or(kept.then_some(KEEP)).map(Removal::Reserved);
    intent.leaving.clone().map(Removal::Marked).or_else(reserved).or_else(drained)
}

/// Reads the signs. `taints` are keys; `deleting` tells that the object has a deletion timestamp. `whole` is false when
/// taints or annotations could not be read in full: what cannot be read may be a pause.
pub fn read(
    annotations: &BTreeMap<String, String>,
    taints: &[&str],
    deleting: bool,
    whole: bool,
) -> NodeIntent {
    let said = |key: &str| annotations.get(key).map(String::as_str);
    NodeIntent {
        deleting,
        leaving: leaving(annotations, taints).map(Arc::from),
        paused: !whole || said(PAUSE) == Some("true"),
        asks: asks(&said),
    }
}

fn asks<'a>(said: &impl Fn(&str) -> Option<&'a str>) -> Option<Box<Asks>> {
    let text = |key: &str| said(key).map(str::trim).filter(|text| !text.is_empty());
    let cut = |text: &str| Arc::from(&text[..text.floor_char_boundary(VALUE_BYTES_MAX)]);
    let asks = Asks {
        repair: text(REPAIR_NOW).filter(|text| *text != "false").map(cut),
        confirm: text(CONFIRM).map(cut),
        keep: match said(KEEP) {
            Some("true") => Some(true),
            Some("false") => Some(false),
            _ => None,
        },
    };
    (asks != Asks::default()).then(|| Box::new(asks))
}

fn leaving(annotations: &BTreeMap<String, String>, taints: &[&str]) -> Option<&'static str> {
    let by_taint = LEAVING_TAINTS.iter().copied().find(|key| taints.contains(key));
    let counts = |wanted: Option<&str>, value: &String| wanted.is_none_or(|wanted| wanted == value);
    by_taint.or_else(|| {
        let told = |(key, wanted): &&(&str, Option<&str>)| {
            annotations.get(*key).is_some_and(|value| counts(*wanted, value))
        };
        LEAVING_ANNOTATIONS.iter().find(told).map(|(key, _)| *key)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn intent(taints: &[&str], annotations: &[(&str, &str)]) -> NodeIntent {
        let annotations = annotations.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        read(&annotations, taints, false, true)
    }

    #[test]
    fn signs_of_leaving() {
        let key = |intent: NodeIntent| intent.leaving.map(|key| key.to_string());
        for taint in LEAVING_TAINTS {
            assert_eq!(key(intent(&["other", taint], &[])).as_deref(), Some(*taint));
        }
        let mcm = "node.machine.sapcloud.io/trigger-deletion-by-mcm";
        assert_eq!(key(intent(&[], &[(mcm, "true")])).as_deref(), Some(mcm));
        assert_eq!(key(intent(&[], &[(mcm, "false")])), None);
        let capi = "cluster.x-k8s.io/delete-machine";
        assert_eq!(key(intent(&[], &[(capi, "")])).as_deref(), Some(capi));
        for stays in [
            "DeletionCandidateOfClusterAutoscaler",
            "node.cloudprovider.kubernetes.io/shutdown",
            "node.cluster.x-k8s.io/outdated-revision",
            "node.kubernetes.io/unschedulable",
            "node.kubernetes.io/unreachable",
        ] {
            assert_eq!(key(intent(&[stays], &[])), None, "{stays}");
        }
        assert_eq!(key(intent(&[], &[("weave.works/kured-reboot-in-progress", "2026-01-01")])), None);
    }

    #[test]
    fn only_the_literal_true_pauses() {
        for (value, paused) in
            [("true", true), ("True", false), ("yes", false), ("1", false), ("false", false), ("", false)]
        {
            assert_eq!(intent(&[], &[(PAUSE, value)]).paused, paused, "{value:?}");
        }
        assert!(!intent(&[], &[]).paused);
        assert!(read(&BTreeMap::new(), &[], false, false).paused, "what cannot be read may be a pause");
    }

    #[test]
    fn operator_annotations_are_parsed_without_guessing() {
        let asks = |key: &str, value: &str| intent(&[], &[(key, value)]).asks.map(|asks| *asks);
        let repair = |text: &str| Some(Asks { repair: Some(text.into()), ..Asks::default() });
        assert_eq!(asks(REPAIR_NOW, "INC-7"), repair("INC-7"));
        assert_eq!(asks(REPAIR_NOW, " true "), repair("true"));
        for nothing in ["", "  ", "false"] {
            assert_eq!(asks(REPAIR_NOW, nothing), None, "{nothing:?}");
        }
        let long = "ä".repeat(100);
        assert_eq!(asks(REPAIR_NOW, &long), repair(&"ä".repeat(64)));
        assert_eq!(asks(CONFIRM, "inc-7").and_then(|asks| asks.confirm).as_deref(), Some("inc-7"));
        let keep = |value| asks(KEEP, value).and_then(|asks| asks.keep);
        assert_eq!((keep("true"), keep("false"), keep("yes")), (Some(true), Some(false), None));
        assert_eq!(intent(&[], &[("example.com/repair-now", "now")]).asks, None);
    }
}

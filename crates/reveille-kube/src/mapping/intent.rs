//! What people and programs want with a node, as far as they write it on the node.
//!
//! A closed table of signs, each with its source. A sign stands here only when it means that the node is *about to be
//! taken away, or is in somebody's hands*: a machine that goes with such a sign on its node is not expected back, so a
//! sign too many hides a fault. Left out on purpose:
//!
//! * `DeletionCandidateOfClusterAutoscaler`: a candidate, and most candidates stay.
//! * `node.cloudprovider.kubernetes.io/shutdown`: a state that the cloud controller saw, nobody's wish.
//! * `node.cluster.x-k8s.io/outdated-revision`: a rollout will come by some day; until then the node shall work.
//! * `weave.works/kured-reboot-in-progress`: the machine comes back, and a node that a cloud controller deletes while it
//!   reboots is the very fault that we look for.
//! * A plain cordon (`node.kubernetes.io/unschedulable`): says "no new pods", nothing else.

use std::collections::BTreeMap;

use reveille_core::model::node::NodeIntent;

use crate::intern::Interner;
use crate::wire::{Meta, Taint};

/// A person asks to leave the machine alone.
const PAUSE: &str = "reveille.dev/pause";

/// Taints that say that the node is being taken away.
const TAINTS: &[&str] = &[
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
    // GKE ends the instance within the hour (node termination handler).
    "cloud.google.com/impending-node-termination",
];

/// Annotations that say so: key, and the value that counts (`None`: any).
const ANNOTATIONS: &[(&str, Option<&str>)] = &[
    // Gardener's machine controller manager deletes the machine of a node with it (pkg/util/provider/machineutils).
    ("node.machine.sapcloud.io/trigger-deletion-by-mcm", Some("true")),
    // Cluster API puts it on Machines ("delete this one first", api/core machine types); on a node it says the same.
    ("cluster.x-k8s.io/delete-machine", None),
];

/// Reads the signs. `sure` is false when taints or annotations could not be read: what cannot be read may be a pause.
pub(crate) fn read(meta: &Meta, taints: &[Taint], sure: bool, interner: &Interner) -> NodeIntent {
    let none = BTreeMap::new();
    let annotations = meta.annotations.as_ref().unwrap_or(&none);
    NodeIntent {
        deleting: meta.deletion_timestamp.is_some(),
        leaving: leaving(annotations, taints).map(|key| interner.share(key)),
        paused: !sure || annotations.get(PAUSE).is_some_and(|value| value == "true"),
    }
}

fn leaving(annotations: &BTreeMap<String, String>, taints: &[Taint]) -> Option<&'static str> {
    let by_taint = TAINTS.iter().copied().find(|key| taints.iter().any(|taint| taint.key == *key));
    let counts = |wanted: Option<&str>, value: &String| wanted.is_none_or(|wanted| wanted == value);
    by_taint.or_else(|| {
        let told = |(key, wanted): &&(&str, Option<&str>)| {
            annotations.get(*key).is_some_and(|value| counts(*wanted, value))
        };
        ANNOTATIONS.iter().find(told).map(|(key, _)| *key)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(intent: &NodeIntent) -> Option<&str> {
        intent.leaving.as_deref()
    }

    fn intent(taints: &[&str], annotations: &[(&str, &str)]) -> NodeIntent {
        let taints: Vec<Taint> = taints.iter().map(|key| Taint { key: (*key).to_owned() }).collect();
        let annotations = annotations.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        let meta = Meta { annotations: Some(annotations), ..Meta::default() };
        read(&meta, &taints, true, &Interner::default())
    }

    #[test]
    fn signs_of_leaving() {
        for taint in TAINTS {
            assert_eq!(key(&intent(&["other", taint], &[])), Some(*taint));
        }
        let mcm = "node.machine.sapcloud.io/trigger-deletion-by-mcm";
        assert_eq!(key(&intent(&[], &[(mcm, "true")])), Some(mcm));
        assert_eq!(key(&intent(&[], &[(mcm, "false")])), None);
        let capi = "cluster.x-k8s.io/delete-machine";
        assert_eq!(key(&intent(&[], &[(capi, "")])), Some(capi));
        for stays in [
            "DeletionCandidateOfClusterAutoscaler",
            "node.cloudprovider.kubernetes.io/shutdown",
            "node.cluster.x-k8s.io/outdated-revision",
            "node.kubernetes.io/unschedulable",
            "node.kubernetes.io/unreachable",
        ] {
            assert_eq!(key(&intent(&[stays], &[])), None, "{stays}");
        }
        assert_eq!(key(&intent(&[], &[("weave.works/kured-reboot-in-progress", "2026-01-01")])), None);
    }

    #[test]
    fn only_the_literal_true_pauses() {
        for (value, paused) in
            [("true", true), ("True", false), ("yes", false), ("1", false), ("false", false), ("", false)]
        {
            assert_eq!(intent(&[], &[(PAUSE, value)]).paused, paused, "{value:?}");
        }
        assert!(!intent(&[], &[]).paused);
    }
}

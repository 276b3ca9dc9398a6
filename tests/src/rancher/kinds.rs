//! Rancher's custom resources as its management server has them: group `management.cattle.io`, version `v3`, fields kept as
//! they come, and no status subresource, so that every write is a write of the whole object.

use anyhow::Result;
use serde_json::{Value, json};

use crate::kube::Kube;

/// Plural, kind, scope.
const KINDS: [(&str, &str, &str); 3] = [
    ("nodes", "Node", "Namespaced"),
    ("clusters", "Cluster", "Cluster"),
    ("etcdbackups", "EtcdBackup", "Namespaced"),
];

/// The group and version of all of them.
pub const API: &str = "management.cattle.io/v3";

/// Makes the kinds known to the API server, where they are not. They stay: a rig is a lane's own, and lives as long.
///
/// # Errors
/// When it refuses, or does not serve them in time.
pub fn install(kube: &Kube) -> Result<()> {
    for (plural, kind, scope) in KINDS {
        kube.apply(&definition(plural, kind, scope))?;
    }
    kube.ctl(&["wait", "--for=condition=Established", "--timeout=20s", "crd", "--all"]).map(drop)
}

fn definition(plural: &str, kind: &str, scope: &str) -> Value {
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    let version = json!({"name": "v3", "served": true, "storage": true, "schema": schema});
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.management.cattle.io")},
        "spec": {"group": "management.cattle.io", "scope": scope, "versions": [version],
            "names": {"plural": plural, "singular": plural.trim_end_matches('s'), "kind": kind,
                "listKind": format!("{kind}List")}}})
}

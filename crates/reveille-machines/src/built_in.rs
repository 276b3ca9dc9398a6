//! The kinds of machine records that are understood: one file each, compiled in.
//!
//! ```text
//!  kinds/*.yaml ─▶ layout (as written, checked) ─▶ kinds
//! ```
//!
//! A new kind is a file in `kinds/` and a line here. There is no way to add one at run time: which fields of an object count
//! is tried on objects of the real systems, in tests.

use std::sync::LazyLock;

use crate::kind::Kind;
use crate::layout;

/// The maps that are built in: the file's name and its text.
const FILES: [(&str, &str); 6] = [
    ("karpenter-nodeclaim.yaml", include_str!("../kinds/karpenter-nodeclaim.yaml")),
    ("cluster-api-machine.yaml", include_str!("../kinds/cluster-api-machine.yaml")),
    ("cluster-api-machinepool.yaml", include_str!("../kinds/cluster-api-machinepool.yaml")),
    ("gardener-machine.yaml", include_str!("../kinds/gardener-machine.yaml")),
    ("metal3-baremetalhost.yaml", include_str!("../kinds/metal3-baremetalhost.yaml")),
    ("openshift-machine.yaml", include_str!("../kinds/openshift-machine.yaml")),
];

/// All kinds, in the order of the built-in files.
///
/// A test holds that each file loads. One that did not would be a kind that is not read; it is no reason to end the process.
pub fn kinds() -> &'static [Kind] {
    static KINDS: LazyLock<Vec<Kind>> =
        LazyLock::new(|| FILES.iter().filter_map(|(file, text)| layout::kind(file, text).ok()).collect());
    &KINDS
}

/// The kind of this group and resource: `cluster.x-k8s.io`, `machines`.
pub fn kind_of(group: &str, plural: &str) -> Option<&'static Kind> {
    kinds().iter().find(|kind| *kind.group == *group && *kind.plural == *plural)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_built_in_map_loads() {
        for (file, text) in FILES {
            if let Err(error) = layout::kind(file, text) {
                panic!("{error}");
            }
        }
        assert_eq!(kinds().len(), FILES.len());
    }

    #[test]
    fn kinds_are_told_apart_by_group_and_resource() {
        let names: BTreeSet<_> = kinds().iter().map(|kind| (&kind.group, &kind.plural)).collect();
        assert_eq!(names.len(), kinds().len());
        assert_eq!(kind_of("karpenter.sh", "nodeclaims").map(|kind| &*kind.name), Some("NodeClaim"));
        assert!(kind_of("karpenter.sh", "machines").is_none());
    }

    #[test]
    fn cluster_api_is_read_in_two_versions_newest_first() {
        let machine = kind_of("cluster.x-k8s.io", "machines").unwrap();
        let names: Vec<_> = machine.versions.iter().map(|version| &*version.name).collect();
        assert_eq!(names, ["v1beta2", "v1beta1"]);
        let first = |version: &str| &*machine.version(version).unwrap().layout.steps[0].name;
        assert_eq!((first("v1beta2"), first("v1beta1")), ("BootstrapConfigReady", "BootstrapReady"));
        assert!(machine.version("v1alpha4").is_none());
    }
}

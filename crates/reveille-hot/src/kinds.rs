//! What is known of kinds: which are written by design, and where `metadata.generation` counts every write.
//!
//! Data, and the one rule for custom resources: without a status subresource each change that is not of metadata alone adds
//! one to the generation; with one, only changes of the spec do. Kinds of Kubernetes itself count specs at best, and Nodes
//! nothing.

use crate::object::Resource;
use crate::settings::{MilliRate, Settings};

/// What `metadata.generation` of a kind counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Generation {
    /// Each write that changed more than metadata.
    EveryWrite,
    /// Changes of the spec: a fight over the status does not show.
    SpecOnly,
    /// Nothing that helps.
    Nothing,
}

/// A kind that is written more often than others, by design.
struct Busy {
    group: &'static str,
    plural: &'static str,
    /// What it may be written for ever, writes in 1000 s.
    sustained: MilliRate,
}

/// Leaders renew a lease every two seconds, several processes may share one for a while. Endpoints of a rolling service
/// change with each of its pods.
const BUSY: &[Busy] = &[
    Busy { group: "coordination.k8s.io", plural: "leases", sustained: 1_000 },
    Busy { group: "", plural: "endpoints", sustained: 1_000 },
    Busy { group: "discovery.k8s.io", plural: "endpointslices", sustained: 1_000 },
];

/// Kinds that are not counted unless the operator names them: an event is a count by itself, and a client that may list secrets
/// may read them.
const PASSED_OVER: [(&str, &str); 3] = [("", "events"), ("events.k8s.io", "events"), ("", "secrets")];

/// Groups of Kubernetes itself. Whatever else is served is a custom resource or an extension server's.
const OWN_GROUPS: [&str; 22] = [
    "",
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "apiregistration.k8s.io",
    "apps",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "autoscaling",
    "batch",
    "certificates.k8s.io",
    "coordination.k8s.io",
    "discovery.k8s.io",
    "events.k8s.io",
    "extensions",
    "flowcontrol.apiserver.k8s.io",
    "internal.apiserver.k8s.io",
    "networking.k8s.io",
    "node.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "resource.k8s.io",
    "scheduling.k8s.io",
];

/// Storage has two groups of its own, one of them for migrations.
const STORAGE: &str = "storage.k8s.io";

/// What its generation counts. `has_status` tells whether it has a status subresource.
pub fn generation(resource: &Resource, has_status: bool) -> Generation {
    let own = OWN_GROUPS.contains(&&*resource.group) || resource.group.ends_with(STORAGE);
    // Snapshots and the like end in storage.k8s.io and are custom resources; they have status subresources.
    match (own, has_status) {
        (true, _) if resource.group.is_empty() => Generation::Nothing,
        (true, _) | (false, true) => Generation::SpecOnly,
        (false, false) => Generation::EveryWrite,
    }
}

/// What an object of this kind may be written for ever.
pub fn sustained(resource: &Resource, settings: &Settings) -> MilliRate {
    let busy = BUSY.iter().find(|busy| resource.is(busy.group, busy.plural));
    busy.map_or(settings.sustained, |busy| busy.sustained.max(settings.sustained))
}

/// Counted although the operator did not name it?
pub fn is_counted(resource: &Resource) -> bool {
    !PASSED_OVER.iter().any(|(group, plural)| resource.is(group, plural))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generation_counts_all_writes_only_without_status_resource() {
        let table = [
            ("management.cattle.io", "nodes", false, Generation::EveryWrite),
            ("cluster.x-k8s.io", "machines", true, Generation::SpecOnly),
            ("apps", "deployments", true, Generation::SpecOnly),
            ("", "nodes", true, Generation::Nothing),
            ("storage.k8s.io", "csinodes", false, Generation::SpecOnly),
        ];
        for (group, plural, has_status, wanted) in table {
            assert_eq!(generation(&Resource::new(group, plural), has_status), wanted, "{group}");
        }
    }

    #[test]
    fn leases_may_be_renewed_and_secrets_are_left_alone() {
        let settings = Settings::default();
        assert_eq!(sustained(&Resource::new("coordination.k8s.io", "leases"), &settings), 1_000);
        assert_eq!(sustained(&Resource::new("", "nodes"), &settings), 200);
        assert!(!is_counted(&Resource::new("", "secrets")));
        assert!(is_counted(&Resource::new("", "configmaps")));
    }
}

//! What the adapter needs to be allowed, and nothing more.
//!
//! [`RULES`] is the list; [`manifest`] writes it as YAML for `kubectl apply`. Looking is one role, deleting Node objects
//! another, because `repair: {cleanup: act}` is off unless somebody turns it on. A test sends everything the adapter can
//! send through a recording API and compares.

use std::fmt::Write;

/// One line of what must be allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rule {
    /// API group; the core group is empty.
    pub group: &'static str,
    /// Resource, plural.
    pub resource: &'static str,
    /// Namespace; `None` for resources of the whole cluster.
    pub namespace: Option<&'static str>,
    /// Verbs.
    pub verbs: &'static [&'static str],
    /// What it is for.
    pub purpose: Purpose,
}

/// What a rule is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Purpose {
    /// Reveille cannot work without it.
    Look,
    /// Without it less can be told of a machine: who deleted its node, what its certificate waits for.
    Explain,
    /// Only where left-over Node objects are to be deleted.
    Cleanup,
}

/// Everything that the adapter can ask for.
pub const RULES: &[Rule] = &[
    Rule {
        group: "",
        resource: "nodes",
        namespace: None,
        verbs: &["get", "list", "watch"],
        purpose: Purpose::Look,
    },
    Rule {
        group: "coordination.k8s.io",
        resource: "leases",
        namespace: Some("kube-node-lease"),
        verbs: &["list"],
        purpose: Purpose::Look,
    },
    Rule {
        group: "",
        resource: "events",
        namespace: Some("default"),
        verbs: &["list", "watch"],
        purpose: Purpose::Explain,
    },
    Rule {
        group: "certificates.k8s.io",
        resource: "certificatesigningrequests",
        namespace: None,
        verbs: &["list"],
        purpose: Purpose::Explain,
    },
    Rule { group: "", resource: "nodes", namespace: None, verbs: &["delete"], purpose: Purpose::Cleanup },
];

/// The rules as YAML, bound to a service account. With `cleanup`, Node objects may be deleted.
pub fn manifest(account: &str, namespace: &str, cleanup: bool) -> String {
    let mut yaml = String::new();
    for rule in RULES.iter().filter(|rule| cleanup || rule.purpose != Purpose::Cleanup) {
        write_rule(&mut yaml, rule, account, namespace);
    }
    yaml
}

fn write_rule(yaml: &mut String, rule: &Rule, account: &str, namespace: &str) {
    let name = match rule.purpose {
        Purpose::Cleanup => format!("reveille-{}-cleanup", rule.resource),
        Purpose::Look | Purpose::Explain => format!("reveille-{}", rule.resource),
    };
    let (role, place) = match rule.namespace {
        Some(place) => ("Role", format!(", namespace: {place}")),
        None => ("ClusterRole", String::new()),
    };
    let verbs = rule.verbs.join(", ");
    // Writing into a String does not fail.
    let _ = write!(
        yaml,
        "---\n\
         apiVersion: rbac.authorization.k8s.io/v1\n\
         kind: {role}\n\
         metadata: {{name: {name}{place}}}\n\
         rules:\n\
         - {{apiGroups: [\"{group}\"], resources: [{resource}], verbs: [{verbs}]}}\n\
         ---\n\
         apiVersion: rbac.authorization.k8s.io/v1\n\
         kind: {role}Binding\n\
         metadata: {{name: {name}{place}}}\n\
         roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: {role}, name: {name}}}\n\
         subjects:\n\
         - {{kind: ServiceAccount, name: {account}, namespace: {namespace}}}\n",
        group = rule.group,
        resource = rule.resource,
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deleting_is_only_allowed_where_cleanup_is_wanted() {
        let looking = manifest("reveille", "reveille", false);
        assert!(looking.contains("verbs: [get, list, watch]"));
        assert!(!looking.contains("delete"));
        assert!(manifest("reveille", "reveille", true).contains("verbs: [delete]"));
    }
}

//! The rights that the adapter needs, and no others.
//!
//! [`RULES`] is the list; [`manifest`] writes it as YAML for `kubectl apply`. Reading is one role, deleting Node objects another,
//! because `repair: {cleanup: act}` is off unless an operator turns it on. A test sends every request that the adapter can send
//! through a recording API and compares.

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
    /// Without it the controller does not notice that the kubeconfig leads to another cluster than before.
    Identify,
    /// Without it less can be told of a machine: who deleted its node, what its certificate waits for.
    Explain,
    /// Without it a second controller of the same roster is not found, and each relies on being alone.
    Alone,
    /// Only where left-over Node objects are to be deleted.
    Cleanup,
    /// Only where machines join through its registration server: bootstrap tokens are made and taken away.
    Join,
}

/// What is wanted beside looking.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Node objects may be deleted.
    pub cleanup: bool,
    /// Bootstrap tokens may be made.
    pub join: bool,
    /// What is written without end may be looked for.
    pub hot: bool,
    /// The rosters whose Leases may be changed; any Lease of `kube-system`, where there is none. Leaders of the control plane are
    /// elected by Leases there, too.
    pub rosters: Vec<String>,
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
        group: "",
        resource: "namespaces",
        // A namespace is itself within its namespace, as far as rights go: a Role there allows to read it.
        namespace: Some("kube-system"),
        verbs: &["get"],
        purpose: Purpose::Identify,
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
    Rule {
        group: "coordination.k8s.io",
        resource: "leases",
        namespace: Some("kube-system"),
        verbs: &["get", "create", "update"],
        purpose: Purpose::Alone,
    },
    Rule { group: "", resource: "nodes", namespace: None, verbs: &["delete"], purpose: Purpose::Cleanup },
    Rule {
        group: "",
        resource: "secrets",
        namespace: Some("kube-system"),
        verbs: &["create", "delete"],
        purpose: Purpose::Join,
    },
];

/// The rules as YAML, bound to a service account: those to look, and those that are wanted beside.
pub fn manifest(account: &str, namespace: &str, wanted: &Wanted) -> String {
    let mut yaml = String::new();
    let is_wanted = |purpose| match purpose {
        Purpose::Look | Purpose::Identify | Purpose::Explain | Purpose::Alone => true,
        Purpose::Cleanup => wanted.cleanup,
        Purpose::Join => wanted.join,
    };
    if wanted.hot {
        write_hot(&mut yaml, account, namespace);
    }
    for rule in RULES.iter().filter(|rule| is_wanted(rule.purpose)) {
        write_rule(&mut yaml, rule, account, namespace, &wanted.rosters);
    }
    yaml
}

/// Kinds that `hot` counts, by group, without anything that holds secrets. An operator with other custom resources adds their
/// groups.
pub const HOT_KINDS: &[(&str, &[&str])] = &[
    (
        "",
        &[
            "configmaps",
            "endpoints",
            "limitranges",
            "namespaces",
            "nodes",
            "persistentvolumeclaims",
            "persistentvolumes",
            "pods",
            "podtemplates",
            "replicationcontrollers",
            "resourcequotas",
            "serviceaccounts",
            "services",
        ],
    ),
    ("apiextensions.k8s.io", &["customresourcedefinitions"]),
    ("apiregistration.k8s.io", &["apiservices"]),
    ("apps", &["controllerrevisions", "daemonsets", "deployments", "replicasets", "statefulsets"]),
    ("autoscaling", &["horizontalpodautoscalers"]),
    ("batch", &["cronjobs", "jobs"]),
    ("cluster.x-k8s.io", &["clusters", "machinedeployments", "machines", "machinesets"]),
    ("coordination.k8s.io", &["leases"]),
    ("discovery.k8s.io", &["endpointslices"]),
    ("management.cattle.io", &["clusters", "nodepools", "nodes", "nodetemplates"]),
    ("networking.k8s.io", &["ingresses", "networkpolicies"]),
    ("policy", &["poddisruptionbudgets"]),
    ("provisioning.cattle.io", &["clusters"]),
    ("rke.cattle.io", &["rkebootstraps", "rkecontrolplanes"]),
    ("storage.k8s.io", &["csinodes", "storageclasses", "volumeattachments"]),
];

/// The role to look for hot objects, and its binding.
fn write_hot(yaml: &mut String, account: &str, namespace: &str) {
    yaml.push_str(
        "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: reveille-hot}\nrules:\n",
    );
    for (group, kinds) in HOT_KINDS {
        let kinds = kinds.join(", ");
        // Writing into a String does not fail.
        let _ =
            writeln!(yaml, "- {{apiGroups: [\"{group}\"], resources: [{kinds}], verbs: [get, list, watch]}}");
    }
    yaml.push_str("- {nonResourceURLs: [/metrics], verbs: [get]}\n");
    let _ = write!(
        yaml,
        "---\n\
         apiVersion: rbac.authorization.k8s.io/v1\n\
         kind: ClusterRoleBinding\n\
         metadata: {{name: reveille-hot}}\n\
         roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: reveille-hot}}\n\
         subjects:\n\
         - {{kind: ServiceAccount, name: {account}, namespace: {namespace}}}\n"
    );
}

fn write_rule(yaml: &mut String, rule: &Rule, account: &str, namespace: &str, rosters: &[String]) {
    let name = match rule.purpose {
        Purpose::Cleanup => format!("reveille-{}-cleanup", rule.resource),
        Purpose::Join => format!("reveille-{}-join", rule.resource),
        Purpose::Look | Purpose::Identify | Purpose::Explain | Purpose::Alone => {
            format!("reveille-{}", rule.resource)
        }
    };
    let (role, place) = match rule.namespace {
        Some(place) => ("Role", format!(", namespace: {place}")),
        None => ("ClusterRole", String::new()),
    };
    let allowed = allowed(rule, rosters);
    // Writing into a String does not fail.
    let _ = write!(
        yaml,
        "---\n\
         apiVersion: rbac.authorization.k8s.io/v1\n\
         kind: {role}\n\
         metadata: {{name: {name}{place}}}\n\
         rules:\n\
         {allowed}\
         ---\n\
         apiVersion: rbac.authorization.k8s.io/v1\n\
         kind: {role}Binding\n\
         metadata: {{name: {name}{place}}}\n\
         roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: {role}, name: {name}}}\n\
         subjects:\n\
         - {{kind: ServiceAccount, name: {account}, namespace: {namespace}}}\n",
    );
}

/// The lines of a role. What is made has no name yet for the API server, so `create` stands apart from the names.
fn allowed(rule: &Rule, rosters: &[String]) -> String {
    let Rule { group, resource, .. } = rule;
    let line = |verbs: &[&str], names: &str| {
        let verbs = verbs.join(", ");
        format!("- {{apiGroups: [\"{group}\"], resources: [{resource}]{names}, verbs: [{verbs}]}}\n")
    };
    if rule.purpose != Purpose::Alone || rosters.is_empty() {
        return line(rule.verbs, "");
    }
    let names: Vec<String> = rosters.iter().map(|roster| format!("reveille-{roster}")).collect();
    let (make, change): (Vec<&str>, Vec<&str>) = rule.verbs.iter().partition(|verb| **verb == "create");
    line(&make, "") + &line(&change, &format!(", resourceNames: [{}]", names.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changing_is_only_allowed_where_it_is_wanted() {
        let wanted =
            |cleanup, join| manifest("reveille", "reveille", &Wanted { cleanup, join, ..Wanted::default() });
        let looking = wanted(false, false);
        assert!(looking.contains("verbs: [get, list, watch]"));
        assert!(!looking.contains("delete"));
        assert!(!looking.contains("secrets"));
        assert!(wanted(true, false).contains("verbs: [delete]"));
        assert!(wanted(false, true).contains("resources: [secrets], verbs: [create, delete]"));
    }

    #[test]
    fn leases_of_leaders_are_out_of_reach_where_the_roster_is_named() {
        let wanted = Wanted { rosters: vec!["prod".into(), "edge".into()], ..Wanted::default() };
        let yaml = manifest("reveille", "reveille", &wanted);
        let names =
            "resources: [leases], resourceNames: [reveille-prod, reveille-edge], verbs: [get, update]}";
        assert!(yaml.contains(names) && yaml.contains("resources: [leases], verbs: [create]}"), "{yaml}");
        assert!(!yaml.contains("[get, create, update]"), "{yaml}");
    }
}

//! The rights that the adapter needs, and no others.
//!
//! ```text
//!  RULES, HOT_KINDS ─▶ grants, as far as they are wanted ─▶ manifest: a role and its binding each, as YAML for `kubectl apply`
//!  Rancher's rules  ─▶ grants, in the binary ───────────────┘
//! ```
//!
//! Reading is one role, deleting Node objects another, because `repair: {cleanup: act}` is off unless an operator turns it on.
//! A test sends every request that the adapter can send through a recording API and compares it with [`RULES`].

use k8s_openapi::Resource;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, PolicyRule};
use k8s_openapi::api::rbac::v1::{Role, RoleBinding, RoleRef, Subject};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Serialize;
use serde_saphyr::ser::Error as WriteError;

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

/// A role, for the whole cluster or one namespace, and what it allows.
#[derive(Clone, Debug, PartialEq)]
pub struct Grant {
    /// The name of the role, and of its binding.
    pub name: String,
    /// Its namespace; `None` for the whole cluster.
    pub namespace: Option<String>,
    /// What it allows.
    pub rules: Vec<PolicyRule>,
}

/// The rights to look, and those that are wanted beside.
pub fn grants(wanted: &Wanted) -> Vec<Grant> {
    let is_wanted = |purpose| match purpose {
        Purpose::Look | Purpose::Identify | Purpose::Explain | Purpose::Alone => true,
        Purpose::Cleanup => wanted.cleanup,
        Purpose::Join => wanted.join,
    };
    let rules = RULES.iter().filter(|rule| is_wanted(rule.purpose));
    wanted.hot.then(hot).into_iter().chain(rules.map(|rule| rule.grant(&wanted.rosters))).collect()
}

/// The grants as YAML, each bound to a service account.
///
/// # Errors
///
/// The writer of YAML refuses them, which no name that Kubernetes takes brings about.
pub fn manifest(grants: &[Grant], account: &str, namespace: &str) -> Result<String, WriteError> {
    let (kind, name) = ("ServiceAccount".to_owned(), account.to_owned());
    let subject = Subject { kind, name, namespace: Some(namespace.to_owned()), api_group: None };
    grants.iter().map(|grant| grant.documents(&subject)).collect()
}

/// These verbs on kinds of one API group.
pub fn allow(group: &str, resources: &[&str], verbs: &[&str]) -> PolicyRule {
    let (api_groups, resources) = (Some(texts(&[group])), Some(texts(resources)));
    PolicyRule { api_groups, resources, verbs: texts(verbs), ..PolicyRule::default() }
}

fn texts(all: &[&str]) -> Vec<String> {
    all.iter().map(|&text| text.to_owned()).collect()
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

/// The role to look for hot objects.
fn hot() -> Grant {
    let non_resource_urls = Some(texts(&["/metrics"]));
    let metrics = PolicyRule { non_resource_urls, verbs: texts(&["get"]), ..PolicyRule::default() };
    let kinds = HOT_KINDS.iter().map(|(group, kinds)| allow(group, kinds, &["get", "list", "watch"]));
    Grant { name: "reveille-hot".to_owned(), namespace: None, rules: kinds.chain([metrics]).collect() }
}

impl Rule {
    fn grant(&self, rosters: &[String]) -> Grant {
        let ending = match self.purpose {
            Purpose::Cleanup => "-cleanup",
            Purpose::Join => "-join",
            Purpose::Look | Purpose::Identify | Purpose::Explain | Purpose::Alone => "",
        };
        Grant {
            name: format!("reveille-{}{ending}", self.resource),
            namespace: self.namespace.map(str::to_owned),
            rules: self.allowed(rosters),
        }
    }

    /// What is made has no name yet for the API server, so `create` stands apart from the names.
    fn allowed(&self, rosters: &[String]) -> Vec<PolicyRule> {
        let allow = |verbs: &[&str]| allow(self.group, &[self.resource], verbs);
        if self.purpose != Purpose::Alone || rosters.is_empty() {
            return vec![allow(self.verbs)];
        }
        let names = rosters.iter().map(|roster| format!("reveille-{roster}")).collect();
        let (make, change): (Vec<&str>, Vec<&str>) = self.verbs.iter().partition(|verb| **verb == "create");
        vec![allow(&make), PolicyRule { resource_names: Some(names), ..allow(&change) }]
    }
}

impl Grant {
    fn documents(&self, subject: &Subject) -> Result<String, WriteError> {
        let (name, namespace) = (Some(self.name.clone()), self.namespace.clone());
        let metadata = ObjectMeta { name, namespace, ..ObjectMeta::default() };
        let (rules, subjects) = (Some(self.rules.clone()), Some(vec![subject.clone()]));
        let (api_group, name) = (Some(Role::GROUP.to_owned()), self.name.clone());
        if self.namespace.is_none() {
            let role_ref = RoleRef { api_group, kind: ClusterRole::KIND.to_owned(), name };
            let role = ClusterRole { metadata: metadata.clone(), rules, aggregation_rule: None };
            both(&role, &ClusterRoleBinding { metadata, role_ref, subjects })
        } else {
            let role_ref = RoleRef { api_group, kind: Role::KIND.to_owned(), name };
            both(&Role { metadata: metadata.clone(), rules }, &RoleBinding { metadata, role_ref, subjects })
        }
    }
}

fn both(role: &impl Serialize, binding: &impl Serialize) -> Result<String, WriteError> {
    Ok(format!("---\n{}---\n{}", serde_saphyr::to_string(role)?, serde_saphyr::to_string(binding)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXPECTED: &str = r#"---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: a
rules:
- apiGroups:
  - ""
  resources:
  - nodes
  verbs:
  - get
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: a
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: a
subjects:
- kind: ServiceAccount
  name: "123"
  namespace: "true"
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: b
  namespace: c
rules: []
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: b
  namespace: c
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: b
subjects:
- kind: ServiceAccount
  name: "123"
  namespace: "true"
"#;

    fn allowed(wanted: &Wanted) -> Vec<PolicyRule> {
        grants(wanted).into_iter().flat_map(|grant| grant.rules).collect()
    }

    fn has(rules: &[PolicyRule], resource: &str, verb: &str) -> bool {
        let names = |rule: &PolicyRule| rule.resources.iter().flatten().any(|named| named == resource);
        rules.iter().any(|rule| names(rule) && rule.verbs.iter().any(|allowed| allowed == verb))
    }

    #[test]
    fn changing_is_only_allowed_where_it_is_wanted() {
        let wanted = |cleanup, join| allowed(&Wanted { cleanup, join, ..Wanted::default() });
        let looking = wanted(false, false);
        assert!(["get", "list", "watch"].iter().all(|verb| has(&looking, "nodes", verb)));
        assert!(!looking.iter().any(|rule| rule.verbs.iter().any(|verb| verb == "delete")));
        assert!(!has(&looking, "secrets", "get"));
        assert!(has(&wanted(true, false), "nodes", "delete"));
        assert!(["create", "delete"].iter().all(|verb| has(&wanted(false, true), "secrets", verb)));
    }

    #[test]
    fn leases_of_leaders_are_out_of_reach_where_the_roster_is_named() {
        let wanted = Wanted { rosters: vec!["prod".into(), "edge".into()], ..Wanted::default() };
        let leases = grants(&wanted).into_iter().find(|grant| {
            grant.name == "reveille-leases" && grant.namespace.as_deref() == Some("kube-system")
        });
        let make = allow("coordination.k8s.io", &["leases"], &["create"]);
        let names = Some(vec!["reveille-prod".to_owned(), "reveille-edge".to_owned()]);
        let change = allow("coordination.k8s.io", &["leases"], &["get", "update"]);
        let change = PolicyRule { resource_names: names, ..change };
        assert_eq!(leases.map(|grant| grant.rules), Some(vec![make, change]));
    }

    #[test]
    fn each_grant_is_a_role_and_its_binding_in_yaml() {
        let grants = [
            Grant { name: "a".into(), namespace: None, rules: vec![allow("", &["nodes"], &["get"])] },
            Grant { name: "b".into(), namespace: Some("c".into()), rules: vec![] },
        ];
        // Names that YAML would take for a number and for a truth stay text.
        let yaml = manifest(&grants, "123", "true").unwrap();
        assert_eq!(yaml, EXPECTED);
    }
}

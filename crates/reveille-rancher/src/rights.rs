//! The rights that the requests need, and no others.
//!
//! [`RULES`] is the list, [`manifest`] writes it as YAML for `kubectl apply`. Rights in the management cluster and in the cluster
//! below it are two manifests, for they go to two API servers. The manifest grants reading. Plan secrets hold credentials, so the
//! right to read them is only printed where the operator asks for it.

use std::fmt::Write as _;

use crate::ask::{Ask, Place};

/// One line of what must be allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rule {
    /// In which cluster.
    pub place: Place,
    /// API group; the core group is empty.
    pub group: &'static str,
    /// Resource, plural.
    pub resource: &'static str,
    /// Namespace; `None` for all, or for resources that have none.
    pub namespace: Option<&'static str>,
    /// Verbs.
    pub verbs: &'static [&'static str],
    /// What for.
    pub purpose: Purpose,
}

/// What a rule is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Purpose {
    /// Nothing can be told without it.
    Look,
    /// Machines of modern clusters: whether their plan was applied.
    Plans,
    /// Only where records are repaired.
    Repair,
}

const MANAGEMENT: &str = "management.cattle.io";

/// Everything that can be asked for.
pub const RULES: &[Rule] = &[
    look(Place::Management, MANAGEMENT, "clusters", None, &["get", "list"]),
    look(Place::Management, MANAGEMENT, "nodes", None, &["get", "list"]),
    look(Place::Management, MANAGEMENT, "etcdbackups", None, &["list"]),
    look(Place::Management, "cluster.x-k8s.io", "machines", None, &["list"]),
    Rule {
        place: Place::Management,
        group: "",
        resource: "secrets",
        namespace: Some("fleet-default"),
        verbs: &["list"],
        purpose: Purpose::Plans,
    },
    look(Place::Downstream, "", "nodes", None, &["get", "list"]),
    look(Place::Downstream, "", "pods", Some("cattle-system"), &["list"]),
    repair(Place::Management, MANAGEMENT, "nodes", &["update", "delete"]),
    repair(Place::Downstream, "", "nodes", &["update", "delete"]),
    repair(Place::Downstream, "", "pods", &["list"]),
    repair(Place::Downstream, "", "persistentvolumes", &["list"]),
    repair(Place::Downstream, "", "pods/eviction", &["create"]),
];

const fn look(
    place: Place,
    group: &'static str,
    resource: &'static str,
    namespace: Option<&'static str>,
    verbs: &'static [&'static str],
) -> Rule {
    Rule { place, group, resource, namespace, verbs, purpose: Purpose::Look }
}

const fn repair(
    place: Place,
    group: &'static str,
    resource: &'static str,
    verbs: &'static [&'static str],
) -> Rule {
    Rule { place, group, resource, namespace: None, verbs, purpose: Purpose::Repair }
}

/// What is wanted beside looking.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Secrets with plans may be listed.
    pub plans: bool,
    /// Records may be repaired.
    pub repair: bool,
}

/// What one ask needs, in words.
pub fn needed(ask: &Ask) -> String {
    let (verb, resource) = match ask {
        Ask::Clusters => ("list", "clusters.management.cattle.io"),
        Ask::Cluster(_) => ("get", "clusters.management.cattle.io"),
        Ask::Records(_) => ("list", "nodes.management.cattle.io"),
        Ask::Record(..) => ("get", "nodes.management.cattle.io"),
        Ask::Backups(_) => ("list", "etcdbackups.management.cattle.io"),
        Ask::Machines => ("list", "machines.cluster.x-k8s.io"),
        Ask::Plans(_) => ("list", "secrets"),
        Ask::Nodes => ("list", "nodes"),
        Ask::Node(_) => ("get", "nodes"),
        Ask::Pods => ("list", "pods in cattle-system"),
        Ask::PodsOn(_) => ("list", "pods"),
        Ask::Volumes => ("list", "persistentvolumes"),
    };
    format!("the right to {verb} {resource}")
}

/// The rules of one place as YAML, bound to a service account.
pub fn manifest(place: Place, account: &str, namespace: &str, wanted: Wanted) -> String {
    let mut yaml = String::new();
    let is_wanted = |rule: &&Rule| {
        let is_purpose = match rule.purpose {
            Purpose::Look => true,
            Purpose::Plans => wanted.plans,
            Purpose::Repair => wanted.repair,
        };
        rule.place == place && is_purpose
    };
    for rule in RULES.iter().filter(is_wanted) {
        let group = rule.group.split('.').next().unwrap_or_default();
        let resource = rule.resource.replace('/', "-");
        let mut name = ["reveille-rancher", group, &resource].join("-").replace("--", "-");
        if rule.purpose == Purpose::Repair {
            name.push_str("-repair");
        }
        let (role, within) = match rule.namespace {
            Some(within) => ("Role", format!(", namespace: {within}")),
            None => ("ClusterRole", String::new()),
        };
        // Writing into a String does not fail.
        let _ = write!(
            yaml,
            "---\n\
             apiVersion: rbac.authorization.k8s.io/v1\n\
             kind: {role}\n\
             metadata: {{name: {name}{within}}}\n\
             rules:\n\
             - {{apiGroups: [\"{api}\"], resources: [{resource}], verbs: [{verbs}]}}\n\
             ---\n\
             apiVersion: rbac.authorization.k8s.io/v1\n\
             kind: {role}Binding\n\
             metadata: {{name: {name}{within}}}\n\
             roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: {role}, name: {name}}}\n\
             subjects:\n\
             - {{kind: ServiceAccount, name: {account}, namespace: {namespace}}}\n",
            api = rule.group,
            resource = rule.resource,
            verbs = rule.verbs.join(", "),
        );
    }
    yaml
}

//! The rights that the requests need, and no others.
//!
//! [`RULES`] is the list; [`rules`] are those of one API server, for the management cluster and the cluster below it have one
//! each. Without a wish they allow reading. Plan secrets hold credentials, so the right to read them is only among them where the
//! operator asks for it.
//!
//! Not here: the YAML. The binary writes it, with the rights of all other commands.

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

/// The rules of one place that are wanted.
pub fn rules(place: Place, wanted: Wanted) -> impl Iterator<Item = &'static Rule> {
    RULES.iter().filter(move |rule| {
        let is_wanted = match rule.purpose {
            Purpose::Look => true,
            Purpose::Plans => wanted.plans,
            Purpose::Repair => wanted.repair,
        };
        rule.place == place && is_wanted
    })
}

impl Rule {
    /// The name of the role that has this rule.
    pub fn role(&self) -> String {
        let group = self.group.split('.').next().unwrap_or_default();
        let name = ["reveille-rancher", group, &self.resource.replace('/', "-")].join("-").replace("--", "-");
        if self.purpose == Purpose::Repair { name + "-repair" } else { name }
    }
}

//! Which kinds an API server serves, in which version to read them, and the path that lists them.
//!
//! ```text
//!  GET /apis ─▶ APIGroupList ─▶ wanted ─▶ GET /apis/GROUP/VERSION for each ─▶ APIResourceList ─▶ served ─▶ list_path
//! ```
//!
//! No version is assumed: a cluster may serve a group without the resource that we look for, an older version alone, or, after
//! an update, a newer one. What the server prefers does not count; the map's order does, because the map says which version it
//! reads best. Not here: whether we may list them, which the list's own answer shows.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::built_in::kinds;
use crate::kind::{Kind, Version};

/// Groups that are looked at in an answer. A large OpenShift has 150.
const GROUPS_MAX: usize = 4_000;
/// Resources that are looked at in an answer. The core group has 60.
const RESOURCES_MAX: usize = 4_000;

/// A version of a group, as in the path `/apis/GROUP/VERSION`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct GroupVersion {
    /// The group.
    pub group: &'static str,
    /// The version.
    pub version: &'static str,
}

/// A kind that is served.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Served {
    /// The kind.
    pub kind: &'static Kind,
    /// The version to read it in.
    pub version: &'static Version,
}

impl GroupVersion {
    /// The path that lists its resources.
    pub fn path(self) -> String {
        format!("/apis/{}/{}", self.group, self.version)
    }
}

/// The group versions whose resources have to be asked for: those that a map understands and the server has.
///
/// `groups` is the answer to `GET /apis`. One of another shape has no groups.
pub fn wanted(groups: &Value) -> Vec<GroupVersion> {
    let mut wanted: Vec<GroupVersion> = Vec::new();
    for kind in kinds() {
        for version in &kind.versions {
            let one = GroupVersion { group: &kind.group, version: &version.name };
            if has_version(groups, one) && !wanted.contains(&one) {
                wanted.push(one);
            }
        }
    }
    wanted
}

/// The kinds that are served, each in the first version of its map whose resources have it.
///
/// `resources` has, for the group versions of [`wanted`], the answers to [`GroupVersion::path`]. A group version without an
/// answer does not count as served: the caller knows that it could not be read.
pub fn served(groups: &Value, resources: &BTreeMap<GroupVersion, Value>) -> Vec<Served> {
    let version_of = |kind: &'static Kind| {
        let is_served = |version: &&'static Version| {
            let one = GroupVersion { group: &kind.group, version: &version.name };
            has_version(groups, one) && resources.get(&one).is_some_and(|list| has_resource(list, kind))
        };
        kind.versions.iter().find(is_served)
    };
    kinds().iter().filter_map(|kind| Some(Served { kind, version: version_of(kind)? })).collect()
}

/// The path that lists all objects of a kind, in all namespaces.
pub fn list_path(kind: &Kind, version: &str) -> String {
    format!("/apis/{}/{version}/{}", kind.group, kind.plural)
}

fn has_version(groups: &Value, one: GroupVersion) -> bool {
    let mut groups = entries(groups, "groups", GROUPS_MAX);
    groups.any(|group| {
        let mut versions = entries(group, "versions", GROUPS_MAX);
        text(group, "name") == Some(one.group)
            && versions.any(|version| text(version, "version") == Some(one.version))
    })
}

/// Subresources (`machines/status`) are in the list as well, under names of their own.
fn has_resource(list: &Value, kind: &Kind) -> bool {
    entries(list, "resources", RESOURCES_MAX).any(|resource| {
        text(resource, "name") == Some(&kind.plural)
            && text(resource, "kind") == Some(&kind.name)
            && can_list(resource)
    })
}

/// Where the verbs are told, `list` has to be among them.
fn can_list(resource: &Value) -> bool {
    match resource.get("verbs") {
        Some(Value::Array(verbs)) => verbs.iter().any(|verb| verb == "list"),
        _ => true,
    }
}

fn entries<'a>(value: &'a Value, key: &str, max: usize) -> impl Iterator<Item = &'a Value> {
    value.get(key).and_then(Value::as_array).into_iter().flatten().take(max)
}

fn text<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key).and_then(Value::as_str)
}

//! The kinds that the API server serves: in two requests where the server lists all at once (since 1.27), in one for each group
//! where it does not.
//!
//! ```text
//!  /api, /apis, aggregated ─▶ groups, versions, resources with their subresources ─▶ [Kind]
//!  an older server answers with bare lists ─▶ /api/v1, /apis/GROUP/VERSION …     ─▶ [Kind]
//! ```
//!
//! A group that does not answer (an extension server that is away) is left out, as kubectl does.

use std::time::Duration;

use reveille_hot::Resource;
use reveille_hot::kinds::generation;
use serde::Deserialize;

use crate::failure::Failure;
use crate::kind::Kind;
use crate::paths;
use crate::session::Question;
use crate::shared::Shared;

const WITHIN: Duration = Duration::from_secs(20);
/// Groups that are asked one by one.
const GROUPS_MAX: usize = 300;

/// Any of the documents: each has its own of these lists.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Document {
    /// Aggregated: a group each.
    items: Vec<Group>,
    /// Of an older server: groups alone.
    groups: Vec<BareGroup>,
    /// Of one version of a group.
    resources: Vec<BareResource>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Group {
    metadata: Named,
    versions: Vec<Version>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Named {
    name: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Version {
    version: String,
    freshness: String,
    resources: Vec<Served>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Served {
    resource: String,
    scope: String,
    verbs: Vec<String>,
    subresources: Vec<Subresource>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Subresource {
    subresource: String,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct BareGroup {
    name: String,
    preferred_version: BareVersion,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct BareVersion {
    version: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct BareResource {
    name: String,
    namespaced: bool,
    verbs: Vec<String>,
}

pub(super) async fn kinds(cluster: &Shared) -> Result<Vec<Kind>, Failure> {
    let core = ask(cluster, "/api").await?;
    let named = ask(cluster, "/apis").await?;
    let mut kinds: Vec<Kind> = core.items.iter().chain(&named.items).flat_map(of_group).collect();
    if core.items.is_empty() {
        kinds.extend(bare(&ask(cluster, "/api/v1").await?, "", "v1"));
    }
    for BareGroup { name, preferred_version } in named.groups.iter().take(GROUPS_MAX) {
        let version = &preferred_version.version;
        match ask(cluster, &format!("/apis/{name}/{version}")).await {
            Ok(document) => kinds.extend(bare(&document, name, version)),
            Err(failure) => tracing::debug!(group = name, "cluster: left out: {}", failure.cause),
        }
    }
    kinds.retain(|kind| paths::is_plain(&kind.resource.plural) && paths::is_plain(&kind.version));
    kinds.sort_by(|a, b| a.resource.cmp(&b.resource));
    kinds.dedup_by(|a, b| a.resource == b.resource);
    Ok(kinds)
}

async fn ask(cluster: &Shared, path: &str) -> Result<Document, Failure> {
    let ask = paths::discovery(path).map_err(|error| Failure::malformed(error.to_string()))?;
    let mut body = Vec::new();
    cluster.session.read(Question { ask, within: WITHIN, about: None }, &mut body).await?;
    serde_json::from_slice(&body).map_err(|error| Failure::unread(path, &error))
}

/// The server's preferred version comes first. A stale one is what a dead extension server said long ago.
fn of_group(group: &Group) -> Vec<Kind> {
    let Some(version) = group.versions.iter().find(|version| version.freshness != "Stale") else {
        return Vec::new();
    };
    let served = version.resources.iter().filter(|served| served.verbs.iter().any(|verb| verb == "list"));
    let kind = |served: &Served| {
        let resource = Resource::new(&group.metadata.name, &served.resource);
        let has_status = served.subresources.iter().any(|sub| sub.subresource == "status");
        Kind {
            counts: generation(&resource, has_status),
            resource,
            version: version.version.clone(),
            is_namespaced: served.scope == "Namespaced",
            can_be_watched: served.verbs.iter().any(|verb| verb == "watch"),
        }
    };
    served.map(kind).collect()
}

fn bare(document: &Document, group: &str, version: &str) -> Vec<Kind> {
    let all = &document.resources;
    let listed =
        all.iter().filter(|bare| !bare.name.contains('/') && bare.verbs.iter().any(|verb| verb == "list"));
    let kind = |bare: &BareResource| {
        let resource = Resource::new(group, &bare.name);
        let has_status = all.iter().any(|other| other.name == format!("{}/status", bare.name));
        Kind {
            counts: generation(&resource, has_status),
            resource,
            version: version.to_owned(),
            is_namespaced: bare.namespaced,
            can_be_watched: bare.verbs.iter().any(|verb| verb == "watch"),
        }
    };
    listed.map(kind).collect()
}

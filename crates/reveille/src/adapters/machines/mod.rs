//! The adapter for a roster without a cloud: its machines are the Nodes of its cluster, and the machine records in it.
//!
//! `reveille_machines` reads the objects; [`project`] asks for them. A controller has the Nodes from the watch that it
//! keeps anyway; a command that looks once lists them.

mod project;

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use reveille_cloud::provider::Connected;
use reveille_core::effect::{ReadError, ReadErrorKind};
use reveille_kube::{Cluster, Method, Wish, named_by};
use reveille_machines::inventory::LabelledNode;
use reveille_wire::roster::cluster_mark;

use project::{ClusterProject, Source, Words};

/// A page of records has megabytes, and may come over a slow line.
const WITHIN: Duration = Duration::from_secs(30);

/// Where its Nodes come from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum NodesFrom {
    /// The watch that is kept on this cluster.
    Watch,
    /// A list of its own.
    List,
}

/// The cluster as the place of its machines. It was connected without a cloud ([`Cluster::without_cloud`]).
pub(crate) fn project(cluster: Cluster, from: NodesFrom) -> ClusterProject {
    let is_strict = from == NodesFrom::Watch;
    let words = Words { cluster: cluster_mark(), read_id: named_by, is_strict };
    ClusterProject::new(Arc::new(Api { cluster, from }), words)
}

/// The same as a connection.
pub(crate) fn connected(cluster: Cluster, from: NodesFrom) -> Connected {
    Arc::new(project(cluster, from))
}

struct Api {
    cluster: Cluster,
    from: NodesFrom,
}

impl Source for Api {
    fn nodes(&self) -> BoxFuture<'static, Result<Vec<LabelledNode>, ReadError>> {
        let (cluster, from) = (self.cluster.clone(), self.from);
        async move {
            let nodes = match from {
                NodesFrom::Watch => cluster.held_nodes().await?,
                NodesFrom::List => cluster.listed_nodes().await?,
            };
            let labelled = |it: reveille_kube::LabelledNode| LabelledNode {
                node: it.node,
                labels: it.labels,
                created: it.created,
            };
            Ok(nodes.into_iter().map(labelled).collect())
        }
        .boxed()
    }

    fn get(&self, path: String) -> BoxFuture<'static, Result<Option<Vec<u8>>, ReadError>> {
        let cluster = self.cluster.clone();
        async move {
            let wish =
                Wish { method: Method::GET, target: path.clone(), body: None, about: None, within: WITHIN };
            match cluster.ask(wish).await {
                Ok(granted) => Ok(Some(granted.body)),
                Err(denied) if denied.code == Some(404) => Ok(None),
                Err(denied) => Err(ReadError {
                    kind: match denied.code {
                        Some(401) => ReadErrorKind::Unauthorized,
                        Some(403) => ReadErrorKind::Forbidden,
                        Some(429) => ReadErrorKind::Throttled,
                        _ => ReadErrorKind::Unavailable,
                    },
                    text: Arc::from(format!("cluster: GET {path}: {}", denied.cause)),
                    retry_after: None,
                }),
            }
        }
        .boxed()
    }
}

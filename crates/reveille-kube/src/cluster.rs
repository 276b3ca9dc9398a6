//! The cluster as a whole: log in, watch, look, change, and look once.
//!
//! A [`Cluster`] is a handle that is cheap to clone: one task may watch while others look and perform. All of them share
//! one login and one set of shared texts.

use std::fmt;
use std::sync::Arc;

use reveille_core::effect::{Call, Look, Outcome, ReadError, ReadErrorKind};
use reveille_core::event::{Answer, ClusterFact};
use tokio::sync::mpsc::Sender;

use crate::config::{ClusterConfig, ConnectError};
use crate::labelled::{LabelledNode, NodeBook, unheld};
use crate::sender::FactSender;
use crate::session::Session;
use crate::shared::{Rhythm, Shared};
use crate::{act, identity, leases, listing, node_events, node_watch, probe, query};

/// A cluster's API.
#[derive(Clone)]
pub struct Cluster {
    inner: Arc<Shared>,
}

impl Cluster {
    /// Logs in. Sends nothing to the API server yet; a credential plugin of the kubeconfig may run.
    ///
    /// # Errors
    /// When there is no usable kubeconfig, context or credential.
    pub async fn connect(config: &ClusterConfig) -> Result<Self, ConnectError> {
        let (client, server) = config.client().await?;
        Ok(Self::of(Session::new(client, server, Some(config.clone()))))
    }

    /// A cluster behind a client that is made already: an API server in this very process, or one behind other layers.
    /// `server` names it in texts for people. Cannot log in again by itself.
    pub fn from_client(client: kube::Client, server: &str) -> Self {
        Self::of(Session::new(client, Arc::from(server), None))
    }

    fn of(session: Session) -> Self {
        Self { inner: Arc::new(Shared::new(session, Rhythm::default())) }
    }

    /// The same cluster in another rhythm, with a watch of its own.
    #[must_use]
    pub fn with_rhythm(self, rhythm: Rhythm) -> Self {
        let inner = Shared { rhythm, ..self.apart() };
        Self { inner: Arc::new(inner) }
    }

    /// The same cluster without a cloud beside it, with a watch of its own: the labels of its Nodes are kept, and each
    /// provider ID names an instance.
    #[must_use]
    pub fn without_cloud(self) -> Self {
        let inner = Shared { book: Some(NodeBook::default()), ..self.apart() };
        Self { inner: Arc::new(inner) }
    }

    /// What this handle alone has; where others have it too, the same login and rhythm with nothing read yet.
    fn apart(self) -> Shared {
        Arc::try_unwrap(self.inner)
            .unwrap_or_else(|shared| Shared::new(shared.session.another(), shared.rhythm))
    }

    /// All Nodes as the watch of this cluster holds them.
    ///
    /// # Errors
    /// When the watch has no complete list, for as long as a listing waits.
    pub async fn held_nodes(&self) -> Result<Vec<LabelledNode>, ReadError> {
        let Some(book) = &self.inner.book else {
            return Err(unheld("cluster: the labels of its Nodes are not kept"));
        };
        book.held(self.inner.liveness.while_down()).await
    }

    /// All Nodes, listed now.
    ///
    /// # Errors
    /// When they cannot be read completely, or their labels are not kept.
    pub async fn listed_nodes(&self) -> Result<Vec<LabelledNode>, ReadError> {
        let Some(book) = &self.inner.book else {
            return Err(unheld("cluster: the labels of its Nodes are not kept"));
        };
        let listing = listing::list(&self.inner).await;
        let listing = listing.map_err(|failure| failure.read_error("list nodes", None))?;
        book.holds(Some(&listing.nodes));
        Ok(book.all())
    }

    /// `host:port` of the API server, for people.
    pub fn server(&self) -> &str {
        self.inner.session.server()
    }

    /// Tells everything that happens to nodes, their leases and events about them, until `shutdown` resolves or the
    /// receiver is dropped. Failures are facts (`Failed`) and never end it. One watch per handle at a time.
    ///
    /// In order: `Identity` and one `Synced`, then changes. After the watch lost its place: `Failed(Gap)`, then `Synced` again.
    /// `Alive` follows the rule of the `liveness` module. A full channel slows the reading down; nothing is dropped but `Alive`.
    pub async fn watch(&self, facts: Sender<ClusterFact>, shutdown: impl Future<Output = ()>) {
        let cluster = &*self.inner;
        let sender = FactSender::new(facts.clone());
        cluster.liveness.holds(None);
        cluster.liveness.is_up(false);
        let told = async {
            tokio::select! {
                ended = node_watch::run(cluster, &sender) => ended,
                ended = leases::tell(cluster, &sender) => ended,
                ended = node_events::tell(cluster, &sender) => ended,
                ended = probe::beat(cluster, &sender) => ended,
            }
        };
        tokio::select! {
            biased;
            () = shutdown => tracing::debug!("cluster: watch ended as asked"),
            () = facts.closed() => tracing::debug!("cluster: watch ended, no receiver is left"),
            _ = told => {}
        }
    }

    /// Reads nodes, leases and events once, one after the other: `Identity`, `Synced`, `Leases`, then each `NodeEvent`.
    ///
    /// # Errors
    /// When nodes or leases cannot be read completely. Events that may not be read are left out.
    pub async fn observe_once(&self) -> Result<Vec<ClusterFact>, ReadError> {
        let cluster = &*self.inner;
        let identity = identity::read(cluster)
            .await
            .map_err(|failure| failure.read_error("read namespace kube-system", None))?;
        let nodes = listing::list(cluster).await.map_err(|failure| failure.read_error("list nodes", None))?;
        let leases = leases::read(cluster, &leases::Reading::default())
            .await
            .map_err(|failure| failure.read_error("list node leases", None))?;
        let mut facts = vec![
            identity,
            ClusterFact::Synced(nodes.nodes.into_values().collect()),
            ClusterFact::Leases(leases.leases),
        ];
        match node_events::list(cluster, None).await {
            Ok((events, _)) => facts.extend(events.into_iter().map(ClusterFact::NodeEvent)),
            Err(failure) if failure.kind == ReadErrorKind::Forbidden => {
                tracing::warn!("cluster: events about nodes may not be read: {}", failure.cause);
            }
            Err(failure) => return Err(failure.read_error("list events about nodes", None)),
        }
        Ok(facts)
    }

    /// Reads one thing afresh, past every cache: `Look::Node` and `Look::NodeEvents`. Of `Look::LogEvidence` it answers
    /// the cluster's part, for which a list of certificate requests may be ten seconds old.
    ///
    /// # Errors
    /// When it cannot be told; "it is not there" is an answer. Looks at clouds fail as malformed.
    pub async fn look(&self, look: &Look) -> Result<Answer, ReadError> {
        query::query(&self.inner, look).await
    }

    /// Node objects that a client updates in a loop now, as far as the watch tells; empty while no watch runs.
    pub fn hot_nodes(&self) -> Vec<reveille_hot::Verdict> {
        self.inner.hot_objects.verdicts()
    }

    /// What all parts share.
    pub(crate) fn inner(&self) -> &Shared {
        &self.inner
    }

    /// Makes one change: `Call::DeleteNode`. Others are refused. The caller has checked the fencing number.
    pub async fn perform(&self, call: &Call) -> Outcome {
        act::perform(&self.inner, call).await
    }
}

impl fmt::Debug for Cluster {
    /// Never the login.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cluster").field("server", &self.server()).finish_non_exhaustive()
    }
}

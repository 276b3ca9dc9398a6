//! The Nodes with their labels, for a roster without a cloud: there the Nodes are the machines, and labels tell their pools.
//!
//! ```text
//!  list, watch, look ─▶ read ─▶ labels by name ┐
//!  node_watch ─▶ the Nodes that it holds ──────┴▶ held: all Nodes with their labels, without a request
//!  a command that looks once ─▶ listing ───────▶ listed: the same
//! ```
//!
//! Only such a roster pays for it: with a cloud nothing is kept here. A label is a hint of its writer's, as a tag is: nothing here
//! decides what it means.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use reveille_core::effect::{ReadError, ReadErrorKind};
use reveille_core::model::id::{InstanceId, NodeName};
use reveille_core::model::node::{Node, Provider};
use serde_json::value::RawValue;
use tokio::sync::watch;

use crate::cluster::Cluster;
use crate::listing;
use crate::mapping::{self, Read};
use crate::shared::Shared;

/// A listing waits so long for the first list of the watch, or for the next one after a gap.
const WHOLE_WITHIN: Duration = Duration::from_secs(20);

/// Most labels kept of one Node. The API server bounds none of them but by the length of the object; a large provider sets 40.
const LABELS_MAX: usize = 256;

/// A Node's labels.
pub type Labels = BTreeMap<Arc<str>, Arc<str>>;

/// A Node, and what its labels are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelledNode {
    /// The Node. Its provider ID names an instance in whatever form it has.
    pub node: Arc<Node>,
    /// Its labels.
    pub labels: Arc<Labels>,
    /// `metadata.creationTimestamp`, as it is written.
    pub created: Option<Arc<str>>,
}

/// What is kept of the labels.
#[derive(Clone, Debug, Default)]
struct Label {
    labels: Arc<Labels>,
    created: Option<Arc<str>>,
}

/// What the watch holds, with labels.
#[derive(Debug, Default)]
pub(crate) struct NodeBook {
    state: Mutex<Held>,
    whole: watch::Sender<bool>,
}

#[derive(Debug, Default)]
struct Held {
    labels: BTreeMap<NodeName, Label>,
    nodes: BTreeMap<NodeName, Arc<Node>>,
}

impl NodeBook {
    fn with<T>(&self, change: impl FnOnce(&mut Held) -> T) -> T {
        // Each change leaves the state whole, so a panic elsewhere cannot have broken it.
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The watch has a complete list; `None`: it lost its place.
    pub(crate) fn holds(&self, nodes: Option<&BTreeMap<NodeName, Arc<Node>>>) {
        if let Some(nodes) = nodes {
            self.with(|held| {
                held.nodes.clone_from(nodes);
                held.labels.retain(|name, _| nodes.contains_key(name));
            });
        }
        self.whole.send_replace(nodes.is_some());
    }

    /// A Node is there, or changed.
    pub(crate) fn put(&self, node: &Arc<Node>) {
        self.with(|held| held.nodes.insert(node.name.clone(), node.clone()));
    }

    /// A Node is gone.
    pub(crate) fn gone(&self, name: &NodeName) {
        self.with(|held| {
            held.nodes.remove(name);
            held.labels.remove(name);
        });
    }

    fn all(&self) -> Vec<LabelledNode> {
        self.with(|held| {
            let labelled = |(name, node): (&NodeName, &Arc<Node>)| {
                let Label { labels, created } = held.labels.get(name).cloned().unwrap_or_default();
                LabelledNode { node: node.clone(), labels, created }
            };
            held.nodes.iter().map(labelled).collect()
        })
    }
}

impl Shared {
    /// Reads one Node; with its labels, where they are kept.
    pub(crate) fn read_node(&self, raw: &RawValue) -> Option<Read> {
        let mut read = mapping::read_node(raw, &self.interner)?;
        let Some(book) = &self.book else { return Some(read) };
        name_any(&mut read.node);
        let share = |text: &str| self.interner.share(text);
        let labels = read.labels.take().unwrap_or_default();
        let labels = labels.iter().take(LABELS_MAX).map(|(key, value)| (share(key), share(value))).collect();
        let label = Label { labels: Arc::new(labels), created: read.created.take().map(Arc::from) };
        book.with(|held| held.labels.insert(read.node.name.clone(), label));
        Some(read)
    }
}

/// With a cloud only the spellings of clouds that we know name an instance. Here the machine is told by the same text in its record,
/// so each does.
fn name_any(node: &mut Arc<Node>) {
    if let Provider::Unread(text) = &node.provider
        && text.contains("://")
    {
        let named = Provider::Instance(InstanceId::new(text.clone()));
        Arc::make_mut(node).provider = named;
    }
}

/// The instance that a provider ID names, in whatever form it has.
pub fn named_by(provider_id: &str) -> Option<InstanceId> {
    match mapping::provider(Some(provider_id)) {
        Provider::Instance(id) => Some(id),
        Provider::Unread(text) if text.contains("://") => Some(InstanceId::new(text)),
        Provider::Unread(_) | Provider::Unset => None,
    }
}

impl Cluster {
    /// All Nodes as the watch of this cluster holds them.
    ///
    /// # Errors
    /// When the watch has no complete list, for as long as a listing waits.
    pub async fn held_nodes(&self) -> Result<Vec<LabelledNode>, ReadError> {
        let unheld = |text: &str| ReadError {
            kind: ReadErrorKind::Unavailable,
            text: Arc::from(text),
            retry_after: None,
        };
        let Some(book) = &self.inner().book else {
            return Err(unheld("cluster: the labels of its Nodes are not kept"));
        };
        let mut whole = book.whole.subscribe();
        match tokio::time::timeout(WHOLE_WITHIN, whole.wait_for(|whole| *whole)).await {
            Ok(Ok(_)) => {}
            Ok(Err(_)) | Err(_) => {
                return Err(unheld("cluster: the watch of its Nodes has no complete list"));
            }
        }
        Ok(book.all())
    }

    /// All Nodes, listed now.
    ///
    /// # Errors
    /// When they cannot be read completely.
    pub async fn listed_nodes(&self) -> Result<Vec<LabelledNode>, ReadError> {
        let listing = listing::list(self.inner()).await;
        let listing = listing.map_err(|failure| failure.read_error("list nodes", None))?;
        let Some(book) = &self.inner().book else { return Ok(Vec::new()) };
        book.holds(Some(&listing.nodes));
        Ok(book.all())
    }
}

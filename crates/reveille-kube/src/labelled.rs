//! The Nodes with their labels, for a roster without a cloud: there the Nodes are the machines, and labels tell their pools.
//!
//! ```text
//!  list, watch, look ─▶ read ─▶ labels by name ┐
//!  node_watch ─▶ the Nodes that it holds ──────┴▶ held: all Nodes with their labels, without a request
//!  a command that looks once ─▶ listing ───────▶ listed: the same
//! ```
//!
//! Only such a roster pays for it: with a cloud nothing is kept here. A label is a hint of its writer's, as a tag is:
//! nothing here decides what it means.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use reveille_core::effect::{ReadError, ReadErrorKind};
use reveille_core::model::id::{InstanceId, NodeName};
use reveille_core::model::node::{Node, Provider};
use tokio::sync::watch;

use crate::intern::Interner;
use crate::mapping::{self, Read};

/// A listing waits so long for the first list of the watch, or for the next one after a gap.
const WHOLE_WITHIN: Duration = Duration::from_secs(20);

/// Most labels kept of one Node. The API server bounds them by the length of the object alone; a large provider sets 40.
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

    /// A Node was read: its labels are kept, and its provider ID names an instance in whatever form it has.
    pub(crate) fn note(&self, read: &mut Read, interner: &Interner) {
        name_any(&mut read.node);
        let share = |text: &str| interner.share(text);
        let labels = read.labels.take().unwrap_or_default();
        let labels = labels.iter().take(LABELS_MAX).map(|(key, value)| (share(key), share(value))).collect();
        let label = Label { labels: Arc::new(labels), created: read.created.take().map(Arc::from) };
        self.with(|held| held.labels.insert(read.node.name.clone(), label));
    }

    /// A Node is gone.
    pub(crate) fn gone(&self, name: &NodeName) {
        self.with(|held| {
            held.nodes.remove(name);
            held.labels.remove(name);
        });
    }

    /// All Nodes, once the watch reaches the API server and has a complete list. What it held before is old.
    pub(crate) async fn held(
        &self,
        while_down: impl Future<Output = ()>,
    ) -> Result<Vec<LabelledNode>, ReadError> {
        let mut whole = self.whole.subscribe();
        let ready = async {
            while_down.await;
            whole.wait_for(|whole| *whole).await.is_ok()
        };
        match tokio::time::timeout(WHOLE_WITHIN, ready).await {
            Ok(true) => Ok(self.all()),
            Ok(false) | Err(_) => Err(unheld("cluster: the watch of its Nodes has no complete list")),
        }
    }

    /// All Nodes that are held now.
    pub(crate) fn all(&self) -> Vec<LabelledNode> {
        self.with(|held| {
            let labelled = |(name, node): (&NodeName, &Arc<Node>)| {
                let Label { labels, created } = held.labels.get(name).cloned().unwrap_or_default();
                LabelledNode { node: node.clone(), labels, created }
            };
            held.nodes.iter().map(labelled).collect()
        })
    }
}

/// Why there are no Nodes with labels.
pub(crate) fn unheld(text: &str) -> ReadError {
    ReadError { kind: ReadErrorKind::Unavailable, text: Arc::from(text), retry_after: None }
}

/// With a cloud only the spellings of clouds that we know name an instance. Here the machine is told by the same text in its
/// record, so each does.
fn name_any(node: &mut Arc<Node>) {
    if let (Provider::Unread(_), Some(id)) = (&node.provider, instance(&node.provider)) {
        Arc::make_mut(node).provider = Provider::Instance(id);
    }
}

/// The instance that a provider ID names, in whatever form it has.
pub fn named_by(provider_id: &str) -> Option<InstanceId> {
    instance(&mapping::provider(Some(provider_id)))
}

fn instance(named: &Provider) -> Option<InstanceId> {
    match named {
        Provider::Instance(id) => Some(id.clone()),
        Provider::Unread(text) if text.contains("://") => Some(InstanceId::new(text.clone())),
        Provider::Unread(_) | Provider::Unset => None,
    }
}

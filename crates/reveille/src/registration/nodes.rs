//! Finds the Nodes that a machine claims in a roster's cluster: the Node of its name, and the Nodes that carry its ids.
//!
//! ```text
//!  the cluster's watch ─▶ NodeIndex: the ids and names of all Nodes ─▶ names ──────────┐
//!  a machine's name, in its own roster ────────────────────────────────────────────────┴▶ each Node is read, past every cache
//! ```
//!
//! The API cannot list Nodes by their ids, so this module uses the watch, which is seconds old. It reads each Node that
//! it finds there again, like the Node of the name: a few at a time of each cluster, within 10 s. Before the first list
//! arrives it is unknown which Nodes carry which ids; then the answer of an API server is incomplete. For a machine of
//! another roster only the list counts; where it has no such Node, no API server is asked.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use reveille_core::effect::Look;
use reveille_core::event::{Answer, ClusterFact};
use reveille_core::model::id::{NodeName, NodeUid, RosterName};
use reveille_core::model::node::{Node, Provider};
use reveille_kube::Cluster;
use reveille_registrar::registry::{NodeIds, NodeSaid, is_one_name};
use reveille_registrar::server::NodeAsked;
use reveille_wire::agent::Word;
use reveille_wire::agent::identity::normal;
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

use super::Answers;
use super::rooms::Rooms;

/// The limit for one read.
const WITHIN: Duration = Duration::from_secs(10);
/// The limit for the first list of an API server that answers.
const LISTED_WITHIN: Duration = Duration::from_secs(5);
/// The most Nodes that are read for one machine, beside the Node of its name. One Node of another machine is enough to
/// refuse it; the Nodes beyond the limit count as unknown.
const CARRIERS_MAX: usize = 4;
/// Failed reads of a cluster are logged once in this time.
const TOLD_EVERY: Duration = Duration::from_mins(1);

/// The ids that the Nodes of a cluster carry, from its watch.
#[derive(Clone, Debug, Default)]
pub(crate) struct NodeIndex(Arc<Mutex<Listed>>);

#[derive(Debug, Default)]
struct Listed {
    /// The first complete list has arrived.
    synced: bool,
    nodes: BTreeMap<NodeName, (NodeUid, NodeIds)>,
    by: BTreeMap<Mark, BTreeSet<NodeName>>,
}

/// What a Node is searched by.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Mark {
    /// The Node carries this id.
    Id(String),
    /// The Node's name begins with this label: two names with different first labels are never the same.
    Label(String),
}

impl Mark {
    fn id(word: &str) -> Self {
        Self::Id(normal(word))
    }

    fn label(name: &str) -> Self {
        Self::Label(normal(name).split('.').next().unwrap_or_default().to_owned())
    }
}

impl NodeIndex {
    /// Processes a fact of the watch.
    pub(crate) fn heed(&self, fact: &ClusterFact) {
        let mut listed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match fact {
            ClusterFact::Synced(nodes) => {
                *listed = Listed { synced: true, ..Listed::default() };
                nodes.iter().for_each(|node| listed.put(node));
            }
            ClusterFact::Applied(node) => listed.put(node),
            ClusterFact::Deleted { name, uid }
                if listed.nodes.get(name).is_some_and(|(known, _)| known == uid) =>
            {
                listed.take_out(name);
            }
            _ => {}
        }
    }

    /// The Nodes that carry one of these ids or this name as an id, or have one of these ids as their name;
    /// `None` before the first list.
    fn meant(&self, name: &Word, ids: &[Word]) -> Option<BTreeSet<NodeName>> {
        let listed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let of = |mark: Mark| listed.by.get(&mark).into_iter().flatten();
        let carriers = ids.iter().chain([name]).flat_map(|word| of(Mark::id(word)));
        let called =
            ids.iter().flat_map(|id| of(Mark::label(id)).filter(move |node| is_one_name(node.as_str(), id)));
        listed.synced.then(|| carriers.chain(called).cloned().collect())
    }

    /// The same, with a short wait for the first list.
    async fn meant_soon(&self, name: &Word, ids: &[Word]) -> Option<BTreeSet<NodeName>> {
        let listed = async {
            loop {
                if let Some(names) = self.meant(name, ids) {
                    return names;
                }
                sleep(Duration::from_millis(100)).await;
            }
        };
        timeout(LISTED_WITHIN, listed).await.ok()
    }
}

impl Listed {
    fn put(&mut self, node: &Node) {
        self.take_out(&node.name);
        let ids = ids(node);
        for mark in marks(&ids) {
            self.by.entry(mark).or_default().insert(node.name.clone());
        }
        self.nodes.insert(node.name.clone(), (node.uid.clone(), ids));
    }

    fn take_out(&mut self, name: &NodeName) {
        let Some((_, ids)) = self.nodes.remove(name) else { return };
        for mark in marks(&ids) {
            if let Some(names) = self.by.get_mut(&mark) {
                names.remove(name);
                if names.is_empty() {
                    self.by.remove(&mark);
                }
            }
        }
    }
}

fn marks(node: &NodeIds) -> Vec<Mark> {
    let ids = [&node.instance, &node.system_uuid].into_iter().flatten();
    ids.map(|id| Mark::id(id)).chain([Mark::label(&node.name)]).collect()
}

/// A roster's cluster.
#[derive(Clone)]
pub(super) struct Source {
    cluster: Cluster,
    node_index: NodeIndex,
    answers: Answers,
    unread: Arc<Mutex<Unread>>,
}

/// Counts failed reads.
#[derive(Debug, Default)]
struct Unread {
    told: Option<Instant>,
    /// The number of failures since the last log line.
    times: u64,
}

impl Unread {
    /// How many reads have failed since the last log line, this one included; `None` where the next line is not due yet.
    fn is_due(&mut self, now: Instant) -> Option<u64> {
        self.times += 1;
        let is_over = self.told.is_none_or(|at| now.duration_since(at) >= TOLD_EVERY);
        is_over.then(|| {
            self.told = Some(now);
            std::mem::take(&mut self.times)
        })
    }
}

/// Answers until every sender is gone.
pub(super) async fn serve(mut asked: mpsc::Receiver<NodeAsked>, clusters: BTreeMap<RosterName, Source>) {
    let rooms = Rooms::of(clusters.keys());
    while let Some(NodeAsked { roster, is_own, name, ids, mut reply }) = asked.recv().await {
        // A machine without an answer counts as unknown.
        let Some((inside, source)) = rooms.enter(&roster).zip(clusters.get(&roster).cloned()) else {
            continue;
        };
        tokio::spawn(async move {
            let looks = inside.take_turn(async { source.look_all(is_own, &name, &ids).await });
            tokio::select! {
                said = looks => drop(reply.send(said.unwrap_or(NodeSaid::Unknown))),
                // The requester gave up, so another request gets the permit.
                () = reply.closed() => {}
            }
        });
    }
}

impl Source {
    pub(super) fn new(cluster: Cluster, node_index: NodeIndex, answers: Answers) -> Self {
        Self { cluster, node_index, answers, unread: Arc::default() }
    }

    /// Reads the Node of the name, and the Nodes that carry a claimed id or have one as their name. In another roster the
    /// name does not count.
    async fn look_all(&self, is_own: bool, name: &Word, ids: &[Word]) -> NodeSaid {
        let own = is_own.then(|| NodeName::from(name.as_str()));
        let mut found = Vec::new();
        if let Some(own) = &own {
            let Some(node) = self.look(own.clone()).await else { return NodeSaid::Unknown };
            found.extend(node);
        } else if self.was_never_there(name) {
            return NodeSaid::Absent;
        }
        // The API server answers, so its list arrives in a moment.
        let Some(mut meant) = self.node_index.meant_soon(name, ids).await else { return NodeSaid::Partly };
        meant.retain(|name| Some(name) != own.as_ref());
        if meant.len() > CARRIERS_MAX {
            let why = format!("{} Nodes carry what one machine claims, and are not all read", meant.len());
            self.tell(meant.first(), &why);
            return NodeSaid::Partly;
        }
        for name in meant {
            match self.look(name).await {
                Some(ids) => found.extend(ids),
                None => return NodeSaid::Partly,
            }
        }
        if found.is_empty() { NodeSaid::Absent } else { NodeSaid::Present(found) }
    }

    /// The API server does not answer and never sent a list: the cluster may not have a control plane yet.
    fn was_never_there(&self, name: &Word) -> bool {
        *self.answers.borrow() == Some(false) && self.node_index.meant(name, &[]).is_none()
    }

    /// One Node; `None` where the API server did not answer.
    async fn look(&self, name: NodeName) -> Option<Option<NodeIds>> {
        match timeout(WITHIN, self.cluster.look(&Look::Node(name.clone()))).await {
            Ok(Ok(Answer::Node(node))) => Some(node.map(|node| ids(&node))),
            Ok(Err(why)) => {
                self.tell(Some(&name), &why.text);
                None
            }
            Ok(Ok(_)) | Err(_) => None,
        }
    }

    /// Logs it once in a while, because a client with a token can come as often as it likes.
    fn tell(&self, node: Option<&NodeName>, why: &str) {
        let mut unread = self.unread.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(times) = unread.is_due(Instant::now()) {
            let node = node.map(NodeName::as_str).unwrap_or_default();
            tracing::warn!(node, times, "a machine claims this Node, and the Node cannot be read: {why}");
        }
    }
}

fn ids(node: &Node) -> NodeIds {
    let instance = match &node.provider {
        Provider::Instance(id) => Some(Word::cut(id.as_str())),
        _ => None,
    };
    let system_uuid = node.system_uuid.as_ref().map(|id| Word::cut(id.as_str()));
    NodeIds { name: Word::cut(node.name.as_str()), instance, system_uuid }
}

#[cfg(test)]
mod tests;

//! What a roster's cluster says of the Nodes that a machine claims: the one of its name, and those that carry an id of its.
//!
//! ```text
//!  the cluster's watch ─▶ Roll: which Node carries which id ─▶ names ─┐
//!  a machine's name ──────────────────────────────────────────────────┴▶ each Node is read, past every cache ─▶ NodeSaid
//! ```
//!
//! No API lists Nodes by what they carry, so that the watch is looked up for that; it is seconds old. What it names is read like
//! the Node of the name: a few at a time of each cluster, and whoever asks waits 10 s and no longer. Before the first list is
//! there nobody knows who carries what: then an API server that answers has said a part of it alone.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use reveille_core::effect::Look;
use reveille_core::event::{Answer, ClusterFact};
use reveille_core::model::id::{NodeName, NodeUid, RosterName};
use reveille_core::model::node::{Node, Provider};
use reveille_kube::Cluster;
use reveille_registrar::registry::{NodeIds, NodeSaid};
use reveille_registrar::server::NodeAsked;
use reveille_wire::agent::Word;
use reveille_wire::agent::identity::normal;
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

use super::rooms::Rooms;

/// Longest for one read.
const WITHIN: Duration = Duration::from_secs(10);
/// Longest for the first list of an API server that answers.
const LISTED_WITHIN: Duration = Duration::from_secs(5);
/// Nodes that are read for one machine beside the one of its name: one is enough to refuse it.
const CARRIERS_MAX: usize = 4;

/// Which Nodes of a cluster carry which ids, as its watch tells.
#[derive(Clone, Debug, Default)]
pub(crate) struct Roll(Arc<Mutex<Listed>>);

#[derive(Debug, Default)]
struct Listed {
    /// A whole list was there.
    synced: bool,
    nodes: BTreeMap<NodeName, (NodeUid, NodeIds)>,
    by_id: BTreeMap<String, BTreeSet<NodeName>>,
}

impl Roll {
    /// Takes in what the watch says.
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

    /// The Nodes that carry one of these; none before the first list.
    fn carrying(&self, claimed: &[Word]) -> Option<BTreeSet<NodeName>> {
        let listed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let carriers = claimed.iter().filter_map(|word| listed.by_id.get(&normal(word))).flatten();
        listed.synced.then(|| carriers.cloned().collect())
    }

    /// The same, with a while for the first list to come.
    async fn carrying_soon(&self, claimed: &[Word]) -> Option<BTreeSet<NodeName>> {
        let listed = async {
            loop {
                if let Some(names) = self.carrying(claimed) {
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
        for id in [&ids.instance, &ids.system_uuid].into_iter().flatten() {
            self.by_id.entry(normal(id)).or_default().insert(node.name.clone());
        }
        self.nodes.insert(node.name.clone(), (node.uid.clone(), ids));
    }

    fn take_out(&mut self, name: &NodeName) {
        let Some((_, ids)) = self.nodes.remove(name) else { return };
        for id in [&ids.instance, &ids.system_uuid].into_iter().flatten() {
            if let Some(names) = self.by_id.get_mut(&normal(id)) {
                names.remove(name);
                if names.is_empty() {
                    self.by_id.remove(&normal(id));
                }
            }
        }
    }
}

/// Answers until nobody asks any more.
pub(super) async fn serve(
    mut asked: mpsc::Receiver<NodeAsked>,
    clusters: BTreeMap<RosterName, (Cluster, Roll)>,
) {
    let rooms = Rooms::of(clusters.keys());
    while let Some(NodeAsked { roster, name, claimed, mut reply }) = asked.recv().await {
        // Whoever hears nothing hears that nobody knows.
        let Some((inside, (cluster, roll))) = rooms.enter(&roster).zip(clusters.get(&roster).cloned()) else {
            continue;
        };
        tokio::spawn(async move {
            let looks = inside.take_turn(async { look_all(&cluster, &roll, &name, &claimed).await });
            tokio::select! {
                said = looks => drop(reply.send(said.unwrap_or(NodeSaid::Unknown))),
                // Whoever asked gave up: the turn is somebody else's.
                () = reply.closed() => {}
            }
        });
    }
}

/// The Node of the name, and those that carry what is claimed.
async fn look_all(cluster: &Cluster, roll: &Roll, name: &Word, claimed: &[Word]) -> NodeSaid {
    let own = NodeName::from(name.as_str());
    let Some(found) = look(cluster, own.clone()).await else { return NodeSaid::Unknown };
    let mut found: Vec<NodeIds> = found.into_iter().collect();
    // It answers: its list is there in a moment.
    let Some(carriers) = roll.carrying_soon(claimed).await else { return NodeSaid::Partly };
    for name in carriers.into_iter().filter(|carrier| *carrier != own).take(CARRIERS_MAX) {
        match look(cluster, name).await {
            Some(ids) => found.extend(ids),
            None => return NodeSaid::Partly,
        }
    }
    if found.is_empty() { NodeSaid::Absent } else { NodeSaid::Present(found) }
}

/// One Node; none where nobody could say.
async fn look(cluster: &Cluster, name: NodeName) -> Option<Option<NodeIds>> {
    match timeout(WITHIN, cluster.look(&Look::Node(name.clone()))).await {
        Ok(Ok(Answer::Node(node))) => Some(node.map(|node| ids(&node))),
        Ok(Err(why)) => {
            tracing::warn!(node = %name, "a machine claims this Node, and the Node cannot be read: {}", why.text);
            None
        }
        Ok(Ok(_)) | Err(_) => None,
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
mod tests {
    use reveille_core::model::node::Ready;
    use tokio::sync::oneshot;

    use super::*;
    use crate::fixture;

    #[tokio::test]
    async fn of_a_roster_without_a_cluster_nobody_knows_its_nodes() {
        let (asks, asked) = mpsc::channel(1);
        let serving = tokio::spawn(serve(asked, BTreeMap::new()));
        let (reply, said) = oneshot::channel();
        asks.send(NodeAsked { roster: "prod".into(), name: "w-1".into(), claimed: Vec::new(), reply })
            .await
            .unwrap();
        assert!(said.await.is_err(), "which is the same as that nobody knows");
        drop(asks);
        serving.await.unwrap();
    }

    #[test]
    fn who_carries_an_id_is_found_in_any_spelling_and_as_long_as_the_watch_shows_it() {
        let node = |number: &str, provider: &str, uuid: &str| {
            let node = fixture::node(number, Ready::True);
            let provider = Provider::Instance(provider.into());
            Arc::new(Node { provider, system_uuid: Some(uuid.into()), ..node })
        };
        let roll = Roll::default();
        let found = |claimed: &[&str]| {
            let claimed: Vec<Word> = claimed.iter().map(|word| (*word).into()).collect();
            let names = roll.carrying(&claimed)?;
            Some(names.iter().map(ToString::to_string).collect::<Vec<_>>())
        };
        assert_eq!(found(&["i-1"]), None, "before the first list nobody knows");
        let uuid = "0f3a9c1e-8d2b-4c5d-9e6f-7a8b9c0d1e2f";
        let (one, two) = (node("1", "i-1", uuid), node("2", "i-2", "uuid-2"));
        roll.heed(&ClusterFact::Synced(vec![one.clone(), two.clone()]));
        let names =
            |nodes: &[&Arc<Node>]| Some(nodes.iter().map(|it| it.name.to_string()).collect::<Vec<_>>());
        assert_eq!(found(&["I-1", "x"]), names(&[&one]));
        assert_eq!(found(&["0F3A9C1E8D2B4C5D9E6F7A8B9C0D1E2F", "uuid-2"]), names(&[&one, &two]));
        roll.heed(&ClusterFact::Applied(node("2", "i-22", "uuid-2")));
        assert_eq!((found(&["i-2"]), found(&["i-22"])), (names(&[]), names(&[&two])));
        roll.heed(&ClusterFact::Deleted { name: one.name.clone(), uid: "another".into() });
        assert_eq!(found(&["i-1"]), names(&[&one]), "its successor of before");
        roll.heed(&ClusterFact::Deleted { name: one.name.clone(), uid: one.uid.clone() });
        assert_eq!(found(&["i-1", uuid]), names(&[]));
    }
}

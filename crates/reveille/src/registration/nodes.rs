//! What a roster's cluster says of the Node whose name a machine wants.
//!
//! One Node is read for each question, past every cache, a few at a time over all clusters; whoever asks waits 10 s and no
//! longer.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use reveille_core::effect::Look;
use reveille_core::event::Answer;
use reveille_core::model::id::{NodeName, RosterName};
use reveille_core::model::node::{Node, Provider};
use reveille_kube::Cluster;
use reveille_registrar::registry::{NodeIds, NodeSaid};
use reveille_registrar::server::NodeAsked;
use reveille_wire::agent::Word;
use tokio::sync::{Semaphore, mpsc};
use tokio::time::timeout;

/// Reads at once, of all clusters.
const AT_ONCE: usize = 8;
/// Longest for one.
const WITHIN: Duration = Duration::from_secs(10);

/// Answers until nobody asks any more.
pub(super) async fn serve(mut asked: mpsc::Receiver<NodeAsked>, clusters: BTreeMap<RosterName, Cluster>) {
    let room = Arc::new(Semaphore::new(AT_ONCE));
    while let Some(NodeAsked { roster, name, reply }) = asked.recv().await {
        // Only a semaphore that was closed has no permits, and nobody closes this one.
        let Ok(permit) = room.clone().acquire_owned().await else { return };
        let cluster = clusters.get(&roster).cloned();
        tokio::spawn(async move {
            let said = match cluster {
                Some(cluster) => look(&cluster, &name).await,
                None => NodeSaid::Unknown,
            };
            // Whoever asked may have given up.
            drop(reply.send(said));
            drop(permit);
        });
    }
}

async fn look(cluster: &Cluster, name: &Word) -> NodeSaid {
    let look = Look::Node(NodeName::from(name.as_str()));
    match timeout(WITHIN, cluster.look(&look)).await {
        Ok(Ok(Answer::Node(None))) => NodeSaid::Absent,
        Ok(Ok(Answer::Node(Some(node)))) => NodeSaid::Present(ids(&node)),
        Ok(Err(why)) => {
            tracing::warn!(node = %name, "a machine wants this Node's name, and the Node cannot be read: {}", why.text);
            NodeSaid::Unknown
        }
        Ok(Ok(_)) | Err(_) => NodeSaid::Unknown,
    }
}

fn ids(node: &Node) -> NodeIds {
    let instance = match &node.provider {
        Provider::Instance(id) => Some(Word::cut(id.as_str())),
        _ => None,
    };
    NodeIds { instance, system_uuid: node.system_uuid.as_ref().map(|id| Word::cut(id.as_str())) }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn of_a_roster_without_a_cluster_nobody_knows_its_nodes() {
        let (asks, asked) = mpsc::channel(1);
        let serving = tokio::spawn(serve(asked, BTreeMap::new()));
        let (reply, said) = oneshot::channel();
        asks.send(NodeAsked { roster: "prod".into(), name: "w-1".into(), reply }).await.unwrap();
        assert_eq!(said.await, Ok(NodeSaid::Unknown));
        drop(asks);
        serving.await.unwrap();
    }
}

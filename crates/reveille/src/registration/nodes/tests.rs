//! Tests what is found about the Nodes that a machine claims, in the watch and in a small API server on 127.0.0.1.

use reveille_core::model::node::Ready;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::{oneshot, watch};

use super::*;
use crate::fixture;

const UUID: &str = "0f3a9c1e-8d2b-4c5d-9e6f-7a8b9c0d1e2f";

#[tokio::test]
async fn nodes_of_a_roster_without_a_cluster_are_unknown() {
    let (asks, asked) = mpsc::channel(1);
    let serving = tokio::spawn(serve(asked, BTreeMap::new()));
    let (reply, said) = oneshot::channel();
    let question =
        NodeAsked { roster: "prod".into(), is_own: true, name: "w-1".into(), ids: Vec::new(), reply };
    asks.send(question).await.unwrap();
    assert!(said.await.is_err(), "which means that its Nodes are unknown");
    drop(asks);
    serving.await.unwrap();
}

fn node(number: &str, provider: &str, uuid: &str) -> Arc<Node> {
    let node = fixture::node(number, Ready::True);
    let provider = Provider::Instance(provider.into());
    Arc::new(Node { provider, system_uuid: Some(uuid.into()), ..node })
}

fn words(words: &[&str]) -> Vec<Word> {
    words.iter().map(|word| (*word).into()).collect()
}

fn found(node_index: &NodeIndex, name: &str, ids: &[&str]) -> Option<Vec<String>> {
    let names = node_index.meant(&name.into(), &words(ids))?;
    Some(names.iter().map(ToString::to_string).collect())
}

fn names(nodes: &[&Arc<Node>]) -> Option<Vec<String>> {
    Some(nodes.iter().map(|node| node.name.to_string()).collect())
}

#[test]
fn node_is_found_by_any_spelling_of_its_id_until_it_is_deleted() {
    let node_index = NodeIndex::default();
    let found = |ids: &[&str]| found(&node_index, "x", ids);
    assert_eq!(found(&["i-1"]), None, "before the first list it is unknown");
    let (one, two) = (node("1", "i-1", UUID), node("2", "i-2", "uuid-2"));
    node_index.heed(&ClusterFact::Synced(vec![one.clone(), two.clone()]));
    assert_eq!(found(&["I-1", "x"]), names(&[&one]));
    assert_eq!(found(&["0F3A9C1E8D2B4C5D9E6F7A8B9C0D1E2F", "uuid-2"]), names(&[&one, &two]));
    node_index.heed(&ClusterFact::Applied(node("2", "i-22", "uuid-2")));
    assert_eq!((found(&["i-2"]), found(&["i-22"])), (names(&[]), names(&[&two])));
    node_index.heed(&ClusterFact::Deleted { name: one.name.clone(), uid: "another".into() });
    assert_eq!(found(&["i-1"]), names(&[&one]), "its successor of before");
    node_index.heed(&ClusterFact::Deleted { name: one.name.clone(), uid: one.uid.clone() });
    assert_eq!((found(&["i-1", UUID]), found(&["w-1"])), (names(&[]), names(&[])));
}

#[test]
fn node_is_found_by_name_when_a_machine_gives_it_as_an_id() {
    let node_index = NodeIndex::default();
    let (short, long) = (node("1", "i-1", UUID), node("2.example", "i-2", "uuid-2"));
    node_index.heed(&ClusterFact::Synced(vec![short.clone(), long.clone()]));
    let cases: [(&str, &[&str], &[&Arc<Node>]); 7] = [
        ("x", &["W-1"], &[&short]),
        ("x", &["w-1.anywhere"], &[&short]),
        ("x", &["w-2"], &[&long]),
        ("x", &["w-2.example"], &[&long]),
        ("x", &["w-2.other", "w"], &[]),
        ("i-1", &[], &[&short]),
        // The machine's name counts as a Node's name only in its own roster, where that Node is read anyway.
        ("w-1", &[], &[]),
    ];
    for (name, ids, wanted) in cases {
        assert_eq!(found(&node_index, name, ids), names(wanted), "{name} {ids:?}");
    }
}

/// An API server that has these Nodes, each with the same system UUID, and answers no other request.
async fn api(nodes: &'static [&'static str]) -> (Cluster, tempfile::TempDir) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut bytes = vec![0; 8192];
            let length = stream.read(&mut bytes).await.unwrap_or(0);
            let request = String::from_utf8_lossy(&bytes[..length]).into_owned();
            let path = request.split_whitespace().nth(1).unwrap_or_default();
            let name = path.split('?').next().unwrap_or_default().rsplit('/').next().unwrap_or_default();
            let (code, answer) = if nodes.contains(&name) {
                let node = serde_json::json!({"kind": "Node", "apiVersion": "v1",
                    "metadata": {"name": name, "uid": format!("u-{name}")},
                    "status": {"nodeInfo": {"systemUUID": UUID}}});
                (200, node)
            } else {
                let status = serde_json::json!({"kind": "Status", "apiVersion": "v1", "status": "Failure",
                    "reason": "NotFound", "message": "not found", "code": 404, "details": {"name": name, "kind": "nodes"}});
                (404, status)
            };
            let text = answer.to_string();
            let reply = format!(
                "HTTP/1.1 {code} X\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{text}",
                text.len()
            );
            drop(stream.write_all(reply.as_bytes()).await);
        }
    });
    reached(&address.to_string()).await
}

async fn reached(address: &str) -> (Cluster, tempfile::TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("kubeconfig");
    let text = format!(
        "{{apiVersion: v1, kind: Config, current-context: c, clusters: [{{name: c, cluster: {{server: \"http://{address}\"}}}}], \
         contexts: [{{name: c, context: {{cluster: c, user: u}}}}], users: [{{name: u, user: {{token: t}}}}]}}"
    );
    std::fs::write(&file, text).unwrap();
    let config = reveille_kube::ClusterConfig { kubeconfig: Some(file), ..Default::default() };
    (Cluster::connect(&config).await.unwrap(), directory)
}

fn source(cluster: &Cluster, node_index: &NodeIndex, answers: Option<bool>) -> Source {
    Source::new(cluster.clone(), node_index.clone(), watch::channel(answers).1)
}

fn carried(said: NodeSaid) -> Vec<String> {
    let NodeSaid::Present(nodes) = said else { panic!("{said:?}") };
    nodes.iter().map(|node| node.name.to_string()).collect()
}

/// An attacker with the kubelets of several Nodes lets each of them claim the victim's hardware.
#[tokio::test]
async fn more_nodes_than_are_read_are_not_taken_for_none() {
    let (cluster, _directory) = api(&["w-1", "w-2", "w-3", "w-4", "w-5", "w-6"]).await;
    let node_index = NodeIndex::default();
    let source = source(&cluster, &node_index, Some(true));
    for (count, is_read) in [(5, true), (6, false)] {
        let nodes = (1..=count).map(|number| node(&number.to_string(), &format!("i-{number}"), UUID));
        node_index.heed(&ClusterFact::Synced(nodes.collect()));
        let said = source.look_all(true, &"w-1".into(), &words(&[UUID])).await;
        if is_read {
            assert_eq!(carried(said), ["w-1", "w-2", "w-3", "w-4", "w-5"]);
        } else {
            assert_eq!(said, NodeSaid::Partly);
        }
    }
}

#[tokio::test]
async fn in_another_roster_an_id_is_looked_up_and_a_name_is_not() {
    let (cluster, _directory) = api(&["w-1", "w-2"]).await;
    let node_index = NodeIndex::default();
    node_index.heed(&ClusterFact::Synced(vec![node("1", "i-1", UUID), node("2", "i-2", "uuid-2")]));
    let there = source(&cluster, &node_index, Some(true));
    let (name, uuid) = (Word::from("w-2"), words(&[UUID]));
    assert_eq!(carried(there.look_all(false, &name, &uuid).await), ["w-1"]);
    assert_eq!(carried(there.look_all(true, &name, &uuid).await), ["w-2", "w-1"]);
    assert_eq!(there.look_all(false, &name, &[]).await, NodeSaid::Absent);
    // The API server is away for a moment, and its list exists. A Node outside the list needs no wait, and a
    // Node in it cannot be read.
    let (cluster, _directory) = reached("127.0.0.1:1").await;
    let away = source(&cluster, &node_index, Some(false));
    assert_eq!(away.look_all(false, &name, &[]).await, NodeSaid::Absent);
    assert_eq!(away.look_all(false, &name, &uuid).await, NodeSaid::Partly);
    // The API server never answered, or its state is unknown.
    let never = NodeIndex::default();
    assert_eq!(source(&cluster, &never, Some(false)).look_all(false, &name, &uuid).await, NodeSaid::Absent);
    assert_eq!(source(&cluster, &never, None).look_all(false, &name, &uuid).await, NodeSaid::Partly);
}

#[test]
fn reads_that_fail_are_told_once_a_minute_with_how_often() {
    let (mut unread, begun) = (Unread::default(), Instant::now());
    assert_eq!(unread.is_due(begun), Some(1));
    assert!((0..500).all(|_| unread.is_due(begun).is_none()));
    assert_eq!(unread.is_due(begun + TOLD_EVERY), Some(501));
}

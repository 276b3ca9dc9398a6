//! The Nodes of a cluster without a cloud, with their labels: what the watch holds is all, and nothing is asked twice.
#![allow(clippy::unwrap_used, reason = "in a test, what cannot be is a failure")]

mod support;

use reveille_core::event::ClusterFact;
use reveille_core::model::node::Provider;
use reveille_kube::{LabelledNode, named_by};
use serde_json::json;
use support::{FactStream, node, three};

fn pools(nodes: &[LabelledNode]) -> Vec<(&str, Option<&str>)> {
    nodes.iter().map(|it| (it.node.name.as_str(), it.labels.get("pool").map(|pool| &**pool))).collect()
}

#[tokio::test(start_paused = true)]
async fn labels_follow_the_watch_without_a_request() {
    let api = three();
    api.edit("a", |node| node["metadata"]["labels"] = json!({"pool": "a"}));
    let cluster = api.cluster().without_cloud();
    let mut told = FactStream::of(cluster.clone());
    let names = told.synced().await;
    let before = api.requests().len();
    let held = cluster.held_nodes().await.unwrap();
    assert_eq!(held.len(), names.len());
    assert_eq!(pools(&held)[0], ("a", Some("a")));
    // Nothing of the Node that the engine takes has changed: no fact tells of it.
    api.edit("a", |node| node["metadata"]["labels"] = json!({"pool": "b"}));
    api.put(node("w-9", "u9"));
    told.next(|fact| matches!(fact, ClusterFact::Applied(node) if node.name.as_str() == "w-9").then_some(()))
        .await;
    let held = cluster.held_nodes().await.unwrap();
    assert_eq!(pools(&held)[0], ("a", Some("b")));
    assert!(pools(&held).contains(&("w-9", None)));
    api.delete("a");
    told.next(|fact| matches!(fact, ClusterFact::Deleted { name, .. } if name.as_str() == "a").then_some(()))
        .await;
    let held = cluster.held_nodes().await.unwrap();
    assert!(pools(&held).iter().all(|(name, _)| *name != "a"), "{held:?}");
    let lists = api.requests().split_off(before);
    let is_list =
        |(_, path): &(String, String)| path.starts_with("/api/v1/nodes?") && !path.contains("watch");
    let whole = |request: &(String, String)| is_list(request) && !request.1.contains("limit=1&");
    assert!(!lists.iter().any(|request| whole(request) && !request.1.contains("limit=1")), "{lists:?}");
}

/// A watch that has never had a list, or has lost its place, holds nothing that could count as all Nodes.
#[tokio::test(start_paused = true)]
async fn nothing_is_held_before_the_first_list() {
    let api = three();
    let cluster = api.cluster().without_cloud();
    let error = cluster.held_nodes().await.unwrap_err();
    assert!(error.text.contains("no complete list"), "{error}");
    assert!(api.cluster().held_nodes().await.is_err(), "with a cloud no labels are kept");
}

#[tokio::test(start_paused = true)]
async fn each_provider_id_names_a_machine_without_a_cloud() {
    let api = three();
    api.edit("a", |node| node["spec"]["providerID"] = json!("vsphere://4211"));
    let provider = |nodes: &[LabelledNode]| nodes[0].node.provider.clone();
    let alone = api.cluster().without_cloud().listed_nodes().await.unwrap();
    assert_eq!(provider(&alone), Provider::Instance("vsphere://4211".into()));
    assert_eq!(named_by("vsphere://4211"), Some("vsphere://4211".into()));
    assert_eq!(named_by("aws:///eu-central-1a/i-0123456789abcdef0"), Some("i-0123456789abcdef0".into()));
    assert_eq!((named_by(""), named_by("no id")), (None, None));
    let mut told = FactStream::by(&api);
    let unread = told
        .next(|fact| match fact {
            ClusterFact::Synced(nodes) => Some(nodes[0].provider.clone()),
            _ => None,
        })
        .await;
    assert_eq!(
        unread,
        Provider::Unread("vsphere://4211".into()),
        "beside a cloud it names none of its instances"
    );
}

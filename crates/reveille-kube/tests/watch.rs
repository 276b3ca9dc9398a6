//! The watch against an API server in this process, on a paused clock: what is told, when, and what is never told.
#![allow(clippy::unwrap_used, reason = "in a test, what cannot be is a failure")]

mod support;

use std::time::Duration;

use reveille_core::effect::ReadErrorKind;
use reveille_core::event::ClusterFact;
use reveille_core::model::lease::Renewal;
use reveille_core::model::node::{Provider, Ready};
use serde_json::json;
use support::{Api, FactStream, Refuse, alive, event, failed, news, node, three, word};

#[tokio::test(start_paused = true)]
async fn all_pages_make_one_complete_list() {
    let api = Api::default();
    for number in 0..1201 {
        api.put(node(&format!("node-{number:04}"), "u"));
    }
    let names = FactStream::by(&api).synced().await;
    assert_eq!(names.len(), 1201);
    assert!(names.is_sorted());
    let pages = api
        .requests()
        .iter()
        .filter(|(_, target)| target.contains("/nodes") && target.contains("limit=500"))
        .count();
    assert_eq!(pages, 3);
}

#[tokio::test(start_paused = true)]
async fn an_empty_list_is_told_as_one() {
    assert!(FactStream::by(&Api::default()).synced().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_quiet_cluster_is_alive_all_the_time_and_costs_few_requests() {
    let api = three();
    let mut told = FactStream::by(&api);
    let hour = told.during(3600).await;
    let beats = alive(&hour);
    let pauses: Vec<u64> = beats.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(beats[0] <= 10, "{beats:?}");
    assert!(pauses.iter().all(|pause| *pause <= 12), "{pauses:?}");
    // Once more quietly listed after half an hour, and nothing of it told.
    assert_eq!(news(&hour), ["Synced(3)"]);
    let requests = api.requests().len();
    // Per minute: six watches, six lists of leases, twelve counts; and a watch of the events every four minutes.
    assert!((1400..1500).contains(&requests), "{requests} requests in an hour");
}

#[tokio::test(start_paused = true)]
async fn heartbeats_are_not_told_and_changes_are() {
    let api = three();
    let mut told = FactStream::by(&api);
    told.synced().await;
    for beat in 0..50 {
        api.edit("a", |a| a["status"]["conditions"][0]["lastHeartbeatTime"] = json!(format!("t{beat}")));
    }
    assert!(news(&told.during(25).await).is_empty());
    api.edit("a", |a| a["status"]["conditions"][0]["status"] = json!("Unknown"));
    let ready =
        told.next(|fact| if let ClusterFact::Applied(node) = fact { Some(node.ready) } else { None }).await;
    assert_eq!(ready, Ready::Unknown);
    api.put(node("d", "uid-d"));
    api.delete("b");
    assert_eq!(news(&told.during(5).await), ["Applied(d)", "Deleted(b)"]);
}

#[tokio::test(start_paused = true)]
async fn a_successor_of_the_same_name_is_told_with_its_own_uid() {
    let api = three();
    let mut told = FactStream::by(&api);
    told.synced().await;
    api.delete("b");
    api.put(node("b", "uid-new"));
    let facts = told.during(5).await;
    let uids: Vec<String> = facts
        .iter()
        .filter_map(|(_, fact)| match fact {
            ClusterFact::Deleted { uid, .. } => Some(format!("-{uid}")),
            ClusterFact::Applied(node) => Some(format!("+{}", node.uid)),
            _ => None,
        })
        .collect();
    assert_eq!(uids, ["-uid-b", "+uid-new"]);
}

#[tokio::test(start_paused = true)]
async fn a_late_delete_of_a_predecessor_takes_nothing_away() {
    let api = three();
    let mut told = FactStream::by(&api);
    told.synced().await;
    api.tell_deleted(node("b", "uid-before"));
    let facts = told.during(60).await;
    assert_eq!(news(&facts), ["Deleted(b)"]);
    let uid = facts.iter().find_map(|(_, fact)| match fact {
        ClusterFact::Deleted { uid, .. } => Some(uid.to_string()),
        _ => None,
    });
    assert_eq!(
        uid.as_deref(),
        Some("uid-before"),
        "by this uid the listener knows that its own b was not deleted"
    );
}

#[tokio::test(start_paused = true)]
async fn one_poisoned_node_costs_only_its_poisoned_fields() {
    let api = three();
    let mut poisoned = node("b", "uid-b");
    poisoned["spec"]["podCIDRs"] = json!("not a list");
    poisoned["spec"]["taints"] = json!([{"key": 7}]);
    poisoned["status"]["conditions"] =
        json!([{"type": 1}, {"type": "Ready", "status": "False", "reason": "R"}]);
    api.put(poisoned.clone());
    api.put(json!({"metadata": "nothing", "spec": 3}));
    let mut told = FactStream::by(&api);
    let nodes = told
        .next(|fact| if let ClusterFact::Synced(nodes) = fact { Some(nodes.clone()) } else { None })
        .await;
    assert_eq!(nodes.iter().map(|node| node.name.to_string()).collect::<Vec<_>>(), ["a", "b", "c"]);
    let b = &nodes[1];
    assert_eq!(b.ready, Ready::False);
    assert!(b.pod_ranges.is_empty());
    assert!(b.intent.paused, "taints that cannot be read may mean that another client paused the node");
    assert!(matches!(b.provider, Provider::Instance(_)));
    // The nameless one is counted, so the count agrees.
    assert!(!alive(&told.during(30).await).is_empty());
    poisoned["spec"]["providerID"] = json!(["x"]);
    api.put(poisoned);
    api.put(node("d", "uid-d"));
    let after = told.during(5).await;
    assert_eq!(news(&after), ["Applied(b)", "Applied(d)"]);
    let provider = after.iter().find_map(|(_, fact)| match fact {
        ClusterFact::Applied(node) if node.name.as_str() == "b" => Some(node.provider.clone()),
        _ => None,
    });
    assert!(matches!(provider, Some(Provider::Unread(_))), "a field that cannot be read is not an empty one");
}

#[tokio::test(start_paused = true)]
async fn leases_are_told_whole_and_never_from_before() {
    let api = three();
    let mut told = FactStream::by(&api);
    let renewed = |fact: &ClusterFact| match fact {
        ClusterFact::Leases(leases) => {
            Some(leases.iter().map(|(name, at)| (name.to_string(), at)).collect::<Vec<_>>())
        }
        _ => None,
    };
    assert_eq!(told.next(renewed).await, ["a", "b", "c"].map(|name| (name.to_owned(), Renewal::of("t1"))));
    api.leases(&[("a", "t2"), ("c", "t2")]);
    assert_eq!(told.next(renewed).await, ["a", "c"].map(|name| (name.to_owned(), Renewal::of("t2"))));
    api.lease_version(Some(3));
    api.leases(&[("a", "t1"), ("c", "t1")]);
    let told_then = told.during(11).await;
    assert!(told_then.iter().all(|(_, fact)| renewed(fact).is_none()));
    api.lease_version(None);
    api.fault(|faults| faults.refusals.push(("/leases", Refuse::Status(403, "Forbidden", None))));
    let error = told.next(failed).await;
    assert_eq!(error.kind, ReadErrorKind::Forbidden);
    assert!(error.text.starts_with("cluster: cannot list node leases: 403"), "{}", error.text);
}

#[tokio::test(start_paused = true)]
async fn events_are_told_oldest_first_and_then_as_they_come() {
    let api = three();
    api.say(event("e2", "c", "RemovingNode", "2026-01-01T10:00:05Z"));
    api.say(event("e1", "c", "DeletingNode", "2026-01-01T10:00:01Z"));
    api.say(event("e3", "a", "NodeHasSufficientMemory", "2026-01-01T10:00:09Z"));
    let mut told = FactStream::by(&api);
    let about = |fact: &ClusterFact| {
        if let ClusterFact::NodeEvent(event) = fact { Some(event.clone()) } else { None }
    };
    let first = told.next(about).await;
    assert_eq!(&*first.reason, "DeletingNode");
    assert_eq!(first.uid, None, "the writer put the node's name where its uid belongs");
    assert_eq!(&*first.reporter, "cloud-node-lifecycle-controller");
    assert_eq!(&*told.next(about).await.reason, "RemovingNode");
    api.say(event("e4", "b", "Starting", "2026-01-01T10:01:00Z"));
    api.say(event("e5", "b", "ScaleDown", "2026-01-01T10:01:01Z"));
    let next = told.next(about).await;
    assert_eq!((&*next.reason, next.node.as_str()), ("ScaleDown", "b"));
}

#[tokio::test(start_paused = true)]
async fn events_that_may_not_be_read_cost_only_themselves() {
    let api = three();
    api.fault(|faults| faults.refusals.push(("/events", Refuse::Status(403, "Forbidden", None))));
    let mut told = FactStream::by(&api);
    let hour = told.during(3600).await;
    assert_eq!(news(&hour), ["Synced(3)"]);
    assert!(alive(&hour).len() > 300);
    let asked = api.requests().iter().filter(|(_, target)| target.contains("/events")).count();
    assert!((6..=8).contains(&asked), "asked {asked} times in an hour");
}

#[tokio::test(start_paused = true)]
async fn a_slow_listener_loses_nothing_but_heartbeats() {
    let api = three();
    let (facts, mut told) = tokio::sync::mpsc::channel(1);
    let cluster = api.cluster();
    let watching = tokio::spawn(async move { cluster.watch(facts, std::future::pending()).await });
    for number in 0..20 {
        api.put(node(&format!("late-{number:02}"), "u"));
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    let mut names = Vec::new();
    while let Ok(Some(fact)) = tokio::time::timeout(Duration::from_secs(30), told.recv()).await {
        match fact {
            ClusterFact::Synced(nodes) => names.extend(nodes.iter().map(|node| node.name.to_string())),
            ClusterFact::Applied(node) => names.push(node.name.to_string()),
            _ => {}
        }
        if names.len() == 23 {
            break;
        }
    }
    names.sort();
    names.dedup();
    assert_eq!(names.len(), 23, "{names:?}");
    drop(told);
    tokio::time::timeout(Duration::from_secs(1), watching).await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn shutdown_ends_the_watch_at_once() {
    let api = three();
    let (facts, mut told) = tokio::sync::mpsc::channel(64);
    let cluster = api.cluster();
    cluster.watch(facts, tokio::time::sleep(Duration::from_secs(7))).await;
    let mut words = Vec::new();
    while let Some(fact) = told.recv().await {
        words.push(word(&fact));
    }
    assert!(words.contains(&"Synced(3)".to_owned()));
}

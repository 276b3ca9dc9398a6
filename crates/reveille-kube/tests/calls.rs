//! Looks, calls, one-time observation, and the rights they need, against an API server in this process.
#![allow(clippy::unwrap_used, reason = "in a test, what cannot be is a failure")]

mod support;

use std::collections::BTreeSet;
use std::sync::Arc;

use reveille_core::effect::{Call, Look, Outcome, ReadErrorKind};
use reveille_core::event::Answer;
use reveille_core::model::id::{CloudName, InstanceId, NodeName, NodeUid, RequestId};
use reveille_core::model::instance::Mark;
use reveille_core::model::log_evidence::EvidenceQuery;
use reveille_core::model::roster::Ownership;
use reveille_core::model::time::Span;
use reveille_core::remedies::{DeleteNode, Reboot};
use reveille_kube::rbac::RULES;
use reveille_kube::{BootstrapToken, Claim, Renewal};
use serde_json::json;
use support::{Api, FactStream, Refuse, event, node, word};

fn one() -> Api {
    let api = Api::default();
    api.put(node("a", "uid-a"));
    api.leases(&[("a", "t1")]);
    api
}

fn words(node: &str) -> Look {
    let (node, console_counts) = (NodeName::from(node), true);
    let evidence_query = EvidenceQuery { node: Some(node.clone()), asks_as: node, console_counts };
    Look::LogEvidence(CloudName::from("os"), InstanceId::from("i"), Arc::new(evidence_query))
}

fn delete(uid: &str) -> Call {
    Call::DeleteNode(DeleteNode { name: NodeName::from("a"), uid: NodeUid::from(uid), boot_id: None })
}

#[tokio::test(start_paused = true)]
async fn node_lookup_reads_the_store_and_404_means_no_node() {
    let api = one();
    let cluster = api.cluster();
    let found = cluster.look(&Look::Node(NodeName::from("a"))).await.unwrap();
    assert!(matches!(found, Answer::Node(Some(node)) if node.uid.as_str() == "uid-a"));
    assert_eq!(api.requests(), [("GET".to_owned(), "/api/v1/nodes/a".to_owned())]);
    let gone = cluster.look(&Look::Node(NodeName::from("b"))).await.unwrap();
    assert_eq!(gone, Answer::Node(None));
}

#[tokio::test(start_paused = true)]
async fn what_is_not_the_apis_own_404_is_no_answer() {
    let table = [
        (Refuse::Page(404, "404 page not found"), ReadErrorKind::Malformed),
        (Refuse::Status(404, "NotFound", None), ReadErrorKind::Malformed),
        (Refuse::Status(403, "Forbidden", None), ReadErrorKind::Forbidden),
        (Refuse::Status(429, "TooManyRequests", Some(3)), ReadErrorKind::Throttled),
        (Refuse::Page(200, "{}"), ReadErrorKind::Malformed),
        (Refuse::Hang, ReadErrorKind::TimedOut),
    ];
    for (refuse, kind) in table {
        let api = one();
        api.fault(|faults| faults.refusals.push(("/nodes/a", refuse)));
        let error = api.cluster().look(&Look::Node(NodeName::from("a"))).await.unwrap_err();
        assert_eq!(error.kind, kind, "{}", error.text);
        assert!(error.text.starts_with("cluster: cannot read node a: "), "{}", error.text);
        assert!(!error.text.contains("Next try"), "a look has no next try of its own: {}", error.text);
    }
}

#[tokio::test(start_paused = true)]
async fn a_name_that_would_leave_its_path_is_never_sent() {
    let api = one();
    let cluster = api.cluster();
    let name = NodeName::from("a/../b");
    assert!(cluster.look(&Look::Node(name.clone())).await.is_err());
    assert!(cluster.look(&Look::NodeEvents(name.clone())).await.is_err());
    let Ok(Answer::Said(said)) = cluster.look(&words("a/../b")).await else {
        panic!("it fails by its parts")
    };
    assert_eq!(
        said.unread.iter().map(|unread| unread.source.to_string()).collect::<Vec<_>>(),
        ["node", "events"]
    );
    let outcome =
        cluster.perform(&Call::DeleteNode(DeleteNode { name, uid: NodeUid::from("u"), boot_id: None })).await;
    assert!(matches!(outcome, Outcome::Refused { .. }));
    assert!(api.requests().iter().all(|(_, target)| target.contains("certificatesigningrequests")));
}

#[tokio::test(start_paused = true)]
async fn events_of_one_node_come_oldest_first_whatever_they_say() {
    let api = one();
    api.say(event("e2", "a", "Starting", "2026-01-01T10:00:05Z"));
    api.say(event("e1", "a", "NodeReady", "2026-01-01T10:00:01Z"));
    api.say(event("e3", "b", "Starting", "2026-01-01T10:00:03Z"));
    let answer = api.cluster().look(&Look::NodeEvents(NodeName::from("a"))).await.unwrap();
    let Answer::NodeEvents(events) = answer else { panic!("{answer:?}") };
    assert_eq!(events.iter().map(|event| &*event.reason).collect::<Vec<_>>(), ["NodeReady", "Starting"]);
}

#[tokio::test(start_paused = true)]
async fn other_worlds_questions_are_refused_without_a_request() {
    let api = one();
    let cluster = api.cluster();
    let (cloud, instance) = (CloudName::from("os"), InstanceId::from("i"));
    assert!(cluster.look(&Look::Instance(cloud.clone(), instance.clone())).await.is_err());
    let owned = Ownership::of_cluster(Mark::Tag("k8s-cluster=prod".into()));
    let outcome = cluster.perform(&Call::Reboot(Reboot { cloud, instance, hard: true, owned })).await;
    assert!(matches!(outcome, Outcome::Refused { .. }), "{outcome:?}");
    assert!(api.requests().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_loop_of_ours_that_does_not_end_is_stopped_at_the_door() {
    let api = one();
    let cluster = api.cluster();
    // Two handles share the login, so that they share the budget.
    let handles = [cluster.clone(), cluster.clone().with_rhythm(reveille_kube::Rhythm::default())];
    let mut refused = None;
    for nth in 0..1_000 {
        let outcome = handles[nth % 2].perform(&delete("uid-before")).await;
        if let Outcome::Failed { text, retry_after } = outcome {
            assert!(text.contains("UpdateStorm: /api/v1/nodes/a"), "{text}");
            assert!(retry_after.is_some());
            refused = Some(nth);
        }
    }
    assert_eq!(api.bodies().len(), 12, "of a thousand tries");
    assert!(refused.is_some());
}

#[tokio::test(start_paused = true)]
async fn a_delete_reaches_only_the_node_it_was_decided_for() {
    let api = one();
    let cluster = api.cluster();
    let moved = cluster.perform(&delete("uid-before")).await;
    assert!(matches!(moved, Outcome::Moved { .. }), "{moved:?}");
    assert_eq!(cluster.perform(&delete("")).await.to_string().split(':').next(), Some("refused"));
    let done = cluster.perform(&delete("uid-a")).await;
    assert_eq!(done, Outcome::Accepted { request: Some(RequestId::from("audit-7")) });
    let again = cluster.perform(&delete("uid-a")).await;
    assert!(matches!(again, Outcome::AlreadySo { .. }), "{again:?}");
    let sent: Vec<_> = api.bodies().iter().map(|body| body["preconditions"]["uid"].clone()).collect();
    assert_eq!(sent, [json!("uid-before"), json!("uid-a"), json!("uid-a")]);
}

/// A kubelet of another machine took the object over, and the watch has not told of it: same uid, another boot.
#[tokio::test(start_paused = true)]
async fn node_that_another_boot_has_taken_over_is_not_deleted() {
    let api = one();
    let boot = |boot: &str| {
        Call::DeleteNode(DeleteNode {
            name: NodeName::from("a"),
            uid: NodeUid::from("uid-a"),
            boot_id: Some(boot.into()),
        })
    };
    let mut taken = node("a", "uid-a");
    taken["status"]["nodeInfo"] = json!({"bootID": "b-2"});
    api.put(taken);
    let outcome = api.cluster().perform(&boot("b-1")).await;
    assert!(
        matches!(&outcome, Outcome::NotSent { text, .. } if text.contains("another machine")),
        "{outcome:?}"
    );
    assert!(api.bodies().is_empty(), "nothing was sent");
    let outcome = api.cluster().perform(&boot("b-2")).await;
    assert!(matches!(outcome, Outcome::Accepted { .. }), "{outcome:?}");
    // What cannot be read is not deleted.
    api.put(node("a", "uid-a"));
    api.fault(|faults| faults.refusals.push(("/nodes/a", Refuse::Status(403, "Forbidden", None))));
    let outcome = api.cluster().perform(&boot("b-2")).await;
    assert!(matches!(outcome, Outcome::Denied { .. }), "{outcome:?}");
}

#[tokio::test(start_paused = true)]
async fn a_delete_that_was_not_answered_may_have_happened() {
    let table = [
        (Refuse::Hang, "Unknown"),
        (Refuse::Stall, "Unknown"),
        (Refuse::Status(504, "Timeout", None), "Unknown"),
        (Refuse::Status(403, "Forbidden", None), "Denied"),
        (Refuse::Page(404, "404 page not found"), "Refused"),
        (Refuse::Status(429, "TooManyRequests", Some(9)), "Failed"),
        (Refuse::Status(503, "ServiceUnavailable", None), "Failed"),
    ];
    for (refuse, wanted) in table {
        let api = one();
        let throttled = matches!(refuse, Refuse::Status(429, ..));
        api.fault(|faults| faults.refusals.push(("/nodes/a", refuse)));
        let outcome = api.cluster().perform(&delete("uid-a")).await;
        assert!(format!("{outcome:?}").starts_with(wanted), "{outcome:?}");
        let waits =
            matches!(&outcome, Outcome::Failed { retry_after: Some(span), .. } if *span == Span::from_s(9));
        assert_eq!(waits, throttled, "{outcome:?}");
        assert_eq!(api.requests().len(), 1, "a write is never repeated here");
    }
}

#[tokio::test(start_paused = true)]
async fn looking_once_is_complete_or_an_error() {
    let api = one();
    api.say(event("e1", "z", "DeletingNode", "2026-01-01T10:00:01Z"));
    let told = api.cluster().observe_once().await.unwrap();
    assert_eq!(
        told.iter().map(word).collect::<Vec<_>>(),
        ["Identity(uid-of-kube-system)", "Synced(1)", "Leases(1)", "NodeEvent(DeletingNode z)"]
    );

    api.fault(|faults| faults.refusals = vec![("/events", Refuse::Status(403, "Forbidden", None))]);
    let told = api.cluster().observe_once().await.unwrap();
    assert_eq!(
        told.iter().map(word).collect::<Vec<_>>(),
        ["Identity(uid-of-kube-system)", "Synced(1)", "Leases(1)"]
    );

    api.fault(|faults| faults.refusals = vec![("/leases", Refuse::Status(500, "InternalError", None))]);
    let error = api.cluster().observe_once().await.unwrap_err();
    assert!(error.text.starts_with("cluster: cannot list node leases: 500"), "{}", error.text);
}

/// Everything the adapter can send is sent, and what it needs is held against the list of rights.
#[tokio::test(start_paused = true)]
async fn the_rights_are_exactly_those_that_are_used() {
    let api = one();
    let cluster = api.cluster();
    cluster.observe_once().await.unwrap();
    cluster.look(&Look::Node(NodeName::from("a"))).await.unwrap();
    cluster.look(&Look::NodeEvents(NodeName::from("a"))).await.unwrap();
    cluster.look(&words("a")).await.unwrap();
    FactStream::of(cluster.clone()).during(4000).await;
    cluster.perform(&delete("uid-a")).await;
    let token = BootstrapToken { id: "abcdef", secret: "0123456789abcdef", until: "", description: "" };
    // What this API answers is not asked here.
    drop(cluster.make_bootstrap_token(&token).await);
    drop(cluster.drop_bootstrap_token("abcdef").await);
    drop(cluster.read_claim("prod").await);
    let renewal = Renewal { holder: "here", let_go_by: None, at: "", lasts_s: 300 };
    let claim = Claim { holder: None, let_go_by: None, version: "7".into() };
    drop(cluster.write_claim("prod", None, renewal).await);
    drop(cluster.write_claim("prod", Some(&claim), renewal).await);
    let used: BTreeSet<String> =
        api.requests().iter().map(|(method, target)| right(method, target)).collect();
    let listed: BTreeSet<String> = RULES
        .iter()
        .flat_map(|rule| {
            let place = rule.namespace.unwrap_or("*");
            rule.verbs.iter().map(move |verb| format!("{verb} {}/{} in {place}", rule.group, rule.resource))
        })
        .collect();
    assert_eq!(used, listed);
}

/// The right that a request needs, as kube-apiserver derives it from method and path.
fn right(method: &str, target: &str) -> String {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
    let (group, rest) = match parts.as_slice() {
        ["api", _version, rest @ ..] => ("", rest),
        ["apis", group, _version, rest @ ..] => (*group, rest),
        _ => panic!("{target} is no resource"),
    };
    let (place, resource, name) = match rest {
        // kube-apiserver puts a namespace into itself (`RequestInfoFactory`), so that a Role in it can allow to read it.
        ["namespaces", place] => (*place, "namespaces", Some(place)),
        ["namespaces", place, resource, name @ ..] => (*place, *resource, name.first()),
        [resource, name @ ..] => ("*", *resource, name.first()),
        [] => panic!("{target} is no resource"),
    };
    let verb = match (method, name, query.contains("watch=true")) {
        ("DELETE", Some(_), _) => "delete",
        ("POST", None, _) => "create",
        ("PUT", Some(_), _) => "update",
        ("GET", Some(_), _) => "get",
        ("GET", None, true) => "watch",
        ("GET", None, false) => "list",
        other => panic!("{other:?}"),
    };
    format!("{verb} {group}/{resource} in {place}")
}

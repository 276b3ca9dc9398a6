//! What explains a machine by words: its Node, events about it, requests for certificates, each failing by itself.
#![allow(clippy::unwrap_used, reason = "in a test, what cannot be is a failure")]

mod support;

use std::sync::Arc;
use std::time::Duration;

use reveille_core::effect::Look;
use reveille_core::event::Answer;
use reveille_core::model::id::{CloudName, InstanceId, NodeName};
use reveille_core::model::log_evidence::{EvidenceQuery, RequestState, Said};
use reveille_kube::Cluster;
use serde_json::{Value, json};
use support::{Api, Refuse, certificate_request, event, node};

const REQUESTS: &str = "certificatesigningrequests";

fn look(node: Option<&str>, asks_as: &str) -> Look {
    let evidence_query =
        EvidenceQuery { node: node.map(NodeName::from), asks_as: asks_as.into(), console_counts: true };
    Look::LogEvidence(CloudName::from("os"), InstanceId::from("i"), Arc::new(evidence_query))
}

async fn said(cluster: &Cluster, node: Option<&str>, asks_as: &str) -> Arc<Said> {
    match cluster.look(&look(node, asks_as)).await.unwrap() {
        Answer::Said(said) => said,
        other => panic!("{other:?}"),
    }
}

fn names(said: &Said) -> Vec<&str> {
    said.requests.iter().map(|request| &*request.name).collect()
}

/// With another requester, and a subject that no parser can read.
fn made_by(username: &str, mut request: Value) -> Value {
    request["spec"]["username"] = json!(username);
    request["spec"]["request"] = json!("");
    request
}

fn with(mut request: Value, status: Value) -> Value {
    request["status"] = status;
    request
}

fn asked_for(part: &str, api: &Api) -> usize {
    api.requests().iter().filter(|(_, target)| target.contains(part)).count()
}

#[tokio::test(start_paused = true)]
async fn requests_are_found_by_subject_or_requester_over_all_pages() {
    let api = Api::default();
    api.request(certificate_request("csr-1", "2026-01-01T10:00:01Z"));
    api.request(made_by("system:node:w-1", certificate_request("csr-2", "2026-01-01T10:00:04Z")));
    api.request(made_by("system:node:w-10", certificate_request("csr-3", "2026-01-01T10:00:05Z")));
    api.request(made_by("system:bootstrap:q1w2e3", certificate_request("csr-4", "2026-01-01T10:00:06Z")));
    api.request(made_by("system:node:w-1.novalocal", certificate_request("csr-5", "2026-01-01T10:00:02Z")));
    api.request(json!({"metadata": {"name": "csr-6"}, "spec": 7}));
    api.fault(|faults| faults.requests_of_a_page = Some(2));
    let said = said(&api.cluster(), None, "w-1").await;
    assert_eq!(names(&said), ["csr-2", "csr-5", "csr-1"], "newest first");
    assert_eq!(
        (&*said.requests[2].requester, said.requests[2].state),
        ("system:bootstrap:q1w2e3", RequestState::Pending)
    );
    assert!(said.unread.is_empty(), "{:?}", said.unread);
    assert_eq!(asked_for(REQUESTS, &api), 3, "three pages");
    assert_eq!(api.requests().len(), 3, "the machine has no node, so the adapter requests none");
}

/// A client that may create certificate requests makes eight in the name of a machine, newer than the machine's own. Only a
/// kubelet without a certificate asks by another name than its Node's: with a bootstrap token, or as OpenShift's bootstrapper.
#[tokio::test(start_paused = true)]
async fn requests_of_others_push_out_none_of_the_machine() {
    let own = [
        "system:bootstrap:q1w2e3",
        "system:serviceaccount:openshift-machine-config-operator:node-bootstrapper",
    ];
    for (of_the_machine, of_another) in [
        (own[0], "system:node:w-9"),
        (own[0], "system:node:w-1.other"),
        (own[0], "system:serviceaccount:default:default"),
        (own[1], "system:serviceaccount:other:node-bootstrapper"),
        ("system:node:w-1", "system:node:w-9"),
    ] {
        let api = Api::default();
        let in_its_name = |requester: &str, name: &str, stamped: &str| {
            let mut request = certificate_request(name, stamped);
            request["spec"]["username"] = json!(requester);
            api.request(request);
        };
        in_its_name(of_the_machine, "csr-own", "2026-01-01T10:00:00Z");
        for number in 0..8 {
            in_its_name(of_another, &format!("csr-evil-{number}"), &format!("2026-01-01T11:00:0{number}Z"));
        }
        let said = said(&api.cluster(), None, "w-1").await;
        assert_eq!(names(&said), ["csr-own"], "{of_another} asks for no w-1");
    }
}

#[tokio::test(start_paused = true)]
async fn what_became_of_a_request_is_told_in_the_words_of_who_decided() {
    let condition = |kind: &str| json!({"conditions": [{"type": kind, "status": "True", "message": format!("{kind} it")}]});
    let signed = json!({"conditions": [{"type": "Approved"}], "certificate": "c2lnbmVk"});
    for (status, state, message) in [
        (json!({}), RequestState::Pending, ""),
        (condition("Approved"), RequestState::Approved, ""),
        (condition("Denied"), RequestState::Denied, "Denied it"),
        (condition("Failed"), RequestState::Failed, "Failed it"),
        (signed, RequestState::Issued, ""),
    ] {
        let api = Api::default();
        api.request(with(certificate_request("csr-1", "t"), status));
        let said = said(&api.cluster(), None, "w-1").await;
        assert_eq!((said.requests[0].state, &*said.requests[0].message), (state, message));
    }
}

/// What may not be read, is cut off or does not come is told, and takes nothing else along.
#[tokio::test(start_paused = true)]
async fn each_part_fails_by_itself_and_says_so() {
    let table = [
        (REQUESTS, Refuse::Status(403, "Forbidden", None), "certificate requests", "403"),
        (
            REQUESTS,
            Refuse::Page(200, r#"{"metadata":{"resourceVersion":"7"},"items":[{"met"#),
            "certificate requests",
            "cannot be read",
        ),
        (REQUESTS, Refuse::Page(200, "{}"), "certificate requests", "no list"),
        (REQUESTS, Refuse::Stall, "certificate requests", "no answer within"),
        ("/events", Refuse::Status(403, "Forbidden", None), "events", "403"),
        ("/nodes/w-1", Refuse::Status(500, "InternalError", None), "node", "500"),
    ];
    for (part, refuse, source, why) in table {
        let api = Api::default();
        api.put(node("w-1", "uid-1"));
        api.say(event("e1", "w-1", "FreeDiskSpaceFailed", "2026-01-01T10:00:01Z"));
        api.request(certificate_request("csr-1", "t"));
        api.fault(|faults| faults.refusals.push((part, refuse)));
        let said = said(&api.cluster(), Some("w-1"), "w-1").await;
        let there = [said.node.is_some(), !said.events.is_empty(), !said.requests.is_empty()];
        assert_eq!(
            there,
            [source != "node", source != "events", source != "certificate requests"],
            "{source}"
        );
        assert_eq!(said.unread.len(), 1, "{:?}", said.unread);
        let unread = &said.unread[0];
        assert!(unread.source.to_string() == *source && unread.why.contains(why), "{unread:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn machines_that_fail_together_share_a_list_and_a_refusal() {
    for refused in [false, true] {
        let api = Api::default();
        api.request(certificate_request("csr-1", "t"));
        if refused {
            api.fault(|faults| faults.refusals.push((REQUESTS, Refuse::Status(403, "Forbidden", None))));
        }
        let cluster = api.cluster();
        let (of_one, of_another) = tokio::join!(said(&cluster, None, "w-1"), said(&cluster, None, "w-2"));
        assert_eq!((of_one.requests.len(), of_another.requests.len()), (usize::from(!refused), 0));
        assert_eq!(asked_for(REQUESTS, &api), 1);
        tokio::time::sleep(Duration::from_secs(11)).await;
        said(&cluster, None, "w-1").await;
        assert_eq!(asked_for(REQUESTS, &api), 2, "it is old by now");
    }
}

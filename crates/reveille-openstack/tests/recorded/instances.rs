//! Reboot, start and delete are asked once, and every answer becomes the one right outcome.

use crate::fake::{Fake, Reply, Seen, Way, lines, nova_fault, os, owned, perform, reply, server, way};
use reveille_core::effect::{Call, Outcome};
use reveille_core::model::id::{InstanceId, NodeName, NodeUid};
use reveille_core::model::instance::InstanceState;
use reveille_core::remedies::{DeleteInstance, DeleteNode, Reboot, StartInstance};

fn reboot(hard: bool) -> Call {
    Call::Reboot(Reboot { cloud: os(), instance: InstanceId::from("a"), hard, owned: owned() })
}

fn start() -> Call {
    Call::Start(StartInstance { cloud: os(), instance: InstanceId::from("a"), owned: owned() })
}

fn delete_in(state: InstanceState) -> Call {
    Call::DeleteInstance(DeleteInstance {
        cloud: os(),
        instance: InstanceId::from("a"),
        owned: owned(),
        rests_on: Some(state),
    })
}

fn delete() -> Call {
    delete_in(InstanceState::Active)
}

/// The server with its marks, in this state.
fn server_in(status: &str, more: &str) -> Reply {
    let marks = r#""tags": ["k8s-cluster=prod"], "metadata": {"k8s-pool": "workers"}"#;
    reply(200, format!(r#"{{"server": {{"id": "a", "name": "a", "status": "{status}", {marks}{more}}}}}"#))
}

/// The server with its marks, and this answer to an action on it.
fn served(action: impl Fn() -> Reply) -> impl FnMut(&Seen) -> Option<Reply> {
    move |seen| match seen.method.as_str() {
        "GET" if seen.path.ends_with("/servers/a") => Some(server("")),
        _ => seen.path.ends_with("/action").then(&action),
    }
}

/// Nova does not count a tag as a change of the server, so a listing of changes shows none of this.
#[tokio::test]
async fn server_without_pool_mark_is_not_touched() {
    let none = r#"{"server": {"id": "a", "name": "a", "status": "ACTIVE", "tags": [], "metadata": {}}}"#;
    let no_pool =
        r#"{"server": {"id": "a", "status": "ACTIVE", "tags": ["k8s-cluster=prod"], "metadata": {}}}"#;
    let other_pool = r#"{"server": {"id": "a", "status": "SHUTOFF", "tags": ["k8s-cluster=prod"],
        "metadata": {"k8s-pool": "by-hand"}}}"#;
    for found in [none, no_pool, other_pool] {
        for call in [reboot(false), reboot(true), start(), delete()] {
            let (outcome, seen) = perform(&call, move |seen| match seen.method.as_str() {
                "GET" => seen.path.ends_with("/servers/a").then(|| reply(200, found)),
                _ => seen.path.contains("/servers/a").then(|| reply(202, "")),
            })
            .await;
            assert_eq!(lines(&seen), [""; 0], "{call}: {outcome}");
            assert!(matches!(outcome, Outcome::Moved { .. }), "{call}: {outcome}");
        }
    }
}

#[tokio::test]
async fn instances_are_rebooted_and_started() {
    for (call, body) in [
        (reboot(false), serde_json::json!({"reboot": {"type": "SOFT"}})),
        (reboot(true), serde_json::json!({"reboot": {"type": "HARD"}})),
        (start(), serde_json::json!({"os-start": null})),
    ] {
        let status = if call == start() { "SHUTOFF" } else { "ACTIVE" };
        let (outcome, seen) = perform(&call, move |seen| match seen.method.as_str() {
            "GET" => seen.path.ends_with("/servers/a").then(|| server_in(status, "")),
            _ => seen.path.ends_with("/action").then(|| reply(202, "")),
        })
        .await;
        assert!(matches!(outcome, Outcome::Accepted { .. }), "{outcome}");
        assert_eq!(lines(&seen), ["POST /compute/v2.1/servers/a/action"]);
        assert_eq!(seen[0].json(), body);
    }
    let cases: [(fn() -> Reply, &str); 8] = [
        (|| nova_fault(409, "conflictingRequest", "Instance a is locked"), "changed"),
        (
            || {
                nova_fault(
                    409,
                    "conflictingRequest",
                    "Cannot 'reboot' instance while it is in vm_state stopped",
                )
            },
            "changed",
        ),
        (|| nova_fault(404, "itemNotFound", "no a"), "refused"),
        (|| nova_fault(403, "forbidden", "Policy doesn't allow it"), "denied"),
        (|| nova_fault(500, "computeFault", "Unexpected API Error."), "unknown"),
        (|| reply(503, ""), "failed"),
        (|| way(Way::Never), "unknown"),
        (|| way(Way::Dropped), "unknown"),
    ];
    for (answer, begins) in cases {
        let (outcome, seen) = perform(&reboot(true), served(answer)).await;
        assert!(outcome.to_string().starts_with(begins), "{outcome}");
        assert_eq!(seen.len(), 1, "asked once, whatever came of it: {outcome}");
    }
}

/// Nova would take most of these: a hard reboot runs a server that its owner stopped, paused or suspended a moment ago.
#[tokio::test]
async fn server_locked_busy_or_in_other_state_is_not_touched() {
    let (locked, task) = (r#", "locked": true"#, r#", "OS-EXT-STS:task_state": "powering-off""#);
    let reboots = [reboot(false), reboot(true)];
    let mut cases = vec![(start(), "SHUTOFF", task, "changed"), (start(), "SHUTOFF", locked, "changed")];
    for call in reboots {
        for status in ["SHUTOFF", "PAUSED", "SUSPENDED", "SHELVED", "SHELVED_OFFLOADED", "RESCUE", "ERROR"] {
            cases.push((call.clone(), status, "", "changed"));
        }
        for status in ["REBOOT", "HARD_REBOOT", "RESIZE", "VERIFY_RESIZE", "UNKNOWN"] {
            cases.push((call.clone(), status, "", "changed"));
        }
        cases.push((call.clone(), "ACTIVE", task, "changed"));
        cases.push((call, "ACTIVE", locked, "changed"));
    }
    for status in ["ACTIVE", "PAUSED", "SUSPENDED", "SHELVED", "RESCUE", "ERROR", "REBOOT"] {
        cases.push((start(), status, "", "changed"));
    }
    for status in ["SHUTOFF", "PAUSED", "SHELVED", "RESCUE", "ERROR", "REBOOT", "REBUILD", "VERIFY_RESIZE"] {
        cases.push((delete(), status, "", "changed"));
    }
    cases.push((delete(), "ACTIVE", task, "changed"));
    cases.push((delete_in(InstanceState::Errored), "ACTIVE", "", "changed"));
    cases.push((delete_in(InstanceState::Errored), "HARD_REBOOT", "", "changed"));
    cases.push((delete_in(InstanceState::Building), "ACTIVE", "", "changed"));
    for (call, status, more, begins) in cases {
        let (outcome, seen) = perform(&call, move |seen| match seen.method.as_str() {
            "GET" => seen.path.ends_with("/servers/a").then(|| server_in(status, more)),
            _ => seen.path.contains("/servers/a").then(|| reply(202, "")),
        })
        .await;
        assert_eq!(lines(&seen), [""; 0], "{call} in {status}{more}: {outcome}");
        assert!(outcome.to_string().starts_with(begins), "{call} in {status}{more}: {outcome}");
    }
}

/// Its host is dead: Nova names the task of the reboot for ever, and lets go of the server all the same (nova: compute/api.py,
/// `delete`, where `check_instance_state` checks no task).
#[tokio::test]
async fn server_in_endless_reboot_is_deleted_only_if_decided_so() {
    for (call, begins, deletes) in [
        (delete_in(InstanceState::Rebooting), "accepted", 1),
        (delete(), "changed", 0),
        (reboot(true), "changed", 0),
    ] {
        let (outcome, seen) = perform(&call, move |seen| match seen.method.as_str() {
            "GET" if seen.path.ends_with("/servers/a") => {
                Some(server_in("HARD_REBOOT", r#", "OS-EXT-STS:task_state": "reboot_started_hard""#))
            }
            _ => seen.path.contains("/servers/a").then(|| reply(204, "")),
        })
        .await;
        assert!(outcome.to_string().starts_with(begins), "{call}: {outcome}");
        assert_eq!(seen.len(), deletes, "{call}: {outcome}");
    }
}

#[tokio::test]
async fn deleting_looks_first() {
    let cases: [(Reply, Reply, &str, usize); 9] = [
        (server(""), reply(204, ""), "accepted", 1),
        (server(""), nova_fault(404, "itemNotFound", "no a"), "was so already", 1),
        (server(""), nova_fault(409, "conflictingRequest", "Instance a is locked"), "changed", 1),
        (server(""), way(Way::Never), "unknown", 1),
        (server(r#", "OS-EXT-STS:task_state": "deleting""#), reply(204, ""), "was so already", 0),
        (server(r#", "OS-EXT-STS:vm_state": "deleted""#), reply(204, ""), "was so already", 0),
        (server(r#", "locked": true"#), reply(204, ""), "changed", 0),
        (nova_fault(404, "itemNotFound", "no a"), reply(204, ""), "was so already", 0),
        (reply(404, "<html>"), reply(204, ""), "failed", 0),
    ];
    for (found, answer, begins, deletes) in cases {
        let (outcome, seen) = perform(&delete(), move |seen| match seen.method.as_str() {
            "GET" if seen.path.ends_with("/servers/a") => Some(found.clone()),
            "DELETE" => Some(answer.clone()),
            _ => None,
        })
        .await;
        assert!(outcome.to_string().starts_with(begins), "{outcome}");
        assert_eq!(seen.len(), deletes, "{outcome}");
    }
}

#[tokio::test]
async fn what_was_never_sent_did_not_happen() {
    let fake = Fake::start(|_| None).await;
    let project = fake.connect().await;
    drop(fake);
    // The listener is gone; a connection that was open is closed with it.
    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    let outcome = project.perform(&start()).await;
    let Outcome::Failed { text, .. } = &outcome else { panic!("{outcome}") };
    assert!(text.contains("no connection: Connection refused"), "{text}");
}

#[tokio::test]
async fn a_node_is_not_a_clouds_to_delete() {
    let call =
        Call::DeleteNode(DeleteNode { name: NodeName::from("n"), uid: NodeUid::from("u"), boot_id: None });
    let (outcome, seen) = perform(&call, |_| None).await;
    assert!(matches!(outcome, Outcome::Refused { .. }) && seen.is_empty(), "{outcome}");
}

/// Nova answers a reboot that it took with 202 and nothing. A page with 200 is a gateway's: it may have been made, or not.
#[tokio::test]
async fn reboot_with_unexpected_answer_has_unknown_outcome() {
    let fault = r#"{"computeFault": {"code": 500, "message": "x"}}"#;
    for (status, body) in
        [(200, "<html><body>please log in</body></html>"), (200, fault), (200, ""), (201, "{}")]
    {
        let (outcome, _) = perform(&reboot(false), served(move || reply(status, body))).await;
        assert!(matches!(outcome, Outcome::Unknown { .. }), "{status} {body}: {outcome}");
    }
}

/// A cache in between gives the answer to another question: the marks of `b` prove nothing of `a`, and that `b` is gone does not
/// mean that `a` is.
#[tokio::test]
async fn answer_about_another_server_permits_nothing() {
    let state = |status: &'static str| {
        let found = server_in(status, "");
        let body = found.body.replace(r#""id": "a""#, r#""id": "b""#);
        Reply { body, ..found }
    };
    for (call, status) in
        [(reboot(false), "ACTIVE"), (start(), "SHUTOFF"), (delete(), "ACTIVE"), (delete(), "DELETED")]
    {
        let (outcome, seen) = perform(&call, move |seen| match seen.method.as_str() {
            "GET" => seen.path.ends_with("/servers/a").then(|| state(status)),
            _ => seen.path.contains("/servers/a").then(|| reply(202, "")),
        })
        .await;
        assert_eq!(lines(&seen), [""; 0], "{call}: {outcome}");
        assert!(matches!(outcome, Outcome::Failed { .. }), "{call}: {outcome}");
    }
}

//! NodeClaims, from the request to the deletion.

use reveille_core::model::stage::Stage;

use crate::expected::{Expected, Failed, Reached, Stopped, Unknown, check};

const FOLDER: &str = "karpenter-nodeclaim";
const ID: Option<&str> = Some("aws:///eu-north-1a/i-0e593f835ff381a22");
const NODE: Option<&str> = Some("ip-10-0-17-34.eu-north-1.compute.internal");
const ZONE: Option<&str> = Some("eu-north-1a");

/// Each fixture is of the pool `default`.
fn claim(file: &'static str) -> Expected {
    Expected { file, version: "v1", pool: Some("default"), ..Expected::default() }
}

#[test]
fn new_claim_waits_for_its_launch() {
    let awaiting = Stopped {
        step: "Launched",
        stage: Stage::Provision,
        reason: Some("AwaitingReconciliation"),
        message: "object is awaiting reconciliation",
        since: Some("2026-08-19T10:02:11Z"),
    };
    let expected = Expected {
        states: &[Unknown, Unknown, Unknown],
        stopped: Some(awaiting),
        deadline_s: Some(300),
        ..claim("created")
    };
    check(FOLDER, &expected);
}

#[test]
fn launched_claim_without_node_stands_at_register() {
    let no_node = Stopped {
        step: "Registered",
        stage: Stage::Register,
        reason: Some("NodeNotFound"),
        message: "Node not registered with cluster",
        since: Some("2026-08-19T10:02:11Z"),
    };
    let expected = Expected {
        provider_id: ID,
        zone: ZONE,
        states: &[Reached, Unknown, Unknown],
        stopped: Some(no_node),
        deadline_s: Some(900),
        ..claim("launched")
    };
    let record = check(FOLDER, &expected);
    assert_eq!(record.namespace, None);
    assert_eq!(&*record.uid, "0f6f9a57-31c4-4be0-8d1b-6f2f6f5a9c02");
    assert_eq!(record.created.as_deref(), Some("2026-08-19T10:02:11Z"));
    assert_eq!(record.labels.get("node.kubernetes.io/instance-type").map(|text| &**text), Some("m7i.large"));
}

#[test]
fn failed_launch_is_a_failure_though_its_status_is_unknown() {
    let failed = Stopped {
        step: "Launched",
        stage: Stage::Provision,
        reason: Some("LaunchFailed"),
        message: "creating instance, ",
        since: Some("2026-08-19T10:02:12Z"),
    };
    let expected = Expected {
        states: &[Failed, Unknown, Unknown],
        stopped: Some(failed),
        failure: Some((
            "LaunchFailed",
            "creating instance, creating nodeclaim, with fleet error(s), Unauthorized",
        )),
        deadline_s: Some(300),
        ..claim("launch-failed")
    };
    let record = check(FOLDER, &expected);
    let lines = record.evidence_lines();
    assert_eq!(lines.len(), 4);
    let begin = "NodeClaim default-x7k2p: condition Launched is Unknown since 2026-08-19T10:02:12Z: LaunchFailed: \
                 creating instance, creating nodeclaim, with fleet error(s), UnauthorizedOperation: ";
    assert!(lines[0].starts_with(begin), "{}", lines[0]);
    assert!(lines[3].starts_with("NodeClaim default-x7k2p: failed: LaunchFailed: creating"), "{}", lines[3]);
    assert_eq!(record.steps[0].message.as_ref().map(|message| message.len()), Some(256));
}

#[test]
fn claim_whose_node_lacks_the_taint_has_failed() {
    let taint =
        "Invariant violated, karpenter.sh/unregistered taint must be present on Karpenter-managed nodes";
    let failed = Stopped {
        step: "Registered",
        stage: Stage::Register,
        reason: Some("UnregisteredTaintNotFound"),
        message: taint,
        since: Some("2026-08-19T10:02:58Z"),
    };
    let expected = Expected {
        provider_id: ID,
        zone: ZONE,
        states: &[Reached, Failed, Unknown],
        stopped: Some(failed),
        failure: Some(("UnregisteredTaintNotFound", taint)),
        deadline_s: Some(900),
        ..claim("taint-missing")
    };
    check(FOLDER, &expected);
}

#[test]
fn registered_claim_waits_without_an_end() {
    let taint = Stopped {
        step: "Initialized",
        stage: Stage::Ready,
        reason: Some("StartupTaintsExist"),
        message: "StartupTaint \"node.cilium.io/agent-not-ready=true:NoExecute\" still exists",
        since: Some("2026-08-19T10:02:11Z"),
    };
    let expected = Expected {
        provider_id: ID,
        node: NODE,
        zone: ZONE,
        states: &[Reached, Reached, Unknown],
        stopped: Some(taint),
        ..claim("startup-taint")
    };
    check(FOLDER, &expected);
}

#[test]
fn ready_claim_has_all_steps_and_its_holds() {
    let ready = |file, holds| Expected {
        provider_id: ID,
        node: NODE,
        zone: ZONE,
        states: &[Reached, Reached, Reached],
        holds,
        ..claim(file)
    };
    check(FOLDER, &ready("ready", &[]));
    let holds =
        &["annotation karpenter.sh/do-not-disrupt=true", "annotation karpenter.sh/do-not-repair=true"];
    check(FOLDER, &ready("held", holds));
}

#[test]
fn deleted_claim_is_leaving() {
    let expected = Expected {
        provider_id: ID,
        node: NODE,
        zone: ZONE,
        states: &[Reached, Reached, Reached],
        leaving: true,
        holds: &["condition DisruptionReason=True"],
        ..claim("deleting")
    };
    check(FOLDER, &expected);
}

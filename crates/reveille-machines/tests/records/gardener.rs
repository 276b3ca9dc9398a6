//! Machines of Gardener's machine-controller-manager.

use reveille_core::model::stage::Stage;

use crate::expected::{Expected, Failed, NotYet, Reached, Stopped, Unknown, check};

const FOLDER: &str = "gardener-machine";
const ID: Option<&str> = Some("aws:///eu-west-1/i-0b7d2f1c9e8a64310");
const NODE: Option<&str> = Some("ip-10-180-3-41.eu-west-1.compute.internal");
const SINCE: Option<&str> = Some("2026-08-21T10:04:42Z");

fn machine(file: &'static str) -> Expected {
    Expected {
        file,
        version: "v1alpha1",
        pool: Some("shoot--dev--prod-worker-a-z1"),
        zone: Some("eu-west-1a"),
        ..Expected::default()
    }
}

fn at(
    step: &'static str,
    stage: Stage,
    reason: Option<&'static str>,
    message: &'static str,
) -> Option<Stopped> {
    Some(Stopped { step, stage, reason, message, since: SINCE })
}

#[test]
fn pending_without_provider_id_is_in_creation() {
    let expected = Expected {
        states: &[NotYet, NotYet, NotYet, NotYet],
        stopped: at("spec.providerID", Stage::Provision, None, "Creating machine on cloud provider"),
        deadline_s: Some(1200),
        ..machine("creating")
    };
    check(FOLDER, &expected);
}

#[test]
fn pending_with_provider_id_does_not_join() {
    let expected = Expected {
        provider_id: ID,
        node: NODE,
        states: &[Reached, NotYet, NotYet, NotYet],
        stopped: at("status.conditions", Stage::Register, None, "Creating machine on cloud provider"),
        // Its own time, not the controller's 20 minutes.
        deadline_s: Some(1800),
        ..machine("no-join")
    };
    check(FOLDER, &expected);
}

#[test]
fn failed_creation_has_the_clouds_words() {
    let message = "Cloud provider message - machine codes error: code = [ResourceExhausted]";
    let expected = Expected {
        states: &[Failed, NotYet, NotYet, NotYet],
        stopped: at("spec.providerID", Stage::Provision, Some("ResourceExhausted"), message),
        failure: Some(("ResourceExhausted", message)),
        deadline_s: Some(1200),
        ..machine("creation-failed")
    };
    check(FOLDER, &expected);
}

#[test]
fn machine_past_join_timeout_has_failed_to_register() {
    let message =
        "Machine shoot--dev--prod-worker-a-z1-5d8f7-hlvj6 failed to join the cluster in 20m0s minutes.";
    let expected = Expected {
        provider_id: ID,
        node: NODE,
        states: &[Reached, Failed, NotYet, Failed],
        stopped: at("status.conditions", Stage::Register, None, message),
        // There is no error code; the phase is the reason.
        failure: Some(("Failed", message)),
        deadline_s: Some(1200),
        ..machine("join-timeout")
    };
    check(FOLDER, &expected);
}

#[test]
fn running_machine_has_all_steps() {
    let expected = Expected { provider_id: ID, node: NODE, states: &[Reached; 4], ..machine("running") };
    let record = check(FOLDER, &expected);
    assert!(record.evidence_lines()[1].ends_with(
        "field status.conditions is set since 2026-08-21T10:04:42Z: \
        Machine shoot--dev--prod-worker-a-z1-5d8f7-c9m2p successfully joined the cluster"
    ));
}

#[test]
fn unhealthy_machine_has_the_health_timeout_and_its_hold() {
    let silent = Stopped {
        step: "Ready",
        stage: Stage::Ready,
        reason: Some("NodeStatusUnknown"),
        message: "Kubelet stopped posting node status.",
        since: Some("2026-08-21T10:06:10Z"),
    };
    let expected = Expected {
        provider_id: ID,
        node: NODE,
        states: &[Reached, Reached, Unknown, NotYet],
        stopped: Some(silent),
        holds: &["annotation node.machine.sapcloud.io/preserve=now", "condition NodePreserved=True"],
        deadline_s: Some(600),
        ..machine("unhealthy-preserved")
    };
    check(FOLDER, &expected);
}

#[test]
fn terminating_machine_is_leaving() {
    let removal = "Set machine status to termination. Now, getting VM Status";
    let expected = Expected {
        provider_id: ID,
        node: NODE,
        states: &[Reached, Reached, Reached, NotYet],
        stopped: at("status.currentStatus.phase", Stage::Ready, None, removal),
        leaving: true,
        holds: &["annotation machinepriority.machine.sapcloud.io=1"],
        ..machine("terminating")
    };
    check(FOLDER, &expected);
}

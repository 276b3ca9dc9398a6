//! Machines of Cluster API in both versions, and MachinePools.

use reveille_core::model::stage::Stage;

use crate::expected::{Expected, NotYet, Reached, Stopped, Unknown, check};

const FOLDER: &str = "cluster-api-machine";
const POOLS: &str = "cluster-api-machinepool";
const ID: Option<&str> = Some("openstack:///1f0d2c35-9f6d-4b0e-8a44-0d8a2e1c7f10");
const NO_NODE: &str =
    "Waiting for a Node with spec.providerID openstack:///1f0d2c35-9f6d-4b0e-8a44-0d8a2e1c7f10 to exist";
const TIMED_OUT: &str = "Health check failed: Node failed to report startup in 10m0s";

/// Each is of one MachineSet. The specification wants `az-2`; a status that says where it is counts more.
fn machine(file: &'static str, version: &'static str, zone: &'static str) -> Expected {
    Expected { file, version, pool: Some("prod-md-0-7k2xd"), zone: Some(zone), ..Expected::default() }
}

fn at(step: &'static str, stage: Stage, reason: &'static str, message: &'static str) -> Stopped {
    let since = match step {
        "BootstrapConfigReady" | "BootstrapReady" => "2026-08-20T08:00:01Z",
        "InfrastructureReady" => "2026-08-20T08:01:40Z",
        _ => "2026-08-20T08:00:52Z",
    };
    Stopped { step, stage, reason: Some(reason), message, since: Some(since) }
}

#[test]
fn machine_without_bootstrap_data_stands_at_provision() {
    let message = "* DataSecretAvailable: Waiting for control plane to be initialized";
    check(
        FOLDER,
        &Expected {
            states: &[NotYet, NotYet, NotYet, Unknown, Unknown],
            stopped: Some(at("BootstrapConfigReady", Stage::Provision, "NotReady", message)),
            ..machine("v1beta2-waits-for-bootstrap", "v1beta2", "az-2")
        },
    );
    let reason = "WaitingForControlPlaneAvailable";
    check(
        FOLDER,
        &Expected {
            states: &[NotYet, NotYet, NotYet, NotYet],
            stopped: Some(at("BootstrapReady", Stage::Provision, reason, "0 of 2 completed")),
            ..machine("v1beta1-waits-for-bootstrap", "v1beta1", "az-2")
        },
    );
}

#[test]
fn machine_without_node_stands_at_register_with_words() {
    check(
        FOLDER,
        &Expected {
            provider_id: ID,
            states: &[Reached, Reached, NotYet, Unknown, Unknown],
            stopped: Some(at("status.nodeRef.name", Stage::Register, "InspectionFailed", NO_NODE)),
            ..machine("v1beta2-no-node", "v1beta2", "az-1")
        },
    );
    let message = "Waiting for a node with matching ProviderID to exist";
    let record = check(
        FOLDER,
        &Expected {
            provider_id: ID,
            states: &[Reached, Reached, NotYet, NotYet],
            stopped: Some(at("status.nodeRef.name", Stage::Register, "NodeProvisioning", message)),
            // Only the newer conditions, beside the old ones, say that its Cluster is paused.
            holds: &["condition Paused=True"],
            ..machine("v1beta1-no-node", "v1beta1", "az-2")
        },
    );
    assert_eq!(record.full_name(), "clusters/prod-md-0-7k2xd-6xk8w");
    assert_eq!(
        record.evidence_lines()[2],
        format!(
            "Machine clusters/prod-md-0-7k2xd-6xk8w: field status.nodeRef.name is not set since \
             2026-08-20T08:00:52Z: NodeProvisioning: {message}"
        )
    );
}

#[test]
fn machine_past_startup_timeout_is_failed_and_on_hold() {
    check(
        FOLDER,
        &Expected {
            provider_id: ID,
            states: &[Reached, Reached, NotYet, Unknown, Unknown],
            stopped: Some(at("status.nodeRef.name", Stage::Register, "InspectionFailed", NO_NODE)),
            failure: Some(("NodeStartupTimeout", TIMED_OUT)),
            holds: &["condition OwnerRemediated=False"],
            ..machine("v1beta2-startup-timeout", "v1beta2", "az-1")
        },
    );
}

#[test]
fn machine_with_failure_fields_is_failed() {
    let stopped = at("InfrastructureReady", Stage::Provision, "InstanceStateError", "");
    check(
        FOLDER,
        &Expected {
            states: &[Reached, NotYet, NotYet, NotYet],
            stopped: Some(stopped),
            failure: Some(("UpdateError", "Failure detected from referenced resource infrastructure")),
            ..machine("v1beta1-failed", "v1beta1", "az-2")
        },
    );
}

#[test]
fn ready_machine_has_all_steps_in_both_versions() {
    check(
        FOLDER,
        &Expected {
            provider_id: ID,
            node: Some("prod-md-0-7k2xd-4m7cz"),
            states: &[Reached; 5],
            ..machine("v1beta2-ready", "v1beta2", "az-1")
        },
    );
    check(
        FOLDER,
        &Expected {
            provider_id: ID,
            node: Some("prod-md-0-7k2xd-6xk8w"),
            states: &[Reached; 4],
            ..machine("v1beta1-ready", "v1beta1", "az-2")
        },
    );
}

#[test]
fn held_and_deleted_machines_are_told() {
    let running = |file| Expected {
        provider_id: ID,
        node: Some("prod-md-0-7k2xd-4m7cz"),
        states: &[Reached; 5],
        ..machine(file, "v1beta2", "az-1")
    };
    let holds = &[
        "annotation cluster.x-k8s.io/paused=",
        "condition Paused=True",
        "annotation cluster.x-k8s.io/skip-remediation=true",
        "condition Updating=True",
    ];
    check(FOLDER, &Expected { holds, ..running("v1beta2-held") });
    check(FOLDER, &Expected { leaving: true, ..running("v1beta2-deleting") });
}

#[test]
fn pool_tells_its_members_and_where_it_stands() {
    let pool = |file, version, name| Expected { file, version, pool: Some(name), ..Expected::default() };
    let at = |step, stage, reason, message, since| {
        Some(Stopped { step, stage, reason: Some(reason), message, since: Some(since) })
    };
    let record = check(
        POOLS,
        &Expected {
            states: &[Reached, Reached, NotYet],
            stopped: at("ReplicasReady", Stage::Ready, "WaitingForReplicasReady", "", "2026-08-20T07:05:00Z"),
            ..pool("v1beta1-one-missing", "v1beta1", "prod-mp-0")
        },
    );
    assert_eq!(record.members.provider_ids.len(), 2);
    assert_eq!(record.members.nodes[0].as_str(), "ip-10-2-0-11.eu-west-1.compute.internal");
    let asg = ("WaitingForASGUpdate", "1 of 2 completed", "2026-08-20T07:01:00Z");
    check(
        POOLS,
        &Expected {
            states: &[Reached, NotYet, NotYet],
            stopped: at("InfrastructureReady", Stage::Provision, asg.0, asg.1, asg.2),
            ..pool("v1beta2-old-conditions", "v1beta2", "prod-mp-0")
        },
    );
    let message = "* ASGReady: ASGProvisionFailed: launch template is not valid";
    check(
        POOLS,
        &Expected {
            states: &[Reached, NotYet, NotYet],
            stopped: at("InfrastructureReady", Stage::Provision, "NotReady", message, "2026-08-20T07:01:00Z"),
            failure: Some(("CreateError", "launch template lt-0d4f is not valid")),
            ..pool("v1beta2-failed", "v1beta2", "prod-mp-1")
        },
    );
    check(
        POOLS,
        &Expected {
            states: &[Reached, NotYet, NotYet],
            idle: true,
            holds: &["annotation cluster.x-k8s.io/paused=true", "condition Paused=True"],
            ..pool("v1beta2-empty-paused", "v1beta2", "prod-mp-2")
        },
    );
}

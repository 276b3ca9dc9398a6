//! Machines of OpenShift's Machine API.

use reveille_core::model::stage::Stage;

use crate::expected::{Expected, Failed, NotYet, Reached, Stopped, check};

const FOLDER: &str = "openshift-machine";
const ID: Option<&str> = Some("aws:///eu-west-1a/i-0c4e8d1f2b3a49576");
const NODE: Option<&str> = Some("ip-10-0-169-40.eu-west-1.compute.internal");

fn machine(file: &'static str) -> Expected {
    Expected {
        file,
        version: "v1beta1",
        pool: Some("prod-4c72v-worker-eu-west-1a"),
        zone: Some("eu-west-1a"),
        ..Expected::default()
    }
}

fn not_created() -> Option<Stopped> {
    Some(Stopped {
        step: "InstanceExists",
        stage: Stage::Provision,
        reason: Some("InstanceNotCreated"),
        message: "Instance has not been created",
        since: Some("2026-08-23T13:00:05Z"),
    })
}

#[test]
fn machine_in_provisioning_has_no_instance() {
    check(FOLDER, &Expected { states: &[NotYet, NotYet], stopped: not_created(), ..machine("provisioning") });
}

#[test]
fn provisioned_machine_stands_at_register() {
    let no_node = Stopped {
        step: "status.nodeRef.name",
        stage: Stage::Register,
        reason: None,
        message: "",
        since: None,
    };
    let expected = Expected {
        provider_id: ID,
        states: &[Reached, NotYet],
        stopped: Some(no_node),
        ..machine("provisioned")
    };
    check(FOLDER, &expected);
}

#[test]
fn running_machine_has_its_node() {
    let expected = Expected { provider_id: ID, node: NODE, states: &[Reached; 2], ..machine("running") };
    check(FOLDER, &expected);
}

#[test]
fn failed_creation_is_told_by_fields_or_by_the_provider() {
    let error = "error launching instance: The requested configuration is currently not supported.";
    check(
        FOLDER,
        &Expected {
            states: &[Failed, Failed],
            stopped: not_created(),
            failure: Some(("InvalidConfiguration", error)),
            ..machine("failed")
        },
    );
    check(
        FOLDER,
        &Expected {
            states: &[NotYet, NotYet],
            stopped: not_created(),
            failure: Some(("MachineCreationFailed", "googleapi: Error 400: Invalid value for field")),
            ..machine("creation-retried")
        },
    );
}

#[test]
fn machine_that_migrates_is_on_hold() {
    let expected = Expected {
        provider_id: ID,
        node: NODE,
        states: &[Reached; 2],
        holds: &[
            "condition Paused=True",
            "field status.authoritativeAPI=Migrating",
            "annotation machine.openshift.io/cluster-api-delete-machine=yes",
        ],
        ..machine("migrating")
    };
    check(FOLDER, &expected);
}

#[test]
fn deleted_machine_is_leaving() {
    let expected =
        Expected { provider_id: ID, node: NODE, states: &[Reached; 2], leaving: true, ..machine("deleting") };
    check(FOLDER, &expected);
}

//! Hosts of Metal3: in stock, being provisioned, and taken out of its hands.

use reveille_core::model::stage::Stage;

use crate::expected::{Expected, Failed, NotYet, Reached, Stopped, check};

const FOLDER: &str = "metal3-baremetalhost";

fn host(file: &'static str) -> Expected {
    Expected { file, version: "v1alpha1", ..Expected::default() }
}

fn at(
    step: &'static str,
    reason: Option<&'static str>,
    message: &'static str,
    since: &'static str,
) -> Option<Stopped> {
    Some(Stopped { step, stage: Stage::Provision, reason, message, since: Some(since) })
}

#[test]
fn host_in_stock_is_idle_and_stands_nowhere() {
    let expected =
        Expected { states: &[Reached, Reached, Reached, NotYet, NotYet], idle: true, ..host("in-stock") };
    assert_eq!(check(FOLDER, &expected).consumer, None);
}

#[test]
fn host_with_an_error_fails_at_the_step_of_its_state() {
    let error = "Failed to get power state for node 861ada16-a145-4f51-bc7f-bed6e9388487. Error: Redfish";
    let register = "2026-08-22T06:13:20Z";
    check(
        FOLDER,
        &Expected {
            states: &[Failed; 5],
            stopped: at("registered", Some("registration error"), error, register),
            failure: Some(("registration error", error)),
            ..host("registration-error")
        },
    );
    let error = "Image provisioning failed: Agent returned error for deploy step {'step': 'write_image'";
    let record = check(
        FOLDER,
        &Expected {
            states: &[Reached, Reached, Reached, Failed, Reached],
            stopped: at("provisioned", Some("provisioning error"), error, "2026-08-22T06:40:10Z"),
            failure: Some(("provisioning error", error)),
            ..host("provisioning-error")
        },
    );
    assert!(record.evidence_lines().iter().all(|line| !line.contains('\n')));
}

#[test]
fn host_of_a_machine_names_its_consumer() {
    let expected = Expected {
        states: &[Reached, Reached, Reached, NotYet, Reached],
        stopped: at("provisioned", None, "", "2026-08-22T06:40:10Z"),
        ..host("provisioning")
    };
    let consumer = check(FOLDER, &expected).consumer.unwrap();
    assert_eq!((&*consumer.kind, &*consumer.name), ("Metal3Machine", "prod-workers-4xk2l"));
}

#[test]
fn detached_host_with_a_reboot_asked_is_on_hold() {
    let expected = Expected {
        states: &[Reached; 5],
        holds: &[
            "annotation baremetalhost.metal3.io/detached=",
            "annotation reboot.metal3.io/medik8s={\"mode\":\"hard\"}",
        ],
        ..host("provisioned-held")
    };
    check(FOLDER, &expected);
}

#[test]
fn deprovisioned_host_is_leaving_and_meant_to_be_off() {
    let expected = Expected {
        states: &[Reached, Reached, NotYet, NotYet, NotYet],
        stopped: at("available", None, "", "2026-08-22T06:53:00Z"),
        leaving: true,
        holds: &["field spec.online=false"],
        ..host("deprovisioning")
    };
    check(FOLDER, &expected);
}

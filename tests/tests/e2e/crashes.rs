//! Killed at the worst moment: between the record of an intent and its effect, and between the effect and its outcome.
//!
//! The proxy holds the call up, or swallows the answer; then the controller is killed as a power cut would. What it does
//! after its restart is counted at the services.

use anyhow::{Result, ensure};
use reveille_core::model::incident::FaultKind;
use reveille_core::record::Verdict;
use reveille_tests::lab::Lab;
use reveille_tests::reveille::Place;
use reveille_tests::roster::Roster;
use reveille_tests::wait::{s, until};
use serde_json::json;

const PUT_PORT: &str = "PUT /v2.0/ports/{id}";
const DELETE_SERVER: &str = "DELETE /v2.1/servers/{id}";

/// Waits until an intent of that kind is in the ledger and its call is held up or swallowed by the proxy.
fn caught(lab: &Lab, place: &Place, label: &str, kind: FaultKind, fault: &str) -> Result<()> {
    until(&format!("a call for {label} to be caught by {fault}"), s(75), || {
        let ledger = place.ledger()?;
        let incident = ledger.newest(label, kind)?;
        let hits = lab.proxy.hits(fault)?;
        ensure!(hits > 0 && !incident.intents.is_empty(), "{hits} calls caught; {}", incident.told());
        Ok(())
    })
}

/// The intent is recorded, its call never reaches Neutron; then Neutron does it and nobody hears of it. Killed at both
/// moments and started again, the port is mended once for each machine, nothing is lost, and the ledger adds up.
pub(crate) fn a_kill_around_a_network_call_neither_repeats_nor_loses_it(lab: &mut Lab) -> Result<()> {
    let roster = Roster::new("kill").pool("workers");
    let group = lab.rig.facts.openstack.security_group.clone();
    let names = ["kill-1", "kill-2"];
    let faults = ["neutron-write-slow", "neutron-timeout-after-effect"];
    let arguments = [json!({"ms": 60_000}), json!({})];
    let place = lab.place(&[&roster])?;
    lab.proxy.reset_calls()?;
    for ((name, fault), arguments) in names.into_iter().zip(faults).zip(arguments) {
        let machine = lab.machines(&roster, "workers", &[name], &["--no-group"])?.remove(0);
        let before = lab.proxy.calls()?.forwarded("neutron", PUT_PORT);
        lab.proxy.arm(fault, arguments)?;
        let running = lab.reveille.run(&place, &[])?;
        caught(lab, &place, name, FaultKind::GroupMissing, fault)?;
        let has = lab.cloud.groups_of(&machine.id)? == [vec![group.clone()]];
        ensure!(has == (fault == "neutron-timeout-after-effect"), "{fault}: the group is on the port: {has}");
        running.kill();
        lab.proxy.disarm(fault)?;
        let running = lab.reveille.run(&place, &[])?;
        until("the incident to close as mended", s(60), || {
            place.ledger()?.newest(name, FaultKind::GroupMissing)?.ended(Verdict::Mended)
        })?;
        running.stop()?;
        ensure!(lab.cloud.groups_of(&machine.id)? == [vec![group.clone()]], "{name} lacks its group");
        let done = lab.proxy.calls()?.forwarded("neutron", PUT_PORT) - before;
        ensure!(done == 1, "{fault}: Neutron was asked {done} times");
    }
    let ledger = place.ledger()?;
    ledger.is_consistent()?;
    for name in names {
        ensure!(ledger.about(name, FaultKind::GroupMissing).count() == 1, "{}", ledger.told());
    }
    Ok(())
}

/// The same around a DELETE of a server in ERROR: whether Nova had heard of it or not, it is deleted exactly once, and
/// another server that is well is not touched.
pub(crate) fn a_kill_around_a_deletion_neither_repeats_nor_loses_it(lab: &mut Lab) -> Result<()> {
    let acting = |name: &str| Roster::new(name).set("replace", "act").pool("workers");
    let faults = ["nova-write-slow", "nova-timeout-after-effect"];
    let arguments = [json!({"ms": 60_000}), json!({})];
    for ((name, fault), arguments) in ["kd-a", "kd-b"].into_iter().zip(faults).zip(arguments) {
        let roster = acting(name);
        let (well, bad) = (format!("{name}-well"), format!("{name}-bad"));
        let well = lab.machines_with_nodes(&roster, "workers", &[&well])?.remove(0);
        let bad = lab.machines(&roster, "workers", &[&bad], &[])?.remove(0);
        lab.rig.fault(&["errored", &bad.name, "Build of instance failed."])?;
        let place = lab.place(&[&roster])?;
        lab.proxy.reset_calls()?;
        lab.proxy.arm(fault, arguments)?;
        let running = lab.reveille.run(&place, &[])?;
        caught(lab, &place, &bad.name, FaultKind::Errored, fault)?;
        running.kill();
        lab.proxy.disarm(fault)?;
        let running = lab.reveille.run(&place, &[])?;
        until("the errored server to be gone, and known to be", s(90), || {
            ensure!(lab.cloud.server(&bad.id)?.is_none(), "it is still there");
            place.ledger()?.newest(&bad.name, FaultKind::Errored)?.ended(Verdict::SubjectGone)
        })?;
        running.stop()?;
        let calls = lab.proxy.calls()?;
        ensure!(calls.forwarded("nova", DELETE_SERVER) == 1, "{fault}: {calls}");
        ensure!(lab.cloud.server(&well.id)?.is_some(), "the server that was well is gone");
        place.ledger()?.is_consistent()?;
    }
    Ok(())
}

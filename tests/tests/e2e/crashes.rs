//! Killed at the worst moment: between the record of an intent and its effect, and between the effect and its outcome.
//!
//! The proxy holds the call up, or swallows the answer; then the controller is killed as a power cut would. What it does
//! after its restart is counted at the services.

use anyhow::{Result, ensure};
use reveille_core::model::incident::FaultKind;
use reveille_core::record::Verdict;
use reveille_tests::lab::Lab;
use reveille_tests::reveille::{Place, Running};
use reveille_tests::roster::Roster;
use reveille_tests::wait::{s, until};
use serde_json::json;

const PUT_PORT: &str = "PUT /v2.0/ports/{id}";
const DELETE_SERVER: &str = "DELETE /v2.1/servers/{id}";

/// The first write is held up, so that it never reaches the service once its client is dead; the second one takes
/// effect, and its answer never comes. Waits until both are caught, with both intents in the ledger.
fn caught(lab: &Lab, place: &Place, service: &str, kind: &str) -> Result<()> {
    until("both calls to be caught", s(75), || {
        let (calls, intents) = (lab.proxy.calls()?, place.ledger()?.intents().count());
        let (sent, arrived) = (calls.of(service, kind), calls.forwarded(service, kind));
        ensure!((sent, arrived, intents) == (2, 1, 2), "{sent} sent, {arrived} arrived, {intents} intents");
        Ok(())
    })
}

fn arm(lab: &Lab, service: &str) -> Result<()> {
    lab.proxy.reset_calls()?;
    lab.proxy.arm(&format!("{service}-write-slow"), json!({"ms": 90_000, "count": 1}))?;
    lab.proxy.arm(&format!("{service}-timeout-after-effect"), json!({}))
}

/// Kills the controller, lets the service be as it should, and starts the controller again.
fn crash_and_start_again(lab: &Lab, place: &Place, service: &str, running: Running) -> Result<Running> {
    running.kill();
    lab.proxy.disarm(&format!("{service}-write-slow"))?;
    lab.proxy.disarm(&format!("{service}-timeout-after-effect"))?;
    lab.reveille.run(place, &[])
}

/// Two ports lack their group. One call is recorded and never reaches Neutron; the other one takes effect and its answer is lost.
/// The process is killed there and started again. Both ports then get their group, each by one call that arrived, and the ledger
/// adds up.
pub(crate) fn a_kill_around_network_calls_neither_repeats_nor_loses_one(lab: &mut Lab) -> Result<()> {
    let roster = Roster::new("kill").pool("workers");
    let names = ["kill-1", "kill-2"];
    let machines = lab.machines(&roster, "workers", &names, &["--no-group"])?;
    let group = lab.rig.facts.openstack.security_group.clone();
    let carrying = |lab: &Lab| -> Result<usize> {
        let groups: Result<Vec<_>> =
            machines.iter().map(|machine| lab.cloud.groups_of(&machine.id)).collect();
        Ok(groups?.iter().filter(|groups| **groups == [vec![group.clone()]]).count())
    };
    let place = lab.place(&[&roster])?;
    arm(lab, "neutron")?;
    let running = lab.reveille.run(&place, &[])?;
    caught(lab, &place, "neutron", PUT_PORT)?;
    until("the one that arrived to take effect", s(10), || {
        let there = carrying(lab)?;
        ensure!(there == 1, "{there} ports carry the group");
        Ok(())
    })?;
    let running = crash_and_start_again(lab, &place, "neutron", running)?;
    until("both incidents to close as mended", s(60), || {
        let ledger = place.ledger()?;
        names.iter().try_for_each(|name| ledger.newest(name, FaultKind::GroupMissing)?.ended(Verdict::Mended))
    })?;
    running.stop()?;
    ensure!(carrying(lab)? == 2, "a port lacks its group");
    let calls = lab.proxy.calls()?;
    ensure!(calls.forwarded("neutron", PUT_PORT) == 2 && calls.of("neutron", PUT_PORT) == 3, "{calls}");
    let ledger = place.ledger()?;
    ensure!(ledger.incidents.len() == 4, "two never joined and two without a group: {}", ledger.told());
    ledger.is_consistent()
}

/// The same around the DELETE of two servers in ERROR: whether Nova had heard of it or not, each is deleted by exactly one
/// call, and a server that is well is not touched.
pub(crate) fn a_kill_around_deletions_neither_repeats_nor_loses_one(lab: &mut Lab) -> Result<()> {
    let roster = Roster::new("killdel").set("replace", "act").pool("one").pool("two").pool("well");
    let well = lab.machines_with_nodes(&roster, "well", &["kd-well"])?.remove(0);
    let mut errored = lab.machines(&roster, "one", &["kd-1"], &[])?;
    errored.extend(lab.machines(&roster, "two", &["kd-2"], &[])?);
    for machine in &errored {
        lab.rig.fault(&["errored", &machine.name, "Build of instance failed."])?;
    }
    let place = lab.place(&[&roster])?;
    arm(lab, "nova")?;
    let running = lab.reveille.run(&place, &[])?;
    caught(lab, &place, "nova", DELETE_SERVER)?;
    let running = crash_and_start_again(lab, &place, "nova", running)?;
    until("both servers to be gone, and known to be", s(90), || {
        for machine in &errored {
            ensure!(lab.cloud.server(&machine.id)?.is_none(), "{} is still there", machine.name);
            place.ledger()?.newest(&machine.name, FaultKind::Errored)?.ended(Verdict::SubjectGone)?;
        }
        Ok(())
    })?;
    running.stop()?;
    let calls = lab.proxy.calls()?;
    ensure!(calls.forwarded("nova", DELETE_SERVER) == 2 && calls.of("nova", DELETE_SERVER) == 3, "{calls}");
    ensure!(lab.cloud.server(&well.id)?.is_some(), "the server that was well is gone");
    place.ledger()?.is_consistent()
}

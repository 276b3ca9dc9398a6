//! Machines that are broken for good: replaced within budget and with their evidence kept, or told of and left alone.

use std::time::Instant;

use anyhow::{Context, Result, ensure};
use reveille_core::effect::Call;
use reveille_core::model::incident::FaultKind;
use reveille_core::record::Verdict;
use reveille_core::remedies::DeleteInstance;
use reveille_tests::lab::Lab;
use reveille_tests::ledger::Incident;
use reveille_tests::reveille::Place;
use reveille_tests::roster::Roster;
use reveille_tests::wait::{s, throughout, until};

use crate::network::mended;

const DELETE_SERVER: &str = "DELETE /v2.1/servers/{id}";
const REBOOT: &str = "POST /v2.1/servers/{id}/action/reboot";

fn newest<T>(place: &Place, label: &str, kind: FaultKind, of: impl FnOnce(&Incident) -> T) -> Result<T> {
    Ok(of(place.ledger()?.newest(label, kind)?))
}

/// Servers in ERROR are deleted, one by one, and their fault stays in the ledger; when the same fault comes back as often
/// as the roster allows, the deleting stops and the plan says so. A server that is deleting for too long gets no second
/// DELETE, only an incident; one that is building for too long is replaced.
pub(crate) fn broken_servers_are_replaced_until_the_same_fault_returns(lab: &mut Lab) -> Result<()> {
    let roster = Roster::new("broken").set("replace", "act").set("sameFault", "1").set("join", "30s");
    let roster = roster.pool("err").pool("stuck").pool("well");
    lab.machines_with_nodes(&roster, "well", &["br-well"])?;
    let errored = lab.machines(&roster, "err", &["br-err-1", "br-err-2"], &[])?;
    let deleting = lab.machines(&roster, "stuck", &["br-deleting"], &[])?.remove(0);
    lab.rig.fault(&["errored", "br-err-1", "No valid host was found."])?;
    lab.rig.fault(&["stuck-deleting", "br-deleting", "lost"])?;
    lab.rig.fault(&["stuck-build", "br-building"])?;
    let place = lab.place(&[&roster])?;
    let running = lab.start(&place)?;
    let building = lab.machines(&roster, "stuck", &["br-building"], &["--no-wait"])?.remove(0);
    until("the errored server to be gone", s(75), || {
        ensure!(lab.cloud.server(&errored[0].id)?.is_none(), "it is still there");
        Ok(())
    })?;
    let kept = newest(&place, "br-err-1", FaultKind::Errored, Incident::evidence)?;
    ensure!(kept.contains("No valid host was found."), "the fault was not kept: {kept}");
    lab.rig.fault(&["errored", "br-err-2", "No valid host was found."])?;
    until("the hanging build to be deleted", s(60), || {
        let intents = newest(&place, "br-building", FaultKind::StuckBuilding, |incident| {
            incident.intents.iter().filter(|intent| intent.outcome.is_some()).count()
        })?;
        ensure!(intents > 0, "nothing was tried");
        let server = lab.cloud.server(&building.id)?;
        ensure!(server.is_none_or(|server| server["OS-EXT-STS:task_state"] == "deleting"), "it still builds");
        Ok(())
    })?;
    let told = newest(&place, "br-deleting", FaultKind::StuckDeleting, |incident| {
        (incident.code().to_owned(), incident.intents.len(), incident.verdict)
    })?;
    ensure!(told == ("RV103".to_owned(), 0, None), "stuck deleting: {told:?}");
    until("the plan to hold the second one for the same fault", s(60), || {
        let (_, plan) = lab.reveille.plan(&place)?;
        let why = plan.held.iter().filter(|held| held.subject == "br-err-2").flat_map(|held| &held.held);
        let why: Vec<&String> = why.flat_map(|held| &held.why).collect();
        ensure!(why.iter().any(|why| why.contains("No valid host was found.")), "{plan:?}");
        Ok(())
    })?;
    throughout("the second one stays", s(10), || {
        ensure!(lab.cloud.server(&errored[1].id)?.is_some(), "it was deleted");
        Ok(())
    })?;
    let calls = lab.proxy.calls()?;
    ensure!(calls.of("nova", DELETE_SERVER) == 2, "{calls}");
    let ledger = place.ledger()?;
    let deletes = |call: &Call| match call {
        Call::DeleteInstance(DeleteInstance { instance, .. }) => instance.as_str() == deleting.id,
        _ => false,
    };
    ensure!(ledger.intents().all(|intent| !deletes(&intent.call)), "{}", ledger.told());
    ledger.is_consistent()?;
    running.stop()?;
    Ok(())
}

/// What a console says of a first boot that had no network, over and over.
const NO_NETWORK: &str = "\
[    0.000000] Linux version 6.1.90 (build@host)
[    9.1] ignition[512]: GET https://config.internal/worker: attempt #1
[    9.1] ignition[512]: GET error: Get \"https://config.internal/worker\": dial tcp 10.1.1.1:443: connect: network is unreachable
[   14.1] ignition[512]: GET https://config.internal/worker: attempt #2
[   14.2] ignition[512]: GET error: Get \"https://config.internal/worker\": dial tcp 10.1.1.1:443: connect: network is unreachable
";

/// Both never join. One's console says that its first boot had no network: rebooting would not repeat that, so it is
/// replaced without a reboot. The other's console says nothing of a failure: it is rebooted once and not deleted.
pub(crate) fn first_boot_without_network_is_replaced_silent_one_rebooted(lab: &mut Lab) -> Result<()> {
    let roster = Roster::new("firstboot").set("join", "30s").set("reboot", "act").set("replace", "act");
    let roster = roster.pool("dead").pool("quiet").pool("well");
    lab.machines_with_nodes(&roster, "well", &["fb-well"])?;
    let place = lab.place(&[&roster])?;
    let running = lab.start(&place)?;
    lab.sees(&place, 1)?;
    let begun = Instant::now();
    // Its console speaks before its time is up, or it would rightly be taken for a silent one and rebooted.
    let dead = lab.machines(&roster, "dead", &["fb-dead"], &[])?.remove(0);
    lab.rig.console("fb-dead", NO_NETWORK)?;
    let quiet = lab.machines(&roster, "quiet", &["fb-quiet"], &[])?.remove(0);
    lab.rig.console("fb-quiet", "[    0.000000] Linux version 6.1.90 (build@host)\nfb-quiet login: ")?;
    until("the one without network to be gone", s(100), || {
        ensure!(lab.cloud.server(&dead.id)?.is_none(), "it is still there");
        Ok(())
    })?;
    ensure!(begun.elapsed() > s(30), "it was deleted before its time");
    until("the other one to be rebooted", s(60), || {
        let reboots = lab.cloud.actions(&quiet.id, "reboot")?;
        ensure!(reboots == 1, "{reboots} reboots");
        Ok(())
    })?;
    let ledger = place.ledger()?;
    let incident = ledger.newest("fb-dead", FaultKind::NeverJoined)?;
    ensure!(
        incident.code() == "RV113" && incident.evidence().contains("network is unreachable"),
        "{incident:?}"
    );
    ensure!(incident.intents.len() == 1, "{}", incident.told());
    let calls = lab.proxy.calls()?;
    ensure!((calls.of("nova", REBOOT), calls.of("nova", DELETE_SERVER)) == (1, 1), "{calls}");
    lab.rig.nodes(&["fb-quiet"], &["--no-route"])?;
    mended(&place, "fb-quiet", FaultKind::NeverJoined)?;
    ensure!(lab.cloud.server(&quiet.id)?.is_some(), "the rebooted one was deleted");
    running.stop()?;
    Ok(())
}

/// Two clusters of like names in one project, and machines of the same name in both. Everything that is wrong with the
/// neighbour's is left alone, while the same faults of our own are repaired.
pub(crate) fn a_neighbour_cluster_of_a_like_name_is_not_touched(lab: &mut Lab) -> Result<()> {
    let acting = |roster: Roster| roster.set("replace", "act").set("reboot", "act").set("join", "10s");
    let ours = acting(Roster::new("prod")).pool("workers");
    let theirs = Roster::new("prod-eu").pool("workers");
    lab.machines_with_nodes(&ours, "workers", &["prod-0"])?;
    let own = lab.machines(&ours, "workers", &["prod-eu-1"], &["--no-group"])?.remove(0);
    let own_errored = lab.machines(&ours, "workers", &["prod-2"], &[])?.remove(0);
    let foreign = lab.machines(&theirs, "workers", &["prod-eu-1"], &["--no-group"])?.remove(0);
    let foreign_errored = lab.machines(&theirs, "workers", &["prod-3"], &[])?.remove(0);
    for machine in ["prod-2", "prod-3"] {
        lab.rig.fault(&["errored", machine, "Build of instance failed."])?;
    }
    let place = lab.place(&[&ours])?;
    let running = lab.start(&place)?;
    until("our own errored server to be gone", s(75), || {
        ensure!(lab.cloud.server(&own_errored.id)?.is_none(), "it is still there");
        Ok(())
    })?;
    let groups = lab.cloud.groups_of(&own.id)?;
    ensure!(groups == [vec![lab.rig.facts.openstack.security_group.clone()]], "ours: {groups:?}");
    let there = lab.cloud.server(&foreign_errored.id)?.context("the neighbour's errored server is gone")?;
    ensure!(there["status"] == "ERROR" && there["OS-EXT-STS:task_state"].is_null(), "{there}");
    ensure!(lab.cloud.groups_of(&foreign.id)? == [Vec::<String>::new()], "the neighbour's port was changed");
    for id in [&foreign.id, &foreign_errored.id] {
        for action in ["reboot", "delete"] {
            ensure!(lab.cloud.actions(id, action)? == 0, "the neighbour's server has a {action}");
        }
    }
    let ledger = place.ledger()?;
    let strange = |incident: &&Incident| {
        let subject = incident.subject.to_string();
        subject == foreign.id || subject == foreign_errored.id
    };
    ensure!(ledger.incidents.iter().find(strange).is_none(), "{}", ledger.told());
    ensure!(lab.proxy.calls()?.of("nova", DELETE_SERVER) == 1, "more was deleted");
    let gone = ledger.newest("prod-2", FaultKind::Errored)?;
    ensure!(gone.verdict.is_none_or(|verdict| verdict == Verdict::SubjectGone), "{}", gone.told());
    running.stop()?;
    Ok(())
}

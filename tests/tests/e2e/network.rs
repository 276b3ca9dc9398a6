//! Groups, rules, routes and address pairs: lost, put back, and proved by reading the services themselves.

use anyhow::{Result, ensure};
use reveille_core::model::incident::FaultKind;
use reveille_core::record::Verdict;
use reveille_tests::lab::Lab;
use reveille_tests::roster::Roster;
use reveille_tests::wait::{s, until};

/// A server that was made without its group: it never joined, the group is put on its port once, the incident closes as
/// mended; the roll ends with 1 while the machine is missing and with 0 once it has joined.
pub(crate) fn a_machine_without_its_group_is_mended_and_joins(lab: &mut Lab) -> Result<()> {
    let roster = Roster::new("nogroup").pool("workers");
    let machine = lab.machines(&roster, "workers", &["ng-1"], &["--no-group"])?.remove(0);
    ensure!(lab.cloud.groups_of(&machine.id)? == [Vec::<String>::new()], "the scene is not set");
    let place = lab.place(&[&roster])?;
    let (code, roll) = lab.reveille.roll(&place)?;
    ensure!(code == 1 && roll.summary.absent == 1, "the roll before: {code}, {:?}", roll.summary);
    let running = lab.start(&place)?;
    let group = lab.rig.facts.openstack.security_group.clone();
    until("the group on the port", s(30), || {
        let groups = lab.cloud.groups_of(&machine.id)?;
        ensure!(groups == [vec![group.clone()]], "{groups:?}");
        Ok(())
    })?;
    until("the incident to close as mended", s(30), || {
        place.ledger()?.newest("ng-1", FaultKind::GroupMissing)?.ended(Verdict::Mended)
    })?;
    lab.rig.nodes(&["ng-1"], &["--no-route"])?;
    until("the roll to end with 0", s(20), || {
        let (code, roll) = lab.reveille.roll(&place)?;
        ensure!(code == 0 && roll.summary.answer == 1, "{code}, {:?}", roll.summary);
        Ok(())
    })?;
    ensure!(running.stop()? == 0, "run did not end well");
    let calls = lab.proxy.calls()?;
    ensure!(calls.of("neutron", "PUT /v2.0/ports/{id}") == 1 && calls.writes().len() == 1, "{calls}");
    let ledger = place.ledger()?;
    ledger.is_consistent()?;
    ensure!(ledger.newest("ng-1", FaultKind::GroupMissing)?.code() == "RV104", "{}", ledger.told());
    Ok(())
}

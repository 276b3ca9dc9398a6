//! Real kubelets: a real join, and a Node that the real cloud controller takes away.

use anyhow::{Result, ensure};
use reveille_core::model::incident::FaultKind;
use reveille_core::record::Verdict;
use reveille_tests::lab::Lab;
use reveille_tests::roster::Roster;
use reveille_tests::wait::{s, throughout, until};

/// A server whose kubelet joins with a real `kubeadm join` turns from absent to present. Then a cloud controller with the
/// wrong project's credentials deletes its Node while server and kubelet live: that is "vanished", with the controller's
/// own event as evidence; nothing is replaced or rebooted, a person is told; a restart of the kubelet ends it.
pub(crate) fn a_real_join_counts_and_a_node_taken_by_the_cloud_controller_is_told(
    lab: &mut Lab,
) -> Result<()> {
    let roster = Roster::new("real").set("vanished", "60s").set("replace", "act").set("reboot", "act");
    let roster = roster.pool("workers");
    let machine = lab.machines(&roster, "workers", &["real-1"], &[])?.remove(0);
    let place = lab.place(&[&roster])?;
    let (code, roll) = lab.reveille.roll(&place)?;
    ensure!(code == 1 && roll.summary.absent == 1, "before the join: {code}, {:?}", roll.summary);
    let running = lab.start(&place)?;
    lab.real_node("real-1")?;
    until("the roll to end with 0", s(30), || {
        let (code, roll) = lab.reveille.roll(&place)?;
        ensure!(code == 0 && roll.summary.answer == 1, "{code}, {:?}", roll.summary);
        Ok(())
    })?;
    lab.rig.start_stranger_controller()?;
    lab.rig.fault(&["kubelet-hang", "real-1"])?;
    until("the cloud controller to delete the Node", s(90), || {
        ensure!(lab.kube.node("real-1")?.is_none(), "it is still there");
        Ok(())
    })?;
    lab.rig.run(&["stop", "occm"])?;
    lab.rig.lift(&["kubelet-hang", "real-1"])?;
    until("the machine to be told as vanished", s(30), || {
        let ledger = place.ledger()?;
        let incident = ledger.newest("real-1", FaultKind::Vanished)?;
        ensure!(incident.code() == "RV201", "{}: {:?}", incident.told(), incident.findings);
        let evidence = incident.evidence();
        ensure!(
            evidence.contains("DeletingNode") && evidence.contains("does not exist in the cloud provider"),
            "{evidence}"
        );
        Ok(())
    })?;
    let (code, roll) = lab.reveille.roll(&place)?;
    ensure!(code == 1 && roll.machines[0].state == "vanished", "{code}, {:?}", roll.machines);
    throughout("it is left alone", s(10), || lab.proxy.calls()?.no_writes())?;
    lab.rig.run(&["node", "restart-kubelet", "real-1"])?;
    until("the incident to close by itself", s(40), || {
        place.ledger()?.newest("real-1", FaultKind::Vanished)?.ended(Verdict::Recovered)
    })?;
    ensure!(lab.reveille.roll(&place)?.0 == 0, "the roll is not well");
    running.stop()?;
    lab.proxy.calls()?.no_writes()?;
    ensure!(lab.cloud.server(&machine.id)?.is_some(), "the server is gone");
    Ok(())
}

//! Real kubelets: a real join, and a Node that the real cloud controller takes away.

use anyhow::{Context, Result, ensure};
use reveille_core::model::incident::FaultKind;
use reveille_core::record::Verdict;
use reveille_tests::lab::Lab;
use reveille_tests::roster::Roster;
use reveille_tests::wait::{s, throughout, until};

/// A server whose kubelet joins with a real `kubeadm join` turns from absent to present. Then a cloud controller with the
/// wrong project's credentials deletes its Node while server and kubelet live: that is "vanished", with the controller's
/// own event as evidence; nothing is replaced or rebooted, a person is told; a restart of the kubelet ends it.
pub(crate) fn real_join_counts_and_cloud_controllers_deletion_is_told(lab: &mut Lab) -> Result<()> {
    let roster = Roster::new("real").set("vanished", "60s").set("replace", "act").set("reboot", "act");
    let roster = roster.pool("workers");
    let machine = lab.machines(&roster, "workers", &["real-1"], &[])?.remove(0);
    let place = lab.place(&[&roster])?;
    let (code, status) = lab.reveille.status(&place)?;
    ensure!(code == 1 && status.summary.absent == 1, "before the join: {code}, {:?}", status.summary);
    let running = lab.start(&place)?;
    lab.real_node("real-1")?;
    until("the status to end with 0", s(30), || {
        let (code, status) = lab.reveille.status(&place)?;
        ensure!(code == 0 && status.summary.answer == 1, "{code}, {:?}", status.summary);
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
    let (code, status) = lab.reveille.status(&place)?;
    ensure!(code == 1 && status.machines[0].state == "vanished", "{code}, {:?}", status.machines);
    throughout("it is left alone", s(10), || lab.proxy.calls()?.no_writes())?;
    lab.rig.run(&["node", "restart-kubelet", "real-1"])?;
    until("the incident to close by itself", s(40), || {
        place.ledger()?.newest("real-1", FaultKind::Vanished)?.ended(Verdict::Recovered)
    })?;
    ensure!(lab.reveille.status(&place)?.0 == 0, "the status is not well");
    running.stop()?;
    lab.proxy.calls()?.no_writes()?;
    ensure!(lab.cloud.server(&machine.id)?.is_some(), "the server is gone");
    Ok(())
}

/// A real kubelet requests its certificate and no approver approves it. The incident, `why` and the folder of the machine's logs
/// name that cause with the request by its name. The replacement is held back, because a successor would ask the same approver.
/// When a person approves it, as the finding says, the machine joins and the incident ends by itself.
pub(crate) fn unapproved_request_is_told_and_blocks_replacement(lab: &mut Lab) -> Result<()> {
    let name = "unheard-1";
    let roster = Roster::new("unheard").set("join", "30s").set("replace", "act").set("reboot", "act");
    let roster = roster.pool("workers");
    let machine = lab.machines(&roster, "workers", &[name], &[])?.remove(0);
    let place = lab.place(&[&roster])?;
    lab.rig.fault(&["csr-approver-off"])?;
    lab.will_spoil([name.to_owned()]);
    lab.rig.spoiled_node(name, "none")?;
    let request = pending_request(lab)?;
    let running = lab.start(&place)?;
    until("the request to be told as the cause", s(90), || {
        let ledger = place.ledger()?;
        let incident = ledger.newest(name, FaultKind::NeverJoined)?;
        let findings = format!("{:?}", incident.findings);
        ensure!(incident.code() == "RV532", "{}: {findings}", incident.told());
        ensure!(incident.evidence().contains(&request), "{request} is not quoted: {}", incident.evidence());
        Ok(())
    })?;
    let why = lab.reveille.ask(&place, &["why", name])?.stdout;
    ensure!(why.contains("csr-not-approved (RV532)") && why.contains(&request), "{why}");
    throughout("it is left alone", s(15), || lab.proxy.calls()?.no_writes())?;
    lab.rig.lift(&["csr-approver-off"])?;
    lab.kube.ctl(&["certificate", "approve", &request])?;
    until("the incident to close by itself", s(120), || {
        place.ledger()?.newest(name, FaultKind::NeverJoined)?.ended(Verdict::Recovered)
    })?;
    running.stop()?;
    lab.proxy.calls()?.no_writes()?;
    ensure!(lab.cloud.server(&machine.id)?.is_some(), "the server is gone");
    Ok(())
}

/// The one request for a certificate that waits.
fn pending_request(lab: &Lab) -> Result<String> {
    until("a request to be pending", s(60), || {
        let listed = lab.kube.ctl(&["get", "csr", "--no-headers"])?;
        let pending = listed.lines().find(|line| line.trim_end().ends_with("Pending"));
        let request = pending.and_then(|line| line.split_whitespace().next());
        request.map(str::to_owned).with_context(|| format!("none waits: {listed}"))
    })
}

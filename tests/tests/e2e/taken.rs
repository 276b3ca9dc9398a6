//! A real cloud controller deletes the node of a machine that is alive, because its cloud does not say yet that there is one: the
//! seed's story, with the controllers of OpenStack and of AWS.
//!
//! A real kubelet joins by `reveille join`. Its pod network is kept away, so that its node is not Ready at first: controllers ask
//! their cloud about such nodes alone. What was reached is read from the API server.

use std::collections::BTreeSet;
use std::fs;

use anyhow::{Context, Error, Result, ensure};
use reveille_tests::lab::Lab;
use reveille_tests::node::Node;
use reveille_tests::roster::Roster;
use reveille_tests::wait::{s, until};
use reveille_wire::report::JoinEnded;

/// The controller works for another project, in which there are none of our machines.
pub(crate) fn cloud_controller_deletes_node_until_it_knows_its_machine(lab: &mut Lab) -> Result<()> {
    let name = "taken-1";
    lab.will_spoil([name.to_owned()]);
    let machine = lab.machines(&Roster::new("taken"), "workers", &[name], &[])?.remove(0);
    let provider = format!("openstack:///{}", machine.id);
    lab.rig.start_stranger_controller()?;
    lab.rig.real_node(&["node", "up", name, "--no-join", "--provider-id", &provider])?;
    let node = Node::of(&lab.rig, lab.reveille.on_machines(), name);
    comes_back_whenever_it_is_taken(lab, &node, || {
        lab.rig.run(&["stop", "occm"])?;
        lab.rig.run(&["start", "occm"]).map(drop)
    })?;
    lab.rig.run(&["stop", "occm"])?;
    node.down()
}

/// EC2 does not know an instance that was launched seconds ago.
pub(crate) fn the_aws_controller_takes_a_node_until_ec2_knows_its_instance(lab: &mut Lab) -> Result<()> {
    lab.rig.run(&["start", "ec2"])?;
    let instance = lab.rig.instances(&["taken-2"], &[])?.remove(0);
    lab.will_spoil([instance.node.clone()]);
    lab.rig.fault(&["ec2-unknown-young", "3600"])?;
    lab.rig.run(&["start", "awsccm"])?;
    // Without one, this controller asks by name, and takes an unknown name for its own failure.
    let provider = format!("aws:///us-east-1a/{}", instance.id);
    lab.rig.real_node(&["node", "up", &instance.node, "--no-join", "--provider-id", &provider])?;
    let node = Node::of(&lab.rig, lab.reveille.on_machines(), &instance.node);
    comes_back_whenever_it_is_taken(lab, &node, || lab.rig.lift(&["ec2-unknown-young"]))?;
    lab.rig.run(&["stop", "awsccm"])?;
    lab.rig.run(&["stop", "ec2"])?;
    node.down()
}

/// Joins while the node is deleted each time that it comes, until the controller learns of the machine.
fn comes_back_whenever_it_is_taken(
    lab: &Lab,
    node: &Node<'_>,
    learn: impl FnOnce() -> Result<()> + Send,
) -> Result<()> {
    let (kube, name) = (&lab.kube, node.name());
    let (network, away) = (node.file("cni/10-rig.conflist"), node.file("10-rig.conflist"));
    fs::rename(&network, &away)?;
    let uid = || {
        let uid = kube.ctl(&["get", "node", name, "--ignore-not-found", "-o", "jsonpath={.metadata.uid}"])?;
        Ok::<_, Error>(Some(uid.trim().to_owned()).filter(|uid| !uid.is_empty()))
    };
    let mut lives = BTreeSet::new();
    let joined = node.join_beside(&["--stay", "8s"], || {
        until("the cloud controller to delete the node of a restarted kubelet, too", s(120), || {
            let now = uid()?;
            let is_gone = now.is_none();
            lives.extend(now);
            ensure!(lives.len() >= 2 && is_gone, "{} nodes came", lives.len());
            Ok::<_, Error>(())
        })?;
        learn()?;
        // A copy: containerd does not hear of a file that is moved into its folder.
        fs::copy(&away, &network).map(drop).context("cannot put the pod network back")
    })?;
    joined.ensure(JoinEnded::Joined)?;
    ensure!(kube.is_ready(name)?, "{name} is not Ready");
    joined.says("its node came and went")?;
    joined.says("a kubelet restart")?;
    joined.never_says("resets")?;
    let last = uid()?.context("its node is gone")?;
    ensure!(!lives.contains(&last), "a node that was deleted is there");
    let said = kube.ctl(&["get", "events", "-A", "--field-selector", "reason=DeletingNode"])?;
    ensure!(said.contains(name), "it was not the cloud controller: {said}");
    Ok(())
}

//! Clusters on EC2: the same engine against an EC2-compatible API, and the real cloud controller of AWS beside it.
//!
//! Instances are launched, their simulated nodes come, and something goes wrong with one of them. What was reached is read from
//! EC2 past the proxy and from the API server; what Reveille asked for, from the proxy's counts.

use anyhow::{Context, Error, Result, ensure};
use reveille_core::model::incident::FaultKind;
use reveille_core::record::Verdict;
use reveille_tests::lab::Lab;
use reveille_tests::reveille::{Place, Running};
use reveille_tests::rig::Ec2Instance;
use reveille_tests::roster::Roster;
use reveille_tests::wait::{s, throughout, until};

const SET_GROUPS: &str = "POST ModifyNetworkInterfaceAttribute";

/// A cluster of these instances with their nodes, and Reveille watching it.
struct Scene {
    instances: Vec<Ec2Instance>,
    place: Place,
    running: Running,
}

impl Scene {
    fn set(lab: &mut Lab, name: &str, names: &[&str]) -> Result<Self> {
        lab.rig.run(&["start", "ec2"])?;
        let instances = lab.rig.instances(names, &[])?;
        lab.will_spoil(instances.iter().map(|one| one.node.clone()));
        lab.rig.run(&[&["instance", "node"], names].concat())?;
        let roster = Roster::new(name).on_ec2(&lab.rig.ec2()?).set("cleanup", "act").pool("workers");
        let place = lab.place(&[&roster])?;
        lab.proxy.reset_calls()?;
        let running = lab.reveille.run(&place, &[])?;
        let expected = u32::try_from(names.len())?;
        until("the status to know them, and each to answer", s(60), || {
            let (code, status) = lab.reveille.status(&place)?;
            ensure!(code == 0 && status.summary.answer == expected, "{code}, {:?}", status.summary);
            Ok::<_, Error>(())
        })?;
        Ok(Self { instances, place, running })
    }

    /// Ends it, and proves that its ledger tells one story.
    fn end(self) -> Result<()> {
        ensure!(self.running.stop()? == 0, "run did not end well");
        self.place.ledger()?.is_consistent()
    }

    fn mended(&self, of: &str, kind: FaultKind) -> Result<()> {
        until(&format!("{of}'s {kind} to close as mended"), s(90), || {
            self.place.ledger()?.newest(of, kind)?.ended(Verdict::Mended)
        })
    }
}

fn groups(lab: &Lab, name: &str) -> Result<Vec<String>> {
    let all = lab.rig.instance_list()?;
    Ok(all.into_iter().find(|one| one.name == name).context("it is not listed")?.groups)
}

/// The nodes' group is taken off one interface and is put back beside what else is on it; an answer that is lost is not asked for
/// twice; an instance that its provider ended loses its Node, and nothing else happens for it.
pub(crate) fn instance_gets_its_group_back_and_ended_one_is_cleaned_up(lab: &mut Lab) -> Result<()> {
    let scene = Scene::set(lab, "ec2-group", &["eg-1", "eg-2"])?;
    let group = lab.rig.ec2()?.security_group;
    lab.proxy.arm("ec2-timeout-after-effect", serde_json::json!({"count": 1}))?;
    lab.rig.run(&["instance", "ungroup", "eg-1"])?;
    until("the group on the interface", s(60), || {
        let now = groups(lab, "eg-1")?;
        ensure!(now.contains(&group) && now.len() == 2, "{now:?}");
        Ok::<_, Error>(())
    })?;
    scene.mended("eg-1", FaultKind::GroupMissing)?;
    let calls = lab.proxy.calls()?;
    ensure!(calls.of("ec2", SET_GROUPS) == 1 && calls.writes().len() == 1, "{calls}");
    lab.proxy.reset_calls()?;
    let ended = scene.instances.get(1).context("two instances")?;
    lab.proxy.arm("ec2-spot-ended", serde_json::json!({}))?;
    lab.rig.fault(&["node-silent", &ended.node])?;
    lab.rig.run(&["instance", "terminate", "eg-2"])?;
    until("its Node to be deleted", s(120), || {
        ensure!(lab.kube.node(&ended.node)?.is_none(), "it is there");
        Ok::<_, Error>(())
    })?;
    let calls = lab.proxy.calls()?;
    // Each round lists once, and asks by id for an instance that is not there any more; the controller does not ask for the same
    // one again and again.
    let (rounds, asked) =
        (calls.of("ec2", "POST DescribeInstanceStatus"), calls.of("ec2", "POST DescribeInstances"));
    ensure!(asked <= 4 * rounds + 10, "asked {asked} times in {rounds} rounds");
    let writes = calls.writes();
    ensure!(writes.len() == 1 && calls.of("kube", "DELETE /api/v1/nodes/{name}") == 1, "{calls}");
    lab.rig.lift(&["node-silent", &ended.node]).ok();
    scene.end()
}

/// Lists that are empty, broken, throttled or of another hour: the controller concludes nothing from them and harms no machine.
pub(crate) fn facts_that_ec2_leaves_out_cost_no_machine(lab: &mut Lab) -> Result<()> {
    let scene = Scene::set(lab, "ec2-calm", &["ec-1", "ec-2", "ec-3"])?;
    lab.proxy.reset_calls()?;
    let troubles: [(&str, serde_json::Value); 5] = [
        ("ec2-empty-list", serde_json::json!({})),
        ("ec2-page-fails", serde_json::json!({"perPage": 5})),
        ("ec2-throttle", serde_json::json!({})),
        ("ec2-unknown-young", serde_json::json!({"seconds": 7200})),
        ("ec2-cut", serde_json::json!({})),
    ];
    for (trouble, arguments) in troubles {
        lab.proxy.arm(trouble, arguments)?;
        throughout(&format!("{trouble}: no machine is touched"), s(15), || lab.proxy.calls()?.no_writes())?;
        lab.proxy.disarm(trouble)?;
    }
    // Signed an hour too early, as they think there: the clock of EC2 counts.
    lab.proxy.arm("ec2-clock", serde_json::json!({"seconds": 3600}))?;
    until("everybody to answer by the clock of EC2", s(60), || {
        let (code, status) = lab.reveille.status(&scene.place)?;
        ensure!(code == 0 && status.summary.answer == 3, "{code}, {:?}", status.summary);
        Ok::<_, Error>(())
    })?;
    lab.proxy.disarm("ec2-clock")?;
    lab.proxy.calls()?.no_writes()?;
    scene.end()
}

/// The seed's case: EC2 does not know an instance yet, and the real cloud controller deletes its Node. The controller does not
/// take the instance for gone and does not replace it, and `why` says what brings it back.
pub(crate) fn instance_unknown_to_ec2_yet_is_told_and_not_replaced(lab: &mut Lab) -> Result<()> {
    let scene = Scene::set(lab, "ec2-young", &["ey-1"])?;
    lab.rig.run(&["start", "awsccm"])?;
    lab.proxy.reset_calls()?;
    let young = lab.rig.instances(&["ey-2"], &[])?.remove(0);
    lab.will_spoil([young.node.clone()]);
    // Older ones are known: they were launched before.
    lab.proxy.arm("ec2-unknown-young", serde_json::json!({"seconds": 45}))?;
    lab.rig.run(&["instance", "node", "ey-2", "--not-ready", "--no-route"])?;
    until("the real cloud controller to delete its node", s(60), || {
        ensure!(lab.kube.node(&young.node)?.is_none(), "it is there");
        Ok::<_, Error>(())
    })?;
    until("the operator to be told", s(120), || {
        let ledger = scene.place.ledger()?;
        ledger
            .newest("ey-2", FaultKind::Vanished)
            .or_else(|_| ledger.newest("ey-2", FaultKind::NeverJoined))
            .map(drop)
    })?;
    let (_, plan) = lab.reveille.plan(&scene.place)?;
    let why = lab.reveille.ask(&scene.place, &["why", "ey-2"])?;
    ensure!(why.stdout.contains("kubelet"), "it does not say what brings it back: {} {plan:?}", why.stdout);
    lab.proxy.calls()?.no_writes()?;
    lab.proxy.disarm("ec2-unknown-young")?;
    lab.rig.run(&["stop", "awsccm"])?;
    lab.rig.run(&["instance", "node", "ey-2", "--no-route"])?;
    until("it to answer", s(60), || {
        let (code, status) = lab.reveille.status(&scene.place)?;
        ensure!(code == 0 && status.summary.answer == 2, "{code}, {:?}", status.summary);
        Ok::<_, Error>(())
    })?;
    lab.proxy.calls()?.no_writes()?;
    scene.end()
}

/// Instances of a group and one without a group, two of three with nodes: `init` finds cluster, pool, group, route table and
/// rules, and writes a roster that only looks. The status of that roster misses the third machine. Nothing is changed anywhere.
pub(crate) fn a_survey_of_ec2_gives_a_roster_that_a_roll_takes_at_once(lab: &mut Lab) -> Result<()> {
    lab.rig.run(&["start", "ec2"])?;
    let kept = lab.rig.instances(&["es-1", "es-2"], &["--group", "asg-es"])?;
    let loose = lab.rig.instances(&["es-3"], &[])?;
    lab.will_spoil(kept.iter().chain(&loose).map(|one| one.node.clone()));
    lab.rig.run(&["instance", "node", "es-1", "es-2"])?;
    let (facts, kubeconfig) =
        (lab.rig.ec2()?, lab.rig.facts.kubernetes.proxy_kubeconfig.display().to_string());
    let place = lab.place(&[&Roster::new("surveyed").on_ec2(&facts).pool("workers")])?;
    let file = place.state.with_file_name("written.yaml");
    lab.proxy.reset_calls()?;
    let nowhere = Place { rosters: Vec::new(), ..place.clone() };
    let written = file.display().to_string();
    let surveyed = lab.reveille.ask(
        &nowhere,
        &[
            &[
                "init",
                "--file",
                &written,
                "--name",
                "surveyed",
                "--kubeconfig",
                &kubeconfig,
                "--context",
                "rig",
            ][..],
            &["--region", &facts.region, "--endpoint", &facts.endpoint],
        ]
        .concat(),
    )?;
    ensure!(surveyed.code == Some(0), "{:?}: {}{}", surveyed.code, surveyed.stdout, surveyed.stderr);
    let text = std::fs::read_to_string(&file).context("nothing was written")?;
    for part in [
        format!("cluster: {}}}", facts.cluster),
        "pool: \"k8s-pool=workers\"".to_owned(),
        "Kept by Auto Scaling group asg-es (2)".to_owned(),
        "1 of them have no owner.".to_owned(),
        "throughGroup: false".to_owned(),
        "securityGroups: [k8s-nodes]".to_owned(),
        "Group k8s-nodes lets its own members and all pods in.".to_owned(),
        format!("router: {{cloud: aws, id: {}}}", facts.route_table),
    ] {
        ensure!(text.contains(&part), "{part} is not in it:\n{text}");
    }
    ensure!(!text.contains(": act"), "it would act:\n{text}");
    let place = Place { rosters: vec![file], ..place };
    let (code, status) = lab.reveille.status(&place)?;
    ensure!(
        code == 1 && status.summary.machines == 3 && status.summary.answer == 2,
        "{code}, {:?}",
        status.summary
    );
    lab.proxy.calls()?.no_writes()
}

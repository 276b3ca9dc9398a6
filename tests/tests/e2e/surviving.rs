//! Invited machines join whichever process dies on the way: the agent with its kubeadm, the machine under it, the registration
//! server, each at every place that a join passes.
//!
//! Real parts: agents on real nodes, the real server and its state on disk, kubeadm, kubelet, a real cluster. What was reached
//! is read from the API server, and how often a machine was enrolled from the server's own ledger.

use std::fs;
use std::path::Path;

use anyhow::{Context, Error, Result, ensure};
use reveille_tests::agent::{agent, invitation, plans};
use reveille_tests::lab::Lab;
use reveille_tests::node::Node;
use reveille_tests::process::Background;
use reveille_tests::reveille::{Place, Running};
use reveille_tests::roster::Roster;
use reveille_tests::wait::{s, until};

/// Files that appear on the machine, one after the other.
const PLACES: [&str; 6] = [
    "agent/link/link.pem",
    "agent/link/link.json",
    "agent/plan.json",
    "agent/memory.json",
    "etc-kubernetes/bootstrap-kubelet.conf",
    "etc-kubernetes/kubelet.conf",
];

pub(crate) fn invited_machines_join_although_processes_die(lab: &mut Lab) -> Result<()> {
    let names = ["dies-agent", "dies-server"];
    let pools = ["one", "other"];
    let roster = Roster::new("surviving").set("rejoin", "act").pool(pools[0]).pool(pools[1]);
    let mut machines = lab.machines(&roster, pools[0], &names[..1], &[])?;
    machines.extend(lab.machines(&roster, pools[1], &names[1..], &[])?);
    let place = lab.place(&[&roster])?;
    lab.will_spoil(names.map(str::to_owned));
    let up = |name: &str| Node::up(&lab.rig, lab.reveille.on_machines(), name);
    let (first, second) = (up(names[0])?, up(names[1])?);
    let plans = plans(&[(&first, pools[0]), (&second, pools[1])])?.display().to_string();
    let run = |listen: &str| lab.reveille.run(&place, &["--listen", listen, "--plans", &plans]);
    let running = run("127.0.0.1:0")?;
    let invited = Invited { lab, place: &place };
    let (server, one) = invited.invite(&first, pools[0], &machines[0].id)?;
    let (_, other) = invited.invite(&second, pools[1], &machines[1].id)?;

    let process = the_agent_dies(lab, &first, &one)?;
    let (process, uid) = the_machine_dies(lab, &first, &one, process)?;
    let address = server.trim_start_matches("https://").to_owned();
    let running = the_server_dies(lab, &second, &other, running, || run(&address))?;
    ensure!(self::uid(lab, &first)? == uid, "a machine that was well has another node");

    invited.each_is_enrolled_once(machines.len())?;
    for (node, mut process) in [(first, process), (second, running.1)] {
        process.kill();
        node.down()?;
    }
    running.0.stop().map(drop)
}

struct Invited<'l> {
    lab: &'l Lab,
    place: &'l Place,
}

impl Invited<'_> {
    /// The server, and what the machine's agent is started with each time.
    fn invite(&self, node: &Node<'_>, pool: &str, instance: &str) -> Result<(String, Vec<String>)> {
        let (server, pin, token) = invitation(self.lab, self.place, pool)?;
        fs::write(node.file("token"), token)?;
        fs::set_permissions(node.file("token"), std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
        let file = node.file("token").display().to_string();
        let words = ["--server", &server, "--ca-pin", &pin, "--token-file", &file, "--instance-id", instance];
        Ok((server.clone(), words.map(str::to_owned).to_vec()))
    }

    fn each_is_enrolled_once(&self, machines: usize) -> Result<()> {
        let text = ledgers(&self.place.state)?;
        let enrolled: Vec<&str> = text.lines().filter(|line| line.contains(r#""t":"enrolled""#)).collect();
        let used = enrolled.iter().filter(|line| line.contains(r#""used":true"#)).count();
        let of = |line: &&str| {
            line.split(r#""machine":""#).nth(1).and_then(|rest| rest.split('"').next()).map(str::to_owned)
        };
        let known: std::collections::BTreeSet<_> = enrolled.iter().filter_map(of).collect();
        ensure!(known.len() == machines, "{} machines are known: {enrolled:?}", known.len());
        ensure!(used == machines, "{used} uses were counted: {enrolled:?}");
        Ok(())
    }
}

/// All that the registration server has written.
fn ledgers(state: &Path) -> Result<String> {
    let mut text = String::new();
    for entry in fs::read_dir(state.join(".registrar/ledger")).context("the server has no ledger")? {
        let path = entry?.path();
        if path.extension().is_some_and(|kind| kind == "jsonl") {
            text.push_str(&fs::read_to_string(path)?);
        }
    }
    Ok(text)
}

fn uid(lab: &Lab, node: &Node<'_>) -> Result<String> {
    lab.kube.ctl(&["get", "node", node.name(), "-o", "jsonpath={.metadata.uid}"])
}

fn starts(lab: &Lab, node: &Node<'_>, words: &[String]) -> Result<Background> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    agent(node, &lab.reveille.on_machines().display().to_string(), &words)
}

/// It is there or further: some of the files live for a moment.
fn comes(node: &Node<'_>, place: usize) -> Result<()> {
    let places = PLACES.get(place..).unwrap_or_default();
    until(&format!("{} to come to {places:?}", node.name()), s(120), || {
        let log = || fs::read_to_string(node.file("agent.log")).unwrap_or_default();
        ensure!(places.iter().any(|place| node.file(place).exists()), "it is not there: {}", log());
        Ok::<_, Error>(())
    })
}

fn is_ready(lab: &Lab, node: &Node<'_>) -> Result<()> {
    until(&format!("{} to be a Ready node", node.name()), s(180), || {
        let log = || fs::read_to_string(node.file("agent.log")).unwrap_or_default();
        ensure!(lab.kube.is_ready(node.name())?, "it is not: {}", log());
        Ok::<_, Error>(())
    })
}

fn the_agent_dies(lab: &Lab, node: &Node<'_>, words: &[String]) -> Result<Background> {
    for place in 0..PLACES.len() {
        let mut process = starts(lab, node, words)?;
        comes(node, place)?;
        until("the agent to be dead", s(20), || {
            // Where the place was come to in an earlier life, this one may not have begun.
            node.kill(&["reveille", "kubeadm"])?;
            ensure!(process.ended().is_some(), "it lives");
            Ok::<_, Error>(())
        })?;
    }
    let process = starts(lab, node, words)?;
    is_ready(lab, node)?;
    Ok(process)
}

/// A power cut while all is well. The kubelet comes back as its unit does; the agent finds its node and begins nothing.
fn the_machine_dies(
    lab: &Lab,
    node: &Node<'_>,
    words: &[String],
    mut process: Background,
) -> Result<(Background, String)> {
    let (before, boot) = (uid(lab, node)?, boot_of(lab, node)?);
    lab.rig.run(&["node", "reboot", node.name()])?;
    process.kill();
    let log = || fs::read_to_string(node.file("agent.log")).context("no log of the agent");
    let said = log()?.len();
    let process = starts(lab, node, words)?;
    until("the node to be Ready with another boot id", s(90), || {
        ensure!(lab.kube.is_ready(node.name())? && boot_of(lab, node)? != boot, "it is not");
        Ok::<_, Error>(())
    })?;
    until("the agent to see that it stays", s(60), || {
        ensure!(
            log()?.get(said..).unwrap_or_default().contains("has stayed"),
            "it does not say so: {}",
            log()?
        );
        Ok::<_, Error>(())
    })?;
    ensure!(uid(lab, node)? == before, "it joined again after a reboot");
    ensure!(!log()?.get(said..).unwrap_or_default().contains("joins"), "it joins after a reboot: {}", log()?);
    Ok((process, before))
}

fn boot_of(lab: &Lab, node: &Node<'_>) -> Result<String> {
    lab.kube.ctl(&["get", "node", node.name(), "-o", "jsonpath={.status.nodeInfo.bootID}"])
}

/// Its agent is left to live. The server is killed at each place, and starts again on what it has written.
fn the_server_dies(
    lab: &Lab,
    node: &Node<'_>,
    words: &[String],
    mut running: Running,
    run: impl Fn() -> Result<Running>,
) -> Result<(Running, Background)> {
    let process = starts(lab, node, words)?;
    for place in 0..PLACES.len() {
        comes(node, place)?;
        running.kill();
        // Long enough that every agent that asks is refused.
        std::thread::sleep(s(2));
        running = run()?;
    }
    is_ready(lab, node)?;
    Ok((running, process))
}

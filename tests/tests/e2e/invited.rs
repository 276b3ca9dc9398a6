//! A machine from its invitation to a node that stays: the real registration server, a real agent on a real node, a real token in
//! a real cluster.

use std::fs;
use std::net::TcpStream;

use anyhow::{Context, Error, Result, ensure};
use reveille_core::effect::Call;
use reveille_core::model::incident::FaultKind;
use reveille_core::record::Verdict;
use reveille_tests::agent::{agent, agent_on_ec2, invitation, plans};
use reveille_tests::lab::Lab;
use reveille_tests::metadata::Metadata;
use reveille_tests::node::Node;
use reveille_tests::process::Background;
use reveille_tests::roster::Roster;
use reveille_tests::wait::{s, throughout, until};

/// Invited, enrolled, joined, labelled as planned. A node that is deleted comes back by the agent alone. An agent that was
/// killed, and a server that was, go on where they were. No secret stands in a log, and nothing was done in the cloud.
pub(crate) fn an_invited_machine_joins_and_its_agent_keeps_its_node(lab: &mut Lab) -> Result<()> {
    let name = "invited-1";
    let roster = Roster::new("invited").set("rejoin", "act").set("reboot", "act").set("replace", "act");
    let roster = roster.pool("workers");
    let machine = lab.machines(&roster, "workers", &[name], &[])?.remove(0);
    let place = lab.place(&[&roster])?;
    lab.will_spoil([name.to_owned()]);
    let program = lab.reveille.on_machines().display().to_string();
    let node = Node::up(&lab.rig, lab.reveille.on_machines(), name)?;
    let plans = plans(&[(&node, "workers")])?.display().to_string();
    lab.proxy.reset_calls()?;
    let listen = ["--listen", "127.0.0.1:0", "--plans", &plans];
    let running = lab.reveille.run(&place, &listen)?;
    let (server, pin, token) = invitation(lab, &place, "workers")?;
    fs::write(node.file("token"), &token)?;
    fs::set_permissions(node.file("token"), std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
    let file = node.file("token").display().to_string();
    let first = ["--server", &server, "--ca-pin", &pin, "--token-file", &file, "--instance-id", &machine.id];
    let metadata = Metadata::open()?;
    metadata.recommends(true);
    let mut process = agent_on_ec2(&node, &program, &first, Some(&metadata))?;
    let ready = || {
        ensure!(lab.kube.is_ready(name)?, "it is not Ready: {}", fs::read_to_string(node.file("agent.log"))?);
        Ok::<_, Error>(())
    };
    until("the machine to be a Ready node", s(60), ready)?;
    let labels = lab.kube.ctl(&["get", "node", name, "-o", "jsonpath={.metadata.labels.tier}"])?;
    ensure!(labels.trim() == "web", "its labels are not the plan's: {labels}");
    let uid = || lab.kube.ctl(&["get", "node", name, "-o", "jsonpath={.metadata.uid}"]);
    let log = || fs::read_to_string(node.file("agent.log")).context("no log of the agent");
    until("the agent to see that it stays", s(60), || {
        ensure!(log()?.contains("has stayed"), "it does not say so");
        Ok::<_, Error>(())
    })?;
    let why = || lab.reveille.ask(&place, &["why", name]).map(|ended| ended.stdout);
    until("what its provider told the machine to be shown by the controller", s(60), || {
        let told = why()?;
        ensure!(told.contains("rebalance: recommended"), "{told}");
        Ok::<_, Error>(())
    })?;
    metadata.recommends(false);

    let before = uid()?;
    lab.kube.ctl(&["delete", "node", name])?;
    until("the agent to bring its node back", s(90), || {
        ensure!(uid()? != before && lab.kube.is_ready(name)?, "it is not back");
        Ok::<_, Error>(())
    })?;
    until("what is recommended no more to be over", s(60), || {
        place.ledger()?.newest(name, FaultKind::ProviderNotice)?.ended(Verdict::Recovered)
    })?;

    let address = server.trim_start_matches("https://").to_owned();
    running.kill();
    node.kill(&["reveille"])?;
    until("the agent to be dead", s(20), || {
        ensure!(process.ended().is_some(), "it lives");
        Ok::<_, Error>(())
    })?;
    let before = uid()?;
    lab.kube.ctl(&["delete", "node", name])?;
    let mut process = agent(&node, &program, &["--instance-id", &machine.id])?;
    until("an agent without its server to bring its node back", s(90), || {
        ensure!(uid()? != before && lab.kube.is_ready(name)?, "it is not back");
        Ok::<_, Error>(())
    })?;
    let linked = log()?.matches("linked to the registration server").count();
    let running = lab.reveille.run(&place, &["--listen", &address, "--plans", &plans])?;
    until("the agent to find its server again", s(120), || {
        let now = log()?.matches("linked to the registration server").count();
        ensure!(now > linked, "it does not: {}", log()?);
        Ok::<_, Error>(())
    })?;
    throughout("nothing is written but tokens for joins", s(5), || {
        let writes = lab.proxy.calls()?.writes();
        ensure!(writes.iter().all(|(call, _)| call.contains("/secrets")), "{writes:?}");
        Ok::<_, Error>(())
    })?;
    node.kill(&["reveille"])?;
    process.kill();
    running.stop()?;
    let secret = token.rsplit('.').next().context("the token has no secret")?;
    for text in [log()?, fs::read_to_string(&place.log)?] {
        ensure!(!text.contains(secret) && !text.contains("PRIVATE KEY"), "a secret stands in a log");
    }
    ensure!(lab.cloud.server(&machine.id)?.is_some(), "the server is gone");
    node.down()
}

/// The kubelet's port is taken, so that what the agent does by itself comes to nothing. The engine asks it to try again, with an
/// intent in the ledger, and does nothing in the cloud; the node comes back once the port is free.
pub(crate) fn the_engine_asks_the_agent_before_it_asks_the_cloud(lab: &mut Lab) -> Result<()> {
    let name = "asked-1";
    let roster = Roster::new("asked").set("rejoin", "act").set("reboot", "act").set("replace", "act");
    let roster = roster.pool("workers");
    let machine = lab.machines(&roster, "workers", &[name], &[])?.remove(0);
    let place = lab.place(&[&roster])?;
    lab.will_spoil([name.to_owned()]);
    let program = lab.reveille.on_machines().display().to_string();
    let node = Node::up(&lab.rig, lab.reveille.on_machines(), name)?;
    let plans = plans(&[(&node, "workers")])?.display().to_string();
    let running = lab.reveille.run(&place, &["--listen", "127.0.0.1:0", "--plans", &plans])?;
    let (server, pin, token) = invitation(lab, &place, "workers")?;
    fs::write(node.file("token"), &token)?;
    fs::set_permissions(node.file("token"), std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
    let file = node.file("token").display().to_string();
    let words = ["--server", &server, "--ca-pin", &pin, "--token-file", &file, "--instance-id", &machine.id];
    let mut process = agent(&node, &program, &words)?;
    let log = || fs::read_to_string(node.file("agent.log")).context("no log of the agent");
    until("the agent to see that its node stays", s(90), || {
        ensure!(log()?.contains("has stayed"), "it does not say so: {}", log()?);
        Ok::<_, Error>(())
    })?;
    lab.proxy.reset_calls()?;

    let port = node.kubelet_port()?;
    lab.rig.run(&["node", "stop-kubelet", name])?;
    let taken = format!("TCP-LISTEN:{port},bind=127.0.0.1,reuseaddr,fork");
    let mut taker = Background::start(node.command(&["socat", &taken, "/dev/null"]))?;
    until("its port to be taken by another program", s(20), || {
        ensure!(taker.ended().is_none(), "socat has ended: {:?}", taker.ended());
        TcpStream::connect(format!("127.0.0.1:{port}")).context("nothing listens there")
    })?;
    lab.kube.ctl(&["delete", "node", name])?;
    until("the engine to ask the agent, and an answer", s(240), || {
        let ledger = place.ledger()?;
        let mut asked = ledger.intents().filter(|intent| matches!(intent.call, Call::AskAgent(_)));
        ensure!(asked.any(|intent| intent.outcome.is_some()), "it does not: {}", log()?);
        Ok::<_, Error>(())
    })?;
    ensure!(log()?.contains("asked to"), "the agent heard of nothing: {}", log()?);
    node.kill(&["socat"])?;
    taker.kill();
    until("the node to be back", s(180), || {
        ensure!(lab.kube.is_ready(name)?, "it is not: {}", log()?);
        place.ledger()?.newest(name, FaultKind::Vanished)?.ended(Verdict::Mended)
    })?;
    let writes = lab.proxy.calls()?.writes();
    ensure!(writes.iter().all(|(call, _)| call.contains("/secrets")), "{writes:?}");
    node.kill(&["reveille"])?;
    process.kill();
    running.stop()?;
    node.down()
}

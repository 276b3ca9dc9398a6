//! `reveille agent` on a real node, as a person with an invitation starts it.
//!
//! The plan of the node's pool is made of the configuration that the rig wrote for it. Nothing is waited for here but the
//! invitation.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Error, Result, ensure};

use crate::lab::Lab;
use crate::metadata::Metadata;
use crate::node::Node;
use crate::process::Background;
use crate::reveille::Place;
use crate::wait::{s, until};

/// An agent on a node, its log in the node's own folder.
///
/// # Errors
/// It cannot be started.
pub fn agent(node: &Node<'_>, program: &str, arguments: &[&str]) -> Result<Background> {
    agent_on_ec2(node, program, arguments, None)
}

/// The same, on a machine whose provider tells it something.
///
/// # Errors
/// It cannot be started.
pub fn agent_on_ec2(
    node: &Node<'_>,
    program: &str,
    arguments: &[&str],
    metadata: Option<&Metadata>,
) -> Result<Background> {
    let folder = node.file("agent").display().to_string();
    let bounds = bounding_set()?;
    let less_than_root = ["setpriv", "--no-new-privs", "--bounding-set", &bounds];
    let words =
        [&less_than_root, &[program, "agent", "--folder", &folder, "--stay", "3"][..], arguments].concat();
    let mut command = node.command(&words);
    let log = fs::File::options().create(true).append(true).open(node.file("agent.log"))?;
    if let Some(metadata) = metadata {
        command.env("AWS_EC2_METADATA_SERVICE_ENDPOINT", metadata.url());
    }
    command.env("NO_COLOR", "1").stdout(log.try_clone()?).stderr(log);
    Background::start(command)
}

/// What the unit of the agent leaves it of root's rights, as setpriv takes it: what it lists must be enough for real kubeadm.
fn bounding_set() -> Result<String> {
    let unit = include_str!("../../deploy/reveille-agent.service");
    let lines = unit.lines().filter_map(|line| line.strip_prefix("CapabilityBoundingSet="));
    let names = lines.flat_map(str::split_whitespace).filter_map(|name| name.strip_prefix("CAP_"));
    let kept: Vec<String> = names.map(|name| format!("+{}", name.to_lowercase())).collect();
    ensure!(!kept.is_empty(), "the unit bounds no capabilities");
    Ok(format!("-all,{}", kept.join(",")))
}

/// Plans, a pool for each of these nodes: kubeadm, with what the rig's nodes need under it.
///
/// # Errors
/// The rig's configuration is not as it was expected, or there is no node.
pub fn plans(nodes: &[(&Node<'_>, &str)]) -> Result<PathBuf> {
    let (first, _) = nodes.first().context("a plan wants a node")?;
    let mut text = "plans:\n".to_owned();
    for (node, pool) in nodes {
        let join = fs::read_to_string(node.file("join.yaml"))?;
        let between = |from: &str, to: &str| {
            let found = join.split(from).nth(1).and_then(|rest| rest.split(to).next());
            found.map(str::to_owned).with_context(|| format!("join.yaml has no {from}"))
        };
        let (server, pin) = (between("apiServerEndpoint: \"", "\"")?, between("caCertHashes: [\"", "\"")?);
        // The node's patches come from the machine's side: a plan may not bring any.
        let is_base =
            |line: &&str| !["discovery", "patches", "  name:"].iter().any(|start| line.starts_with(start));
        let base: Vec<&str> = join.lines().filter(is_base).collect();
        let name = format!("base-{pool}.yaml");
        fs::write(first.file(&name), base.join("\n"))?;
        text.push_str(&format!(
            "- pool: {pool}\n  join:\n    distribution: kubeadm\n    server: {server}\n    caPins: [\"{pin}\"]\n    labels: {{tier: web}}\n    configFile: {name}\n  files:\n  - {{path: /etc/kubernetes/cloud.conf, mode: \"0600\", content: \"[Global]\\n\"}}\n"
        ));
    }
    let path = first.file("plans.yaml");
    fs::write(&path, text)?;
    Ok(path)
}

/// The one command for a machine, taken apart: server, pin, token.
///
/// # Errors
/// There is none in time.
pub fn invitation(lab: &Lab, place: &Place, pool: &str) -> Result<(String, String, String)> {
    until("an invitation", s(30), || {
        let asked = lab.reveille.ask(place, &["invite", "--pool", pool])?;
        ensure!(asked.code == Some(0), "{}", asked.stderr);
        let word = |flag: &str| {
            let found = asked.stdout.split(flag).nth(1).and_then(|rest| rest.split_whitespace().next());
            found.map(str::to_owned).with_context(|| format!("no {flag} in {}", asked.stdout))
        };
        let token = asked.stdout.lines().find(|line| line.starts_with("rvi1.")).context("no token")?;
        Ok::<_, Error>((word("--server ")?, word("--ca-pin ")?, token.to_owned()))
    })
}

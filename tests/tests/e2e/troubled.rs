//! `reveille join` while the cluster around it is in trouble: one thing at a time, each on a real node of its own, and each with
//! the real program that makes the trouble: the approver, the API server, another cluster.
//!
//! What was reached is read from the API server and from the node's files. Trouble that is on when a case fails is lifted by
//! the runner, after every scenario.

use std::fs;

use anyhow::{Context, Error, Result, ensure};
use reveille_tests::lab::Lab;
use reveille_tests::node::{Joined, Node};
use reveille_tests::process;
use reveille_tests::rig::Rig;
use reveille_tests::wait::{s, until};
use reveille_wire::report::JoinEnded;

/// One trouble after the other: each is the whole cluster's.
pub(crate) fn a_join_outlives_its_clusters_trouble(lab: &mut Lab) -> Result<()> {
    let names = ["approval", "clock", "frozen", "foreign"].map(|case| format!("in-{case}"));
    lab.will_spoil(names);
    let reveille = lab.reveille.on_machines().to_owned();
    let up = |case: &str| Node::up(&lab.rig, &reveille, &format!("in-{case}"));
    request_stays_unapproved(lab, up("approval")?).context("approval")?;
    its_clock_is_a_day_behind(lab, up("clock")?).context("clock")?;
    the_api_server_freezes_in_the_middle(lab, up("frozen")?).context("frozen")?;
    the_machine_belongs_to_another_cluster(lab, up("foreign")?).context("foreign")
}

fn is_joined(lab: &Lab, node: &Node<'_>, joined: &Joined) -> Result<()> {
    joined.ensure(JoinEnded::Joined)?;
    ensure!(lab.kube.is_ready(node.name())?, "{} is not Ready", node.name());
    Ok(())
}

fn request_stays_unapproved(lab: &Lab, node: Node<'_>) -> Result<()> {
    lab.rig.fault(&["csr-approver-off"])?;
    let late = node.join(&["--within", "20s"])?;
    late.ensure(JoinEnded::Late)?;
    let why = late.report.why.as_deref().unwrap_or_default();
    let request =
        why.split("kubectl certificate approve ").nth(1).context("it does not say what to approve")?;
    lab.kube.ctl(&["certificate", "approve", request])?;
    let joined = node.join(&["--stay", "2s"])?;
    is_joined(lab, &node, &joined)?;
    joined.never_says("resets")?;
    lab.rig.lift(&["csr-approver-off"])?;
    node.down()
}

fn its_clock_is_a_day_behind(lab: &Lab, node: Node<'_>) -> Result<()> {
    let (rig, kube) = (&lab.rig, &lab.kube);
    rig.fault(&["api-certificate-ahead"])?;
    let joined = node.join_beside(&["--stay", "2s"], || {
        until("the API server to answer with its certificate of tomorrow", s(60), || {
            ensure!(!node.file("agent/memory.json").exists(), "the join has begun");
            let asked = kube.ctl(&["get", "--raw", "/version"]);
            ensure!(asked.is_err_and(|error| format!("{error:#}").contains("not yet valid")), "it does not");
            Ok::<_, Error>(())
        })?;
        // Longer than a stranger would be asked.
        std::thread::sleep(s(25));
        ensure!(!node.file("etc-kubernetes/bootstrap-kubelet.conf").exists(), "a join was begun");
        rig.lift(&["api-certificate-ahead"])
    })?;
    is_joined(lab, &node, &joined)?;
    joined.says("compare the clocks")?;
    node.down()
}

fn the_api_server_freezes_in_the_middle(lab: &Lab, node: Node<'_>) -> Result<()> {
    let rig = &lab.rig;
    let joined = node.join_beside(&["--stay", "2s"], || {
        until("the join to be in the middle", s(60), || {
            ensure!(node.file("etc-kubernetes/bootstrap-kubelet.conf").exists(), "it is not");
            Ok::<_, Error>(())
        })?;
        rig.fault(&["api-hang"])?;
        std::thread::sleep(s(15));
        rig.lift(&["api-hang"])
    })?;
    is_joined(lab, &node, &joined)?;
    joined.says("did not answer within")?;
    node.down()
}

/// The machine joined a second real cluster first. It is left alone while that cluster lives, and while the agent does not know
/// whether it lives. When our cluster stands at that one's address, nothing is left to be lost.
fn the_machine_belongs_to_another_cluster(lab: &Lab, node: Node<'_>) -> Result<()> {
    let other = Cluster::up(&format!("{}-other", lab.rig.name()))?;
    let (file, ours) = (node.file("join.yaml"), fs::read_to_string(node.file("join.yaml"))?);
    fs::write(&file, other.addressed(&ours)?)?;
    node.join(&["--stay", "1s"])?.ensure(JoinEnded::Joined)?;
    fs::write(&file, &ours)?;
    let kubeconfig = node.file("etc-kubernetes/kubelet.conf");
    let theirs = fs::read_to_string(&kubeconfig)?;
    let left_alone = |why: &str| {
        let left = node.join(&["--stay", "1s"])?;
        left.ensure(JoinEnded::LeftAlone)?;
        left.says(why)?;
        ensure!(fs::read_to_string(&kubeconfig)? == theirs, "its kubeconfig is not what it was");
        Ok::<_, Error>(())
    };
    left_alone("it belongs to another cluster, which answers")?;
    drop(other);
    left_alone("which does not answer; that proves nothing")?;
    let server = |text: &str, mark: &str, end: char| {
        let found = text.split(mark).nth(1).and_then(|rest| rest.split(end).next());
        found.map(str::to_owned).with_context(|| format!("no {mark}"))
    };
    let (from, to) = (server(&theirs, "https://", '\n')?, server(&ours, "apiServerEndpoint: \"", '"')?);
    fs::write(&kubeconfig, theirs.replace(&from, &to))?;
    let joined = node.join(&["--stay", "2s"])?;
    is_joined(lab, &node, &joined)?;
    joined.says("a reset and a join")?;
    node.down()
}

/// A second cluster beside the rig's own: a control plane, and nothing else.
struct Cluster {
    name: String,
}

impl Cluster {
    fn up(name: &str) -> Result<Self> {
        let cluster = Self { name: name.to_owned() };
        cluster.rig(&["up", "kubernetes"])?;
        Ok(cluster)
    }

    fn rig(&self, arguments: &[&str]) -> Result<String> {
        let mut command = std::process::Command::new(Rig::program());
        command.args(arguments).args(["--name", &self.name]);
        let ended = process::run(command, None, s(180))?;
        ensure!(ended.code == Some(0), "rig {arguments:?}: {}", ended.stderr);
        Ok(ended.stdout)
    }

    /// A kubeadm configuration, made one for this cluster.
    fn addressed(&self, configuration: &str) -> Result<String> {
        let env = self.rig(&["env"])?;
        let state = env.lines().find_map(|line| line.strip_prefix("export RIG_STATE="));
        let state = std::path::PathBuf::from(state.context("rig env names no RIG_STATE")?);
        let read = |name: &str| fs::read_to_string(state.join(name)).map(|text| text.trim().to_owned());
        let ports = read("ports")?;
        let port = ports.lines().find_map(|line| line.strip_prefix("API_PORT="));
        let discovery = format!(
            "discovery: {{bootstrapToken: {{apiServerEndpoint: \"127.0.0.1:{}\", token: \"{}\", caCertHashes: [\"{}\"]}}}}",
            port.context("it has no port")?,
            read("bootstrap-token")?,
            read("ca-hash")?
        );
        let lines =
            configuration.lines().map(|line| if line.starts_with("discovery:") { &discovery } else { line });
        Ok(lines.collect::<Vec<_>>().join("\n"))
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        Rig::take_down(&self.name);
    }
}

//! `reveille join` on real nodes: real kubeadm, kubelet and containerd, a real API server, and what goes wrong there.
//!
//! What was reached is read from the API server and from the node's own files, never from what the join says of itself alone.

use std::collections::VecDeque;
use std::fs;
use std::path::Path;
use std::sync::Mutex;

use anyhow::{Context, Error, Result, bail, ensure};
use reveille_tests::kube::Kube;
use reveille_tests::lab::Lab;
use reveille_tests::node::Node;
use reveille_tests::process::Background;
use reveille_tests::rig::Rig;
use reveille_tests::wait::{s, until};
use reveille_wire::report::JoinEnded;

/// Joins that run at the same time.
const AT_ONCE: usize = 4;

/// What several nodes are played with at the same time.
struct Props<'l> {
    rig: &'l Rig,
    kube: &'l Kube,
    reveille: &'l Path,
}

type Case = fn(&Props<'_>, &Node<'_>) -> Result<()>;

/// One thing each, on a node of its own, all in one cluster that is well.
pub(crate) fn a_join_ends_when_its_node_stays_or_says_why_it_does_not(lab: &mut Lab) -> Result<()> {
    let cases: [(&str, Case); 10] = [
        ("joins", joins_once_and_leaves_what_holds_alone),
        ("deleted", a_node_deleted_right_after_its_join_comes_back),
        ("drained", a_node_removed_on_purpose_stays_removed),
        ("renewed", a_token_that_died_is_renewed_while_it_waits),
        ("stranger", foreign_server_ends_it),
        ("taken", a_name_that_is_taken_is_left_alone),
        ("killed", one_that_is_killed_is_begun_again),
        ("broken", what_a_broken_join_left_is_cleared_away),
        ("port", a_join_that_comes_to_nothing_says_what_stands_against_it),
        ("waits", a_runtime_that_comes_late_is_waited_for),
    ];
    let name = |case: &str| format!("on-{case}");
    lab.will_spoil(cases.iter().map(|(case, _)| name(case)));
    let reveille = lab.reveille.on_machines().to_owned();
    let props = &Props { rig: &lab.rig, kube: &lab.kube, reveille: &reveille };
    let waiting: &Mutex<VecDeque<(&str, Case)>> = &Mutex::new(cases.into());
    let play = move || -> Result<()> {
        loop {
            let next = waiting.lock().map_err(|_| Error::msg("a lane before this one panicked"))?.pop_front();
            let Some((case, play)) = next else { return Ok(()) };
            let node = Node::up(props.rig, props.reveille, &name(case))?;
            play(props, &node).with_context(|| case.to_owned())?;
            node.down()?;
        }
    };
    let played = std::thread::scope(|scope| {
        let lanes: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(play)).collect();
        lanes.into_iter().map(|lane| lane.join().unwrap_or_else(|_| bail!("it panicked"))).collect::<Vec<_>>()
    });
    played.into_iter().collect()
}

fn ready(props: &Props<'_>, node: &Node<'_>) -> Result<()> {
    ensure!(props.kube.is_ready(node.name())?, "{} is not Ready", node.name());
    Ok(())
}

fn joins_once_and_leaves_what_holds_alone(props: &Props<'_>, node: &Node<'_>) -> Result<()> {
    let token = node.token()?;
    let joined = node.join(&["--stay", "4s"])?;
    joined.ensure(JoinEnded::Joined)?;
    ready(props, node)?;
    joined.never_says(&token[7..])?;
    // The machines of the rig share the folder: another's join may be under way in it.
    let left = node.run(&["ls", "/run/reveille"])?;
    ensure!(!left.stdout.contains(node.name()), "the token's file is left: {}", left.stdout);
    let certificate = || node.run(&["sha256sum", "/var/lib/kubelet/pki/kubelet-client-current.pem"]);
    let before = certificate()?.stdout;
    ensure!(!before.is_empty(), "there is no certificate");
    let again = node.join(&["--stay", "2s"])?;
    again.ensure(JoinEnded::Joined)?;
    again.never_says("attempt")?;
    ensure!(before == certificate()?.stdout, "the kubelet's certificate is another one");
    Ok(())
}

fn a_node_deleted_right_after_its_join_comes_back(props: &Props<'_>, node: &Node<'_>) -> Result<()> {
    let uid = std::thread::scope(|scope| {
        let deletes = scope.spawn(|| {
            until("the node to be Ready", s(60), || ready(props, node))?;
            let uid = uid(props, node)?;
            props.kube.ctl(&["delete", "node", node.name()])?;
            Ok::<_, Error>(uid)
        });
        let joined = node.join(&["--stay", "15s"])?;
        joined.ensure(JoinEnded::Joined)?;
        joined.says("restarts the kubelet")?;
        joined.never_says("resets")?;
        deletes.join().unwrap_or_else(|_| bail!("it panicked"))
    })?;
    ready(props, node)?;
    ensure!(self::uid(props, node)? != uid, "the node that was deleted is there");
    Ok(())
}

fn uid(props: &Props<'_>, node: &Node<'_>) -> Result<String> {
    props.kube.ctl(&["get", "node", node.name(), "-o", "jsonpath={.metadata.uid}"])
}

fn a_node_removed_on_purpose_stays_removed(props: &Props<'_>, node: &Node<'_>) -> Result<()> {
    node.join(&["--stay", "1s"])?.ensure(JoinEnded::Joined)?;
    let joined = std::thread::scope(|scope| {
        let removes = scope.spawn(|| {
            props.kube.ctl(&["cordon", node.name()])?;
            // A person who drains takes longer than the agent's interval between two looks.
            std::thread::sleep(s(8));
            props.kube.ctl(&["delete", "node", node.name()])
        });
        let joined = node.join(&["--stay", "2m"])?;
        removes.join().unwrap_or_else(|_| bail!("it panicked"))?;
        Ok::<_, Error>(joined)
    })?;
    joined.ensure(JoinEnded::LeftAlone)?;
    joined.says("cordoned, as for a drain")?;
    joined.never_says("restarts the kubelet")?;
    ensure!(props.kube.node(node.name())?.is_none(), "the node is back");
    Ok(())
}

fn a_token_that_died_is_renewed_while_it_waits(props: &Props<'_>, node: &Node<'_>) -> Result<()> {
    let good = node.token()?;
    node.edit(&good, "aaaaaa.0123456789abcdef")?;
    let file = node.file("token");
    fs::write(&file, "aaaaaa.0123456789abcdef\n")?;
    fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
    let joined = std::thread::scope(|scope| {
        let renews = scope.spawn(|| {
            std::thread::sleep(s(4));
            fs::write(&file, format!("{good}\n"))
        });
        let joined = node.join(&["--stay", "2s", "--token-file", &file.display().to_string()])?;
        renews.join().map_err(|_| Error::msg("it panicked"))??;
        Ok::<_, Error>(joined)
    })?;
    joined.ensure(JoinEnded::Joined)?;
    joined.says("the API server refuses the token aaaaaa.[masked]")?;
    ready(props, node)
}

fn foreign_server_ends_it(props: &Props<'_>, node: &Node<'_>) -> Result<()> {
    let text = fs::read_to_string(node.file("join.yaml"))?;
    let pin = text.split("sha256:").nth(1).map(|rest| rest[..6].to_owned()).context("no pin")?;
    node.edit(&format!("sha256:{pin}"), "sha256:000000")?;
    let joined = node.join(&["--stay", "2s"])?;
    joined.ensure(JoinEnded::Stranger)?;
    joined.says("wanted sha256:000000")?;
    joined.says("CN=rig-ca")?;
    ensure!(props.kube.node(node.name())?.is_none(), "it joined");
    ensure!(!node.file("etc-kubernetes/bootstrap-kubelet.conf").exists(), "a join was begun");
    Ok(())
}

fn a_name_that_is_taken_is_left_alone(props: &Props<'_>, node: &Node<'_>) -> Result<()> {
    let name = node.name();
    let object = format!(r#"{{"apiVersion":"v1","kind":"Node","metadata":{{"name":"{name}"}}}}"#);
    let path = node.file("taken.json");
    fs::write(&path, object)?;
    props.kube.ctl(&["create", "-f", &path.display().to_string()])?;
    let status = r#"{"status":{"nodeInfo":{"machineID":"00112233445566778899aabbccddeeff","systemUUID":"ffeeddcc-bbaa-9988-7766-554433221100","bootID":"","kernelVersion":"","osImage":"","containerRuntimeVersion":"","kubeletVersion":"","kubeProxyVersion":"","operatingSystem":"","architecture":""},"conditions":[{"type":"Ready","status":"True","reason":"KubeletReady","message":"ok"}]}}"#;
    props.kube.ctl(&["patch", "node", name, "--subresource=status", "--type=merge", "-p", status])?;
    let joined = node.join(&["--stay", "2s"])?;
    joined.ensure(JoinEnded::LeftAlone)?;
    joined.says("it is another machine's")?;
    ensure!(!node.file("etc-kubernetes/bootstrap-kubelet.conf").exists(), "a join was begun");
    Ok(())
}

/// Killed together with its kubeadm, as a unit is, at each place that a join passes; then begun again, as a unit is.
fn one_that_is_killed_is_begun_again(props: &Props<'_>, node: &Node<'_>) -> Result<()> {
    let places = [
        "agent/memory.json",
        "etc-kubernetes/bootstrap-kubelet.conf",
        "var-lib-kubelet/config.yaml",
        "etc-kubernetes/kubelet.conf",
    ];
    for place in places {
        let mut join = node.begin_join(&["--stay", "10s"])?;
        until(&format!("the join to come to {place}"), s(90), || {
            let is_there = node.file(place).exists() && node.process("reveille")?.is_some();
            ensure!(is_there || join.ended().is_some(), "it is not there");
            Ok::<_, Error>(())
        })?;
        node.kill(&["reveille", "kubeadm"])?;
        until("the join to be dead", s(20), || {
            ensure!(join.ended().is_some(), "it lives");
            Ok::<_, Error>(())
        })?;
    }
    let joined = node.join(&["--stay", "4s"])?;
    joined.ensure(JoinEnded::Joined)?;
    ready(props, node)
}

fn what_a_broken_join_left_is_cleared_away(props: &Props<'_>, node: &Node<'_>) -> Result<()> {
    fs::create_dir_all(node.file("etc-kubernetes/pki"))?;
    fs::write(node.file("etc-kubernetes/kubelet.conf"), "")?;
    fs::write(node.file("etc-kubernetes/pki/ca.crt"), "")?;
    let joined = node.join(&["--stay", "4s"])?;
    joined.ensure(JoinEnded::Joined)?;
    joined.says("a join broke off before its kubelet had what it needs")?;
    ready(props, node)
}

fn a_runtime_that_comes_late_is_waited_for(props: &Props<'_>, node: &Node<'_>) -> Result<()> {
    node.edit(
        "ignorePreflightErrors: [all]",
        "ignorePreflightErrors: [Swap, SystemVerification, Hostname, NumCPU, Mem]",
    )?;
    let (socket, away) = (node.file("cri.sock"), node.file("cri.away"));
    fs::rename(&socket, &away)?;
    let joined = std::thread::scope(|scope| {
        let comes = scope.spawn(|| {
            std::thread::sleep(s(6));
            fs::rename(&away, &socket)
        });
        let joined = node.join(&["--stay", "2s"])?;
        comes.join().map_err(|_| Error::msg("it panicked"))??;
        Ok::<_, Error>(joined)
    })?;
    joined.ensure(JoinEnded::Joined)?;
    joined.says("[ERROR CRI]")?;
    ready(props, node)
}

fn a_join_that_comes_to_nothing_says_what_stands_against_it(
    props: &Props<'_>,
    node: &Node<'_>,
) -> Result<()> {
    let port = node.kubelet_port()?;
    let mut taker = Background::start(node.command(&[
        "socat",
        &format!("TCP-LISTEN:{port},bind=127.0.0.1,reuseaddr,fork"),
        "/dev/null",
    ]))?;
    let late = node.join(&["--within", "45s"])?;
    ensure!(late.report.ended != JoinEnded::Joined, "{:?}", late.report);
    late.says("is taken by socat")?;
    taker.kill();
    node.kill(&["socat"])?;
    node.join(&["--stay", "2s"])?.ensure(JoinEnded::Joined)?;
    ready(props, node)
}

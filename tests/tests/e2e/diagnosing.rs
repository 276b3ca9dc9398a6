//! What real kubeadm, kubelet and containerd say when a join fails, told by its cause.
//!
//! Each node is a real one with one thing wrong (`rig node up --spoil`), or a good one in a cluster with one thing wrong
//! (`rig fault`). Reveille gets the folder of its logs and nothing else, and must name the cause first.

use std::collections::VecDeque;
use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Error, Result, bail, ensure};
use reveille_tests::kube::Kube;
use reveille_tests::lab::Lab;
use reveille_tests::reveille::Reveille;
use reveille_tests::rig::Rig;
use reveille_tests::wait::{s, throughout, until};

/// What is wrong with the node, and the label of its cause.
const SPOILS: [(&str, &str); 20] = [
    ("disk-pressure", "disk-failure"),
    ("no-cni", "cni-not-installed"),
    ("other-name", "node-identity-mismatch"),
    ("expired-certificate", "kubelet-client-cert-expired"),
    ("port-taken", "port-in-use"),
    ("swap", "swap-enabled"),
    ("bad-config", "kubelet-config-invalid"),
    ("bad-flag", "kubelet-config-invalid"),
    ("bad-label", "node-label-forbidden"),
    ("cri-off", "cri-api-unimplemented"),
    ("wrong-token", "bootstrap-token-invalid"),
    ("used-up-token", "bootstrap-token-invalid"),
    ("wrong-ca-hash", "ca-hash-mismatch"),
    ("other-address", "apiserver-cert-san-mismatch"),
    ("unknown-name", "dns-resolution-failure"),
    ("closed-port", "server-endpoint-wrong"),
    ("no-tls", "server-endpoint-wrong"),
    ("runtime-down", "container-runtime-down"),
    ("leftovers", "leftover-state"),
    ("read-only", "disk-failure"),
];
/// What is wrong with the cluster, and the label of its cause.
const FAULTS: [(&str, &str); 5] = [
    ("csr-approver-off", "csr-not-approved"),
    ("bootstrap-rights-off", "bootstrap-rbac-missing"),
    ("cluster-info-broken", "cluster-info-malformed"),
    ("api-certificate-ahead", "clock-skew"),
    ("api-hang", "apiserver-unreachable"),
];
/// Nodes that join at the same time.
const AT_ONCE: usize = 6;

/// What several nodes are played with at the same time.
struct Props<'l> {
    rig: &'l Rig,
    kube: &'l Kube,
    reveille: &'l Reveille,
}

/// Twenty nodes with one thing wrong, five clusters with one thing wrong, a Node that a person deletes, and one clean join, on
/// which no finding may be given.
pub(crate) fn what_real_programs_say_when_they_fail_is_told_by_its_cause(lab: &mut Lab) -> Result<()> {
    let nodes = SPOILS.len() + FAULTS.len() + 1;
    let names = names(nodes);
    lab.will_spoil(names.iter().cloned());
    let lab = &Props { rig: &lab.rig, kube: &lab.kube, reveille: &lab.reveille };
    // The first one alone: what is missing on this machine is said once.
    a_clean_join_and_a_deleted_node(lab, &names[nodes - 1])?;
    let waiting: Mutex<VecDeque<usize>> = Mutex::new((0..SPOILS.len()).collect());
    let played = std::thread::scope(|scope| {
        let lanes: Vec<_> =
            (0..AT_ONCE).map(|_| scope.spawn(|| play_spoils(lab, &names, &waiting))).collect();
        lanes.into_iter().map(|lane| lane.join().unwrap_or_else(|_| bail!("it panicked"))).collect::<Vec<_>>()
    });
    played.into_iter().collect::<Result<Vec<()>>>()?;
    for (number, (fault, cause)) in FAULTS.into_iter().enumerate() {
        play_fault(lab, &names[SPOILS.len() + number], fault, cause)?;
    }
    Ok(())
}

/// Names that say nothing of what is wrong, because names stand in logs; and new ones each time, because events outlive their
/// nodes.
fn names(count: usize) -> Vec<String> {
    static GIVEN: AtomicUsize = AtomicUsize::new(10);
    let first = GIVEN.fetch_add(count, Ordering::Relaxed);
    (first..first + count).map(|number| format!("lab-{number}")).collect()
}

fn play_spoils(lab: &Props<'_>, names: &[String], waiting: &Mutex<VecDeque<usize>>) -> Result<()> {
    loop {
        let next = waiting.lock().map_err(|_| Error::msg("a lane before this one panicked"))?.pop_front();
        let Some(number) = next else { return Ok(()) };
        let ((spoil, cause), name) = (SPOILS[number], names[number].as_str());
        let log = lab.rig.spoiled_node(name, spoil)?;
        let described = matches!(spoil, "disk-pressure" | "no-cni");
        // A kubelet that fails is started again every ten seconds; beside other lanes and a build, 90 s were too few once.
        until(&format!("{spoil} to be told as {cause}"), s(180), || {
            if described {
                fs::write(log.join("describe.txt"), lab.kube.ctl(&["describe", "node", name])?)?;
            }
            is_told(lab, &log, cause)
        })?;
        lab.rig.run(&["node", "down", name, "--forget"])?;
    }
}

fn play_fault(lab: &Props<'_>, name: &str, fault: &str, cause: &str) -> Result<()> {
    lab.rig.fault(&[fault])?;
    let log = lab.rig.spoiled_node(name, "none")?;
    if fault == "csr-approver-off" {
        fs::write(log.join("csr.txt"), lab.kube.ctl(&["get", "csr"])?)?;
    }
    until(&format!("{fault} to be told as {cause}"), s(30), || is_told(lab, &log, cause))?;
    lab.rig.lift(&[fault])?;
    lab.rig.run(&["node", "down", name, "--forget"]).map(drop)
}

fn a_clean_join_and_a_deleted_node(lab: &Props<'_>, name: &str) -> Result<()> {
    let log = lab.rig.spoiled_node(name, "none")?;
    until("the node to be Ready", s(60), || {
        ensure!(lab.kube.is_ready(name)?, "it is not");
        Ok::<_, Error>(())
    })?;
    fs::write(log.join("describe.txt"), lab.kube.ctl(&["describe", "node", name])?)?;
    throughout("nothing is said of a node that is well", s(3), || {
        let told = lab.reveille.diagnose(&log)?;
        ensure!(told.code == Some(0) && told.causes.is_empty(), "{told}");
        Ok(())
    })?;
    fs::remove_file(log.join("describe.txt"))?;
    lab.kube.ctl(&["delete", "node", name])?;
    until("the deleted Node to be told", s(60), || is_told(lab, &log, "node-object-deleted"))?;
    lab.rig.run(&["node", "down", name, "--forget"]).map(drop)
}

fn is_told(lab: &Props<'_>, log: &Path, cause: &str) -> Result<()> {
    let told = lab.reveille.diagnose(log)?;
    let first = told.causes.first().context("nothing was found")?;
    ensure!(told.code == Some(1) && first == cause, "{told}");
    Ok(())
}

//! The doctor, asked inside real nodes: what it names first, and that the same is told from what it packs.
//!
//! Each node is a real one with one thing wrong (`rig node up --spoil`), after a real `kubeadm join` ran into it. The doctor sees
//! what it would see on a machine, is told what kubeadm was told, and must name the check and the cause first.

use std::collections::VecDeque;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;

use anyhow::{Context, Error, Result, bail, ensure};
use reveille_tests::lab::Lab;
use reveille_tests::process;
use reveille_tests::reveille::Reveille;
use reveille_tests::rig::Rig;
use reveille_tests::wait::{s, until};
use serde_json::Value;

/// What is wrong with the node, the check that fails first, and its cause.
const SPOILS: [(&str, &str, &str); 15] = [
    ("no-cni", "pod-network", "cni-not-installed"),
    ("other-name", "client-certificate", "node-identity-mismatch"),
    ("expired-certificate", "client-certificate", "kubelet-client-cert-expired"),
    ("port-taken", "ports", "port-in-use"),
    ("swap", "swap", "swap-enabled"),
    ("cri-off", "runtime", "cri-api-unimplemented"),
    ("wrong-token", "token", "bootstrap-token-invalid"),
    ("used-up-token", "token", "bootstrap-token-invalid"),
    ("wrong-ca-hash", "ca-pin", "ca-hash-mismatch"),
    ("other-address", "server-certificate", "apiserver-cert-san-mismatch"),
    ("unknown-name", "dns", "dns-resolution-failure"),
    ("closed-port", "reach", "server-endpoint-wrong"),
    ("no-tls", "tls", "server-endpoint-wrong"),
    ("runtime-down", "runtime", "container-runtime-down"),
    ("leftovers", "leftovers", "leftover-state"),
];
/// Nodes that are spoiled at the same time.
const AT_ONCE: usize = 4;

/// Fifteen nodes with one thing wrong, and one that is well.
pub(crate) fn the_doctor_names_first_what_is_wrong_with_a_real_node(lab: &mut Lab) -> Result<()> {
    let names: Vec<String> = (0..=SPOILS.len()).map(|number| format!("sick-{number}")).collect();
    lab.will_spoil(names.iter().cloned());
    let (rig, reveille) = (&lab.rig, &lab.reveille);
    // The first one alone: what is missing on this machine is said once.
    let well = &names[SPOILS.len()];
    rig.spoiled_node(well, "none")?;
    until("the doctor to find nothing wrong", s(60), || {
        let told = ask(rig, reveille, well)?;
        ensure!(told.code == Some(0) && told.report["summary"]["failed"] == 0, "{told:?}");
        ensure!(
            told.report["summary"]["skipped"] == 0,
            "every check applies to a node that is well: {told:?}"
        );
        Ok::<_, Error>(())
    })?;
    rig.run(&["node", "down", well, "--forget"])?;
    let waiting: Mutex<VecDeque<usize>> = Mutex::new((0..SPOILS.len()).collect());
    let played = std::thread::scope(|scope| {
        let lane = || scope.spawn(|| play(rig, reveille, &names, &waiting));
        let lanes: Vec<_> = (0..AT_ONCE).map(|_| lane()).collect();
        lanes.into_iter().map(|lane| lane.join().unwrap_or_else(|_| bail!("it panicked"))).collect::<Vec<_>>()
    });
    played.into_iter().collect()
}

fn play(rig: &Rig, reveille: &Reveille, names: &[String], waiting: &Mutex<VecDeque<usize>>) -> Result<()> {
    loop {
        let next = waiting.lock().map_err(|_| Error::msg("a lane before this one panicked"))?.pop_front();
        let Some(number) = next else { return Ok(()) };
        let ((spoil, check, cause), name) = (SPOILS[number], names[number].as_str());
        rig.spoiled_node(name, spoil)?;
        until(&format!("{spoil} to be named by {check} as {cause}"), s(60), || {
            let told = ask(rig, reveille, name)?;
            let first = told.first().context("nothing failed")?;
            ensure!(told.code == Some(1) && first["id"] == check && first["cause"] == cause, "{told:?}");
            Ok::<_, Error>(())
        })?;
        packed(rig, reveille, name, cause).with_context(|| format!("the bundle of {spoil}"))?;
        rig.run(&["node", "down", name, "--forget"])?;
    }
}

/// What it packed is told as the same cause, and holds no token.
fn packed(rig: &Rig, reveille: &Reveille, name: &str, cause: &str) -> Result<()> {
    let bundle = rig.node_folder(name).join("bundle.tar.gz");
    let told = reveille.diagnose(&bundle)?;
    ensure!(told.causes.first().is_some_and(|first| first == cause), "{told}");
    let join = fs::read_to_string(rig.node_folder(name).join("join.yaml"))?;
    let token = join.split("token: \"").nth(1).and_then(|rest| rest.split('"').next()).context("no token")?;
    let secret = token.split('.').nth(1).context("a token has two parts")?;
    let mut tar = Command::new("tar");
    tar.arg("-xOzf").arg(&bundle);
    let text = process::run(tar, None, s(30))?.stdout;
    ensure!(text.contains("reveille doctor: check"), "tar unpacks it: {} bytes", text.len());
    ensure!(!text.contains(secret), "the bundle holds the token's secret");
    Ok(())
}

/// What the doctor said.
#[derive(Debug)]
struct Told {
    code: Option<i32>,
    report: Value,
}

impl Told {
    fn first(&self) -> Option<&Value> {
        let id = self.report["first"].as_str()?;
        self.report["checks"].as_array()?.iter().find(|check| check["id"] == id)
    }
}

/// Asks it inside the node, about what kubeadm was told to join.
fn ask(rig: &Rig, reveille: &Reveille, name: &str) -> Result<Told> {
    let folder = rig.node_folder(name);
    let text = |path: &Path| path.display().to_string();
    let (program, config) = (text(reveille.on_machines()), text(&folder.join("join.yaml")));
    let (log, bundle) = (text(&folder.join("log/kubelet.log")), text(&folder.join("bundle.tar.gz")));
    let ended = rig.in_node(
        name,
        &[&program, "doctor", "--output", "json", "--config", &config, "--log", &log, "--bundle", &bundle],
    )?;
    let report = serde_json::from_str(&ended.stdout)
        .with_context(|| format!("doctor says no JSON: {}{}", ended.stdout, ended.stderr))?;
    Ok(Told { code: ended.code, report })
}

//! Everything that somebody else needs to see what is wrong with a machine, in one file, with secrets taken out.
//!
//! ```text
//!  facts · checks · logs · configuration files ─▶ known secrets, whole ─▶ masked by shape and by name ─▶ tar.gz
//! ```
//!
//! Secrets are taken out twice, by different means (`known`): every one that this machine is known to have is looked for as it
//! is and blotted out wherever it stands, and then all text is masked as everywhere (names of secrets, shapes of tokens, private
//! keys, long base64). Keys are not packed at all. `reveille diagnose FILE` reads it and comes to what the doctor came to.

mod tar;

use std::io;
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use reveille_agent::checkup::Facts;
use secrecy::SecretString;

use crate::durable::put_own;
use crate::known::Known;
use crate::logs::Log;
use crate::root::Root;
use crate::target::{BOOTSTRAP_KUBECONFIG, KUBECONFIG, KUBELET_CONFIG, KUBELET_FLAGS, Token};

/// The folder in the archive; `diagnose` knows a doctor's bundle by its members.
const FOLDER: &str = "reveille-doctor";
/// Configuration that tells how the machine joins and runs. Keys are not among it.
const FILES: [&str; 30] = [
    KUBECONFIG,
    BOOTSTRAP_KUBECONFIG,
    KUBELET_CONFIG,
    KUBELET_FLAGS,
    "/var/lib/kubelet/instance-config.yaml",
    "/etc/default/kubelet",
    "/etc/sysconfig/kubelet",
    "/etc/systemd/system/kubelet.service.d/10-kubeadm.conf",
    "/usr/lib/systemd/system/kubelet.service.d/10-kubeadm.conf",
    "/etc/rancher/k3s/config.yaml",
    "/etc/rancher/k3s/config.yaml.d/90-reveille.yaml",
    "/etc/systemd/system/k3s-agent.service",
    "/var/lib/rancher/k3s/agent/kubelet.kubeconfig",
    "/var/lib/rancher/k3s/agent/etc/k3s-agent-load-balancer.json",
    "/etc/rancher/rke2/config.yaml",
    "/etc/rancher/rke2/config.yaml.d/90-reveille.yaml",
    "/usr/local/lib/systemd/system/rke2-agent.service",
    "/var/lib/rancher/rke2/agent/kubelet.kubeconfig",
    "/var/lib/rancher/rke2/agent/etc/rke2-agent-load-balancer.json",
    "/etc/containerd/config.toml",
    "/etc/crictl.yaml",
    "/etc/resolv.conf",
    "/etc/hosts",
    "/etc/hostname",
    "/etc/os-release",
    "/etc/fstab",
    "/proc/swaps",
    "/proc/meminfo",
    "/proc/version",
    "/proc/net/route",
];

/// What is packed.
#[derive(Debug)]
pub struct Contents<'a> {
    /// Where the machine's files are.
    pub root: &'a Root,
    /// The token that is joined with.
    pub token: Option<&'a Token>,
    /// Secrets that whoever packs knows of himself.
    pub own: &'a [SecretString],
    /// What was read.
    pub facts: &'a Facts,
    /// What it came to.
    pub report_json: &'a str,
    /// The line by which `diagnose` knows what the checks came to.
    pub verdict: &'a str,
    /// The logs.
    pub logs: &'a [Log],
}

/// Packs everything.
///
/// # Errors
///
/// None but of memory: it is made in memory, and written by [`write`].
pub fn pack(contents: &Contents<'_>) -> io::Result<Vec<u8>> {
    let Contents { root, token, own, facts, report_json, verdict, logs } = contents;
    let known = Known::of_machine(root, *token, own);
    let mut archive = tar::Archive::new(GzEncoder::new(Vec::new(), Compression::default()));
    let mut put =
        |name: &str, text: &str| archive.put(&format!("{FOLDER}/{name}"), known.clean(text).as_bytes());
    put("verdict.txt", verdict)?;
    put("report.json", report_json)?;
    put("facts.txt", &format!("{facts:#?}\n"))?;
    for log in logs.iter().filter(|log| !log.text.is_empty()) {
        put(&format!("logs/{}", log.name.trim_start_matches('/')), &log.text)?;
    }
    for path in FILES {
        match root.text(path) {
            Ok(Some(text)) => put(&format!("files{path}"), &text)?,
            Ok(None) => {}
            Err(error) => put(&format!("files{path}.unread"), &format!("{error}\n"))?,
        }
    }
    archive.end()?.finish()
}

/// Writes it, to be read by its owner alone. It is written beside its place and takes it then: in a folder where others may
/// write, what stands there of that name may be a link to a file that is not theirs to write, or a file that stays theirs
/// to read.
///
/// # Errors
///
/// It cannot be written, or something else than a file stands there.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let is_other = path.symlink_metadata().is_ok_and(|there| !there.is_file());
    if is_other || path.file_name().is_none() {
        return Err(io::Error::other("what stands there is no file"));
    }
    put_own(path, bytes)
}

/// The lines between the marks of a private key; what else stands in the file is public.
pub(crate) fn key_lines(pem: &str) -> String {
    let mut is_key = false;
    let mut lines = String::new();
    for line in pem.lines() {
        if line.starts_with("-----") {
            is_key = line.contains("BEGIN") && line.contains("PRIVATE KEY");
        } else if is_key {
            lines.push_str(line);
            lines.push('\n');
        }
    }
    lines
}

#[cfg(test)]
mod tests;

//! Everything that another person needs to see a machine's problem, in one file, with secrets removed.
//!
//! ```text
//!  facts · checks · logs · configuration files ─▶ known secrets, whole ─▶ masked by shape and by name ─▶ tar.gz
//! ```
//!
//! Secrets are removed twice, by different means. First every secret that this machine is known to have (`known`) is
//! searched for as it is and masked wherever it occurs. Then all text is masked as everywhere (names of secrets, shapes
//! of tokens, private keys, long base64). Keys are not packed at all. `reveille diagnose FILE` reads the bundle and finds
//! what the doctor found.

use std::io::{self, Write};
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use reveille_agent::checkup::Facts;
use secrecy::SecretString;
use tar::{Builder, Header};

use crate::durable::put_own;
use crate::known::Known;
use crate::logs::Log;
use crate::root::Root;
use crate::target::{BOOTSTRAP_KUBECONFIG, KUBECONFIG, KUBELET_CONFIG, KUBELET_FLAGS, Token};

/// The folder in the archive; `diagnose` recognises a doctor's bundle by its members.
const FOLDER: &str = "reveille-doctor";
/// Configuration that says how the machine joins and runs. Keys are not in the list.
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

/// The content of a bundle.
#[derive(Debug)]
pub struct Contents<'a> {
    /// The machine's files.
    pub root: &'a Root,
    /// The token of the join.
    pub token: Option<&'a Token>,
    /// Secrets that the caller knows.
    pub own: &'a [SecretString],
    /// The facts.
    pub facts: &'a Facts,
    /// The doctor's report.
    pub report_json: &'a str,
    /// The line by which `diagnose` recognises the result of the checks.
    pub verdict: &'a str,
    /// The logs.
    pub logs: &'a [Log],
}

/// Packs everything.
///
/// # Errors
///
/// Only for lack of memory: the bundle is made in memory, and [`write`] writes it.
pub fn pack(contents: &Contents<'_>) -> io::Result<Vec<u8>> {
    let Contents { root, token, own, facts, report_json, verdict, logs } = contents;
    let known = Known::of_machine(root, *token, own);
    let mut archive = Builder::new(GzEncoder::new(Vec::new(), Compression::default()));
    let mut put = |name: &str, text: &str| append(&mut archive, name, known.clean(text).as_bytes());
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
    archive.into_inner()?.finish()
}

/// Adds a file that only its owner can read. Times and owners are 0, so that the same content gives the same bytes.
fn append(archive: &mut Builder<impl Write>, name: &str, content: &[u8]) -> io::Result<()> {
    let mut header = Header::new_ustar();
    header.set_path(format!("{FOLDER}/{name}"))?;
    header.set_mode(0o600);
    header.set_uid(0);
    header.set_gid(0);
    header.set_size(content.len() as u64);
    header.set_cksum();
    archive.append(&header, content)
}

/// Writes the bundle as a file that only its owner can read. The file is written beside its place and then moved there.
/// In a folder where other accounts may write, the name may be a link to another file, or a file that another account
/// keeps open to read.
///
/// # Errors
///
/// The bundle cannot be written, or something other than a file has its name.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let is_other = path.symlink_metadata().is_ok_and(|there| !there.is_file());
    if is_other || path.file_name().is_none() {
        return Err(io::Error::other("what stands there is no file"));
    }
    put_own(path, bytes)
}

#[cfg(test)]
mod tests;

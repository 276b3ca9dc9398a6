//! What a plan may contain: where its files may lie, which modes they may have, and which fields its configuration may hold.
//!
//! Each check is a list of what is known to be harmless. Anything else is refused with its place, before the agent
//! carries out any step. The agent runs the checks, so a compromised server can only write what a node is configured
//! with. The server runs them when it reads the file of plans, so its author learns of a refused field at once. The
//! checks compare paths name by name, and fields by their whole name. What a file holds is looked at for settings of the kernel,
//! registries of k3s and networks ([`contents`]); beside these no place is taken whose files name programs, as containerd's
//! `config.toml` does.

mod config;
mod contents;
mod grammar;

use std::collections::BTreeMap;

pub use config::config;
use contents::{NETWORKS, OF_NETWORKS};
pub use grammar::{Taint, taint};
use grammar::{labels, server};
use thiserror::Error;

use super::plan::{Plan, Step};
use super::text::Word;

/// What a plan may not contain, in the terms of its author: its files are its first steps, in the order in
/// which they were written.
#[derive(Debug, Error)]
pub enum NotAllowed {
    /// A file of the plan lies outside the folders of a node's configuration.
    #[error("files[{file}]: {path} is no place for a plan's file; it takes {}", places())]
    Place {
        /// Which of its files.
        file: usize,
        /// Where.
        path: String,
    },
    /// A user other than the owner could write a file of the plan, or a user could execute it.
    #[error(
        "files[{file}]: {path} is to have the mode {mode:?}; a plan's file is its owner's alone to write, and not executable: write 0600, 0640 or 0644"
    )]
    Mode {
        /// Which of its files.
        file: usize,
        /// Where.
        path: String,
        /// As the plan says it.
        mode: String,
    },
    /// A file of the plan has an owner other than root.
    #[error(
        "files[{file}]: {path} is to be {owner}'s, and an agent writes files of root's alone; leave owner out"
    )]
    Owner {
        /// Which of its files.
        file: usize,
        /// Where.
        path: String,
        /// The owner that the plan names.
        owner: String,
    },
    /// A file of the plan holds a kernel setting that may name a program, or a key that can be read as one.
    #[error(
        "files[{file}]: {path}: {key:?} is no setting that a plan may make; it may make net, vm, fs, user and some of kernel, with plain names between dots or slashes, and * below net"
    )]
    Setting {
        /// The number of the file.
        file: usize,
        /// The path of the file.
        path: String,
        /// The key of the setting.
        key: String,
    },
    /// A file of the plan holds what would have the program that reads it run or remove something.
    #[error("files[{file}]: {path} is not taken: {what}")]
    Content {
        /// The number of the file.
        file: usize,
        /// The path of the file.
        path: String,
        /// What stands against it.
        what: String,
    },
    /// The plan's configuration holds a field or value that a plan may not set.
    #[error("step {step}, the join: {place} is not taken from a plan: {what}")]
    Config {
        /// Which step joins.
        step: usize,
        /// Where in it.
        place: String,
        /// Why, and what is taken.
        what: String,
    },
}

/// Files are taken in these folders and those below them. Of containerd's folder only the one of registries: its
/// `config.toml`, and what that includes, name programs that it runs as root (`stream_processors`, `runtimes`,
/// `proxy_plugins`).
const FOLDERS: [&str; 5] =
    [NETWORKS, "/etc/containerd/certs.d", "/etc/kubernetes/cloud", "/etc/modules-load.d", "/etc/sysctl.d"];
/// And these. Where the configurations of kubelets and of k3s and RKE2 lie, files are taken by name alone. Units of distributions
/// read there what a kubelet is called with (`kubelet.env`, `config`), its configuration names a folder whose pods run unasked, a
/// kubeconfig names programs, and k3s and RKE2 count a later file beside the plan's own. RKE2's `registries.yaml` is not among
/// them: RKE2 runs programs of an image as root, and a mirror says where that comes from. k3s has its programs in itself.
const FILES: [&str; 9] = [
    "/etc/crictl.yaml",
    "/etc/kubernetes/azure.json",
    "/etc/kubernetes/cloud-config",
    "/etc/kubernetes/cloud.conf",
    "/etc/kubernetes/cloud_config",
    "/etc/kubernetes/resolv.conf",
    "/etc/rancher/k3s/registries.yaml",
    "/etc/rancher/k3s/resolv.conf",
    "/etc/rancher/rke2/resolv.conf",
];
/// The most that a file's mode may allow: all users may read, only the owner may write, and no user may execute.
const MODE_MOST: u32 = 0o644;

/// The allowed places of a plan's files, as text for the error.
fn places() -> String {
    let of_folder = |folder: &&str| match *folder {
        NETWORKS => format!("{NETWORKS}/NAME.conflist"),
        folder => format!("{folder}/…"),
    };
    let folders = FOLDERS.iter().map(of_folder);
    FILES.iter().map(ToString::to_string).chain(folders).collect::<Vec<_>>().join(", ")
}

/// Checks every step of the plan.
///
/// # Errors
///
/// The first step with something that a plan may not contain.
pub fn check(plan: &Plan) -> Result<(), NotAllowed> {
    plan.steps.iter().enumerate().try_for_each(|(number, one)| step(number, one))
}

/// Checks one step of the plan.
///
/// # Errors
///
/// What a plan may not contain.
pub fn step(number: usize, step: &Step) -> Result<(), NotAllowed> {
    match step {
        Step::WriteFile { path, mode: octal, owner, content, .. } => {
            place(number, path)?;
            mode(number, path, octal)?;
            file(number, path, owner.as_deref(), content)
        }
        Step::Join(order) => {
            aim(number, &order.server, &order.labels, &order.taints)?;
            let own = order.config.as_deref().map(|text| config(number, order.distribution, text));
            own.transpose().map(drop)
        }
        Step::RestartKubelet {} => Ok(()),
    }
}

/// Checks the server, the labels and the taints of a join.
///
/// # Errors
///
/// The server is no address, or a label or a taint is not one that a kubelet may give its node.
pub fn aim(step: usize, to: &str, of: &BTreeMap<Word, Word>, taints: &[Word]) -> Result<(), NotAllowed> {
    server(step, to)?;
    labels(step, of)?;
    taints.iter().try_for_each(|one| taint(step, one).map(drop))
}

/// Checks the owner of a file, which must be root, and its content.
fn file(number: usize, path: &str, owner: Option<&str>, content: &str) -> Result<(), NotAllowed> {
    if let Some(owner) = owner.filter(|owner| *owner != "root:root") {
        return Err(NotAllowed::Owner { file: number, path: path.to_owned(), owner: owner.to_owned() });
    }
    contents::contents(number, path, content)
}

/// Checks that a plan may write to this path.
///
/// # Errors
///
/// The path is not a place for a plan's file.
pub fn place(file: usize, path: &str) -> Result<(), NotAllowed> {
    let below = |folder: &&str| path.strip_prefix(*folder).and_then(|rest| rest.strip_prefix('/'));
    let is_name = |name: &str| !matches!(name, "" | "." | "..") && name.chars().all(|c| c.is_ascii_graphic());
    let is_below = FOLDERS.iter().filter_map(below).any(|rest| rest.split('/').all(is_name));
    // Deeper, or with another ending, no runtime reads it, and a plugin may.
    let is_network = |rest: &str| !rest.contains('/') && OF_NETWORKS.iter().any(|end| rest.ends_with(end));
    let is_below = is_below && below(&NETWORKS).is_none_or(is_network);
    if is_below || FILES.contains(&path) {
        return Ok(());
    }
    Err(NotAllowed::Place { file, path: path.to_owned() })
}

/// The mode of a file.
///
/// # Errors
///
/// The text is no mode, or other users could write the file, or a user could execute it.
pub fn mode(file: usize, path: &str, octal: &str) -> Result<u32, NotAllowed> {
    let is_octal = !octal.is_empty() && octal.bytes().all(|byte| matches!(byte, b'0'..=b'7'));
    let mode = is_octal.then(|| u32::from_str_radix(octal, 8).ok()).flatten();
    mode.filter(|mode| mode & !MODE_MOST == 0).ok_or_else(|| NotAllowed::Mode {
        file,
        path: path.to_owned(),
        mode: octal.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plan_file_that_speaks_for_the_node_is_refused() {
        for path in [
            "/etc/kubernetes/manifests/x.yaml",
            "/etc/kubernetes/pki/ca.crt",
            "/etc/kubernetes/kubelet.conf",
            "/etc/rancher/k3s/config.yaml.d/99-x.yaml",
            "/etc/rancher/rke2/config.yaml",
            "/etc/rancher/node/password",
            "/etc/rancher/agent/config.yaml",
            "/etc/rancher/rancherd/config.yaml",
            "/etc/kubernetes/cloud",
            "/etc/kubernetes/cloud.conf/x",
            "/etc/kubernetes/cloud/\u{202e}x",
            "/etc/kubernetes/cloud/a\nb",
            "/etc/kubernetes/cloud/a b",
        ] {
            assert!(matches!(place(1, path), Err(NotAllowed::Place { file: 1, .. })), "{path:?}");
        }
        for path in [
            "/etc/cni/net.d/10-flannel.conflist",
            "/etc/containerd/certs.d/docker.io/hosts.toml",
            "/etc/kubernetes/cloud.conf",
            "/etc/kubernetes/cloud/ca.crt",
            "/etc/kubernetes/resolv.conf",
            "/etc/rancher/k3s/registries.yaml",
        ] {
            assert!(place(1, path).is_ok(), "{path}");
        }
    }

    #[test]
    fn plan_file_for_kubelet_programs_or_credentials_is_refused() {
        for path in [
            // Arguments: Kubespray's unit reads the first, Fedora's and openSUSE's the next two, OpenShift's the fourth.
            "/etc/kubernetes/kubelet.env",
            "/etc/kubernetes/kubelet",
            "/etc/kubernetes/config",
            "/etc/kubernetes/kubelet-env",
            // A configuration, of which `staticPodPath` names a folder of pods.
            "/etc/kubernetes/kubelet-config.yaml",
            "/etc/kubernetes/kubelet/kubelet-config.json",
            "/etc/kubernetes/kubelet/config.json",
            "/etc/kubernetes/kubelet/config.json.d/99-x.conf",
            "/etc/rancher/k3s/kubelet.config",
            // A program for each image, and for each request.
            "/etc/kubernetes/credential-provider.yaml",
            "/etc/kubernetes/admin.conf",
            "/etc/kubernetes/super-admin.conf",
            "/etc/kubernetes/controller-manager.conf",
            "/etc/kubernetes/scheduler.conf",
            "/etc/rancher/k3s/k3s.yaml",
            "/etc/rancher/rke2/rke2.yaml",
            // From where the image comes whose programs RKE2 runs as root.
            "/etc/rancher/rke2/registries.yaml",
            // Programs that containerd runs as root, in its configuration and in what that includes.
            "/etc/containerd/config.toml",
            "/etc/containerd/conf.d/99-x.toml",
            "/etc/containerd/certs.d",
            "/etc/containerd/certs.d/../config.toml",
        ] {
            assert!(matches!(place(1, path), Err(NotAllowed::Place { .. })), "{path}");
        }
    }

    #[test]
    fn no_setting_of_a_plan_names_a_program() {
        let path = "/etc/sysctl.d/90-k8s.conf";
        let good = "# a\n; b\nnet.ipv4.ip_forward = 1\n-net/ipv4/conf/*/rp_filter=0\nvm.overcommit_memory=1\n\
                    fs.inotify.max_user_watches=1\nkernel.panic = 10\n";
        assert!(file(0, path, Some("root:root"), good).is_ok());
        for line in [
            "kernel.core_pattern=|/tmp/x",
            " - kernel/core_pattern = |/tmp/x",
            "kernel.modprobe=/tmp/x",
            "kern*.core_pattern=|/tmp/x",
            "*.core_pattern=|/tmp/x",
            "fs.binfmt_misc.register=:x:M::x::/tmp/x:F",
            "fs.b*.register=:x",
        ] {
            let refused = file(2, path, None, &format!("net.ipv4.ip_forward=1\n{line}\n"));
            assert!(matches!(refused, Err(NotAllowed::Setting { file: 2, .. })), "{line}: {refused:?}");
        }
        assert!(file(0, "/etc/kubernetes/cloud.conf", None, "kernel.core_pattern=|x").is_ok());
        assert!(matches!(file(0, path, Some("www:www"), ""), Err(NotAllowed::Owner { .. })));
    }
}

//! What a plan may say: where its files may lie, which modes they may have, and which fields its configuration may hold.
//!
//! Each is a list of what is known to be harmless, and what is not on it is refused with its place, before anything of the plan
//! is carried out. The agent asks it, so that a server that was taken over is held to what a node is configured with;
//! the server asks it when it reads the file of plans, so that a person who wrote a field that is not taken learns it at once.
//! Paths are compared name by name, fields by their whole name. What a file holds is not looked into, but for settings of the
//! kernel: containerd's configuration names its own programs.

mod config;
mod grammar;

use std::collections::BTreeMap;

pub use config::config;
pub use grammar::{Taint, taint};
use grammar::{labels, server};
use thiserror::Error;

use super::plan::{Plan, Step};
use super::text::Word;

/// What a plan may not say, as its author finds it: its files are its first steps, in the order in which they were written.
#[derive(Debug, Error)]
pub enum NotAllowed {
    /// A file of it lies where no node's configuration does.
    #[error("files[{file}]: {path} is no place for a plan's file; it takes {}", places())]
    Place {
        /// Which of its files.
        file: usize,
        /// Where.
        path: String,
    },
    /// A file of it would be others' to write, or somebody's to run.
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
    /// A file of it is to be somebody else's.
    #[error(
        "files[{file}]: {path} is to be {owner}'s, and an agent writes files of root's alone; leave owner out"
    )]
    Owner {
        /// Which of its files.
        file: usize,
        /// Where.
        path: String,
        /// Whose.
        owner: String,
    },
    /// A setting of the kernel that may name a program, or is written so that it may.
    #[error(
        "files[{file}]: {path}: {key:?} is no setting that a plan may make; it may make net, vm, fs, user and some of kernel, with plain names between dots or slashes, and * below net"
    )]
    Setting {
        /// Which of its files.
        file: usize,
        /// In which file.
        path: String,
        /// Which.
        key: String,
    },
    /// Its configuration says what a plan may not say.
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

/// Files are taken in these folders and those below them.
const FOLDERS: [&[&str]; 7] = [
    &["etc", "kubernetes"],
    &["etc", "cni", "net.d"],
    &["etc", "containerd"],
    &["etc", "sysctl.d"],
    &["etc", "modules-load.d"],
    // Not all of `/etc/rancher`: Rancher's agent reads there from which folder it takes plans of its own, with programs to run.
    &["etc", "rancher", "k3s"],
    &["etc", "rancher", "rke2"],
];
/// And these.
const FILES: [&[&str]; 1] = [&["etc", "crictl.yaml"]];
/// But none of these, nor what is below them: pods that a kubelet runs unasked, whom a node trusts and as whom it speaks, and
/// what k3s and RKE2 read beside the plan's own configuration, whose later file counts.
const NEVER: [&[&str]; 8] = [
    &["etc", "kubernetes", "manifests"],
    &["etc", "kubernetes", "pki"],
    &["etc", "kubernetes", "kubelet.conf"],
    &["etc", "kubernetes", "bootstrap-kubelet.conf"],
    &["etc", "rancher", "k3s", "config.yaml"],
    &["etc", "rancher", "k3s", "config.yaml.d"],
    &["etc", "rancher", "rke2", "config.yaml"],
    &["etc", "rancher", "rke2", "config.yaml.d"],
];
/// Where the kernel's settings lie.
const SETTINGS: &str = "/etc/sysctl.d/";
/// Settings below `kernel` that nodes need, and that name no program. `core_pattern`, `modprobe` and others do.
const OF_KERNEL: [&str; 9] = [
    "kernel.dmesg_restrict",
    "kernel.keys.maxbytes",
    "kernel.keys.maxkeys",
    "kernel.keys.root_maxbytes",
    "kernel.keys.root_maxkeys",
    "kernel.panic",
    "kernel.panic_on_oops",
    "kernel.pid_max",
    "kernel.threads-max",
];
/// What a file's mode may hold: others may read, nobody but the owner writes, nobody runs it.
const MODE_MOST: u32 = 0o644;

/// The places of a plan's files, for a person.
fn places() -> String {
    let files = FILES.iter().map(|names| format!("/{}", names.join("/")));
    let folders = FOLDERS.iter().map(|names| format!("/{}/…", names.join("/")));
    let never = NEVER.iter().map(|names| format!("/{}", names.join("/"))).collect::<Vec<_>>();
    format!("{}, and never {}", files.chain(folders).collect::<Vec<_>>().join(", "), never.join(", "))
}

/// All of the plan may be carried out.
///
/// # Errors
///
/// The first step that says what a plan may not say.
pub fn check(plan: &Plan) -> Result<(), NotAllowed> {
    plan.steps.iter().enumerate().try_for_each(|(number, one)| step(number, one))
}

/// One step of it may be carried out.
///
/// # Errors
///
/// What it says that a plan may not say.
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

/// What a join says in our words.
///
/// # Errors
///
/// The server is no address, or a label or a taint is none that a kubelet may give its node.
pub fn aim(step: usize, to: &str, of: &BTreeMap<Word, Word>, taints: &[Word]) -> Result<(), NotAllowed> {
    server(step, to)?;
    labels(step, of)?;
    taints.iter().try_for_each(|one| taint(step, one).map(drop))
}

/// A file's owner, and what it holds where that is looked at: it is root's, and makes no setting of the kernel that may name a
/// program.
fn file(number: usize, path: &str, owner: Option<&str>, content: &str) -> Result<(), NotAllowed> {
    if let Some(owner) = owner.filter(|owner| *owner != "root:root") {
        return Err(NotAllowed::Owner { file: number, path: path.to_owned(), owner: owner.to_owned() });
    }
    if !path.starts_with(SETTINGS) {
        return Ok(());
    }
    let lines =
        content.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with(['#', ';']));
    for key in lines.map(|line| unmarked(line.split_once('=').map_or(line, |(key, _)| key))) {
        if !is_setting(key) {
            return Err(NotAllowed::Setting { file: number, path: path.to_owned(), key: key.to_owned() });
        }
    }
    Ok(())
}

/// Without the dash of one that may fail.
fn unmarked(key: &str) -> &str {
    let key = key.trim();
    key.strip_prefix('-').unwrap_or(key).trim()
}

/// Parts may stand behind slashes or dots, and the first of these decides what the other one means: `eth0.100` is one name behind
/// slashes. So that no name is `.` or `..` in any reading, nothing between two of either is empty. Of patterns only those below
/// `net` are taken that match within one name and no leading dot; brackets, braces and backslashes make dots out of nothing.
fn is_setting(key: &str) -> bool {
    let parts: Vec<&str> = key.split(['/', '.']).collect();
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let are_names = |wild: &[char]| {
        parts.iter().all(|part| !part.is_empty() && part.chars().all(|c| is_name(c) || wild.contains(&c)))
    };
    match &parts[..] {
        ["net", _, ..] => are_names(&['*', '?']),
        ["fs", "binfmt_misc", ..] => false,
        ["fs" | "vm" | "user", _, ..] => are_names(&[]),
        ["kernel", ..] => OF_KERNEL.contains(&&*parts.join(".")),
        _ => false,
    }
}

/// A plan may write there.
///
/// # Errors
///
/// It is no place for a plan's file.
pub fn place(file: usize, path: &str) -> Result<(), NotAllowed> {
    let names: Vec<&str> = path.strip_prefix('/').unwrap_or_default().split('/').collect();
    let is_plain = path.chars().all(|c| c.is_ascii_graphic())
        && names.iter().all(|name| !matches!(*name, "" | "." | ".."));
    let is_never = NEVER.iter().any(|never| names.starts_with(never));
    let is_below = FOLDERS.iter().any(|folder| names.len() > folder.len() && names.starts_with(folder));
    if is_plain && !is_never && (is_below || FILES.contains(&names.as_slice())) {
        return Ok(());
    }
    Err(NotAllowed::Place { file, path: path.to_owned() })
}

/// The mode that a file gets.
///
/// # Errors
///
/// It is none, or others could write the file, or run it as its owner.
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
    fn no_file_of_a_plan_speaks_for_the_node_or_beside_its_configuration() {
        for path in [
            "/etc/kubernetes/manifests/x.yaml",
            "/etc/kubernetes/pki/ca.crt",
            "/etc/kubernetes/kubelet.conf",
            "/etc/rancher/k3s/config.yaml.d/99-x.yaml",
            "/etc/rancher/rke2/config.yaml",
            "/etc/rancher/node/password",
            "/etc/rancher/agent/config.yaml",
            "/etc/rancher/rancherd/config.yaml",
            "/etc/kubernetes/\u{202e}x",
            "/etc/kubernetes/a\nb",
            "/etc/kubernetes/a b",
        ] {
            assert!(matches!(place(1, path), Err(NotAllowed::Place { file: 1, .. })), "{path:?}");
        }
        for path in [
            "/etc/kubernetes/cloud.conf",
            "/etc/kubernetes/kubelet.conf.d/x",
            "/etc/rancher/k3s/registries.yaml",
            "/etc/rancher/rke2/config.yaml.bak",
        ] {
            assert!(place(1, path).is_ok(), "{path}");
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
        assert!(file(0, "/etc/kubernetes/a", None, "kernel.core_pattern=|x").is_ok());
        assert!(matches!(file(0, path, Some("www:www"), ""), Err(NotAllowed::Owner { .. })));
    }

    #[test]
    fn no_setting_of_a_plan_leads_out_of_its_part_however_it_is_written() {
        for key in [
            "net.bridge.bridge-nf-call-iptables",
            "net/bridge/bridge-nf-call-ip6tables",
            "-net.ipv4.ip_forward",
            "- net.ipv4.ip_forward",
            "net/ipv4/conf/eth0.100/rp_filter",
            "net.ipv4.conf.eth0/100.rp_filter",
            "net.ipv4.conf.lxc*.rp_filter",
            "-net/ipv4/conf/*/rp_filter",
            "net.ipv4.neigh.default.gc_thresh3",
            "net.netfilter.nf_conntrack_max",
            "vm.max_map_count",
            "vm/overcommit_memory",
            "fs.inotify.max_user_instances",
            "fs.file-max",
            "user.max_user_namespaces",
            "kernel.panic_on_oops",
            "kernel/keys/root_maxkeys",
        ] {
            assert!(is_setting(unmarked(key)), "{key}");
        }
        for key in [
            "fs//binfmt_misc/register",
            "fs/./binfmt_misc/register",
            "fs/binfmt_misc/register",
            "fs/{binfmt_misc,x}/register",
            "net/../kernel/core_pattern",
            "vm/../kernel/core_pattern",
            "net/../kern*/core_pattern",
            // A first dot makes a slash of every dot, and a dot of every slash.
            "net.//.kernel.core_pattern",
            "net/.*/kernel/core_pattern",
            "net/[.][.]/kernel/core_pattern",
            "net/{.,x}{.,y}/kernel/core_pattern",
            "net/\\.\\.\\/kernel/core_pattern",
            "net/x/*/../../kernel/core_pattern",
            "{net,kernel}/core_pattern",
            "*/core_pattern",
            "kern*/core_pattern",
            "kernel/p?nic",
            "/net/ipv4/ip_forward",
            "net/ipv4/ip_forward/",
            "net",
            "net.",
            ".net.x",
            "net ipv4",
            "--kernel.core_pattern",
            "vm.*",
            "",
        ] {
            assert!(!is_setting(unmarked(key)), "{key}");
        }
    }
}

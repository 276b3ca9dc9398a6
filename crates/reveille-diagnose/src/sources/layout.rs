//! What the folders of a support bundle mean: which bundle it is, whose machine, which component, and what is no log at all.
//!
//! ```text
//!  archive's name, member's path ─▶ which of LAYOUTS? ─┬▶ Member: left out, or read with machine and component in its name
//!                                                      └▶ platform, where only one platform's tool makes such a bundle
//! ```
//!
//! Data that reads like prose: a path is matched from any folder on, `*` is any part of a name, `**` any folders; the first
//! row that fits counts, and what no row names is read as a text. No logs are lists and settings, in which words of trouble
//! are names of packages and options. No content is looked at here, and nothing is decided.

use Is::{Log, NoLog};

/// One tool's bundle.
#[derive(Debug)]
pub(super) struct Layout {
    /// How people call it.
    pub(super) name: &'static str,
    /// Where the tool runs on one platform only.
    pub(super) platform: Option<&'static str>,
    /// What the archive or its outermost folder is called: `{}` is the machine, `?` a digit.
    called: &'static [&'static str],
    /// Paths that no other bundle has.
    tells: &'static [&'static str],
    /// What a path is; the first row counts.
    rows: &'static [(&'static str, Is)],
}

/// What stands at a path.
#[derive(Clone, Copy, Debug)]
enum Is {
    /// What this component wrote, or what a command that it is called by said of the machine.
    Log(&'static str),
    /// A list or a setting.
    NoLog,
}

/// What a member is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Member {
    /// Whose it is, where the layout tells.
    pub(super) machine: Option<String>,
    /// Who wrote it.
    pub(super) component: Option<&'static str>,
    /// It is a list or a setting, and is not read.
    pub(super) no_log: bool,
}

impl Layout {
    /// The bundle that an archive of this name or a member of this path belongs to.
    pub(super) fn of(archive: &str, path: &str) -> Option<&'static Self> {
        LAYOUTS.iter().find(|layout| {
            layout.called(archive, path).is_some()
                || layout.tells.iter().any(|tell| anywhere(tell, path).is_some())
        })
    }

    /// What a member is.
    pub(super) fn member(&self, archive: &str, path: &str) -> Member {
        let row =
            self.rows.iter().find_map(|(pattern, is)| anywhere(pattern, path).map(|machine| (machine, *is)));
        let machine = self.called(archive, path).filter(|machine| !machine.is_empty()).map(str::to_owned);
        match row {
            Some((_, NoLog)) => Member { machine, component: None, no_log: true },
            Some((own, Log(component))) => {
                let own = Some(own).filter(|own| !own.is_empty()).map(str::to_owned);
                Member { machine: own.or(machine), component: Some(component), no_log: false }
            }
            None => Member { machine, component: None, no_log: false },
        }
    }

    /// The machine that the archive's name or a folder's tells, empty where it tells none; `None` where it is called otherwise.
    fn called<'p>(&self, archive: &'p str, path: &'p str) -> Option<&'p str> {
        let archive = archive.rsplit(['/', '!']).next().unwrap_or(archive);
        let archive =
            archive.split_once(".tar").or_else(|| archive.rsplit_once('.')).map_or(archive, |(stem, _)| stem);
        let folders = path.rsplit_once('/').map_or("", |(folders, _)| folders);
        let mut names = folders.split('/').chain([archive]);
        names.find_map(|name| self.called.iter().find_map(|pattern| glob(pattern, name)))
    }
}

/// No collector nests deeper. A path of more folders fits nothing: each of them may begin a pattern, and each behind it end one,
/// so that a name of 64 KiB took ten seconds.
const FOLDERS_MAX: usize = 64;

/// Whether the path, from any of its folders on, fits; what stands at `{}`, or nothing.
fn anywhere<'p>(pattern: &str, path: &'p str) -> Option<&'p str> {
    let path: Vec<&str> = path.split('/').take(FOLDERS_MAX + 1).collect();
    if path.len() > FOLDERS_MAX {
        return None;
    }
    let pattern: Vec<&str> = pattern.split('/').collect();
    (0..path.len()).find_map(|from| folders(&pattern, &path[from..]))
}

fn folders<'p>(pattern: &[&str], path: &[&'p str]) -> Option<&'p str> {
    match (pattern, path) {
        ([], []) => Some(""),
        (["**"], [_, ..]) => Some(""),
        (["**", rest @ ..], _) => (0..path.len()).find_map(|from| folders(rest, &path[from..])),
        ([first, rest @ ..], [name, names @ ..]) => {
            let own = glob(first, name)?;
            let further = folders(rest, names)?;
            Some(if own.is_empty() { further } else { own })
        }
        _ => None,
    }
}

/// One name: `*` is anything, `?` a digit, `{}` anything that is wanted. Only the last `*` is tried again at the next place, so
/// that a name without end costs no more than its length for each letter of the pattern.
fn glob<'p>(pattern: &str, name: &'p str) -> Option<&'p str> {
    let (wanted, bytes) = (pattern.as_bytes(), name.as_bytes());
    let (mut at, mut from) = (0, 0);
    let mut star: Option<(usize, usize, bool)> = None;
    let mut taken = 0..0;
    loop {
        match (wanted.get(at), bytes.get(from)) {
            (None, None) => return name.get(taken),
            (Some(sign @ (b'*' | b'{')), _) => {
                let captures = *sign == b'{';
                at += if captures { 2 } else { 1 };
                star = Some((at, from, captures));
                if captures {
                    taken = from..from;
                }
                continue;
            }
            (Some(letter), Some(byte)) if letter == byte || (*letter == b'?' && byte.is_ascii_digit()) => {
                (at, from) = (at + 1, from + 1);
                continue;
            }
            _ => {}
        }
        let (after, begun, captures) = star.filter(|(_, begun, _)| *begun < bytes.len())?;
        (at, from) = (after, begun + 1);
        star = Some((after, from, captures));
        if captures {
            taken.end = from;
        }
    }
}

#[rustfmt::skip]
static LAYOUTS: [Layout; 6] = [
    Layout {
        name: "bundle of reveille doctor",
        platform: None,
        called: &[],
        tells: &["reveille-doctor/verdict.txt"],
        rows: &[
            ("reveille-doctor/verdict.txt", Log("doctor")),
            ("reveille-doctor/logs/**/kubelet*", Log("kubelet")),
            ("reveille-doctor/logs/**/containerd*", Log("containerd")),
            ("reveille-doctor/logs/**/cloud-init*", Log("cloud-init")),
            ("reveille-doctor/logs/**", Log("journal")),
            // The same facts as the verdict, in words that sound like trouble; and settings.
            ("reveille-doctor/report.json", NoLog), ("reveille-doctor/facts.txt", NoLog), ("reveille-doctor/files/**", NoLog),
        ],
    },
    Layout {
        name: "sosreport",
        platform: None,
        called: &["sosreport-{}-????-??-??-*"],
        tells: &["sos_commands/**", "sos_reports/**", "sos_logs/**"],
        rows: &[
            ("sos_commands/**/journalctl*kubelet*", Log("kubelet")),
            ("sos_commands/**/journalctl*containerd*", Log("containerd")),
            ("sos_commands/**/journalctl*crio*", Log("cri-o")),
            ("sos_commands/**/journalctl*", Log("journal")),
            ("sos_commands/**/podlogs/**", Log("pod")),
            ("sos_commands/**/kubectl*get*nodes", Log("kubectl")),
            ("sos_commands/**/kubectl*get*pods", Log("kubectl")),
            ("sos_commands/**/kubectl*get*events", Log("kubectl")),
            ("sos_commands/**/kubectl*describe_node*", Log("kubectl")),
            ("sos_commands/kernel/dmesg*", Log("kernel")),
            ("sos_commands/filesys/df*", Log("df")),
            ("var/log/pods/**", Log("pod")),
            ("var/log/containers/**", Log("pod")),
            ("var/log/cloud-init*", Log("cloud-init")),
            ("var/log/**", Log("system log")),
            ("sos_commands/**", NoLog), ("sos_reports/**", NoLog), ("sos_logs/**", NoLog), ("sos_strings/**", NoLog),
            ("etc/**", NoLog), ("proc/**", NoLog), ("sys/**", NoLog), ("usr/**", NoLog), ("run/**", NoLog), ("boot/**", NoLog),
            ("lib/**", NoLog), ("root/**", NoLog), ("dev/**", NoLog),
            ("installed-rpms", NoLog), ("installed-debs", NoLog), ("environment", NoLog), ("version.txt", NoLog),
        ],
    },
    Layout {
        name: "bundle of Rancher's log collector",
        platform: None,
        called: &["{}-????-??-??_??_??_??"],
        tells: &["systeminfo/systemd-units", "systeminfo/systemd-unit-files", "journald/rancher-system-agent"],
        rows: &[
            ("journald/rke2-*", Log("rke2")),
            ("journald/k3s*", Log("k3s")),
            ("journald/kubelet", Log("kubelet")),
            ("journald/rancher-system-agent", Log("rancher-system-agent")),
            ("journald/**", Log("journal")),
            ("rke2/agent-logs/kubelet*", Log("kubelet")),
            ("rke2/agent-logs/**", Log("rke2")),
            ("rke2/server-logs/**", Log("rke2")),
            ("rke2/containerd.log", Log("containerd")),
            ("k8s/containerlogs/**", Log("container")),
            ("rancher/containerlogs/**", Log("rancher")),
            ("podlogs/**", Log("pod")),
            ("kubeadm/containers-varlogs/**", Log("pod")),
            ("kubectl/nodes", Log("kubectl")),
            ("kubectl/nodesdescribe", Log("kubectl")),
            ("kubectl/pods", Log("kubectl")),
            ("kubectl/events", Log("kubectl")),
            ("systeminfo/dmesg", Log("kernel")),
            ("systeminfo/dfh", Log("df")), ("systeminfo/dfi", Log("df")),
            ("systemlogs/atop-data/**", NoLog), ("systemlogs/sa-data/**", NoLog), ("systemlogs/sysstat-data/**", NoLog),
            ("systemlogs/cloud-init*", Log("cloud-init")),
            ("systemlogs/**", Log("system log")),
            ("systeminfo/**", NoLog), ("networking/**", NoLog), ("kubectl/**", NoLog), ("crictl/**", NoLog), ("certs/**", NoLog),
            ("tmpcerts/**", NoLog), ("pki/**", NoLog), ("directories/**", NoLog), ("docker/**", NoLog),
            ("containerinspect/**", NoLog), ("podinspect/**", NoLog), ("nginx-proxy/**", NoLog), ("etcd/find*", NoLog),
            ("rke2/*", NoLog), ("k3s/*", NoLog), ("kubeadm/*", NoLog),
        ],
    },
    Layout {
        name: "bundle of EKS's log collector",
        platform: Some("eks"),
        called: &["eks_{}_????-??-??_*"],
        tells: &["ipamd/*.json", "sandbox-image/*", "sysctls/sysctl_all.txt", "var_log/aws-routed-eni/**"],
        rows: &[
            ("kubelet/kubelet.log", Log("kubelet")),
            ("containerd/containerd-log.txt", Log("containerd")),
            ("docker/docker.log", Log("docker")),
            ("sandbox-image/**", Log("sandbox-image")),
            ("nodeadm/*.log", Log("nodeadm")),
            ("kernel/dmesg*", Log("kernel")),
            ("storage/mounts.txt", Log("df")), ("storage/inodes.txt", Log("df")),
            ("networking/curl_api_server.txt", Log("curl")),
            ("var_log/aws-routed-eni/**", Log("aws-node")),
            ("var_log/*aws-node*/**", Log("aws-node")),
            ("var_log/cloud-init*", Log("cloud-init")),
            ("var_log/**", Log("system log")),
            ("system/**", NoLog), ("sysctls/**", NoLog), ("storage/**", NoLog), ("networking/**", NoLog), ("ipamd/**", NoLog),
            ("cni/**", NoLog), ("kernel/**", NoLog), ("kubelet/**", NoLog), ("containerd/**", NoLog), ("docker/**", NoLog),
            ("nodeadm/**", NoLog), ("gpu/**", NoLog),
        ],
    },
    Layout {
        name: "bundle of AKS's log collector",
        platform: Some("aks"),
        called: &["aks_logs"],
        tells: &["collect/file_listings.txt", "collect/proc/**", "collect/crictl_*", "var/log/azure-cn*", "var/log/azure/**"],
        rows: &[
            ("var/log/azure/cluster-provision*", Log("provisioning")),
            ("var/log/azure/**", Log("azure agent")),
            ("var/log/azure-cni*", Log("azure-cni")), ("var/log/azure-vnet*", Log("azure-cni")),
            ("var/log/azure-cns*", Log("azure-cns")),
            ("var/log/cloud-init*", Log("cloud-init")),
            ("var/log/kern*", Log("kernel")),
            ("var/log/dpkg*", NoLog), ("var/log/yum*", NoLog),
            ("var/log/**", Log("system log")),
            ("collect/du_*.txt", Log("df")),
            ("collect/**", NoLog), ("etc/**", NoLog), ("boot/**", NoLog), ("run/**", NoLog), ("var/lib/**", NoLog), ("var/run/**", NoLog),
        ],
    },
    Layout {
        name: "kubectl cluster-info dump",
        platform: None,
        called: &[],
        tells: &["kube-system/events.json", "kube-system/events.yaml", "kube-system/*/logs.txt"],
        rows: &[
            ("kube-system/kube-apiserver-{}/logs.txt", Log("kube-apiserver")),
            ("kube-system/kube-controller-manager-{}/logs.txt", Log("kube-controller-manager")),
            ("kube-system/kube-scheduler-{}/logs.txt", Log("kube-scheduler")),
            ("kube-system/etcd-{}/logs.txt", Log("etcd")),
            ("logs.txt", Log("pod")),
            ("nodes.*", Log("nodes")), ("events.*", Log("events")), ("pods.*", Log("pods")),
            ("replication-controller-list.*", NoLog), ("services.*", NoLog), ("deployments.*", NoLog), ("daemonsets.*", NoLog),
            ("replicasets.*", NoLog),
        ],
    },
];

/// Folders that only one distribution has, in bundles of tools that run on several.
const PLATFORMS: [(&str, &str); 3] = [("rke2/**", "rke2"), ("k3s/**", "k3s"), ("kubeadm/**", "kubeadm")];

/// The platform that a member of a bundle tells.
pub(super) fn platform(layout: &Layout, path: &str) -> Option<&'static str> {
    layout
        .platform
        .or_else(|| PLATFORMS.into_iter().find_map(|(pattern, name)| anywhere(pattern, path).map(|_| name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_matched_as_they_are_written() {
        for (pattern, name, expected) in [
            ("sosreport-{}-????-??-??-*", "sosreport-w-1-2024-05-29-abcdefg", Some("w-1")),
            ("sosreport-{}-????-??-??-*", "sosreport-w-1", None),
            ("*kubelet*", "journalctl_--unit_kubelet", Some("")),
            ("{}-????-??-??_??_??_??", "w-1-2024-05-29_10_11_12", Some("w-1")),
            ("kube-apiserver-{}", "kube-apiserver-m-1.site", Some("m-1.site")),
            ("{}-x", "ü-x", Some("ü")),
            ("a*b*c", "aXbbYc", Some("")),
            ("a*b*c", "aXbbY", None),
        ] {
            assert_eq!(glob(pattern, name), expected, "{pattern} {name}");
        }
        assert!(anywhere("sos_commands/**/journalctl*", "top/sos_commands/logs/journalctl_--boot").is_some());
        assert!(anywhere("etc/**", "top/etcd/log").is_none());
        assert!(anywhere("rke2/*", "rke2/agent-logs/kubelet.log").is_none());
    }
}

//! What protects a machine from a reset with any distribution: marks of a control plane, joins by other means, joins
//! under way.
//!
//! A machine that serves a k3s cluster has none of kubeadm's files, and the other way round. A distribution that looked
//! only for its own marks would reset the other's machine.

use super::{Kind, Root};
use crate::target::KUBECONFIG;
use crate::target::agent_config::AgentConfig;

/// Files of kubeadm that only a control plane, or a member of etcd, has.
const OF_KUBEADM: [&str; 4] = [
    "/etc/kubernetes/manifests/kube-apiserver.yaml",
    "/etc/kubernetes/manifests/etcd.yaml",
    "/etc/kubernetes/admin.conf",
    "/var/lib/etcd/member",
];
/// Files of k3s or RKE2 that only a server has, below its data directory.
const OF_SERVERS: [&str; 3] = ["server/db", "server/tls", "server/token"];
/// Scripts that remove k3s or RKE2 from a machine, or stop all of it.
const SCRIPTS: [&str; 5] =
    ["k3s-uninstall.sh", "k3s-agent-uninstall.sh", "k3s-killall.sh", "rke2-uninstall.sh", "rke2-killall.sh"];
/// A script is the first word, or comes after the shell and its options.
const WORDS_LOOKED_AT: usize = 3;

/// The files that show a control plane, and joins by other means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Marks {
    control_plane: Vec<String>,
    kubeconfigs: Vec<(Kind, String)>,
}

impl Marks {
    /// The marks on this machine: its agents may keep their files at unusual paths.
    pub fn of_machine(root: &Root) -> Self {
        let mut own = Self {
            control_plane: OF_KUBEADM.map(str::to_owned).to_vec(),
            kubeconfigs: vec![(Kind::Kubeadm, KUBECONFIG.to_owned())],
        };
        for kind in [Kind::K3s, Kind::Rke2] {
            let usual = format!("/var/lib/rancher/{kind}");
            // A configuration that cannot be read changes no path; the usual path is checked in any case.
            let told = AgentConfig::read(kind, root)
                .map(|config| config.data_folder())
                .unwrap_or_else(|_| usual.clone());
            let mut folders = vec![usual];
            if !folders.contains(&told) {
                folders.push(told);
            }
            for folder in folders {
                own.control_plane.extend(OF_SERVERS.iter().map(|name| format!("{folder}/{name}")));
                own.kubeconfigs.push((kind, format!("{folder}/agent/kubelet.kubeconfig")));
            }
        }
        own
    }

    /// The existing files of a control plane, or of a member of etcd.
    pub fn of_control_plane<'a>(&'a self, root: &'a Root) -> impl Iterator<Item = &'a str> {
        self.control_plane.iter().map(String::as_str).filter(|path| root.has(path))
    }

    /// The existing kubeconfigs of kubelets that another distribution joined.
    pub fn of_others<'a>(&'a self, own: Kind, root: &'a Root) -> impl Iterator<Item = &'a str> {
        let others = self.kubeconfigs.iter().filter(move |(kind, _)| *kind != own);
        others.map(|(_, path)| path.as_str()).filter(|path| root.has(path))
    }
}

/// True when a process with these arguments joins this machine, or removes it from a cluster, by any distribution.
pub fn is_join(words: &[&str]) -> bool {
    let name = |word: &&str| word.rsplit('/').next().unwrap_or_default().to_owned();
    // Flags with values may come before the verb.
    let is_kubeadm = words.first().map(name).as_deref() == Some("kubeadm")
        && words.iter().skip(1).any(|word| matches!(*word, "join" | "init" | "reset"));
    is_kubeadm || words.iter().take(WORDS_LOOKED_AT).map(name).any(|name| SCRIPTS.contains(&name.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn whose_process_is_a_join() {
        for (line, wanted) in [
            ("kubeadm join 10.0.0.1:6443", true),
            ("/usr/bin/kubeadm reset -f", true),
            ("/usr/bin/kubeadm init", true),
            ("kubeadm --v=5 --rootfs / join 10.0.0.1:6443", true),
            ("kubeadm token list", false),
            ("vi kubeadm join", false),
            ("/bin/sh /usr/local/bin/k3s-agent-uninstall.sh", true),
            ("/bin/sh -x /usr/local/bin/rke2-killall.sh", true),
            ("/usr/local/bin/k3s agent", false),
            ("grep -r a b k3s-killall.sh", false),
            ("", false),
        ] {
            let words: Vec<&str> = line.split(' ').collect();
            assert_eq!(is_join(&words), wanted, "{line}");
        }
    }

    #[test]
    fn a_control_plane_of_any_kind_is_seen_by_all_also_where_its_folder_is_another() {
        for (mark, config) in [
            ("/etc/kubernetes/manifests/etcd.yaml", ""),
            ("/var/lib/rancher/k3s/server/tls", ""),
            ("/var/lib/rancher/rke2/server/db", ""),
            ("/data/k3s/server/token", "data-dir: /data/k3s"),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let root = Root::new(folder.path());
            fs::create_dir_all(root.at("/etc/rancher/k3s")).unwrap();
            fs::write(root.at("/etc/rancher/k3s/config.yaml"), config).unwrap();
            let marks = Marks::of_machine(&root);
            assert_eq!(marks.of_control_plane(&root).count(), 0);
            fs::create_dir_all(root.at(mark)).unwrap();
            assert_eq!(marks.of_control_plane(&root).collect::<Vec<_>>(), [mark]);
        }
    }
}

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
    /// The places of the configuration that cannot be read.
    unread: Vec<String>,
    kubeconfigs: Vec<(Kind, String)>,
}

impl Marks {
    /// The marks on this machine: its agents may keep their files at unusual paths.
    pub fn of_machine(root: &Root) -> Self {
        let mut own = Self {
            control_plane: OF_KUBEADM.map(str::to_owned).to_vec(),
            unread: Vec::new(),
            kubeconfigs: vec![(Kind::Kubeadm, KUBECONFIG.to_owned())],
        };
        for kind in [Kind::K3s, Kind::Rke2] {
            let mut folders = vec![format!("/var/lib/rancher/{kind}")];
            let (server, server_whole) = AgentConfig::of_server(kind, root);
            // Where a server's own unit or environment names a folder in other words than a path, its data is not found.
            own.unread.extend(server.riddle().map(str::to_owned));
            let (agent, agent_whole) = AgentConfig::as_far_as_it_goes(kind, root);
            for (config, whole) in [(agent, agent_whole), (server, server_whole)] {
                // Also a folder that another place overrides: what is a server's there is one's.
                folders.extend(config.folders().map(str::to_owned));
                own.unread.extend(whole.err().map(|error| error.place));
            }
            folders.sort();
            folders.dedup();
            for folder in folders {
                own.control_plane.extend(OF_SERVERS.iter().map(|name| format!("{folder}/{name}")));
                own.kubeconfigs.push((kind, format!("{folder}/agent/kubelet.kubeconfig")));
            }
        }
        own.unread.dedup();
        own
    }

    /// The existing files of a control plane, or of a member of etcd.
    pub fn of_control_plane<'a>(&'a self, root: &'a Root) -> impl Iterator<Item = &'a str> {
        self.control_plane.iter().map(String::as_str).filter(|path| root.has(path))
    }

    /// The places of the configuration that cannot be read here, or that name it by a variable: k3s and RKE2 may read it, and
    /// it may name the folder of a control plane.
    pub fn unread(&self) -> &[String] {
        &self.unread
    }

    /// True when the machine has a control plane or a member of etcd, or when that cannot be told: a reset cannot be undone.
    pub fn may_lead(&self, root: &Root) -> bool {
        !self.unread.is_empty() || self.of_control_plane(root).next().is_some()
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
    fn control_plane_of_each_distribution_is_seen_in_any_data_dir() {
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
            assert!(!marks.may_lead(&root));
            fs::create_dir_all(root.at(mark)).unwrap();
            assert_eq!(marks.of_control_plane(&root).collect::<Vec<_>>(), [mark]);
        }
    }

    /// k3s takes what our reader does not: an alias, a long comment. A broken file may have said where the folder is.
    #[test]
    fn unreadable_config_file_does_not_hide_control_plane() {
        let alias = "node-label: &all [a=b]\nnode-taint: *all\n".to_owned();
        let long = format!("# {}\n", "x".repeat(5 << 20));
        let own = "data-dir: /data/k3s\n";
        for (first, second) in [
            (own, alias.as_str()),
            (own, "node-label: [\n"),
            (own, &long),
            ("", &format!("{own}node-label: [\n")),
            ("node-label: [\n", own),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let root = Root::new(folder.path());
            for (path, text) in [
                ("/etc/rancher/k3s/config.yaml", first),
                ("/etc/rancher/k3s/config.yaml.d/50.yaml", second),
                ("/data/k3s/server/token", "K10x::server:x\n"),
            ] {
                fs::create_dir_all(root.at(path).parent().unwrap()).unwrap();
                fs::write(root.at(path), text).unwrap();
            }
            let marks = Marks::of_machine(&root);
            assert!(marks.may_lead(&root), "{first} {second:.40}");
            let is_read = first == own;
            assert_eq!(marks.of_control_plane(&root).count(), usize::from(is_read), "{first} {second:.40}");
        }
    }

    #[test]
    fn the_folder_of_a_server_is_where_its_own_unit_says() {
        for (unit, line) in [
            (
                "/etc/systemd/system/k3s.service",
                "ExecStart=/usr/local/bin/k3s \\\n    server \\\n\t'--data-dir' \\\n\t'/data' \\\n",
            ),
            (
                "/usr/local/lib/systemd/system/rke2-server.service",
                "ExecStart=/usr/local/bin/rke2 server -d /data\n",
            ),
            ("/etc/systemd/system/k3s.service.env", "K3S_DATA_DIR=/data\n"),
            ("/etc/default/rke2-server", "RKE2_DATA_DIR=/data\n"),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let root = Root::new(folder.path());
            fs::create_dir_all(root.at(unit).parent().unwrap()).unwrap();
            fs::write(root.at(unit), line).unwrap();
            fs::create_dir_all(root.at("/data/server/tls")).unwrap();
            let marks = Marks::of_machine(&root);
            assert_eq!(marks.of_control_plane(&root).collect::<Vec<_>>(), ["/data/server/tls"], "{unit}");
        }
    }
}

//! The processes of this machine: their names, and what they listen on.

use std::collections::BTreeMap;
use std::io;

use crate::root::Root;

/// Programs that are a kubelet, or have one inside.
const KUBELETS: [&str; 6] = ["kubelet", "k3s", "k3s-server", "k3s-agent", "rke2", "kubelite"];
/// A machine with more processes than this is not looked through to its end.
const PROCESSES_MAX: usize = 100_000;

/// A process, as far as it matters here.
#[derive(Clone, Debug)]
pub(super) struct Process {
    pub(super) pid: u32,
    /// Its name, as the kernel cuts it to fifteen bytes.
    pub(super) name: String,
    /// It is this machine's kubelet: called so, root's, and it sees the files that we see. One that does not is a kubelet of
    /// another machine, within this one.
    pub(super) is_kubelet: bool,
}

/// All of them.
pub(super) struct Processes {
    all: Vec<Process>,
    root: Root,
}

impl Processes {
    pub(super) fn read(root: &Root) -> io::Result<Self> {
        let names = root.names("/proc")?.ok_or_else(|| io::Error::other("/proc is not there"))?;
        let files = |pid: &str| root.link(format!("/proc/{pid}/ns/mnt"));
        let own = files("self");
        let all = names
            .iter()
            .filter_map(|name| Some((name, name.parse::<u32>().ok()?)))
            .take(PROCESSES_MAX)
            // One that ended in between is not there any more.
            .filter_map(|(text, pid)| Some((text, pid, root.text(format!("/proc/{text}/comm")).ok()??)))
            .map(|(text, pid, name)| {
                let theirs = files(text);
                let is_of_this_machine = theirs.is_none() || own.is_none() || theirs == own;
                let name = name.trim().to_owned();
                // Asked of few: there may be thousands of processes.
                let is_kubelet =
                    is_of_this_machine && KUBELETS.contains(&name.as_str()) && is_roots(root, pid);
                Process { pid, name, is_kubelet }
            })
            .collect();
        Ok(Self { all, root: root.clone() })
    }

    /// This machine's kubelet.
    pub(super) fn kubelet(&self) -> Option<u32> {
        self.all.iter().find(|process| process.is_kubelet).map(|process| process.pid)
    }

    /// Who has each of these sockets open, by their inodes.
    pub(super) fn holders(&self, inodes: &[u64]) -> BTreeMap<u64, Process> {
        let mut found = BTreeMap::new();
        for process in &self.all {
            if found.len() == inodes.len() {
                break;
            }
            // Others' are not for everybody to see.
            for link in self.root.links(format!("/proc/{}/fd", process.pid)) {
                let name = link.to_string_lossy();
                let inode =
                    name.strip_prefix("socket:[").and_then(|rest| rest.strip_suffix(']')?.parse().ok());
                if let Some(inode) = inode.filter(|inode| inodes.contains(inode)) {
                    found.entry(inode).or_insert_with(|| process.clone());
                }
            }
        }
        found
    }
}

/// A user may call a process as they like, and give it any arguments; a kubelet and a join are root's, or ours. The real user
/// counts: a program that becomes root when it is run says whose it is there. Of one that ended while it was looked at nothing
/// says whose it was, and it is not there any more.
pub(crate) fn is_roots(root: &Root, pid: u32) -> bool {
    let status = root.text(format!("/proc/{pid}/status")).ok().flatten().unwrap_or_default();
    let uid =
        status.lines().find_map(|line| line.strip_prefix("Uid:")?.split_whitespace().next()?.parse().ok());
    uid.is_some_and(|uid: u32| uid == 0 || uid == rustix::process::getuid().as_raw())
}

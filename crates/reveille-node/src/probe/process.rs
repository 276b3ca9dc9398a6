//! The processes of this machine: their names, and the sockets on which they listen.

use std::collections::BTreeMap;
use std::io::{self, Read as _};

use crate::root::Root;

/// Programs that are a kubelet, or contain one.
const KUBELETS: [&str; 6] = ["kubelet", "k3s", "k3s-server", "k3s-agent", "rke2", "kubelite"];
/// On a machine with more processes than this, the search stops.
const PROCESSES_MAX: usize = 100_000;

/// No kernel writes a longer name. A disk has any file there, and as many links to it as it likes.
const NAME_BYTES_MAX: u64 = 64;

/// The name of the process.
fn name_of(root: &Root, pid: &str) -> Option<String> {
    let mut name = Vec::new();
    let file = root.file(format!("/proc/{pid}/comm")).ok()??;
    file.take(NAME_BYTES_MAX).read_to_end(&mut name).ok()?;
    Some(String::from_utf8_lossy(&name).trim().to_owned())
}

/// The facts about a process.
#[derive(Clone, Debug)]
pub(super) struct Process {
    pub(super) pid: u32,
    /// The name, which the kernel cuts to fifteen bytes.
    pub(super) name: String,
    /// The process is this machine's kubelet: it has the name, it belongs to root, and it sees the same files as the
    /// agent. A kubelet that sees other files belongs to another machine inside this one.
    pub(super) is_kubelet: bool,
}

/// All processes.
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
            // A process that ended in between does not count.
            .filter_map(|(text, pid)| Some((text, pid, name_of(root, text)?)))
            .map(|(text, pid, name)| {
                let theirs = files(text);
                let is_of_this_machine = theirs.is_none() || own.is_none() || theirs == own;
                // This is read for few processes: there may be thousands.
                let is_kubelet =
                    is_of_this_machine && KUBELETS.contains(&name.as_str()) && is_roots(root, pid);
                Process { pid, name, is_kubelet }
            })
            .collect();
        Ok(Self { all, root: root.clone() })
    }

    /// The process id of this machine's kubelet.
    pub(super) fn kubelet(&self) -> Option<u32> {
        self.all.iter().find(|process| process.is_kubelet).map(|process| process.pid)
    }

    /// The processes that hold these sockets open, by inode.
    pub(super) fn holders(&self, inodes: &[u64]) -> BTreeMap<u64, Process> {
        let mut found = BTreeMap::new();
        for process in &self.all {
            if found.len() == inodes.len() {
                break;
            }
            // Only root can see the open files of other users' processes.
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

/// A user may give a process any name and any arguments; a kubelet and a join belong to root or to the agent's account.
/// The real uid counts: a setuid program shows there which user started it. For a process that ended during the check the
/// result is false; it does not exist any more.
pub(crate) fn is_roots(root: &Root, pid: u32) -> bool {
    let status = root.text(format!("/proc/{pid}/status")).ok().flatten().unwrap_or_default();
    let uid =
        status.lines().find_map(|line| line.strip_prefix("Uid:")?.split_whitespace().next()?.parse().ok());
    uid.is_some_and(|uid: u32| uid == 0 || uid == rustix::process::getuid().as_raw())
}

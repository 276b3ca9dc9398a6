//! Reads all of the machine's files, one after the other.

use std::net::IpAddr;

use reveille_agent::checkup::Reading;
use reveille_agent::checkup::facts::{ConfigSeen, Disk, Identity, Join, Joined, Kernel, Memory, Port, Route};

use super::layout::Layout;
use super::{disk, kernel, kubelet, ports, process, routes};
use crate::distribution::Marks;
use crate::root::Root;
use crate::target::KubeletFlags;

/// The facts from files.
pub(super) struct Files {
    pub(super) host_name: Reading<String>,
    pub(super) name_of_flags: Option<String>,
    pub(super) routes: Reading<Vec<Route>>,
    pub(super) resolvers: Reading<Vec<IpAddr>>,
    pub(super) kernel: Kernel,
    pub(super) swap: Reading<Vec<String>>,
    pub(super) ports: Vec<Port>,
    pub(super) join: Join,
    pub(super) disks: Vec<Disk>,
    pub(super) memory: Reading<Memory>,
    pub(super) config: Reading<ConfigSeen>,
    pub(super) health_at: Option<(String, u16)>,
    pub(super) process: Reading<Option<u32>>,
    pub(super) identity: Identity,
    pub(super) cni: Reading<Vec<String>>,
}

impl Files {
    pub(super) fn read(root: &Root, layout: &Layout) -> Self {
        let read = kubelet::config(root);
        let (config, listens) = match read {
            Reading::Read((config, listens)) => (Reading::Read(config), listens),
            Reading::CannotTell(why) => (Reading::CannotTell(why), kubelet::Listens::default()),
        };
        let flags = KubeletFlags::read(root).unwrap_or_default();
        let processes = process::Processes::read(root);
        let process = match &processes {
            Ok(processes) => Reading::Read(processes.kubelet()),
            Err(error) => Reading::cannot_tell(format!("processes cannot be listed: {error}")),
        };
        let wanted = [
            (listens.address.clone(), listens.port, "the kubelet"),
            (listens.health_address.clone(), listens.health_port, "its healthz"),
        ];
        let health_at =
            (listens.health_port > 0).then(|| (listens.health_address.clone(), listens.health_port));
        Self {
            host_name: line(root, "/proc/sys/kernel/hostname"),
            name_of_flags: flags.get("hostname-override").map(str::to_owned),
            routes: routes::read(root),
            resolvers: resolvers(root),
            kernel: kernel::read(root),
            swap: kernel::swap(root),
            ports: ports::read(root, &wanted, processes.as_ref().ok()),
            join: Join {
                kubeconfig: kubelet::joined(root, &layout.kubeconfig),
                control_plane: control_plane(root),
            },
            disks: disk::read(root),
            memory: disk::memory(root),
            config,
            health_at,
            process,
            identity: identity(root),
            cni: cni(root, &layout.cni_folders),
        }
    }

    /// The facts when the read did not end in time.
    pub(super) fn unread(why: &str) -> Self {
        let text = || Reading::cannot_tell(why);
        Self {
            host_name: text(),
            name_of_flags: None,
            routes: Reading::cannot_tell(why),
            resolvers: Reading::cannot_tell(why),
            kernel: Kernel {
                forwards: Reading::cannot_tell(why),
                bridges_filter: Reading::cannot_tell(why),
                has_overlay: Reading::cannot_tell(why),
                cgroups: Reading::cannot_tell(why),
            },
            swap: Reading::cannot_tell(why),
            ports: Vec::new(),
            join: Join { kubeconfig: Reading::cannot_tell(why), control_plane: Reading::cannot_tell(why) },
            disks: Vec::new(),
            memory: Reading::cannot_tell(why),
            config: Reading::cannot_tell(why),
            health_at: None,
            process: Reading::cannot_tell(why),
            identity: Identity { machine_id: text(), system_uuid: text(), boot_id: text() },
            cni: Reading::cannot_tell(why),
        }
    }
}

/// A file with one line that every machine has.
fn line(root: &Root, path: &str) -> Reading<String> {
    match root.text(path) {
        Ok(Some(text)) => Reading::Read(text.trim().to_owned()),
        Ok(None) => Reading::cannot_tell(format!("{path} is not there")),
        Err(error) => Reading::cannot_tell(format!("{path}: {error}")),
    }
}

fn identity(root: &Root) -> Identity {
    Identity {
        machine_id: line(root, "/etc/machine-id"),
        system_uuid: line(root, "/sys/class/dmi/id/product_uuid"),
        boot_id: line(root, "/proc/sys/kernel/random/boot_id"),
    }
}

fn resolvers(root: &Root) -> Reading<Vec<IpAddr>> {
    let of = |text: String| {
        let servers = text.lines().filter_map(|line| line.trim().strip_prefix("nameserver"));
        // A link-local address has its device after a percent sign.
        servers.filter_map(|server| server.split('%').next()?.trim().parse().ok()).collect()
    };
    match root.text("/etc/resolv.conf") {
        Ok(text) => Reading::Read(of(text.unwrap_or_default())),
        Err(error) => Reading::cannot_tell(error.to_string()),
    }
}

fn control_plane(root: &Root) -> Reading<Vec<String>> {
    let marks = Marks::of_machine(root);
    let found: Vec<String> = marks.of_control_plane(root).map(str::to_owned).collect();
    match marks.unread() {
        [place, ..] if found.is_empty() => Reading::cannot_tell(format!("{place} cannot be read")),
        _ => Reading::Read(found),
    }
}

fn cni(root: &Root, folders: &[String]) -> Reading<Vec<String>> {
    let is_one = |name: &String| [".conf", ".conflist", ".json"].iter().any(|end| name.ends_with(end));
    let mut found = Vec::new();
    for folder in folders {
        match root.names(folder) {
            Ok(names) => found.extend(names.unwrap_or_default().into_iter().filter(is_one)),
            Err(error) => return Reading::cannot_tell(format!("{folder}: {error}")),
        }
    }
    Reading::Read(found)
}

/// True when the kubelet's kubeconfig names a cluster, so that requests can use it.
pub(super) fn is_joined(join: &Join) -> bool {
    matches!(join.kubeconfig, Reading::Read(Joined::To { .. }))
}

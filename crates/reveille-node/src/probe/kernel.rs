//! The kernel: forwarding, bridges, overlay, control groups, swap.

use reveille_agent::checkup::Reading;
use reveille_agent::checkup::facts::{Cgroups, Kernel};

use crate::root::Root;

/// Controllers without which a kubelet does not start.
const CONTROLLERS: [&str; 4] = ["cpu", "cpuset", "memory", "pids"];

pub(super) fn read(root: &Root) -> Kernel {
    let forwards = match switch(root, "/proc/sys/net/ipv4/ip_forward") {
        Reading::Read(Some(on)) => Reading::Read(on),
        Reading::Read(None) => Reading::cannot_tell("/proc/sys/net/ipv4/ip_forward is not there"),
        Reading::CannotTell(why) => Reading::CannotTell(why),
    };
    Kernel {
        forwards,
        bridges_filter: switch(root, "/proc/sys/net/bridge/bridge-nf-call-iptables"),
        has_overlay: has_overlay(root),
        cgroups: cgroups(root),
    }
}

/// A setting of 0 or 1; `None` where the kernel has no such setting.
fn switch(root: &Root, path: &str) -> Reading<Option<bool>> {
    match root.text(path) {
        Ok(text) => Reading::Read(text.map(|text| text.trim() != "0")),
        Err(error) => Reading::cannot_tell(format!("{path}: {error}")),
    }
}

/// The file system is loaded, built in, or available as a module that the first mount loads.
fn has_overlay(root: &Root) -> Reading<bool> {
    let loaded = match root.text("/proc/filesystems") {
        Ok(Some(text)) => text.lines().any(|line| line.split_whitespace().next_back() == Some("overlay")),
        Ok(None) => return Reading::cannot_tell("/proc/filesystems is not there"),
        Err(error) => return Reading::cannot_tell(format!("/proc/filesystems: {error}")),
    };
    if loaded {
        return Reading::Read(true);
    }
    let release = root.text("/proc/sys/kernel/osrelease").ok().flatten().unwrap_or_default();
    let modules = format!("/lib/modules/{}/modules.dep", release.trim());
    match root.text(&modules) {
        Ok(Some(text)) => Reading::Read(text.lines().any(|line| {
            let file = line.split(':').next().unwrap_or_default().rsplit('/').next().unwrap_or_default();
            file.split('.').next() == Some("overlay")
        })),
        // In a container the machine's modules are not visible.
        Ok(None) => Reading::cannot_tell(format!("it is not loaded, and {modules} is not there")),
        Err(error) => Reading::cannot_tell(format!("{modules}: {error}")),
    }
}

fn cgroups(root: &Root) -> Reading<Cgroups> {
    const UNIFIED: &str = "/sys/fs/cgroup/cgroup.controllers";
    match root.text(UNIFIED) {
        Err(error) => return Reading::cannot_tell(format!("{UNIFIED}: {error}")),
        Ok(Some(text)) => {
            let offered: Vec<&str> = text.split_whitespace().collect();
            return Reading::Read(Cgroups { version: 2, missing: missing(&offered) });
        }
        Ok(None) => {}
    }
    match root.text("/proc/cgroups") {
        Err(error) => Reading::cannot_tell(format!("/proc/cgroups: {error}")),
        Ok(None) => Reading::Read(Cgroups { version: 0, missing: missing(&[]) }),
        Ok(Some(text)) => {
            // The columns: name, hierarchy, groups, enabled.
            let on = |line: &&str| line.split_whitespace().nth(3) == Some("1");
            let offered: Vec<&str> =
                text.lines().filter(on).filter_map(|line| line.split_whitespace().next()).collect();
            let is_mounted = matches!(root.names("/sys/fs/cgroup"), Ok(Some(names)) if !names.is_empty());
            Reading::Read(Cgroups { version: u8::from(is_mounted), missing: missing(&offered) })
        }
    }
}

fn missing(offered: &[&str]) -> Vec<String> {
    CONTROLLERS.iter().filter(|wanted| !offered.contains(wanted)).map(|wanted| (*wanted).to_owned()).collect()
}

/// The devices and files in use as swap.
pub(super) fn swap(root: &Root) -> Reading<Vec<String>> {
    match root.text("/proc/swaps") {
        Ok(Some(text)) => {
            let lines = text.lines().skip(1).filter_map(|line| line.split_whitespace().next());
            // The kubelet does not count swap in compressed memory (zram).
            Reading::Read(lines.filter(|device| !device.contains("zram")).map(str::to_owned).collect())
        }
        // A kernel without swap support has no such file.
        Ok(None) => Reading::Read(Vec::new()),
        Err(error) => Reading::cannot_tell(format!("/proc/swaps: {error}")),
    }
}

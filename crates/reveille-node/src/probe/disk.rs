//! Free room: on the disks that the kubelet and its runtime use, and in memory.

use std::io;
use std::os::fd::OwnedFd;

use reveille_agent::checkup::Reading;
use reveille_agent::checkup::facts::{Disk, Memory, Room};

use crate::root::Root;

/// The directories that the kubelet watches, and the names of its signals for them.
const FOLDERS: [(&str, &str); 3] =
    [("/var/lib/kubelet", "nodefs"), ("/var/lib/containerd", "imagefs"), ("/var/lib/containers", "imagefs")];

pub(super) fn read(root: &Root) -> Vec<Disk> {
    let there: Vec<(&str, &'static str)> =
        FOLDERS.into_iter().filter(|(path, _)| matches!(root.folder(path), Ok(Some(_)))).collect();
    // Before an installation this is the disk of /var/lib, where the directories will be.
    let asked = if there.is_empty() { vec![("/var/lib", "nodefs")] } else { there };
    asked
        .into_iter()
        .map(|(path, what)| Disk { path: path.to_owned(), what, room: room(root.folder(path)) })
        .collect()
}

fn room(folder: io::Result<Option<OwnedFd>>) -> Reading<Room> {
    let folder = folder.and_then(|folder| folder.ok_or_else(|| io::ErrorKind::NotFound.into()));
    match folder.and_then(|folder| Ok(rustix::fs::fstatvfs(folder)?)) {
        Ok(stat) => Reading::Read(Room {
            free_bytes: stat.f_bavail.saturating_mul(stat.f_frsize),
            size_bytes: stat.f_blocks.saturating_mul(stat.f_frsize),
            free_inodes: stat.f_favail,
            inodes: stat.f_files,
        }),
        Err(error) => Reading::cannot_tell(error.to_string()),
    }
}

pub(super) fn memory(root: &Root) -> Reading<Memory> {
    const FILE: &str = "/proc/meminfo";
    let text = match root.text(FILE) {
        Ok(Some(text)) => text,
        Ok(None) => return Reading::cannot_tell(format!("{FILE} is not there")),
        Err(error) => return Reading::cannot_tell(format!("{FILE}: {error}")),
    };
    let kib = |name: &str| -> Option<u64> {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        line.split_whitespace().next()?.parse().ok()
    };
    match (kib("MemAvailable"), kib("MemTotal")) {
        (Some(available), Some(size)) => {
            Reading::Read(Memory { available_bytes: available * 1024, size_bytes: size * 1024 })
        }
        _ => Reading::cannot_tell(format!("{FILE} does not say it")),
    }
}

//! Resolves a path below a root: links are read as on the machine whose root it is.
//!
//! The kernel does it in one call, without a moment in which an attacker could exchange a directory for a link (`openat2`
//! with `RESOLVE_IN_ROOT`, Linux 5.6). Where the call is missing, or a container's seccomp filter refuses it, this module
//! opens each name below the directory before it. It holds the directories open, so that `..` means the directory it came
//! from and never the file system's parent.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags, ResolveFlags, fstat, openat, openat2, readlinkat};
use rustix::io::Errno;

/// As many links as the kernel follows: a path with more of them is a loop.
const LINKS_MAX: usize = 40;
/// The number of tries for a path with `..` in which another process renames directories meanwhile.
const TRIES: usize = 4;

/// Opens the target of the path below the root.
pub(super) fn open(root: &OwnedFd, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    let flags = flags | OFlags::CLOEXEC;
    let within = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
    for _ in 0..TRIES {
        match openat2(root, path, flags, Mode::empty(), within) {
            Ok(file) => return Ok(file),
            Err(Errno::AGAIN | Errno::INTR) => {}
            // Older filters of containers answer EPERM to a call that they do not know.
            Err(Errno::NOSYS | Errno::PERM) => break,
            Err(error) => return Err(error.into()),
        }
    }
    by_hand(root, path, flags)
}

/// The same without the kernel's help.
pub(super) fn by_hand(root: &OwnedFd, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    let look = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    if path.as_os_str().is_empty() {
        return Err(Errno::NOENT.into());
    }
    let mut todo = names(path);
    let mut way: Vec<OwnedFd> = Vec::new();
    let mut links = 0;
    while let Some(name) = todo.pop_front() {
        if name == ".." {
            way.pop();
            continue;
        }
        let here = way.last().unwrap_or(root);
        let seen = openat(here, name.as_os_str(), look, Mode::empty())?;
        let kind = FileType::from_raw_mode(fstat(&seen)?.st_mode);
        let is_last = todo.is_empty();
        match kind {
            FileType::Symlink if !is_last || !flags.contains(OFlags::NOFOLLOW) => {
                links += 1;
                if links > LINKS_MAX {
                    return Err(Errno::LOOP.into());
                }
                let to = link(&seen)?;
                if to.is_absolute() {
                    way.clear();
                }
                for name in names(&to).into_iter().rev() {
                    todo.push_front(name);
                }
            }
            FileType::Directory if !is_last => way.push(seen),
            _ if !is_last => return Err(Errno::NOTDIR.into()),
            // Never through a link: another process may have exchanged the file since the check.
            _ => return Ok(openat(here, name.as_os_str(), flags | OFlags::NOFOLLOW, Mode::empty())?),
        }
    }
    let here = way.last().unwrap_or(root);
    Ok(openat(here, ".", flags, Mode::empty())?)
}

/// The target of an open link.
pub(super) fn link(link: &OwnedFd) -> io::Result<PathBuf> {
    Ok(path(readlinkat(link, "", Vec::new())?.into_bytes()))
}

pub(super) fn path(bytes: Vec<u8>) -> PathBuf {
    PathBuf::from(OsString::from_vec(bytes))
}

fn names(path: &Path) -> VecDeque<OsString> {
    let name = |part: Component<'_>| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some(OsStr::from_bytes(b"..").to_owned()),
        _ => None,
    };
    path.components().filter_map(name).collect()
}

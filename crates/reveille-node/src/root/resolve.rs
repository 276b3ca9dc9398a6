//! A path below a root, resolved there: what a link says is read as it would be on the machine whose root it is.
//!
//! The kernel does it in one call, without a moment in which a folder could be exchanged for a link (`openat2` with
//! `RESOLVE_IN_ROOT`, Linux 5.6). Where there is no such call, or a filter of a container refuses it, each name is opened by
//! hand below the folder before it, which is held open, so that `..` is the way that was come and never the file system's.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags, ResolveFlags, fstat, openat, openat2, readlinkat};
use rustix::io::Errno;

/// As many links as the kernel follows: who leads through more leads round in a circle.
const LINKS_MAX: usize = 40;
/// A path with `..` that somebody renames under is tried again so often.
const TRIES: usize = 4;

/// Opens what the path leads to below the root.
pub(super) fn open(root: &OwnedFd, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    let flags = flags | OFlags::CLOEXEC;
    let within = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
    for _ in 0..TRIES {
        match openat2(root, path, flags, Mode::empty(), within) {
            Ok(file) => return Ok(file),
            Err(Errno::AGAIN | Errno::INTR) => {}
            // Older filters of containers say that it is forbidden where they do not know it.
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
            // Never through a link: what was seen may have been exchanged since.
            _ => return Ok(openat(here, name.as_os_str(), flags | OFlags::NOFOLLOW, Mode::empty())?),
        }
    }
    let here = way.last().unwrap_or(root);
    Ok(openat(here, ".", flags, Mode::empty())?)
}

/// What a link says that is held open.
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

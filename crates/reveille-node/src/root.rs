//! Where the machine's files are: below `/`, or below a folder that a test laid out as one, or that is another machine's disk.
//!
//! ```text
//!  path, as it is named on the machine ─▶ resolve: within the root, link by link ─▶ descriptor: file, folder, link, socket
//! ```
//!
//! Every path that is read on the node goes through here. A link is followed within the root, as it would be on the machine
//! itself (`kubelet-client-current.pem` is one), wherever on the way it stands: who wrote a disk does not choose which files of
//! the host are read. Only regular files are opened, and nothing is waited for: a pipe is refused, a device is not touched.
//! Reading has a bound, and "it is not there" is told apart from "it could not be read".
//!
//! What a person names on the command line is named as their shell sees it, and is opened by [`named`].

mod resolve;

use std::fs;
use std::io::{self, Read as _};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, fstat, readlinkat};

/// No file that is read whole here is longer.
const FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// No folder that is listed here holds more: more processes than a machine has.
const NAMES_MAX: usize = 250_000;

/// Where the machine's files are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root(PathBuf);

impl Default for Root {
    fn default() -> Self {
        Self(PathBuf::from("/"))
    }
}

/// Something that is held open, so that its path leads to it and to nothing else.
#[derive(Debug)]
pub struct Holding(OwnedFd);

impl Holding {
    /// By this path the process finds it as long as it is held.
    pub fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.0.as_raw_fd()))
    }
}

impl Root {
    /// The machine below this folder.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// True when it is this machine's own.
    pub fn is_this_machines(&self) -> bool {
        self.0 == Path::new("/")
    }

    /// Where a file of that name is to be written. Links on the way are not looked at, so nothing is read by it.
    pub fn at(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = path.as_ref();
        self.0.join(path.strip_prefix("/").unwrap_or(path))
    }

    fn open(&self, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
        let folder = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::open(&self.0, folder, Mode::empty())?;
        resolve::open(&root, path, flags)
    }

    /// The file, to be read; `None` when it is not there.
    ///
    /// # Errors
    ///
    /// It is there and is no regular file, or cannot be opened.
    pub fn file(&self, path: impl AsRef<Path>) -> io::Result<Option<fs::File>> {
        let path = path.as_ref();
        let open = || {
            // Looked at before it is opened: to open a device does something to it.
            is_regular(&self.open(path, OFlags::PATH)?)?;
            let file = self.open(path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY)?;
            is_regular(&file)?;
            Ok(fs::File::from(file))
        };
        there(open())
    }

    /// The whole file; `None` when it is not there.
    ///
    /// # Errors
    ///
    /// It is there and cannot be read, or is longer than anything that belongs there.
    pub fn bytes(&self, path: impl AsRef<Path>) -> io::Result<Option<Vec<u8>>> {
        self.file(path)?.map(whole).transpose()
    }

    /// The whole file as text; bytes that are none are replaced.
    ///
    /// # Errors
    ///
    /// As [`Root::bytes`].
    pub fn text(&self, path: impl AsRef<Path>) -> io::Result<Option<String>> {
        let bytes = self.bytes(path)?;
        Ok(bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
    }

    /// It is there, or may not be looked at: what cannot be told of a file that protects a machine counts as there.
    pub fn has(&self, path: impl AsRef<Path>) -> bool {
        let found = self.open(path.as_ref(), OFlags::PATH | OFlags::NOFOLLOW);
        !matches!(found, Err(error) if is_absent(&error))
    }

    /// It is there, and may be looked at.
    pub fn is_seen(&self, path: impl AsRef<Path>) -> bool {
        self.open(path.as_ref(), OFlags::PATH | OFlags::NOFOLLOW).is_ok()
    }

    /// The folder, to be asked about; `None` when no folder is there.
    ///
    /// # Errors
    ///
    /// It may not be looked at.
    pub fn folder(&self, path: impl AsRef<Path>) -> io::Result<Option<OwnedFd>> {
        there(self.open(path.as_ref(), OFlags::PATH | OFlags::DIRECTORY))
    }

    /// What the link says; `None` where there is no link, or it may not be read.
    pub fn link(&self, path: impl AsRef<Path>) -> Option<PathBuf> {
        let link = self.open(path.as_ref(), OFlags::PATH | OFlags::NOFOLLOW).ok()?;
        resolve::link(&link).ok()
    }

    /// What is there of that name, whatever it is, held without being opened: a socket is connected to by its path.
    ///
    /// # Errors
    ///
    /// It is not there, or may not be looked at.
    pub fn hold(&self, path: impl AsRef<Path>) -> io::Result<Holding> {
        self.open(path.as_ref(), OFlags::PATH).map(Holding)
    }

    /// The names in a folder, in order; `None` when it is not there.
    ///
    /// # Errors
    ///
    /// It is there and cannot be listed, or holds more than any folder that is listed here.
    pub fn names(&self, path: impl AsRef<Path>) -> io::Result<Option<Vec<String>>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NONBLOCK;
        let Some(folder) = there(self.open(path.as_ref(), flags))? else { return Ok(None) };
        let mut names = Vec::new();
        for entry in Dir::new(folder)? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if name == "." || name == ".." {
                continue;
            }
            if names.len() == NAMES_MAX {
                return Err(io::Error::other(format!("it holds more than {NAMES_MAX} names")));
            }
            names.push(name);
        }
        names.sort();
        Ok(Some(names))
    }

    /// What the links in a folder say, in no order; those that cannot be read are left out.
    pub fn links(&self, path: impl AsRef<Path>) -> Vec<PathBuf> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NONBLOCK;
        let Ok(folder) = self.open(path.as_ref(), flags) else { return Vec::new() };
        let Ok(entries) = Dir::read_from(&folder) else { return Vec::new() };
        let names = entries.take(NAMES_MAX).filter_map(Result::ok);
        let links = names.filter_map(|entry| readlinkat(&folder, entry.file_name(), Vec::new()).ok());
        links.map(|link| resolve::path(link.into_bytes())).collect()
    }
}

/// A file that a person named, to be read.
///
/// # Errors
///
/// It is not there, is no regular file, or cannot be opened.
pub fn named(path: &Path) -> io::Result<fs::File> {
    let look = || rustix::fs::statat(rustix::fs::CWD, path, AtFlags::empty());
    if FileType::from_raw_mode(look()?.st_mode) != FileType::RegularFile {
        return Err(no_file());
    }
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, Mode::empty())?;
    is_regular(&file)?;
    Ok(file.into())
}

/// All of a file, as text; bytes that are none are replaced.
///
/// # Errors
///
/// It cannot be read, or is longer than anything that is read whole.
pub fn text_of(file: fs::File) -> io::Result<String> {
    whole(file).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

fn whole(file: fs::File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(io::Error::other(format!("it is longer than {FILE_BYTES_MAX} bytes")));
    }
    Ok(bytes)
}

fn is_regular(file: &OwnedFd) -> io::Result<()> {
    match FileType::from_raw_mode(fstat(file)?.st_mode) {
        FileType::RegularFile => Ok(()),
        FileType::Directory => Err(io::ErrorKind::IsADirectory.into()),
        _ => Err(no_file()),
    }
}

fn no_file() -> io::Error {
    io::Error::other("it is no regular file, and nothing else is read")
}

fn there<T>(found: io::Result<T>) -> io::Result<Option<T>> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(error) if is_absent(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The system said that there is nothing of that name.
fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

#[cfg(test)]
mod tests;

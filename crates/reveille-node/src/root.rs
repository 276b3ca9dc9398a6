//! The place of the machine's files: below `/`, or below a folder of a test or of another machine's disk.
//!
//! ```text
//!  path, as it is named on the machine ─▶ resolve: within the root, link by link ─▶ descriptor: file, folder, link, socket
//! ```
//!
//! Every path that is read on the node goes through this module. It follows a link within the root, as on the machine
//! itself (`kubelet-client-current.pem` is one), wherever in the path it occurs. So the author of a disk cannot choose
//! which files of the host are read. It opens only regular files, and waits for nothing: it refuses a pipe and does not
//! touch a device. Reading has a bound, and "it does not exist" differs from "it could not be read".
//!
//! A path that an operator names on the command line is taken as the shell sees it, and is opened by [`named`].

mod resolve;

use std::fs;
use std::io::{self, Read as _};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, fstat, readlinkat};

/// The longest file that is read whole.
const FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// The largest listed directory: more than a machine has processes.
const NAMES_MAX: usize = 250_000;

/// The place of the machine's files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root(PathBuf);

impl Default for Root {
    fn default() -> Self {
        Self(PathBuf::from("/"))
    }
}

/// An open handle of a file, whose path leads to that file and to no other.
#[derive(Debug)]
pub struct Holding(OwnedFd);

impl Holding {
    /// The path by which this process finds the file while the handle is open.
    pub fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.0.as_raw_fd()))
    }
}

impl Root {
    /// The machine whose files are below this folder.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// True when the root is this machine's own.
    pub fn is_this_machines(&self) -> bool {
        self.0 == Path::new("/")
    }

    /// The path at which to write a file of that name. Links in the path are not checked, so this must not be used for
    /// reading.
    pub fn at(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = path.as_ref();
        self.0.join(path.strip_prefix("/").unwrap_or(path))
    }

    fn open(&self, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
        let folder = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::open(&self.0, folder, Mode::empty())?;
        resolve::open(&root, path, flags)
    }

    /// The file, open for reading; `None` when it does not exist.
    ///
    /// # Errors
    ///
    /// The file is not a regular file, or cannot be opened.
    pub fn file(&self, path: impl AsRef<Path>) -> io::Result<Option<fs::File>> {
        let path = path.as_ref();
        let open = || {
            // The type is checked before opening: opening a device has effects.
            is_regular(&self.open(path, OFlags::PATH)?)?;
            let file = self.open(path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY)?;
            is_regular(&file)?;
            Ok(fs::File::from(file))
        };
        there(open())
    }

    /// The whole file; `None` when it does not exist.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or is longer than any expected file.
    pub fn bytes(&self, path: impl AsRef<Path>) -> io::Result<Option<Vec<u8>>> {
        self.file(path)?.map(whole).transpose()
    }

    /// The whole file as text; invalid bytes are replaced.
    ///
    /// # Errors
    ///
    /// As [`Root::bytes`].
    pub fn text(&self, path: impl AsRef<Path>) -> io::Result<Option<String>> {
        let bytes = self.bytes(path)?;
        Ok(bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
    }

    /// True when the file exists, or when the operating system refuses to say: a file that may protect a machine counts
    /// as existing.
    pub fn has(&self, path: impl AsRef<Path>) -> bool {
        let found = self.open(path.as_ref(), OFlags::PATH | OFlags::NOFOLLOW);
        !matches!(found, Err(error) if is_absent(&error))
    }

    /// True when the file exists, and the operating system says so.
    pub fn is_seen(&self, path: impl AsRef<Path>) -> bool {
        self.open(path.as_ref(), OFlags::PATH | OFlags::NOFOLLOW).is_ok()
    }

    /// A handle of the directory; `None` when it does not exist.
    ///
    /// # Errors
    ///
    /// The operating system refuses to say.
    pub fn folder(&self, path: impl AsRef<Path>) -> io::Result<Option<OwnedFd>> {
        there(self.open(path.as_ref(), OFlags::PATH | OFlags::DIRECTORY))
    }

    /// The target of a link; `None` where there is no link, or it cannot be read.
    pub fn link(&self, path: impl AsRef<Path>) -> Option<PathBuf> {
        let link = self.open(path.as_ref(), OFlags::PATH | OFlags::NOFOLLOW).ok()?;
        resolve::link(&link).ok()
    }

    /// A handle of any kind of file, without opening it: a socket is connected to by its path.
    ///
    /// # Errors
    ///
    /// The file does not exist, or the operating system refuses to say.
    pub fn hold(&self, path: impl AsRef<Path>) -> io::Result<Holding> {
        self.open(path.as_ref(), OFlags::PATH).map(Holding)
    }

    /// The names in a directory, sorted; `None` when it does not exist.
    ///
    /// # Errors
    ///
    /// The directory cannot be listed, or has more names than any expected directory.
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

    /// The targets of the links in a directory, unsorted; unreadable links are left out.
    pub fn links(&self, path: impl AsRef<Path>) -> Vec<PathBuf> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NONBLOCK;
        let Ok(folder) = self.open(path.as_ref(), flags) else { return Vec::new() };
        let Ok(entries) = Dir::read_from(&folder) else { return Vec::new() };
        let names = entries.take(NAMES_MAX).filter_map(Result::ok);
        let links = names.filter_map(|entry| readlinkat(&folder, entry.file_name(), Vec::new()).ok());
        links.map(|link| resolve::path(link.into_bytes())).collect()
    }
}

/// A file that an operator named, open for reading.
///
/// # Errors
///
/// The file does not exist, is not a regular file, or cannot be opened.
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

/// The whole file as text; invalid bytes are replaced.
///
/// # Errors
///
/// The file cannot be read, or is longer than the limit.
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

/// True when the error means that the path does not exist.
fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

#[cfg(test)]
mod tests;

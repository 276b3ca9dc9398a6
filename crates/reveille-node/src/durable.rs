//! Files and directories that this program creates: whole, durable, and with explicit modes.
//!
//! A umask removes bits from the mode of a new file and never adds any; its value is that of the process's start. So this
//! module sets the mode after creating a file, on the open file, and before the file takes its name. An existing file
//! keeps its mode.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

/// For the owner only.
const OWN_FILE: u32 = 0o600;
const OWN_FOLDER: u32 = 0o700;

/// The suffix of a file that is being written.
pub(crate) const DRAFT: &str = ".new";

/// Replaces a file durably with one that only its owner can read. Missing directories are created for the owner only.
pub(crate) fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    folders(folder, OWN_FOLDER)?;
    put(path, content, OWN_FILE)?;
    fs::File::open(folder)?.sync_all()
}

/// As [`replace`], for a file that other accounts may read: with this mode, in an existing directory.
pub(crate) fn replace_with_mode(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    put(path, content, mode)?;
    fs::File::open(path.parent().unwrap_or(Path::new("/")))?.sync_all()
}

/// Writes a file that only its owner can read beside its place, and moves it there: an existing link is not followed.
pub(crate) fn put_own(path: &Path, content: &[u8]) -> io::Result<()> {
    put(path, content, OWN_FILE)
}

fn put(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(DRAFT);
    let beside = path.with_file_name(name);
    match fs::remove_file(&beside) {
        Err(failure) if failure.kind() != io::ErrorKind::NotFound => return Err(failure),
        _ => {}
    }
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(OWN_FILE).open(&beside)?;
    let written = file.set_permissions(fs::Permissions::from_mode(mode));
    let written = written.and_then(|()| file.write_all(content)).and_then(|()| file.sync_all());
    let placed = written.and_then(|()| fs::rename(&beside, path));
    if placed.is_err() {
        fs::remove_file(&beside).ok();
    }
    placed
}

/// Creates a directory and its missing parents, each with this mode.
pub(crate) fn folders(path: &Path, mode: u32) -> io::Result<()> {
    if path.as_os_str().is_empty() || path.is_dir() {
        return Ok(());
    }
    if let Some(above) = path.parent() {
        folders(above, mode)?;
    }
    match fs::DirBuilder::new().mode(OWN_FOLDER).create(path) {
        Ok(()) => {}
        // Another process created it in between: it keeps the mode of that process.
        Err(failure) if failure.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => return Ok(()),
        Err(failure) => return Err(failure),
    }
    let flags = rustix::fs::OFlags::RDONLY
        | rustix::fs::OFlags::DIRECTORY
        | rustix::fs::OFlags::NOFOLLOW
        | rustix::fs::OFlags::CLOEXEC;
    match rustix::fs::open(path, flags, rustix::fs::Mode::empty()) {
        Ok(made) => fs::File::from(made).set_permissions(fs::Permissions::from_mode(mode)),
        // The umask removed even the owner's right to read: then no other account can use the directory either.
        Err(rustix::io::Errno::ACCESS) => fs::set_permissions(path, fs::Permissions::from_mode(mode)),
        Err(failure) => Err(failure.into()),
    }
}

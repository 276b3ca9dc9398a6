//! Lists the files below a folder, in order of their names. It does not follow links, because a bundle may hold
//! one that leads anywhere.

use std::fs;
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

/// The most files that are read below one folder.
const FILES_MAX: usize = 100_000;
const DEPTH_MAX: usize = 32;

/// Each file, and the reason where it is not read.
pub(super) fn files(path: &Path) -> io::Result<Vec<(PathBuf, Option<String>)>> {
    let kind = fs::metadata(path)?;
    if !kind.is_dir() {
        return Ok(vec![(path.to_owned(), None)]);
    }
    let mut found = Vec::new();
    walk(path, 0, &mut found)?;
    Ok(found)
}

fn walk(folder: &Path, depth: usize, found: &mut Vec<(PathBuf, Option<String>)>) -> io::Result<()> {
    let mut entries = fs::read_dir(folder)?.collect::<Result<Vec<_>, _>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let (path, kind) = (entry.path(), entry.file_type()?);
        if found.len() >= FILES_MAX {
            found.push((path, Some(format!("more than {FILES_MAX} files: the rest is not read"))));
            return Ok(());
        }
        if kind.is_dir() && depth < DEPTH_MAX {
            if let Err(error) = walk(&path, depth + 1, found) {
                found.push((path, Some(format!("cannot be listed: {error}"))));
            }
        } else if kind.is_dir() {
            found.push((path, Some(format!("deeper than {DEPTH_MAX} folders: not read"))));
        } else if kind.is_file() {
            found.push((path, None));
        } else {
            found.push((path, Some("a link or device: not followed".to_owned())));
        }
    }
    Ok(())
}

/// Opens a file that was found below a folder. Since it was listed, the folder's owner may have put a link or a pipe in its
/// place: a link is not followed, and a pipe is not waited for.
pub(super) fn open(path: &Path) -> io::Result<fs::File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = fs::OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path)?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::other("it is no regular file any more"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_was_exchanged_since_it_was_listed_is_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("a"), "x").unwrap();
        std::os::unix::fs::symlink(at("a"), at("link")).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, at("pipe"), rustix::fs::Mode::RUSR).unwrap();
        fs::create_dir(at("folder")).unwrap();
        assert!(open(&at("a")).is_ok());
        for name in ["link", "pipe", "folder", "missing"] {
            assert!(open(&at(name)).is_err(), "{name}");
        }
    }

    #[test]
    fn files_come_in_order_and_links_are_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("b")).unwrap();
        fs::write(at("b/two.log"), "x").unwrap();
        fs::write(at("a.log"), "x").unwrap();
        std::os::unix::fs::symlink("/etc", at("c")).unwrap();
        let found = files(folder.path()).unwrap();
        let names: Vec<_> = found
            .iter()
            .map(|(path, said)| (path.strip_prefix(folder.path()).unwrap().to_owned(), said.is_some()))
            .collect();
        assert_eq!(names, [("a.log".into(), false), ("b/two.log".into(), false), ("c".into(), true)]);
        assert!(files(&at("missing")).is_err());
    }
}

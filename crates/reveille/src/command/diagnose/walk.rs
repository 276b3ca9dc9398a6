//! Lists the files below a folder, in order of their names. It does not follow links, because a bundle may hold
//! one that leads anywhere.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

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

#[cfg(test)]
mod tests {
    use super::*;

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

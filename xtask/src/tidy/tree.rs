//! The files that tidy looks at: all that belong to the repository, read once.
//!
//! What git ignores is left out, by asking git. Where there is no git (an unpacked archive) every file counts that is not below a
//! build or cache directory. Files that are not UTF-8 hold no prose and are left out, too.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

/// Files by their path from the root, and the directories that hold them.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    pub(crate) files: BTreeMap<String, String>,
    pub(crate) directories: BTreeSet<String>,
}

impl Tree {
    /// Reads the tree at `root`.
    pub(crate) fn read(root: &Path) -> Result<Self> {
        let paths = match listed_by_git(root) {
            Some(paths) => paths,
            None => walked(root)?,
        };
        let mut files = BTreeMap::new();
        for path in paths {
            // Deleted but not yet committed so, a link into nowhere, or bytes: not a text of this tree.
            if let Ok(text) = std::fs::read_to_string(root.join(&path)) {
                files.insert(path, text);
            }
        }
        Ok(Self { directories: directories_of(files.keys()), files })
    }

    /// Whether the path, or a path that ends in it, is there.
    pub(crate) fn has(&self, path: &str) -> bool {
        let path = path.trim_end_matches('/');
        let behind = format!("/{path}");
        let mut all = self.files.keys().chain(&self.directories);
        self.files.contains_key(path)
            || self.directories.contains(path)
            || all.any(|known| known.ends_with(&behind))
    }
}

/// All directories above these files.
pub(crate) fn directories_of<'a>(files: impl Iterator<Item = &'a String>) -> BTreeSet<String> {
    let mut directories = BTreeSet::new();
    for file in files {
        let mut rest = file.as_str();
        while let Some((directory, _)) = rest.rsplit_once('/') {
            directories.insert(directory.to_owned());
            rest = directory;
        }
    }
    directories
}

fn listed_by_git(root: &Path) -> Option<Vec<String>> {
    let output = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .stderr(Stdio::null())
        .output()
        .ok()?;
    let text = output.status.success().then(|| String::from_utf8(output.stdout).ok()).flatten()?;
    Some(text.split('\0').filter(|path| !path.is_empty()).map(ToOwned::to_owned).collect())
}

fn walked(root: &Path) -> Result<Vec<String>> {
    let mut paths = Vec::new();
    let mut waiting = vec![String::new()];
    while let Some(directory) = waiting.pop() {
        let entries =
            std::fs::read_dir(root.join(&directory)).with_context(|| format!("cannot list {directory}"))?;
        for entry in entries {
            let entry = entry.with_context(|| format!("cannot list {directory}"))?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = if directory.is_empty() { name.clone() } else { format!("{directory}/{name}") };
            let kind = entry.file_type().with_context(|| format!("cannot look at {path}"))?;
            if kind.is_dir() && !name.starts_with("target") && name != ".git" && name != "__pycache__" {
                waiting.push(path);
            } else if kind.is_file() {
                paths.push(path);
            }
        }
    }
    Ok(paths)
}

//! The agent uses its folder and a token file only when no other account can change or read them.
//!
//! An account that may write the folder, or that put a link in its place, chooses where the key goes and which plan the
//! agent follows. An account that can read a token may join with it. Like ssh with its keys, the agent refuses such a
//! folder or file and says what to do. The parent directories of the folder count too: an account that can rename a
//! folder can put another one in its place.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::process::{getegid, geteuid};
use thiserror::Error;

use crate::durable::DRAFT;
use crate::root;

/// The agent's folder, without another setting.
pub(crate) const FOLDER: &str = "/var/lib/reveille/agent";
/// The folder of the key and certificate, below the agent's folder.
pub const KEYS: &str = "link";
/// The key and certificate in force.
pub(crate) const LINK_PEM: &str = "link.pem";
/// The key of an enrolment that is under way.
pub(crate) const ENROLLING_PEM: &str = "enrolling.pem";
/// The next key, until it has its certificate.
pub(crate) const RENEWING_PEM: &str = "renewing.pem";
/// The last welcomed key and certificate, until those in force are welcomed.
pub(crate) const WELCOMED_PEM: &str = "welcomed.pem";
/// All files with a valid key. Their content is removed from every bundle.
const KEY_FILES: [&str; 4] = [LINK_PEM, ENROLLING_PEM, RENEWING_PEM, WELCOMED_PEM];
/// The number of files in the folder that are checked; an agent has a dozen there.
const ENTRIES_MAX: usize = 1_000;
const ROOT: u32 = 0;
/// The owner that a container sees for files of unmapped accounts (as a rule of `/`), where the kernel maps no account to
/// this number. Elsewhere it is an account like any other.
const UNMAPPED_ID: u32 = 65_534;
/// Each line: first number inside, first number outside, how many (`user_namespaces(7)`).
const UID_MAP: &str = "/proc/self/uid_map";
const WRITE_BY_OTHERS: u32 = 0o022;
const WRITE_BY_GROUP: u32 = 0o020;
const WRITE_BY_ALL: u32 = 0o002;
const STICKY: u32 = 0o1000;
const ANY_BY_OTHERS: u32 = 0o077;

/// The files in which an agent with this folder keeps keys, with the drafts that a crash during a write left
/// ([`crate::durable`]).
pub(crate) fn key_files(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let keys = folder.join(KEYS);
    KEY_FILES.iter().flat_map(move |name| [keys.join(name), keys.join(format!("{name}{DRAFT}"))])
}

/// A folder that the agent refuses.
#[derive(Debug, Error)]
#[error("{} is no folder for this machine's key: {wrong}", .folder.display())]
pub struct FolderError {
    /// The folder.
    pub folder: PathBuf,
    /// The reason, and what to do.
    pub wrong: Wrong,
}

/// The problem of the folder, of a file in it, or of a directory above it.
#[derive(Debug, Error)]
pub enum Wrong {
    /// The path is a link.
    #[error("{}: it is a link, and what is written would go where it leads; name that place itself, or remove the link", .0.display())]
    Link(PathBuf),
    /// Another account owns the path.
    #[error("{}: it belongs to account {owner}; look at what is in it, then chown {us} it, or name another folder", .at.display())]
    Owner {
        /// The path.
        at: PathBuf,
        /// The owner.
        owner: u32,
        /// The account that has to own it.
        us: u32,
    },
    /// Other accounts may write the path.
    #[error("{}: others may write it (mode {mode:04o}); look at what is in it, then chmod go-w it, or name another folder", .at.display())]
    Open {
        /// The path.
        at: PathBuf,
        /// The mode.
        mode: u32,
    },
    /// The path is not a directory.
    #[error("{}: it is no folder", .0.display())]
    NoFolder(PathBuf),
    /// The folder holds more files than an agent's ever does.
    #[error("{}: it holds more than {ENTRIES_MAX} files; name a folder that is the agent's alone", .0.display())]
    Crowded(PathBuf),
    /// The operating system refuses to say.
    #[error("{} cannot be looked at: {source}", .at.display())]
    Io {
        /// The path.
        at: PathBuf,
        /// The error.
        source: io::Error,
    },
}

/// Checks that only this account may write the folder, where it exists, and the agent's files in it.
///
/// # Errors
///
/// Another account may, and what to do.
pub fn folder(folder: &Path) -> Result<(), FolderError> {
    let us = geteuid().as_raw();
    let checked = std::path::absolute(folder)
        .map_err(|source| Wrong::Io { at: folder.to_owned(), source })
        .and_then(|at| way_to(&at, us).and_then(|()| whole(&at, us)));
    checked.map_err(|wrong| FolderError { folder: folder.to_owned(), wrong })
}

/// A file with only a token, which an operator named.
///
/// # Errors
///
/// The file does not exist or cannot be read; or other accounts may read or write it, or own it.
pub fn token_file(path: &Path) -> io::Result<String> {
    let file = root::named(path)?;
    let found = file.metadata()?;
    let us = geteuid().as_raw();
    let path = path.display();
    if found.uid() != us && found.uid() != ROOT {
        let owner = found.uid();
        return Err(io::Error::other(format!(
            "it belongs to account {owner}, who may read and change it; make another token, in a file of yours with mode 0600"
        )));
    }
    if found.mode() & ANY_BY_OTHERS != 0 {
        let mode = found.mode() & 0o7777;
        return Err(io::Error::other(format!(
            "others may read or write it (mode {mode:04o}); chmod 0600 {path}, and make another token if this machine has other accounts"
        )));
    }
    root::text_of(file)
}

fn look(at: &Path) -> Result<Option<Metadata>, Wrong> {
    match fs::symlink_metadata(at) {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(Wrong::Io { at: at.to_owned(), source }),
    }
}

/// Checks that no other account may put another folder in this one's place.
fn way_to(folder: &Path, us: u32) -> Result<(), Wrong> {
    for at in folder.ancestors().skip(1) {
        let Some(found) = look(at)? else { continue };
        let owner = found.uid();
        if found.is_symlink() {
            // Machines are laid out with links of root; the path of their target is checked like this one.
            if !is_trusted(at, owner, us) {
                return Err(Wrong::Link(at.to_owned()));
            }
            let there = fs::canonicalize(at).map_err(|source| Wrong::Io { at: at.to_owned(), source })?;
            for above in there.ancestors() {
                if let Some(found) = look(above)? {
                    stands(above, &found, us)?;
                }
            }
            continue;
        }
        stands(at, &found, us)?;
    }
    Ok(())
}

fn is_trusted(at: &Path, owner: u32, us: u32) -> bool {
    let map = || fs::read_to_string(UID_MAP).unwrap_or_default();
    let is_top = || at == Path::new("/") && is_unmapped(&map(), UNMAPPED_ID);
    owner == us || owner == ROOT || (owner == UNMAPPED_ID && is_top())
}

/// True when no account of this process's namespace has this number. Without a readable map the answer is false.
fn is_unmapped(map: &str, account: u32) -> bool {
    let covers = |line: &str| {
        let numbers: Vec<u64> = line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        let &[first, _, count] = numbers.as_slice() else { return true };
        (first..first.saturating_add(count)).contains(&u64::from(account))
    };
    !map.trim().is_empty() && !map.lines().any(covers)
}

/// Checks that no other account may exchange a file in this directory.
fn stands(at: &Path, found: &Metadata, us: u32) -> Result<(), Wrong> {
    let (owner, mode) = (found.uid(), found.mode());
    if !is_trusted(at, owner, us) {
        return Err(Wrong::Owner { at: at.to_owned(), owner, us });
    }
    let group_is_ours = [ROOT, getegid().as_raw()].contains(&found.gid());
    let by_others = mode & WRITE_BY_ALL != 0 || (mode & WRITE_BY_GROUP != 0 && !group_is_ours);
    if by_others && mode & STICKY == 0 {
        return Err(Wrong::Open { at: at.to_owned(), mode: mode & 0o7777 });
    }
    Ok(())
}

/// Checks that this account owns the folder and the files in it.
fn whole(folder: &Path, us: u32) -> Result<(), Wrong> {
    for at in [folder.to_owned(), folder.join(KEYS)] {
        let Some(found) = look(&at)? else { continue };
        own(&at, &found, us)?;
        if !found.is_dir() {
            return Err(Wrong::NoFolder(at));
        }
        let failed = |source| Wrong::Io { at: at.clone(), source };
        for (number, entry) in fs::read_dir(&at).map_err(failed)?.enumerate() {
            if number == ENTRIES_MAX {
                return Err(Wrong::Crowded(at));
            }
            let inside = entry.map_err(failed)?.path();
            if let Some(found) = look(&inside)? {
                own(&inside, &found, us)?;
            }
        }
    }
    Ok(())
}

fn own(at: &Path, found: &Metadata, us: u32) -> Result<(), Wrong> {
    let (owner, mode) = (found.uid(), found.mode());
    if found.is_symlink() {
        return Err(Wrong::Link(at.to_owned()));
    }
    if owner != us {
        return Err(Wrong::Owner { at: at.to_owned(), owner, us });
    }
    if mode & WRITE_BY_OTHERS != 0 {
        return Err(Wrong::Open { at: at.to_owned(), mode: mode & 0o7777 });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt as _, chown};

    #[test]
    fn token_readable_or_owned_by_other_account_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        fs::write(&path, "abcdef.0123456789abcdef\n").unwrap();
        let set = |mode| fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        for mode in [0o644, 0o640, 0o604, 0o660, 0o622, 0o666] {
            set(mode);
            let refused = token_file(&path).unwrap_err().to_string();
            assert!(refused.contains("chmod 0600") && refused.contains(&format!("{mode:04o}")), "{refused}");
            assert!(!refused.contains("0123456789abcdef"));
        }
        for mode in [0o600, 0o400] {
            set(mode);
            assert_eq!(token_file(&path).unwrap(), "abcdef.0123456789abcdef\n");
        }
        std::os::unix::fs::symlink(&path, folder.path().join("link")).unwrap();
        assert!(token_file(&folder.path().join("link")).is_ok(), "a link to a file that is ours is one");
        if geteuid().is_root() {
            chown(&path, Some(12_345), None).unwrap();
            assert!(token_file(&path).unwrap_err().to_string().contains("account 12345"));
        }
    }

    #[test]
    fn overflow_uid_is_an_account_unless_kernel_leaves_it_unmapped() {
        for (map, unmapped) in [
            ("         0          0 4294967295\n", false),
            ("0 100000 65536\n", false),
            ("0 100000 65534\n", true),
            ("0 1000 1\n1 100000 1000\n", true),
            ("0 1000 1\n65534 100000 1\n", false),
            ("", false),
            ("0 x 1\n", false),
        ] {
            assert_eq!(is_unmapped(map, UNMAPPED_ID), unmapped, "{map:?}");
        }
    }

    #[test]
    fn folder_below_path_writable_by_other_account_is_refused() {
        let place = tempfile::tempdir().unwrap();
        let way = place.path().join("way");
        fs::create_dir(&way).unwrap();
        let at = way.join("agent");
        let set = |mode| fs::set_permissions(&way, fs::Permissions::from_mode(mode)).unwrap();
        set(0o777);
        assert!(matches!(folder(&at).unwrap_err().wrong, Wrong::Open { mode: 0o777, .. }));
        set(0o1777);
        folder(&at).unwrap();
        set(0o775);
        folder(&at).unwrap();
        if geteuid().is_root() {
            chown(&way, None, Some(12_345)).unwrap();
            assert!(matches!(folder(&at).unwrap_err().wrong, Wrong::Open { mode: 0o775, .. }));
            set(0o755);
            folder(&at).unwrap();
            chown(&way, Some(12_345), None).unwrap();
            assert!(matches!(folder(&at).unwrap_err().wrong, Wrong::Owner { owner: 12_345, .. }));
            let inner = way.join("inner");
            fs::create_dir(&inner).unwrap();
            let link = place.path().join("link");
            std::os::unix::fs::symlink(&inner, &link).unwrap();
            let refused = folder(&link.join("agent")).unwrap_err();
            assert!(matches!(refused.wrong, Wrong::Owner { owner: 12_345, .. }), "behind a link: {refused}");
            chown(&way, Some(UNMAPPED_ID), None).unwrap();
            assert!(matches!(folder(&at).unwrap_err().wrong, Wrong::Owner { owner: UNMAPPED_ID, .. }));
        }
    }

    #[test]
    fn folder_made_by_agent_or_still_missing_is_accepted() {
        let place = tempfile::tempdir().unwrap();
        let at = place.path().join("var/agent");
        folder(&at).unwrap();
        crate::durable::replace(&at.join("link/link.pem"), b"key").unwrap();
        crate::durable::replace(&at.join("memory.json"), b"{}").unwrap();
        crate::durable::replace(&at.join("before-reset/1/etc/kubernetes/kubelet.conf"), b"x").unwrap();
        folder(&at).unwrap();
        fs::write(place.path().join("file"), "").unwrap();
        let refused = folder(&place.path().join("file")).unwrap_err();
        assert!(matches!(refused.wrong, Wrong::NoFolder(_)), "{refused}");
    }
}

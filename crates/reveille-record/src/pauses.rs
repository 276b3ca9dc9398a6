//! Pauses: the standing "hands off" orders of operators, one small file each, beside the ledger and independent of its lock.
//!
//! ```text
//!  reveille pause ─▶ set(): write aside, fsync, rename ─▶ DIR/pauses/NAME.json ─▶ read(): the whole set ─▶ the engine
//! ```
//!
//! They are files, so an operator can set a pause while no controller runs, by a second process while one runs, or with
//! an editor. Reading returns every pause that can be read, and names each file that cannot. The author of an unreadable
//! file wanted something left alone: the reader of the set should hold all repairs until it is corrected.
//!
//! Not here: what a pause stops, and watching the directory. The caller reads the whole directory, as often as it likes.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::disk;
use crate::error::PauseError;

const DIRECTORY: &str = "pauses";
/// A pause is a few hundred bytes, and is read every two seconds.
const PAUSE_MAX_BYTES: u64 = 64 << 10;
const ENDING: &str = ".json";
/// Longest name, so that with its ending and a temporary suffix it fits any file system.
const NAME_BYTES_MAX: usize = 80;

/// One pause.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pause {
    /// What it covers.
    pub scope: PauseScope,
    /// Who set the pause.
    pub by: String,
    /// Why.
    pub reason: String,
    /// When, in milliseconds since the Unix epoch on the clock of the host where it was set.
    pub at_ms: i64,
}

/// What a pause covers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind", content = "name")]
pub enum PauseScope {
    /// Everything.
    Roster,
    /// One pool, by name.
    Pool(String),
    /// One machine, by any of its names.
    Machine(String),
}

/// The name of a pause, which is its file's.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PauseName(String);

impl PauseName {
    /// A name that a person chose.
    pub fn new(name: impl Into<String>) -> Result<Self, PauseError> {
        let name = name.into();
        let fine = (1..=NAME_BYTES_MAX).contains(&name.len())
            && !name.starts_with('.')
            && name.bytes().all(|byte| is_plain(byte) || byte == b'%');
        if fine { Ok(Self(name)) } else { Err(PauseError::Name { name }) }
    }

    /// The default name of a pause with this scope. The same scope gives the same name, so pausing twice changes one
    /// file, and resuming finds it.
    pub fn of(scope: &PauseScope) -> Self {
        let (kind, name) = match scope {
            PauseScope::Roster => return Self("roster".into()),
            PauseScope::Pool(name) => ("pool-", name),
            PauseScope::Machine(name) => ("machine-", name),
        };
        let mut text = String::from(kind);
        for byte in name.bytes() {
            if is_plain(byte) { text.push(char::from(byte)) } else { text.push_str(&format!("%{byte:02X}")) }
        }
        if text.len() > NAME_BYTES_MAX {
            // The checksum keeps two long names with the same beginning apart.
            let sum = format!("%{:08x}", crc32fast::hash(name.as_bytes()));
            text.truncate(NAME_BYTES_MAX - sum.len());
            text.push_str(&sum);
        }
        Self(text)
    }
}

impl fmt::Display for PauseName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

const fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-')
}

/// All pauses of a state directory.
#[derive(Debug, Default)]
pub struct PausesRead {
    /// The pauses that can be read.
    pub pauses: BTreeMap<PauseName, Pause>,
    /// Why the others cannot be read, one error for each file.
    pub unreadable: Vec<PauseError>,
}

/// The pauses of one state directory.
#[derive(Clone, Debug)]
pub struct Pauses {
    directory: PathBuf,
}

impl Pauses {
    /// The pauses in `state/pauses`. The call does not touch the disk yet.
    pub fn of(state: &Path) -> Self {
        Self { directory: state.join(DIRECTORY) }
    }

    fn file(&self, name: &PauseName) -> PathBuf {
        self.directory.join(format!("{name}{ENDING}"))
    }

    /// Sets a pause, durably, and replaces one of the same name. Readers see the old one or the new one, nothing in between.
    pub fn set(&self, name: &PauseName, pause: &Pause) -> Result<(), PauseError> {
        let file = self.file(name);
        let refused = |doing, source| PauseError::Io { doing, file: file.clone(), source };
        let mut text = serde_json::to_vec_pretty(pause)
            .map_err(|source| refused("write the pause", io::Error::other(source)))?;
        text.push(b'\n');
        disk::make_directory(&self.directory).map_err(|source| refused("make the directory of", source))?;
        let aside = self.directory.join(format!(".{name}.{}", std::process::id()));
        write_durably(&aside, &text)
            .and_then(|()| std::fs::rename(&aside, &file))
            .and_then(|()| disk::sync_directory(&self.directory))
            .map_err(|source| {
                // After a successful rename there is nothing left to remove.
                let _ = std::fs::remove_file(&aside);
                refused("write the pause", source)
            })
    }

    /// Removes a pause, durably; false when there was none.
    pub fn remove(&self, name: &PauseName) -> Result<bool, PauseError> {
        let file = self.file(name);
        let removed = match std::fs::remove_file(&file) {
            Ok(()) => disk::sync_directory(&self.directory).map(|()| true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        };
        removed.map_err(|source| PauseError::Io { doing: "remove the pause", file, source })
    }

    /// Reads them all. Only a directory that cannot be listed is an error; a missing one holds no pauses.
    pub fn read(&self) -> Result<PausesRead, PauseError> {
        let refused =
            |source| PauseError::Io { doing: "list the pauses in", file: self.directory.clone(), source };
        let mut found = PausesRead::default();
        let entries = match std::fs::read_dir(&self.directory) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(found),
            Err(error) => return Err(refused(error)),
        };
        let mut names = Vec::new();
        for entry in entries {
            names.push(entry.map_err(refused)?.file_name().to_string_lossy().into_owned());
        }
        names.sort_unstable();
        for file_name in names {
            // A file with a leading dot is a write under way, or its leftover; a file with another ending is no pause.
            let Some(name) = file_name.strip_suffix(ENDING).filter(|name| !name.starts_with('.')) else {
                continue;
            };
            match self.read_one(name, &file_name) {
                Ok(Some((name, pause))) => drop(found.pauses.insert(name, pause)),
                Ok(None) => {}
                Err(error) => found.unreadable.push(error),
            }
        }
        Ok(found)
    }

    fn read_one(&self, name: &str, file_name: &str) -> Result<Option<(PauseName, Pause)>, PauseError> {
        let name = PauseName::new(name)?;
        let file = self.directory.join(file_name);
        let text = match disk::read_bounded(&file, PAUSE_MAX_BYTES) {
            Ok(text) => text,
            // The file was removed since the directory was listed.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(PauseError::Io { doing: "read the pause", file, source }),
        };
        let pause = serde_json::from_slice(&text).map_err(|source| PauseError::Malformed { file, source })?;
        Ok(Some((name, pause)))
    }
}

fn write_durably(path: &Path, text: &[u8]) -> io::Result<()> {
    // Pauses hold no secrets, and another account may need to see why no repair happens.
    let mut open = OpenOptions::new();
    open.write(true).create(true).truncate(true).mode(0o644).custom_flags(disk::NO_LINK);
    let mut file = open.open(path)?;
    file.write_all(text)?;
    file.sync_all()
}

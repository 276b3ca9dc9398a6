//! The lock of the ledger: one file, locked as long as its holder lives. It names the holder, its start
//! and when it was last alive.
//!
//! ```text
//!  {"alive_ms":       1763712000000,"fence":7,"command":"reveille run …","host":"a","pid":4711,"started_ms":1763700000000}
//!              └ rewritten in place by every heartbeat; always 20 characters wide
//! ```
//!
//! Only the kernel's lock decides. It ends with the process, so a file of a dead process locks no other process out. The
//! content is for operators and for the next holder, which learns how long no process held the ledger. The content is not
//! fsynced: a power cut may lose the last heartbeats, which makes the time without a holder look longer, never shorter.
//!
//! A deleted or replaced lock file would let a second process in. The holder checks for that before each write
//! ([`Lock::still_ours`]) and stops.
//!
//! Not here: leases between hosts. The directory is on a local disk; otherwise another lock service has to decide.

use std::fmt;
use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::disk;
use crate::line::Fence;

/// Name of the ledger's directory within a state directory.
pub(crate) const DIRECTORY: &str = "ledger";
/// Name of the lock file in it.
pub(crate) const LOCK: &str = "lock";

/// A process that opens the ledger, in words that help an operator to find it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// What it was started as; must hold no secrets.
    pub command: String,
    /// On which host.
    pub host: String,
    /// Its process id there.
    pub pid: u32,
    /// When it opened the ledger, milliseconds since the Unix epoch on its own clock.
    pub started_ms: i64,
}

impl Holder {
    /// This process on this host.
    pub fn this_process(command: impl Into<String>, now_ms: i64) -> Self {
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        Self { command: command.into(), host, pid: std::process::id(), started_ms: now_ms }
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\" (process {} on {})", self.command, self.pid, self.host)
    }
}

/// What a lock file says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Card {
    /// The last heartbeat, of this holder or one before; [`NO_HEARTBEAT`] where none is known.
    alive_ms: i64,
    pub(crate) fence: Fence,
    #[serde(flatten)]
    pub(crate) holder: Holder,
}

/// Stands in a card for a heartbeat that is not known. An older program reads a time in 1970, after which the gap is long, too.
const NO_HEARTBEAT: i64 = 0;

impl Card {
    /// When a holder of the ledger was last alive, where that is known.
    pub(crate) fn last_alive_ms(&self) -> Option<i64> {
        Some(self.alive_ms).filter(|alive_ms| *alive_ms != NO_HEARTBEAT)
    }
}

/// Width of the rewritten number: any `i64` fits.
const ALIVE_WIDTH: usize = 20;
const ALIVE_OFFSET: u64 = "{\"alive_ms\":".len() as u64;

/// The lock, held. A drop releases it.
#[derive(Debug)]
pub(crate) struct Lock {
    path: PathBuf,
    file: File,
}

/// Why the lock was not taken.
#[derive(Debug)]
pub(crate) enum Refused {
    /// Another process holds the lock; the card names it, where the card can be read.
    Held(Option<Card>),
    /// The file could not be opened or locked.
    Io(io::Error),
}

impl Lock {
    /// Takes the lock at once or fails; returns the card that the last holder left in the file.
    pub(crate) fn take(path: &Path) -> Result<(Self, Option<Card>), Refused> {
        let mut open = OpenOptions::new();
        open.read(true).write(true).create(true).truncate(false).mode(0o600).custom_flags(disk::NO_LINK);
        let file = open.open(path).map_err(Refused::Io)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(Refused::Held(read_card(path))),
            Err(TryLockError::Error(error)) => return Err(Refused::Io(error)),
        }
        let lock = Self { path: path.to_owned(), file };
        // Between our open and our lock, another process may have replaced the former holder's file.
        if !lock.still_ours().map_err(Refused::Io)? {
            return Err(Refused::Held(read_card(path)));
        }
        let card = read_card(path);
        Ok((lock, card))
    }

    /// Writes the card of the new holder. When a holder was last alive stays what it was until the first heartbeat: a start that
    /// ends before that (a mistake in a configuration, again and again) has looked at nothing, and a gap of hours would seem to
    /// be one of a minute. So without an earlier card (the file was removed, or the directory was restored without it) it is not
    /// known, until the first heartbeat.
    ///
    /// The file is cut to its length behind the write: a process or a host that ends between the two leaves no empty card.
    pub(crate) fn sign(&self, holder: &Holder, fence: Fence, before: Option<&Card>) -> io::Result<()> {
        let alive_ms = before.map_or(NO_HEARTBEAT, |card| card.alive_ms);
        let card = Card { alive_ms, fence, holder: holder.clone() };
        let json = serde_json::to_string(&card)?;
        let narrow = format!("{{\"alive_ms\":{}", card.alive_ms);
        let rest = json.strip_prefix(&narrow).unwrap_or(&json);
        let text = format!("{{\"alive_ms\":{:>ALIVE_WIDTH$}{rest}\n", card.alive_ms);
        self.file.write_all_at(text.as_bytes(), 0)?;
        self.file.set_len(text.len() as u64)
    }

    /// Writes that the holder is alive: twenty bytes in place, no fsync.
    pub(crate) fn beat(&self, now_ms: i64) -> io::Result<()> {
        self.file.write_all_at(format!("{now_ms:>ALIVE_WIDTH$}").as_bytes(), ALIVE_OFFSET)
    }

    /// Whether the file that this process holds is still the one at the path.
    pub(crate) fn still_ours(&self) -> io::Result<bool> {
        let ours = self.file.metadata()?;
        match std::fs::metadata(&self.path) {
            Ok(found) => Ok((found.dev(), found.ino()) == (ours.dev(), ours.ino())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// Why the fence in a lock file is not known.
#[derive(Debug, Error)]
pub enum FenceUnread {
    /// There is no lock file: it was deleted under its holder.
    #[error("the lock file {} is gone", path.display())]
    Gone {
        /// The lock file.
        path: PathBuf,
    },
    /// The lock file could not be read, or holds no fence. This does not tell which process holds the ledger.
    #[error("cannot read the lock file {}", path.display())]
    Unreadable {
        /// The lock file.
        path: PathBuf,
        /// What the system or the decoder said.
        source: io::Error,
    },
}

/// The fence in the lock file of a state directory, read now.
pub fn read_fence(state: &Path) -> Result<Fence, FenceUnread> {
    #[derive(Deserialize)]
    struct Signed {
        fence: Fence,
    }
    let path = state.join(DIRECTORY).join(LOCK);
    let bytes = match disk::read_regular(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(FenceUnread::Gone { path }),
        Err(source) => return Err(FenceUnread::Unreadable { path, source }),
    };
    match first_value::<Signed>(&bytes) {
        Ok(signed) => Ok(signed.fence),
        // The holder is writing its card at this moment, or the file was damaged: the caller reads it again.
        Err(error) => Err(FenceUnread::Unreadable { path, source: error.into() }),
    }
}

/// The card in the lock file at `path`; `None` when the file is missing, empty or half written.
pub(crate) fn read_card(path: &Path) -> Option<Card> {
    first_value(&disk::read_regular(path).ok()?).ok()
}

/// A holder that ended before the file was cut to its card left the end of a longer one behind it.
fn first_value<T: DeserializeOwned>(bytes: &[u8]) -> serde_json::Result<T> {
    T::deserialize(&mut serde_json::Deserializer::from_slice(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holder(command: &str) -> Holder {
        Holder { command: command.into(), host: "a".into(), pid: 7, started_ms: 1_000 }
    }

    #[test]
    fn lock_has_one_holder_and_next_learns_last_alive_time() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lock");
        let (lock, before) = Lock::take(&path).unwrap();
        assert_eq!(before, None);
        lock.sign(&holder("first"), Fence(3), None).unwrap();
        for now_ms in [i64::MIN, 0, 2_000] {
            lock.beat(now_ms).unwrap();
            let card = Card { alive_ms: now_ms, fence: Fence(3), holder: holder("first") };
            match Lock::take(&path) {
                Err(Refused::Held(found)) => assert_eq!(found, Some(card)),
                other => panic!("a second holder came in: {other:?}"),
            }
        }
        drop(lock);
        let (_next, before) = Lock::take(&path).unwrap();
        assert_eq!(before.and_then(|card| card.last_alive_ms()), Some(2_000));
    }

    #[test]
    fn a_deleted_or_replaced_lock_file_is_noticed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lock");
        let (lock, _) = Lock::take(&path).unwrap();
        assert!(lock.still_ours().unwrap());
        std::fs::remove_file(&path).unwrap();
        assert!(!lock.still_ours().unwrap());
        std::fs::write(&path, "{}").unwrap();
        assert!(!lock.still_ours().unwrap());
    }

    #[test]
    fn unreadable_lock_file_is_no_other_fence() {
        let state = tempfile::tempdir().unwrap();
        assert!(matches!(read_fence(state.path()), Err(FenceUnread::Gone { .. })));
        let path = state.path().join("ledger/lock");
        std::fs::create_dir_all(&path).unwrap();
        assert!(matches!(read_fence(state.path()), Err(FenceUnread::Unreadable { .. })));
        std::fs::remove_dir(&path).unwrap();
        let (lock, _) = Lock::take(&path).unwrap();
        assert!(matches!(read_fence(state.path()), Err(FenceUnread::Unreadable { .. })), "not signed yet");
        lock.sign(&holder("first"), Fence(3), None).unwrap();
        assert_eq!(read_fence(state.path()).unwrap(), Fence(3));
    }

    #[test]
    fn free_lock_with_unreadable_content_can_be_taken() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lock");
        std::fs::write(&path, "{\"alive_ms\": 17637").unwrap();
        let (_lock, before) = Lock::take(&path).unwrap();
        assert_eq!(before, None);
    }

    /// A start ends between the two writes of its card: the command of the one before was longer.
    #[test]
    fn card_that_is_not_cut_yet_keeps_the_last_heartbeat() {
        let directory = tempfile::tempdir().unwrap();
        let (path, other) = (directory.path().join("lock"), directory.path().join("other"));
        let (lock, _) = Lock::take(&path).unwrap();
        lock.sign(&holder("reveille run --roster /etc/reveille/prod.yaml"), Fence(3), None).unwrap();
        lock.beat(2_000).unwrap();
        drop(lock);
        let (lock, before) = Lock::take(&path).unwrap();
        let (whole, _) = Lock::take(&other).unwrap();
        whole.sign(&holder("reveille run"), Fence(4), before.as_ref()).unwrap();
        // What `sign` writes before it sets the length.
        lock.file.write_all_at(&std::fs::read(&other).unwrap(), 0).unwrap();
        drop(lock);
        let (_next, before) = Lock::take(&path).unwrap();
        assert_eq!(before.and_then(|card| card.last_alive_ms()), Some(2_000));
    }
}

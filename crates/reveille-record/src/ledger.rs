//! The ledger for its only writer: open, append, sync, rotate, heartbeat.
//!
//! ```text
//!  open: lock ─▶ load and repair ─▶ decode ─▶ write the opening (a new fence, durable) ─▶ sign the lock ─▶ Opened
//! ```
//!
//! A start restores its state from the newest segment alone: its checkpoint and the records after it. Older segments are
//! history for operators; an opening reports damage there and continues. The opening line holds the fence, so a copy of
//! the ledger has its fences too.
//!
//! All calls block, so the caller makes them from a thread that may wait for a disk. The caller also groups commits: it
//! appends the records that have gathered, and syncs once.

use std::io;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::config::Config;
use crate::disk::{self, RealDisk};
use crate::error::{AppendError, Damage, HeartbeatError, OpenError, RotateError, SyncError};
use crate::line::{Fence, Seq};
use crate::lock::{Card, DIRECTORY, Holder, LOCK, Lock, Refused};
use crate::repair::Repair;
use crate::segment::{Found, SegmentNumber};
use crate::store::{LoadError, Loaded, Store};

/// The ledger, held by this process until dropped.
pub struct Ledger<T> {
    store: Store,
    lock: Lock,
    lock_path: PathBuf,
    fence: Fence,
    records: PhantomData<fn(&T)>,
}

/// A ledger that was opened, and the state that it restored.
#[derive(Debug)]
pub struct Opened<T> {
    /// The handle to write to.
    pub ledger: Ledger<T>,
    /// What to restore from, oldest first: the last checkpoint and all that followed it.
    pub records: Vec<T>,
    /// The number of this opening.
    pub fence: Fence,
    /// When the previous holder was last alive, in milliseconds since the epoch on its clock. It is `None` for a new
    /// ledger, when the lock file was removed or emptied, and after that until a holder has written a heartbeat.
    pub last_alive_ms: Option<i64>,
    /// What the opening repaired or noticed, for the log.
    pub repairs: Vec<Repair>,
}

/// A rotation that succeeded.
#[derive(Debug)]
pub struct Rotated {
    /// The new segment.
    pub segment: SegmentNumber,
    /// Old segments could not be removed; the next rotation tries again.
    pub not_removed: Option<io::Error>,
}

impl<T: Serialize + DeserializeOwned> Ledger<T> {
    /// Locks the ledger in `state/ledger`, creates it if it does not exist, and reads its records.
    pub fn open(state: &Path, holder: &Holder, config: Config) -> Result<Opened<T>, OpenError> {
        let directory = state.join(DIRECTORY);
        let refused = |doing, source| OpenError::Io { doing, directory: directory.clone(), source };
        disk::make_directory(&directory).map_err(|source| refused("create the directory", source))?;
        let lock_path = directory.join(LOCK);
        let (lock, before) = Lock::take(&lock_path).map_err(|why| match why {
            Refused::Held(card) => {
                OpenError::Held { directory: directory.clone(), holder: card.map(|card| card.holder) }
            }
            Refused::Io(source) => refused("lock the file \"lock\"", source),
        })?;
        let known = before.as_ref().map_or(Fence(0), |card: &Card| card.fence);
        let disk =
            RealDisk::open(directory.clone()).map_err(|source| refused("open the directory", source))?;
        let disk = Box::new(disk);
        let loaded = Store::load(disk, config, known).map_err(|error| match error {
            LoadError::Damaged(segment, flaw) => OpenError::Damaged(Damage {
                file: directory.join(segment.file_name()),
                line: flaw.line,
                what: flaw.what.into(),
            }),
            LoadError::Io(doing, source) => refused(doing, source),
        })?;
        let Loaded { mut store, segment, bytes, records, repairs } = loaded;
        let file = directory.join(segment.file_name());
        let records = decode_all(&bytes, &records).map_err(|(line, source)| OpenError::NotUnderstood {
            file,
            line,
            source,
        })?;
        let fence = store.open_for(holder).map_err(|error| refused("write the opening", error))?;
        lock.sign(holder, fence, before.as_ref())
            .map_err(|source| refused("sign the file \"lock\"", source))?;
        let last_alive_ms = before.and_then(|card| card.last_alive_ms());
        let ledger = Self { store, lock, lock_path, fence, records: PhantomData };
        Ok(Opened { ledger, records, fence, last_alive_ms, repairs })
    }

    /// Takes one record. The caller must not rely on it before [`Ledger::sync`] returned.
    pub fn append(&mut self, record: &T) -> Result<Seq, AppendError> {
        let payload = serde_json::to_vec(record).map_err(AppendError::NotJson)?;
        self.store.append(&payload)
    }

    /// Makes all appended records durable, or none of them; returns the number of the last durable line.
    pub fn sync(&mut self) -> Result<Seq, SyncError> {
        self.check_lock()?;
        self.store.sync()
    }

    /// True when [`Ledger::rotate`] should be called soon.
    pub const fn rotation_due(&self) -> bool {
        self.store.rotation_due()
    }

    /// Begins a new segment. `checkpoint` must hold all that a start needs, because a start does not read older records.
    /// Appended records become durable first. After an error, the current segment goes on, unless the error says otherwise.
    pub fn rotate<'a>(&mut self, checkpoint: impl IntoIterator<Item = &'a T>) -> Result<Rotated, RotateError>
    where
        T: 'a,
    {
        self.check_lock()?;
        let payloads =
            checkpoint.into_iter().map(|record| serde_json::to_vec(record).map_err(AppendError::NotJson));
        let (segment, not_removed) = self.store.rotate(payloads)?;
        Ok(Rotated { segment, not_removed })
    }

    /// Writes that this process is alive at `now_ms`. The call is cheap; the caller makes it every few seconds.
    pub fn heartbeat(&self, now_ms: i64) -> Result<(), HeartbeatError> {
        let refused = |source| HeartbeatError::Io { lock: self.lock_path.clone(), source };
        if !self.lock.still_ours().map_err(refused)? {
            return Err(HeartbeatError::LockLost { lock: self.lock_path.clone() });
        }
        self.lock.beat(now_ms).map_err(refused)
    }

    /// The number of this opening.
    pub const fn fence(&self) -> Fence {
        self.fence
    }

    fn check_lock(&mut self) -> Result<(), SyncError> {
        // A failed check does not prove that the lock is lost, and a disk that fails will refuse the write itself.
        if self.lock.still_ours().unwrap_or(true) {
            return Ok(());
        }
        let not_kept = self.store.give_up();
        Err(SyncError::LockLost { not_kept, lock: self.lock_path.clone() })
    }
}

impl<T> std::fmt::Debug for Ledger<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ledger")
            .field("lock", &self.lock_path)
            .field("fence", &self.fence)
            .finish_non_exhaustive()
    }
}

/// Decodes records in order; the error names the line.
pub(crate) fn decode_all<T: DeserializeOwned>(
    bytes: &[u8],
    found: &[Found],
) -> Result<Vec<T>, (usize, serde_json::Error)> {
    found.iter().map(|found| decode(bytes, found)).collect()
}

/// Decodes one record; the error names the line.
pub(crate) fn decode<T: DeserializeOwned>(
    bytes: &[u8],
    found: &Found,
) -> Result<T, (usize, serde_json::Error)> {
    let payload = bytes.get(found.payload.clone()).unwrap_or_default();
    serde_json::from_slice(payload).map_err(|error| (found.line, error))
}

//! Reads a ledger without holding its lock: for commands that only read, and for operators who look into damage.
//!
//! ```text
//!  read_only   the newest segment: what its holder would restore from now; a tail still being written is left out
//!  history     every kept record, once each, oldest first: checkpoints repeat records, so only the first one counts
//!  read_lossy  every line of every segment that passes its checksum, and every place that does not
//! ```
//!
//! A reader writes nothing and locks nothing, so a holder may append, rotate and prune meanwhile. If a file vanishes
//! under the reader, the reader looks for it in a new listing.

use std::io;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;

use crate::directory;
use crate::disk::{Disk, RealDisk};
use crate::error::{Damage, ReadError};
use crate::ledger::{decode, decode_all};
use crate::line::Seq;
use crate::lock::{self, DIRECTORY, Holder, LOCK};
use crate::segment::{self, Ending, Flaw, SegmentNumber};

/// The current content of the ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading<T> {
    /// The last checkpoint and all that followed it, oldest first. Empty where there is no ledger.
    pub records: Vec<T>,
    /// The process that holds the ledger, or held it last.
    pub holder: Option<Holder>,
    /// When that process, or one before, was last alive, milliseconds since the epoch on its clock; `None` where that is not
    /// known.
    pub alive_ms: Option<i64>,
    /// Bytes at the end that are no whole lines: a write under way, or what a crash left.
    pub unfinished_bytes: u64,
}

/// All records that the directory still has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct History<T> {
    /// Every record once, oldest first; the checkpoint of the oldest segment replaces the records before it.
    pub records: Vec<(Seq, T)>,
    /// Places that could not be read.
    pub damage: Vec<Damage>,
}

/// All that can still be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LossyReading<T> {
    /// Records of all segments in order, checkpoints too.
    pub records: Vec<(SegmentNumber, Seq, T)>,
    /// Places that could not be read.
    pub damage: Vec<Damage>,
}

/// How often the reader repeats a listing because a file of it was pruned before it was read.
const LISTINGS: usize = 5;

/// The process that holds the ledger, or held it last, and when a holder was last alive, in milliseconds since the epoch on its
/// clock, where that is known.
pub fn holder(state: &Path) -> Option<(Holder, Option<i64>)> {
    let card = lock::read_card(&Place::of(state).directory.join(LOCK))?;
    let last_alive_ms = card.last_alive_ms();
    Some((card.holder, last_alive_ms))
}

/// Reads what the holder would restore from, without the lock.
pub fn read_only<T: DeserializeOwned>(state: &Path) -> Result<Reading<T>, ReadError> {
    let place = Place::of(state);
    let (holder, alive_ms) = holder(state).unzip();
    let alive_ms = alive_ms.flatten();
    let mut reading = Reading { records: Vec::new(), holder, alive_ms, unfinished_bytes: 0 };
    let Some((number, bytes)) = place.newest()? else {
        return Ok(reading);
    };
    let examined = segment::examine(&bytes).map_err(|flaw| ReadError::Damaged(place.damage(number, flaw)))?;
    reading.records = decode_all(&bytes, &examined.records)
        .map_err(|(line, source)| ReadError::NotUnderstood { file: place.file(number), line, source })?;
    if examined.ending == Ending::Torn {
        reading.unfinished_bytes = bytes.len() as u64 - examined.good_bytes;
    }
    Ok(reading)
}

/// Reads every kept record once.
pub fn history<T: DeserializeOwned>(state: &Path) -> Result<History<T>, ReadError> {
    let place = Place::of(state);
    let mut history = History { records: Vec::new(), damage: Vec::new() };
    for (index, (number, bytes)) in place.all()?.into_iter().enumerate() {
        let (found, restated) = match segment::examine(&bytes) {
            Ok(examined) => (examined.records, examined.header.checkpoint),
            Err(flaw) => {
                history.damage.push(place.damage(number, flaw));
                continue;
            }
        };
        let restated = if index == 0 { 0 } else { usize::try_from(restated).unwrap_or(usize::MAX) };
        for found in found.iter().skip(restated) {
            match decode(&bytes, found) {
                Ok(record) => history.records.push((found.number, record)),
                Err((line, error)) => history.damage.push(place.not_understood(number, line, &error)),
            }
        }
    }
    Ok(history)
}

/// Reads all whole lines, whatever lies between them.
pub fn read_lossy<T: DeserializeOwned>(state: &Path) -> Result<LossyReading<T>, ReadError> {
    let place = Place::of(state);
    let mut reading = LossyReading { records: Vec::new(), damage: Vec::new() };
    for (number, bytes) in place.all()? {
        let (found, flaws) = segment::salvage(&bytes);
        reading.damage.extend(flaws.into_iter().map(|flaw| place.damage(number, flaw)));
        for found in found {
            match decode(&bytes, &found) {
                Ok(record) => reading.records.push((number, found.number, record)),
                Err((line, error)) => reading.damage.push(place.not_understood(number, line, &error)),
            }
        }
    }
    Ok(reading)
}

struct Place {
    directory: PathBuf,
    disk: RealDisk,
}

impl Place {
    fn of(state: &Path) -> Self {
        let directory = state.join(DIRECTORY);
        Self { disk: RealDisk::at(directory.clone()), directory }
    }

    fn file(&self, number: SegmentNumber) -> PathBuf {
        self.directory.join(number.file_name())
    }

    fn damage(&self, number: SegmentNumber, flaw: Flaw) -> Damage {
        Damage { file: self.file(number), line: flaw.line, what: flaw.what.into() }
    }

    fn not_understood(&self, number: SegmentNumber, line: usize, error: &serde_json::Error) -> Damage {
        let what = format!("the record is whole, but not one that this version understands: {error}");
        Damage { file: self.file(number), line, what }
    }

    fn newest(&self) -> Result<Option<(SegmentNumber, Vec<u8>)>, ReadError> {
        self.stable(|numbers| {
            let Some(number) = numbers.last() else { return Ok(None) };
            Ok(Some((*number, self.disk.read(&number.file_name())?)))
        })
    }

    fn all(&self) -> Result<Vec<(SegmentNumber, Vec<u8>)>, ReadError> {
        self.stable(|numbers| {
            numbers.iter().map(|number| Ok((*number, self.disk.read(&number.file_name())?))).collect()
        })
    }

    /// Runs `read` over a listing until no file of it vanishes meanwhile.
    fn stable<R>(&self, read: impl Fn(&[SegmentNumber]) -> io::Result<R>) -> Result<R, ReadError> {
        let refused = |source| ReadError::Io { directory: self.directory.clone(), source };
        let mut tries = 1;
        loop {
            let numbers: Vec<SegmentNumber> = match directory::list(&self.disk) {
                Ok(listing) => listing.segments.into_iter().collect(),
                Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
                Err(error) => return Err(refused(error)),
            };
            match read(&numbers) {
                Err(error) if error.kind() == io::ErrorKind::NotFound && tries < LISTINGS => tries += 1,
                other => return other.map_err(refused),
            }
        }
    }
}

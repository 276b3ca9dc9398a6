//! The writing half of the ledger, over any [`Disk`]: load and repair, append, sync, rotate. It handles lines and does
//! not decode records.
//!
//! ```text
//!  load: list ─▶ examine the newest segment ─▶ copy its whole lines to a new file ─▶ check the older ones ─▶ Loaded
//!  append ─▶ buffer ─▶ sync ─▶ durable           sync failed ─▶ cut back, sync the cut ─▶ usable │ broken
//!  rotate: sync ─▶ header + checkpoint into a new segment ─▶ it counts ─▶ old ones leave
//! ```
//!
//! The numbers in [`Store`] change only after the disk confirmed; `durable` is the confirmed state and the buffer the only
//! other state. The store either takes a failed write back completely or closes, so it never writes to a half-known state.
//!
//! When an fsync fails for another reason than space, the kernel does not tell which pages are on the disk, and a second
//! fsync does not report the error again. So the store closes. It goes on only after a full disk, a quota or a size limit.
//!
//! The next opening cannot find out either: Linux marks the pages of a failed fsync clean. A read finds them in the page
//! cache, and a later fsync succeeds without writing them. A power cut shows that they are not on the disk (PostgreSQL
//! wiki, "Fsync Errors"). So an opening writes the newest segment into a new file, makes that durable and gives it the
//! segment's name. This costs one write of at most a segment, and the store never appends behind bytes that are in doubt.

use std::io;
use std::ops::Range;

use crate::config::Config;
use crate::directory::{self, NotCreated};
use crate::disk::{Disk, Tail};
use crate::error::{AppendError, RotateError, SyncError};
use crate::line::{self, Fence, Kind, Line, Seq};
use crate::lock::Holder;
use crate::repair::Repair;
use crate::segment::{self, Ending, Examined, FORMAT, Flaw, Found, Opening, SegmentNumber};

/// The position of the next line, and the durable state so far.
pub(crate) struct Store {
    disk: Box<dyn Disk>,
    config: Config,
    segment: SegmentNumber,
    tail: Box<dyn Tail>,
    /// The number behind the last durable line.
    durable: Seq,
    /// Bytes of the segment up to the last durable line.
    durable_bytes: u64,
    /// How many of them are header and checkpoint.
    checkpoint_bytes: u64,
    /// Lines that wait for `sync`.
    buffer: Vec<u8>,
    /// The number behind the last line that waits.
    next: Seq,
    /// The highest fence handed out.
    fence: Fence,
    closed: bool,
}

/// A store that was loaded, and its content.
pub(crate) struct Loaded {
    pub(crate) store: Store,
    pub(crate) segment: SegmentNumber,
    /// The newest segment's bytes, which `records` point into.
    pub(crate) bytes: Vec<u8>,
    pub(crate) records: Vec<Found>,
    pub(crate) repairs: Vec<Repair>,
}

/// Why nothing was loaded.
#[derive(Debug)]
pub(crate) enum LoadError {
    Damaged(SegmentNumber, Flaw),
    Io(&'static str, io::Error),
}

fn failed(doing: &'static str) -> impl FnOnce(io::Error) -> LoadError {
    move |source| LoadError::Io(doing, source)
}

impl Store {
    /// Reads the segments, repairs what a crash left, and begins a first segment where there is none. Later fences are
    /// higher than `known`, whatever the files say.
    pub(crate) fn load(mut disk: Box<dyn Disk>, config: Config, known: Fence) -> Result<Loaded, LoadError> {
        let listing = directory::list(&*disk).map_err(failed("list the segments"))?;
        // The previous process may have died after it renamed a segment and before it made the name durable. The store
        // must not write to a file whose name can still vanish. The content becomes durable with the opening.
        disk.sync_names().map_err(failed("make the names of the segments durable"))?;
        let mut repairs = Vec::new();
        for file in listing.unfinished {
            disk.remove(&file).map_err(failed("remove an unfinished segment"))?;
            repairs.push(Repair::UnfinishedRotation { file });
        }
        let Some(newest) = listing.segments.last().copied() else {
            return Self::first(disk, config, known, repairs);
        };
        let bytes = disk.read(&newest.file_name()).map_err(failed("read the newest segment"))?;
        let examined = segment::examine(&bytes).map_err(|flaw| LoadError::Damaged(newest, flaw))?;
        let mended = keep_torn(&mut *disk, newest, &bytes, &examined)?;
        let tail = rewrite(&mut *disk, newest, &bytes, &examined)?;
        let durable_bytes = examined.good_bytes + u64::from(examined.ending == Ending::Unterminated);
        // A torn tail can hold one opening line, whose fence may have been used before the line became unreadable.
        let skipped = u64::from(examined.ending == Ending::Torn);
        repairs.extend(mended);
        let mut fence = examined.fence.max(known);
        let older: Vec<SegmentNumber> = listing.segments.iter().rev().skip(1).copied().collect();
        let mut follower = (newest, examined.first);
        for number in older.into_iter().take(config.segments_kept) {
            let (complaint, first, highest) = check_older(&*disk, number, follower);
            repairs.extend(complaint);
            fence = fence.max(highest);
            follower = (number, first);
        }
        let store = Self {
            disk,
            config,
            segment: newest,
            tail,
            durable: examined.next,
            durable_bytes,
            checkpoint_bytes: examined.checkpoint_bytes,
            buffer: Vec::new(),
            next: examined.next,
            fence: Fence(fence.0 + skipped),
            closed: false,
        };
        Ok(Loaded { store, segment: newest, bytes, records: examined.records, repairs })
    }

    fn first(
        mut disk: Box<dyn Disk>,
        config: Config,
        fence: Fence,
        repairs: Vec<Repair>,
    ) -> Result<Loaded, LoadError> {
        let segment = SegmentNumber(1);
        let header = header_line(Seq(1), 0, fence);
        let tail = directory::create(&mut *disk, segment, &[&header]).map_err(not_created)?;
        let bytes = header.len() as u64;
        let store = Self {
            disk,
            config,
            segment,
            tail,
            durable: Seq(2),
            durable_bytes: bytes,
            checkpoint_bytes: bytes,
            buffer: Vec::new(),
            next: Seq(2),
            fence,
            closed: false,
        };
        Ok(Loaded { store, segment, bytes: header, records: Vec::new(), repairs })
    }

    /// Returns the next fence, which is durable when this call returns.
    pub(crate) fn open_for(&mut self, holder: &Holder) -> io::Result<Fence> {
        let fence = Fence(self.fence.0 + 1);
        let payload = serde_json::to_vec(&Opening { fence, holder: holder.clone() })?;
        self.push(Kind::Opening, &payload);
        self.sync().map_err(io::Error::other)?;
        self.fence = fence;
        Ok(fence)
    }

    /// Takes one record, as JSON. It is not durable yet.
    pub(crate) fn append(&mut self, payload: &[u8]) -> Result<Seq, AppendError> {
        if self.closed {
            return Err(AppendError::Broken);
        }
        self.fits(payload)?;
        // A batch of one record always fits, so that no record is refused for ever.
        if !self.buffer.is_empty() && self.buffer.len() + payload.len() > self.config.batch_bytes_max {
            return Err(AppendError::BatchFull { waiting: self.buffer.len() });
        }
        Ok(self.push(Kind::Record, payload))
    }

    fn fits(&self, payload: &[u8]) -> Result<(), AppendError> {
        let (bytes, most) = (payload.len(), self.config.record_bytes_max);
        if bytes > most { Err(AppendError::TooLarge { bytes, most }) } else { Ok(()) }
    }

    fn push(&mut self, kind: Kind, payload: &[u8]) -> Seq {
        let number = self.next;
        let in_batch = number.0 - self.durable.0;
        line::write(&mut self.buffer, &Line { number, in_batch, kind, payload });
        self.next = Seq(number.0 + 1);
        number
    }

    /// The numbers of the lines that wait for `sync`.
    pub(crate) const fn waiting(&self) -> Range<Seq> {
        self.durable..self.next
    }

    /// Makes all appended lines durable, or none of them.
    pub(crate) fn sync(&mut self) -> Result<Seq, SyncError> {
        if self.closed {
            return Err(SyncError::Closed);
        }
        if self.buffer.is_empty() {
            return Ok(Seq(self.durable.0 - 1));
        }
        match self.tail.append(&self.buffer).and_then(|()| self.tail.sync()) {
            Ok(()) => {
                self.durable = self.next;
                self.durable_bytes += self.buffer.len() as u64;
                self.buffer.clear();
                Ok(Seq(self.durable.0 - 1))
            }
            Err(source) if is_about_space(&source) => Err(self.take_back(source)),
            Err(source) => Err(self.close(source)),
        }
    }

    fn take_back(&mut self, source: io::Error) -> SyncError {
        if let Err(second) = self.tail.cut(self.durable_bytes).and_then(|()| self.tail.sync()) {
            return self.close(second);
        }
        let not_kept = self.waiting();
        let bytes = self.buffer.len();
        self.drop_waiting();
        SyncError::NotWritten { not_kept, bytes, source }
    }

    fn close(&mut self, source: io::Error) -> SyncError {
        self.closed = true;
        let in_doubt = self.waiting();
        self.drop_waiting();
        SyncError::Broken { in_doubt, source }
    }

    fn drop_waiting(&mut self) {
        self.buffer = Vec::new();
        self.next = self.durable;
    }

    /// Takes no more lines and drops those that wait; returns their numbers.
    pub(crate) fn give_up(&mut self) -> Range<Seq> {
        let not_kept = self.waiting();
        self.closed = true;
        self.drop_waiting();
        not_kept
    }

    /// True when the current segment is large enough for a new segment with a fresh checkpoint.
    pub(crate) const fn rotation_due(&self) -> bool {
        let bytes = self.durable_bytes + self.buffer.len() as u64;
        bytes >= self.config.segment_bytes_max && bytes >= 2 * self.checkpoint_bytes
    }

    /// Begins a new segment with these records, which repeat all that a start needs, and removes older segments. The
    /// second result is a failed removal, which the next rotation tries again.
    pub(crate) fn rotate(
        &mut self,
        checkpoint: impl Iterator<Item = Result<Vec<u8>, AppendError>>,
    ) -> Result<(SegmentNumber, Option<io::Error>), RotateError> {
        self.sync()?;
        let mut lines = Vec::new();
        let mut records = 0;
        for (index, payload) in checkpoint.enumerate() {
            let refused = |source| RotateError::Checkpoint { index, source };
            let payload = payload.map_err(refused)?;
            self.fits(&payload).map_err(refused)?;
            records = index as u64 + 1;
            let number = Seq(self.durable.0 + records);
            line::write(
                &mut lines,
                &Line { number, in_batch: records, kind: Kind::Record, payload: &payload },
            );
        }
        let header = header_line(self.durable, records, self.fence);
        let segment = SegmentNumber(self.segment.0 + 1);
        let created = directory::create(&mut *self.disk, segment, &[&header, &lines]);
        self.tail = created.map_err(|error| match error {
            NotCreated::Before(doing, source) => RotateError::NotWritten { doing, source },
            NotCreated::InDoubt(source) => {
                self.closed = true;
                RotateError::Broken(source)
            }
        })?;
        self.segment = segment;
        self.durable = Seq(self.durable.0 + 1 + records);
        self.next = self.durable;
        self.durable_bytes = (header.len() + lines.len()) as u64;
        self.checkpoint_bytes = self.durable_bytes;
        let not_removed = directory::prune(&mut *self.disk, self.config.segments_kept).err();
        Ok((segment, not_removed))
    }
}

fn header_line(number: Seq, checkpoint: u64, fence: Fence) -> Vec<u8> {
    let payload = format!("{{\"format\":{FORMAT},\"checkpoint\":{checkpoint},\"fence\":{fence}}}");
    let mut bytes = Vec::new();
    line::write(&mut bytes, &Line { number, in_batch: 0, kind: Kind::Header, payload: payload.as_bytes() });
    bytes
}

fn not_created(error: NotCreated) -> LoadError {
    match error {
        NotCreated::Before(doing, source) => LoadError::Io(doing, source),
        NotCreated::InDoubt(source) => LoadError::Io("make the newest segment durable", source),
    }
}

/// Copies the bytes behind the last whole line of the newest segment into its `.torn` file.
fn keep_torn(
    disk: &mut dyn Disk,
    segment: SegmentNumber,
    bytes: &[u8],
    examined: &Examined,
) -> Result<Option<Repair>, LoadError> {
    match examined.ending {
        Ending::Clean => Ok(None),
        Ending::Unterminated => Ok(Some(Repair::MissingNewline { segment })),
        Ending::Torn => {
            let torn = bytes.get(good_bytes(bytes, examined)..).unwrap_or_default();
            let mut aside = disk.create(&segment.torn_name()).map_err(failed("keep the torn tail aside"))?;
            aside.append(torn).map_err(failed("keep the torn tail aside"))?;
            aside.sync().map_err(failed("keep the torn tail aside"))?;
            disk.sync_names().map_err(failed("keep the torn tail aside"))?;
            Ok(Some(Repair::TornTail { segment, bytes: torn.len() as u64 }))
        }
    }
}

/// Writes the whole lines of the newest segment into a new file of the same name, because the bytes that were read may
/// exist only in the page cache.
fn rewrite(
    disk: &mut dyn Disk,
    segment: SegmentNumber,
    bytes: &[u8],
    examined: &Examined,
) -> Result<Box<dyn Tail>, LoadError> {
    let good = bytes.get(..good_bytes(bytes, examined)).unwrap_or(bytes);
    let newline: &[u8] = if examined.ending == Ending::Unterminated { b"\n" } else { b"" };
    directory::create(disk, segment, &[good, newline]).map_err(not_created)
}

fn good_bytes(bytes: &[u8], examined: &Examined) -> usize {
    usize::try_from(examined.good_bytes).unwrap_or(bytes.len())
}

/// Checks a segment that serves only as history; returns what is wrong with it, its first number and its highest fence.
fn check_older(
    disk: &dyn Disk,
    number: SegmentNumber,
    (newer, newer_first): (SegmentNumber, Seq),
) -> (Option<Repair>, Seq, Fence) {
    let complain = |line, what: String| Some(Repair::HistoryDamaged { segment: number, line, what });
    let bytes = match disk.read(&number.file_name()) {
        Ok(bytes) => bytes,
        Err(error) => return (complain(None, format!("cannot be read: {error}")), Seq(0), Fence(0)),
    };
    match segment::examine(&bytes) {
        Err(Flaw { line, what }) => (complain(Some(line), what.into()), Seq(0), Fence(0)),
        Ok(examined) => {
            let complaint = if examined.ending == Ending::Torn {
                complain(None, "its last lines are not whole".into())
            } else if newer_first != Seq(0) && (examined.next != newer_first || newer.0 != number.0 + 1) {
                complain(
                    None,
                    format!("the next segment does not go on where it ends (record {})", examined.next),
                )
            } else {
                None
            };
            (complaint, examined.first, examined.fence)
        }
    }
}

/// True when the error means that there is no room for more, while earlier writes are safe.
fn is_about_space(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge
    )
}

//! The directory of the ledger: which segments exist, how a new segment becomes visible as a whole, and how
//! old segments are removed.
//!
//! ```text
//!  write NNNN.jsonl.new ─▶ fsync it ─▶ rename to NNNN.jsonl ─▶ fsync the directory ─▶ it counts
//! ```
//!
//! At whatever point the process dies, a name that ends in `.jsonl` is a whole segment. The highest segment has all that
//! a start needs. A `.new` file is left over from an attempt that did not finish; the ledger ignores it.
//!
//! Not here: what is in a segment (`segment`), and when a new one is due (`store`).

use std::collections::BTreeSet;
use std::io;

use crate::disk::{Disk, Tail};
use crate::segment::SegmentNumber;

const SEGMENT: &str = ".jsonl";
const TORN: &str = ".torn";
const UNFINISHED: &str = ".jsonl.new";

/// What a directory holds of a ledger.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    pub(crate) segments: BTreeSet<SegmentNumber>,
    pub(crate) torn: BTreeSet<SegmentNumber>,
    pub(crate) unfinished: BTreeSet<String>,
}

/// Lists the files of the ledger and ignores all other files.
pub(crate) fn list(disk: &dyn Disk) -> io::Result<Listing> {
    let mut listing = Listing::default();
    for name in disk.names()? {
        listing.segments.extend(SegmentNumber::from_name(&name, SEGMENT));
        listing.torn.extend(SegmentNumber::from_name(&name, TORN));
        if SegmentNumber::from_name(&name, UNFINISHED).is_some() {
            listing.unfinished.insert(name);
        }
    }
    Ok(listing)
}

/// How far the creation of a segment came before it failed.
pub(crate) enum NotCreated {
    /// The segment does not count, also not after a restart.
    Before(&'static str, io::Error),
    /// The segment has its final name, but the name may not be durable.
    InDoubt(io::Error),
}

/// Creates a segment, whole and durable, and returns the handle that appends to it.
pub(crate) fn create(
    disk: &mut dyn Disk,
    number: SegmentNumber,
    content: &[&[u8]],
) -> Result<Box<dyn Tail>, NotCreated> {
    let name = number.file_name();
    let unfinished = format!("{name}.new");
    let tail = write_aside(disk, &unfinished, content).map_err(|(doing, source)| {
        // If this removal fails, the next opening removes the file. On a full disk its bytes are needed at once.
        let _ = disk.remove(&unfinished);
        NotCreated::Before(doing, source)
    })?;
    disk.rename(&unfinished, &name)
        .map_err(|source| NotCreated::Before("giving the new segment its name", source))?;
    disk.sync_names().map_err(NotCreated::InDoubt)?;
    Ok(tail)
}

fn write_aside(
    disk: &mut dyn Disk,
    name: &str,
    content: &[&[u8]],
) -> Result<Box<dyn Tail>, (&'static str, io::Error)> {
    let mut tail = disk.create(name).map_err(|source| ("creating the new segment", source))?;
    for bytes in content {
        tail.append(bytes).map_err(|source| ("writing the new segment", source))?;
    }
    tail.sync().map_err(|source| ("making the new segment durable", source))?;
    Ok(tail)
}

/// Removes the segments and `.torn` files that are older than the `kept` segments before the newest.
pub(crate) fn prune(disk: &mut dyn Disk, kept: usize) -> io::Result<()> {
    let listing = list(disk)?;
    let Some(oldest_kept) = listing.segments.iter().rev().nth(kept).or(listing.segments.first()).copied()
    else {
        return Ok(());
    };
    // The oldest segment goes first. If the process ends in between, the segments that stay have no gap.
    for number in listing.segments.range(..oldest_kept) {
        disk.remove(&number.file_name())?;
    }
    for number in listing.torn.range(..oldest_kept) {
        disk.remove(&number.torn_name())?;
    }
    Ok(())
}

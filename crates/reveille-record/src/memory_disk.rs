//! A disk for tests that can lose its power: it tracks which bytes are durable and which are not.
//!
//! ```text
//!  operations ─▶ live state, as the running process sees it
//!             └▶ durable state + what changed since ─▶ power_cut(dice): what a new process finds
//! ```
//!
//! After a power cut each file has its durable content, and behind it any part of what was written later: cut anywhere,
//! with any of its 64-byte blocks zero. Of the directory changes that were not synced, any first part survives. A test
//! can make an operation fail, or be the last one of the process, by its number.
//!
//! A failed fsync does what Linux does: the kernel marks the pages clean although the disk does not have them. Every read
//! still finds them in the page cache, and a later fsync succeeds without writing them. A power cut shows that they are
//! not on the disk (PostgreSQL wiki, "Fsync Errors"; LWN 752063). A write into such a page makes the whole page dirty
//! again.
//!
//! It replaces the kernel and the hardware below the ledger, because no test can cut those off at a chosen instruction.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::disk::{Disk, Tail};

/// Content of one file: as readers see it now, and how much of it is durable.
#[derive(Clone, Debug, Default)]
struct Content {
    live: Vec<u8>,
    durable: Vec<u8>,
    /// Blocks of `live` that are marked clean and are not on the disk.
    unwritten: BTreeSet<usize>,
}

impl Content {
    /// The content of the disk after every dirty block is written.
    fn written(&self) -> Vec<u8> {
        let mut bytes = self.live.clone();
        for block in &self.unwritten {
            let start = (block * BLOCK_BYTES).min(bytes.len());
            let end = (start + BLOCK_BYTES).min(bytes.len());
            let old = self.durable.get(start..self.durable.len().min(end)).unwrap_or_default();
            bytes[start..end].fill(0);
            bytes[start..start + old.len()].copy_from_slice(old);
        }
        bytes
    }

    /// The fsync failed: the kernel counts the dirty blocks as clean.
    fn forget_dirty(&mut self) {
        let from = self.durable.len().min(self.live.len()) / BLOCK_BYTES;
        let to = self.live.len().div_ceil(BLOCK_BYTES);
        self.unwritten.extend(from..to);
    }

    /// The length changes at this byte: its block is dirty, and so is every later one.
    fn dirty_from(&mut self, byte: usize) {
        self.unwritten.retain(|block| *block < byte / BLOCK_BYTES);
    }
}

/// A change of names that is not durable yet.
#[derive(Clone, Debug)]
enum NameChange {
    Made(String, usize),
    Renamed(String, String),
    Removed(String),
}

/// What happens at a chosen operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// The operation fails half done for lack of space; the next ones work.
    NoSpace,
    /// The operation fails half done with an I/O error; a sync leaves its pages clean and unwritten. The next ones work.
    Faulty,
    /// The operation and all later ones fail, because the process is gone.
    Crash,
}

#[derive(Debug, Default)]
struct World {
    files: Vec<Content>,
    names: BTreeMap<String, usize>,
    durable_names: BTreeMap<String, usize>,
    changes: Vec<NameChange>,
    operations: u64,
    trouble: Option<(u64, Trouble)>,
    crashed: bool,
}

/// A handle to the disk; clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct MemoryDisk {
    world: Arc<Mutex<World>>,
}

/// Numbers that decide what a power cut leaves.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number below `sides`.
    pub(crate) fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % sides as u64) as usize
    }
}

const BLOCK_BYTES: usize = 64;

impl MemoryDisk {
    fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the `operation`-th operation from now, counted from 0, fail.
    pub(crate) fn arm(&self, operation: u64, trouble: Trouble) {
        let mut world = self.world();
        world.trouble = Some((world.operations + operation, trouble));
    }

    /// An existing file, opened to append at its end.
    pub(crate) fn extend(&mut self, name: &str) -> io::Result<Box<dyn Tail>> {
        let file = *self.world().names.get(name).ok_or(io::ErrorKind::NotFound)?;
        Ok(Box::new(MemoryTail { disk: self.clone(), file }))
    }

    /// How many operations there were.
    pub(crate) fn operations(&self) -> u64 {
        self.world().operations
    }

    /// What a new process finds after the old one was killed: everything that was written.
    pub(crate) fn after_kill(&self) -> Self {
        let world = self.world();
        let fresh = World { files: world.files.clone(), names: world.names.clone(), ..World::default() };
        let fresh =
            World { durable_names: world.durable_names.clone(), changes: world.changes.clone(), ..fresh };
        Self { world: Arc::new(Mutex::new(fresh)) }
    }

    /// What a new process finds after the power was lost: all that was synced, and some of the rest.
    pub(crate) fn after_power_cut(&self, dice: &mut Dice) -> Self {
        let world = self.world();
        let mut names = world.durable_names.clone();
        let happened = dice.roll(world.changes.len() + 1);
        for change in world.changes.iter().take(happened) {
            apply(&mut names, change);
        }
        let files: Vec<Content> = world
            .files
            .iter()
            .map(|content| {
                let left = what_is_left(content, dice);
                Content { live: left.clone(), durable: left, ..Content::default() }
            })
            .collect();
        let fresh = World { files, durable_names: names.clone(), names, ..World::default() };
        Self { world: Arc::new(Mutex::new(fresh)) }
    }
}

fn apply(names: &mut BTreeMap<String, usize>, change: &NameChange) {
    match change {
        NameChange::Made(name, file) => drop(names.insert(name.clone(), *file)),
        NameChange::Renamed(from, to) => {
            if let Some(file) = names.remove(from) {
                names.insert(to.clone(), file);
            }
        }
        NameChange::Removed(name) => drop(names.remove(name)),
    }
}

fn what_is_left(content: &Content, dice: &mut Dice) -> Vec<u8> {
    let live = content.written();
    let same = live.iter().zip(&content.durable).take_while(|(live, durable)| live == durable).count();
    if same == live.len() {
        // The content is shorter than the durable content, or equal: the cut is on the disk or it is not.
        return if dice.roll(2) == 0 { content.durable.clone() } else { live };
    }
    assert_eq!(same, content.durable.len(), "files only grow at their end between syncs");
    let length = same + dice.roll(live.len() - same + 1);
    let mut left = live[..length].to_vec();
    let mut block = same;
    while block < length {
        let end = (block - block % BLOCK_BYTES + BLOCK_BYTES).min(length);
        if dice.roll(4) == 0 {
            left[block..end].fill(0);
        }
        block = end;
    }
    left
}

impl World {
    /// Counts one operation; returns the error if the test chose this one.
    fn operate(&mut self) -> io::Result<()> {
        let number = self.operations;
        self.operations += 1;
        match self.trouble {
            Some((chosen, Trouble::NoSpace)) if chosen == number => Err(io::ErrorKind::StorageFull.into()),
            Some((chosen, Trouble::Faulty)) if chosen == number => {
                Err(io::Error::other("input/output error"))
            }
            Some((chosen, Trouble::Crash)) if chosen == number => {
                self.crashed = true;
                Err(io::Error::other("the process is gone"))
            }
            _ if self.crashed => Err(io::Error::other("the process is gone")),
            _ => Ok(()),
        }
    }

    fn change(&mut self, change: NameChange) {
        apply(&mut self.names, &change);
        self.changes.push(change);
    }
}

impl Disk for MemoryDisk {
    fn names(&self) -> io::Result<Vec<String>> {
        Ok(self.world().names.keys().cloned().collect())
    }

    fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        let world = self.world();
        let index = *world.names.get(name).ok_or(io::ErrorKind::NotFound)?;
        Ok(world.files[index].live.clone())
    }

    fn create(&mut self, name: &str) -> io::Result<Box<dyn Tail>> {
        let mut world = self.world();
        world.operate()?;
        let file = world.files.len();
        world.files.push(Content::default());
        world.change(NameChange::Made(name.into(), file));
        Ok(Box::new(MemoryTail { disk: self.clone(), file }))
    }

    fn rename(&mut self, from: &str, to: &str) -> io::Result<()> {
        let mut world = self.world();
        world.operate()?;
        world.change(NameChange::Renamed(from.into(), to.into()));
        Ok(())
    }

    fn remove(&mut self, name: &str) -> io::Result<()> {
        let mut world = self.world();
        world.operate()?;
        world.names.get(name).ok_or(io::ErrorKind::NotFound)?;
        world.change(NameChange::Removed(name.into()));
        Ok(())
    }

    fn sync_names(&mut self) -> io::Result<()> {
        let mut world = self.world();
        world.operate()?;
        world.durable_names = world.names.clone();
        world.changes.clear();
        Ok(())
    }
}

struct MemoryTail {
    disk: MemoryDisk,
    file: usize,
}

impl Tail for MemoryTail {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut world = self.disk.world();
        let gone_before = world.crashed;
        let result = world.operate();
        let written = match &result {
            Ok(()) => bytes,
            Err(_) if gone_before => &[],
            Err(_) => &bytes[..bytes.len() / 2],
        };
        let content = &mut world.files[self.file];
        content.dirty_from(content.live.len());
        content.live.extend_from_slice(written);
        result
    }

    fn cut(&mut self, bytes: u64) -> io::Result<()> {
        let mut world = self.disk.world();
        world.operate()?;
        let content = &mut world.files[self.file];
        content.live.truncate(bytes as usize);
        content.dirty_from(bytes as usize);
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        let mut world = self.disk.world();
        let gone_before = world.crashed;
        let result = world.operate();
        let faulty = result.is_err() && matches!(world.trouble, Some((_, Trouble::Faulty)));
        let content = &mut world.files[self.file];
        if faulty {
            content.forget_dirty();
        } else if !gone_before {
            // A sync that fails in another way may still have written its pages.
            content.durable = content.written();
        }
        result
    }
}

//! Checks the promises of the ledger at every operation at which a process or its power can end.
//!
//! A script of appends, syncs and rotations runs over several lives of a process on a [`MemoryDisk`]. Each life may meet
//! one failure, at any operation. After it the disk is what a kill or a power cut leaves. The next opening must find all
//! that was acknowledged, in order, and nothing that was refused. Of a batch under way it may find a first part or
//! nothing. The fence must be higher, and the opening must never report damage.

use proptest::prelude::*;

use crate::config::Config;
use crate::disk::Disk;
use crate::error::{RotateError, SyncError};
use crate::line::Fence;
use crate::lock::Holder;
use crate::memory_disk::{Dice, MemoryDisk, Trouble};
use crate::repair::Repair;
use crate::segment::SegmentNumber;
use crate::store::{Loaded, Store};

const CONFIG: Config =
    Config { segment_bytes_max: 700, segments_kept: 1, record_bytes_max: 400, batch_bytes_max: 2_000 };

#[derive(Clone, Debug)]
enum Step {
    /// One record, with this many bytes of filling.
    Append(usize),
    Sync,
    Rotate,
}

/// What must be true of the ledger.
#[derive(Clone, Debug, Default)]
struct Model {
    acknowledged: Vec<u64>,
    under_way: Vec<u64>,
    next_id: u64,
    fence: u64,
}

impl Model {
    /// Compares the model with the records that an opening reads.
    fn meets(&self, found: &[u64]) {
        let (kept, rest) = found.split_at(self.acknowledged.len().min(found.len()));
        assert_eq!(kept, self.acknowledged, "something acknowledged is lost");
        assert!(self.under_way.starts_with(rest), "{rest:?} is no first part of {:?}", self.under_way);
    }
}

fn payload(id: u64, filling: usize) -> Vec<u8> {
    format!("[{id},\"{}\"]", "f".repeat(filling)).into_bytes()
}

fn id(payload: &[u8]) -> u64 {
    let (id, _filling): (u64, String) = serde_json::from_slice(payload).unwrap();
    id
}

fn holder() -> Holder {
    Holder { command: "test".into(), host: "here".into(), pid: 1, started_ms: 0 }
}

/// One life of a process, until the script or the store ends.
fn live(disk: &MemoryDisk, model: &mut Model, script: &[Step]) {
    // A failure may keep a process from opening the ledger; a report of damage would be wrong in any case.
    let Loaded { mut store, bytes, records, .. } = match Store::load(Box::new(disk.clone()), CONFIG, Fence(0))
    {
        Ok(loaded) => loaded,
        Err(crate::store::LoadError::Io(..)) => return,
        Err(error @ crate::store::LoadError::Damaged(..)) => panic!("{error:?}"),
    };
    let found: Vec<u64> = records.iter().map(|found| id(&bytes[found.payload.clone()])).collect();
    model.meets(&found);
    // Only a successful opening returns its records; from then on they must stay.
    let Ok(fence) = store.open_for(&holder()) else { return };
    model.acknowledged = found;
    model.under_way.clear();
    assert!(fence.0 > model.fence, "fence {fence} was handed out before");
    model.fence = fence.0;
    for step in script {
        let closed = match step {
            Step::Append(filling) => {
                if store.append(&payload(model.next_id, *filling)).is_ok() {
                    model.under_way.push(model.next_id);
                    model.next_id += 1;
                }
                false
            }
            Step::Sync => settle(model, &store.sync().map(|_| ())),
            Step::Rotate => rotate(&mut store, model),
        };
        if closed {
            return;
        }
    }
}

/// Records the end of a sync in the model; true when the store is closed.
fn settle(model: &mut Model, result: &Result<(), SyncError>) -> bool {
    match result {
        Ok(()) => model.acknowledged.append(&mut model.under_way),
        Err(SyncError::NotWritten { .. }) => model.under_way.clear(),
        Err(_) => return true,
    }
    false
}

fn rotate(store: &mut Store, model: &mut Model) -> bool {
    let synced = store.sync().map(|_| ());
    if settle(model, &synced) {
        return true;
    }
    let checkpoint: Vec<_> = model.acknowledged.iter().map(|id| Ok(payload(*id, 0))).collect();
    match store.rotate(checkpoint.into_iter()) {
        Ok(_) | Err(RotateError::NotWritten { .. }) => false,
        Err(RotateError::Broken(_)) => true,
        Err(error) => panic!("{error:?}"),
    }
}

fn script() -> Vec<Step> {
    use Step::{Append, Rotate, Sync};
    let mut script = vec![Append(0), Sync, Append(90), Append(10), Append(200), Sync, Append(5)];
    script.extend([Rotate, Append(20), Sync, Append(70), Append(70), Sync, Rotate, Rotate, Append(1), Sync]);
    script
}

/// How many operations the script takes without a failure.
fn operations() -> u64 {
    let disk = MemoryDisk::default();
    live(&disk, &mut Model::default(), &script());
    disk.operations()
}

#[test]
fn trouble_at_any_operation_loses_nothing_that_was_acknowledged() {
    let operations = operations();
    assert!(operations > 30, "the script is worth cutting: {operations}");
    for operation in 0..operations {
        for trouble in [Trouble::NoSpace, Trouble::Faulty, Trouble::Crash] {
            let disk = MemoryDisk::default();
            let mut model = Model::default();
            disk.arm(operation, trouble);
            live(&disk, &mut model, &script());
            live(&disk.after_kill(), &mut model.clone(), &script());
            for seed in 0..40 {
                let mut dice = Dice::new(seed * 1_000 + operation);
                let (after, mut model) = (disk.after_power_cut(&mut dice), model.clone());
                // A second failure hits while the opening repairs what the first one left.
                after.arm(dice.roll(12) as u64, trouble);
                live(&after, &mut model, &script());
                live(&after.after_power_cut(&mut dice), &mut model, &script());
            }
        }
    }
}

#[test]
fn failed_fsync_then_restart_then_power_cut_loses_nothing() {
    for operation in 0..operations() {
        let disk = MemoryDisk::default();
        let mut model = Model::default();
        disk.arm(operation, Trouble::Faulty);
        live(&disk, &mut model, &script());
        // The process ends and starts again on the same machine: it reads what the page cache has.
        let next = disk.after_kill();
        // The script has no rotation, because a rotation would write everything into a new segment.
        live(&next, &mut model, &[Step::Append(1), Step::Sync]);
        for seed in 0..40 {
            let mut dice = Dice::new(seed * 1_000 + operation);
            live(&next.after_power_cut(&mut dice), &mut model.clone(), &script());
        }
    }
}

#[test]
fn store_takes_nothing_after_a_failed_fsync() {
    // The first operation is the write, the second is the fsync after it.
    for operation in [0, 1] {
        let disk = MemoryDisk::default();
        let mut store = Store::load(Box::new(disk.clone()), CONFIG, Fence(0)).ok().unwrap().store;
        store.open_for(&holder()).unwrap();
        store.append(&payload(1, 300)).unwrap();
        disk.arm(operation, Trouble::Faulty);
        assert!(store.sync().unwrap_err().is_final(), "operation {operation}");
        assert!(matches!(store.append(&payload(2, 3)), Err(crate::error::AppendError::Broken)));
    }
}

#[test]
fn store_resumes_after_disk_space_is_back() {
    let disk = MemoryDisk::default();
    let mut store = Store::load(Box::new(disk.clone()), CONFIG, Fence(0)).ok().unwrap().store;
    store.open_for(&holder()).unwrap();
    for operation in [0, 1] {
        let (before, after) = (store.waiting(), disk.operations());
        store.append(&payload(1, 300)).unwrap();
        disk.arm(operation, Trouble::NoSpace);
        let error = store.sync().unwrap_err();
        assert_eq!(error.not_kept().map(|range| range.start), Some(before.start));
        assert!(!error.is_final(), "{error}");
        assert!(disk.operations() > after);
        store.append(&payload(2 + operation, 3)).unwrap();
        store.sync().unwrap();
    }
    let loaded = Store::load(Box::new(disk.after_kill()), CONFIG, Fence(0)).ok().unwrap();
    let found: Vec<u64> =
        loaded.records.iter().map(|found| id(&loaded.bytes[found.payload.clone()])).collect();
    assert_eq!((found, loaded.repairs), (vec![2, 3], vec![]));
}

#[test]
fn last_line_without_newline_is_kept_despite_failed_append() {
    let mut disk = MemoryDisk::default();
    live(&disk, &mut Model::default(), &[Step::Append(1), Step::Sync]);
    let length = disk.read("0000000001.jsonl").unwrap().len() as u64;
    disk.extend("0000000001.jsonl").unwrap().cut(length - 1).unwrap();
    let loaded = Store::load(Box::new(disk.clone()), CONFIG, Fence(0)).ok().unwrap();
    assert_eq!(loaded.repairs, [Repair::MissingNewline { segment: SegmentNumber(1) }]);
    let mut store = loaded.store;
    store.append(&payload(7, 50)).unwrap();
    disk.arm(0, Trouble::NoSpace);
    assert!(store.sync().is_err());
    store.append(&payload(8, 50)).unwrap();
    store.sync().unwrap();
    let again = Store::load(Box::new(disk.after_kill()), CONFIG, Fence(0)).ok().unwrap();
    let found: Vec<u64> = again.records.iter().map(|found| id(&again.bytes[found.payload.clone()])).collect();
    assert_eq!((found, again.repairs), (vec![0, 8], vec![]));
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        5 => (0..300_usize).prop_map(Step::Append),
        3 => Just(Step::Sync),
        1 => Just(Step::Rotate),
    ];
    prop::collection::vec(step, 1..25)
}

proptest! {
    #[test]
    fn many_lives_with_any_scripts_and_troubles(
        lives in prop::collection::vec((steps(), 0..60_u64, any::<bool>(), any::<bool>(), any::<u64>()), 1..6)
    ) {
        let mut disk = MemoryDisk::default();
        let mut model = Model::default();
        for (script, operation, crash, kill, seed) in lives {
            disk.arm(operation, if crash { Trouble::Crash } else { Trouble::NoSpace });
            live(&disk, &mut model, &script);
            disk = if kill { disk.after_kill() } else { disk.after_power_cut(&mut Dice::new(seed)) };
        }
        live(&disk, &mut model, &[Step::Append(1), Step::Sync]);
        live(&disk, &mut model, &[]);
    }
}

//! The ledger on a real file system: which records it reads back, which process it keeps out, what it refuses, and how
//! large it becomes.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests may fail the test they help")]

use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use reveille_record::{
    AppendError, Config, Fence, HeartbeatError, Holder, Ledger, OpenError, Opened, Repair, SegmentNumber,
    SyncError, history, read_lossy, read_only,
};

const SMALL: Config =
    Config { segment_bytes_max: 2_000, segments_kept: 2, record_bytes_max: 300, batch_bytes_max: 1_000 };

fn holder(command: &str, now_ms: i64) -> Holder {
    Holder::this_process(command, now_ms)
}

fn open(state: &Path, config: Config) -> Opened<String> {
    Ledger::open(state, &holder("test", 1_000), config).unwrap()
}

fn write(ledger: &mut Ledger<String>, records: &[&str]) {
    for record in records {
        ledger.append(&(*record).to_owned()).unwrap();
        ledger.sync().unwrap();
    }
}

fn segment(state: &Path, number: u64) -> PathBuf {
    state.join(format!("ledger/{number:010}.jsonl"))
}

fn segments(state: &Path) -> Vec<String> {
    let entries = fs::read_dir(state.join("ledger")).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.retain(|name| name != "lock");
    names.sort();
    names
}

#[test]
fn records_return_in_order_and_each_opening_raises_the_fence() {
    let state = tempfile::tempdir().unwrap();
    let mut expected: Vec<String> = Vec::new();
    for round in 1..=5_u64 {
        let mut opened = open(state.path(), Config::STANDARD);
        assert_eq!(opened.fence, Fence(round));
        assert_eq!(opened.records, expected);
        assert_eq!(opened.repairs, []);
        assert_eq!(opened.last_alive_ms, (round > 1).then_some(5_000));
        opened.ledger.heartbeat(5_000).unwrap();
        for text in ["plain", "quote \" and \\ and \n newline", "ünï©ode \u{1F600}", ""] {
            expected.push(format!("{round} {text}"));
            opened.ledger.append(&format!("{round} {text}")).unwrap();
        }
        opened.ledger.sync().unwrap();
        opened.ledger.append(&"never synced".to_owned()).unwrap();
    }
    let reading = read_only::<String>(state.path()).unwrap();
    assert_eq!(reading.records, expected);
    assert_eq!((reading.alive_ms, reading.unfinished_bytes), (Some(5_000), 0));
    for line in fs::read_to_string(segment(state.path(), 1)).unwrap().lines() {
        serde_json::from_str::<serde_json::Value>(line).unwrap();
    }
}

#[test]
fn second_process_is_told_the_holder_and_can_open_after_its_end() {
    let state = tempfile::tempdir().unwrap();
    let first = open(state.path(), Config::STANDARD);
    let error = Ledger::<String>::open(state.path(), &holder("second", 2_000), Config::STANDARD).unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, OpenError::Held { .. }), "{text}");
    for part in ["\"test\"", &format!("process {} on", std::process::id()), "Stop that one first"] {
        assert!(text.contains(part), "{part} is missing in: {text}");
    }
    drop(first);
    let second = Ledger::<String>::open(state.path(), &holder("second", 2_000), Config::STANDARD).unwrap();
    assert_eq!(second.fence, Fence(2));
}

#[test]
fn ledger_that_lost_its_lock_file_writes_nothing_more() {
    let state = tempfile::tempdir().unwrap();
    let mut former = open(state.path(), Config::STANDARD).ledger;
    write(&mut former, &["mine"]);
    fs::remove_file(state.path().join("ledger/lock")).unwrap();
    let mut leader = open(state.path(), Config::STANDARD);
    assert_eq!(leader.fence, Fence(2));
    former.append(&"late".to_owned()).unwrap();
    let error = former.sync().unwrap_err();
    assert!(matches!(error, SyncError::LockLost { .. }), "{error}");
    assert!(error.to_string().starts_with("record 4 was not written: the lock file"), "{error}");
    assert!(matches!(former.append(&"later".to_owned()), Err(AppendError::Broken)));
    assert!(matches!(former.sync(), Err(SyncError::LockLost { .. } | SyncError::Closed)));
    assert!(matches!(former.heartbeat(9), Err(HeartbeatError::LockLost { .. })));
    write(&mut leader.ledger, &["hers"]);
    assert_eq!(read_only::<String>(state.path()).unwrap().records, ["mine", "hers"]);
}

#[test]
fn a_torn_tail_is_cut_off_reported_and_kept_aside() {
    let state = tempfile::tempdir().unwrap();
    write(&mut open(state.path(), Config::STANDARD).ledger, &["one", "two"]);
    let file = segment(state.path(), 1);
    let mut bytes = fs::read(&file).unwrap();
    bytes.extend_from_slice(b"{\"c\":\"0000");
    fs::write(&file, &bytes).unwrap();
    let reading = read_only::<String>(state.path()).unwrap();
    assert_eq!((reading.records.len(), reading.unfinished_bytes), (2, 10));
    let opened = open(state.path(), Config::STANDARD);
    assert_eq!(opened.records, ["one", "two"]);
    assert_eq!(opened.repairs, [Repair::TornTail { segment: SegmentNumber(1), bytes: 10 }]);
    assert_eq!(fs::read(state.path().join("ledger/0000000001.torn")).unwrap(), b"{\"c\":\"0000");
}

#[test]
fn a_fence_whose_opening_line_went_bad_is_not_handed_out_again() {
    let state = tempfile::tempdir().unwrap();
    let handed_out = open(state.path(), Config::STANDARD).fence;
    let file = segment(state.path(), 1);
    let mut bytes = fs::read(&file).unwrap();
    let last = bytes.len() - 5;
    bytes[last] ^= 1;
    fs::write(&file, bytes).unwrap();
    fs::remove_file(state.path().join("ledger/lock")).unwrap();
    assert!(open(state.path(), Config::STANDARD).fence > handed_out);
}

#[test]
fn mid_file_damage_is_refused_by_line_and_lossy_read_skips_it() {
    let state = tempfile::tempdir().unwrap();
    write(&mut open(state.path(), Config::STANDARD).ledger, &["one", "two", "three"]);
    let file = segment(state.path(), 1);
    let whole = fs::read_to_string(&file).unwrap();
    fs::write(&file, whole.replace("\"two\"", "\"owt\"")).unwrap();
    let error = Ledger::<String>::open(state.path(), &holder("test", 1), Config::STANDARD).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("0000000001.jsonl, line 4:") && text.contains("Put the file back"), "{text}");
    assert!(read_only::<String>(state.path()).unwrap_err().to_string().contains("line 4"));
    let lossy = read_lossy::<String>(state.path()).unwrap();
    assert_eq!(lossy.records.iter().map(|record| record.2.as_str()).collect::<Vec<_>>(), ["one", "three"]);
    assert_eq!(lossy.damage.iter().map(|damage| damage.line).collect::<Vec<_>>(), [4]);
    // The refused opening changed nothing: with the original file in place, the ledger opens.
    fs::write(&file, whole).unwrap();
    assert_eq!(open(state.path(), Config::STANDARD).records, ["one", "two", "three"]);
}

#[test]
fn a_record_of_another_type_is_named_and_not_skipped() {
    let state = tempfile::tempdir().unwrap();
    write(&mut open(state.path(), Config::STANDARD).ledger, &["text"]);
    let error = Ledger::<u64>::open(state.path(), &holder("test", 1), Config::STANDARD).unwrap_err();
    assert!(matches!(error, OpenError::NotUnderstood { line: 3, .. }), "{error}");
}

#[test]
fn rotation_restores_from_checkpoint_and_bounds_disk_use() {
    let state = tempfile::tempdir().unwrap();
    let mut ledger = open(state.path(), SMALL).ledger;
    let (mut since, mut rotations) = (Vec::new(), 0);
    for number in 0..400 {
        let record = format!("record {number} {}", "x".repeat(number % 50));
        write(&mut ledger, &[&record]);
        since.push(record);
        if ledger.rotation_due() {
            ledger.rotate(&["all until now".to_owned(), format!("{number}")]).unwrap();
            rotations += 1;
            since = vec!["all until now".to_owned(), format!("{number}")];
        }
        assert_eq!(read_only::<String>(state.path()).unwrap().records, since);
        let bytes: u64 = segments(state.path())
            .iter()
            .map(|name| fs::metadata(state.path().join("ledger").join(name)).unwrap().len())
            .sum();
        let bound = (SMALL.segments_kept as u64 + 1) * (SMALL.segment_bytes_max + 300);
        assert!(bytes <= bound, "{bytes} bytes on disk, the bound is {bound}");
    }
    assert!(rotations > 5, "{rotations}");
    assert_eq!(segments(state.path()).len(), SMALL.segments_kept + 1);
    drop(ledger);
    let opened = open(state.path(), SMALL);
    assert_eq!((opened.records, opened.repairs), (since, vec![]));
    let past = history::<String>(state.path()).unwrap();
    let news: Vec<&String> =
        past.records.iter().map(|(_, text)| text).filter(|text| text.starts_with("rec")).collect();
    let first: usize = news[0].split(' ').nth(1).unwrap().parse().unwrap();
    assert_eq!(news.len(), 400 - first, "every kept record once");
    assert_eq!(past.damage, []);
}

#[test]
fn checkpoint_above_segment_size_does_not_rotate_each_record() {
    let state = tempfile::tempdir().unwrap();
    let mut ledger = open(state.path(), SMALL).ledger;
    let large: Vec<String> = (0..20).map(|_| "y".repeat(250)).collect();
    ledger.rotate(&large).unwrap();
    assert!(!ledger.rotation_due());
    let mut written = 0;
    while !ledger.rotation_due() {
        write(&mut ledger, &[&"z".repeat(200)]);
        written += 1;
    }
    assert!(written >= 20, "{written}");
}

#[test]
fn damaged_or_missing_old_segment_is_reported_and_ledger_opens() {
    let state = tempfile::tempdir().unwrap();
    let mut ledger = open(state.path(), SMALL).ledger;
    for number in 0..3 {
        write(&mut ledger, &["news", "more news"]);
        ledger.rotate(&[format!("all {number}")]).unwrap();
    }
    drop(ledger);
    assert_eq!(segments(state.path()), ["0000000002.jsonl", "0000000003.jsonl", "0000000004.jsonl"]);
    let middle = segment(state.path(), 3);
    let whole = fs::read_to_string(&middle).unwrap();
    fs::write(&middle, whole.replace("\"all 1\"", "\"all 9\"")).unwrap();
    let opened = open(state.path(), SMALL);
    assert_eq!(opened.records, ["all 2"]);
    let [Repair::HistoryDamaged { segment, line: Some(2), .. }] = &opened.repairs[..] else {
        panic!("{:?}", opened.repairs);
    };
    assert_eq!(*segment, SegmentNumber(3));
    drop(opened);
    fs::remove_file(&middle).unwrap();
    let opened = open(state.path(), SMALL);
    assert!(
        matches!(&opened.repairs[..], [Repair::HistoryDamaged { segment: SegmentNumber(2), .. }]),
        "{:?}",
        opened.repairs
    );
}

#[test]
fn too_much_is_refused_and_leaves_the_ledger_as_it_was() {
    let state = tempfile::tempdir().unwrap();
    let mut ledger = open(state.path(), SMALL).ledger;
    let error = ledger.append(&"x".repeat(299)).unwrap_err();
    assert!(matches!(error, AppendError::TooLarge { bytes: 301, most: 300 }), "{error}");
    let mut taken = 0;
    let error = loop {
        match ledger.append(&"x".repeat(100)) {
            Ok(_) => taken += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, AppendError::BatchFull { .. }), "{error}");
    assert_eq!(taken, 7, "1,000 bytes of lines of about 140");
    ledger.sync().unwrap();
    write(&mut ledger, &["after"]);
    drop(ledger);
    assert_eq!(open(state.path(), SMALL).records.len(), taken + 1);
}

#[test]
fn files_are_for_their_owner_only() {
    use std::os::unix::fs::PermissionsExt;
    let state = tempfile::tempdir().unwrap();
    let _ledger = open(state.path(), SMALL);
    for name in ["ledger", "ledger/lock", "ledger/0000000001.jsonl"] {
        let mode = fs::metadata(state.path().join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{name} has mode {mode:o}");
    }
}

#[test]
fn reader_of_missing_ledger_finds_and_creates_nothing() {
    let state = tempfile::tempdir().unwrap();
    let nowhere = state.path().join("absent");
    assert_eq!(read_only::<String>(&nowhere).unwrap().records, Vec::<String>::new());
    assert_eq!(history::<String>(&nowhere).unwrap().records, []);
    assert!(!nowhere.exists());
}

#[test]
fn a_reader_beside_a_busy_writer_always_reads_a_first_part() {
    let state = tempfile::tempdir().unwrap();
    let mut ledger = open(state.path(), SMALL).ledger;
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0..600_u32 {
                ledger.append(&format!("{number} {}", "x".repeat(number as usize % 90))).unwrap();
                if number % 3 == 0 {
                    ledger.sync().unwrap();
                }
                if ledger.rotation_due() {
                    ledger.rotate(&[format!("{number} all")]).unwrap();
                }
            }
            ledger.sync().unwrap();
            done.store(true, std::sync::atomic::Ordering::SeqCst);
        });
        let mut last_seen = 0;
        while !done.load(std::sync::atomic::Ordering::SeqCst) {
            let records = read_only::<String>(state.path()).unwrap().records;
            let numbers: Vec<u32> =
                records.iter().map(|text| text.split(' ').next().unwrap().parse().unwrap()).collect();
            assert!(numbers.windows(2).all(|pair| pair[1] == pair[0] + 1), "{numbers:?}");
            let newest = numbers.last().copied().unwrap_or(0);
            assert!(newest >= last_seen, "{newest} after {last_seen}");
            last_seen = newest;
            history::<String>(state.path()).unwrap();
        }
        assert!(last_seen > 0);
    });
}

proptest! {
    // Each case waits for a dozen fsyncs; the tests of `segment` cut every single byte.
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn cut_in_last_batch_keeps_all_records_synced_before(
        batches in prop::collection::vec(prop::collection::vec("[ -~]{0,60}", 1..4), 1..8),
        fraction in 0.0..1.0_f64,
    ) {
        let state = tempfile::tempdir().unwrap();
        let mut ledger = open(state.path(), Config::STANDARD).ledger;
        let file = segment(state.path(), 1);
        let mut synced_bytes = fs::metadata(&file).unwrap().len();
        let mut whole_bytes = synced_bytes;
        for batch in &batches {
            synced_bytes = whole_bytes;
            for record in batch {
                ledger.append(record).unwrap();
            }
            ledger.sync().unwrap();
            whole_bytes = fs::metadata(&file).unwrap().len();
        }
        drop(ledger);
        let cut = synced_bytes + ((whole_bytes - synced_bytes) as f64 * fraction) as u64;
        fs::OpenOptions::new().write(true).open(&file).unwrap().set_len(cut).unwrap();
        let opened = open(state.path(), Config::STANDARD);
        let all: Vec<String> = batches.concat();
        let certain = all.len() - batches.last().map_or(0, Vec::len);
        prop_assert!(opened.records.len() >= certain);
        prop_assert!(all.starts_with(&opened.records));
    }
}

/// A start that ends before its first heartbeat has looked at nothing: the next one knows since when nothing was watched.
#[test]
fn start_without_heartbeat_was_not_alive() {
    let directory = tempfile::tempdir().unwrap();
    let open = |now_ms: i64| {
        let holder = Holder::this_process("run", now_ms);
        Ledger::<String>::open(directory.path(), &holder, Config::STANDARD).unwrap()
    };
    let first = open(0);
    first.ledger.heartbeat(7_000).unwrap();
    drop(first);
    for hours in [5, 6] {
        assert_eq!(open(hours * 3_600_000).last_alive_ms, Some(7_000));
    }
}

/// A lock file that was removed or emptied: since when nothing was watched stays unknown until a process beats.
#[test]
fn lost_lock_file_leaves_last_alive_unknown_until_a_beat() {
    let directory = tempfile::tempdir().unwrap();
    let lock = directory.path().join("ledger/lock");
    let open = |now_ms: i64| {
        let holder = Holder::this_process("run", now_ms);
        Ledger::<String>::open(directory.path(), &holder, Config::STANDARD).unwrap()
    };
    let alive = || read_only::<String>(directory.path()).unwrap().alive_ms;
    let losses: [&dyn Fn(); 2] = [&|| fs::remove_file(&lock).unwrap(), &|| fs::write(&lock, "").unwrap()];
    for lost in losses {
        open(1_000).ledger.heartbeat(7_000).unwrap();
        lost();
        for start in [60_000, 120_000] {
            assert_eq!((open(start).last_alive_ms, alive()), (None, None));
        }
        let third = open(180_000);
        assert_eq!(third.last_alive_ms, None);
        third.ledger.heartbeat(190_000).unwrap();
        drop(third);
        assert_eq!((open(200_000).last_alive_ms, alive()), (Some(190_000), Some(190_000)));
    }
}

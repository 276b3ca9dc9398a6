//! A disk that is really full: by a file size limit of the kernel, and by a file system with no room left.
//!
//! The child is this test program, started again under the limit. It writes until a write is refused, checks what the
//! error promised, makes room, and goes on. Then the parent reads the ledger.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests may fail the test they help")]

use std::path::Path;
use std::process::{Command, Output};

use reveille_record::recording::{RecordingConfig, RecordingReader, RecordingWriter};
use reveille_record::{Config, Holder, Ledger, RotateError, SyncError, read_only};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

const STATE: &str = "REVEILLE_RECORD_FULL_STATE";
const BALLAST: &str = "ballast";
const CHILD: [&str; 3] = ["--exact", "child_that_fills_the_disk", "--nocapture"];

fn open(state: &Path) -> (Ledger<String>, Vec<String>) {
    let opened = Ledger::open(state, &Holder::this_process("disk test", 0), Config::STANDARD).unwrap();
    (opened.ledger, opened.records)
}

/// Runs only in the child; in an ordinary test run it does nothing.
#[test]
fn child_that_fills_the_disk() {
    let Some(state) = std::env::var_os(STATE) else { return };
    let state = Path::new(&state);
    let (mut ledger, _) = open(state);
    let (mut kept, mut round) = (Vec::new(), 0);
    let error = loop {
        let batch: Vec<String> = (0..3).map(|n| format!("{round} {n} {}", "x".repeat(300))).collect();
        for record in &batch {
            ledger.append(record).unwrap();
        }
        match ledger.sync() {
            Ok(_) => kept.extend(batch),
            Err(error) => break error,
        }
        round += 1;
        assert!(round < 10_000, "the disk never became full");
    };
    let not_kept = error.not_kept().unwrap();
    assert!(matches!(error, SyncError::NotWritten { .. }), "{error}");
    assert_eq!(not_kept.end.0 - not_kept.start.0, 3);
    assert_eq!(read_only::<String>(state).unwrap().records, kept, "nothing of the refused batch is there");
    // The checkpoint does not fit either; the current segment goes on.
    let large: Vec<String> = (0..200).map(|_| "y".repeat(3_000)).collect();
    assert!(matches!(ledger.rotate(&large), Err(RotateError::NotWritten { .. })));
    make_room(state);
    let number = ledger.append(&"after".to_owned()).unwrap();
    assert_eq!(number, not_kept.start, "the refused numbers are given again");
    ledger.sync().unwrap();
    kept.push("after".into());
    assert_eq!(read_only::<String>(state).unwrap().records, kept);
    drop(ledger);
    assert_eq!(open(state).1, kept);
    println!("\nkept {}", kept.len());
}

fn make_room(state: &Path) {
    let ballast = state.join(BALLAST);
    if ballast.exists() {
        std::fs::remove_file(ballast).unwrap();
    }
    let now = getrlimit(Resource::Fsize);
    setrlimit(Resource::Fsize, Rlimit { current: now.maximum, maximum: now.maximum }).unwrap();
}

fn check(output: &Output) {
    let (said, told) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && said.contains("\nkept "), "{said}\n{told}");
}

#[test]
fn file_size_limit_refuses_whole_batch_and_later_ones_succeed() {
    let state = tempfile::tempdir().unwrap();
    // Ignored signals stay ignored in the child, so it gets the error and is not killed.
    let output = Command::new("sh")
        .args(["-c", "trap '' XFSZ; ulimit -S -f 64; exec \"$@\"", "sh"])
        .arg(std::env::current_exe().unwrap())
        .args(CHILD)
        .env(STATE, state.path())
        .output()
        .unwrap();
    check(&output);
}

#[test]
fn full_file_system_refuses_whole_batch_and_later_ones_succeed() {
    let state = tempfile::tempdir().unwrap();
    let mount = |with: &[&str], then: &str| {
        let script =
            "mount -t tmpfs -o size=1024k,mode=0700 ledger-test \"$0\" || exit 99; ".to_owned() + then;
        let mut command = Command::new("unshare");
        command.args(with).args(["sh", "-c", &script]).arg(state.path()).env(STATE, state.path());
        command
    };
    let ways: [&[&str]; 2] = [&["--mount"], &["--user", "--map-root-user", "--mount"]];
    let works = |with: &&&[&str]| mount(with, "true").output().is_ok_and(|output| output.status.success());
    let Some(with) = ways.iter().find(works) else {
        // The test of the file size limit above covers the same code.
        eprintln!("not run: this system does not allow the test to mount a file system");
        return;
    };
    // The ballast fills more than half: an opening copies the newest segment, and needs room for it twice.
    let then = format!("head -c 600000 /dev/zero >\"$0/{BALLAST}\"; exec \"$@\"");
    let output = mount(with, &then).arg(std::env::current_exe().unwrap()).args(CHILD).output().unwrap();
    check(&output);
}

/// Runs only in the child; in an ordinary test run it does nothing.
#[test]
fn child_that_fills_a_recording() {
    let Some(root) = std::env::var_os(STATE) else { return };
    let config = RecordingConfig { frame_bytes_max: 4 << 10, ..RecordingConfig::STANDARD };
    let mut recording = RecordingWriter::create(Path::new(&root), "run", config).unwrap();
    let mut number = 0_u64;
    let error = loop {
        // Hardly two of these lines are alike, so they stay large after compression.
        number += 1;
        let noise: String =
            (1..40).map(|n| format!("{:x}", (number * 64 + n).wrapping_mul(0x9e37_79b9_7f4a_7c15))).collect();
        if let Err(error) = recording.append(format!("{{\"n\":{number},\"x\":\"{noise}\"}}").as_bytes()) {
            break error;
        }
        assert!(number < 100_000, "the disk never became full");
    };
    recording.stop(&error.to_string());
    println!("\nkept {number}");
}

#[test]
fn recording_on_full_disk_ends_with_whole_frame_and_notice() {
    let root = tempfile::tempdir().unwrap();
    let output = Command::new("sh")
        .args(["-c", "trap '' XFSZ; ulimit -S -f 64; exec \"$@\"", "sh"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "child_that_fills_a_recording", "--nocapture"])
        .env(STATE, root.path())
        .output()
        .unwrap();
    check(&output);
    let mut reader = RecordingReader::open(&root.path().join("run")).unwrap();
    let mut lines = 0;
    while reader.next_line().unwrap().is_some() {
        lines += 1;
    }
    assert!(lines > 10, "{lines}");
    let ending = reader.ending();
    assert_eq!(ending.torn_bytes, 0, "a part of a frame was cut off");
    assert!(ending.notice.as_ref().unwrap().contains("cannot write"), "{ending:?}");
}

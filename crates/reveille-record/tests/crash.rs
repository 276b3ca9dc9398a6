//! A process is killed with SIGKILL while it writes: no acknowledged record is lost.
//!
//! The child is this test program, started again with a state directory in its environment. It appends, syncs and rotates
//! as fast as it can. It prints each acknowledged number on its standard output, which the parent reads.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests may fail the test they help")]

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use reveille_record::{Config, Fence, Holder, Ledger, Opened, Repair};

const STATE: &str = "REVEILLE_RECORD_CRASH_STATE";
const CONFIG: Config =
    Config { segment_bytes_max: 8_000, segments_kept: 1, record_bytes_max: 5_000, batch_bytes_max: 50_000 };
const ROUNDS: u64 = 15;

fn open(state: &Path) -> Opened<(u64, String)> {
    Ledger::open(state, &Holder::this_process("crash test", 0), CONFIG).unwrap()
}

/// Runs only in the child; in an ordinary test run it does nothing.
#[test]
fn child_that_writes_until_it_is_killed() {
    let Some(state) = std::env::var_os(STATE) else { return };
    let opened = open(Path::new(&state));
    let mut ledger = opened.ledger;
    let mut number = opened.records.last().map_or(0, |record| record.0);
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(30) {
        for _ in 0..number % 4 + 1 {
            number += 1;
            ledger.append(&(number, "x".repeat((number * 37 % 900) as usize))).unwrap();
        }
        ledger.sync().unwrap();
        println!("\nack {number}");
        if ledger.rotation_due() {
            ledger.rotate(&[(number, "all until here".to_owned())]).unwrap();
        }
    }
}

/// Starts the child, kills it `after` its first line of output, and returns the highest number that it acknowledged.
fn run_and_kill(state: &Path, after: Duration) -> u64 {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child_that_writes_until_it_is_killed", "--nocapture"])
        .env(STATE, state)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut text = String::new();
    while !text.contains("ack ") && output.read_line(&mut text).unwrap() > 0 {}
    std::thread::sleep(after);
    child.kill().unwrap();
    child.wait().unwrap();
    output.read_to_string(&mut text).unwrap();
    let whole_lines = text.rsplit_once('\n').map_or("", |(whole, _cut)| whole);
    let acknowledged = whole_lines.lines().filter_map(|line| line.strip_prefix("ack ")?.parse().ok());
    acknowledged.max().expect("the child acknowledged something")
}

#[test]
fn nothing_acknowledged_is_lost_when_the_process_is_killed() {
    let state = tempfile::tempdir().unwrap();
    let mut last_fence = Fence(0);
    for round in 0..ROUNDS {
        let acknowledged = run_and_kill(state.path(), Duration::from_millis(3 + round * 29 % 97));
        let opened = open(state.path());
        let numbers: Vec<u64> = opened.records.iter().map(|record| record.0).collect();
        let newest = numbers.last().copied().unwrap_or(0);
        assert!(newest >= acknowledged, "{acknowledged} was acknowledged, {newest} is the newest found");
        assert!(numbers.windows(2).all(|pair| pair[1] == pair[0] + 1), "{numbers:?}");
        assert!(opened.fence.0 >= last_fence.0 + 2, "the child had one, too");
        let harmless = |repair: &Repair| {
            matches!(
                repair,
                Repair::TornTail { .. } | Repair::UnfinishedRotation { .. } | Repair::MissingNewline { .. }
            )
        };
        assert!(opened.repairs.iter().all(harmless), "{:?}", opened.repairs);
        last_fence = opened.fence;
    }
}

//! A process without a free descriptor: a rotation either fails as a whole or succeeds as a whole, and the ledger goes on.
//!
//! This program has only one test, because the limit applies to the whole process.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail by panicking")]

use std::fs::File;
use std::os::fd::AsRawFd;

use reveille_record::{Config, Holder, Ledger, RotateError, read_only};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Leaves room for this many more descriptors.
fn leave(room: u64) {
    let next = File::open("/").unwrap().as_raw_fd();
    let limit = Rlimit { current: Some(u64::try_from(next).unwrap() + room), ..getrlimit(Resource::Nofile) };
    setrlimit(Resource::Nofile, limit).unwrap();
}

#[test]
fn rotation_without_free_descriptor_keeps_ledger_open() {
    let state = tempfile::tempdir().unwrap();
    let holder = Holder::this_process("descriptors", 0);
    let mut ledger = Ledger::<String>::open(state.path(), &holder, Config::STANDARD).unwrap().ledger;
    let before = getrlimit(Resource::Nofile);
    for room in 0..3 {
        leave(room);
        let rotated = ledger.rotate(&["kept".to_owned()]);
        setrlimit(Resource::Nofile, before).unwrap();
        match rotated {
            Ok(_) => assert!(room > 0, "a segment came in without a descriptor"),
            Err(error) => {
                assert!(room == 0 && matches!(error, RotateError::NotWritten { .. }), "room {room}: {error}");
            }
        }
        ledger.append(&format!("after {room}")).unwrap();
        ledger.sync().unwrap();
    }
    drop(ledger);
    let records = read_only::<String>(state.path()).unwrap().records;
    assert_eq!(records, ["kept", "after 2"]);
}

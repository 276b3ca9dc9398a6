//! A process that really crashes, with a token in its memory: what it leaves on the disk, with and without the guard.
//!
//! The child is the same program; its environment says which of the two cases it is. Where the operating system allows no
//! dumps (the hard limit is 0), the test shows only that the guard is set, and reports that the rest was not shown.

#![allow(clippy::unwrap_used, reason = "in a test, what cannot be is a failure")]

use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, ExitStatus};

use reveille_node::undumped::never_dumped;
use rustix::process::{DumpableBehavior, Resource, Rlimit, dumpable_behavior, getrlimit, setrlimit};

/// The case of this child.
const CHILD: &str = "REVEILLE_TEST_CRASHES";
/// In two parts, so that the whole token is only in the memory and not in the program.
const TOKEN: [&str; 2] = ["abcdef.c4nary", "c4naryc4na"];

fn crash(is_guarded: bool) -> ! {
    // As on a machine where an operator has enabled dumps.
    let most = getrlimit(Resource::Core).maximum;
    setrlimit(Resource::Core, Rlimit { current: most, maximum: most }).unwrap();
    if is_guarded {
        never_dumped().unwrap();
        let stands = dumpable_behavior().unwrap() == DumpableBehavior::NotDumpable;
        let limit = getrlimit(Resource::Core);
        if !stands || (limit.current, limit.maximum) != (Some(0), Some(0)) {
            std::process::exit(3);
        }
    }
    let token = std::hint::black_box(TOKEN.concat());
    if token.is_empty() {
        std::process::exit(4);
    }
    std::process::abort()
}

/// How the child ended, and whether the token is in a file that it left.
fn crashed(folder: &Path, is_guarded: bool) -> (ExitStatus, bool, usize) {
    let status = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "the_memory_of_a_process_that_crashes_stays_its_own", "--nocapture"])
        .env(CHILD, if is_guarded { "guarded" } else { "open" })
        .current_dir(folder)
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .status()
        .unwrap();
    let left: Vec<Vec<u8>> =
        fs::read_dir(folder).unwrap().map(|entry| fs::read(entry.unwrap().path()).unwrap()).collect();
    let token = TOKEN.concat();
    let leaks = left.iter().any(|file| file.windows(token.len()).any(|part| part == token.as_bytes()));
    (status, leaks, left.len())
}

#[test]
fn the_memory_of_a_process_that_crashes_stays_its_own() {
    if let Ok(child) = std::env::var(CHILD) {
        crash(child == "guarded");
    }
    let folder = tempfile::tempdir().unwrap();
    let (status, leaks, files) = crashed(folder.path(), true);
    assert_eq!(status.signal(), Some(6), "it crashes, and the guard stood before: {status}");
    assert_eq!((status.core_dumped(), leaks, files), (false, false, 0));

    let folder = tempfile::tempdir().unwrap();
    let (status, leaks, _) = crashed(folder.path(), false);
    assert_eq!(status.signal(), Some(6), "{status}");
    let pattern = fs::read_to_string("/proc/sys/kernel/core_pattern").unwrap_or_default();
    if !status.core_dumped() {
        println!("not shown: on this system no process leaves a core (pattern {:?})", pattern.trim());
        return;
    }
    // Elsewhere the handler that collects cores gets it, and an account that can read cores can read it.
    let is_here = !pattern.starts_with(['|', '/']);
    assert!(leaks || !is_here, "the same process without the guard leaves its token in a core");
}

//! A process that may write the state directory, or a disk that spoils a number: what stands there is damage, and neither ends a
//! process of ours in a panic nor holds it up for ever.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests may fail the test they help")]

use std::fs;
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use reveille_record::{
    Config, FenceUnread, Holder, Ledger, OpenError, Opened, Pauses, read_fence, read_lossy, read_only,
};

fn open(state: &Path) -> Result<Opened<String>, OpenError> {
    Ledger::open(state, &Holder::this_process("test", 1_000), Config::STANDARD)
}

fn write_segment(state: &Path, name: &str, number: u64, fence: u64) {
    let payload =
        format!("\"n\":{number},\"b\":0,\"s\":{{\"format\":1,\"checkpoint\":0,\"fence\":{fence}}}}}");
    let line = format!("{{\"c\":\"{:08x}\",{payload}\n", crc32fast::hash(payload.as_bytes()));
    fs::write(state.join("ledger").join(name), line).unwrap();
}

/// The lock's card has no checksum, and its fence counts beside those of the ledger. One that no fence can follow ended each
/// start in a panic; without the check for overflow the next fence was 0, and a process that had lost the lead would have had it.
#[test]
fn fence_in_the_lock_file_that_none_can_follow_is_damage() {
    let state = tempfile::tempdir().unwrap();
    let path = state.path().join("ledger/lock");
    for fence in [u64::MAX, u64::MAX - 1, 1 << 63] {
        let first = open(state.path()).unwrap().fence;
        let card = fs::read_to_string(&path).unwrap();
        let forged = card.replace(&format!("\"fence\":{first},"), &format!("\"fence\":{fence},"));
        assert_ne!(card, forged);
        fs::write(&path, forged).unwrap();
        assert!(matches!(read_fence(state.path()), Err(FenceUnread::Unreadable { .. })), "{fence}");
        let next = open(state.path()).unwrap().fence;
        assert!(next > first, "{next:?} after {first:?}");
    }
}

/// The header's number is the first line's, and passes its checksum: CRC-32 is no signature.
#[test]
fn numbers_that_none_can_follow_are_damage_and_no_panic() {
    for (number, fence) in [(u64::MAX, 0), (1 << 63, 0), (7, u64::MAX), (7, u64::MAX - 1)] {
        let state = tempfile::tempdir().unwrap();
        drop(open(state.path()).unwrap());
        write_segment(state.path(), "0000000002.jsonl", number, fence);
        assert!(read_only::<String>(state.path()).is_err(), "{number}, {fence}");
        assert_eq!(read_lossy::<String>(state.path()).unwrap().records, []);
        let refused = open(state.path()).unwrap_err();
        assert!(matches!(refused, OpenError::Damaged(_)), "{refused:?}");
    }
}

/// A file of that name is no segment: the next rotation would have to count on from it.
#[test]
fn name_with_a_number_that_none_can_follow_is_no_segment() {
    let state = tempfile::tempdir().unwrap();
    drop(open(state.path()).unwrap());
    write_segment(state.path(), &format!("{}.jsonl", u64::MAX), 7, 0);
    let mut opened = open(state.path()).unwrap();
    assert_eq!(opened.ledger.rotate([&"all".to_owned()]).unwrap().segment.0, 2);
}

/// What `read` gives within a few seconds, on a thread of its own.
fn in_time<T: Send + 'static>(read: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, answer) = mpsc::channel();
    std::thread::spawn(move || done.send(read()));
    answer.recv_timeout(Duration::from_secs(5)).expect("a reader waits until another process opens the pipe")
}

fn make_pipe(path: &Path) {
    let _ = fs::remove_file(path);
    // No child process: until it has begun its program, it holds the locks of the tests beside this one.
    rustix::fs::mkfifoat(rustix::fs::CWD, path, rustix::fs::Mode::from_raw_mode(0o600)).unwrap();
}

/// A pipe in the place of the newest segment, of the lock file or of a pause: `status` and the next start waited for ever.
#[test]
fn pipe_in_the_place_of_a_file_stops_no_reader() {
    let state = tempfile::tempdir().unwrap();
    drop(open(state.path()).unwrap());
    fs::create_dir_all(state.path().join("pauses")).unwrap();
    make_pipe(&state.path().join("pauses/all.json"));
    let at = state.path().to_owned();
    let pauses = in_time(move || Pauses::of(&at).read().unwrap());
    assert_eq!(pauses.unreadable.len(), 1, "what cannot be read may cover anything");
    make_pipe(&state.path().join("ledger/lock"));
    let at = state.path().to_owned();
    let (fence, read) = in_time(move || (read_fence(&at), read_only::<String>(&at)));
    assert!(matches!(fence, Err(FenceUnread::Unreadable { .. })), "{fence:?}");
    assert!(read.is_ok_and(|reading| reading.holder.is_none()));
    fs::remove_file(state.path().join("ledger/lock")).unwrap();
    make_pipe(&state.path().join("ledger/0000000002.jsonl"));
    let at = state.path().to_owned();
    assert_eq!(in_time(move || (read_only::<String>(&at).is_err(), open(&at).is_err())), (true, true));
}

/// A process that may write the directory of the pauses, and no other one, knows the name under which the next pause is written
/// aside: the pause's name and the number of the process that writes it, which can be seen. It puts a link there. An operator
/// who pauses as root empties the file that the link leads to.
#[test]
fn pause_is_written_through_no_link() {
    let state = tempfile::tempdir().unwrap();
    let precious = state.path().join("precious");
    fs::write(&precious, "kept").unwrap();
    let pauses = state.path().join("pauses");
    fs::create_dir(&pauses).unwrap();
    std::os::unix::fs::symlink(&precious, pauses.join(format!(".roster.{}", std::process::id()))).unwrap();
    let pause = reveille_record::Pause {
        scope: reveille_record::PauseScope::Roster,
        by: "ann".into(),
        reason: "drivers".into(),
        at_ms: 1,
    };
    let set = Pauses::of(state.path()).set(&reveille_record::PauseName::of(&pause.scope), &pause);
    assert_eq!(fs::read_to_string(&precious).unwrap(), "kept", "{set:?}");
}

/// The same with the lock and with a segment that is being made: the lock's card is written over what the link leads to.
#[test]
fn ledger_is_written_through_no_link() {
    let mut spoilt = Vec::new();
    for name in ["lock", "0000000001.jsonl.new", "0000000002.jsonl.new"] {
        let state = tempfile::tempdir().unwrap();
        let precious = state.path().join("precious");
        fs::write(&precious, "kept").unwrap();
        let ledger = state.path().join("ledger");
        fs::create_dir(&ledger).unwrap();
        std::os::unix::fs::symlink(&precious, ledger.join(name)).unwrap();
        if let Ok(mut opened) = open(state.path()) {
            drop(opened.ledger.rotate([&"all".to_owned()]));
        }
        if fs::read_to_string(&precious).unwrap() != "kept" {
            spoilt.push(name);
        }
    }
    assert!(spoilt.is_empty(), "{spoilt:?}");
}

/// The pauses are read every two seconds, and each is a few hundred bytes. A file of a gigabyte, which takes no room on the disk,
/// costs as much memory and a second each time: it is to be refused by its length.
#[test]
fn pause_of_a_gigabyte_is_not_read() {
    let state = tempfile::tempdir().unwrap();
    let pauses = state.path().join("pauses");
    fs::create_dir(&pauses).unwrap();
    let file = fs::File::create(pauses.join("roster.json")).unwrap();
    file.set_len(300 << 20).unwrap();
    let read = Pauses::of(state.path()).read().unwrap();
    let why = format!("{:?}", read.unreadable);
    assert!(why.contains("bytes, and at most"), "it was read: {why}");
}

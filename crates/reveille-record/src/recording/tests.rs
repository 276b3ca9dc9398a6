//! Tests of recordings on a real disk: writing, reading, cuts, changed bytes and the size limit.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::*;

const SMALL: RecordingConfig =
    RecordingConfig { segment_bytes_max: 4096, total_bytes_max: 1 << 20, frame_bytes_max: 1024 };

/// A line that hardly compresses, so that a test reaches the limits.
fn line(number: u64) -> String {
    let noise: Vec<String> = (0..8)
        .map(|n| format!("{:016x}", (number * 8 + n + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)))
        .collect();
    format!("{{\"n\":{number},\"x\":\"{}\"}}", noise.concat())
}

fn recorded(root: &Path, run: &str, lines: u64) -> PathBuf {
    let mut writer = RecordingWriter::create(root, run, SMALL).unwrap();
    for number in 0..lines {
        writer.append(line(number).as_bytes()).unwrap();
    }
    let directory = writer.directory().to_owned();
    writer.end().unwrap();
    directory
}

fn read(path: &Path) -> Result<(Vec<String>, RecordingEnding), RecordingError> {
    let mut reader = RecordingReader::open(path)?;
    let mut lines = Vec::new();
    while let Some(line) = reader.next_line()? {
        lines.push(String::from_utf8(line.bytes).unwrap());
    }
    Ok((lines, reader.ending().clone()))
}

#[test]
fn what_was_written_is_read_over_many_segments() {
    let root = TempDir::new().unwrap();
    let directory = recorded(root.path(), "a", 500);
    assert!(std::fs::read_dir(&directory).unwrap().count() > 5, "several segments");
    let (lines, ending) = read(&directory).unwrap();
    assert_eq!(lines, (0..500).map(line).collect::<Vec<_>>());
    assert_eq!(ending, RecordingEnding { torn_bytes: 0, notice: None });
}

#[test]
fn every_cut_of_the_end_reads_as_what_was_whole_before_it() {
    let root = TempDir::new().unwrap();
    let directory = recorded(root.path(), "a", 20);
    let last = directory.join(file_name(1));
    let bytes = std::fs::read(&last).unwrap();
    let whole: Vec<String> = (0..20).map(line).collect();
    let mut counts = Vec::new();
    for cut in 0..bytes.len() {
        std::fs::write(&last, &bytes[..cut]).unwrap();
        let (lines, ending) = read(&directory).unwrap();
        assert_eq!(lines, whole[..lines.len()], "cut at {cut}");
        let at_a_border = ending.torn_bytes == 0;
        assert!(at_a_border || lines.len() < 20, "cut at {cut}");
        counts.push(lines.len());
    }
    assert!(counts.is_sorted() && counts.last() > Some(&10), "a longer rest never reads as less");
}

#[test]
fn no_changed_byte_passes_and_its_place_is_named() {
    let root = TempDir::new().unwrap();
    let directory = recorded(root.path(), "a", 20);
    let path = directory.join(file_name(1));
    let bytes = std::fs::read(&path).unwrap();
    for place in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[place] ^= 0x10;
        std::fs::write(&path, changed).unwrap();
        let error = read(&directory).unwrap_err();
        let said = error.to_string();
        assert!(said.contains(&file_name(1)), "{said}");
        let placed = matches!(&error, RecordingError::Damaged { byte, .. } if *byte <= place);
        assert!(placed || place < frame::PREFACE.len(), "byte {place}: {said}");
    }
}

#[test]
fn a_hole_and_a_cut_in_the_middle_are_refused() {
    let root = TempDir::new().unwrap();
    let directory = recorded(root.path(), "a", 200);
    let second = directory.join(file_name(2));
    let bytes = std::fs::read(&second).unwrap();
    std::fs::write(&second, &bytes[..bytes.len() - 3]).unwrap();
    assert!(read(&directory).unwrap_err().to_string().contains("a later segment follows"));
    std::fs::remove_file(&second).unwrap();
    assert!(matches!(read(&directory), Err(RecordingError::Missing { number: 2, .. })));
}

#[test]
fn newer_formats_and_strangers_are_refused_by_name() {
    let root = TempDir::new().unwrap();
    let path = root.path().join("x");
    for (content, expected) in [
        ("reveille-tape 2\nxxxx", "recording format 2"),
        ("reveille-tape 12\nxxx", "recording format 12"),
        ("PK\u{3}\u{4} something else", "is no recording"),
    ] {
        std::fs::write(&path, content).unwrap();
        let said = read(&path).unwrap_err().to_string();
        assert!(said.contains(expected), "{content:?}: {said}");
    }
    assert!(matches!(read(root.path()), Err(RecordingError::None { .. })));
    std::fs::write(&path, "{\"a\":1}\n{\"b\":2}\n").unwrap();
    assert_eq!(read(&path).unwrap().0, ["{\"a\":1}", "{\"b\":2}"], "plain lines are a recording, too");
}

#[test]
fn killed_process_leaves_notice_and_all_flushed_lines() {
    let root = TempDir::new().unwrap();
    let mut writer = RecordingWriter::create(root.path(), "a", SMALL).unwrap();
    writer.append(b"{\"a\":1}").unwrap();
    writer.flush().unwrap();
    writer.append(b"{\"b\":2}").unwrap();
    let directory = writer.directory().to_owned();
    std::mem::forget(writer);
    let (lines, ending) = read(&directory).unwrap();
    assert_eq!(lines, ["{\"a\":1}"]);
    assert!(ending.notice.unwrap().contains("was killed"));
}

#[test]
fn oldest_runs_are_removed_first_and_run_over_bound_ends() {
    let root = TempDir::new().unwrap();
    let bound = RecordingConfig { total_bytes_max: 20_000, ..SMALL };
    for run in ["a", "b", "c"] {
        recorded(root.path(), run, 80);
    }
    let mut writer = RecordingWriter::create(root.path(), "d", bound).unwrap();
    assert_eq!(runs(root.path()).unwrap().len(), 3, "the oldest went to make room");
    assert!(!root.path().join("a").exists());
    let mut number = 0;
    let error = loop {
        if let Err(error) = writer.append(line(number).as_bytes()) {
            break error;
        }
        number += 1;
        assert!(number < 10_000, "the bound is never reached");
    };
    assert!(matches!(error, RecordingError::Full { .. }), "{error}");
    writer.stop(&error.to_string());
    assert_eq!(runs(root.path()).unwrap(), [root.path().join("d")]);
    let (lines, ending) = read(&root.path().join("d")).unwrap();
    assert!(lines.len() > 80);
    assert!(ending.notice.unwrap().contains("this run alone fills the 20000 bytes"));
}

//! The time that a line of backslashes costs: a process that writes a log, a disk or a bundle can write one.

use std::time::{Duration, Instant};

use reveille_diagnose::scan::Scanner;
use reveille_diagnose::{Catalogue, Reader};

/// The longest line that is read of a bundle. What `doctor` reads of a log has no such bound: a line has up to 4 MiB there.
const LINE_BYTES: usize = 16 << 10;

fn cost(scanner: &Scanner<'_>, line: &str) -> Duration {
    let mut reader = Reader::new(scanner);
    let begun = Instant::now();
    reader.text("kubelet.log", line);
    begun.elapsed()
}

#[test]
fn line_of_backslashes_is_scanned_in_bounded_time() {
    let catalogue = Catalogue::built_in().unwrap();
    let scanner = Scanner::new(&catalogue).unwrap();
    let plain = cost(&scanner, &"a ".repeat(LINE_BYTES / 2));
    let (short, long) = (
        cost(&scanner, &format!("{}x", "\\".repeat(LINE_BYTES / 2))),
        cost(&scanner, &format!("{}x", "\\".repeat(LINE_BYTES))),
    );
    println!(
        "{long:?} for {LINE_BYTES} backslashes, {short:?} for half of them, {plain:?} for as many letters"
    );
    assert!(long < Duration::from_millis(20).max(20 * plain), "{long:?}, and {plain:?} for letters");
}

/// Twice the line costs four times as much, and the line that a doctor reads may be 256 times as long: hours.
#[test]
fn text_in_memory_is_scanned_by_lines_of_bounded_length() {
    let catalogue = Catalogue::built_in().unwrap();
    let scanner = Scanner::new(&catalogue).unwrap();
    let bounded = cost(&scanner, &format!("{}x", "\\".repeat(LINE_BYTES)));
    let longer = cost(&scanner, &format!("{}x", "\\".repeat(3 * LINE_BYTES)));
    println!("{bounded:?} for {LINE_BYTES} bytes, {longer:?} for three times as many");
    assert!(
        longer < 2 * bounded.max(Duration::from_millis(20)),
        "{longer:?}, and {bounded:?} for the longest line of a bundle"
    );
}

/// The controller judges the console of each machine that does not come. Of a console 64 KiB are kept, four times as much.
#[test]
fn console_of_backslashes_is_judged_in_bounded_time() {
    let judge = reveille_diagnose::Judge::built_in().unwrap();
    let cost = |console: &str| {
        let begun = Instant::now();
        drop(judge.log_findings(Ok(console), &[]));
        begun.elapsed()
    };
    let plain = cost(&"a ".repeat(LINE_BYTES / 2));
    let hostile = cost(&format!("{}x", "\\".repeat(LINE_BYTES)));
    println!("{hostile:?} for a console of {LINE_BYTES} backslashes, {plain:?} for one of letters");
    assert!(hostile < Duration::from_millis(100).max(10 * plain), "{hostile:?}, and {plain:?} for letters");
}

//! The time and the memory that the names of an archive's members cost.

use std::io::Read;
use std::time::{Duration, Instant};

use reveille_diagnose::scan::Scanner;
use reveille_diagnose::sources::{Intake, Limits};
use reveille_diagnose::{Catalogue, Reader};

const BLOCK: usize = 512;

fn block(name: &str, kind: u8, size: usize) -> Vec<u8> {
    let mut header = vec![0_u8; BLOCK];
    header[..name.len()].copy_from_slice(name.as_bytes());
    header[100..107].copy_from_slice(b"0000644");
    header[124..135].copy_from_slice(format!("{size:011o}").as_bytes());
    header[148..156].copy_from_slice(b"        ");
    header[156] = kind;
    header[257..263].copy_from_slice(b"ustar\0");
    header[263..265].copy_from_slice(b"00");
    let sum: u64 = header.iter().map(|byte| u64::from(*byte)).sum();
    header[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
    header
}

/// An archive with one empty member of this long name, as GNU tar writes it.
fn archive(name: &str) -> Vec<u8> {
    let mut bytes = block("././@LongLink", b'L', name.len());
    bytes.extend_from_slice(name.as_bytes());
    bytes.resize(bytes.len().next_multiple_of(BLOCK), 0);
    bytes.extend(block("x", b'0', 0));
    bytes.resize(bytes.len() + 2 * BLOCK, 0);
    bytes
}

fn cost(scanner: &Scanner<'_>, name: &str) -> Duration {
    let mut reader = Reader::new(scanner);
    let mut intake = Intake::new(&mut reader, Limits::default());
    let bytes = archive(name);
    let begun = Instant::now();
    intake.take("x.tar", &mut bytes.as_slice());
    begun.elapsed()
}

/// A name of 64 KiB is taken, each folder of it can begin a pattern, and each behind it can end one: an archive of a few hundred
/// KiB, packed, has thousands of them.
#[test]
fn member_name_of_many_folders_is_scanned_in_bounded_time() {
    let catalogue = Catalogue::built_in().unwrap();
    let scanner = Scanner::new(&catalogue).unwrap();
    let bytes = 16 << 10;
    let folders = bytes / 2 / "sos_commands/".len();
    let hostile = "sos_commands/".repeat(folders) + &"a/".repeat(bytes / 4) + "x";
    let plain = "sos_commands/".to_owned() + &"a".repeat(hostile.len() - 13);
    let (plain, hostile) = (cost(&scanner, &plain), cost(&scanner, &hostile));
    println!("{hostile:?} for one member with a name of {bytes} bytes, {plain:?} for a name of one folder");
    assert!(hostile < Duration::from_millis(100).max(20 * plain), "{hostile:?}, and {plain:?} for another");
}

/// The most memory that this process ever had, KiB.
#[cfg(target_os = "linux")]
fn peak_kib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().split(' ').next()?.parse().ok()
}

/// Packed, such a record is a hundred KiB.
#[test]
#[cfg(target_os = "linux")]
fn a_name_of_hundreds_of_mebibytes_is_not_kept() {
    const SIZE: usize = 192 << 20;
    let catalogue = Catalogue::built_in().unwrap();
    let scanner = Scanner::new(&catalogue).unwrap();
    for kind in [b'x', b'L'] {
        let mut reader = Reader::new(&scanner);
        let mut intake = Intake::new(&mut reader, Limits::default());
        let (header, end) = (block("long", kind, SIZE), [block("x", b'0', 0), vec![0; 2 * BLOCK]].concat());
        let archive = header.as_slice().chain(std::io::repeat(b'a').take(SIZE as u64)).chain(end.as_slice());
        let before = peak_kib().unwrap();
        intake.take("x.tar", &mut std::io::BufReader::new(archive));
        let more = peak_kib().unwrap().saturating_sub(before);
        assert!(more < 32 << 10, "{more} KiB for a name of {} MiB", SIZE >> 20);
        assert_eq!(intake.inputs.len(), 2, "{:?}", intake.inputs);
    }
}

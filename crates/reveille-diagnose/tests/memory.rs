//! What a small bundle of an attacker may make `diagnose` hold.

#![allow(clippy::unwrap_used, reason = "in a test, what cannot be is a failure")]

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use reveille_diagnose::scan::Scanner;
use reveille_diagnose::sources::{Input, Intake, Limits, case};
use reveille_diagnose::{Catalogue, Reader};

/// A header of a tar archive, with this field for the size.
fn header(kind: u8, size: &[u8; 12]) -> [u8; 512] {
    let mut block = [0; 512];
    block[..1].copy_from_slice(b"x");
    block[100..108].copy_from_slice(b"0000600\0");
    block[124..136].copy_from_slice(size);
    block[156] = kind;
    block[257..265].copy_from_slice(b"ustar\x0000");
    block[148..156].copy_from_slice(b"        ");
    let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    block
}

fn octal(size: usize) -> [u8; 12] {
    format!("{size:011o}\0").into_bytes().try_into().unwrap()
}

/// An archive of empty members, each with a name of its own that is as long as one that is shown.
fn of_long_names(members: usize) -> Vec<u8> {
    let mut archive = Vec::new();
    for number in 0..members {
        let name = format!("{number:06}{}", "\u{10ffff}".repeat(994));
        let record = format!("{} path={name}\n", name.len() + 11);
        archive.extend(header(b'x', &octal(record.len())));
        archive.extend(record.as_bytes());
        archive.resize(archive.len().next_multiple_of(512), 0);
        archive.extend(header(b'0', &octal(0)));
    }
    archive.extend([0; 1024]);
    archive
}

/// What is kept of each source, and the names that the reader keeps, bytes.
fn taken(bytes: &[u8], name: &str) -> (Vec<Input>, usize) {
    let catalogue = Catalogue::built_in().unwrap();
    let scanner = Scanner::new(&catalogue).unwrap();
    let mut reader = Reader::new(&scanner);
    let mut intake = Intake::new(&mut reader, Limits::default());
    intake.take(name, &mut &*bytes);
    let inputs = std::mem::take(&mut intake.inputs);
    (inputs, reader.seen().sources.iter().map(|name| name.len() + size_of::<String>()).sum())
}

#[test]
fn names_of_members_of_a_small_bundle_fill_no_memory() {
    const MEMBERS: usize = 20_000;
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(&of_long_names(MEMBERS)).unwrap();
    let packed = packed.finish().unwrap();
    let (inputs, of_reader) = taken(&packed, "bundle.tar.gz");
    let kept: usize = inputs.iter().map(|input| input.name.len() + size_of::<Input>()).sum();
    println!("{} bytes of a bundle, {} inputs, {kept} bytes of names", packed.len(), inputs.len());
    assert!(kept < 16 << 20, "{kept} bytes are kept for {} bytes of a bundle", packed.len());
    assert!(of_reader < 16 << 20, "{of_reader} bytes are kept by the reader");
    let last = inputs.last().unwrap();
    let others: usize = last.note.as_deref().unwrap().split_once(' ').unwrap().0.parse().unwrap();
    assert_eq!(inputs.len() - 1 + others, MEMBERS + 1, "what is not named is counted: {last:?}");
}

/// A case file is "a page or two", of which a mebibyte is read. Aliases are no part of one.
#[test]
fn aliases_of_a_case_file_do_not_make_it_sixty_times_as_long() {
    let text = "x".repeat(600 << 10);
    let aliases = "- {kind: kubelet-log, text: *a}\n".repeat(90);
    let case =
        format!("platform: kubeadm\nevidence:\n- {{kind: kubelet-log, text: &a \"{text}\"}}\n{aliases}");
    let read = case::read(&case).map(|case| case.evidence.iter().map(|one| one.text.len()).sum::<usize>());
    println!("{} bytes of a case file, {read:?} bytes of evidence", case.len());
    assert!(read.unwrap_or_default() <= 4 * case.len(), "{read:?} bytes of {}", case.len());
}

/// A size in base 256 with all bits set: no padding follows it.
#[test]
fn a_size_of_all_bits_ends_an_archive_with_a_reason() {
    let mut size = [0xff; 12];
    size[0] = 0x80;
    size[1..4].fill(0);
    let archive = [header(b'0', &size).as_slice(), b"text\n", &[0; 1024]].concat();
    let (inputs, _) = taken(&archive, "bundle.tar");
    assert!(inputs.iter().any(|input| input.note.is_some()), "{inputs:?}");
}

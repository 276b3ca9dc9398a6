//! Every form is made here, byte by byte, and read back.

use std::io::Write as _;

use super::*;
use crate::catalogue::Catalogue;
use crate::judge;
use crate::scan::Scanner;

const LINE: &str = "dial tcp: lookup api.lan on 10.0.0.2:53: no such host\n";

fn read(name: &str, bytes: &[u8], limits: Limits) -> (Vec<String>, Vec<Input>) {
    let catalogue = Catalogue::built_in().unwrap();
    let scanner = Scanner::new(&catalogue).unwrap();
    let mut reader = Reader::new(&scanner);
    let mut intake = Intake::new(&mut reader, limits);
    intake.take(name, &mut &*bytes);
    let inputs = intake.inputs;
    (judge(&reader).findings.into_iter().map(|finding| finding.cause).collect(), inputs)
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn tar(members: &[(&str, &[u8])]) -> Vec<u8> {
    tar_of(b'0', members)
}

fn tar_of(kind: u8, members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, bytes) in members {
        let mut header = [0_u8; 512];
        header[..name.len()].copy_from_slice(name.as_bytes());
        header[124..135].copy_from_slice(format!("{:011o}", bytes.len()).as_bytes());
        header[156] = kind;
        header[257..263].copy_from_slice(b"ustar\0");
        header[148..156].fill(b' ');
        let sum: u64 = header.iter().map(|byte| u64::from(*byte)).sum();
        header[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
        out.extend_from_slice(&header);
        out.extend_from_slice(bytes);
        out.resize(out.len().next_multiple_of(512), 0);
    }
    out.resize(out.len() + 1024, 0);
    out
}

fn zip(members: &[(&str, &[u8])], described: bool) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, bytes) in members {
        let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        let packed = encoder.finish().unwrap();
        let (length, size) = (u32::try_from(packed.len()).unwrap(), u32::try_from(bytes.len()).unwrap());
        let flags: u16 = if described { 8 } else { 0 };
        out.extend_from_slice(b"PK\x03\x04\x14\0");
        out.extend_from_slice(&flags.to_le_bytes());
        out.extend_from_slice(&[8, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        out.extend_from_slice(&(if described { 0 } else { length }).to_le_bytes());
        out.extend_from_slice(&(if described { 0 } else { size }).to_le_bytes());
        out.extend_from_slice(&u16::try_from(name.len()).unwrap().to_le_bytes());
        out.extend_from_slice(&[0, 0]);
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(&packed);
        if described {
            out.extend_from_slice(b"PK\x07\x08\0\0\0\0");
            out.extend_from_slice(&length.to_le_bytes());
            out.extend_from_slice(&size.to_le_bytes());
        }
    }
    out.extend_from_slice(b"PK\x01\x02");
    out
}

#[test]
fn whatever_it_is_packed_in_the_line_is_found() {
    let plain = LINE.as_bytes();
    let utf16 = || [0xfeff].into_iter().chain(LINE.encode_utf16());
    let members: &[(&str, &[u8])] = &[("a/first.log", b"all is well\n"), ("a/b/kubelet.log", plain)];
    for (name, bytes) in [
        ("x.log", plain.to_vec()),
        ("x.log.gz", gzip(plain)),
        ("x.log.zst", zstd::encode_all(plain, 1).unwrap()),
        ("x.log.xz", xz(plain, 6)),
        ("x.tar.xz", xz(&tar(members), 6)),
        ("x.tar", tar(members)),
        ("x.tar.gz", gzip(&tar(members))),
        ("x.zip", zip(members, false)),
        ("x.zip", zip(members, true)),
        ("nested.tar", tar(&[("inner.tar.gz", &gzip(&tar(members)))])),
        ("little.txt", utf16().flat_map(u16::to_le_bytes).collect()),
        ("big.txt", utf16().flat_map(u16::to_be_bytes).collect()),
        (
            "case.yaml",
            format!("platform: kubeadm\nevidence:\n- kind: kubelet-log\n  text: |\n    {LINE}").into_bytes(),
        ),
    ] {
        let (causes, inputs) = read(name, &bytes, Limits::default());
        assert_eq!(causes, ["dns-resolution-failure"], "{name}: {inputs:?}");
        assert!(inputs.iter().all(|input| input.note.is_none()), "{name}: {inputs:?}");
    }
}

fn xz(bytes: &[u8], level: u32) -> Vec<u8> {
    liblzma::encode_all(bytes, level).unwrap()
}

#[test]
fn what_would_take_more_memory_than_we_allow_ourselves_is_said() {
    let (causes, inputs) = read("x.log.xz", &xz(LINE.as_bytes(), 9), Limits::default());
    assert!(causes.is_empty(), "{causes:?}");
    assert!(inputs.iter().any(|input| input.note.is_some()), "{inputs:?}");
}

#[test]
fn paths_that_lead_out_are_refused_and_said() {
    for path in ["../../etc/passwd", "/etc/passwd", "a/../../b", "..\\b", "C:\\b"] {
        for bytes in [tar(&[(path, LINE.as_bytes())]), zip(&[(path, LINE.as_bytes())], false)] {
            let (causes, inputs) = read("x", &bytes, Limits::default());
            assert!(causes.is_empty(), "{path}");
            assert!(inputs[0].note.as_ref().unwrap().contains("leads out"), "{inputs:?}");
        }
    }
}

#[test]
fn links_and_devices_of_an_archive_are_passed_by() {
    let mut archive = Vec::new();
    for kind in *b"123456KSg" {
        archive.extend(tar_of(kind, &[("kubelet.log", LINE.as_bytes())]));
        archive.truncate(archive.len() - 1024);
    }
    archive.extend(tar(&[("b.log", b"all is well\n")]));
    let (causes, inputs) = read("x.tar", &archive, Limits::default());
    let names: Vec<&str> = inputs.iter().map(|input| input.name.as_str()).collect();
    assert_eq!((causes.as_slice(), names), (&[][..], vec!["x.tar!b.log", "x.tar"]));
}

#[test]
fn an_archive_of_too_many_members_is_read_as_far_as_that() {
    let members: Vec<(String, &[u8])> = (0..MEMBERS_MAX + 5).map(|n| (n.to_string(), &b""[..])).collect();
    let members: Vec<(&str, &[u8])> = members.iter().map(|(name, bytes)| (name.as_str(), *bytes)).collect();
    let (_, inputs) = read("x", &tar(&members), Limits::default());
    let others = inputs.last().and_then(|last| last.note.as_deref()?.split_once(' ')?.0.parse().ok());
    let read = inputs.len() as u64 - 1 + others.unwrap_or(1_u64);
    assert_eq!(read, MEMBERS_MAX + 1, "its members, and itself: {:?}", inputs.last());
}

#[test]
fn what_expands_without_measure_is_stopped_and_said() {
    let limits = Limits { expanded_bytes_max: 1 << 20, expanded_bytes_free: 64 << 10, expansion_max: 20 };
    let bomb = vec![b'a'; 8 << 20];
    for bytes in [
        gzip(&bomb),
        zstd::encode_all(bomb.as_slice(), 1).unwrap(),
        zip(&[("bomb", &bomb)], false),
        zip(&[("bomb", &bomb)], true),
        gzip(&gzip(&bomb)),
    ] {
        let (_, inputs) = read("bomb", &bytes, limits);
        assert!(
            inputs
                .iter()
                .any(|input| input.note.as_ref().is_some_and(|note| note.contains("without measure"))),
            "{inputs:?}"
        );
    }
}

#[test]
fn what_members_expand_to_counts_also_where_each_is_stopped() {
    let limits = Limits { expanded_bytes_max: 1 << 20, expanded_bytes_free: 64 << 10, expansion_max: 20 };
    let bomb = zip(&[("bomb", &b"a\n".repeat(1 << 20))], false);
    let members: Vec<(String, &[u8])> = (0..40).map(|n| (format!("{n}.zip"), bomb.as_slice())).collect();
    let members: Vec<(&str, &[u8])> = members.iter().map(|(name, bytes)| (name.as_str(), *bytes)).collect();
    let (_, inputs) = read("bombs", &tar(&members), limits);
    let lines: u64 = inputs.iter().map(|input| input.lines).sum();
    assert!(lines <= (1 << 19) + (64 << 10), "{lines} lines");
}

#[test]
fn names_of_members_are_shown_without_what_a_terminal_obeys() {
    let (_, inputs) = read("x.tar", &tar(&[("\u{1b}[2Jred\u{7}.log", LINE.as_bytes())]), Limits::default());
    assert_eq!(inputs[0].name, "x.tar!\u{fffd}[2Jred\u{fffd}.log");
}

#[test]
fn damage_is_said_and_what_came_before_it_counts() {
    let members: &[(&str, &[u8])] = &[("kubelet.log", LINE.as_bytes()), ("b.log", &[b'x'; 4000])];
    for whole in [tar(members), gzip(&LINE.repeat(4000).into_bytes())] {
        let (causes, inputs) =
            read("x", &whole[..whole.len() * 2 / 3 - 700.min(whole.len() / 4)], Limits::default());
        assert_eq!(causes, ["dns-resolution-failure"]);
        assert!(inputs.iter().any(|input| input.note.is_some()), "{inputs:?}");
    }
}

#[test]
fn noise_is_named_and_not_read() {
    let (causes, inputs) = read("core", &[0; 5000], Limits::default());
    assert!(causes.is_empty());
    assert_eq!(inputs[0].form, "binary");
    let (_, inputs) = read("system.journal", b"LPKSHHRH\0\0\0\0\0\0\0\0\0\0\0\0", Limits::default());
    assert!(inputs[0].note.as_ref().unwrap().contains("journalctl --file"));
}

#[test]
fn random_bytes_are_no_text_and_a_damaged_console_is() {
    let mut state = 1_u32;
    let random: Vec<u8> = std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    })
    .take(HEAD_BYTES)
    .collect();
    let (_, inputs) = read("core", &random, Limits::default());
    assert_eq!((inputs[0].form.as_str(), inputs[0].lines), ("binary", 0));
    let damaged = [b"\x1b[32m\xff\xfe\0\x01 OK \x1b[0m ".as_slice(), LINE.as_bytes()].concat();
    let (causes, _) = read("console", &damaged, Limits::default());
    assert_eq!(causes, ["dns-resolution-failure"]);
}

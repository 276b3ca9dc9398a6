//! Plays every recording in this folder through the engine, which must decide as it did when the recording was made.
//!
//! `reveille replay DIR --machine NAME --to-scenario FILE` makes a recording. Where a change of the engine is meant to
//! change decisions, the test reports the difference. Check it, then update the files: `REVEILLE_BLESS=1` rewrites each
//! file with the present decisions.

#![allow(clippy::unwrap_used, reason = "a test ends where its material is missing")]

use std::path::{Path, PathBuf};
use std::process::Command;

fn recordings() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recordings");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut found: Vec<PathBuf> =
        files.filter(|path| path.extension().is_some_and(|ending| ending == "recording")).collect();
    found.sort();
    found
}

fn replay(args: &[&str]) -> (i32, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_reveille")).arg("replay").args(args).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
    (output.status.code().unwrap_or(-1), text)
}

#[test]
fn every_kept_recording_decides_as_it_did() {
    let found = recordings();
    assert!(found.len() >= 3, "recordings are missing");
    let mut different = Vec::new();
    for path in found {
        let file = path.to_str().unwrap();
        if std::env::var_os("REVEILLE_BLESS").is_some() {
            let fresh = path.with_extension("fresh");
            let (code, said) = replay(&[file, "--to-scenario", fresh.to_str().unwrap()]);
            assert_eq!(code, 0, "{said}");
            std::fs::rename(fresh, &path).unwrap();
        }
        let (code, said) = replay(&[file]);
        if code != 0 || !said.contains("all the same") {
            different.push(format!("{file} ended with {code}\n{said}"));
        }
    }
    assert!(different.is_empty(), "{}", different.join("\n"));
}

//! Any bytes as a roster: refused with every mistake at its place, or read.
//!
//! ```text
//!  text ─▶ roster::read ─┬▶ rosters, at least one
//!                        └▶ a refusal that names lines that are there
//! ```
//!
//! No file is opened: a roster names files, and reading it does not look for them.

use std::path::Path;

use reveille_wire::roster::{Origin, read};

/// One try.
pub(crate) fn run(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let origin = Origin { name: "fuzzed.yaml", dir: Path::new("/site"), home: Some(Path::new("/home/a")) };
    match read(&text, &origin) {
        Ok(rosters) => assert!(!rosters.is_empty(), "a roster file without a roster was taken"),
        Err(refusal) => assert!(!refusal.to_string().trim().is_empty(), "refused without a reason"),
    }
}

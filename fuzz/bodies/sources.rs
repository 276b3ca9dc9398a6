//! Any bytes as a source: gzip, zstd, tar, zip, UTF-16, a case file, text, and these within each other.
//!
//! ```text
//!  bytes ─▶ Intake (small limits) ─▶ Reader ─▶ judge
//!              └─▶ inputs: every name and note one readable line; no more lines than the limits allow
//! ```
//!
//! That it ends and how much memory it takes is watched from outside (`-timeout`, `-rss_limit_mb`).

use reveille_diagnose::Reader;
use reveille_diagnose::sources::{Intake, Limits};

use crate::{known, shown};

/// Small, so that what expands without measure is noticed by counting lines.
const LIMITS: Limits =
    Limits { expanded_bytes_max: 1 << 18, expanded_bytes_free: 1 << 14, expansion_max: 20 };
/// An archive within an archive is counted again at each level.
const DEPTH_MAX: u64 = 5;
/// Names of members within members, and what is said of them.
const NAME_CHARACTERS_MAX: usize = 8_000;

/// One try.
pub(crate) fn run(bytes: &[u8]) {
    let mut reader = Reader::new(&known::SCANNER);
    let mut intake = Intake::new(&mut reader, LIMITS);
    intake.take("fuzzed", &mut &*bytes);
    for input in intake.inputs {
        for text in [&input.name, &input.form].into_iter().chain(&input.note) {
            shown::readable(text);
            assert!(text.chars().count() <= NAME_CHARACTERS_MAX, "an input's name is too long");
        }
    }
    let lines_max = bytes.len() as u64 + DEPTH_MAX * (LIMITS.expanded_bytes_max + (1 << 16));
    assert!(reader.seen().lines <= lines_max, "{} lines out of {} bytes", reader.seen().lines, bytes.len());
    shown::quotes(&reader);
}

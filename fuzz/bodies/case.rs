//! Any bytes as a case file: no case, or one whose texts are read.
//!
//! ```text
//!  text ─▶ case::read ─▶ Case ─▶ Reader ─▶ judge
//!       └▶ Intake, as a source that may be one
//! ```
//!
//! What is no case is a text like any other.

use reveille_diagnose::Reader;
use reveille_diagnose::sources::{Intake, Limits, case};

use crate::{known, shown};

/// One try.
pub(crate) fn run(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    if let Some(case) = case::read(&text) {
        assert!(!case.evidence.is_empty(), "a case without evidence is none");
    }
    let mut reader = Reader::new(&known::SCANNER);
    let mut intake = Intake::new(&mut reader, Limits::default());
    intake.take("fuzzed", &mut text.as_bytes());
    for input in intake.inputs {
        shown::readable(&input.name);
    }
    shown::quotes(&reader);
}

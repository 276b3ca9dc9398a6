//! libFuzzer around a body; what it tries, and what must hold, stands in that file.

#![no_main]

#[path = "../bodies/case.rs"]
mod body;
#[path = "../bodies/known.rs"]
mod known;
#[path = "../bodies/shown.rs"]
mod shown;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| body::run(bytes));

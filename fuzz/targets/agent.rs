//! libFuzzer around a body; what it tries, and what must hold, stands in that file.

#![no_main]

#[path = "../bodies/agent.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| body::run(bytes));

//! The program's own owner of the engine, compiled from the program's files: what `run` goes through is what is measured.
//!
//! ```text
//!  Event ─▶ redact ─▶ step ─▶ invariants ─▶ log line, ledger thread ─▶ a ledger on disk ─▶ Ack
//! ```
//!
//! It leaves out the flight recorder, which `run` does not start by itself, and the executor, which the benchmark plays.

#![allow(dead_code, reason = "the program uses more of these files than the benchmark")]

#[path = "../../crates/reveille/src/driver/engine_host.rs"]
pub(crate) mod engine_host;
#[path = "../../crates/reveille/src/driver/journal.rs"]
mod journal;
#[path = "../../crates/reveille/src/driver/ledger_backend.rs"]
mod ledger_backend;
#[path = "../../crates/reveille/src/driver/ledger_store.rs"]
pub(crate) mod ledger_store;
#[path = "../../crates/reveille/src/driver/ledger_writer.rs"]
pub(crate) mod ledger_writer;
#[path = "../../crates/reveille/src/driver/redact.rs"]
mod redact;

/// Nothing is recorded here, so there is no recorder.
mod recorder {
    use reveille_core::effect::Effect;
    use reveille_core::event::Event;
    use reveille_core::model::time::Time;

    /// There is none.
    pub(crate) enum Recorder {}

    impl Recorder {
        pub(crate) fn step(&mut self, _: Time, _: &Event, _: &[Effect]) {
            match *self {}
        }

        pub(crate) fn end(self) {
            match self {}
        }
    }
}

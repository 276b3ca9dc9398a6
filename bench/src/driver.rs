//! The program's own owner of the engine, compiled from the program's files: what `run` goes through is what is measured.
//!
//! ```text
//!  Event ─▶ scrub ─▶ step ─▶ invariants ─▶ log line, ledger thread ─▶ a ledger on disk ─▶ Ack
//! ```
//!
//! It leaves out the flight recorder, which `run` does not start by itself, and the hands, which the benchmark plays.

#![allow(dead_code, reason = "the program uses more of these files than the benchmark")]

#[path = "../../crates/reveille/src/driver/helm.rs"]
pub(crate) mod helm;
#[path = "../../crates/reveille/src/driver/journal.rs"]
mod journal;
#[path = "../../crates/reveille/src/driver/keeper.rs"]
mod keeper;
#[path = "../../crates/reveille/src/driver/scribe.rs"]
pub(crate) mod scribe;
#[path = "../../crates/reveille/src/driver/scrub.rs"]
mod scrub;
#[path = "../../crates/reveille/src/driver/shelf.rs"]
pub(crate) mod shelf;

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

//! What happened in a run, in order, for a page or a test that tells it afterwards.
//!
//! The drive keeps it on request only: a long run has no use for it. The log is for reading beside a failed test and holds lines;
//! the chronicle holds the records themselves, so that a page can tell them in other words.

use reveille_core::engine::invariants::Violation;
use reveille_core::model::id::InstanceId;
use reveille_core::model::time::Time;
use reveille_core::record::Record;

use super::Drive;

/// Something worth telling, when it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Happened {
    /// When.
    pub at: Time,
    /// What.
    pub what: What,
}

/// What happened, and on which side.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "a chronicle is kept for one scenario and is mostly records")]
pub enum What {
    /// In the world, in its words. The engine was told none of it.
    World(String),
    /// To the engine's process.
    Process(String),
    /// An agent on this machine said this.
    Agent(InstanceId, String),
    /// The engine asked for this record.
    Record(Record),
    /// An invariant was broken.
    Broken(Violation),
}

impl Drive {
    /// Keeps what happens, for telling it: see [`Drive::take_chronicle`].
    #[must_use]
    pub fn with_chronicle(mut self) -> Self {
        self.chronicle = Some(Vec::new());
        self
    }

    /// What happened since this was last asked.
    pub fn take_chronicle(&mut self) -> Vec<Happened> {
        self.chronicle.as_mut().map(std::mem::take).unwrap_or_default()
    }

    pub(super) fn note(&mut self, at: Time, what: impl FnOnce() -> What) {
        if let Some(chronicle) = &mut self.chronicle {
            chronicle.push(Happened { at, what: what() });
        }
    }

    /// Something happened to the process.
    pub(super) fn tell(&mut self, text: String) {
        self.log.push(self.now, &text);
        self.note(self.now, || What::Process(text));
    }
}

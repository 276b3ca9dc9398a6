//! One step of the agent while it runs: its time, the settings in force, and what it asks for.
//!
//! ```text
//!  State::step ─▶ StepContext ─▶ contact, answering, observation, work, watchdog, each adds its effects ─▶ Vec<Effect>
//! ```
//!
//! The parts of the state know this and not each other. Each effect that the agent waits for gets its number here, so that no two
//! have the same one.

use reveille_core::model::time::{Span, Time};

use crate::effect::{Effect, Report};
use crate::model::{Operation, OperationId};
use crate::settings::Settings;

/// One step: its time, and its effects.
pub(crate) struct StepContext<'a> {
    pub(crate) now: Time,
    pub(crate) settings: &'a Settings,
    pub(crate) out: Vec<Effect>,
    /// The number of the newest effect that the agent waits for.
    pub(crate) last_operation: u64,
}

impl StepContext<'_> {
    /// Registers an effect that the agent waits for, no longer than this.
    pub(crate) fn fly(&mut self, within: Span) -> Operation {
        self.last_operation += 1;
        Operation { id: OperationId(self.last_operation), until: self.now + within }
    }

    pub(crate) fn is_over(&self, operation: Operation) -> bool {
        operation.until <= self.now
    }

    pub(crate) fn report(&mut self, report: Report) {
        self.out.push(Effect::Report(report));
    }
}

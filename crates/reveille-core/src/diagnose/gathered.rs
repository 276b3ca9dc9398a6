//! Evidence that was read on purpose before anything is done, and what is known of it by now.
//!
//! What a machine says of itself arrives judged (see [`crate::model::testimony`]) and is kept so: its machine is weighed
//! again with every reading of the world. The text itself is not quoted, but for its last lines where a pool keeps its
//! failed machines: who comes to look finds them in the incident.

use std::sync::Arc;

use crate::model::incident::{Evidence, FaultKind};
use crate::model::testimony::Testimony;
use crate::model::time::Time;

use super::console;

/// Evidence that was asked for before anything was done.
#[derive(Clone, Debug, Default)]
pub struct Gathered {
    /// When it was last asked for.
    pub asked_at: Option<Time>,
    /// Answers still out.
    pub outstanding: u8,
    /// What the machine says of itself, or why nobody could read it.
    pub testimony: Option<Result<Arc<Testimony>, Arc<str>>>,
    /// The last lines of the console, where failed machines are kept for somebody to look at.
    pub last_words: Option<Arc<str>>,
    /// The newest entry of the action log: what was done last, by whom.
    pub last_action: Option<Arc<str>>,
    /// The newest reboot in the action log, to tell afterwards whether another happened.
    pub newest_reboot: Option<Arc<str>>,
    /// A read of this round failed.
    pub missed: bool,
    /// Rounds in a row in which a read failed: not knowing is not evidence.
    pub failures: u32,
}

impl Gathered {
    /// Asked for, and all of it answered.
    pub const fn is_complete(&self) -> bool {
        self.asked_at.is_some() && self.outstanding == 0
    }

    /// A testimony arrived. Only of a machine that never joined, or is held to have joined for its name alone, does anybody
    /// ask what it says: any other may be chatty about what it survived.
    pub fn take_testimony(&mut self, kind: FaultKind, testimony: Arc<Testimony>) {
        let asked = matches!(kind, FaultKind::NeverJoined | FaultKind::Vanished);
        self.testimony = asked.then_some(Ok(testimony));
    }

    /// The end of a console that may be quoted whole, as far as a quote is long.
    pub fn take_last_words(&mut self, text: &str) {
        self.last_words = console::last_lines(text, Evidence::TEXT_BYTES_MAX);
    }
}

//! What an agent must not forget when its machine reboots: how often it acted, what it began, and that it is not wanted.
//!
//! Handed over whole before each act and durable before the act happens, so that a machine that reboots in a loop runs
//! out of reboots, and one that died between reset and join goes on with the join.

use reveille_core::model::time::{Span, Time};

use crate::model::Leaving;

/// The memory; bounded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// The last reboots that were asked for, oldest first.
    pub reboots: Vec<Time>,
    /// Attempts to bring the node back since it last stayed.
    pub attempts: u32,
    /// No attempt before this.
    pub not_before: Option<Time>,
    /// A reset was begun, and no join has held since.
    pub is_reset: bool,
    /// How it was seen that the machine is to go: the Node that said so may be gone.
    pub leaving: Option<Leaving>,
}

/// Reboots are counted over this.
pub const DAY: Span = Span::from_min(24 * 60);
/// More reboots than this need not be remembered: settings allow no more in a day.
const REBOOTS_KEPT: usize = 24;

impl Memory {
    /// Reboots within the last day. One that our clock calls future counts: a clock that was set back gives none away.
    pub fn reboots_lately(&self, now: Time) -> u32 {
        self.reboots.iter().filter(|at| now.since(**at) < DAY).count() as u32
    }

    /// Takes in a reboot.
    pub fn note_reboot(&mut self, now: Time) {
        self.reboots.push(now);
        let extra = self.reboots.len().saturating_sub(REBOOTS_KEPT);
        self.reboots.drain(..extra);
    }
}

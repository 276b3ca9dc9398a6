//! What an agent must remember across a reboot: how often it acted, what it began, and that its machine is to be removed.
//!
//! The agent hands the whole memory over before each act, and it is durable before the act happens. So a machine that
//! reboots in a loop runs out of reboots, and an agent that died between reset and join goes on with the join.

use reveille_core::model::time::{Span, Time};

use crate::model::Leaving;

/// The memory; its size is bounded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// The last reboots that the agent asked for, oldest first.
    pub reboots: Vec<Time>,
    /// Attempts to bring the Node back since it last stayed.
    pub attempts: u32,
    /// The agent makes no attempt before this time.
    pub not_before: Option<Time>,
    /// The agent began a reset, and no join has held since.
    pub is_reset: bool,
    /// The sign that the machine is to be removed: the Node that carried the sign may be gone.
    pub leaving: Option<Leaving>,
}

/// The agent counts reboots over this span.
pub const DAY: Span = Span::from_min(24 * 60);
/// The memory needs no more reboots than this: settings allow no more in a day.
const REBOOTS_KEPT: usize = 24;

impl Memory {
    /// Reboots within the last day. A reboot whose time is in the future counts too, so a clock that was set back allows
    /// no extra reboot.
    pub fn reboots_lately(&self, now: Time) -> u32 {
        self.reboots.iter().filter(|at| now.since(**at) < DAY).count() as u32
    }

    /// Records a reboot.
    pub fn note_reboot(&mut self, now: Time) {
        self.reboots.push(now);
        let extra = self.reboots.len().saturating_sub(REBOOTS_KEPT);
        self.reboots.drain(..extra);
    }
}

//! Runs one model: when it looks, what it is shown, and its acts as calls into the world.
//!
//! It holds what the original's process holds in memory, and loses that with the process. What the original keeps in an
//! API (an object that is being deleted) is kept over a restart. It has no ledger, no intents and no fencing.

use reveille_core::effect::Call;
use reveille_core::model::time::{Span, Time};

use super::Policy;
use crate::world::World;

/// A model at work.
#[derive(Clone, Debug)]
pub(crate) struct Rival {
    policy: Policy,
    next_at: Time,
}

/// Nobody looks this often.
const IDLE: Span = Span::from_min(5);

impl Rival {
    /// This policy begins to look at this moment.
    pub(crate) const fn new(policy: Policy, now: Time) -> Self {
        Self { policy, next_at: now }
    }

    /// Which policy this is.
    pub(crate) const fn policy(&self) -> Policy {
        self.policy
    }

    /// When it looks next.
    pub(crate) const fn next_at(&self) -> Time {
        self.next_at
    }

    /// One look, when it is due, and what follows from it.
    pub(crate) fn pass(&mut self, now: Time, _world: &World) -> Vec<Call> {
        if now < self.next_at {
            return Vec::new();
        }
        self.next_at = now + IDLE;
        Vec::new()
    }
}

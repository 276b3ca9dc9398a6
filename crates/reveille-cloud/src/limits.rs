//! How many routes a router may hold, as its cloud's refusals said.
//!
//! Some clouds tell such a limit nowhere but in the refusal of the route that is one too many. What was learned is believed for
//! some minutes, because limits are raised.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use reveille_core::model::id::RouterId;

/// What a cloud said of a limit is believed so long.
pub const LIMIT_TTL: Duration = Duration::from_secs(600);

/// Limits that refusals named, by router, and when.
#[derive(Debug, Default)]
pub struct LearnedLimits {
    limits: Mutex<BTreeMap<RouterId, (Instant, u32)>>,
}

impl LearnedLimits {
    /// A refusal named the limit of this router.
    pub fn learn(&self, router: &RouterId, limit: u32) {
        self.lock().insert(router.clone(), (Instant::now(), limit));
    }

    /// The limit of this router, where a refusal named it not long ago.
    pub fn of(&self, router: &RouterId) -> Option<u32> {
        let limits = self.lock();
        limits.get(router).filter(|(at, _)| at.elapsed() < LIMIT_TTL).map(|(_, limit)| *limit)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<RouterId, (Instant, u32)>> {
        self.limits.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

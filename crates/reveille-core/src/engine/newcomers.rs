//! Newcomers: machines of a pool that became Ready for the first time while we watched, and what they prove.
//!
//! ```text
//!  Ready for the first time ─▶ newcomers of its pool ─┬─ each is the successor of one machine that was replaced before it
//!                                                     └─ one that answers after its dwell: what failed in its pool is over
//! ```
//!
//! A machine that joins after its replacement was given up (40 minutes where 26 were allowed) proves that what machines are
//! made from is well again, although nobody waits for it any more: without that, three late successors held back every
//! replacement in their pool for good.
//!
//! It does not hold machines that joined while no process of ours ran: see `proofs::note_arrival`.

use std::collections::BTreeMap;

use crate::model::id::PoolName;
use crate::model::incident::MachineKey;
use crate::model::time::{Span, Time};
use crate::plan::budget::{Flight, Phase};
use crate::plan::ladder::Rung;
use crate::record::Record;

use super::{State, Wake};

/// So many newcomers of a pool are remembered at once, the youngest: whom an older one proves something for, a younger one does,
/// too.
const NEWCOMERS_MAX: usize = 256;

/// A machine that became Ready for the first time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Newcomer {
    pub(super) at: Time,
    pub(super) machine: MachineKey,
}

/// The newcomers of pools, each of which proves one replacement at most.
#[derive(Clone, Debug, Default)]
pub(super) struct Newcomers {
    of: BTreeMap<PoolName, Vec<Newcomer>>,
    /// When something was last counted against a pool: who came before says nothing of that.
    counted_at: BTreeMap<PoolName, Time>,
}

impl Newcomers {
    /// A machine of the pool that was seen being born is Ready for the first time.
    pub(super) fn add(&mut self, pool: &PoolName, at: Time, machine: MachineKey) {
        let newcomers = self.of.entry(pool.clone()).or_default();
        if newcomers.len() == NEWCOMERS_MAX {
            newcomers.remove(0);
        }
        newcomers.push(Newcomer { at, machine });
    }

    /// Something was counted against the pool.
    pub(super) fn note_counted(&mut self, pool: &PoolName, at: Time) {
        self.counted_at.insert(pool.clone(), at);
    }

    /// The first newcomer of the pool since then that no replacement before this one rests on.
    pub(super) fn next_since(
        &self,
        pool: &PoolName,
        since: Time,
        taken: &mut BTreeMap<PoolName, usize>,
    ) -> bool {
        let Some(newcomers) = self.of.get(pool) else { return false };
        let taken = taken.entry(pool.clone()).or_default();
        let first = newcomers.partition_point(|newcomer| newcomer.at < since).max(*taken);
        *taken = first + 1;
        first < newcomers.len()
    }

    /// One replacement of the pool is proved, and its successor proves no other.
    pub(super) fn credit(&mut self, pool: &PoolName, since: Time) {
        let Some(newcomers) = self.of.get_mut(pool) else { return };
        let first = newcomers.partition_point(|newcomer| newcomer.at < since);
        if first < newcomers.len() {
            newcomers.remove(first);
        }
    }

    pub(super) fn move_back(&mut self, moved: impl Fn(Time) -> Time) {
        self.of.values_mut().flatten().for_each(|newcomer| newcomer.at = moved(newcomer.at));
        self.counted_at.values_mut().for_each(|at| *at = moved(*at));
    }
}

impl State {
    /// What failed in a pool is over once one of its newcomers answers after its dwell. Whoever proves nothing more is
    /// forgotten.
    pub(super) fn review_newcomers(&mut self) {
        if self.newcomers.of.is_empty() {
            return;
        }
        let pools: Vec<PoolName> = self.newcomers.of.keys().cloned().collect();
        for pool in pools {
            if self.book.has_faults(&pool) {
                self.review_faults(&pool);
            }
            let waits = |flight: &Flight| {
                let is_of = flight.domain.as_ref().is_some_and(|domain| domain.pool == pool);
                is_of && flight.rung == Rung::Replace && !matches!(flight.phase, Phase::Recording)
            };
            if !self.book.has_faults(&pool) && !self.book.flights.values().any(waits) {
                self.newcomers.of.remove(&pool);
                self.newcomers.counted_at.remove(&pool);
            }
        }
    }

    fn review_faults(&mut self, pool: &PoolName) {
        let dwell = self.roster.pools.get(pool).map_or(Span::ZERO, |pool| pool.deadlines.dwell);
        let since = self.newcomers.counted_at.get(pool).copied();
        let answers = |newcomer: &Newcomer| self.tally.is_present(&newcomer.machine);
        let newcomers = self.newcomers.of.get(pool).into_iter().flatten();
        let mut after = newcomers.filter(|newcomer| since.is_none_or(|since| newcomer.at >= since));
        let waits = |newcomer: &Newcomer| self.now < newcomer.at + dwell;
        let over = after.clone().take_while(|newcomer| !waits(newcomer)).any(answers);
        if over {
            self.book.forgive_faults(pool);
            self.record(Record::FaultsForgiven { at: self.now, pool: pool.clone() });
            self.rouse_held();
        } else if let Some(next) = after.find(|newcomer| waits(newcomer)).map(|newcomer| newcomer.at + dwell)
        {
            self.wake(next, Wake::Newcomers);
        }
    }
}

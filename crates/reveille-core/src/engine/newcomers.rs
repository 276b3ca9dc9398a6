//! Newcomers: machines of a pool that became Ready for the first time, and what they prove.
//!
//! ```text
//!  Ready for the first time ─┬─ newcomers of its pool: each is the successor of one machine that was replaced before it
//!                            └─ witnesses, if something is counted against the pool: one that answers after its dwell proves
//!                               that this is over
//! ```
//!
//! A machine may join after its replacement was given up (40 minutes where 26 were allowed). It proves that the image or
//! template of its pool works again, although no replacement waits for it any more. Without that proof, three late
//! successors blocked every replacement in their pool for good. The ledger holds the witnesses. They include machines that
//! joined while no process of ours ran: those were made after the count, because the process that counted did not know
//! them.
//!
//! For a replacement of this process, a machine that joined while no process ran is no newcomer: see
//! `proofs::note_arrival`.

use std::collections::BTreeMap;

use crate::model::id::{IntentId, PoolName};
use crate::model::incident::MachineKey;
use crate::model::jump::Jump;
use crate::model::time::{Span, Time};
use crate::observe::counts::Counts;
use crate::plan::budget::{Operation, Phase};
use crate::record::Record;
use crate::remedies::Rung;
use crate::safeguard::{Safeguard, stands};

use super::{State, Wake};

/// So many newcomers of a pool are remembered at once, the youngest: whom an older one proves something for, a younger one does,
/// too.
const NEWCOMERS_MAX: usize = 256;

/// A machine that became Ready for the first time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Newcomer {
    pub(super) at: Time,
    pub(super) machine: MachineKey,
    /// The newest repair of then.
    pub(super) after: IntentId,
}

/// A machine that joined, and what it may prove of repairs of earlier processes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Arrival {
    pub(super) pool: PoolName,
    /// The newest repair of then: it is the successor of none that began later.
    pub(super) after: IntentId,
}

impl Arrival {
    /// It may be the successor that this replacement of the pool waits for.
    pub(super) fn may_follow(&self, pool: &PoolName, replacement: IntentId) -> bool {
        self.pool == *pool && (replacement <= self.after || !stands(Safeguard::LaterReplacement))
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct Newcomers {
    /// Of each pool, in order of time. Each proves one replacement at most.
    of: BTreeMap<PoolName, Vec<Newcomer>>,
    /// Those that came since something was last counted against their pool: who came before says nothing of that.
    witnesses: BTreeMap<PoolName, Vec<Newcomer>>,
}

impl Newcomers {
    /// A machine of the pool that was seen being born is Ready for the first time.
    pub(super) fn add(&mut self, pool: &PoolName, newcomer: Newcomer) {
        push(self.of.entry(pool.clone()).or_default(), newcomer);
    }

    /// A machine of the pool, against which something is counted, is Ready for the first time.
    pub(super) fn add_witness(&mut self, pool: &PoolName, newcomer: Newcomer) {
        push(self.witnesses.entry(pool.clone()).or_default(), newcomer);
    }

    /// The pool's count of failures starts, or ends. Machines that joined before that prove nothing about machines that
    /// join after it.
    pub(super) fn dismiss_witnesses(&mut self, pool: &PoolName) {
        self.witnesses.remove(pool);
    }

    /// Every witness with its pool, for the ledger's checkpoint.
    pub(super) fn witnesses(&self) -> impl Iterator<Item = (&PoolName, &Newcomer)> {
        self.witnesses.iter().flat_map(|(pool, all)| all.iter().map(move |one| (pool, one)))
    }

    /// Whether there is a newcomer of the pool since then that answers, and that no replacement before this one rests on.
    pub(super) fn next_since(
        &self,
        pool: &PoolName,
        since: Time,
        taken: &mut BTreeMap<PoolName, usize>,
        counts: &Counts,
    ) -> bool {
        let Some(newcomers) = self.of.get(pool) else { return false };
        let taken = taken.entry(pool.clone()).or_default();
        let first = first_well(newcomers, since, *taken, counts);
        *taken = first.map_or(newcomers.len(), |first| first + 1);
        first.is_some()
    }

    /// One replacement of the pool is proved, and its successor proves no other.
    pub(super) fn credit(&mut self, pool: &PoolName, since: Time, counts: &Counts) {
        let Some(newcomers) = self.of.get_mut(pool) else { return };
        if let Some(first) = first_well(newcomers, since, 0, counts) {
            newcomers.remove(first);
        }
    }

    /// Every newcomer that a replacement may rest on, with its pool, for the ledger's checkpoint.
    pub(super) fn successors(&self) -> impl Iterator<Item = (&PoolName, &Newcomer)> {
        self.of.iter().flat_map(|(pool, all)| all.iter().map(move |one| (pool, one)))
    }

    /// A gap is no part of the dwell of a witness, and changes nothing of which replacement came before which newcomer.
    pub(super) fn over(&mut self, jump: Jump) {
        let Self { of, witnesses } = self;
        let all = of.values_mut().chain(witnesses.values_mut()).flatten();
        jump.counts(all.map(|Newcomer { at, machine: _, after: _ }| at));
    }
}

/// The first one since then that answers, from this place on.
fn first_well(newcomers: &[Newcomer], since: Time, from: usize, counts: &Counts) -> Option<usize> {
    let first = newcomers.partition_point(|newcomer| newcomer.at < since).max(from);
    let well = newcomers.iter().skip(first).position(|newcomer| counts.is_present(&newcomer.machine));
    well.map(|place| first + place)
}

fn push(newcomers: &mut Vec<Newcomer>, newcomer: Newcomer) {
    if newcomers.iter().any(|known| known.machine == newcomer.machine) {
        return;
    }
    if newcomers.len() == NEWCOMERS_MAX {
        newcomers.remove(0);
    }
    newcomers.push(newcomer);
}

fn replaces_one_of(operation: &Operation, pool: &PoolName) -> bool {
    operation.rung == Rung::Replace && operation.domain.as_ref().is_some_and(|domain| domain.pool == *pool)
}

/// It replaces a machine of the pool, and its successor is waited for.
fn awaits_successor(operation: &Operation, pool: &PoolName) -> bool {
    replaces_one_of(operation, pool) && !matches!(operation.phase, Phase::Recording)
}

impl State {
    /// A machine of this pool is Ready for the first time: where something is counted against the pool, or a replacement waits
    /// for its successor, that is kept in the ledger until it has answered for its dwell.
    pub(super) fn note_witness(&mut self, pool: PoolName, machine: MachineKey) {
        let (at, after) = (self.now, self.numbers.intent);
        if self.book.has_faults(&pool) {
            self.newcomers.add_witness(&pool, Newcomer { at, machine: machine.clone(), after });
        }
        let is_awaited = self.book.operations.values().any(|operation| awaits_successor(operation, &pool));
        if self.book.has_faults(&pool) || is_awaited {
            self.outbox.record(Record::Arrived { at, pool, machine, after: Some(after) });
        }
    }

    /// The same, as the ledger tells it. It answers for its dwell in our sight, or proves nothing.
    pub(super) fn recall_arrival(&mut self, pool: PoolName, machine: MachineKey, after: IntentId) {
        if self.book.has_faults(&pool) {
            self.newcomers.add_witness(&pool, Newcomer { at: self.now, machine: machine.clone(), after });
        }
        // While the ledger is read, a call of which no verdict is known yet looks as if it was never made.
        if self.book.operations.values().any(|operation| replaces_one_of(operation, &pool)) {
            self.arrived.insert(machine, Arrival { pool, after });
        }
    }

    /// Nothing rests on who arrived while no replacement of the pool waits for its successor.
    pub(super) fn forget_arrivals(&mut self) {
        if !stands(Safeguard::LaterReplacement) {
            return;
        }
        let book = &self.book;
        let is_awaited =
            |pool: &PoolName| book.operations.values().any(|operation| replaces_one_of(operation, pool));
        self.arrived.retain(|_, arrival| is_awaited(&arrival.pool));
    }

    /// The failures of a pool are over once one of its witnesses is Ready after its dwell. The controller forgets witnesses
    /// that can prove nothing more.
    pub(super) fn review_newcomers(&mut self) {
        let pools: Vec<PoolName> = self.newcomers.witnesses.keys().cloned().collect();
        for pool in pools {
            self.review_faults(&pool);
        }
        let (book, newcomers) = (&self.book, &mut self.newcomers);
        newcomers
            .of
            .retain(|pool, _| book.operations.values().any(|operation| awaits_successor(operation, pool)));
        self.forget_arrivals();
    }

    fn review_faults(&mut self, pool: &PoolName) {
        let dwell = self.roster.pools.get(pool).map_or(Span::ZERO, |pool| pool.deadlines.dwell);
        let answers = |newcomer: &&Newcomer| self.counts.is_present(&newcomer.machine);
        let mut witnesses = self.newcomers.witnesses.get(pool).into_iter().flatten();
        let waits = |newcomer: &&Newcomer| self.now < newcomer.at + dwell;
        let over = witnesses.clone().filter(answers).any(|newcomer| !waits(&newcomer));
        if over {
            self.forgive_faults(pool);
            self.outbox.record(Record::FaultsForgiven { at: self.now, pool: pool.clone() });
        } else if let Some(next) = witnesses.find(waits).map(|newcomer| newcomer.at + dwell) {
            self.timers.set(next, Wake::Newcomers);
        }
    }

    /// Nothing is counted against the pool any more.
    pub(super) fn forgive_faults(&mut self, pool: &PoolName) {
        self.newcomers.dismiss_witnesses(pool);
        if self.book.forgive_faults(pool) {
            self.rouse_held();
        }
    }
}

//! Newcomers: machines of a pool that became Ready for the first time, and what they prove.
//!
//! ```text
//!  Ready for the first time ─┬─ successors of its pool: each proves one replacement, of whichever process, once it has answered
//!                            │  for its dwell
//!                            └─ witnesses, if something is counted against the pool: one that has answered for its dwell
//!                               proves that this is over
//! ```
//!
//! A machine may join after its replacement was given up (40 minutes where 26 were allowed). It proves that the image or
//! template of its pool works again, although no replacement waits for it any more. Without that proof, three late
//! successors blocked every replacement in their pool for good. The ledger holds the witnesses. They include machines that
//! joined while no process of ours ran: those were made after the count, because the process that counted did not know
//! them.
//!
//! Each is the successor of one machine at most, which the record of the proof names. It is the successor of none whose
//! deletion was decided later, and of none that was in sight still when it came: two machines were replaced, and the older
//! deletion took effect after the successor of the younger one had joined.

use std::collections::BTreeMap;

use crate::model::id::{IntentId, PoolName};
use crate::model::incident::MachineKey;
use crate::model::jump::Jump;
use crate::model::time::{Span, Time};
use crate::observe::counts::Counts;
use crate::plan::budget::{Counted, Operation, Phase, REPLACEMENT_FAILED};
use crate::plan::context::PlanContext;
use crate::record::Record;
use crate::remedies::RepairStep;
use crate::safeguard::{Safeguard, stands};

use super::{State, Wake};

/// So many newcomers of a pool are remembered at once, the youngest: whom an older one proves something for, a younger one does,
/// too.
const NEWCOMERS_MAX: usize = 256;

/// A machine that became Ready for the first time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Newcomer {
    pub(super) machine: MachineKey,
    /// The newest repair of then: it is the successor of none that began later.
    pub(super) after: IntentId,
    /// Replacements whose machine was there still: it is the successor of none of them.
    pub(super) beside: Vec<IntentId>,
    /// Since when it has answered without a break, in our sight. Two machines, each of which falls within its dwell, prove
    /// nothing.
    well_since: Option<Time>,
}

impl Newcomer {
    pub(super) const fn new(machine: MachineKey, after: IntentId, beside: Vec<IntentId>) -> Self {
        Self { machine, after, beside, well_since: None }
    }

    /// It may be the successor of the machine that this replacement took away.
    fn may_follow(&self, replacement: IntentId) -> bool {
        let is_later = replacement <= self.after && !self.beside.contains(&replacement);
        is_later || !stands(Safeguard::LaterReplacement)
    }

    /// It has answered for so long.
    fn is_well(&self, now: Time, dwell: Span) -> bool {
        self.well_since.is_some_and(|since| now >= since + dwell)
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct Newcomers {
    /// Of each pool, in order of time: who may be the successor of a machine that is replaced.
    successors: BTreeMap<PoolName, Vec<Newcomer>>,
    /// Those that came since something was last counted against their pool: who came before says nothing of that.
    witnesses: BTreeMap<PoolName, Vec<Newcomer>>,
    /// Witnesses of before the last deletion of their pool that was counted, while it may come to nothing.
    aside: BTreeMap<PoolName, Vec<Newcomer>>,
}

impl Newcomers {
    /// The pool's count of failures goes on. That a replacement failed stays counted; a deletion may come to nothing.
    pub(super) fn set_witnesses_aside(&mut self, pool: &PoolName, fault: &str) {
        if fault == REPLACEMENT_FAILED {
            self.dismiss_witnesses(pool);
        } else if let Some(witnesses) = self.witnesses.remove(pool) {
            self.aside.insert(pool.clone(), witnesses);
        }
    }

    /// Nothing was deleted, and nothing is counted: they prove what they proved before. The next process does not know them.
    fn bring_witnesses_back(&mut self, pool: &PoolName) {
        for witness in self.aside.remove(pool).into_iter().flatten() {
            push(self.witnesses.entry(pool.clone()).or_default(), witness);
        }
    }

    /// The pool's count of failures starts, or ends. Machines that joined before that prove nothing about machines that
    /// join after it.
    fn dismiss_witnesses(&mut self, pool: &PoolName) {
        self.witnesses.remove(pool);
        self.aside.remove(pool);
    }

    /// Those that came before something was counted against their pool. For the ledger's checkpoint: told after the count, they
    /// would prove that it is over, and told after those that came later, they would prove other replacements.
    pub(super) fn successors_alone(&self) -> impl Iterator<Item = (&PoolName, &Newcomer)> {
        let is_witness = |pool: &PoolName, one: &Newcomer| {
            let witnesses = self.witnesses.get(pool).into_iter().flatten();
            witnesses.into_iter().any(|witness| witness.machine == one.machine)
        };
        each(&self.successors).filter(move |(pool, one)| !is_witness(pool, one))
    }

    /// Those that came since.
    pub(super) fn witnesses(&self) -> impl Iterator<Item = (&PoolName, &Newcomer)> {
        each(&self.witnesses)
    }

    /// The successor that proves this replacement: the oldest that may be it, so that an older replacement leaves the others to
    /// those after it.
    fn successor(
        &self,
        pool: &PoolName,
        replacement: IntentId,
        well: impl Fn(&Newcomer) -> bool,
    ) -> Option<MachineKey> {
        let mut all = self.successors.get(pool)?.iter();
        all.find(|one| one.may_follow(replacement) && well(one)).map(|one| one.machine.clone())
    }

    /// The replacement is proved, and its successor proves no other. An earlier ledger does not name that.
    pub(super) fn credit(&mut self, pool: &PoolName, replacement: IntentId, successor: Option<MachineKey>) {
        let Some(machine) = successor.or_else(|| self.successor(pool, replacement, |_| true)) else { return };
        if let Some(all) = self.successors.get_mut(pool) {
            all.retain(|one| one.machine != machine);
        }
    }

    fn everyone(&mut self) -> impl Iterator<Item = &mut Newcomer> {
        let Self { successors, witnesses, aside } = self;
        [successors, witnesses, aside].into_iter().flat_map(BTreeMap::values_mut).flatten()
    }

    /// Who answers, and since when.
    fn look(&mut self, now: Time, counts: &Counts) {
        for one in self.everyone() {
            one.well_since = counts.is_present(&one.machine).then(|| one.well_since.unwrap_or(now));
        }
    }

    /// Whether one answered meanwhile was not seen in a gap.
    pub(super) fn over(&mut self, jump: Jump) {
        for one in self.everyone() {
            match jump {
                Jump::Back { .. } => jump.stands(&mut one.well_since),
                Jump::Gap { .. } => one.well_since = None,
            }
        }
    }
}

fn each(of: &BTreeMap<PoolName, Vec<Newcomer>>) -> impl Iterator<Item = (&PoolName, &Newcomer)> {
    of.iter().flat_map(|(pool, all)| all.iter().map(move |one| (pool, one)))
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
    operation.repair_step == RepairStep::Replace
        && operation.domain.as_ref().is_some_and(|domain| domain.pool == *pool)
}

impl State {
    /// Replacements of the pool that may have a successor by now, or later: also those of which nothing seemed to come, and
    /// which are only late.
    fn replacements(&self, pool: &PoolName) -> impl Iterator<Item = (IntentId, &Operation)> {
        let under_way = self.book.operations.iter().map(|(intent, operation)| (*intent, operation));
        under_way.chain(self.book.doubted()).filter(|(_, operation)| replaces_one_of(operation, pool))
    }

    /// Its deletion has not taken effect, as far as is known.
    fn is_there_still(&self, operation: &Operation) -> bool {
        let Some((cloud, id)) = PlanContext::instance_of(&operation.key.subject) else { return false };
        let seen = self.clouds.get(cloud).and_then(|view| view.instances.get(id));
        let is_listed = seen.is_some_and(|seen| seen.unlisted.is_none() && !seen.goes());
        is_listed && !matches!(operation.phase, Phase::Proving { .. })
    }

    /// A machine of this pool is Ready for the first time: where something is counted against the pool, or a replacement waits
    /// for its successor, that is kept in the ledger until it has answered for its dwell.
    pub(super) fn note_newcomer(&mut self, pool: PoolName, machine: MachineKey, after: IntentId) {
        if !self.book.has_faults(&pool) && self.replacements(&pool).next().is_none() {
            return;
        }
        let there = self.replacements(&pool).filter(|(_, operation)| self.is_there_still(operation));
        let beside = there.map(|(intent, _)| intent).collect();
        self.tell_newcomer(pool, Newcomer::new(machine, after, beside));
    }

    fn tell_newcomer(&mut self, pool: PoolName, newcomer: Newcomer) {
        self.outbox.record(arrived(self.now, &pool, &newcomer));
        self.recall_newcomer(pool, newcomer);
    }

    /// The same, as the ledger tells it. It answers for its dwell in our sight, or proves nothing.
    pub(super) fn recall_newcomer(&mut self, pool: PoolName, newcomer: Newcomer) {
        if self.book.has_faults(&pool) {
            push(self.newcomers.witnesses.entry(pool.clone()).or_default(), newcomer.clone());
        }
        if self.replacements(&pool).any(|(intent, _)| newcomer.may_follow(intent)) {
            push(self.newcomers.successors.entry(pool).or_default(), newcomer);
        }
    }

    /// A replacement did not help in time, which is counted. Who came since it took effect was made since, and proves all the
    /// same that it is over, once it is well: one that was Ready for a moment before the count is no newcomer any more after it.
    pub(super) fn recall_witnesses(&mut self, pool: &PoolName, replacement: IntentId) {
        let successors = self.newcomers.successors.get(pool).into_iter().flatten();
        let since: Vec<Newcomer> = successors.filter(|one| one.may_follow(replacement)).cloned().collect();
        for newcomer in since {
            self.tell_newcomer(pool.clone(), newcomer);
        }
    }

    /// Nothing rests on who can be the successor of none that is replaced.
    pub(super) fn forget_newcomers(&mut self) {
        if !stands(Safeguard::LaterReplacement) {
            return;
        }
        let mut known = std::mem::take(&mut self.newcomers.successors);
        known.retain(|pool, all| {
            all.retain(|one| self.replacements(pool).any(|(intent, _)| one.may_follow(intent)));
            !all.is_empty()
        });
        self.newcomers.successors = known;
    }

    /// The oldest replacement that is proved by now, with its pool and its successor.
    pub(super) fn next_proved(&self) -> Option<(IntentId, MachineKey)> {
        self.book.operations.iter().find_map(|(intent, operation)| {
            let is_proving = matches!(operation.phase, Phase::Proving { .. });
            let pool = &operation.domain.as_ref()?.pool;
            let dwell = self.dwell_of(pool);
            let well = |one: &Newcomer| one.is_well(self.now, dwell);
            let is_awaited = is_proving && operation.repair_step == RepairStep::Replace;
            let successor = is_awaited.then(|| self.newcomers.successor(pool, *intent, well)).flatten();
            successor.map(|machine| (*intent, machine))
        })
    }

    fn dwell_of(&self, pool: &PoolName) -> Span {
        self.roster.pools.get(pool).map_or(Span::ZERO, |pool| pool.deadlines.dwell)
    }

    /// Replacements are proved, and the failures of a pool are over, once a newcomer has answered for its dwell. The controller
    /// forgets those that can prove nothing more.
    pub(super) fn review_newcomers(&mut self) {
        self.newcomers.look(self.now, &self.counts);
        self.review_proofs();
        let pools: Vec<PoolName> = self.newcomers.witnesses.keys().cloned().collect();
        for pool in pools {
            let dwell = self.dwell_of(&pool);
            let mut witnesses = self.newcomers.witnesses.get(&pool).into_iter().flatten();
            if witnesses.any(|one| one.is_well(self.now, dwell)) {
                self.forgive_faults(&pool);
                self.outbox.record(Record::FaultsForgiven { at: self.now, pool });
            }
        }
        self.forget_newcomers();
        let over = |(pool, one): (&PoolName, &Newcomer)| Some(one.well_since? + self.dwell_of(pool));
        let Newcomers { successors, witnesses, .. } = &self.newcomers;
        let next =
            each(successors).chain(each(witnesses)).filter_map(over).filter(|over| *over > self.now).min();
        if let Some(next) = next {
            self.timers.set(next, Wake::Newcomers);
        }
    }

    /// A deletion that was counted came to nothing.
    pub(super) fn uncount_fault(&mut self, counted: &Counted) {
        self.book.uncount_fault(counted);
        self.newcomers.bring_witnesses_back(&counted.pool);
    }

    /// Nothing is counted against the pool any more.
    pub(super) fn forgive_faults(&mut self, pool: &PoolName) {
        self.newcomers.dismiss_witnesses(pool);
        if self.book.forgive_faults(pool) {
            self.rouse_held();
        }
    }
}

/// What the ledger keeps of it.
pub(super) fn arrived(at: Time, pool: &PoolName, newcomer: &Newcomer) -> Record {
    let Newcomer { machine, after, beside, well_since: _ } = newcomer.clone();
    Record::Arrived { at, pool: pool.clone(), machine, after: Some(after), beside }
}

//! Which pools others are at work in: another client that deleted a machine there, another controller that acted until a moment
//! ago.
//!
//! ```text
//!  deletion by others ─▶ an hour at most, renewed by each ─┐
//!  another controller let go ─▶ the time of a boot ────────┴─▶ of(pool) ─▶ `interlock` holds what can hurt
//! ```
//!
//! A handover is kept beside the deletions: bare metal that the other controller rebooted comes up for two hours, and a
//! deletion in that time took the place of its hold, and inherited its beginning, so that neither of the two held.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::model::id::PoolName;
use crate::model::jump::Jump;
use crate::model::time::{Span, Time};
use crate::record::Record;

/// After a foreign deletion, a pool is left alone for this long.
pub const OTHERS_QUIET: Span = Span::from_min(10);
/// Foreign deletions, each of which renews that, hold a pool for so long at most.
pub const OTHERS_BLOCK_MAX: Span = Span::from_min(60);

/// Others were at work on machines of a pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Others {
    /// Since when it was noticed again and again, each time before the last notice was over.
    pub since: Time,
    /// When that was noticed last.
    pub at: Time,
    /// The controller does nothing beside that client before this time.
    pub until: Time,
    /// Which client did what, as text for people.
    pub what: Arc<str>,
}

/// Others, by pool.
#[derive(Clone, Debug, Default)]
pub struct AtWork {
    deletions: BTreeMap<PoolName, Others>,
    handovers: BTreeMap<PoolName, Others>,
}

impl Others {
    /// Until when by a clock that may have gone back behind the notice: never longer than it was meant to be.
    fn until_by(&self, clock: Time) -> Time {
        self.at.min(clock) + self.until.since(self.at)
    }

    /// Each deletion by others renews their hold. A handover holds for its own time, which is that of a boot, and is not renewed.
    const fn renews(&self) -> bool {
        self.until.since(self.at).ms <= OTHERS_QUIET.ms
    }

    /// A pool that is scaled all day never rests, and its dead machines were never repaired.
    pub fn never_rests(&self, now: Time) -> bool {
        self.renews() && now >= self.since + OTHERS_BLOCK_MAX
    }

    /// Others that were at work when the last process ended, or when we fell asleep, may be at work still. Their hour does
    /// not run meanwhile: it was over at once after two hours of sleep, and held nothing. Each gap lengthens it by ten
    /// minutes of our time at most, so that it ends.
    ///
    /// A handover is not renewed: what the other controller began has as long to go as before the gap. Renewed in full, it never
    /// ended for a process that crashes each twenty minutes, and nothing of the roster was repaired any more.
    fn over(&mut self, jump: Jump) {
        let is_handover = !self.renews();
        let Self { since, at, until, what: _ } = self;
        match jump {
            Jump::Back { .. } => jump.stands([since, at, until]),
            Jump::Gap { before, .. } if is_handover && *at <= before && before < *until => {
                (*since, *at, *until) = (jump.along(*since), jump.along(*at), jump.along(*until));
            }
            Jump::Gap { before, now } if *at <= before && before < *until => {
                *since = jump.along(*since).max(now + OTHERS_QUIET - OTHERS_BLOCK_MAX);
                (*at, *until) = (now, now + until.since(*at));
            }
            // It is over, or was noted since.
            Jump::Gap { .. } => {}
        }
    }

    /// What restores this in these pools. The earlier records may be gone, and the hour at most counts from the first of them.
    pub fn record(&self, pools: Vec<PoolName>) -> Record {
        let Self { since, at, until, what } = self.clone();
        let since = Some(since).filter(|since| *since < at);
        let (images, versions) = (Vec::new(), Vec::new());
        Record::OthersActed {
            at,
            pools,
            until,
            what,
            rollout: false,
            guessed: false,
            since,
            images,
            versions,
        }
    }

    fn go_back_to(&mut self, now: Time) {
        self.until = self.until_by(now);
        self.at = self.at.min(now);
        self.since = self.since.min(now);
    }
}

impl AtWork {
    /// Those in this pool.
    pub fn of(&self, pool: &PoolName) -> impl Iterator<Item = &Others> {
        [self.deletions.get(pool), self.handovers.get(pool)].into_iter().flatten()
    }

    /// None was noticed, or all of them are forgotten.
    pub fn is_empty(&self) -> bool {
        self.deletions.is_empty() && self.handovers.is_empty()
    }

    /// Others were noticed in a pool. What ends later counts. Where the clock went back between the two, what was known before
    /// has as long to go as ever.
    pub fn note(&mut self, pool: &PoolName, others: &Others) {
        let kept = if others.renews() { &mut self.deletions } else { &mut self.handovers };
        let known = kept.get(pool);
        if known.is_some_and(|known| known.until_by(others.at) > others.until) {
            return;
        }
        let goes_on = known.filter(|known| others.at <= known.until_by(others.at));
        let since = goes_on.map_or(others.since, |known| known.since.min(others.at));
        kept.insert(pool.clone(), Others { since, ..others.clone() });
    }

    /// It is known by now who deleted what: the ledger has to know it, too.
    pub fn tell(&mut self, pool: &PoolName, what: Arc<str>) -> Option<Record> {
        let others = self.deletions.get_mut(pool)?;
        others.what = what;
        Some(others.record(vec![pool.clone()]))
    }

    /// What restores this, for a rotated ledger.
    pub fn checkpoint(&self, at: Time) -> impl Iterator<Item = Record> {
        let all = self.deletions.iter().chain(&self.handovers).filter(move |(_, others)| at < others.until);
        all.map(|(pool, others)| others.record(vec![pool.clone()]))
    }

    /// Their times go over a jump.
    pub fn over(&mut self, jump: Jump) {
        self.all_mut().for_each(|others| others.over(jump));
    }

    /// The clock went back.
    pub fn go_back_to(&mut self, now: Time) {
        self.all_mut().for_each(|others| others.go_back_to(now));
    }

    fn all_mut(&mut self) -> impl Iterator<Item = &mut Others> {
        self.deletions.values_mut().chain(self.handovers.values_mut())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(min: i64) -> Time {
        Time::from_ms(min * 60_000)
    }

    fn noticed(min: i64, span: Span) -> Others {
        Others { since: at(min), at: at(min), until: at(min) + span, what: Arc::from("they") }
    }

    #[test]
    fn deletions_one_after_another_are_one_work_that_never_rests() {
        let (mut work, pool) = (AtWork::default(), PoolName::from("workers"));
        let quiet_min = OTHERS_QUIET.ms / 60_000;
        for turn in 0..20 {
            work.note(&pool, &noticed(turn * quiet_min, OTHERS_QUIET));
        }
        let others = work.of(&pool).next().unwrap();
        assert_eq!(others.since, at(0));
        assert!(others.never_rests(at(0) + OTHERS_BLOCK_MAX) && !others.never_rests(at(1)));
    }

    #[test]
    fn handover_is_kept_beside_a_deletion_and_never_renewed() {
        let (mut work, pool) = (AtWork::default(), PoolName::from("workers"));
        work.note(&pool, &noticed(0, OTHERS_QUIET + Span::from_min(60)));
        work.note(&pool, &noticed(5, OTHERS_QUIET));
        let until = |work: &AtWork| work.of(&pool).map(|others| others.until).collect::<Vec<_>>();
        assert_eq!(until(&work), [at(5) + OTHERS_QUIET, at(60) + OTHERS_QUIET]);
        assert_eq!(work.checkpoint(at(0)).count(), 2);
        work.go_back_to(at(2));
        assert_eq!(until(&work), [at(2) + OTHERS_QUIET, at(60) + OTHERS_QUIET]);
    }
}

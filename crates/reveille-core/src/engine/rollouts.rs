//! Rollouts: pools in which another image or kubelet version turned up lately. Their machines are replaced by others just now,
//! and the controller leaves such a pool alone for a while.
//!
//! ```text
//!  instances and Nodes of a cloud ─▶ editions of each pool ─▶ another one? ─▶ rolling until … ─▶ ledger
//!  ledger, after a restart ────────▶ remember ─▶ editions that the next listing is held against
//! ```
//!
//! Each pool in `rolling` is in `of`. `plan::interlock` says what a rollout holds. Rollouts that follow one another hold a pool
//! for an hour at most, as the deletions of others do (`plan::others`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::model::id::{CloudName, InstanceId, PoolName};
use crate::model::jump::Jump;
use crate::model::roster::Roster;
use crate::model::time::{Span, Time};
use crate::observe::cloud::{CloudView, Seen};
use crate::observe::cluster::ClusterView;
use crate::plan::others::OTHERS_BLOCK_MAX;
use crate::record::Record;

/// One machine is upgraded no oftener than this.
const UPGRADED_AGAIN: Span = Span::from_min(24 * 60);
/// So many images, and as many versions, of a pool are told the ledger.
const EDITIONS_MAX: usize = 16;
/// None that is longer.
const EDITION_LEN_MAX: usize = 128;
/// What is told of a pool that is rolled.
const TURNED_UP: &str = "another image or version turned up in the pool";
/// What is told of one that was.
const WENT: &str = "an image or version is not in the pool any more";

/// Images and versions of the machines of a pool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Editions {
    pub(super) images: BTreeSet<Arc<str>>,
    pub(super) versions: BTreeSet<Arc<str>>,
}

/// What a pool is made of, and when that last changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Rollout {
    is: Editions,
    /// What the ledger knows of it, once the pool was rolled. Each of these is there still.
    told: Editions,
    changed_at: Option<Time>,
    /// When that was by the clock, which goes on in gaps: the next change after a quiet time is another rollout, also where a
    /// part of that time was not seen (seed 8382533).
    seen_at: Option<Time>,
    /// Since when it changes again and again, each time before it had been quiet, by a clock that stands still in gaps.
    since: Option<Time>,
    /// Nothing tells whether the last change was one: it does not begin the hour of those that follow.
    is_guess: bool,
    /// Until when a gap lengthens the wait: nothing changed by that, and it makes no two rollouts one (seed 7972908).
    lengthened: Option<Time>,
}

/// How it shows that a pool was rolled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    /// An image or a version turned up.
    Seen,
    /// The pool has two, of which nothing was known, or which are doubted.
    Guessed,
}

/// What every pool is made of, and which are rolling.
#[derive(Clone, Debug, Default)]
pub(super) struct Rollouts {
    of: BTreeMap<PoolName, Rollout>,
    /// Until when a pool counts as rolling.
    rolling: BTreeMap<PoolName, Time>,
    /// Machines that turned up with another kubelet version lately, and when that counted.
    upgraded: BTreeMap<InstanceId, Time>,
    /// Of which editions of its instances and of the nodes each cloud's rollouts were last told.
    as_of: BTreeMap<CloudName, (u64, u64)>,
}

impl Rollouts {
    /// Pools that are rolling, and until when that is assumed.
    pub(super) const fn rolling(&self) -> &BTreeMap<PoolName, Time> {
        &self.rolling
    }

    /// Holds the machines of a cloud against what its pools were made of. Returns what the ledger has to know.
    pub(super) fn review(
        &mut self,
        roster: &Roster,
        view: &CloudView,
        cluster: &ClusterView,
        now: Time,
    ) -> Vec<Record> {
        // The same machines and nodes show the same images and versions.
        let editions = (view.edition(), cluster.edition());
        if self.as_of.get(&view.name) == Some(&editions) {
            return Vec::new();
        }
        self.as_of.insert(view.name.clone(), editions);
        let pools = roster.pools.values().filter(|pool| pool.cloud == view.name);
        let mut found: BTreeMap<PoolName, Editions> =
            pools.map(|pool| (pool.name.clone(), Editions::default())).collect();
        for seen in view.instances.values() {
            let Some(is) = seen.pool().and_then(|pool| found.get_mut(pool)) else { continue };
            if let Some(image) = seen.instance.image.as_ref().filter(|image| is_edition(image.as_str()))
                && !is.images.contains(image.as_str())
            {
                is.images.insert(Arc::from(image.as_str()));
            }
            if let Some(version) = kubelet_of(cluster, seen)
                && !is.versions.contains(version)
            {
                is.versions.insert(version.clone());
            }
        }
        found.retain(|_, is| *is != Editions::default());
        let quiet = roster.timing.rollout_quiet;
        let records = found.into_iter().filter_map(|(pool, is)| {
            let news = self.news(&pool, &is);
            let is_rolling = !news.images.is_empty() || self.is_upgraded((view, cluster), &pool, &news, now);
            let change = self.change(&pool, &news);
            self.take(pool, is, is_rolling.then_some(change), now, quiet)
        });
        records.collect()
    }

    /// The first reading of a pool that has one image is no change. Of a pool that has two, and of which the ledger knows
    /// nothing, nothing tells whether it was rolled a minute before: it may have two for years, and waits once in vain. The
    /// ledger knows it from then on: each process waited half an hour, and one that was restarted each 25 minutes repaired
    /// nothing there.
    fn news(&self, pool: &PoolName, is: &Editions) -> Editions {
        let known = self.of.get(pool).map(|known| &known.is);
        let new = |is: &BTreeSet<Arc<str>>, known: Option<&BTreeSet<Arc<str>>>| match known {
            // A machine that a ledger alone tells of has no image.
            Some(known) if !known.is_empty() => is.difference(known).cloned().collect(),
            _ if is.len() > 1 => is.clone(),
            _ => BTreeSet::new(),
        };
        let images = new(&is.images, known.map(|known| &known.images));
        Editions { images, versions: new(&is.versions, known.map(|known| &known.versions)) }
    }

    /// What it is that these turned up. There are some.
    fn change(&self, pool: &PoolName, news: &Editions) -> Change {
        let guessed =
            |news: &BTreeSet<Arc<str>>, known: &BTreeSet<Arc<str>>| news.is_empty() || known.is_empty();
        let is_guess = self.of.get(pool).is_none_or(|Rollout { is, .. }| {
            guessed(&news.images, &is.images) && guessed(&news.versions, &is.versions)
        });
        if is_guess { Change::Guessed } else { Change::Seen }
    }

    /// A machine of the pool runs one of these versions, and has not counted for this within a day. A kubelet writes its version
    /// itself: one that wrote another each time kept its whole pool from being repaired.
    fn is_upgraded(
        &mut self,
        (view, cluster): (&CloudView, &ClusterView),
        pool: &PoolName,
        news: &Editions,
        now: Time,
    ) -> bool {
        if news.versions.is_empty() {
            return false;
        }
        self.upgraded.retain(|_, at| now.since(*at) < UPGRADED_AGAIN);
        let mut is_first = false;
        for (id, seen) in view.instances.iter().filter(|(_, seen)| seen.pool() == Some(pool)) {
            if kubelet_of(cluster, seen).is_some_and(|version| news.versions.contains(version)) {
                is_first |= self.upgraded.insert(id.clone(), now).is_none();
            }
        }
        is_first
    }

    /// The pool is made of these now. The ledger is told when another one turns up, and when one of those that it knows is gone:
    /// it would be another one if it came back.
    fn take(
        &mut self,
        pool: PoolName,
        is: Editions,
        change: Option<Change>,
        now: Time,
        quiet: Span,
    ) -> Option<Record> {
        let known = self.of.remove(&pool).unwrap_or_default();
        let changed_at = change.map(|_| now).or(known.changed_at);
        let is_new = changed_at == Some(now);
        let seen_at = change.map(|_| now).or(known.seen_at);
        let is_next = || !known.is_guess && known.seen_at.is_some_and(|at| now < at + quiet);
        let goes_on = !is_new || is_next();
        let is_guess = change.map_or(known.is_guess, |change| change == Change::Guessed);
        let since = known.since.filter(|_| goes_on).or(changed_at);
        let told = if is_new { is.told() } else { known.told.those_in(&is) };
        let is_told = !is_new && told == known.told;
        let lengthened = known.lengthened.filter(|_| goes_on);
        let rollout = Rollout { is, told, changed_at, seen_at, since, is_guess, lengthened };
        let until = rollout.until(quiet);
        match until {
            Some(until) => self.rolling.insert(pool.clone(), until),
            None => self.rolling.remove(&pool),
        };
        let what = if is_new { TURNED_UP } else { WENT };
        let record = until.filter(|_| !is_told).and_then(|until| rollout.record(&pool, until, what));
        self.of.insert(pool, rollout);
        record
    }

    /// The ledger says that this pool was rolled. A process sees one image and one version in it, and cannot tell.
    pub(super) fn remember(
        &mut self,
        pool: PoolName,
        until: Time,
        (at, since): (Time, Time),
        (told, is_guess): (Editions, bool),
    ) {
        self.rolling.insert(pool.clone(), until);
        let is = told.clone();
        let (changed_at, since, lengthened) = (Some(at), Some(since), Some(until));
        let rollout = Rollout { is, told, changed_at, seen_at: Some(at), since, is_guess, lengthened };
        self.of.insert(pool, rollout);
    }

    /// After longer than an hour without us, a pool that had two versions may be rolled from one to the other just now: as where
    /// nothing is known of it.
    pub(super) fn doubt(&mut self) {
        let known = self.of.values_mut().flat_map(|it| [&mut it.is.images, &mut it.is.versions]);
        known.filter(|known| known.len() > 1).for_each(BTreeSet::clear);
    }

    /// What restores this, for a rotated ledger.
    pub(super) fn checkpoint(&self, at: Time) -> impl Iterator<Item = Record> {
        let rolling =
            self.rolling.iter().filter_map(|(pool, until)| Some((pool, self.of.get(pool)?, *until)));
        let kept =
            rolling.filter(move |(_, rollout, until)| at < *until || rollout.told != Editions::default());
        kept.filter_map(|(pool, rollout, until)| rollout.record(pool, until, TURNED_UP))
    }

    /// A rollout that was going on before a gap may go on still: it is waited for as long again. Gaps lengthen that to an hour of
    /// our time at most, as for others (`plan::jump`): a process that crashes each twenty minutes left the pool to it for ever.
    pub(super) fn over(&mut self, jump: Jump, quiet: Span) {
        let Self { of, rolling, upgraded, as_of: _ } = self;
        jump.stands(upgraded.values_mut());
        for (pool, until) in rolling {
            let Some(Rollout { changed_at, since, lengthened, .. }) = of.get_mut(pool) else { continue };
            match jump {
                Jump::Gap { before, now } if before < *until => {
                    jump.counts(since.iter_mut().chain(&mut *changed_at));
                    let longest = since.unwrap_or(now) + OTHERS_BLOCK_MAX;
                    // Never shorter than before the gap.
                    *until = (now + quiet).min(longest).max(jump.along(*until));
                    *lengthened = Some(*until);
                }
                Jump::Gap { .. } => {}
                Jump::Back { .. } => jump.stands([until]),
            }
        }
        if matches!(jump, Jump::Back { .. }) {
            for Rollout { changed_at, seen_at, since, lengthened, is: _, told: _, is_guess: _ } in
                of.values_mut()
            {
                jump.stands(changed_at.iter_mut().chain(seen_at).chain(since).chain(lengthened));
            }
        }
    }

    /// The clock went back. A rollout that was noted hours ahead held its pool until then.
    pub(super) fn go_back_to(&mut self, now: Time, quiet: Span) {
        self.rolling.values_mut().for_each(|until| *until = (*until).min(now + quiet));
        for Rollout { changed_at, seen_at, since, lengthened, is: _, told: _, is_guess: _ } in
            self.of.values_mut()
        {
            changed_at.iter_mut().chain(seen_at).chain(since).for_each(|at| *at = (*at).min(now));
            lengthened.iter_mut().for_each(|until| *until = (*until).min(now + quiet));
        }
    }
}

impl Rollout {
    /// Until when the pool is left alone: it is quiet by then, or has not been for an hour. A server of another image that was
    /// made and deleted each 25 minutes held its pool for ever.
    fn until(&self, quiet: Span) -> Option<Time> {
        let (changed_at, since) = self.changed_at.zip(self.since)?;
        let until = (changed_at + quiet).min(since + OTHERS_BLOCK_MAX.max(quiet));
        Some(self.lengthened.map_or(until, |lengthened| lengthened.max(until)))
    }

    /// The pool was rolled: kept for the next process.
    fn record(&self, pool: &PoolName, until: Time, what: &str) -> Option<Record> {
        let at = self.changed_at?;
        let since = self.since.filter(|since| *since < at);
        let what = Arc::from(what);
        let [images, versions] =
            [&self.told.images, &self.told.versions].map(|told| told.iter().cloned().collect());
        let pools = vec![pool.clone()];
        let (rollout, guessed) = (true, self.is_guess);
        Some(Record::OthersActed { at, pools, until, what, rollout, guessed, since, images, versions })
    }
}

impl Editions {
    /// As much of it as the ledger is told, which bounds its lines. What is left out is new to the next process.
    fn told(&self) -> Self {
        let some = |all: &BTreeSet<Arc<str>>| all.iter().take(EDITIONS_MAX).cloned().collect();
        Self { images: some(&self.images), versions: some(&self.versions) }
    }

    /// Those of them that are there.
    fn those_in(&self, there: &Self) -> Self {
        let both = |these: &BTreeSet<Arc<str>>, those| these.intersection(those).cloned().collect();
        Self { images: both(&self.images, &there.images), versions: both(&self.versions, &there.versions) }
    }
}

/// A kubelet writes its version itself: one that is too long for the ledger was new to each process, and began the hour of a
/// rollout before the rollout (seed 7900005).
const fn is_edition(text: &str) -> bool {
    text.len() <= EDITION_LEN_MAX
}

/// The version that its kubelet writes into its Node.
fn kubelet_of<'a>(cluster: &'a ClusterView, seen: &Seen) -> Option<&'a Arc<str>> {
    cluster.nodes.get(seen.nodes.first()?)?.node.kubelet.as_ref().filter(|version| is_edition(version))
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUIET: Span = Span::from_min(30);

    fn at(min: i64) -> Time {
        Time::from_ms(min * 60_000)
    }

    fn images(names: &[&str]) -> Editions {
        Editions { images: names.iter().map(|name| Arc::from(*name)).collect(), ..Editions::default() }
    }

    /// The pool is made of these images then. Until when it rolls, in minutes, and what the ledger is told.
    fn take(rollouts: &mut Rollouts, min: i64, names: &[&str]) -> (Option<i64>, Option<&'static str>) {
        let (pool, is) = (PoolName::from("workers"), images(names));
        let news = rollouts.news(&pool, &is);
        let change = (!news.images.is_empty()).then(|| rollouts.change(&pool, &news));
        let record = rollouts.take(pool.clone(), is, change, at(min), QUIET);
        let until = rollouts.rolling().get(&pool).map(|until| until.ms / 60_000);
        let said = record.map(|record| match record {
            Record::OthersActed { what, .. } if &*what == TURNED_UP => TURNED_UP,
            _ => WENT,
        });
        (until, said)
    }

    #[test]
    fn pool_rolls_from_when_another_image_turned_up() {
        let mut rollouts = Rollouts::default();
        assert_eq!(take(&mut rollouts, 0, &["a"]), (None, None), "the first reading is no change");
        assert_eq!(take(&mut rollouts, 5, &["a", "b"]), (Some(35), Some(TURNED_UP)));
        assert_eq!(take(&mut rollouts, 6, &["a", "b"]), (Some(35), None));
        assert_eq!(take(&mut rollouts, 9, &["b"]), (Some(35), Some(WENT)));
        assert_eq!(take(&mut rollouts, 40, &["a", "b"]), (Some(70), Some(TURNED_UP)), "it came back");
    }

    #[test]
    fn rollouts_without_quiet_hold_a_pool_for_an_hour() {
        let mut rollouts = Rollouts::default();
        take(&mut rollouts, 0, &["a"]);
        let mut until = Vec::new();
        for min in [5, 30, 55, 80, 105] {
            until.push(take(&mut rollouts, min, &["a", "b"]).0);
            take(&mut rollouts, min + 1, &["a"]);
        }
        assert_eq!(until, [Some(35), Some(60), Some(65), Some(65), Some(65)]);
        rollouts.over(Jump::Gap { before: at(110), now: at(112) }, QUIET);
        assert_eq!(take(&mut rollouts, 130, &["a", "b"]), (Some(65), Some(TURNED_UP)));
        assert_eq!(take(&mut rollouts, 131, &["a"]), (Some(65), Some(WENT)));
        assert_eq!(take(&mut rollouts, 160, &["a", "b"]), (Some(190), Some(TURNED_UP)), "it was quiet");
    }

    /// A process that begins after a long gap finds two images, which may be there for years. It guesses a rollout, and one that
    /// is seen soon afterwards holds the pool for a whole hour of its own.
    #[test]
    fn guessed_rollout_does_not_begin_the_hour_of_a_seen_one() {
        let mut rollouts = Rollouts::default();
        let until: Vec<_> = [(0, &["a", "b"][..]), (22, &["b", "c"]), (35, &["c", "d"]), (55, &["d", "e"])]
            .into_iter()
            .map(|(min, names)| take(&mut rollouts, min, names).0)
            .collect();
        assert_eq!(until, [Some(30), Some(52), Some(65), Some(82)]);
    }

    /// The same where a process began between the two (seed 7970021).
    #[test]
    fn guessed_rollout_is_a_guess_to_the_next_process() {
        let mut rollouts = Rollouts::default();
        take(&mut rollouts, 0, &["a", "b"]);
        let Some(Record::OthersActed { at: changed_at, until, guessed: true, .. }) =
            rollouts.checkpoint(at(10)).next()
        else {
            panic!("the ledger has to know");
        };
        let mut next = Rollouts::default();
        next.remember("workers".into(), until, (changed_at, changed_at), (images(&["a", "b"]), true));
        next.over(Jump::Gap { before: at(20), now: at(21) }, QUIET);
        assert_eq!(take(&mut next, 45, &["b", "c"]).0, Some(75));
        assert_eq!(take(&mut next, 70, &["c", "d"]).0, Some(100));
    }

    #[test]
    fn hour_of_rollouts_is_kept_over_a_gap_and_a_restart() {
        let mut rollouts = Rollouts::default();
        for (min, names) in [(0, &["a"][..]), (5, &["a", "b"]), (6, &["a"]), (30, &["a", "b"]), (31, &["a"])]
        {
            take(&mut rollouts, min, names);
        }
        let (until, _) = take(&mut rollouts, 55, &["a", "b"]);
        assert_eq!(until, Some(65), "not 85");
        let Some(Record::OthersActed { at: changed_at, until, since, .. }) =
            rollouts.checkpoint(at(56)).next()
        else {
            panic!("the ledger has to know");
        };
        let mut next = Rollouts::default();
        next.remember("workers".into(), until, (changed_at, since.unwrap()), (images(&["a"]), false));
        next.over(Jump::Gap { before: at(56), now: at(60) }, QUIET);
        assert_eq!(take(&mut next, 60, &["a"]).0, Some(69), "the gap does not count");
        assert_eq!(take(&mut next, 80, &["a", "b"]).0, Some(69));
    }

    /// A process died for 26 minutes ten seconds before the pool was quiet, and waited as long again. The next rollout, an hour
    /// after the first one, is another one (seed 7972908).
    #[test]
    fn rollout_after_a_wait_that_a_gap_lengthened_is_another() {
        let mut rollouts = Rollouts::default();
        take(&mut rollouts, 0, &["a"]);
        take(&mut rollouts, 5, &["a", "b"]);
        rollouts.over(Jump::Gap { before: at(34), now: at(60) }, QUIET);
        assert_eq!(take(&mut rollouts, 61, &["a", "b"]).0, Some(90));
        assert_eq!(take(&mut rollouts, 68, &["b", "c"]).0, Some(98), "not 91, an hour after the first");
    }

    /// A process died for 26 minutes amid the quiet after a rollout. The next one, 51 minutes after it, is another one, and so is
    /// the hour of those that follow.
    #[test]
    fn quiet_that_is_not_seen_ends_a_rollout() {
        let mut rollouts = Rollouts::default();
        take(&mut rollouts, 0, &["a"]);
        take(&mut rollouts, 5, &["a", "b"]);
        rollouts.over(Jump::Gap { before: at(27), now: at(53) }, QUIET);
        assert_eq!(take(&mut rollouts, 56, &["b", "c"]).0, Some(86));
        assert_eq!(take(&mut rollouts, 66, &["c", "d"]).0, Some(96), "not 91, an hour after the first");
    }

    #[test]
    fn two_images_known_to_ledger_are_a_change_only_after_long_gap() {
        let mut rollouts = Rollouts::default();
        rollouts.remember("workers".into(), at(30), (at(0), at(0)), (images(&["a", "b"]), false));
        assert_eq!(rollouts.checkpoint(at(90)).count(), 1, "it is over, and its images are known still");
        assert_eq!(take(&mut rollouts, 50, &["a", "b"]), (Some(30), None));
        rollouts.doubt();
        assert_eq!(take(&mut rollouts, 99, &["a", "b"]), (Some(129), Some(TURNED_UP)));
    }

    #[test]
    fn gaps_extend_rollout_by_an_hour_at_most_and_clock_may_go_back() {
        let mut rollouts = Rollouts::default();
        rollouts.remember("workers".into(), at(30), (at(0), at(0)), (images(&["a"]), false));
        rollouts.over(Jump::Gap { before: at(20), now: at(50) }, QUIET);
        let until = |rollouts: &Rollouts| rollouts.rolling().values().next().map(|until| until.ms / 60_000);
        assert_eq!(until(&rollouts), Some(80));
        rollouts.over(Jump::Gap { before: at(79), now: at(99) }, QUIET);
        assert_eq!(
            until(&rollouts),
            Some(110),
            "20 min before the first gap, 29 after it, and an hour is over"
        );
        rollouts.go_back_to(at(10), QUIET);
        assert_eq!(until(&rollouts), Some(40));
    }
}

//! How many machines were cured, and how long it took, whether they were repaired or replaced.
//!
//! ```text
//!  a machine is unwell ─▶ its place is open ─┬▶ it is well again ───────────────────────────▶ closed
//!                                            └▶ it is gone ─▶ its pool's next machine takes over ─▶ well ─▶ closed
//! ```
//!
//! What its owner misses is a working machine in a place, not this very machine. So a place opens when a machine of a pool
//! stops being well, or is ordered; it closes when a machine that holds it is well. A machine that is being deleted leaves
//! its open place to its pool, and the pool's next machine takes the oldest. A place that its owner no longer wants (the pool was
//! made smaller) is dropped and counts as neither. Well is what the world's truth calls well, and that pods on the node
//! can be reached.
//!
//! A cure must hold: a machine that is unwell again within ten minutes was not cured, and its place has been open all the time.
//! So a group that is put on a port every few minutes, and slips off it, is one place and not many cures.
//!
//! A place that was opened by a destructive act on a healthy machine is counted apart, as broken: closing it again is no
//! cure.
//!
//! The truth is looked at every five seconds; times are that exact.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use reveille_core::model::id::{InstanceId, PoolName};
use reveille_core::model::time::{Span, Time};

use crate::world::{World, Wrong};

/// A machine that is well for so long was cured when it became well.
const HOLDS: Span = Span::from_min(10);
/// Between two looks at the truth.
pub(crate) const LOOK: Span = Span::from_s(5);

/// The places of all pools.
#[derive(Clone, Debug, Default)]
pub(crate) struct Places {
    /// Open places of machines that are there.
    held: BTreeMap<InstanceId, Place>,
    /// Places of machines that are well again, since when, and not for long enough.
    healing: BTreeMap<InstanceId, (Place, Time)>,
    /// Open places of machines that are gone, oldest first.
    left: BTreeMap<PoolName, VecDeque<Place>>,
    known: BTreeMap<InstanceId, PoolName>,
    /// How long each place was open that was closed, in order of closing.
    cured: Vec<Span>,
    opened: u64,
    broken: u64,
    /// Acts that were looked at.
    acts: usize,
    /// Healthy machines that a destructive act hit.
    hit: BTreeSet<InstanceId>,
}

/// An open place.
#[derive(Clone, Copy, Debug)]
struct Place {
    since: Time,
    /// It was opened by a destructive act on a healthy machine.
    broken: bool,
}

impl Places {
    /// Looks at the truth.
    pub(crate) fn look(&mut self, now: Time, world: &World) {
        let acts = world.acts();
        let healthy = acts.iter().skip(self.acts).filter(|act| act.wrong == Some(Wrong::Healthy));
        self.hit.extend(healthy.map(|act| act.machine.clone()));
        self.acts = acts.len();
        let health = world.health();
        let there: BTreeSet<&InstanceId> = health.iter().map(|one| &one.id).collect();
        let gone: Vec<InstanceId> = self.known.keys().filter(|id| !there.contains(id)).cloned().collect();
        for id in gone {
            let Some(pool) = self.known.remove(&id) else { continue };
            let place = self.open_place(now, &id);
            self.left.entry(pool).or_default().push_back(place);
        }
        for one in &health {
            let new = self.known.insert(one.id.clone(), one.pool.clone()).is_none();
            if one.well {
                if let Some(place) = self.held.remove(&one.id) {
                    self.healing.insert(one.id.clone(), (place, now));
                }
            } else if !self.held.contains_key(&one.id) {
                let inherited = self.left.get_mut(&one.pool).filter(|_| new).and_then(VecDeque::pop_front);
                let place = inherited.unwrap_or_else(|| self.open_place(now, &one.id));
                self.held.insert(one.id.clone(), place);
            }
        }
        self.close_places(now);
        self.drop_unwanted(world);
    }

    /// The place that this machine leaves or has from now on: the one that it had, or a new one.
    fn open_place(&mut self, now: Time, id: &InstanceId) -> Place {
        let healing = self.healing.remove(id).map(|(place, _)| place);
        if let Some(place) = self.held.remove(id).or(healing) {
            return place;
        }
        let broken = self.hit.remove(id);
        *self.count(broken) += 1;
        Place { since: now, broken }
    }

    fn close_places(&mut self, now: Time) {
        let held = |(_, (_, well)): &(&InstanceId, &(Place, Time))| now.since(*well) >= HOLDS;
        let done: Vec<InstanceId> = self.healing.iter().filter(held).map(|(id, _)| id.clone()).collect();
        for (place, well) in done.iter().filter_map(|id| self.healing.remove(id)).collect::<Vec<_>>() {
            if !place.broken {
                self.cured.push(well.since(place.since));
            }
        }
    }

    const fn count(&mut self, broken: bool) -> &mut u64 {
        if broken { &mut self.broken } else { &mut self.opened }
    }

    /// A pool that was made smaller misses fewer machines.
    fn drop_unwanted(&mut self, world: &World) {
        let mut dropped = Vec::new();
        for (pool, left) in &mut self.left {
            let missing = world.missing(pool);
            while left.len() > missing {
                dropped.extend(left.pop_back());
            }
        }
        for place in dropped {
            *self.count(place.broken) -= 1;
        }
    }

    /// Places that were opened by what happened in the world, and are still wanted or were closed.
    pub(crate) const fn opened(&self) -> u64 {
        self.opened
    }

    /// Places that were opened by destructive acts on healthy machines.
    pub(crate) const fn broken(&self) -> u64 {
        self.broken
    }

    /// How long each place was open that was closed, shortest first. At the end, who is well counts as cured.
    pub(crate) fn times(&self) -> Vec<Span> {
        let healing = self.healing.values().filter(|(place, _)| !place.broken);
        let mut times = self.cured.clone();
        times.extend(healing.map(|(place, well)| well.since(place.since)));
        times.sort_unstable();
        times
    }
}

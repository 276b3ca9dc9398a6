//! Counts how many machines are Ready and how many are not, by pool and by zone, kept up to date one machine at a time.
//! Zones of two clouds that have the same name may be one zone, where the clouds are projects of one region, or two
//! unrelated zones. The counts counts them together and apart.
//!
//! Breakers and zone freezes ask "what share has a problem?" after every event, so a new count each time would cost too
//! much. The counts remembers each machine's [`Place`], and to move it costs two map lookups whatever the size of the fleet.
//!
//! A machine that its Node calls Ready and whose lease is silent counts as one that has a problem: a list of nodes may be old,
//! or lose what happens, while the leases beside it are not.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::model::id::{CloudName, PoolName, ZoneName};
use crate::model::incident::MachineKey;
use crate::safeguard::{Safeguard, stands};

use super::pack::{Growth, pack};

/// Where a machine is counted, and as what.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Its pool; machines of no pool are not counted.
    pub pool: PoolName,
    /// Its zone, where its cloud or its Node names one.
    pub zone: Option<ZoneName>,
    /// As what it counts.
    pub rank: Rank,
    /// The machine does not stay, whatever it counts as: a machine that had a problem when it went counts as having it for
    /// a while.
    pub goes: bool,
    /// It has Nodes, and the kubelet of none of them posts its status.
    pub unheard: bool,
}

/// What a machine counts as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rank {
    /// It answers.
    Present,
    /// It has a problem, from the first sight on: correlation starts when machines turn, not when patience ends.
    Unhealthy,
    /// It has not joined yet, or its state is unknown: it counts neither as well nor as having a problem.
    Undecided,
    /// It has not come, and need not: it counts for the minimum of its pool alone.
    Unawaited,
    /// It leaves. Not part of the fleet any more.
    Leaving,
}

impl Rank {
    /// It is part of the fleet and does not answer.
    pub const fn is_away(self) -> bool {
        matches!(self, Self::Unhealthy | Self::Undecided)
    }
}

/// Counts of one pool, one zone, or all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Those that answer.
    pub present: u32,
    /// Those that have a problem.
    pub unhealthy: u32,
    /// Those whose state is unknown, or that have not joined yet.
    pub undecided: u32,
    /// Those that need not come.
    pub unawaited: u32,
    /// Of all these, those that do not stay.
    pub going: u32,
    /// Of all these, those whose kubelets post no status.
    pub unheard: u32,
}

impl Count {
    /// The fleet that these are counted in. Who need not come is no part of it.
    pub const fn total(&self) -> u32 {
        self.present + self.unhealthy + self.undecided
    }

    fn slot(&mut self, rank: Rank) -> Option<&mut u32> {
        match rank {
            Rank::Present => Some(&mut self.present),
            Rank::Unhealthy => Some(&mut self.unhealthy),
            Rank::Undecided => Some(&mut self.undecided),
            Rank::Unawaited => Some(&mut self.unawaited),
            Rank::Leaving => None,
        }
    }
}

/// All counts.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    places: BTreeMap<MachineKey, Arc<Place>>,
    /// Each place once: a fleet of any size has as many as it has pools, zones and ranks.
    known: BTreeSet<Arc<Place>>,
    growth: Growth,
    pools: BTreeMap<PoolName, Count>,
    zones: BTreeMap<ZoneName, Count>,
    /// The same, of the machines of one cloud.
    zones_of: BTreeMap<(CloudName, ZoneName), Count>,
    all: Count,
    /// Machines whose leases are silent, whatever their Nodes are said to be.
    silent: BTreeSet<MachineKey>,
    /// Machines that were counted as away and answer, since they were taken last.
    back: Vec<MachineKey>,
}

impl Counts {
    /// Moves a machine to its place, or takes it out of the count.
    pub fn set(&mut self, key: &MachineKey, place: Option<Place>) {
        let old = self.places.get(key).cloned();
        if old.as_deref() == place.as_ref() {
            return;
        }
        let was_away = old.as_ref().is_some_and(|old| self.counts_as(key, old).is_away());
        if let Some(old) = &old {
            self.add(key, old, false);
        }
        match place.map(|place| self.share(place)) {
            Some(new) => {
                if was_away && self.counts_as(key, &new) == Rank::Present {
                    self.back.push(key.clone());
                }
                self.add(key, &new, true);
                if self.places.insert(key.clone(), new).is_none() {
                    self.growth.note();
                    if self.growth.is_over(self.places.len()) {
                        pack(&mut self.places);
                    }
                }
            }
            None => drop(self.places.remove(key)),
        }
        // No machine has that place any more: this one and the shared one are left.
        if let Some(old) = old.filter(|old| Arc::strong_count(old) <= 2) {
            self.known.remove(&old);
        }
    }

    /// Leases of these machines are silent, and of no others: the list of leases tells, and not the machine's own Node. Those
    /// that were silent and are not any more are back, whatever their Nodes are said to be.
    pub fn set_silent(&mut self, silent: BTreeSet<MachineKey>) {
        let renewed = self.silent.difference(&silent).cloned();
        self.back.extend(renewed.filter(|key| self.places.contains_key(key)));
        self.count_silent(silent);
    }

    /// No list of leases tells any more which are silent: that says of no machine that it is back.
    pub fn forget_silent(&mut self) {
        self.count_silent(BTreeSet::new());
    }

    fn count_silent(&mut self, silent: BTreeSet<MachineKey>) {
        let changed: Vec<MachineKey> = self.silent.symmetric_difference(&silent).cloned().collect();
        let places = changed.into_iter().filter_map(|key| Some((self.places.get(&key)?.clone(), key)));
        let places: Vec<_> = places.collect();
        for (place, key) in &places {
            self.add(key, place, false);
        }
        self.silent = silent;
        for (place, key) in &places {
            self.add(key, place, true);
        }
    }

    /// As what a machine of this place counts now.
    fn counts_as(&self, key: &MachineKey, place: &Place) -> Rank {
        let is_hushed = place.rank == Rank::Present && self.silent.contains(key);
        if is_hushed && stands(Safeguard::SilentLeases) { Rank::Unhealthy } else { place.rank }
    }

    fn share(&mut self, place: Place) -> Arc<Place> {
        if let Some(known) = self.known.get(&place) {
            return known.clone();
        }
        let known = Arc::new(place);
        self.known.insert(known.clone());
        known
    }

    fn add(&mut self, key: &MachineKey, place: &Place, enters: bool) {
        let rank = self.counts_as(key, place);
        let pool = self.pools.entry(place.pool.clone()).or_default();
        let zone = place.zone.as_ref().map(|zone| self.zones.entry(zone.clone()).or_default());
        let zone_of = match (key, &place.zone) {
            (MachineKey::Instance(cloud, _), Some(zone)) => Some((cloud.clone(), zone.clone())),
            _ => None,
        };
        let zone_of = zone_of.map(|zone| self.zones_of.entry(zone).or_default());
        for count in [Some(pool), zone, zone_of, Some(&mut self.all)].into_iter().flatten() {
            let goes = place.goes && rank != Rank::Leaving;
            let going = goes.then_some(&mut count.going);
            move_one(going, enters);
            let unheard = (place.unheard && rank != Rank::Leaving).then_some(&mut count.unheard);
            move_one(unheard, enters);
            move_one(count.slot(rank), enters);
        }
        if !enters && let Some(zone) = &place.zone {
            self.drop_empty(key, zone);
        }
    }

    /// A zone without machines is none: a kubelet may write the label of its zone, another one each minute.
    fn drop_empty(&mut self, key: &MachineKey, zone: &ZoneName) {
        let is_empty = |count: Option<&Count>| count == Some(&Count::default());
        if is_empty(self.zones.get(zone)) {
            self.zones.remove(zone);
        }
        let MachineKey::Instance(cloud, _) = key else { return };
        let of_cloud = (cloud.clone(), zone.clone());
        if is_empty(self.zones_of.get(&of_cloud)) {
            self.zones_of.remove(&of_cloud);
        }
    }

    /// The place of a machine that is counted among those of the pool.
    pub fn counted(&self, key: &MachineKey, pool: &PoolName) -> Option<&Place> {
        self.place(key).filter(|place| place.pool == *pool && place.rank != Rank::Leaving)
    }

    /// Counts of one pool.
    pub fn pool(&self, pool: &PoolName) -> Count {
        self.pools.get(pool).copied().unwrap_or_default()
    }

    /// Counts of one zone, over all clouds that have one of that name.
    pub fn zone(&self, zone: &ZoneName) -> Count {
        self.zones.get(zone).copied().unwrap_or_default()
    }

    /// Counts of one zone of one cloud.
    pub fn zone_of(&self, cloud: &CloudName, zone: &ZoneName) -> Count {
        self.zones_of.get(&(cloud.clone(), zone.clone())).copied().unwrap_or_default()
    }

    /// Counts of the roster.
    pub const fn all(&self) -> Count {
        self.all
    }

    /// Every zone of every cloud.
    pub fn zones(&self) -> impl Iterator<Item = (&CloudName, &ZoneName)> {
        self.zones_of.keys().map(|(cloud, zone)| (cloud, zone))
    }

    /// Machines that did not answer and do now, since this was asked last.
    pub fn take_back(&mut self) -> Vec<MachineKey> {
        std::mem::take(&mut self.back)
    }

    /// Every machine that does not answer, with its place.
    pub fn away(&self) -> impl Iterator<Item = (&MachineKey, &Place)> {
        let places = self.places.iter().map(|(key, place)| (key, &**place));
        places.filter(|(key, place)| self.counts_as(key, place).is_away())
    }

    /// Where a machine is counted.
    pub fn place(&self, key: &MachineKey) -> Option<&Place> {
        self.places.get(key).map(|place| &**place)
    }

    /// It is counted as one that answers.
    pub fn is_present(&self, key: &MachineKey) -> bool {
        self.place(key).is_some_and(|place| self.counts_as(key, place) == Rank::Present)
    }
}

fn move_one(slot: Option<&mut u32>, enters: bool) {
    if let Some(slot) = slot {
        *slot = if enters { *slot + 1 } else { *slot - 1 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::id::NodeName;

    fn place(rank: Rank) -> Option<Place> {
        let zone = Some(ZoneName::from("z"));
        Some(Place { pool: PoolName::from("p"), zone, rank, goes: false, unheard: false })
    }

    #[test]
    fn a_machine_is_counted_once_wherever_it_moves() {
        let mut counts = Counts::default();
        let key = MachineKey::Node(NodeName::from("n"));
        counts.set(&key, place(Rank::Present));
        counts.set(&key, place(Rank::Unhealthy));
        assert_eq!(counts.all(), Count { unhealthy: 1, ..Count::default() });
        assert_eq!(counts.zone(&ZoneName::from("z")).total(), 1);
        counts.set(&key, place(Rank::Leaving));
        assert_eq!(counts.pool(&PoolName::from("p")).total(), 0);
        counts.set(&key, None);
        assert_eq!(counts.all(), Count::default());
    }

    #[test]
    fn machine_with_silent_lease_is_away_and_returns_once() {
        let mut counts = Counts::default();
        let key = MachineKey::Node(NodeName::from("n"));
        counts.set(&key, place(Rank::Present));
        counts.set_silent(BTreeSet::from([key.clone()]));
        assert_eq!(counts.all(), Count { unhealthy: 1, ..Count::default() });
        assert_eq!((counts.away().count(), counts.is_present(&key)), (1, false));
        counts.set(&key, place(Rank::Unhealthy));
        counts.set(&key, place(Rank::Present));
        assert_eq!(counts.take_back(), [], "its lease is silent still");
        counts.set_silent(BTreeSet::new());
        assert_eq!((counts.take_back(), counts.take_back()), (vec![key.clone()], Vec::new()));
        assert_eq!(counts.all(), Count { present: 1, ..Count::default() });
        counts.set_silent(BTreeSet::from([key.clone()]));
        counts.set(&key, None);
        counts.set_silent(BTreeSet::new());
        assert_eq!((counts.all(), counts.take_back()), (Count::default(), Vec::new()));
    }

    #[test]
    fn machine_that_was_away_and_answers_is_back_once() {
        let mut counts = Counts::default();
        let key = MachineKey::Node(NodeName::from("n"));
        counts.set(&key, place(Rank::Present));
        assert_eq!(counts.take_back(), [], "it was not away");
        counts.set(&key, place(Rank::Unhealthy));
        assert_eq!(counts.away().count(), 1);
        counts.set(&key, place(Rank::Present));
        assert_eq!((counts.take_back(), counts.take_back()), (vec![key], Vec::new()));
        assert_eq!(counts.away().count(), 0);
    }
}

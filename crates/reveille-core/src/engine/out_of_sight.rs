//! Machines that no view holds: those that only the ledger knows since the restart, and those that left the views. Beside them,
//! since when it is open what became of a machine that its cloud's list lacks, whether a view still holds it or not.
//!
//! ```text
//!  ledger ─▶ entry ─▶ unseen ─▶ give_back ─▶ a view
//!                       │ ▲                    │
//!      denied, unmarked ▼ │ bring_back         │ unmarked, or denied
//!                     departed ◀── depart ─────┘
//! ```
//!
//! A machine is unseen, or has departed, or is in a view: [`OutOfSight::depart`] and [`OutOfSight::bring_back`] are the only
//! ways between the first two. What became of one that has departed is not open. The departed are bounded, and so are the open
//! fates that the ledger is told of. What else is forgotten with a machine, and what the ledger is told, `memory` and `fates`
//! say.

use std::collections::{BTreeMap, VecDeque};

use crate::model::id::{CloudName, InstanceId, NodeName};
use crate::model::incident::MachineKey;
use crate::model::jump::Jump;
use crate::model::time::Time;
use crate::observe::machine_signs::Signs;
use crate::observe::remembered::Remembered;
use crate::safeguard::{Safeguard, stands};

/// So many machines that went out of sight are remembered. Which of them give way, [`worth`] says; of equals, the oldest.
const DEPARTED_MAX: usize = 256;
/// So many of them that no listing ever showed do not give way to others: every client that may make Nodes makes such ids up, and
/// 300 of them pushed out drained machines whose cell was down.
const NEVER_SHOWN_MAX: usize = 64;
/// So many open fates are told: a list that is cut short lacks half of a fleet. Of the others each process counts from its own
/// first list.
const FATES_MAX: usize = 16;

/// What is known of machines that are out of sight.
#[derive(Clone, Debug, Default)]
pub(super) struct OutOfSight {
    /// No listing has shown them since the restart, or since they came back.
    unseen: BTreeMap<MachineKey, Remembered>,
    /// They lost their marks or were denied by id, oldest first: one that comes back is no newcomer.
    departed: VecDeque<(MachineKey, Remembered)>,
    /// Machines that went from their cloud's list, as far as the ledger knows, and since when it is open what became of them.
    open_fates: BTreeMap<MachineKey, Time>,
}

/// What is known.
impl OutOfSight {
    /// Those that no listing has shown since the restart.
    pub(super) const fn unseen(&self) -> &BTreeMap<MachineKey, Remembered> {
        &self.unseen
    }

    /// Those of this cloud.
    pub(super) fn unseen_in(&self, cloud: &CloudName) -> Vec<InstanceId> {
        let here = |key: &MachineKey| match key {
            MachineKey::Instance(name, id) if name == cloud => Some(id.clone()),
            _ => None,
        };
        self.unseen.keys().filter_map(here).collect()
    }

    /// Those that left the views, oldest first.
    pub(super) fn departed(&self) -> impl DoubleEndedIterator<Item = (&MachineKey, &Remembered)> {
        self.departed.iter().map(|(key, memory)| (key, memory))
    }

    /// What is known of one that no list shows, and that may be there: it lost its marks, or was not listed since our start.
    pub(super) fn there(&self, key: &MachineKey) -> Option<&Remembered> {
        let departed = || self.departed().find(|(known, memory)| *known == key && memory.disowned);
        self.unseen.get(key).or_else(|| departed().map(|(_, memory)| memory))
    }

    /// Since when it is open what became of machines, as far as the ledger knows.
    pub(super) const fn open_fates(&self) -> &BTreeMap<MachineKey, Time> {
        &self.open_fates
    }

    /// No machine is out of sight.
    pub(super) fn is_empty(&self) -> bool {
        self.unseen.is_empty() && self.departed.is_empty()
    }

    /// The machine that had joined as this Node: the one that left last, before any that no listing has shown (seed 3241487).
    pub(super) fn joined_as(&self, node: &NodeName) -> Option<&MachineKey> {
        let is_it = |(_, memory): &(&MachineKey, &Remembered)| memory.node.as_ref() == Some(node);
        self.departed().rev().chain(&self.unseen).find(is_it).map(|(key, _)| key)
    }

    fn departed_as(&self, cloud: &CloudName, id: &InstanceId) -> Option<&Remembered> {
        let is_it = |key: &MachineKey| matches!(key, MachineKey::Instance(c, i) if c == cloud && i == id);
        self.departed().find(|(key, _)| is_it(key)).map(|(_, memory)| memory)
    }

    /// It went out of sight, and no listing has shown it since.
    pub(super) fn has_departed(&self, cloud: &CloudName, id: &InstanceId) -> bool {
        self.departed_as(cloud, id).is_some()
    }

    /// The same, because it is gone, and not because an operator took its marks off.
    pub(super) fn has_gone(&self, cloud: &CloudName, id: &InstanceId) -> bool {
        self.departed_as(cloud, id).is_some_and(|memory| !memory.disowned)
    }
}

/// What becomes known of them.
impl OutOfSight {
    /// What is known of each.
    pub(super) fn all_mut(&mut self) -> impl Iterator<Item = (&MachineKey, &mut Remembered)> {
        let departed = self.departed.iter_mut().map(|(key, memory)| (&*key, memory));
        departed.chain(&mut self.unseen)
    }

    /// What is known of this one.
    pub(super) fn get_mut(&mut self, machine: &MachineKey) -> Option<&mut Remembered> {
        memory_in(&mut self.departed, machine).or_else(|| self.unseen.get_mut(machine))
    }

    /// What the ledger tells of a machine. One that has departed stays so: as an unseen one, the first listing would lack it.
    pub(super) fn entry(&mut self, machine: MachineKey) -> &mut Remembered {
        match memory_in(&mut self.departed, &machine) {
            Some(memory) => memory,
            None => self.unseen.entry(machine).or_default(),
        }
    }

    /// It left the views, and its Node was lost with others. False where it is in a view, or unseen.
    pub(super) fn lose(&mut self, machine: &MachineKey) -> bool {
        memory_in(&mut self.departed, machine).map(|memory| memory.lost_together = true).is_some()
    }

    /// Its times go over a jump.
    pub(super) fn over(&mut self, jump: Jump) {
        self.all_mut().for_each(|(_, memory)| memory.over(jump));
        let Self { unseen: _, departed: _, open_fates } = self;
        jump.counts(open_fates.values_mut());
    }

    /// The clock went back.
    pub(super) fn go_back_to(&mut self, now: Time) {
        self.open_fates.values_mut().for_each(|since| *since = (*since).min(now));
    }
}

/// Out of sight, and back.
impl OutOfSight {
    /// A view holds it now, or it goes for good: what was known of an unseen machine.
    pub(super) fn give_back(&mut self, machine: &MachineKey) -> Option<Remembered> {
        self.unseen.remove(machine)
    }

    /// It goes out of sight. Where there is no room for all, the one of which nothing is remembered any more.
    pub(super) fn depart(&mut self, machine: MachineKey, memory: Remembered) -> Option<MachineKey> {
        self.open_fates.remove(&machine);
        self.unseen.remove(&machine);
        self.departed.retain(|(known, _)| *known != machine);
        if !stands(Safeguard::OutOfSight) {
            return Some(machine);
        }
        let is_full = self.departed.len() == DEPARTED_MAX;
        let forgotten = is_full.then(|| self.least_worth()).and_then(|place| self.departed.remove(place));
        self.departed.push_back((machine, memory));
        forgotten.map(|(machine, _)| machine)
    }

    /// The place of the one that gives way to the next.
    fn least_worth(&self) -> usize {
        let of_never_shown = self.departed.iter().filter(|(_, memory)| was_never_shown(memory)).count();
        let is_crowded = of_never_shown > NEVER_SHOWN_MAX;
        let places = self.departed.iter().enumerate();
        places.min_by_key(|(_, (_, memory))| worth(memory, is_crowded)).map_or(0, |(place, _)| place)
    }

    /// What is known of those of these machines that had departed holds as before. Those of them whose Node was lost with others.
    pub(super) fn bring_back(&mut self, machines: &[MachineKey]) -> Vec<MachineKey> {
        let (back, away): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.departed).into_iter().partition(|(key, _)| machines.contains(key));
        self.departed = away.into();
        let lost = back.iter().filter(|(_, memory)| memory.lost_together).map(|(key, _)| key.clone());
        let lost = lost.collect();
        self.unseen.extend(back);
        lost
    }

    /// The ledger tells since when it is open what became of it, or that it is not.
    pub(super) fn set_fate(&mut self, machine: &MachineKey, open_since: Option<Time>) {
        match open_since {
            Some(since) => self.open_fates.insert(machine.clone(), since),
            None => self.open_fates.remove(machine),
        };
    }

    /// It is open what became of it. True where the ledger has to know, and has not been told.
    pub(super) fn note_fate(&mut self, machine: &MachineKey, since: Time) -> bool {
        let is_new = self.open_fates.len() < FATES_MAX && !self.open_fates.contains_key(machine);
        if is_new {
            self.open_fates.insert(machine.clone(), since);
        }
        is_new
    }
}

/// Only a listing tells of which pool a machine is, and that its marks were taken off.
const fn was_never_shown(memory: &Remembered) -> bool {
    memory.pool.is_none() && !memory.disowned
}

/// Who is worth less gives way before others. A machine that an operator took the marks off is there, and may be marked again
/// any day. One that its cell denies comes back with its cell, and what protected it then has to be known.
fn worth(memory: &Remembered, is_crowded: bool) -> u8 {
    let is_signed = Signs { group: None, ..memory.signs.clone() } != Signs::default();
    let is_protected = memory.left.is_some() || memory.lost_together || is_signed;
    match memory {
        _ if was_never_shown(memory) && is_crowded => 0,
        _ if was_never_shown(memory) => 2,
        _ if memory.disowned => 4,
        _ if is_protected => 3,
        _ => 1,
    }
}

fn memory_in<'d>(
    departed: &'d mut VecDeque<(MachineKey, Remembered)>,
    machine: &MachineKey,
) -> Option<&'d mut Remembered> {
    departed.iter_mut().find(|(key, _)| key == machine).map(|(_, memory)| memory)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::cloud::Left;

    fn machine(id: &str) -> MachineKey {
        MachineKey::Instance("c".into(), id.into())
    }

    fn memory(node: &str) -> Remembered {
        Remembered { node: Some(node.into()), ..Remembered::default() }
    }

    fn departed(known: &OutOfSight) -> Vec<String> {
        known.departed().map(|(key, _)| key.to_string()).collect()
    }

    #[test]
    fn machine_is_in_one_place_whichever_way_it_goes() {
        let mut known = OutOfSight::default();
        *known.entry(machine("a")) = memory("n");
        assert!(known.note_fate(&machine("a"), Time::default()));
        assert_eq!(known.depart(machine("a"), memory("n")), None);
        assert_eq!((known.unseen().len(), known.departed().count(), known.open_fates().len()), (0, 1, 0));
        assert!(known.has_gone(&"c".into(), &"a".into()));
        known.entry(machine("a")).disowned = true;
        assert!(known.unseen().is_empty(), "what the ledger tells of it goes to where it is");
        assert!(!known.has_gone(&"c".into(), &"a".into()) && known.has_departed(&"c".into(), &"a".into()));
        known.depart(machine("a"), memory("m"));
        assert_eq!(departed(&known).len(), 1);
        assert_eq!(known.bring_back(&[machine("a"), machine("b")]), []);
        assert_eq!((known.unseen().len(), known.departed().count()), (1, 0));
        assert_eq!(known.give_back(&machine("a")), Some(memory("m")));
        assert!(known.is_empty());
    }

    #[test]
    fn lost_machine_is_told_when_it_is_back() {
        let mut known = OutOfSight::default();
        *known.entry(machine("a")) = memory("n");
        assert!(!known.lose(&machine("a")), "it is not known to have left");
        known.depart(machine("a"), memory("n"));
        assert!(known.lose(&machine("a")));
        assert_eq!(known.bring_back(&[machine("a")]), [machine("a")]);
    }

    #[test]
    fn node_leads_to_the_machine_that_left_last() {
        let mut known = OutOfSight::default();
        *known.entry(machine("unseen")) = memory("n");
        assert_eq!(known.joined_as(&"n".into()), Some(&machine("unseen")));
        known.depart(machine("first"), memory("n"));
        known.depart(machine("last"), memory("n"));
        assert_eq!(known.joined_as(&"n".into()), Some(&machine("last")));
        assert_eq!(known.joined_as(&"m".into()), None);
    }

    /// One that a listing showed.
    fn shown(node: &str) -> Remembered {
        Remembered { pool: Some("workers".into()), ..memory(node) }
    }

    #[test]
    fn those_that_are_gone_give_way_before_those_that_are_there() {
        let mut known = OutOfSight::default();
        known.depart(machine("there"), Remembered { disowned: true, ..memory("n") });
        known.depart(machine("lost"), Remembered { lost_together: true, ..shown("n") });
        for number in 2..DEPARTED_MAX {
            assert_eq!(known.depart(machine(&format!("gone-{number}")), shown("n")), None);
        }
        assert_eq!(known.depart(machine("more"), shown("n")), Some(machine("gone-2")));
        assert_eq!(known.departed().count(), DEPARTED_MAX);
        assert_eq!(known.depart(machine("there"), memory("n")), None, "it has a place already");
    }

    #[test]
    fn made_up_machines_give_way_before_those_that_were_shown() {
        let mut known = OutOfSight::default();
        let left = Some(Box::new(Left { at: Time::default(), sign: "drained".into() }));
        known.depart(machine("drained"), Remembered { left: left.clone(), ..shown("n") });
        known.depart(machine("gone"), shown("n"));
        let made_up = |number: usize| machine(&format!("made-up-{number:03}"));
        let push =
            |known: &mut OutOfSight, key| known.depart(key, Remembered { left: left.clone(), ..memory("n") });
        (2..DEPARTED_MAX).for_each(|number| assert_eq!(push(&mut known, made_up(number)), None));
        assert_eq!(push(&mut known, made_up(900)), Some(made_up(2)), "the oldest of them");
        let drained = Remembered { left: left.clone(), ..shown("n") };
        let others = (0..DEPARTED_MAX).map(|number| machine(&format!("i{number:03}")));
        let forgotten: Vec<_> = others.filter_map(|key| known.depart(key, drained.clone())).collect();
        let (crowd, rest) = forgotten.split_at(DEPARTED_MAX - 2 - NEVER_SHOWN_MAX);
        assert!(crowd.iter().all(|key| key.to_string().contains("made-up")), "{crowd:?}");
        assert_eq!(rest[0], machine("gone"), "the others make room for the first 64");
        assert!(rest[1..=NEVER_SHOWN_MAX].iter().all(|key| key.to_string().contains("made-up")), "{rest:?}");
        assert_eq!(rest[NEVER_SHOWN_MAX + 1], machine("drained"));
    }

    #[test]
    fn ledger_is_told_of_so_many_open_fates_once_each() {
        let mut known = OutOfSight::default();
        let told = (0..20).map(|number| machine(&format!("i{number}")));
        let told: Vec<_> = told.filter(|key| known.note_fate(key, Time::default())).collect();
        assert_eq!(told.len(), FATES_MAX);
        assert!(!known.note_fate(&told[0], Time::from_ms(1)));
        known.set_fate(&told[0], None);
        assert!(known.note_fate(&machine("next"), Time::default()));
        known.over(Jump::Gap { before: Time::default(), now: Time::from_ms(60_000) });
        assert!(known.open_fates().values().all(|since| *since == Time::from_ms(60_000)));
        known.go_back_to(Time::from_ms(5));
        assert!(known.open_fates().values().all(|since| *since == Time::from_ms(5)));
    }
}

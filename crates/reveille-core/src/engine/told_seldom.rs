//! Of which machines the ledger is told seldom: those whose Nodes change what it has to know again and again.
//!
//! ```text
//!  a change ─▶ may_tell? ── yes ─▶ the ledger
//!                  └ no ─▶ put off ─▶ due, TOLD_AGAIN later at most: as it is then
//! ```
//!
//! A kubelet may annotate its own Node fifty times a second. Each change was a line on disk, and what the ledger knew of all
//! other machines was out of its history within a night. The first changes after a quiet time are told at once. A process that
//! begins while something is put off reads it from the Node; where that Node is deleted with no process there, the ledger holds
//! the more careful of the last two words. What an operator holds and lets go of cannot be read later, and is told under a bound
//! of its own (`holds_told`).

use std::collections::BTreeMap;

use crate::model::incident::MachineKey;
use crate::model::time::{Span, Time};

/// A machine that was told of too often is told of again after this.
const TOLD_AGAIN: Span = Span::from_min(2);
/// So many changes are told at once, one for each [`TOLD_AGAIN`] of quiet: a person pauses, cordons, uncordons and corrects
/// a request within a minute.
const AT_ONCE: i64 = 8;
/// So far ahead of now a machine may be told of.
const AHEAD: Span = Span::from_ms(AT_ONCE * TOLD_AGAIN.ms);

/// How often each machine was told of lately, and what is put off.
#[derive(Clone, Debug, Default)]
pub(super) struct ToldSeldom {
    /// Each time that a machine is told of, this moves on by [`TOLD_AGAIN`], from now at the earliest.
    until: BTreeMap<MachineKey, Time>,
    /// Machines that the ledger is to be told of, and whether they were let go of meanwhile.
    put_off: BTreeMap<MachineKey, bool>,
    /// When it was last looked for what is due, and when something is next: nothing is looked through before that.
    looked: Option<(Time, Time)>,
}

impl ToldSeldom {
    /// Counts this time, where the ledger may be told of the machine now.
    pub(super) fn may_tell(&mut self, machine: &MachineKey, now: Time) -> bool {
        let until = self.until(machine, now);
        let may = until + TOLD_AGAIN <= now + AHEAD;
        self.until.insert(machine.clone(), if may { until + TOLD_AGAIN } else { until });
        may
    }

    /// The clock may have gone back since: what is put off is told all the same.
    fn until(&self, machine: &MachineKey, now: Time) -> Time {
        self.until.get(machine).map_or(now, |until| (*until).clamp(now, now + AHEAD))
    }

    /// The ledger is told of this machine later. True where nothing of it was put off before.
    pub(super) fn put_off(&mut self, machine: &MachineKey, let_go: bool) -> bool {
        self.looked = None;
        let before = self.put_off.get(machine).copied();
        self.put_off.insert(machine.clone(), let_go || before.unwrap_or_default());
        before.is_none()
    }

    /// It is told now. Whether it was let go of by what was put off.
    pub(super) fn take(&mut self, machine: &MachineKey) -> bool {
        self.put_off.remove(machine).unwrap_or_default()
    }

    /// What was put off, of machines that may be told of by now.
    pub(super) fn due(&mut self, now: Time) -> Vec<MachineKey> {
        if self.put_off.is_empty() || self.looked.is_some_and(|(looked, next)| looked <= now && now < next) {
            return Vec::new();
        }
        let (mut due, mut next) = (Vec::new(), now + TOLD_AGAIN);
        for machine in self.put_off.keys().cloned().collect::<Vec<_>>() {
            let until = self.until(&machine, now);
            self.until.insert(machine.clone(), until);
            let at = until + TOLD_AGAIN - AHEAD;
            if at <= now { due.push(machine) } else { next = next.min(at) }
        }
        self.looked = Some((now, next));
        due
    }

    pub(super) fn forget(&mut self, machine: &MachineKey) {
        self.until.remove(machine);
        self.put_off.remove(machine);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(s: i64) -> Time {
        Time::from_ms(s * 1000)
    }

    #[test]
    fn first_changes_are_told_at_once_and_those_after_them_seldom() {
        let (mut told, machine) = (ToldSeldom::default(), MachineKey::Node("n1".into()));
        let mut count = |from, to| (from..to).filter(|s| told.may_tell(&machine, at(*s))).count();
        assert_eq!([count(0, 10), count(10, 970), count(10_000, 10_010)], [8, 8, 8]);
        assert_eq!(count(0, 130), 1, "the clock went back");
    }

    #[test]
    fn what_is_put_off_is_due_when_the_machine_may_be_told_of_again() {
        let (mut told, machine) = (ToldSeldom::default(), MachineKey::Node("n1".into()));
        while told.may_tell(&machine, at(0)) {}
        told.put_off(&machine, true);
        told.put_off(&machine, false);
        assert_eq!([told.due(at(119)).len(), told.due(at(120)).len()], [0, 1]);
        assert_eq!([told.take(&machine), told.take(&machine)], [true, false]);
        assert_eq!(told.due(at(120)), []);
        told.put_off(&machine, true);
        assert_eq!([-1000, -900, -880].map(|s| told.due(at(s)).len()), [0, 0, 1], "the clock went back");
    }
}

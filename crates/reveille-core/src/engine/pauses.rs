//! Pauses: what people have paused now, what the ledger knows of that, and what they were done with a moment ago.
//!
//! ```text
//!  a command: all pauses there are ─▶ asked ─┐
//!  the roster's own pauses ──────────────────┴─▶ review: held against the ledger's ─▶ Record::Paused, begun or over
//!  a lock, an annotation, a mark ─▶ release ─────────────────────────────────────────────┘  over ─▶ let go: the time of a boot
//! ```
//!
//! `plan::interlock` says what a pause holds. Who may pause, the command's door says.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::event::{Pause, PauseScope};
use crate::model::id::{CloudName, InstanceId};
use crate::model::incident::MachineKey;
use crate::model::jump::Jump;
use crate::model::time::{Span, Time};
use crate::observe::cloud::Seen;
use crate::plan::let_go::LetGo;
use crate::record::Record;
use crate::safeguard::{Safeguard, stands};

use super::State;

/// Pauses that stand, and those that ended lately.
#[derive(Clone, Debug, Default)]
pub(super) struct Pauses {
    /// As the last command told.
    asked: BTreeSet<Pause>,
    /// What is paused as far as the ledger knows: by people, and in the roster.
    told: BTreeSet<PauseScope>,
    let_go: LetGo,
}

impl Pauses {
    /// What operators paused.
    pub(super) const fn asked(&self) -> &BTreeSet<Pause> {
        &self.asked
    }

    /// What people were done with a moment ago.
    pub(super) const fn let_go(&self) -> &LetGo {
        &self.let_go
    }

    /// Names of machines that are paused, or were a moment ago; until a process is told what is paused, those that the ledger
    /// knows.
    fn machines(&self) -> BTreeSet<Arc<str>> {
        let asked = self.asked.iter().map(|pause| pause.scope.clone()).chain(self.told.iter().cloned());
        let scopes = asked.chain(self.let_go.iter().map(|(scope, _)| scope));
        let name = |scope| match scope {
            PauseScope::Machine(name) => Some(name),
            _ => None,
        };
        scopes.filter_map(name).collect()
    }

    /// These are all the pauses there are. None where that is nothing new; otherwise whether another controller's ended.
    fn replace(&mut self, pauses: BTreeSet<Pause>) -> Option<bool> {
        if self.asked == pauses {
            return None;
        }
        let before = std::mem::replace(&mut self.asked, pauses);
        let is_anothers = |pause: &Pause| pause.scope == PauseScope::OtherController;
        Some(before.iter().any(is_anothers) && !self.asked.iter().any(is_anothers))
    }

    /// Which pauses began and which are over, those of the roster as well, as the ledger has to know. One that a person ended
    /// while no process ran is over as of now: they may have ended it a moment ago.
    fn review(&mut self, of_roster: BTreeSet<PauseScope>, now: Time, patience: Span) -> Vec<Record> {
        let of_people = self.asked.iter().map(|pause| pause.scope.clone());
        let of_people = of_people.filter(|scope| *scope != PauseScope::OtherController);
        let in_force: BTreeSet<_> = of_people.chain(of_roster).collect();
        // While everything is paused no name of a machine ends: what is paused may not be readable, and then all is.
        let is_all = in_force.contains(&PauseScope::Roster);
        let stays = |scope: &PauseScope| is_all && matches!(scope, PauseScope::Machine(_));
        let [over, begun] = [(&self.told, &in_force), (&in_force, &self.told)]
            .map(|(these, those)| these.difference(those).cloned().collect::<Vec<_>>());
        let over = over.into_iter().filter(|scope| !stays(scope));
        let over: Vec<Record> = over.map(|scope| self.release(scope, now, patience)).collect();
        let begun = begun.into_iter().map(|scope| {
            self.take(now, scope.clone(), false);
            Record::Paused { at: now, scope, over: false }
        });
        over.into_iter().chain(begun.collect::<Vec<_>>()).collect()
    }

    /// A person is done with what this covers, and it may boot still: EC2 keeps no log of a reboot. Ends after the time of a boot
    /// (`interlock::just_released`).
    fn release(&mut self, scope: PauseScope, at: Time, patience: Span) -> Record {
        self.forget_old(at, patience);
        self.take(at, scope.clone(), true);
        Record::Paused { at, scope, over: true }
    }

    /// As the ledger tells it.
    pub(super) fn take(&mut self, at: Time, scope: PauseScope, over: bool) {
        if over {
            self.told.remove(&scope);
            self.let_go.note(scope, at);
        } else {
            self.told.insert(scope);
        }
    }

    /// The machine is in sight again since then, and what was done to it meanwhile was not seen.
    pub(super) fn note_return(&mut self, id: &InstanceId, at: Time) {
        self.let_go.note(machine(id), at);
    }

    /// What was let go of longer before `now` than any machine takes to boot, which is `patience`, holds nothing any more.
    pub(super) fn forget_old(&mut self, now: Time, patience: Span) {
        self.let_go.retain(|at| now.since(at) < patience);
    }

    /// What restores this, for a rotated ledger.
    pub(super) fn checkpoint(&self, at: Time) -> impl Iterator<Item = Record> {
        let over = self.let_go.iter().map(|(scope, at)| Record::Paused { at, scope, over: true });
        let in_force = self.told.iter().cloned();
        over.chain(in_force.map(move |scope| Record::Paused { at, scope, over: false }))
    }

    /// Its times go over a jump.
    pub(super) fn over(&mut self, jump: Jump) {
        let Self { let_go, asked: _, told: _ } = self;
        let_go.over(jump);
    }

    /// The clock went back.
    pub(super) fn go_back_to(&mut self, now: Time) {
        self.let_go.go_back_to(now);
    }
}

fn machine(id: &InstanceId) -> PauseScope {
    PauseScope::Machine(Arc::from(id.as_str()))
}

/// Keeps those of these names that the machine has, and had. It has a handful; a cell that comes back brings ten thousand others.
/// Its id it keeps. True where that changed.
fn bind(seen: &mut Seen, names: &BTreeSet<Arc<str>>) -> bool {
    let is_named = stands(Safeguard::PausedByName);
    let id = seen.instance.id.as_str();
    let may_change = seen.names().filter(|name| is_named && *name != id);
    let bound = may_change.filter_map(|name| names.get(name).cloned()).collect();
    std::mem::replace(&mut seen.paused_as, bound) != seen.paused_as
}

impl State {
    /// These are all the pauses there are. The end of another controller's is a handover.
    pub(super) fn take_pauses(&mut self, pauses: BTreeSet<Pause>) {
        let Some(is_handover) = self.pauses.replace(pauses) else { return };
        if is_handover {
            self.take_over();
        }
        self.review_pauses();
        self.bind_pauses();
        self.rouse_held();
    }

    /// Whom a pause names, it names for as long as it stands, however they are called later. Names that are shared, or that come
    /// and go within one pause, hold each machine that had them: that costs a repair and no machine.
    fn bind_pauses(&mut self) {
        let names = self.pauses.machines();
        let mut bound = Vec::new();
        for (cloud, view) in &mut self.clouds {
            let changed = view.instances.iter_mut().filter_map(|(id, seen)| bind(seen, &names).then_some(id));
            bound.extend(changed.map(|id| MachineKey::Instance(cloud.clone(), id.clone())));
        }
        bound.iter().for_each(|key| self.note_signs(key));
    }

    /// The same for machines that came into sight, or changed.
    pub(super) fn bind_pauses_of(&mut self, cloud: &CloudName, touched: &BTreeSet<InstanceId>) {
        if touched.is_empty() {
            return;
        }
        let names = self.pauses.machines();
        let Some(view) = self.clouds.get_mut(cloud) else { return };
        let mut bound = Vec::new();
        for id in touched {
            if view.instances.get_mut(id).is_some_and(|seen| bind(seen, &names)) {
                bound.push(MachineKey::Instance(cloud.clone(), id.clone()));
            }
        }
        bound.iter().for_each(|key| self.note_signs(key));
    }

    /// Tells the ledger which pauses began and which are over.
    pub(super) fn review_pauses(&mut self) {
        let of_roster = self.roster.pools.values().filter(|pool| pool.paused);
        let of_roster = of_roster.map(|pool| PauseScope::Pool(Arc::from(pool.name.as_str()))).collect();
        let records = self.pauses.review(of_roster, self.now, self.longest_boot());
        records.into_iter().for_each(|record| self.outbox.record(record));
    }

    /// How long the slowest machines take to boot.
    pub(super) fn longest_boot(&self) -> Span {
        let patience = self.roster.pools.values().map(|pool| pool.deadlines.boot_patience());
        patience.max().unwrap_or_default()
    }

    /// A person is done with this machine, by its lock or its annotation. A pause by a command may name it all the same.
    pub(super) fn let_go_of(&mut self, id: &InstanceId) {
        let patience = self.longest_boot();
        self.outbox.record(self.pauses.release(machine(id), self.now, patience));
        self.review_pauses();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pauses(scopes: &[PauseScope]) -> BTreeSet<Pause> {
        let pause = |scope: &PauseScope| Pause { scope: scope.clone(), by: "p".into(), reason: "w".into() };
        scopes.iter().map(pause).collect()
    }

    fn review(held: &mut Pauses, now: Time) -> Vec<Record> {
        held.review(BTreeSet::new(), now, Span::from_min(10))
    }

    #[test]
    fn ledger_is_told_once_of_each_pause_that_begins_and_ends() {
        let mut held = Pauses::default();
        let (now, pool) = (Time::from_ms(5000), PauseScope::Pool("workers".into()));
        let record = |over| Record::Paused { at: now, scope: pool.clone(), over };
        assert_eq!(held.replace(pauses(std::slice::from_ref(&pool))), Some(false));
        assert_eq!(review(&mut held, now), [record(false)]);
        assert_eq!(review(&mut held, now), []);
        assert_eq!(held.replace(pauses(std::slice::from_ref(&pool))), None);
        assert_eq!(held.replace(BTreeSet::new()), Some(false));
        assert_eq!(review(&mut held, now), [record(true)]);
        assert_eq!(held.checkpoint(now).collect::<Vec<_>>(), [record(true)]);
    }

    #[test]
    fn pause_by_other_controller_ends_in_handover() {
        let mut held = Pauses::default();
        assert_eq!(held.replace(pauses(&[PauseScope::OtherController])), Some(false));
        assert_eq!(review(&mut held, Time::default()), []);
        assert_eq!(held.replace(BTreeSet::new()), Some(true));
    }
}

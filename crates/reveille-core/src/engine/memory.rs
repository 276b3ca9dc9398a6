//! What becomes of a machine's memory as it leaves the views and comes back: `out_of_sight` keeps it, and what else knows of the
//! machine has to hear of it.
//!
//! ```text
//!  view ─ lost its marks, denied, or forgotten ─▶ depart ─▶ out_of_sight ─▶ take_back ─▶ remember_joined ─▶ view
//!                                                   └─ no room for one more: forget_for_good
//! ```
//!
//! A cloud never gives an id twice, so a machine that comes back is the same one. It has joined if it had joined before,
//! and it counts as created in our sight only if it was. A cell that denies its machines and comes back therefore makes no
//! newcomers. The controller keeps as long what protects a machine: that it was lost with others, what its agent said, what
//! a person asked for.

use std::collections::BTreeMap;

use crate::model::id::{CloudName, InstanceId, NodeName};
use crate::model::incident::MachineKey;
use crate::model::instance::InstanceState;
use crate::model::time::Time;
use crate::observe::cloud::{Left, Seen};
use crate::observe::remembered::Remembered;
use crate::record::Record;

use super::{JOINED_MAX, State};

impl State {
    /// A machine goes out of sight.
    pub(super) fn depart(&mut self, key: MachineKey, mut memory: Remembered) {
        memory.lost_together |= self.cluster.lost_together.remove(&key);
        if let Some(forgotten) = self.out_of_sight.depart(key, memory) {
            self.forget_for_good(&forgotten);
        }
    }

    /// An operator took the marks off these. The ledger has to know: an operator who puts them back while no process runs may
    /// have started the machine just before that. It is left alone for the time of a boot then, and no longer.
    pub(super) fn disown(&mut self, machines: Vec<(MachineKey, Remembered)>) {
        let (at, keys): (_, Vec<_>) = (self.now, machines.iter().map(|(key, _)| key.clone()).collect());
        for (key, memory) in machines {
            let told = if memory.left.is_none() { self.left_as_told(&memory) } else { None };
            if let Some(Left { at, sign: why }) = told.clone() {
                self.outbox.record(Record::Left { at, machine: key.clone(), why });
            }
            let left = memory.left.or_else(|| told.map(Box::new));
            // Without its marks no pool is proved, and nothing is watched: a person takes them off to try the machine.
            self.depart(key, Remembered { pool: None, born: None, disowned: true, left, ..memory });
        }
        for machines in keys.chunks(JOINED_MAX).map(<[_]>::to_vec) {
            self.outbox.record(Record::Departed { at, machines, disowned: true });
        }
    }

    /// Nothing is remembered of the machine any more.
    pub(super) fn forget_for_good(&mut self, key: &MachineKey) {
        self.requests.forget(key);
        self.signs_told.forget(key);
        self.holds_told.forget(key);
        self.findings_told.forget(key);
        self.out_of_sight.set_fate(key, None);
        self.agents.forget(key);
        self.traces.forget(key);
        self.cluster.lost_together.remove(key);
        self.forget_gaps_of(key);
    }

    /// Its Nodes stand for no machine that is in sight, until it is.
    pub(super) fn let_go_of_nodes(&mut self, former: &Seen) {
        for name in &former.nodes {
            let link = self.cluster.nodes.get(name).and_then(|node| node.link.as_ref());
            if link.is_some_and(|link| link.instance == former.instance.id) {
                self.cluster.set_link(name, None);
                self.cluster.weak.insert(name.clone());
                self.dirty.insert(MachineKey::Node(name.clone()));
                self.mark_sharing(name);
            }
        }
    }

    /// Its Node was lost with others, or went unwatched. Of a machine that is out of sight this is kept until it is back.
    pub(super) fn lose(&mut self, machine: MachineKey) {
        if !self.out_of_sight.lose(&machine) {
            self.hold_lost(machine);
        }
    }

    /// Whether its Node was lost, or nothing tells whether it had one, is what is known of its joining.
    fn hold_lost(&mut self, machine: MachineKey) {
        let has_joined = match self.context().seen(&machine) {
            Some((_, seen)) => seen.joined.is_some(),
            None => self.out_of_sight.get_mut(&machine).is_some_and(|memory| memory.node.is_some()),
        };
        match has_joined {
            true => self.cluster.lost_together.insert(machine),
            false => self.cluster.lost_together.hold(machine),
        };
    }

    /// The clouds that only the ledger knows, with how many machines it remembers there. A cloud that has another name in the
    /// roster now is among them, and its machines would count as new ones under that name: all that protects them is lost.
    pub fn unnamed_clouds(&self) -> BTreeMap<CloudName, usize> {
        let mut unnamed = BTreeMap::new();
        for key in self.out_of_sight.unseen().keys() {
            if let MachineKey::Instance(cloud, _) = key
                && !self.roster.clouds.contains(cloud)
            {
                *unnamed.entry(cloud.clone()).or_default() += 1;
            }
        }
        unnamed
    }

    /// A person says that the machines of this cloud, which the roster does not name, are no concern of it any more.
    pub(super) fn forget_cloud(&mut self, cloud: &CloudName) {
        if self.roster.clouds.contains(cloud) {
            return;
        }
        let key = |id| MachineKey::Instance(cloud.clone(), id);
        let machines: Vec<MachineKey> = self.out_of_sight.unseen_in(cloud).into_iter().map(key).collect();
        if machines.is_empty() {
            return;
        }
        for key in &machines {
            let memory = self.out_of_sight.give_back(key).unwrap_or_default();
            self.depart(key.clone(), memory);
        }
        // Whatever is open about them is looked at once more, and is over.
        self.dirty.extend(machines.iter().cloned());
        // One record of 20,000 machines is more than a ledger takes.
        for machines in machines.chunks(JOINED_MAX) {
            self.outbox.record(Record::Forgotten { at: self.now, machines: machines.to_vec() });
        }
    }

    /// Gives the machines what the engine remembers of them, as they are seen for the first time, or again.
    pub(super) fn remember_joined(&mut self, cloud: &CloudName) {
        self.take_back();
        if self.out_of_sight.unseen().is_empty() {
            return;
        }
        let in_a_gap = self.is_long_unseen();
        let Some(view) = self.clouds.get_mut(cloud) else { return };
        for (id, seen) in &mut view.instances {
            let key = MachineKey::Instance(cloud.clone(), id.clone());
            if let Some(memory) = self.out_of_sight.give_back(&key) {
                seen.joined = seen.joined.take().or(memory.node);
                if let Some(node) = &seen.joined {
                    self.homes.note(node.clone(), key);
                }
                seen.left = seen.left.take().or(memory.left);
                seen.of_pool = seen.of_pool.take().or(memory.pool);
                seen.born_in_sight = memory.born.is_some();
                let may_have_run = seen.instance.state != InstanceState::Building;
                seen.born_kept = seen.born_in_sight;
                seen.may_have_served = seen.born_in_sight && in_a_gap && may_have_run;
                seen.is_unaccounted = seen.may_have_served;
                seen.known_since = memory.born.unwrap_or(seen.known_since);
                seen.signs = memory.signs;
                seen.paused_as.clone_from(&seen.signs.named);
            }
        }
    }

    /// The first list of nodes is held against the machines that joined before. Whose Node was known to be missing, or left on
    /// purpose, is not expected in it. Of one without its marks it is only asked whether it went since then.
    pub(super) fn await_remembered_nodes(&mut self) {
        let node_of = |machine: &MachineKey, memory: &Remembered| {
            memory.node.clone().filter(|_| memory.left.is_none() && !self.was_seen_to_go(machine))
        };
        let awaited = self.out_of_sight.unseen().iter().filter_map(|(machine, memory)| {
            let MachineKey::Instance(cloud, id) = machine else { return None };
            // One that is held for itself is missing already.
            let is_expected = !self.cluster.lost_together.went_alone(machine);
            Some((node_of(machine, memory).filter(|_| is_expected)?, (cloud.clone(), id.clone())))
        });
        let awaited: BTreeMap<_, _> = awaited.collect();
        let unmarked = self.out_of_sight.departed().filter(|(_, memory)| memory.disowned);
        let unmarked = unmarked.filter_map(|(machine, memory)| node_of(machine, memory));
        let names: Vec<NodeName> = unmarked.chain(awaited.keys().cloned()).collect();
        self.await_unseen(names);
        self.cluster.await_nodes(awaited);
    }

    /// Takes back machines that had departed and are in a view again. What was told that such a machine is gone is told
    /// that it is back.
    fn take_back(&mut self) {
        let departed = self.out_of_sight.departed().map(|(key, _)| key);
        let machines: Vec<MachineKey> =
            departed.filter(|key| self.context().seen(key).is_some()).cloned().collect();
        if machines.is_empty() {
            return;
        }
        // What was done to it meanwhile was not seen: a person may have started it just before they put its marks back.
        self.pauses.forget_old(self.now, self.longest_boot());
        self.return_at(self.now, &machines);
        self.outbox.record(Record::Returned { at: self.now, machines });
    }

    /// These were in sight again then.
    pub(super) fn return_at(&mut self, at: Time, machines: &[MachineKey]) {
        for lost in self.out_of_sight.bring_back(machines) {
            self.hold_lost(lost);
        }
        for key in machines {
            let MachineKey::Instance(_, id) = key else { continue };
            self.pauses.note_return(id, at);
        }
    }

    /// Every machine that should exist, with what the controller remembers of it: those in the views, and those that no
    /// listing has shown since the restart.
    pub(super) fn in_memory(&self) -> impl Iterator<Item = (MachineKey, Remembered)> {
        let in_sight = self.clouds.iter().flat_map(|(cloud, view)| {
            let known = |(id, seen): (&InstanceId, &Seen)| {
                (MachineKey::Instance(cloud.clone(), id.clone()), Remembered::of(seen))
            };
            view.instances.iter().map(known)
        });
        in_sight.chain(self.out_of_sight.unseen().iter().map(cloned))
    }

    /// The same, and those that left the views.
    pub(super) fn ever_in_memory(&self) -> impl Iterator<Item = (MachineKey, Remembered)> {
        self.in_memory().chain(self.out_of_sight.departed().map(cloned))
    }
}

fn cloned((machine, memory): (&MachineKey, &Remembered)) -> (MachineKey, Remembered) {
    (machine.clone(), memory.clone())
}

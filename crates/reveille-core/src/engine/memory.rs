//! What the controller remembers of machines that no view holds: those that only the ledger knows since the restart, and
//! those that left the views.
//!
//! ```text
//!  ledger ────────────────────────────────▶ remembered ─┐
//!                                                        ├─ seen: given back to the machine
//!  view ─ lost its marks, or denied by id ─▶ departed ───┘
//! ```
//!
//! A cloud never gives an id twice, so a machine that comes back is the same one. It has joined if it had joined before,
//! and it counts as created in our sight only if it was. A cell that denies its machines and comes back therefore makes no
//! newcomers. The controller keeps as long what protects a machine: that it was lost with others, what its agent said, what
//! a person asked for.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::guard::{Guard, stands};
use crate::model::id::{CloudName, InstanceId, NodeName};
use crate::model::incident::{FaultKind, IncidentKey, MachineKey, Subject};
use crate::model::time::{Span, Time};
use crate::observe::cloud::Seen;
use crate::observe::remembered::Remembered;
use crate::plan::desk::Case;
use crate::plan::others::OTHERS_HOLD;
use crate::record::Record;

use super::{JOINED_MAX, State};

/// So many machines that went out of sight are remembered: those that are gone give way to those that are there, the oldest
/// first.
const DEPARTED_MAX: usize = 256;
/// Starts of ours, each of which may have missed that others gave a machine back, hold its repair for so long at most: as long as
/// a pool is held in which others are at work.
const UNKNOWN_HOLD: Span = OTHERS_HOLD;

/// What is known of this machine among those that are out of sight.
pub(super) fn memory_in<'d>(
    departed: &'d mut VecDeque<(MachineKey, Remembered)>,
    machine: &MachineKey,
) -> Option<&'d mut Remembered> {
    departed.iter_mut().find(|(key, _)| key == machine).map(|(_, memory)| memory)
}

impl State {
    /// A machine goes out of sight.
    pub(super) fn depart(&mut self, key: MachineKey, mut memory: Remembered) {
        if !stands(Guard::OutOfSight) {
            return self.forget_for_good(&key);
        }
        memory.lost_together |= self.cluster.lost_together.remove(&key);
        self.open_fates.remove(&key);
        self.departed.retain(|(known, _)| *known != key);
        if self.departed.len() == DEPARTED_MAX {
            // One that an operator took the marks off is there, and may be marked again any day.
            let gone = self.departed.iter().position(|(_, memory)| !memory.disowned);
            if let Some((oldest, _)) = self.departed.remove(gone.unwrap_or(0)) {
                self.forget_for_good(&oldest);
            }
        }
        self.departed.push_back((key, memory));
    }

    /// An operator took the marks off these. The ledger has to know: an operator who puts them back while no process runs may
    /// have started the machine just before that. It is left alone for the time of a boot then, and no longer.
    pub(super) fn disown(&mut self, machines: Vec<(MachineKey, Remembered)>) {
        let (at, keys): (_, Vec<_>) = (self.now, machines.iter().map(|(key, _)| key.clone()).collect());
        for (key, memory) in machines {
            // Without its marks no pool is proved.
            self.depart(key, Remembered { pool: None, disowned: true, ..memory });
        }
        for machines in keys.chunks(JOINED_MAX).map(<[_]>::to_vec) {
            self.outbox.record(Record::Departed { at, machines, disowned: true });
        }
    }

    /// Nothing is remembered of the machine any more.
    pub(super) fn forget_for_good(&mut self, key: &MachineKey) {
        self.requests.forget(key);
        self.open_fates.remove(key);
        self.agents.forget(key);
        self.traces.forget(key);
        self.cluster.lost_together.remove(key);
        self.set_seen_to_go(key, false);
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
        match memory_in(&mut self.departed, &machine) {
            Some(memory) => memory.lost_together = true,
            None => {
                self.cluster.lost_together.insert(machine);
            }
        }
    }

    fn departed_as(&self, cloud: &CloudName, id: &InstanceId) -> Option<&Remembered> {
        let is_it = |key: &MachineKey| matches!(key, MachineKey::Instance(c, i) if c == cloud && i == id);
        self.departed.iter().find(|(key, _)| is_it(key)).map(|(_, memory)| memory)
    }

    /// It went out of sight, and no listing has shown it since.
    pub(super) fn has_departed(&self, cloud: &CloudName, id: &InstanceId) -> bool {
        self.departed_as(cloud, id).is_some()
    }

    /// The same, because it is gone, and not because an operator took its marks off.
    pub(super) fn has_gone(&self, cloud: &CloudName, id: &InstanceId) -> bool {
        self.departed_as(cloud, id).is_some_and(|memory| !memory.disowned)
    }

    pub(super) fn remembered_in(&self, cloud: &CloudName) -> Vec<InstanceId> {
        let here = |key: &MachineKey| match key {
            MachineKey::Instance(name, id) if name == cloud => Some(id.clone()),
            _ => None,
        };
        self.remembered.keys().filter_map(here).collect()
    }

    /// The clouds that only the ledger knows, with how many machines it remembers there. A cloud that has another name in the
    /// roster now is among them, and its machines would count as new ones under that name: all that protects them is lost.
    pub fn unnamed_clouds(&self) -> BTreeMap<CloudName, usize> {
        let mut unnamed = BTreeMap::new();
        for key in self.remembered.keys() {
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
        let machines: Vec<MachineKey> = self.remembered_in(cloud).into_iter().map(key).collect();
        if machines.is_empty() {
            return;
        }
        for key in &machines {
            let memory = self.remembered.remove(key).unwrap_or_default();
            self.depart(key.clone(), memory);
        }
        // Whatever is open about them is looked at once more, and is over.
        self.dirty.extend(machines.iter().cloned());
        self.outbox.record(Record::Forgotten { at: self.now, machines });
    }

    /// Gives the machines what the engine remembers of them, as they are seen for the first time, or again.
    pub(super) fn remember_joined(&mut self, cloud: &CloudName) {
        self.take_back();
        if self.remembered.is_empty() {
            return;
        }
        let in_a_gap = self.is_long_unseen();
        let Some(view) = self.clouds.get_mut(cloud) else { return };
        for (id, seen) in &mut view.instances {
            let key = MachineKey::Instance(cloud.clone(), id.clone());
            if let Some(memory) = self.remembered.remove(&key) {
                seen.joined = seen.joined.take().or(memory.node);
                seen.left = seen.left.take().or(memory.left);
                seen.of_pool = seen.of_pool.take().or(memory.pool);
                seen.born_in_sight = memory.born.is_some();
                (seen.born_kept, seen.may_have_served) = (seen.born_in_sight, seen.born_in_sight && in_a_gap);
                seen.known_since = memory.born.unwrap_or(seen.known_since);
                seen.signs = memory.signs;
            }
        }
    }

    /// Machines that others may have had in hand in the sight of an earlier process, and when each was given back: those that
    /// were off, those that were away when it ended, and those in ERROR since then. Where the time is not known, it may have been
    /// a moment ago: no ledger tells of a rebuild that ended just before the restart, and EC2 keeps no log of a start. A person
    /// who asked for a repair knows what was done before that.
    ///
    /// A process that is started again and again would never repair anything: after [`UNKNOWN_HOLD`] from the first such start a
    /// further one says nothing more, but of a machine that the first listing lacks. What others do to the others, lists and the
    /// log of actions tell.
    fn given_back_before(&self, cloud: &CloudName, is_first: bool) -> BTreeMap<InstanceId, Time> {
        let was_off = self.incidents.closed().filter(|closed| closed.incident.key.kind == FaultKind::Stopped);
        let was_off = was_off.map(|closed| (&closed.incident.key, closed.watched_from));
        let is_open = |case: &&Case| case.incident.key.kind.is_absence() && !case.incident.is_asked_for();
        let is_long_ago = |at: &Time| self.now.since(*at) >= UNKNOWN_HOLD;
        let since = |case: &Case| match case.incident.key.kind {
            FaultKind::Errored => case.watched_from,
            _ => case.resumed_at.filter(|at| is_first && is_long_ago(at)).unwrap_or(self.now),
        };
        let open = self.incidents.open().values().filter(is_open);
        let open = open.map(|case| (&case.incident.key, since(case)));
        let given_back = was_off.chain(open).filter_map(|(key, at)| match &key.subject {
            Subject::Machine(MachineKey::Instance(of, id)) if of == cloud => Some((id.clone(), at)),
            _ => None,
        });
        given_back.collect()
    }

    /// Others may have had these in hand until a moment ago. Each is given back when this process sees it for the first time,
    /// which need not be in its first listing: a cell is down then, and a person has moved the machine to another host by the
    /// time that it is listed again.
    ///
    /// It looks at every open incident: meant for a listing, and for a machine that is seen first, not for each read.
    pub(super) fn give_back_unseen(&mut self, cloud: &CloudName) {
        if !self.resumed {
            return;
        }
        let is_first = self.clouds.get(cloud).is_some_and(|view| view.first_listed() == Some(self.now));
        let (now, given_back) = (self.now, self.given_back_before(cloud, is_first));
        let Some(view) = self.clouds.get_mut(cloud) else { return };
        for (id, at) in given_back {
            let Some(seen) = view.instances.get_mut(&id) else { continue };
            if seen.first_seen == now && seen.instance.is_at_rest() {
                seen.released = seen.released.max(Some(at));
                seen.released_by_boot = true;
            }
        }
    }

    /// Machines that served before they went away, as an incident tells that was open for long when this process began. They are
    /// not joining any more: with the deadline of a join, which counts from our own first sight, a process that is started again
    /// every quarter of an hour would never repair one.
    fn served_before(&self, cloud: &CloudName) -> BTreeSet<InstanceId> {
        let is_so = |case: &&Case| {
            let is_long_ago = case.resumed_at.is_some_and(|at| self.now.since(at) >= UNKNOWN_HOLD);
            is_long_ago && case.incident.key.kind.is_absence() && case.served_since.is_some()
        };
        let machines = self.incidents.open().values().filter(is_so).filter_map(|case| {
            match &case.incident.key.subject {
                Subject::Machine(MachineKey::Instance(of, id)) if of == cloud => Some(id.clone()),
                _ => None,
            }
        });
        machines.collect()
    }

    /// Marks machines in the first listing after a restart that neither the ledger nor an incident names: they were created
    /// while no process was looking.
    pub(super) fn note_made_meanwhile(&mut self, cloud: &CloudName) {
        let in_question: BTreeSet<InstanceId> = self
            .incidents
            .open()
            .keys()
            .filter_map(|key| match &key.subject {
                Subject::Machine(MachineKey::Instance(_, id)) => Some(id.clone()),
                _ => None,
            })
            .collect();
        let served = self.served_before(cloud);
        let Some(view) = self.clouds.get_mut(cloud) else { return };
        for (id, seen) in &mut view.instances {
            seen.was_ready |= served.contains(id);
            let known = seen.joined.is_some() || seen.born_in_sight || seen.left.is_some();
            seen.made_meanwhile = !known && !in_question.contains(id);
        }
    }

    /// An incident says that its Node went.
    pub(super) fn has_vanished(&self, machine: &MachineKey) -> bool {
        let subject = Subject::Machine(machine.clone());
        self.incidents.open().contains_key(&IncidentKey { subject, kind: FaultKind::Vanished })
    }

    /// The first list of nodes is held against the machines that joined before. Whose Node was known to be missing, or left on
    /// purpose, is not expected in it. Of one without its marks it is only asked whether it went since then.
    pub(super) fn await_remembered_nodes(&mut self) {
        let is_missing = |machine: &MachineKey| self.has_vanished(machine) || self.was_seen_to_go(machine);
        let node_of = |machine: &MachineKey, memory: &Remembered| {
            memory.node.clone().filter(|_| memory.left.is_none() && !is_missing(machine))
        };
        let awaited = self.remembered.iter().filter_map(|(machine, memory)| {
            let MachineKey::Instance(cloud, id) = machine else { return None };
            Some((node_of(machine, memory)?, (cloud.clone(), id.clone())))
        });
        let awaited: BTreeMap<_, _> = awaited.collect();
        let unmarked = self.departed.iter().filter(|(_, memory)| memory.disowned);
        let unmarked = unmarked.filter_map(|(machine, memory)| node_of(machine, memory));
        let names: Vec<NodeName> = unmarked.chain(awaited.keys().cloned()).collect();
        self.await_unseen(names);
        self.cluster.await_nodes(awaited);
    }

    /// Takes back machines that had departed and are in a view again. What was told that such a machine is gone is told
    /// that it is back.
    fn take_back(&mut self) {
        let is_back = |(key, _): &&(MachineKey, Remembered)| self.desk().seen(key).is_some();
        let machines: Vec<MachineKey> =
            self.departed.iter().filter(is_back).map(|(key, _)| key.clone()).collect();
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
        self.bring_back(machines);
        for key in machines {
            let MachineKey::Instance(_, id) = key else { continue };
            self.pauses.note_return(id, at);
        }
    }

    /// What is known of those of these machines that had departed holds as before.
    fn bring_back(&mut self, machines: &[MachineKey]) {
        let (back, away): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.departed).into_iter().partition(|(key, _)| machines.contains(key));
        self.departed = away.into();
        for (machine, memory) in back {
            if memory.lost_together {
                self.cluster.lost_together.insert(machine.clone());
            }
            self.remembered.insert(machine, memory);
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
        let unseen = self.remembered.iter().map(|(machine, memory)| (machine.clone(), memory.clone()));
        in_sight.chain(unseen)
    }
}

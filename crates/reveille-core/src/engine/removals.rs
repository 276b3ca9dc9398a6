//! Nodes that go: which machine each one belonged to, and whether a client removed it on purpose.
//!
//! ```text
//!  a Node goes ─▶ stood_for: its machine ─▶ removal_of: a sign on it ─▶ note_left: view and ledger
//!    └─ no machine is known to be its, and it names no instance ─▶ taken_away: by its name
//!  a sign on a Node that is there ─▶ note_signs: the ledger ─▶ the Node is gone after a restart ─▶ note_removed_unseen
//! ```
//!
//! `model::signs` lists the signs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::diagnose::absence::vanished;
use crate::diagnose::hosting;
use crate::model::hosting::GroupPhase;
use crate::model::id::{CloudName, InstanceId, NodeName};
use crate::model::incident::MachineKey;
use crate::model::instance::InstanceState;
use crate::model::node::{Node, NodeEvent, Provider, Ready};
use crate::model::signs::{self, Removal};
use crate::model::time::{ServiceTime, Time};
use crate::observe::cloud::{Left, SERVED_WITHIN, Seen};
use crate::observe::cluster::{Link, NodeSeen};
use crate::observe::machine_signs::Signs;
use crate::observe::remembered::Remembered;
use crate::record::{Joined, Record};
use crate::safeguard::{Safeguard, stands};

use super::State;

impl State {
    /// The machine of a Node that is gone: the one that it was linked to, or one that has no marks of ours at this moment and
    /// had joined as it.
    pub(super) fn stood_for(&self, gone: &NodeSeen) -> Option<(CloudName, InstanceId)> {
        if let Some(link) = &gone.link {
            return Some((link.cloud.clone(), link.instance.clone()));
        }
        let MachineKey::Instance(cloud, id) = self.out_of_sight.joined_as(&gone.node.name)? else {
            return None;
        };
        (belongs_to(&gone.node, id) != BelongsTo::Another).then(|| (cloud.clone(), id.clone()))
    }

    pub(super) fn note_left(&mut self, cloud: &CloudName, id: &InstanceId, node: &NodeName, sign: Arc<str>) {
        // The ledger reads what comes later as what holds: a join of this step, told at its end, would unsay the removal.
        self.record_joined();
        let key = MachineKey::Instance(cloud.clone(), id.clone());
        let at = self.now;
        let left = Some(Box::new(Left { at, sign: sign.clone() }));
        let Some(seen) = self.clouds.get_mut(cloud).and_then(|view| view.instances.get_mut(id)) else {
            // It has no marks of ours at this moment. Once they are back, this is known of it.
            let Some(memory) = self.out_of_sight.get_mut(&key) else { return };
            memory.left = left;
            return self.outbox.record(Record::Left { at, machine: key, why: sign });
        };
        seen.left = left;
        // The client that removed the Node deletes the instance next, and may be at work on others of the pool.
        let pool = seen.pool().cloned();
        self.note_others(pool.into_iter().collect(), format!("node {node} left on purpose ({sign})").into());
        self.outbox.record(Record::Left { at, machine: key, why: sign });
    }

    /// The ledger has to know which Nodes would be gone on purpose: one that is deleted cordoned while no process runs was
    /// drained, and its machine is not to come back by itself (seed 3453761). A pause and a wish to keep it stand without the
    /// Node as well. A lock, a pause, a drain for maintenance and a stay apart from its pool may end while no process runs, and
    /// the machine has the time of a boot then.
    pub(super) fn note_signs(&mut self, key: &MachineKey) {
        let MachineKey::Instance(cloud, id) = key else { return };
        let its = self.nodes_with_signs(key);
        self.note_own_speaks(key);
        let Some(seen) = self.clouds.get_mut(cloud).and_then(|view| view.instances.get_mut(id)) else {
            return;
        };
        if seen.is_stray() {
            return;
        }
        let apart = is_apart(seen);
        let (locked, named) = (seen.instance.locked, seen.paused_as.clone());
        let kept_by = hosting::group(seen).map(|group| group.name.clone());
        let group = kept_by.or_else(|| seen.signs.group.clone());
        let signs = Signs { locked, apart, group, named, ..seen.signs.clone() };
        let on_nodes = its.iter().map(|node| signs.clone().on(node));
        let on_nodes = on_nodes.reduce(|signs, others| signs.with_holds_of(&others));
        // What stood on the one that it joined as, and that is gone or shows another machine, no other one takes back.
        let shows_it =
            |node: &NodeSeen| node.link.as_ref().is_none_or(Link::is_shown) && !shows_another(node, id);
        let is_its = |name: &NodeName| self.cluster.nodes.get(name).is_some_and(shows_it);
        let is_there = seen.joined.as_ref().is_none_or(is_its);
        let is_kept = !is_there && stands(Safeguard::OwnHome);
        let on_nodes = on_nodes.map(|on| if is_kept { on.with_holds_of(&seen.signs) } else { on });
        let signs = on_nodes.unwrap_or(signs);
        if seen.signs != signs {
            let before = std::mem::replace(&mut seen.signs, signs.clone());
            self.tell_signs(key, &before, signs);
        }
    }

    /// The Node that it joined as shows it: no other machine took that name in a gap.
    fn note_own_speaks(&mut self, key: &MachineKey) {
        let Some(name) = self.context().seen(key).and_then(|(_, seen)| seen.joined.clone()) else { return };
        if self.is_shown_by(key, &name) {
            self.note_own_again(key);
        }
    }

    /// What this Node shows leads to this machine, and to no other one.
    pub(super) fn is_shown_by(&self, key: &MachineKey, name: &NodeName) -> bool {
        let MachineKey::Instance(_, id) = key else { return false };
        let Some(node) = self.cluster.nodes.get(name).filter(|node| !node.lost) else { return false };
        if node.node.system_uuid.as_ref() == Some(id) {
            return true;
        }
        let names_it = matches!(&node.node.provider, Provider::Instance(named) if named == id);
        let link = node.link.as_ref().filter(|link| link.is_shown());
        let leads_here = names_it || link.is_some_and(|link| link.machine() == *key);
        leads_here && self.context().views().runs_on(&node.node).is_none()
    }

    /// The Nodes on which people write what they want of this machine: the one that it joined as, and all that it ever joined
    /// as and that lead to it. Another kubelet that showed the machine for long took its drain back with a Node of its own.
    fn nodes_with_signs(&self, key: &MachineKey) -> Vec<Arc<Node>> {
        let (Some((_, seen)), MachineKey::Instance(_, id)) = (self.context().seen(key), key) else {
            return Vec::new();
        };
        let leads_here = |name: &NodeName| {
            let link = self.cluster.nodes.get(name).and_then(|node| node.link.as_ref());
            link.is_some_and(|link| link.machine() == *key)
        };
        let leads_away =
            |name: &NodeName| self.cluster.nodes.get(name).is_some_and(|node| shows_another(node, id));
        let own = |name: &&NodeName| leads_here(name) || !leads_away(name);
        let earlier = |name: &&NodeName| {
            seen.joined.as_ref() != Some(*name) && self.homes.is_home(name, |home| home == key)
        };
        let names = seen.joined.iter().filter(own).chain(seen.nodes.iter().filter(earlier));
        names.filter_map(|name| Some(self.cluster.nodes.get(name)?.node.clone())).collect()
    }

    /// The same for machines of these Nodes that are out of sight: an operator took their marks off, or their cloud was not read
    /// since our start. Where a person pauses such a Node and it is deleted while no process runs, only the ledger tells of it.
    /// A machine whose Node goes so is held until it has one again.
    pub(super) fn note_signs_out_of_sight(&mut self, applied: &[NodeName]) {
        let applied: BTreeSet<&NodeName> = applied.iter().collect();
        self.note_renamed_out_of_sight(&applied);
        let (mut changed, mut back) = (Vec::new(), Vec::new());
        for (key, memory) in self.out_of_sight.all_mut() {
            let MachineKey::Instance(_, id) = key else { continue };
            let is_its = |name: &&NodeName| applied.contains(name) && !self.cluster.is_anothers(name, id);
            let name = memory.node.as_ref().filter(is_its);
            let node = name.and_then(|name| self.cluster.nodes.get(name));
            let Some(node) = node else { continue };
            let signs = memory.signs.clone().on(&node.node);
            let whose = belongs_to(&node.node, id);
            // A successor's Node under its name is not its coming back.
            back.extend((whose != BelongsTo::Another).then(|| key.clone()));
            let is_its = match whose {
                BelongsTo::It => true,
                BelongsTo::Unsaid => signs.holds_more_than(&memory.signs),
                BelongsTo::Another => false,
            };
            if !is_its {
                continue;
            }
            if memory.signs != signs {
                let before = std::mem::replace(&mut memory.signs, signs.clone());
                changed.push((key.clone(), before, signs));
            }
        }
        for (key, before, signs) in changed {
            self.tell_signs(&key, &before, signs);
        }
        self.note_back_out_of_sight(back);
    }

    /// A machine without its marks that had joined was installed once more, and serves as a Node of another name, which names it:
    /// that is its Node from now on.
    fn note_renamed_out_of_sight(&mut self, applied: &BTreeSet<&NodeName>) {
        let nodes = applied.iter().filter_map(|name| self.cluster.nodes.get(*name));
        let named: BTreeMap<&InstanceId, (&NodeName, bool)> = nodes
            .filter(|seen| seen.node.ready == Ready::True)
            .filter_map(|seen| match &seen.node.provider {
                Provider::Instance(id) => Some((id, (&seen.node.name, seen.appeared))),
                _ => None,
            })
            .collect();
        if named.is_empty() {
            return;
        }
        let mut machines = Vec::new();
        for (machine, memory) in self.out_of_sight.all_mut() {
            let MachineKey::Instance(_, id) = machine else { continue };
            let Some((node, appeared)) = named.get(id) else { continue };
            // Any client may make a Node that names this machine: that ends no hold, and one that may have been there beside its
            // own takes nothing back that a person wrote on that.
            let is_signed = memory.signs.paused || memory.signs.removal.is_some();
            let is_free = memory.left.is_none() && !memory.lost_together && (*appeared || !is_signed);
            let is_there = memory.node.as_ref().is_some_and(|known| self.cluster.nodes.contains_key(known));
            let is_anothers = || self.homes.is_home(node, |home| home != machine);
            if is_free
                && !is_there
                && !is_anothers()
                && memory.node.as_ref().is_some_and(|known| known != *node)
            {
                memory.node = Some((*node).clone());
                let (machine, node, pool) = (machine.clone(), (*node).clone(), memory.pool.clone());
                machines.push(Joined { machine, node, pool });
            }
        }
        if machines.is_empty() {
            return;
        }
        machines.iter().for_each(|joined| self.set_seen_to_go(&joined.machine, false));
        self.outbox.record(Record::Joined { at: self.now, machines });
    }

    /// What a person is done with is told first: a process that dies between the two leaves that to the next one.
    fn tell_signs(&mut self, key: &MachineKey, before: &Signs, signs: Signs) {
        let MachineKey::Instance(_, id) = key else { return };
        let ends = before.ends_with(&signs);
        // Others may cordon and uncordon the Node again and again: what an operator holds and lets go of is told all the same.
        let is_held = ends || before.paused != signs.paused;
        let told = if is_held { &mut self.holds_told } else { &mut self.signs_told };
        if !told.may_tell(key, self.now) {
            if ends {
                self.pauses.note_return(id, self.now);
            }
            // A process that dies before that leaves what holds the machine to the next one: a person drained it amid a quarrel
            // of two programs about its cordon, and it was rebooted and deleted.
            if self.signs_told.put_off(key, ends) {
                let careful = signs.with_holds_of(before);
                self.outbox.record(self.signed(key.clone(), careful));
            }
            return;
        }
        if self.signs_told.take(key) || ends {
            self.let_go_of(id);
        }
        self.outbox.record(self.signed(key.clone(), signs));
    }

    /// Tells what stands now on machines whose signs changed too often.
    pub(super) fn tell_put_off(&mut self) {
        for key in self.signs_told.due(self.now) {
            let seen = self.context().seen(&key).map(|(_, seen)| seen.signs.clone());
            let signs = seen.or_else(|| Some(self.out_of_sight.get_mut(&key)?.signs.clone()));
            match signs {
                Some(signs) => self.tell_signs(&key, &signs.clone(), signs),
                None => self.signs_told.forget(&key),
            }
        }
    }

    /// Its Node is gone, and no sign was seen on it when it went: the watch was away, no process ran, or the Node was linked to
    /// another machine. Its kubelet has told of a cordon, or the ledger knows the sign. True when the machine was taken away so.
    pub(super) fn note_removed_unseen(&mut self, key: &MachineKey) -> bool {
        let MachineKey::Instance(cloud, id) = key else { return false };
        let Some(seen) = self.clouds.get(cloud).and_then(|view| view.instances.get(id)) else { return false };
        if seen.left.is_some() {
            return false;
        }
        let node = seen.joined.clone().or_else(|| self.drained_unseen(cloud, seen));
        // Of most that are absent the Node is there, and the words of events need not be looked through.
        let goes_on = match &node {
            Some(node) => !self.cluster.nodes.contains_key(node) || self.was_taken_over_unwatched(key, node),
            None => is_life_unknown(seen),
        };
        if !goes_on {
            return false;
        }
        // Of one in ERROR this is asked before the first list of nodes, which may show it.
        if !self.cluster.source.trust(self.now).is_given() {
            self.unsure.insert(key.clone());
            return false;
        }
        let Some(node) = node else {
            self.note_life_unknown(key);
            return false;
        };
        // An event does not cancel the sign in the ledger: any client with the right to write events can say that a Node
        // was uncordoned.
        let Some(sign) = seen.signs.removal.clone().or_else(|| self.sign_unseen(&node)) else {
            self.note_went_unwatched(key, &node);
            return false;
        };
        if &*sign == signs::DRAINED && !stands(Safeguard::Drained) {
            return false;
        }
        let (cloud, id) = (cloud.clone(), id.clone());
        self.note_left(&cloud, &id, &node, sign);
        true
    }

    /// The Node of this name says that it is another machine's, or what it shows leads to one: on bare metal and with k3s it
    /// names none.
    pub(super) fn is_of_another(&self, node: &NodeName, id: &InstanceId) -> bool {
        let Some(seen) = self.cluster.nodes.get(node) else { return false };
        let leads_away = seen.link.as_ref().is_some_and(|link| link.instance != *id);
        leads_away || belongs_to(&seen.node, id) == BelongsTo::Another || self.cluster.is_anothers(node, id)
    }

    /// It goes out of sight, and its Node went before, with a sign that the ledger knows or of which its kubelet told: a person
    /// took its marks off before it could be judged (seed 9100012).
    pub(super) fn left_as_told(&self, memory: &Remembered) -> Option<Left> {
        let node = memory.node.as_ref().filter(|node| !self.cluster.nodes.contains_key(*node))?;
        let is_seen = self.cluster.source.trust(self.now).is_given() && stands(Safeguard::Drained);
        let sign = memory.signs.removal.clone().or_else(|| self.sign_unseen(node)).filter(|_| is_seen)?;
        Some(Left { at: self.now, sign })
    }

    /// By which sign a Node of this name went, as its kubelet told of it, or as it went in our sight when no machine was known to
    /// stand as it.
    fn sign_unseen(&self, node: &NodeName) -> Option<Arc<str>> {
        let told = || vanished::was_cordoned(&self.cluster, node).then(|| Removal::Drained.sign());
        self.taken_away.sign(node).cloned().or_else(told)
    }

    /// A machine that may have joined while it or the nodes were not seen, and by which name, where such a Node is known to have
    /// been taken away. Of one whose whole life was seen, a word about its name is about a namesake, but for what a kubelet said
    /// since then, where no Node of that name was ever shown: an API server shows an old state for hours (seed 7204868).
    fn drained_unseen(&self, cloud: &CloudName, seen: &Seen) -> Option<NodeName> {
        if !seen.nodes.is_empty() || !stands(Safeguard::DrainsUnseen) {
            return None;
        }
        let was_watched = seen.was_watched_from_birth();
        let is_unwatched = !was_watched || self.was_unwatched_since(seen.known_since);
        // Over a VPN and on bare metal nothing that a Node shows may lead to its machine but the name, and a Node may register
        // before its machine is listed for the first time.
        let may_be_its = |came_at: Time| {
            is_unwatched || came_at > seen.known_since || self.was_made_by(cloud, seen, came_at)
        };
        let mut names = seen.instance.node_names();
        if let Some(taken) = names.find_map(|name| self.taken_away.called(name, may_be_its)) {
            return Some(taken.clone());
        }
        let is_its = |name: &NodeName, heard_at: Time, event: &NodeEvent| {
            if is_unwatched {
                // Who rolls a pool under the same names cordons the one before, and we saw then how the new one was made.
                return !was_watched || heard_at >= seen.known_since;
            }
            // Clocks of two services may be minutes apart, and a namesake before it was cordoned shortly before it was made.
            let is_old_enough = told_at_age(seen, event).is_some_and(|age| age > SERVED_WITHIN.ms);
            heard_at > seen.known_since && is_old_enough && !self.cluster.saw_go(name)
        };
        let told = vanished::cordons_told(&self.cluster, seen.instance.node_names());
        let mut told = told.into_iter().filter(|(name, (at, event))| is_its(name, *at, event));
        told.next().map(|(name, _)| name.clone())
    }

    /// Its cloud had made it by then, by its own clock.
    fn was_made_by(&self, cloud: &CloudName, seen: &Seen, at: Time) -> bool {
        let view = self.clouds.get(cloud);
        let made = view.and_then(|view| view.made_at(&seen.instance).zip(view.clock_at(at)));
        made.is_some_and(|(made, then)| then > made)
    }

    /// By which sign the Node was taken away on purpose, if it was. Who deleted a cordoned Node does not matter: a person has
    /// that machine in hand, and events that name another one who deleted it can be written by every kubelet.
    pub(super) fn removal_of(&self, gone: &NodeSeen) -> Option<Removal> {
        let removal = signs::removal(&gone.node.intent, gone.node.cordoned)?;
        let counts = removal != Removal::Drained || stands(Safeguard::Drained);
        counts.then_some(removal)
    }

    /// A Node that names no instance went by a sign: the machine of that name was taken away.
    pub(super) fn note_taken_away(&mut self, gone: &NodeSeen) {
        if let (Some(removal), Provider::Unset | Provider::Unread(_)) =
            (self.removal_of(gone), &gone.node.provider)
        {
            let served = gone.node.ready == Ready::True || gone.ready_since > gone.first_seen;
            self.taken_away.note(gone.node.name.clone(), removal.sign(), gone.first_seen, served);
        }
    }

    /// A node went before its instance was ever listed as ours. Where a cloud's parts take a while to agree, it may be there all
    /// the same, and has joined then, when it comes into sight. Where the Node went with a sign of intent, it is not expected
    /// back, whatever cloud it is of: its listing failed for two hours, or a person puts the pool's tags on a server that they
    /// have tried and drained. Which cloud that is the Node does not say, and an id is in one alone. A Node that names no
    /// instance is remembered by its name (seed 7100423).
    pub(super) fn remember_early(&mut self, gone: &NodeSeen) {
        let Provider::Instance(id) = &gone.node.provider else { return self.note_taken_away(gone) };
        let (at, lived) = (self.now, self.now.since(gone.first_seen));
        // A client that makes Nodes with made-up ids and deletes them cordoned filled the ledger with three records for each.
        let is_told = lived >= SERVED_WITHIN || self.taken_away.may_tell(at);
        let left = self.removal_of(gone).map(|removal| Left { at, sign: removal.sign() });
        // Each cloud that may hold its instance, and whether that may be too young for all parts of the cloud to know it.
        let clouds: Vec<(CloudName, bool)> = self
            .clouds
            .keys()
            .map(|cloud| {
                (cloud.clone(), self.roster.settles.get(cloud).is_some_and(|settles| lived < *settles))
            })
            .filter(|(_, is_young)| left.is_some() || *is_young)
            .collect();
        for (cloud, is_young) in clouds {
            let machine = MachineKey::Instance(cloud, id.clone());
            let node = gone.node.name.clone();
            // One that the ledger knew before stays one that the next list has to show, and what is known of it holds.
            let known = self.out_of_sight.get_mut(&machine).cloned();
            let (is_new, born) = (known.is_none(), is_young.then_some(gone.first_seen));
            let memory = known.unwrap_or_else(|| Remembered { born, ..Remembered::default() });
            // The next process may be the one that lists it: without these it would take it for one that never joined.
            let joined = Joined { machine: machine.clone(), node: node.clone(), pool: memory.pool.clone() };
            let mut told = vec![Record::Joined { at, machines: vec![joined] }];
            told.extend(memory.born.map(|at| Record::Born { at, machine: machine.clone() }));
            let removal = left.clone().map(|Left { at, sign: why }| (at, why));
            told.extend(removal.map(|(at, why)| Record::Left { at, machine: machine.clone(), why }));
            let departed = || Record::Departed { at, machines: vec![machine.clone()], disowned: false };
            told.extend(is_new.then(departed));
            told.into_iter().filter(|_| is_told).for_each(|record| self.outbox.record(record));
            let memory = Remembered { node: Some(node), left: left.clone().map(Box::new), ..memory };
            if is_new {
                self.depart(machine, memory);
            } else {
                *self.out_of_sight.entry(machine) = memory;
            }
        }
    }
}

/// Nothing tells whether it ever had a Node. One that is being built, or that is in ERROR without an address because its build
/// failed, never ran, and no Node would ever end a hold.
fn is_life_unknown(seen: &Seen) -> bool {
    let never_ran = match seen.instance.state {
        InstanceState::Errored => seen.instance.addresses.is_empty(),
        state => state == InstanceState::Building,
    };
    seen.is_unaccounted && seen.nodes.is_empty() && !never_ran && stands(Safeguard::LivesAccounted)
}

/// It was set apart from its pool. A person takes the pool's mark off to save a machine, or lets its group put it into standby,
/// and works on it. It goes back into service by way of a phase that new machines have as well.
fn is_apart(seen: &Seen) -> bool {
    let by_group = match hosting::group(seen).map(|group| group.phase) {
        Some(GroupPhase::Apart) => true,
        Some(GroupPhase::Coming) => seen.signs.apart,
        // EC2 takes the group's tag off an instance that a person detaches from it, and leaves its other tags ("Detach instances
        // from your Auto Scaling group").
        None => seen.detached_from().is_some(),
        _ => false,
    };
    seen.pool().is_none() || by_group
}

/// What a Node says of whether it is this machine's, which had joined under its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BelongsTo {
    It,
    /// It names no instance, and its UUID is no instance's that is meant: as on bare metal and with k3s, where both are the
    /// hardware's. Until a cloud is listed, the Node of a namesake looks the same, and would unsay what stood on this machine's:
    /// only what holds the machine is taken from it.
    Unsaid,
    Another,
}

/// It leads to another machine. One that names another instance and is written by the kubelet of this one does not.
fn shows_another(node: &NodeSeen, id: &InstanceId) -> bool {
    node.node.system_uuid.as_ref() != Some(id) && node.link.as_ref().is_some_and(|link| link.instance != *id)
}

fn belongs_to(node: &Node, id: &InstanceId) -> BelongsTo {
    let uuid = node.system_uuid.as_ref();
    match &node.provider {
        _ if uuid == Some(id) => BelongsTo::It,
        Provider::Instance(named) if named == id => BelongsTo::It,
        Provider::Instance(_) => BelongsTo::Another,
        _ if uuid.is_none() => BelongsTo::It,
        _ => BelongsTo::Unsaid,
    }
}

/// How old the machine was by its cloud when that was said by its writer's clock, in milliseconds. Less than zero: it was not
/// made.
fn told_at_age(seen: &Seen, event: &NodeEvent) -> Option<i64> {
    let created = ServiceTime::parse(seen.instance.created.as_deref()?)?;
    Some(event.stamp()?.since(created))
}

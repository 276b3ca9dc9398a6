//! Which machine each Node is the word of, whatever it shows now.
//!
//! ```text
//!  ledger, note_joined ─▶ homes: Node ─▶ machines that joined as it ─▶ link_of: the Node stays with the one that is there
//!  another machine's identity on it ─▶ a wait ─ Ready so for ten minutes, on another host ─▶ heirs ─▶ it is that one's
//! ```
//!
//! Where Nodes name no instance (k3s, bare metal), a Node leads to its machine by what its kubelet writes. One that wrote another
//! machine's UUID for 20 ms gave that machine a past, took its own one away, or ended its removal; and a machine that its cloud
//! listed without its addresses for an hour had no Node. So a machine that joined as a Node keeps it as long as it is there
//! (running or not, drained, without its marks) and the Node is the same object.
//!
//! A person may give its host name to another machine, whose kubelet registers on the object that is there. That one has the
//! Node once it has been Ready with its identity for [`STOOD_FOR`], and another host writes it: its UUID changed, or the object
//! came later. Until then its identity on that Node contests it, and nothing is done to it. A provider ID says whose a Node is,
//! and no wait is needed.
//!
//! An entry may be out of date: each is held against the views when it is asked for.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::id::NodeName;
use crate::model::incident::MachineKey;
use crate::model::node::{Node, Ready};
use crate::model::signs;
use crate::model::time::{Span, Time};
use crate::observe::cluster::{Link, LinkedBy, NodeSeen};
use crate::observe::join;
use crate::record::Joined;
use crate::safeguard::{Safeguard, stands};

use super::State;

/// Entries are gone through once this many more came than were left of them the last time.
const SPARE: usize = 1000;
/// For so long a Node is Ready with the identity of another machine before it is that one's. Longer than a person tries something
/// out, and than pods are waited for (five minutes); a kubelet that shows another machine's identity keeps that one from being
/// repaired meanwhile, and after it.
const STOOD_FOR: Span = Span::from_min(10);

/// The waits are gone through so often.
const REVIEWED_EACH: Span = Span::from_s(10);

/// Machines by the Node that they joined as.
#[derive(Clone, Debug, Default)]
pub(super) struct Homes {
    of: BTreeMap<NodeName, BTreeSet<MachineKey>>,
    /// Of several machines that joined as one Node, the one whose word it is.
    heirs: BTreeMap<NodeName, MachineKey>,
    /// Nodes that show another machine than the one they are the word of, and since when.
    waits: BTreeMap<NodeName, (MachineKey, Time)>,
    /// When the waits were gone through last.
    reviewed: Time,
    /// Machines that had left the views before this process began.
    inherited: BTreeSet<MachineKey>,
    /// So many came since they were gone through.
    noted: usize,
    /// So many were left then.
    left: usize,
}

impl Homes {
    /// This machine joined as that Node.
    pub(super) fn note(&mut self, node: NodeName, machine: MachineKey) {
        self.noted += usize::from(self.of.entry(node).or_default().insert(machine));
    }

    /// Such a machine joined as that Node.
    pub(super) fn is_home(&self, node: &NodeName, of: impl Fn(&MachineKey) -> bool) -> bool {
        self.of.get(node).is_some_and(|machines| machines.iter().any(of))
    }

    const fn is_full(&self) -> bool {
        self.noted > self.left + SPARE
    }

    /// The process slept, or its clock jumped: what was shown meanwhile was not seen.
    pub(super) fn wait_from(&mut self, now: Time) {
        self.waits.values_mut().for_each(|(_, since)| *since = now);
    }

    /// The Node is gone: the next object of its name is another one.
    pub(super) fn forget(&mut self, node: &NodeName) {
        self.heirs.remove(node);
        self.waits.remove(node);
    }
}

impl State {
    /// Every machine that is known to have joined, as a process begins.
    pub(super) fn begin_homes(&mut self) {
        let mut homes = Homes::default();
        for (cloud, view) in &self.clouds {
            for (id, seen) in &view.instances {
                let machine = || MachineKey::Instance(cloud.clone(), id.clone());
                seen.joined.iter().for_each(|node| homes.note(node.clone(), machine()));
            }
        }
        for (machine, memory) in self.out_of_sight.unseen().iter().chain(self.out_of_sight.departed()) {
            memory.node.iter().for_each(|node| homes.note(node.clone(), machine.clone()));
        }
        let before = std::mem::take(&mut self.homes);
        self.homes = Homes { of: homes.of, left: homes.noted, noted: 0, ..before };
    }

    /// A process begins: which machines joined, and which of those no process has seen stand as their Nodes since.
    pub(super) fn inherit_homes(&mut self) {
        self.begin_homes();
        self.homes.inherited = self.out_of_sight.departed().map(|(machine, _)| machine.clone()).collect();
    }

    /// This machine joined as that Node. Names of machines that are long gone make room.
    pub(super) fn note_home(&mut self, node: &NodeName, machine: &MachineKey) {
        self.homes.note(node.clone(), machine.clone());
        if self.homes.is_full() {
            self.begin_homes();
        }
    }

    /// The machine that the Node stands for: the one that its provider ID names, the one that joined as it, or the one that it
    /// shows. Of one that is out of sight there is none.
    pub(super) fn link_of(&mut self, name: &NodeName) -> Option<Link> {
        let seen = self.cluster.nodes.get(name)?;
        let found = join::find(&self.clouds, &self.cluster, &seen.node);
        let shown = found.as_ref().map(Link::machine);
        let is_named = found.as_ref().is_some_and(|link| link.by == LinkedBy::ProviderId);
        let homes: Vec<&MachineKey> = self.homes_of(&seen.node).collect();
        let is_its =
            |shown: &MachineKey| homes.contains(&shown) || self.takes_over_at_once(seen, shown, &homes);
        let is_free = is_named || homes.is_empty() || shown.as_ref().is_some_and(is_its);
        let home = self.home_among(&homes);
        if self.homes.waits.get(name).is_some_and(|(waits, _)| Some(waits) != shown.as_ref()) {
            self.homes.waits.remove(name);
        }
        if is_free || !stands(Safeguard::OwnHome) {
            return found;
        }
        if let Some(shown) = shown {
            self.wait_for_heir(name, shown);
        }
        home
    }

    /// The one of them that is in sight, and that the Node was seen with by this process where there is such a one.
    fn home_among(&self, homes: &[&MachineKey]) -> Option<Link> {
        let in_sight = homes.iter().filter_map(|home| Some((*home, self.context().seen(home)?.1)));
        let home = in_sight.min_by_key(|(_, seen)| seen.joined_uid.is_none())?.0;
        let MachineKey::Instance(cloud, id) = home else { return None };
        Some(Link { cloud: cloud.clone(), instance: id.clone(), by: LinkedBy::Home })
    }

    /// The Node shows this machine, which is not the one that it is the word of.
    pub(super) fn wait_for_heir(&mut self, node: &NodeName, machine: MachineKey) {
        let now = self.now;
        let wait = self.homes.waits.entry(node.clone()).or_insert_with(|| (machine.clone(), now));
        if wait.0 != machine {
            *wait = (machine, now);
        }
    }

    /// The machines that joined as this very object and are there, but for those that another one came after.
    fn homes_of<'a>(&'a self, node: &'a Node) -> impl Iterator<Item = &'a MachineKey> {
        let heir = self.homes.heirs.get(&node.name).filter(|heir| self.is_there(heir));
        let all = self.homes.of.get(&node.name).into_iter().flatten();
        all.filter(move |machine| match heir {
            Some(heir) => heir == *machine,
            None => self.is_there_as(machine, node),
        })
    }

    /// It is there at all, as far as is known.
    fn is_there(&self, machine: &MachineKey) -> bool {
        match self.context().seen(machine) {
            Some((_, seen)) => !seen.goes(),
            None => self.out_of_sight.there(machine).is_some(),
        }
    }

    /// It is there, and nothing says that it joined as another object of this name.
    fn is_there_as(&self, machine: &MachineKey, node: &Node) -> bool {
        if let Some((_, seen)) = self.context().seen(machine) {
            let is_it = seen.joined_uid.as_ref().is_none_or(|uid| *uid == node.uid);
            return !seen.goes() && seen.joined.as_ref() == Some(&node.name) && is_it;
        }
        let memory = self.out_of_sight.there(machine);
        memory.is_some_and(|memory| memory.node.as_ref() == Some(&node.name))
    }

    /// It is called as the Node, and none that joined as that can run: an owner that makes machines of fixed names has made the
    /// next one. Or the Node is Ready, and this process has not seen one of those stand as it: the other one may have come
    /// between two processes, and what its Node shows says nothing of a machine that a person drained then.
    fn takes_over_at_once(&self, node: &NodeSeen, machine: &MachineKey, homes: &[&MachineKey]) -> bool {
        let runs = |home: &&MachineKey| self.context().seen(home).is_none_or(|(_, seen)| seen.may_run());
        let is_called = self.is_called(&node.node.name, machine) && !homes.iter().any(runs);
        is_called || node.node.ready == Ready::True && !homes.iter().any(|home| self.was_seen(home))
    }

    /// This process has seen the machine stand as the Node that it joined as.
    fn was_seen(&self, home: &MachineKey) -> bool {
        match self.context().seen(home) {
            Some((_, seen)) => seen.joined_uid.is_some(),
            None => !self.out_of_sight.unseen().contains_key(home) && !self.homes.inherited.contains(home),
        }
    }

    /// Another machine joined as this very object. Where no cloud controller gives Nodes their provider IDs, a kubelet may write
    /// one into its own, once; and a Node that names an instance which is in no list may show any UUID.
    pub(super) fn is_home_of_another(&self, node: &Node, than: &MachineKey) -> bool {
        let mut homes = self.homes_of(node).peekable();
        stands(Safeguard::OwnHome) && homes.peek().is_some() && !homes.any(|home| home == than)
    }

    /// It is this machine's kubelet that speaks: the Node is called as the machine, or it joined as that, or it has stood for it
    /// for long. A first Node of another name, with the UUID of a machine that a person had drained, ended its removal.
    pub(super) fn is_own_word(&self, node: &NodeSeen, machine: &MachineKey) -> bool {
        let joined = self.context().seen(machine).and_then(|(_, seen)| seen.joined.as_ref());
        let name = &node.node.name;
        let waits = || self.homes.waits.get(name).filter(|(shown, _)| shown == machine);
        let has_stood =
            || self.is_heir(name, machine) || waits().is_some_and(|(_, since)| self.has_stood(node, *since));
        let is_its = joined == Some(name)
            || joined.is_none() && self.is_called(name, machine)
            || self.may_be_back_as(node, machine) && has_stood();
        is_its && !self.is_home_of_another(&node.node, machine) || !stands(Safeguard::OwnHome)
    }

    /// A Node that was there before the machine was taken away says nothing of its coming back, and what a first list shows may
    /// have been there (seed 8430407).
    fn may_be_back_as(&self, node: &NodeSeen, machine: &MachineKey) -> bool {
        let left = self.context().seen(machine).and_then(|(_, seen)| seen.left.as_ref());
        left.is_none_or(|left| node.appeared && node.first_seen > left.at)
    }

    /// A word of a kubelet that may be another machine's: the Node came in our sight, or changed its host, and the machine was
    /// there before, under no name of that Node's.
    pub(super) fn is_doubtful(&self, node: &NodeSeen, machine: &MachineKey) -> bool {
        let Some((_, seen)) = self.context().seen(machine) else { return false };
        let is_new = node.appeared || node.changed_host.is_some();
        let is_known = match &seen.joined {
            Some(joined) => *joined == node.node.name,
            None => seen.is_known_since_birth(),
        };
        let is_heir = self.is_heir(&node.node.name, machine);
        is_new
            && !is_known
            && !is_heir
            && !self.is_called(&node.node.name, machine)
            && stands(Safeguard::OwnHome)
    }

    /// The machine is called as this Node.
    fn is_called(&self, node: &NodeName, machine: &MachineKey) -> bool {
        let seen = self.context().seen(machine);
        seen.is_some_and(|(_, seen)| seen.instance.node_names().any(|name| name == node.as_str()))
    }

    /// Ready since then, and for as long as it takes.
    pub(super) fn has_stood(&self, node: &NodeSeen, since: Time) -> bool {
        let is_ready = node.node.ready == Ready::True && !node.lost;
        is_ready && self.now.since(since.max(node.ready_since)) >= STOOD_FOR
    }

    /// All that joined as a Node of this name, as far as is remembered.
    pub(super) fn joined_as<'a>(&'a self, node: &'a NodeName) -> impl Iterator<Item = &'a MachineKey> {
        let joined = move |machine: &&MachineKey| {
            self.context().seen(machine).is_some_and(|(_, seen)| seen.joined.as_ref() == Some(node))
        };
        self.homes.of.get(node).into_iter().flatten().filter(joined)
    }

    /// The same, and those that are out of sight.
    pub(super) fn last_joined_as(&mut self, node: &NodeName) -> Vec<MachineKey> {
        let all: Vec<MachineKey> = self.homes.of.get(node).into_iter().flatten().cloned().collect();
        let is_so = |machine: &MachineKey| match self.context().seen(machine) {
            Some((_, seen)) => seen.joined.as_ref() == Some(node),
            None => {
                self.out_of_sight.get_mut(machine).is_some_and(|memory| memory.node.as_ref() == Some(node))
            }
        };
        all.into_iter().filter(is_so).collect()
    }

    /// It has the Node after another machine that joined as it.
    pub(super) fn is_heir(&self, node: &NodeName, machine: &MachineKey) -> bool {
        self.homes.heirs.get(node) == Some(machine)
    }

    /// The machine joined as another Node, which is there and leads to it: it goes on as that one, unless it was given this one's
    /// name. Then the old one fell silent before this one came, or before another host wrote it; and where a person wrote on the
    /// old one what they want, this one registered since. So it is where that one went while no process ran.
    pub(super) fn goes_on_as_another(&self, machine: &MachineKey, new: &NodeSeen) -> bool {
        let joined = self.context().seen(machine).and_then(|(_, seen)| seen.joined.as_ref());
        let Some(joined) = joined else { return false };
        if *joined == new.node.name || !stands(Safeguard::OwnHome) {
            return false;
        }
        let Some(old) = self.cluster.nodes.get(joined) else {
            let signs = self.context().seen(machine).map(|(_, seen)| &seen.signs);
            return !new.appeared && signs.is_some_and(|signs| signs.paused || signs.removal.is_some());
        };
        if old.link.as_ref().is_none_or(|link| link.machine() != *machine) {
            return false;
        }
        let came = new.appeared.then_some(new.first_seen).max(new.changed_host);
        let is_later = old.node.ready != Ready::True && came.is_some_and(|came| came >= old.ready_since);
        let is_signed =
            old.node.intent.paused || signs::removal(&old.node.intent, old.node.cordoned).is_some();
        !is_later || is_signed && !new.appeared
    }

    /// It became Ready a moment ago, as far as was seen.
    pub(super) fn comes_now(&self, node: &NodeSeen) -> bool {
        self.now.since(node.ready_since) < STOOD_FOR
    }

    /// Nodes that have shown another machine for long are that one's.
    pub(super) fn review_heirs(&mut self) {
        let is_early = self.now.since(self.homes.reviewed) < REVIEWED_EACH && self.homes.reviewed <= self.now;
        if self.homes.waits.is_empty() || is_early || !self.cluster.source.trust(self.now).is_given() {
            return;
        }
        self.homes.reviewed = self.now;
        self.restart_waits();
        let stood = |(name, (machine, since)): (&NodeName, &(MachineKey, Time))| {
            let node = self.cluster.nodes.get(name)?;
            let mut others = self.homes_of(&node.node).filter(|home| *home != machine);
            let is_other =
                node.appeared || node.changed_host.is_some() || !others.any(|home| self.was_seen(home));
            let is_other = is_other && self.may_be_back_as(node, machine);
            (is_other && self.has_stood(node, *since)).then(|| (name.clone(), machine.clone()))
        };
        let heirs: Vec<(NodeName, MachineKey)> = self.homes.waits.iter().filter_map(stood).collect();
        for (node, machine) in heirs {
            self.homes.waits.remove(&node);
            self.note_home(&node, &machine);
            self.homes.heirs.insert(node.clone(), machine);
            self.relink(&node);
            self.note_joined(&node);
            self.note_adopted(&node);
            self.mark_node(&node);
        }
        self.relink_shaken();
    }

    /// As long as a machine serves under a Node of its own that shows it, no other one is waited for.
    fn restart_waits(&mut self) {
        let serves = |machine: &MachineKey, but: &NodeName| {
            let serves =
                |other: &NodeName| other != but && self.cluster.answers(other) && self.shows_its(other);
            self.context().seen(machine).is_none_or(|(_, seen)| seen.nodes.iter().any(serves))
        };
        let waits = self.homes.waits.iter().filter(|(node, (machine, _))| serves(machine, node));
        let waits: Vec<NodeName> = waits.map(|(node, _)| node.clone()).collect();
        for node in waits {
            if let Some((_, since)) = self.homes.waits.get_mut(&node) {
                *since = self.now;
            }
        }
    }

    /// The Node shows the machine again that joined as it before another one took it over: no host name was given away, a kubelet
    /// had shown another machine's identity. It waits for nothing where the other one has a Node of its own.
    pub(super) fn give_back(&mut self, name: &NodeName) {
        let Some(heir) = self.homes.heirs.get(name).cloned() else { return };
        let Some(node) = self.cluster.nodes.get(name) else { return };
        let shown = join::find(&self.clouds, &self.cluster, &node.node).map(|link| link.machine());
        let shows_heir = self.context().views().runs_on(&node.node).as_ref() == Some(&heir);
        let Some(shown) = shown.filter(|shown| *shown != heir && self.is_there_as(shown, &node.node)) else {
            return;
        };
        if shows_heir {
            return;
        }
        if self.own_node(&heir, name).is_some() {
            self.homes.heirs.remove(name);
            self.note_given_back(name, heir, &shown);
        } else {
            self.dirty.insert(heir.clone());
            self.note_own_lost(heir);
        }
    }

    /// The Node was another machine's for a while, and is the one's again that had joined as it before. The other one has its own
    /// Node again, where it has one: it was told of as one whose Node a cloud controller deleted when this one went (seed
    /// 9300074). Where it has none, it is as before: a person who had drained it has it in hand (seeds 9301868 and 10200683).
    pub(super) fn note_given_back(&mut self, name: &NodeName, from: MachineKey, to: &MachineKey) {
        if from == *to || !self.homes.is_home(name, |home| home == to) || !stands(Safeguard::OwnHome) {
            return;
        }
        let own = self.own_node(&from, name);
        let uid = own.as_ref().and_then(|own| self.cluster.nodes.get(own)).map(|own| own.node.uid.clone());
        let MachineKey::Instance(cloud, id) = &from else { return };
        let view = self.clouds.get_mut(cloud).and_then(|view| view.instances.get_mut(id));
        let Some(seen) = view.filter(|seen| seen.joined.as_ref() == Some(name)) else { return };
        self.dirty.insert(from.clone());
        let Some(own) = own else { return self.note_own_lost(from) };
        (seen.joined, seen.joined_uid) = (Some(own.clone()), uid);
        let pool = seen.pool().cloned();
        self.note_home(&own, &from);
        self.newly_joined.push(Joined { machine: from, node: own, pool });
    }

    /// Another Node that leads to the machine by what it shows.
    fn own_node(&self, machine: &MachineKey, but: &NodeName) -> Option<NodeName> {
        let (_, seen) = self.context().seen(machine)?;
        seen.nodes.iter().find(|node| *node != but && self.shows_its(node)).cloned()
    }

    /// The Node leads to its machine by what it shows.
    fn shows_its(&self, node: &NodeName) -> bool {
        self.cluster.nodes.get(node).and_then(|seen| seen.link.as_ref()).is_some_and(Link::is_shown)
    }

    /// The machine that had joined as this Node is there no more, or runs no more: the Node may be another's now.
    pub(super) fn note_heir(&mut self, node: &NodeName) {
        if self.cluster.nodes.contains_key(node) {
            self.relink(node);
            self.note_joined(node);
            self.note_adopted(node);
        }
    }
}

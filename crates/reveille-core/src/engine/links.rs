//! Which machine each Node stands for, and that a machine has joined as its Node.
//!
//! ```text
//!  a Node or an instance changed ─▶ relink: observe::join finds the instance ─▶ detach the old, mark both ─▶ note_joined
//!  a Node is gone ─▶ unlink ─▶ was it taken away on purpose? (removals)
//! ```
//!
//! The machine is remembered under the name of its Node for good, in the ledger too. What a link proves, `observe::join` says.

use std::collections::BTreeSet;

use crate::model::id::{CloudName, InstanceId, NodeName};
use crate::model::incident::{FaultKind, IncidentKey, MachineKey, Subject};
use crate::model::node::{Provider, Ready};
use crate::observe::cloud::Seen;
use crate::observe::cluster::{Link, LinkedBy, NodeSeen};
use crate::observe::join;
use crate::record::{Joined, Record};

use super::{JOINED_MAX, State};

impl State {
    /// Instances came, went or were renamed: nodes that hang on a weak link to them, or on none, may belong elsewhere now.
    pub(super) fn relink_hinted(&mut self, cloud: &CloudName, touched: &BTreeSet<InstanceId>) {
        let Some(view) = self.clouds.get_mut(cloud) else { return };
        let mut changed = view.take_reindexed();
        changed.extend(touched.iter().filter_map(|id| Some(view.instances.get(id)?.instance.clone())));
        let nodes: BTreeSet<NodeName> =
            changed.iter().flat_map(|instance| join::hinted(&self.cluster, instance)).cloned().collect();
        for node in nodes {
            self.relink(&node);
            self.cluster.holders_moved(&node);
        }
        self.relink_shaken();
        for id in touched {
            let joined = self.clouds.get(cloud).and_then(|view| view.instances.get(id)?.joined.clone());
            joined.iter().for_each(|node| self.note_heir(node));
        }
    }

    /// A node came, went or got other addresses: those that have one of these as well may belong elsewhere now.
    pub(super) fn relink_shaken(&mut self) {
        loop {
            let shaken = self.cluster.take_shaken();
            if shaken.is_empty() {
                return;
            }
            for node in shaken {
                self.relink(&node);
            }
        }
    }

    /// Machines whose identity this Node carries without being linked to them: what is so of the Node is so of them.
    pub(super) fn mark_sharing(&mut self, name: &NodeName) {
        let Some(node) = self.cluster.nodes.get(name) else { return };
        let machines = self.context().views().machines_of(node);
        self.dirty.extend(machines);
    }

    /// A kubelet writes the system UUID of its machine on the Node that it registers as. So the machine of this UUID has
    /// joined, also where the Node names another instance; when that Node is deleted, the machine comes back by a rejoin.
    pub(super) fn note_adopted(&mut self, name: &NodeName) {
        let Some(node) = self.cluster.nodes.get(name) else { return };
        let Some(uuid) = &node.node.system_uuid else { return };
        if node.link.as_ref().is_some_and(|link| link.instance == *uuid) {
            return;
        }
        let its = self.clouds.iter().find(|(_, view)| view.instances.contains_key(uuid));
        let Some((cloud, uuid)) = its.map(|(cloud, _)| (cloud.clone(), uuid.clone())) else { return };
        let machine = MachineKey::Instance(cloud.clone(), uuid.clone());
        // One kubelet that wrote the UUID of others for a moment gave each of them a past, so that they were deleted as machines
        // that had joined once.
        if self.is_home_of_another(&node.node, &machine) || self.is_doubtful(node, &machine) {
            return self.wait_for_heir(name, machine);
        }
        let (uid, is_heir) = (node.node.uid.clone(), self.is_heir(name, &machine));
        let goes_on = self.goes_on_as_another(&machine, node);
        let is_lost = self.cluster.lost_together.contains(&machine);
        let Some(seen) = self.clouds.get_mut(&cloud).and_then(|view| view.instances.get_mut(&uuid)) else {
            return;
        };
        if is_heir || seen.joined.as_ref().is_none_or(|joined| joined == name) {
            seen.joined_uid = Some(uid);
        }
        // What is told of its coming back, `returns` decides.
        let is_away = is_lost || goes_on || seen.left.is_some();
        if seen.joined.as_ref().is_some_and(|joined| !is_heir || is_away || joined == name) {
            return;
        }
        seen.joined = Some(name.clone());
        let pool = seen.pool().cloned();
        self.note_home(name, &machine);
        // What is open about it as one that never joined is over (seed 8531376).
        self.dirty.insert(machine.clone());
        self.newly_joined.push(Joined { machine, node: name.clone(), pool });
    }

    /// Searches again for the Node's instance, and moves the Node there.
    pub(super) fn relink(&mut self, name: &NodeName) {
        self.links_sought += 1;
        self.give_back(name);
        let link = self.link_of(name);
        let Some(old) = self.cluster.nodes.get(name).map(|seen| seen.link.clone()) else { return };
        if old == link {
            return;
        }
        // Of those that it is explained to be no Node of any more, it was not a moment ago.
        self.mark_sharing(name);
        if let Some(old) = &old {
            self.detach(old, name);
        }
        if let Some(new) = &link {
            if let Some(seen) =
                self.clouds.get_mut(&new.cloud).and_then(|c| c.instances.get_mut(&new.instance))
                && let Err(place) = seen.nodes.binary_search(name)
            {
                seen.nodes.reserve_exact(1);
                seen.nodes.insert(place, name.clone());
            }
            self.dirty.insert(new.machine());
            self.dirty.insert(MachineKey::Node(name.clone()));
        }
        let strong = link.as_ref().is_some_and(|link| link.by.is_strong());
        self.cluster.set_weak(name, !strong);
        let now_of = link.as_ref().map(Link::machine);
        self.cluster.set_link(name, link);
        if let Some((from, to)) = old.as_ref().map(Link::machine).zip(now_of) {
            self.note_given_back(name, from, &to);
        }
        self.mark_sharing(name);
        self.note_joined(name);
    }

    fn detach(&mut self, link: &Link, name: &NodeName) {
        if let Some(seen) = self.clouds.get_mut(&link.cloud).and_then(|c| c.instances.get_mut(&link.instance))
        {
            seen.nodes.retain(|node| node != name);
        }
        self.dirty.insert(link.machine());
    }

    /// A node is gone. If it went with a sign of intent on it, its machine is not expected back.
    pub(super) fn unlink(&mut self, gone: &NodeSeen) {
        self.dirty.insert(MachineKey::Node(gone.node.name.clone()));
        if let Provider::Instance(named) = &gone.node.provider {
            // A client that makes Nodes with made-up ids and deletes them leaves nothing behind.
            self.clouds.values_mut().for_each(|view| view.forget_reads_of_unknown(named));
        }
        let Some((cloud, instance)) = self.stood_for(gone) else {
            self.note_taken_over(gone, None);
            self.homes.forget(&gone.node.name);
            return self.remember_early(gone);
        };
        match &gone.link {
            Some(link) => self.detach(link, &gone.node.name),
            // It may have been a later machine's of that name, which is in no list yet (seed 8480053).
            None => self.note_taken_away(gone),
        }
        if let Some(seen) = self.clouds.get_mut(&cloud).and_then(|view| view.instances.get_mut(&instance)) {
            let answered = gone.node.ready == Ready::True;
            seen.silent_since = Some(if answered { self.now } else { gone.ready_since });
        }
        let machine = MachineKey::Instance(cloud.clone(), instance.clone());
        self.note_taken_over(gone, Some(&machine));
        self.homes.forget(&gone.node.name);
        self.dirty.insert(machine.clone());
        let Some(removal) = self.removal_of(gone) else {
            // No incident opens for the Node of one that is in an error state.
            let errored = IncidentKey { subject: Subject::Machine(machine), kind: FaultKind::Errored };
            if self.incidents.open().contains_key(&errored) {
                self.note_lost_with_others(&errored);
            }
            if gone.link.is_none() {
                let machine = MachineKey::Instance(cloud, instance);
                self.note_seen_to_go_out_of_sight(&machine, &gone.node.name);
            }
            return;
        };
        if !self.stands_as_another(&machine, gone) {
            self.note_left(&cloud, &instance, &gone.node.name, removal.sign());
        }
    }

    /// The Node that it joined as is another one, which is there and leads to it: it was given another name, and the one that is
    /// gone fell silent before that came; or it never joined as the one that is gone, which a client made.
    fn stands_as_another(&self, machine: &MachineKey, gone: &NodeSeen) -> bool {
        let name = &gone.node.name;
        let joined = self.context().seen(machine).and_then(|(_, seen)| seen.joined.as_ref());
        let other = joined.filter(|joined| *joined != name).and_then(|it| self.cluster.nodes.get(it));
        let leads_here = |link: &Link| link.machine() == *machine;
        let Some(other) = other.filter(|it| it.link.as_ref().is_some_and(leads_here)) else { return false };
        let is_renamed =
            gone.node.ready != Ready::True && other.appeared && other.first_seen >= gone.ready_since;
        is_renamed || !self.homes.is_home(name, |home| home == machine)
    }

    /// Whom a person means who drains a Node that shows more than one machine is not known: the one that it names, the one that
    /// joined as it before, which its cloud may show as running on a dead host, or the one that took it over. Not one that serves
    /// under a Node of its own.
    fn note_taken_over(&mut self, gone: &NodeSeen, stood_for: Option<&MachineKey>) {
        let Some(removal) = self.removal_of(gone) else { return };
        let name = &gone.node.name;
        let shows = join::find(&self.clouds, &self.cluster, &gone.node).map(|link| link.machine());
        let shown: BTreeSet<MachineKey> =
            self.context().views().runs_on(&gone.node).into_iter().chain(shows).collect();
        let serves = |seen: &Seen| seen.nodes.iter().any(|it| it != name && self.cluster.answers(it));
        let may_be_meant = |machine: &&MachineKey| {
            let seen = self.context().seen(machine);
            Some(*machine) != stood_for && seen.is_some_and(|(_, seen)| seen.left.is_none() && !serves(seen))
        };
        // Of one that has another Node of its own this is the word of any kubelet, for as long as it has not stood so.
        let is_its = |machine: &&MachineKey| {
            let has_none = |seen: &Seen| seen.nodes.iter().all(|it| it == name);
            let is_free = self.context().seen(machine).is_some_and(|(_, seen)| has_none(seen));
            is_free || self.is_heir(name, machine)
        };
        let shown = shown.iter().filter(is_its);
        let meant: BTreeSet<MachineKey> =
            shown.chain(self.joined_as(name)).filter(may_be_meant).cloned().collect();
        for machine in meant {
            let MachineKey::Instance(cloud, id) = &machine else { continue };
            self.note_left(cloud, id, name, removal.sign());
        }
    }

    /// The machine of this node has joined: remembered for good, in the ledger too.
    pub(super) fn note_joined(&mut self, name: &NodeName) {
        let Some(link) = self.cluster.nodes.get(name).and_then(|node| node.link.clone()) else { return };
        // What another host writes on it says nothing of the machine that had joined as it.
        if link.by == LinkedBy::Home {
            return;
        }
        let machine = link.machine();
        let is_unproved = self.is_unproved(name);
        let Some(node) = self.cluster.nodes.get(name) else { return };
        let is_named = link.by == LinkedBy::ProviderId;
        if self.is_home_of_another(&node.node, &machine) || !is_named && self.is_doubtful(node, &machine) {
            // That it is named stays so, also while the kubelet of the one that took it over writes it.
            let runs_on = self.context().views().runs_on(&node.node);
            if runs_on.is_none_or(|other| other == machine) {
                self.wait_for_heir(name, machine);
            }
            return;
        }
        if is_unproved {
            return self.wait_for_heir(name, machine);
        }
        let ready = node.node.ready == Ready::True;
        let comes_now = self.comes_now(node);
        let goes_on = self.goes_on_as_another(&machine, node);
        let Some(seen) = self.clouds.get_mut(&link.cloud).and_then(|c| c.instances.get_mut(&link.instance))
        else {
            return;
        };
        let comes_new = ready && !seen.was_ready && seen.born_in_sight;
        // The ledger takes it for one that joins still.
        let is_told_unready = comes_new && seen.joined.is_some();
        // One that has served for long under the Node of one that is gone now is no successor.
        let is_first = ready && !seen.was_ready && (seen.born_in_sight || seen.made_meanwhile) && comes_now;
        // Of one that was made while no process ran only this is known: it is no successor of what this one replaces.
        let after = if seen.made_meanwhile { self.inherited } else { self.numbers.intent };
        let arrival = seen.pool().filter(|_| is_first).cloned();
        seen.was_ready |= ready;
        // A second Node that names the machine and does not answer is not its coming back.
        let is_back = ready || seen.joined.as_ref().is_none_or(|joined| joined == name);
        let mut was_away = is_back && self.cluster.lost_together.remove(&machine);
        if is_back {
            // The ledger unsays it with the record of the join.
            was_away |= seen.left.take().is_some();
            if !goes_on {
                seen.joined_uid = Some(node.node.uid.clone());
            }
        }
        // It goes on under the name that it joined as while that Node is its own and Ready: two that change in turn were told of
        // a thousand times in twenty seconds.
        let serves_as = seen.joined.as_ref().filter(|joined| self.cluster.serves(joined, &machine));
        let joined_before = seen.joined.as_ref() == Some(name)
            || serves_as.is_some()
            || seen.joined.is_some() && !ready
            || goes_on;
        let pool = seen.pool().cloned();
        let before = seen.joined.clone().filter(|_| !joined_before);
        if !joined_before {
            seen.joined = Some(name.clone());
            self.note_home(name, &machine);
        }
        if let Some(pool) = arrival {
            self.note_newcomer(pool, machine.clone(), after);
        }
        // A second node that names a machine is not the one that it joined as, unless it answers.
        if joined_before && !was_away && !is_told_unready {
            return;
        }
        self.newly_joined.push(Joined { machine, node: name.clone(), pool });
        before.iter().for_each(|node| self.note_heir(node));
    }

    /// Many machines join in one step at the start: few records hold them all. The next process has to know of one that is not
    /// Ready yet that it joins still: it is no machine that had served, and once it is Ready it is a newcomer.
    pub(super) fn record_joined(&mut self) {
        for machines in std::mem::take(&mut self.newly_joined).chunks(JOINED_MAX) {
            self.outbox.record(Record::Joined { at: self.now, machines: machines.to_vec() });
            for Joined { machine, .. } in machines {
                let born = self.context().seen(machine).and_then(|(_, seen)| seen.joins_since());
                if let Some(at) = born {
                    self.outbox.record(Record::Born { at, machine: machine.clone() });
                }
            }
        }
    }
}

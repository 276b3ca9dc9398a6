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
use crate::model::instance::InstanceState;
use crate::model::node::{Provider, Ready};
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
        }
        self.relink_shaken();
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
        if node.link.as_ref().is_some_and(|link| link.instance == *uuid || self.names_one_that_runs(link)) {
            return;
        }
        let Some((cloud, view)) = self.clouds.iter_mut().find(|(_, view)| view.instances.contains_key(uuid))
        else {
            return;
        };
        let Some(seen) = view.instances.get_mut(uuid) else { return };
        if seen.joined.as_ref().is_none_or(|joined| joined == name) {
            seen.joined_uid = Some(node.node.uid.clone());
        }
        if seen.joined.is_some() {
            return;
        }
        seen.joined = Some(name.clone());
        let machine = MachineKey::Instance(cloud.clone(), uuid.clone());
        self.newly_joined.push(Joined { machine, node: name.clone(), pool: seen.pool().cloned() });
    }

    /// The Node names an instance that runs. A Node that another machine took over names one that is gone: one kubelet that wrote
    /// the UUID of others for a moment gave each of them a past, so that they were deleted as machines that had joined once.
    fn names_one_that_runs(&self, link: &Link) -> bool {
        let its = self.clouds.get(&link.cloud).and_then(|view| view.instances.get(&link.instance));
        link.by == LinkedBy::ProviderId
            && its.is_some_and(|seen| !seen.goes() && seen.instance.state == InstanceState::Active)
    }

    /// Searches again for the Node's instance, and moves the Node there.
    pub(super) fn relink(&mut self, name: &NodeName) {
        self.links_sought += 1;
        let Some(seen) = self.cluster.nodes.get(name) else { return };
        let link = join::find(&self.clouds, &self.cluster, &seen.node);
        let old = seen.link.clone();
        if old == link {
            return;
        }
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
        self.cluster.set_link(name, link);
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
        let Some((cloud, instance)) = self.stood_for(gone) else { return self.remember_early(gone) };
        if let Some(link) = &gone.link {
            self.detach(link, &gone.node.name);
        }
        if let Some(seen) = self.clouds.get_mut(&cloud).and_then(|view| view.instances.get_mut(&instance)) {
            let answered = gone.node.ready == Ready::True;
            seen.silent_since = Some(if answered { self.now } else { gone.ready_since });
        }
        let machine = MachineKey::Instance(cloud.clone(), instance.clone());
        self.dirty.insert(machine.clone());
        let Some(removal) = self.removal_of(gone) else {
            // No incident opens for the Node of one that is in an error state.
            let errored = IncidentKey { subject: Subject::Machine(machine), kind: FaultKind::Errored };
            if self.incidents.open().contains_key(&errored) {
                self.note_lost_with_others(&errored);
            }
            return;
        };
        self.note_left(&cloud, &instance, &gone.node.name, removal.sign());
    }

    /// The machine of this node has joined: remembered for good, in the ledger too.
    pub(super) fn note_joined(&mut self, name: &NodeName) {
        if self.is_unproved(name) {
            return;
        }
        let Some(node) = self.cluster.nodes.get(name) else { return };
        let Some(link) = node.link.clone() else { return };
        let ready = node.node.ready == Ready::True;
        let machine = link.machine();
        let Some(seen) = self.clouds.get_mut(&link.cloud).and_then(|c| c.instances.get_mut(&link.instance))
        else {
            return;
        };
        let comes_new = ready && !seen.was_ready && seen.born_in_sight;
        // The ledger takes it for one that joins still.
        let is_told_unready = comes_new && seen.joined.is_some();
        let is_first = ready && !seen.was_ready && (seen.born_in_sight || seen.made_meanwhile);
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
            seen.joined_uid = Some(node.node.uid.clone());
        }
        // It goes on under the name that it joined as while that Node is its own and Ready: two that change in turn were told of
        // a thousand times in twenty seconds.
        let serves_as = seen.joined.as_ref().filter(|joined| self.cluster.serves(joined, &machine));
        let joined_before =
            seen.joined.as_ref() == Some(name) || serves_as.is_some() || (seen.joined.is_some() && !ready);
        let pool = seen.pool().cloned();
        if !joined_before {
            seen.joined = Some(name.clone());
        }
        if let Some(pool) = arrival {
            self.note_newcomer(pool, machine.clone(), after);
        }
        // A second node that names a machine is not the one that it joined as, unless it answers.
        if joined_before && !was_away && !is_told_unready {
            return;
        }
        self.newly_joined.push(Joined { machine, node: name.clone(), pool });
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

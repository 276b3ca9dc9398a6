//! Answers about machines that a list lacks: the cloud was asked for each by its id.
//!
//! ```text
//!  a list lacks it ─▶ asked by id ─┬─ denied ──────────▶ a view holds it: denied once, or twice and gone
//!                                  │                     only the ledger knew it: forgotten, or its Node is left behind
//!                                  └─ there, unmarked ─▶ disowned
//! ```
//!
//! A list is asked for in `sight`; what an answer teaches besides stands in `looks`.

use std::collections::BTreeSet;

use crate::effect::ReadError;
use crate::event::Answer;
use crate::model::id::{CloudName, InstanceId, NodeName};
use crate::model::incident::MachineKey;
use crate::model::instance::{Instance, InstanceState};
use crate::model::node::Provider;
use crate::model::roster::{Claim, Pool};
use crate::model::time::Time;
use crate::observe::cloud::{CloudView, NodeOf, Seen, Unlisted};
use crate::observe::cluster::Link;
use crate::observe::remembered::Remembered;
use crate::record::Record;

use super::State;
use super::ingest::shown_by;

impl State {
    pub(super) fn on_missing_answer(
        &mut self,
        cloud: &CloudName,
        id: &InstanceId,
        answer: &Result<Answer, ReadError>,
        asked_at: Time,
    ) {
        if let Some(view) = self.clouds.get_mut(cloud) {
            view.note_asked(self.now, id, answer.is_ok());
        }
        let key = MachineKey::Instance(cloud.clone(), id.clone());
        if let Ok(Answer::Instance(Some(found))) = answer {
            self.disown_unseen(&key, cloud, found);
        }
        let ended = answer.as_ref().ok().and_then(has_ended);
        if ended.is_none() && !matches!(answer, Ok(Answer::Instance(None))) {
            return;
        }
        let Some(view) = self.clouds.get(cloud).filter(|view| !view.emptied) else { return };
        // While the list is doubted, a denial of one whose node lives says more of the cloud than of the machine.
        if ended.is_none() && view.source.doubted().is_some() && self.has_live_node(&key, cloud, id) {
            return;
        }
        if !view.instances.contains_key(id) && self.out_of_sight.unseen().contains_key(&key) {
            self.on_gone_unseen(&key, cloud, id, asked_at, ended);
        } else {
            self.deny(cloud, id, asked_at, ended);
        }
        self.dirty.insert(key);
    }

    /// Only the ledger knows it, and it carries no mark of ours any more: an operator took it off before this process began. No
    /// list will ever hold it, and a doubt that waits for it would never end.
    fn disown_unseen(&mut self, key: &MachineKey, cloud: &CloudName, found: &Instance) {
        let ours = self.roster.claim(cloud, found) != Claim::Foreign;
        if found.is_bare() || ours || self.context().seen(key).is_some() {
            return;
        }
        // An incident of it that the process before could not close any more: it was asked for at each full list (seed 8331560).
        self.dirty.insert(key.clone());
        let Some(memory) = self.out_of_sight.give_back(key) else { return };
        self.disown(vec![(key.clone(), memory)]);
        self.dirty.insert(key.clone());
    }

    fn has_live_node(&self, key: &MachineKey, cloud: &CloudName, id: &InstanceId) -> bool {
        let seen = self.clouds.get(cloud).and_then(|view| view.instances.get(id));
        let known = self.out_of_sight.unseen().get(key).and_then(|memory| memory.node.as_ref());
        // A successor of the same name lives under that name now: the doubt would never end (seed 4300450).
        let known = known.filter(|name| !self.cluster.is_anothers(name, id));
        let (cluster, silent_after) = (&self.cluster, self.roster.timing.lease_silent_after);
        let shown = |name: &NodeName| Some(shown_by(cluster, silent_after, cluster.nodes.get(name)?));
        let lives = |name: &NodeName| shown(name) == Some(NodeOf::Lives);
        let names = seen.into_iter().flat_map(|seen| &seen.nodes).chain(known);
        names.filter(|name| !self.is_successors(name, id)).any(lives)
    }

    /// The machine that another client made in its place has its name, and registered on its Node: the provider ID stays, and the
    /// system UUID is the successor's (seed 6108644). Of bare metal no ID is an instance's, and the address is (seed 7000595).
    fn is_successors(&self, name: &NodeName, id: &InstanceId) -> bool {
        let Some(seen) = self.cluster.nodes.get(name) else { return false };
        let is_listed = |uuid: &InstanceId| {
            uuid != id && self.clouds.values().any(|view| view.instances.contains_key(uuid))
        };
        let has_address_of = |link: &Link| {
            let has = |view: &CloudView| view.has_one_of(&seen.node.addresses, &link.instance);
            link.instance != *id && self.clouds.get(&link.cloud).is_some_and(has)
        };
        seen.node.system_uuid.as_ref().is_some_and(is_listed)
            || seen.link.as_ref().is_some_and(has_address_of)
    }

    /// The instance went while no controller process was looking, and only the ledger knew it. Where it left a Node behind,
    /// the views hold it as a machine again, denied by the cloud once. After the second denial its Node is cleaned up like
    /// every other orphaned Node.
    fn on_gone_unseen(
        &mut self,
        key: &MachineKey,
        cloud: &CloudName,
        id: &InstanceId,
        asked_at: Time,
        ended: Option<&Instance>,
    ) {
        if !self.cluster.synced_once() {
            // The Nodes are not listed yet, so the controller cannot tell whether the instance left one. The next full
            // listing asks for it again.
            return;
        }
        let Some(memory) = self.out_of_sight.unseen().get(key) else { return };
        if let Some((node, pool)) = self.left_behind(cloud, id, memory) {
            let Some(view) = self.clouds.get_mut(cloud) else { return };
            view.insert_missing(self.now, id, &node, &pool);
            self.remember_joined(cloud);
            self.give_back_unseen(cloud);
            self.deny(cloud, id, asked_at, ended);
            self.relink(&node);
            return;
        }
        let memory = self.out_of_sight.give_back(key).unwrap_or_default();
        let node = memory.node.clone();
        self.depart(key.clone(), memory);
        node.iter().for_each(|node| self.note_heir(node));
        let at = self.now;
        self.outbox.record(Record::Forgotten { at, machines: vec![key.clone()] });
        self.note_gone_unseen(cloud, id);
    }

    /// The node that this machine joined as still names it, and the pool that it was of is in the roster.
    fn left_behind(
        &self,
        cloud: &CloudName,
        id: &InstanceId,
        memory: &Remembered,
    ) -> Option<(NodeName, Pool)> {
        let name = memory.node.as_ref()?;
        let pool = self.roster.pools.get(memory.pool.as_ref()?)?;
        let node = &self.cluster.nodes.get(name)?.node;
        let names_it = matches!(&node.provider, Provider::Instance(named) if named == id);
        (names_it && pool.cloud == *cloud).then(|| (name.clone(), pool.clone()))
    }

    /// The controller asked the cloud for the instance by id, and the cloud denied it. An answer that comes late is as old
    /// as its question. Once that proves the instance gone, the controller knows that another client is at work there.
    pub(super) fn deny(
        &mut self,
        cloud: &CloudName,
        id: &InstanceId,
        asked_at: Time,
        ended: Option<&Instance>,
    ) {
        let late = self.now.since(asked_at) > Unlisted::APART;
        let denied_at = if late { asked_at } else { self.now };
        let Some(view) = self.clouds.get_mut(cloud).filter(|view| !view.emptied) else { return };
        let known = view.instances.get(id).is_some_and(Seen::is_gone);
        if view.denied(self.now, denied_at, id, ended) && !known {
            let machine = MachineKey::Instance(cloud.clone(), id.clone());
            let joined = view.instances.get(id).and_then(|seen| seen.joined.clone());
            joined.iter().for_each(|node| self.note_heir(node));
            self.note_foreign(&machine);
        }
    }

    pub(super) fn on_namesake_answer(
        &mut self,
        cloud: &CloudName,
        id: &InstanceId,
        node: &NodeName,
        answer: &Result<Answer, ReadError>,
    ) {
        if let Some(view) = self.clouds.get_mut(cloud) {
            view.note_asked(self.now, id, answer.is_ok());
        }
        if let Ok(Answer::Instance(Some(found))) = answer {
            self.note_namesake_found(id, node, found);
            return;
        }
        let settles = self.roster.settles.values().max().copied().unwrap_or_default();
        let Some(seen) = self.cluster.nodes.get_mut(node) else { return };
        // Whatever was answered: who asks again at once gets the same answer, without end.
        seen.last_answer = Some(self.now);
        match answer {
            // Its machine may be too young for its cloud to know.
            Ok(Answer::Instance(None)) if self.now.since(seen.first_seen) < settles => {}
            Ok(Answer::Instance(None)) => {
                let denials = seen.denied_by.entry(cloud.clone()).or_default();
                *denials = denials.saturating_add(1);
                if seen.denials(&self.roster.clouds) > 0 {
                    seen.found = 0;
                }
            }
            Ok(_) => seen.denied_by.clear(),
            Err(_) => {}
        }
        self.dirty.insert(MachineKey::Node(node.clone()));
    }

    /// The machine is there, whichever of the Nodes that name it was asked about. Two Nodes of one machine had it read twice in
    /// each period (seed 6108280). A denial counts only for the Node that was asked about: each has its own two.
    fn note_namesake_found(&mut self, id: &InstanceId, node: &NodeName, found: &Instance) {
        let names: BTreeSet<NodeName> = self.cluster.named_by(id).chain([node]).cloned().collect();
        for name in names {
            let Some(seen) = self.cluster.nodes.get_mut(&name) else { continue };
            seen.last_answer = Some(self.now);
            seen.denied_by.clear();
            seen.found = seen.found.saturating_add(1);
            // Had it a mark of the roster, it were in a view by now, and the node linked to it.
            seen.unmarked = !found.state.is_leaving() && found.state != InstanceState::Other;
            self.dirty.insert(MachineKey::Node(name));
        }
    }
}

/// The cloud says, of its own id, that it has ended: that is more than not to know it.
pub(super) fn has_ended(answer: &Answer) -> Option<&Instance> {
    match answer {
        Answer::Instance(Some(found)) if found.state == InstanceState::Gone => Some(found),
        _ => None,
    }
}

//! Which Nodes carry an identity of a machine without being linked to it.
//!
//! ```text
//!  Node: system UUID, addresses ─▶ identities::Identities (kept as nodes change) ─┐
//!  Node: name ───────────────────▶ ClusterView::nodes ──────────────────────────┼─▶ sharers: node, and by which identity
//!  agent: the name of its Node ──▶ AgentsView ──────────────────────────────────┘
//! ```
//!
//! A link follows the provider ID, which never changes. A kubelet on a new instance that finds a Node of its name takes that
//! object over: its status then shows the new instance's UUID and addresses beside the provider ID of one that is gone
//! (pkg/kubelet/kubelet_node_status.go, tryRegisterWithAPIServer). Such a machine serves, and no Node is linked to it.
//!
//! An address or a name that the Node's own instance has as well is explained by that instance: two projects may use one
//! address twice, and names are given twice. So is any address of a Node whose kubelet shows its own instance's UUID or
//! address. A system UUID is never explained by another instance.
//!
//! It does not decide what follows: `diagnose` says that the machine is contested, `plan` holds what could hurt it.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::host_name;
use crate::model::id::{CloudName, InstanceId, NodeName};
use crate::model::incident::MachineKey;
use crate::model::instance::Instance;
use crate::model::node::{Identity, Node};

use super::agents::AgentsView;
use super::cloud::{CloudView, Seen};
use super::cluster::{ClusterView, LinkedBy, NodeSeen};

/// The kubelet's own word and the provider ID agree on whose Node it is. What further addresses it writes into its status are no
/// sign of another machine: with one line, a kubelet would keep 64 others from being repaired.
fn runs_on(node: &Node, own: &Instance) -> bool {
    node.system_uuid.as_ref() == Some(&own.id)
        || node.addresses.iter().any(|address| own.addresses.contains(address))
}

/// Where more machines than so many have one name or address, only a Node that stands for no machine may be any of theirs: sites
/// that are copies of each other have one range each, and one machine called `worker`. To look at all Nodes for each machine cost
/// the square of the fleet.
pub const ALIKE_MAX: usize = 64;

/// A Node that carries an identity of a machine and is not linked to it.
#[derive(Clone, Copy, Debug)]
pub struct Sharer<'a> {
    /// Its name.
    pub name: &'a NodeName,
    /// The Node.
    pub seen: &'a NodeSeen,
    /// The identity that it carries.
    pub by: Identity,
    /// Its own instance has this name or address as well.
    pub explained: bool,
}

/// The one of them that makes the machine contested, if any does: [`Views::contesting`].
pub fn contesting_among<'s, 'a>(
    sharers: &'s [Sharer<'a>],
    lives: impl Fn(&NodeName) -> bool,
) -> Option<&'s Sharer<'a>> {
    let contests =
        |sharer: &&Sharer<'_>| sharer.by == Identity::SystemUuid || !sharer.explained && lives(sharer.name);
    sharers.iter().filter(contests).min_by_key(|sharer| sharer.by)
}

/// The views that tell who shares an identity.
#[derive(Clone, Copy)]
pub struct Views<'a> {
    /// Every cloud of the roster.
    pub clouds: &'a BTreeMap<CloudName, CloudView>,
    /// The cluster.
    pub cluster: &'a ClusterView,
    /// The agents.
    pub agents: &'a AgentsView,
}

impl<'a> Views<'a> {
    /// Every Node that carries an identity of this machine and is not linked to it, once for each such identity.
    pub fn sharers(self, cloud: &CloudName, machine: &Seen) -> Vec<Sharer<'a>> {
        let instance = &machine.instance;
        let mut found: BTreeSet<(&'a NodeName, Identity)> = BTreeSet::new();
        let mut note = |name: &NodeName, by: Identity| {
            let known = self.cluster.nodes.get_key_value(name);
            let known = known.filter(|(name, _)| !machine.nodes.contains(name));
            found.extend(known.map(|(name, _)| (name, by)));
        };
        for name in self.cluster.with_uuid(&instance.id) {
            note(name, Identity::SystemUuid);
        }
        let key = MachineKey::Instance(cloud.clone(), instance.id.clone());
        for (_, agent) in self.agents.of(&key) {
            agent.report.who.node.iter().for_each(|name| note(name, Identity::Agent));
        }
        let view = self.clouds.get(cloud);
        let are_few = |alike: &[InstanceId]| alike.len() <= ALIKE_MAX;
        for address in &machine.addresses {
            let have_it = self.cluster.with_address(address);
            let by = Identity::Address(*address);
            if view.is_none_or(|view| are_few(view.addressed(address))) {
                have_it.iter().for_each(|name| note(name, by));
            } else {
                self.cluster
                    .unlinked()
                    .iter()
                    .filter(|name| have_it.contains(*name))
                    .for_each(|it| note(it, by));
            }
        }
        for name in instance.node_names() {
            if view.is_none_or(|view| are_few(view.named(name))) {
                self.called(name).for_each(|name| note(name, Identity::Name));
            } else {
                let is_called = |node: &&NodeName| host_name::is_one_host(node.as_str(), name);
                self.cluster.unlinked().iter().filter(is_called).for_each(|it| note(it, Identity::Name));
            }
        }
        let sharer = |(name, by)| {
            let seen = self.cluster.nodes.get(name)?;
            Some(Sharer { name, seen, by, explained: self.explains(seen, by, machine) })
        };
        found.into_iter().filter_map(sharer).collect()
    }

    /// The Nodes of this name, and those whose name it is the first label of, or that are called by its first label.
    fn called(self, name: &'a str) -> impl Iterator<Item = &'a NodeName> {
        host_name::of_host(&self.cluster.nodes, name).map(|(name, _)| name)
    }

    /// The instance that the Node is linked to by an identity has this name or address itself.
    fn explains(self, node: &NodeSeen, by: Identity, of: &Seen) -> bool {
        let Some(link) = node.link.as_ref().filter(|link| link.is_sure()) else {
            return matches!(by, Identity::Address(_)) && self.others_shown(&node.node, of) > 1;
        };
        let own = self.clouds.get(&link.cloud).and_then(|cloud| cloud.instances.get(&link.instance));
        let Some(own) = own.filter(|own| own.unlisted.is_none()) else { return false };
        match by {
            Identity::SystemUuid | Identity::Agent => false,
            Identity::Address(address) => {
                own.addresses.contains(&address)
                    || runs_on(&node.node, &own.instance)
                    || self.others_shown(&node.node, of) > 0
            }
            Identity::Name => {
                own.instance.node_names().any(|name| of.instance.node_names().any(|other| other == name))
            }
        }
    }

    /// Of how many other listed machines, two at most, the Node has an address that this one does not have. It runs on one at
    /// most: a kubelet that left out its own kept 64 others from being repaired. One may have an address that is given on from
    /// machine to machine beside its own, and where no strong link tells which is its own, one is not enough.
    fn others_shown(self, node: &Node, of: &Seen) -> usize {
        let foreign = node.addresses.iter().filter(|address| !of.addresses.contains(*address));
        let mut holders =
            foreign.flat_map(|address| self.clouds.values().flat_map(|cloud| cloud.addressed(address)));
        let mut next = |but: Option<&InstanceId>| {
            holders.find(|id| Some(*id) != but && self.listed_beside(&of.instance.id, id).is_some())
        };
        match next(None) {
            Some(first) => 1 + usize::from(next(Some(first)).is_some()),
            None => 0,
        }
    }

    /// The Node that makes the machine contested, if any does: it runs on this machine by its own word, or it lives and
    /// carries an identity that nothing else explains.
    pub fn contesting(
        self,
        cloud: &CloudName,
        machine: &Seen,
        lives: impl Fn(&NodeName) -> bool,
    ) -> Option<Sharer<'a>> {
        contesting_among(&self.sharers(cloud, machine), lives).copied()
    }

    /// The listed machine that this Node runs on by its system UUID, whatever it is linked to.
    pub fn runs_on(self, node: &Node) -> Option<MachineKey> {
        let id = node.system_uuid.as_ref()?;
        let lists = |cloud: &&CloudView| cloud.instances.get(id).is_some_and(|seen| seen.unlisted.is_none());
        let cloud = self.clouds.values().find(lists)?;
        Some(MachineKey::Instance(cloud.name.clone(), id.clone()))
    }

    /// Another listed machine that this Node, linked to `own`, runs on by its system UUID.
    pub fn writer(self, own: &InstanceId, node: &Node) -> Option<&'a Seen> {
        node.system_uuid.as_ref().and_then(|id| self.listed_beside(own, id))
    }

    /// Another listed machine that this Node, linked to `own`, stands for by its kubelet's word: its UUID names that machine, or
    /// its address does, and no Node is linked there. Or one that is called so and joined as it, where nothing but the kubelet's
    /// word leads to `own`: it died while it showed the identity of a machine that was deleted later (seed 8300030).
    pub fn other_machine(self, own: &InstanceId, seen: &NodeSeen) -> Option<(&'a Seen, Identity)> {
        let node = &seen.node;
        let listed = |id: &InstanceId| self.listed_beside(own, id);
        if let Some(seen) = self.writer(own, node) {
            return Some((seen, Identity::SystemUuid));
        }
        // One with a Node of its own that it serves under is that one. A silent one of its old name may be left there.
        let is_elsewhere = |seen: &Seen| seen.nodes.iter().any(|name| self.cluster.answers(name));
        if seen.link.as_ref().is_some_and(|link| link.by != LinkedBy::ProviderId) {
            let name = node.name.as_str();
            let mut called =
                self.clouds.values().flat_map(|cloud| cloud.named(name).iter().chain(cloud.qualified(name)));
            let joined_as = |seen: &&Seen| seen.joined.as_ref() == Some(&node.name) && !is_elsewhere(seen);
            if let Some(seen) = called.find_map(|id| listed(id).filter(joined_as)) {
                return Some((seen, Identity::Name));
            }
        }
        node.addresses.iter().find_map(|address| {
            let mut held = self.clouds.values().flat_map(|cloud| cloud.addressed(address));
            let seen = held.find_map(|id| listed(id).filter(|seen| !is_elsewhere(seen)))?;
            Some((seen, Identity::Address(*address)))
        })
    }

    fn listed_beside(self, own: &InstanceId, id: &InstanceId) -> Option<&'a Seen> {
        let seen = self.clouds.values().find_map(|cloud| cloud.instances.get(id));
        seen.filter(|seen| seen.instance.id != *own && seen.unlisted.is_none())
    }

    /// The machines that carry an identity of this Node and that it is not linked to.
    pub fn machines_of(self, node: &NodeSeen) -> Vec<MachineKey> {
        let mut found = Vec::new();
        for (name, cloud) in self.clouds {
            let mut note = |id: &InstanceId| {
                let linked = node.link.as_ref().is_some_and(|link| link.instance == *id);
                if !linked && cloud.instances.contains_key(id) {
                    found.push(MachineKey::Instance(name.clone(), id.clone()));
                }
            };
            node.node.system_uuid.iter().for_each(&mut note);
            let held = node.node.addresses.iter().map(|address| cloud.addressed(address));
            let named = cloud.by_host_name(node.node.name.as_str());
            held.chain(named).filter(|ids| ids.len() <= ALIKE_MAX).flatten().for_each(&mut note);
        }
        found
    }
}

//! An index of the Nodes by the identities that they carry: system UUID, provider ID, addresses and pod ranges.
//!
//! The view of the cluster keeps it as Nodes change; `sharing` asks it whose Nodes carry an identity of a machine.

use std::collections::BTreeMap;
use std::net::IpAddr;

use ipnet::IpNet;

use crate::model::id::{InstanceId, NodeName};
use crate::model::node::{Node, Provider};
use crate::model::roster::Network;

use super::holders::Holders;
use super::pack;

/// Nodes by what they say of the machine that they run on.
#[derive(Clone, Debug, Default)]
pub(super) struct Identities {
    by_uuid: BTreeMap<InstanceId, Holders<NodeName>>,
    /// By the instance that their provider IDs name, where that is not their UUID as well.
    by_provider: BTreeMap<InstanceId, Holders<NodeName>>,
    by_address: BTreeMap<IpAddr, Holders<NodeName>>,
    /// By their pod ranges.
    by_range: BTreeMap<IpNet, Holders<NodeName>>,
}

impl Identities {
    pub(super) fn add(&mut self, node: &Node) {
        if let Some(uuid) = &node.system_uuid {
            Holders::add(&mut self.by_uuid, uuid.clone(), &node.name);
        }
        if let Some(id) = named(node) {
            Holders::add(&mut self.by_provider, id.clone(), &node.name);
        }
        for address in &node.addresses {
            Holders::add(&mut self.by_address, *address, &node.name);
        }
        for range in &node.pod_ranges {
            Holders::add(&mut self.by_range, range.trunc(), &node.name);
        }
    }

    pub(super) fn remove(&mut self, node: &Node) {
        if let Some(uuid) = &node.system_uuid {
            Holders::remove(&mut self.by_uuid, uuid, &node.name);
        }
        if let Some(id) = named(node) {
            Holders::remove(&mut self.by_provider, id, &node.name);
        }
        for address in &node.addresses {
            Holders::remove(&mut self.by_address, address, &node.name);
        }
        for range in &node.pod_ranges {
            Holders::remove(&mut self.by_range, &range.trunc(), &node.name);
        }
    }

    /// Takes a new description of the same Node object. Nearly always the Node is on the same machine as before; true where it
    /// says otherwise.
    pub(super) fn change(&mut self, before: &Node, now: &Node) -> bool {
        let same_status = before.system_uuid == now.system_uuid && before.addresses == now.addresses;
        let same = same_status && before.provider == now.provider;
        if !same || before.pod_ranges != now.pod_ranges {
            self.remove(before);
            self.add(now);
        }
        !same
    }

    pub(super) fn pack(&mut self) {
        pack::pack(&mut self.by_uuid);
        pack::pack(&mut self.by_provider);
        pack::pack(&mut self.by_address);
        pack::pack(&mut self.by_range);
    }

    pub(super) fn with_uuid(&self, uuid: &InstanceId) -> &[NodeName] {
        self.by_uuid.get(uuid).map_or(&[], Holders::all)
    }

    pub(super) fn naming(&self, id: &InstanceId) -> &[NodeName] {
        self.by_provider.get(id).map_or(&[], Holders::all)
    }

    pub(super) fn with_address(&self, address: &IpAddr) -> &[NodeName] {
        self.by_address.get(address).map_or(&[], Holders::all)
    }

    /// No other node has a pod range that overlaps this one. Counted are ranges that the network holds: a kubelet may write a
    /// wider one into its own object.
    pub(super) fn has_alone(&self, name: &NodeName, range: &IpNet, network: &Network) -> bool {
        let range = range.trunc();
        let alone = |held: &Holders<NodeName>| held.all().iter().all(|other| other == name);
        let wider = std::iter::successors(range.supernet(), IpNet::supernet);
        let mut wider = wider.take_while(|net| network.holds(net)).filter_map(|net| self.by_range.get(&net));
        let last = IpNet::new_assert(range.broadcast(), range.max_prefix_len());
        let mut within = self.by_range.range(range..=last).filter(|(net, _)| range.contains(*net));
        wider.all(alone) && within.all(|(_, held)| alone(held))
    }
}

/// The instance that the provider ID names and the UUID does not.
fn named(node: &Node) -> Option<&InstanceId> {
    match &node.provider {
        Provider::Instance(id) if node.system_uuid.as_ref() != Some(id) => Some(id),
        _ => None,
    }
}

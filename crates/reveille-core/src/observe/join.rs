//! Finds the instance that a Node stands for: by provider ID, then system UUID, then a unique name, then a unique address.
//!
//! The first of the four that gives an answer decides. A name or an address links only when exactly one instance and one
//! Node have it; `diagnose` treats anything else as a conflict. Names are hints: two servers may share one, and clusters
//! with similar names claimed each other's machines in flight control (D8).
//!
//! The controller searches for a link again when something that the link rests on changes, and for no other Node. In a
//! fleet that is linked by addresses alone (k3s writes provider IDs of its own), each change of one machine would otherwise
//! search the whole fleet.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use crate::model::id::{CloudName, InstanceId, NodeName};
use crate::model::instance::Instance;
use crate::model::node::{Node, Provider};

use super::cloud::CloudView;
use super::cluster::{ClusterView, Link, LinkedBy};

/// Finds the instance that the node stands for.
pub fn find(clouds: &BTreeMap<CloudName, CloudView>, cluster: &ClusterView, node: &Node) -> Option<Link> {
    if let Provider::Instance(id) = &node.provider {
        // A provider ID that names an instance that no cloud lists is still an identity: no weaker hint may replace it.
        let cloud = clouds.values().find(|cloud| cloud.instances.contains_key(id))?;
        return Some(Link { cloud: cloud.name.clone(), instance: id.clone(), by: LinkedBy::ProviderId });
    }
    by_uuid(clouds, node).or_else(|| by_name(clouds, node)).or_else(|| by_address(clouds, cluster, node))
}

fn by_uuid(clouds: &BTreeMap<CloudName, CloudView>, node: &Node) -> Option<Link> {
    let uuid = node.system_uuid.as_ref()?;
    let cloud = clouds.values().find(|cloud| cloud.instances.contains_key(uuid))?;
    Some(Link { cloud: cloud.name.clone(), instance: uuid.clone(), by: LinkedBy::SystemUuid })
}

fn by_name(clouds: &BTreeMap<CloudName, CloudView>, node: &Node) -> Option<Link> {
    let mut found = clouds
        .values()
        .flat_map(|cloud| cloud.named(node.name.as_str()).iter().map(move |id| (cloud, id)))
        .filter(|(cloud, id)| cloud.instances.get(*id).is_some_and(|seen| !seen.instance.state.is_leaving()));
    let (cloud, id) = found.next()?;
    if found.next().is_some() || is_of_another(node, cloud, id) {
        return None;
    }
    Some(Link { cloud: cloud.name.clone(), instance: id.clone(), by: LinkedBy::UniqueName })
}

/// A namesake: neither the machine's UUID nor one of its addresses is the instance's. Either alone says nothing: of bare metal
/// the UUID is the hardware's, and a kubelet may be told an address that its cloud does not know. An instance without the pool's
/// mark is in no list, and its Ready Node vouched for a second machine of its name that never joined.
fn is_of_another(node: &Node, cloud: &CloudView, id: &InstanceId) -> bool {
    let uuid = node.system_uuid.as_ref().is_some_and(|uuid| uuid != id);
    let Some(seen) = cloud.instances.get(id).filter(|_| uuid) else { return false };
    !seen.addresses.is_empty() && !node.addresses.is_empty() && !cloud.has_one_of(&node.addresses, id)
}

fn by_address(clouds: &BTreeMap<CloudName, CloudView>, cluster: &ClusterView, node: &Node) -> Option<Link> {
    let mut led = node.addresses.iter().filter_map(|address| {
        let mut found =
            clouds.values().flat_map(|cloud| cloud.addressed(address).iter().map(move |id| (cloud, id)));
        let (cloud, id) = found.next()?;
        let unique = found.next().is_none() && !shared(clouds, cluster, node, address, (cloud, id));
        unique.then(|| Link { cloud: cloud.name.clone(), instance: id.clone(), by: LinkedBy::UniqueAddress })
    });
    let first = led.next()?;
    match holders(clouds, node.addresses.iter()).len() {
        ..SEVERAL => Some(first),
        // Beside its own it may show those that the ingress traffic of the cluster goes to, and their machines have Nodes.
        SEVERAL..MANY => led.all(|other| other.instance == first.instance).then_some(first),
        _ => None,
    }
}

/// Another node without a strong link has it, and shows no several machines: those with a provider ID need no address. That the
/// machine joined as another Node before, which is left there and silent, is no doubt about whose address it is.
fn shared(
    clouds: &BTreeMap<CloudName, CloudView>,
    cluster: &ClusterView,
    node: &Node,
    address: &IpAddr,
    (cloud, id): (&CloudView, &InstanceId),
) -> bool {
    let joined = cloud.instances.get(id).and_then(|seen| seen.joined.as_ref());
    let others = cluster.with_address(address).iter().filter(|name| **name != node.name);
    let shows_one = holders(clouds, node.addresses.iter()).len() == 1;
    let mut rivals =
        others.filter(|name| cluster.weak.contains(*name)).filter_map(|name| cluster.nodes.get(name));
    rivals.any(|rival| {
        let leads_there = rival.link.as_ref().is_some_and(|link| link.instance == *id);
        let was_its = shows_one && leads_there && joined == Some(&rival.node.name);
        let is_left = was_its && !cluster.answers(&rival.node.name);
        !is_left && holders(clouds, rival.node.addresses.iter()).len() < SEVERAL
    })
}

/// A Node runs on one machine. A kubelet that shows the addresses of so many says nothing of any of them: with one line, one of
/// 40 took the Nodes of 29 others from them, and the fleet froze. Two may be its own and an address that is given on.
const SEVERAL: usize = 3;
/// Of so many not even the one whose Node it may be can be told.
const MANY: usize = 5;

/// The machines that have one of these addresses.
fn holders<'a>(
    clouds: &'a BTreeMap<CloudName, CloudView>,
    addresses: impl Iterator<Item = &'a IpAddr>,
) -> BTreeSet<&'a InstanceId> {
    addresses.flat_map(|address| clouds.values().flat_map(|cloud| cloud.addressed(address))).collect()
}

/// The nodes whose link may be another one now that this instance came, went or changed: those without a strong link that name
/// it, or have its UUID, a name or an address of it.
pub fn hinted<'a>(cluster: &'a ClusterView, instance: &'a Instance) -> impl Iterator<Item = &'a NodeName> {
    let by_name = instance.node_names().filter_map(|name| {
        let (name, _) = cluster.nodes.get_key_value(&NodeName::from(name))?;
        Some(name)
    });
    let by_address = instance.addresses.iter().flat_map(|address| cluster.with_address(address));
    cluster
        .named_by(&instance.id)
        .chain(by_name)
        .chain(by_address)
        .filter(|name| cluster.weak.contains(*name))
}

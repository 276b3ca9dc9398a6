//! Which node stands for which instance, by addresses and names; a change costs searches for what it touches, counted and not
//! timed.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use reveille_core::event::{ClusterFact, Event};
use reveille_core::model::id::NodeName;
use reveille_core::model::node::{Node, Provider, Ready};
use reveille_core::model::time::Span;

use super::fixture::*;

/// So many machines whose nodes are linked to them by their address alone, as in a k3s that writes provider IDs of its own.
fn linked_by_address(count: usize) -> Field {
    let mut field = Field::new(roster()).populate(count);
    for (number, (id, node)) in field.nodes.iter_mut().enumerate() {
        let address: IpAddr = Ipv4Addr::from(0x0a14_0000 + number as u32).into();
        node.provider = Provider::Unread("k3s://x".into());
        node.name = format!("other-{id}").as_str().into();
        node.addresses = Box::new([address]);
        field.ports.get_mut(id).unwrap().addresses = Box::new([address]);
    }
    field.list_cloud();
    field.sync_nodes();
    assert_eq!(linked(&field).len(), count);
    field
}

/// The nodes that are linked to an instance.
fn linked(field: &Field) -> Vec<NodeName> {
    let nodes = &field.state.context().cluster.nodes;
    nodes.iter().filter(|(_, seen)| seen.link.is_some()).map(|(name, _)| name.clone()).collect()
}

fn address_of(field: &Field, id: &str) -> Box<[IpAddr]> {
    field.nodes[id].addresses.clone()
}

#[test]
fn change_of_one_instance_seeks_links_of_its_own_nodes_alone() {
    let cost = |count: usize| {
        let mut field = linked_by_address(count);
        let before = field.state.links_sought();
        field.instances.get_mut("i001").unwrap().locked = true;
        field.list_cloud();
        field.state.links_sought() - before
    };
    let (few, many) = (cost(20), cost(200));
    assert_eq!(few, many);
    assert!(many <= 3, "{many} searches for one change");
}

/// A machine keeps the Node that it joined as, whatever addresses its cloud lists now: an operator swapped those of two ports,
/// and the kubelets go on showing the old ones. Once it is gone, what the Node shows leads to another.
#[test]
fn link_by_address_stays_with_the_machine_that_joined() {
    let mut field = linked_by_address(10);
    let (first, second) = (address_of(&field, "i001"), address_of(&field, "i002"));
    for (one, other) in [("i001", &second), ("i002", &first)] {
        field.ports.get_mut(one).unwrap().addresses = other.clone();
    }
    field.list_cloud();
    let machine = |field: &Field, name: &str| {
        let link = field.state.context().cluster.nodes[&NodeName::from(name)].link.clone();
        link.map(|link| link.instance.to_string())
    };
    assert_eq!(machine(&field, "other-i001").as_deref(), Some("i001"));
    assert_eq!(machine(&field, "other-i002").as_deref(), Some("i002"));
    field.ports.get_mut("i003").unwrap().addresses = Box::new([]);
    field.list_cloud();
    assert_eq!(machine(&field, "other-i003").as_deref(), Some("i003"), "listed without addresses");
    field.delete_machine("i001");
    field.run(Span::from_min(2));
    assert_eq!(machine(&field, "other-i001").as_deref(), Some("i002"));
}

/// An instance that no pool's mark shows is Ready under the name of one that never joined: neither its UUID nor its address is
/// that one's. Seed 3000077.
#[test]
fn ready_node_of_another_machine_does_not_vouch_for_namesake() {
    let mut field = Field::new(roster()).populate(10);
    field.run(Span::from_min(2));
    field.add_machine("new", false);
    field.instances.get_mut("new").unwrap().addresses = Box::new([IpAddr::from([10, 8, 0, 77])]);
    let mut other = node("unmarked", Ready::True);
    other.name = field.instances["new"].name.as_str().into();
    other.provider = Provider::Unread("garbled".into());
    other.system_uuid = Some("unmarked".into());
    other.addresses = Box::new([IpAddr::from([10, 8, 0, 12])]);
    field.nodes.insert("unmarked".into(), other.clone());
    field.run(Span::from_min(30));
    assert!(!linked(&field).contains(&other.name), "it is linked to its namesake");
    assert_eq!(field.destructive_calls(), 0, "{:?}", field.calls);
    // Of bare metal the UUID is the hardware's: with one of its addresses it is the machine's.
    other.addresses = Box::new([IpAddr::from([10, 8, 0, 77])]);
    field.nodes.insert("unmarked".into(), other.clone());
    field.run(Span::from_min(1));
    assert!(linked(&field).contains(&other.name));
}

/// Two Nodes that no machine joined as show the address of one machine.
#[test]
fn address_of_two_nodes_links_neither_until_one_has_another() {
    let mut field = linked_by_address(10);
    field.add_machine("new", false);
    field.list_cloud();
    let shared = field.ports["new"].addresses.clone();
    let is_linked = |field: &Field, name: &str| linked(field).contains(&NodeName::from(name));
    let tell = |field: &mut Field, name: &str, addresses: &[IpAddr]| {
        let mut its = node(name, Ready::Unknown);
        (its.name, its.provider, its.addresses) = (name.into(), Provider::Unset, addresses.into());
        field.feed(Event::Cluster(ClusterFact::Applied(Arc::new(its))));
    };
    let own = [IpAddr::from([10, 99, 0, 1])];
    tell(&mut field, "other-b", &own);
    tell(&mut field, "other-b", &shared);
    tell(&mut field, "other-c", &shared);
    assert!(!is_linked(&field, "other-b") && !is_linked(&field, "other-c"));
    let (name, uid) =
        (NodeName::from("other-b"), field.state.context().cluster.nodes["other-b"].node.uid.clone());
    field.feed(Event::Cluster(ClusterFact::Deleted { name, uid }));
    assert!(is_linked(&field, "other-c"), "it has the address alone now");
}

/// How many links are sought while a client creates so many Nodes of one address, told by the watch one after another.
fn sought_for_nodes_of_one_address(count: usize) -> u64 {
    let mut field = Field::new(roster()).populate(10);
    field.run(Span::from_min(5));
    let before = field.state.links_sought();
    for number in 0..count {
        let mut node = node(&format!("evil-{number:04}"), Ready::Unknown);
        node.provider = Provider::Unset;
        node.addresses = Box::new([[10, 99, 0, 1].into()]);
        field.now = field.now + Span::from_ms(20);
        let fact = ClusterFact::Applied(Arc::new(node));
        let _ = field.state.step(field.now, Event::Cluster(fact));
    }
    field.state.links_sought() - before
}

/// A client that may create Nodes gives thousands of them one address. Each that came searched for the links of all before it,
/// and the engine fell behind the watch.
#[test]
fn nodes_of_one_address_cost_no_square() {
    let (few, many) = (sought_for_nodes_of_one_address(50), sought_for_nodes_of_one_address(200));
    assert!(many <= few * 8, "{few} links sought for 50 nodes, {many} for 200");
}

/// Where several Nodes of one address come or go between two searches, the Node of the machine that joined as it stays linked. A
/// Node that lists its address twice counts once.
#[test]
fn node_stays_linked_however_many_others_have_its_address() {
    for (others, twice) in [(1, false), (2, false), (3, false), (1, true), (3, true)] {
        let mut field = linked_by_address(10);
        let address = address_of(&field, "i001");
        let name = NodeName::from("other-i001");
        if twice {
            field.nodes.get_mut("i001").unwrap().addresses = [&address[..], &address[..]].concat().into();
            field.sync_nodes();
        }
        for round in 0..3 {
            for number in 0..others {
                let mut node = node(&format!("evil-{number}"), Ready::Unknown);
                node.provider = Provider::Unset;
                node.addresses = address.clone();
                field.nodes.insert(format!("evil-{number}"), node);
            }
            field.sync_nodes();
            assert!(linked(&field).contains(&name), "round {round}: beside {others} others, twice: {twice}");
            assert_eq!(linked(&field).len(), 10, "round {round}: beside {others} others, twice: {twice}");
            // They go, or get other addresses.
            for number in 0..others {
                let id = format!("evil-{number}");
                match round {
                    0 => {
                        let Node { name, uid, .. } = field.nodes.remove(&id).unwrap();
                        field.feed(Event::Cluster(ClusterFact::Deleted { name, uid }));
                    }
                    _ => field.nodes.get_mut(&id).unwrap().addresses = Box::new([[10, 99, 0, 1].into()]),
                }
            }
            field.sync_nodes();
            assert!(
                linked(&field).contains(&name),
                "round {round}: alone after {others} others, twice: {twice}"
            );
        }
    }
}

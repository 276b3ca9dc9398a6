//! Nodes whose kubelets say for a moment that they run on another machine. A kubelet writes UUID, addresses and providerID of its
//! own Node itself.

use std::sync::Arc;

use reveille_core::diagnose::machine_state::MachineState;
use reveille_core::event::{ClusterFact, Event};
use reveille_core::model::incident::FaultKind;
use reveille_core::model::node::{Node, Provider, Ready};
use reveille_core::model::time::Span;

use super::fixture::{Field, node};
use super::steps::{fleet_with_uuids, made, min, set};

/// The watch tells of it a moment later.
fn patch(field: &mut Field, node: &Node) {
    field.now = field.now + Span::from_ms(5);
    field.feed(Event::Cluster(ClusterFact::Applied(Arc::new(node.clone()))));
}

/// Within a millisecond, the kubelet of `i007` shows the UUID or the address of a dead machine, and its own again. The dead one
/// was a duplicate from then on, until a restart, and was never repaired.
#[test]
fn identity_shown_for_a_moment_ends_no_repair() {
    let mut repaired = Vec::new();
    for by in ["uuid", "address"] {
        let mut field = fleet_with_uuids();
        set(&mut field, "i004", Ready::Unknown);
        field.run(min(1));
        let own = field.nodes["i007"].clone();
        let mut other = own.clone();
        match by {
            "uuid" => other.system_uuid = Some("i004".into()),
            _ => (other.system_uuid, other.addresses) = (None, field.ports["i004"].addresses.clone()),
        }
        patch(&mut field, &other);
        assert!(
            matches!(field.machine_state("i004"), MachineState::Absent(it) if it.kind == FaultKind::Duplicate)
        );
        patch(&mut field, &own);
        field.run(min(2 * 60));
        repaired.push((by, !made(&field).is_empty()));
    }
    assert_eq!(repaired, [("uuid", true), ("address", true)]);
}

/// Two projects use one address twice. A kubelet tells of the address that its machine was given before the cloud's list does:
/// for that moment its Node seems to run on the dead machine of the other project.
#[test]
fn address_that_a_list_explains_later_ends_no_repair() {
    let mut field = fleet_with_uuids();
    let both = [field.ports["i007"].addresses[0], field.ports["i004"].addresses[0]];
    let its = field.nodes.get_mut("i007").unwrap();
    (its.system_uuid, its.addresses) = (None, Box::new([both[1]]));
    set(&mut field, "i004", Ready::Unknown);
    field.run(min(2));
    assert!(field.case("i004", FaultKind::Duplicate).is_some());
    field.instances.get_mut("i007").unwrap().addresses = both.into();
    field.run(min(2 * 60));
    assert!(!made(&field).is_empty(), "{}", field.held("i004", FaultKind::Duplicate));
}

/// A Node is called as a machine that does not join, with a longer name, and never answers: it was left over when the domain of
/// the cluster changed, or a client made it. That one called it a duplicate, and it was never repaired. What more there is of
/// such a Node may be the machine's own: it lives, a person drained it, or it has an address of the machine.
#[test]
fn silent_node_of_a_longer_name_ends_no_repair() {
    let mut repaired = Vec::new();
    for how in ["silent", "alive", "cordoned", "address"] {
        let mut field = fleet_with_uuids();
        field.add_machine("new", false);
        let mut other = node("other", Ready::Unknown);
        (other.name, other.provider) = ("node-new.old".into(), Provider::Unread("k3s://old".into()));
        match how {
            "alive" => field.renews.push("other".into()),
            "cordoned" => other.cordoned = true,
            "address" => {
                other.provider = Provider::Instance("gone".into());
                other.addresses = field.ports["new"].addresses.clone();
            }
            _ => {}
        }
        field.nodes.insert("other".into(), other);
        field.run(min(3 * 60));
        repaired.push((how, !made(&field).is_empty()));
    }
    assert_eq!(repaired, [("silent", true), ("alive", false), ("cordoned", false), ("address", false)]);
}

//! Fleets whose Nodes lead to their machines by one thing alone.

use reveille_core::model::node::Provider;
use reveille_core::model::roster::Roster;

use super::fixture::{Field, roster};
use super::next_process::Ledger;
use super::steps::min;

/// By provider ID and UUID, or, where Nodes name no instance as with k3s, by UUID or address. No Node is called as its machine,
/// but for `provider`.
pub fn led_by(links: &str, count: usize, roster: Roster) -> Field {
    let mut field = Field::new(roster).populate(count);
    for (id, instance) in &mut field.instances {
        instance.addresses = field.ports[id].addresses.clone();
        if links != "provider" {
            instance.name = format!("vm-{id}").as_str().into();
        }
    }
    for (id, node) in &mut field.nodes {
        node.addresses = field.ports[id].addresses.clone();
        let uuid = if links == "address" { format!("hardware-{id}") } else { id.clone() };
        node.system_uuid = Some(uuid.as_str().into());
        if links != "provider" {
            node.provider = Provider::Unread(format!("k3s://node-{id}").as_str().into());
        }
    }
    field
}

/// The same, of which the next process knows what this one told.
pub fn fleet(links: &str, count: usize, roster: Roster) -> Field {
    let mut field = led_by(links, count, roster);
    field.ledger = Ledger::unknown();
    field
}

/// Twelve machines with k3s, which have run for a while.
pub fn k3s(roster: Roster) -> Field {
    let mut field = led_by("uuid", 12, roster);
    field.run(min(20));
    field
}

/// A machine whose Node leads to it as those of the fleet do. It is made in our sight.
pub fn comes(field: &mut Field, links: &str, id: &str, name: &str) {
    field.add_machine(id, true);
    let addresses = field.ports[id].addresses.clone();
    let its = field.instances.get_mut(id).unwrap();
    (its.name, its.addresses) = (name.into(), addresses.clone());
    let its = field.nodes.get_mut(id).unwrap();
    its.provider = Provider::Unread(format!("k3s://node-{id}").as_str().into());
    let uuid = if links == "address" { format!("hardware-{id}") } else { id.into() };
    (its.system_uuid, its.addresses) = (Some(uuid.as_str().into()), addresses);
}

/// Ten machines that have served for twenty minutes, under the roster of the tests.
pub fn ten() -> Field {
    let mut field = Field::new(roster()).populate(10);
    field.run(min(20));
    field
}

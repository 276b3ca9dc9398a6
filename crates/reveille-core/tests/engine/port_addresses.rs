//! Machines whose addresses their ports tell, and their descriptions do not, or not all of them.

use super::fixture::roster;
use super::fleets;
use super::steps::{made, min, on, set};
use reveille_core::model::node::Ready;

/// Bare metal, or k3s where neither the UUID nor the name of a Node is its server's: Nodes lead to their machines by address. A
/// new machine joins, is Ready and renews its lease. Nova's network cache of it is empty from its build on, for some hours
/// (https://bugs.launchpad.net/nova/+bug/1751923: `addresses` of the server is `{}`), while Neutron lists its port, with the very
/// address that its Node shows.
#[test]
fn new_machine_whose_address_only_its_port_tells_serves_on() {
    let mut found = Vec::new();
    for lasts in [min(0), min(8 * 60)] {
        let mut field = fleets::fleet("address", 12, roster());
        field.run(min(20));
        fleets::comes(&mut field, "address", "new", "vm-new");
        if lasts > min(0) {
            field.unaddressed = vec!["new".to_owned()];
            field.instances.get_mut("new").unwrap().addresses = Box::new([]);
        }
        field.deaf = true;
        field.run(min(8 * 60));
        found.push((lasts, made(&field)));
    }
    assert!(found.iter().all(|(_, calls)| calls.is_empty()), "{found:#?}");
}

/// The same of a machine with two ports, of which the cache holds the one of a storage network.
#[test]
fn new_machine_of_which_nova_lacks_one_port_serves_on() {
    let mut field = fleets::fleet("address", 12, roster());
    field.run(min(20));
    fleets::comes(&mut field, "address", "new", "vm-new");
    field.instances.get_mut("new").unwrap().addresses = Box::new(["10.77.0.5".parse().unwrap()]);
    field.deaf = true;
    field.run(min(8 * 60));
    assert!(made(&field).is_empty(), "{:#?}", made(&field));
}

/// It dies in the end, and is repaired as any other. Since nova 2025.1 the cache heals by itself no more
/// (`heal_instance_info_cache_interval` is -1), so that this may last for good.
#[test]
fn dead_machine_whose_address_only_its_port_tells_is_repaired() {
    let mut field = fleets::fleet("address", 12, roster());
    field.run(min(20));
    fleets::comes(&mut field, "address", "new", "vm-new");
    field.unaddressed = vec!["new".to_owned()];
    field.instances.get_mut("new").unwrap().addresses = Box::new([]);
    field.run(min(60));
    assert!(made(&field).is_empty());
    set(&mut field, "new", Ready::Unknown);
    field.deaf = true;
    field.run(min(8 * 60));
    assert!(!on(&field, "new").is_empty(), "{:?}", field.machine_state("new"));
}

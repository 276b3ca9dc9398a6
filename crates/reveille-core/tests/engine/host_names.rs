//! Host names that are given to other machines, and Nodes that machines leave behind: a machine that serves, or that a person
//! has in hand, is left alone, and a dead one is repaired. Nothing here is an attack: each is what people and kubelets do.

use std::sync::Arc;

use reveille_core::model::incident::FaultKind;
use reveille_core::model::instance::{InstanceState, Mark};
use reveille_core::model::node::{Node, Provider, Ready};
use reveille_core::model::time::Span;

use super::fixture::{Field, roster, stamp};
use super::fleets::{comes, fleet};
use super::next_process::Ledger;
use super::replacing::{blamed, proved};
use super::steps::{made, min, off, on, roster_with, set, touched};

pub fn held(field: &Field, id: &str, kind: FaultKind) -> Option<String> {
    field.case(id, kind).map(|_| field.held(id, kind))
}

/// The host of `i004` is dead, and a person locked it; its cloud shows it as `old`. They install another machine with its host
/// name. Its kubelet registers on the Node that is there (`tryRegisterWithAPIServer`).
fn taken_over(field: &mut Field, links: &str, old: InstanceState, name: &str) {
    let its = field.instances.get_mut("i004").unwrap();
    (its.locked, its.state) = (true, old);
    set(field, "i004", Ready::Unknown);
    field.run(min(2));
    comes(field, links, "new", name);
    let new = field.nodes.remove("new").unwrap();
    let its = field.nodes.get_mut("i004").unwrap();
    (its.system_uuid, its.addresses) = (new.system_uuid, new.addresses);
    (its.boot_id, its.ready) = (Some("another".into()), Ready::True);
}

/// The machine that took over serves for hours. A person drains it, deletes its Node in our sight, or while Reveille is upgraded,
/// and keeps the machine.
#[test]
fn drained_successor_is_left_alone() {
    let mut found = Vec::new();
    for links in ["uuid", "address"] {
        for old in [InstanceState::Active, InstanceState::Stopped] {
            for name in ["vm-new", "node-i004"] {
                for restarts in [false, true] {
                    let mut field = fleet(links, 12, roster());
                    if name == "node-i004" {
                        field.instances.get_mut("i004").unwrap().name = name.into();
                    }
                    field.run(min(20));
                    taken_over(&mut field, links, old, name);
                    field.run(min(3 * 60));
                    let before = made(&field);
                    field.nodes.get_mut("i004").unwrap().cordoned = true;
                    field.run(min(5));
                    field.nodes.remove("i004");
                    if restarts {
                        field = off(field, min(2), roster());
                        field.ledger = Ledger::unknown();
                    }
                    field.deaf = true;
                    field.run(min(4 * 60));
                    found.push((links, old, name, restarts, before, on(&field, "new")));
                }
            }
        }
    }
    let harmed: Vec<_> = found.iter().filter(|it| !it.5.is_empty() || !it.4.is_empty()).collect();
    assert!(harmed.is_empty(), "(links, old, name, restarts, before, calls): {harmed:#?}");
}

/// The same where no person drains it: it serves for hours, and dies. It is to be repaired as any other, also where a join may
/// take for ever.
#[test]
fn successor_that_dies_is_repaired() {
    let mut found = Vec::new();
    for links in ["uuid", "address"] {
        for old in [InstanceState::Active, InstanceState::Stopped] {
            for name in ["vm-new", "node-i004"] {
                for forever in [false, true] {
                    let its = if forever {
                        roster_with(|pool| pool.deadlines.join_within = None)
                    } else {
                        roster()
                    };
                    let mut field = fleet(links, 12, its);
                    if name == "node-i004" {
                        field.instances.get_mut("i004").unwrap().name = name.into();
                    }
                    field.run(min(20));
                    taken_over(&mut field, links, old, name);
                    field.run(min(3 * 60));
                    set(&mut field, "i004", Ready::Unknown);
                    field.deaf = true;
                    field.run(min(8 * 60));
                    let why = held(&field, "new", FaultKind::NotReady);
                    found.push((links, old, name, forever, touched(&field, "new"), why));
                }
            }
        }
    }
    let stalled: Vec<_> = found.iter().filter(|it| !it.4).collect();
    assert!(stalled.is_empty(), "(links, old, name, forever, touched, why): {stalled:#?}");
}

/// k3s with `with-node-id`: a new install of the agent has another Node name. A person drains a machine, deletes its Node,
/// installs the agent once more, and the machine serves for a day under the new name. Then it dies.
#[test]
fn machine_that_is_back_under_another_name_is_repaired() {
    let mut found = Vec::new();
    for links in ["provider", "uuid", "address"] {
        for how in ["drained", "night"] {
            for name in ["node-i003", "node-i003-1a2b3c4d"] {
                let mut field = fleet(links, 12, roster());
                field
                    .instances
                    .values_mut()
                    .for_each(|its| its.name = format!("vm-{}", its.id).as_str().into());
                field.run(min(20));
                let its = field.nodes["i003"].clone();
                if how == "drained" {
                    field.nodes.get_mut("i003").unwrap().cordoned = true;
                    field.run(min(2));
                    field.nodes.remove("i003");
                    field.run(min(20));
                } else {
                    field.nodes.remove("i003");
                    field = off(field, min(5 * 60), roster());
                    field.ledger = Ledger::unknown();
                    field.run(min(20));
                }
                let its = Node { uid: "again".into(), name: name.into(), boot_id: Some("b".into()), ..its };
                field.nodes.insert("i003".into(), its);
                field.run(min(24 * 60));
                let before = made(&field);
                set(&mut field, "i003", Ready::Unknown);
                field.deaf = true;
                field.run(min(6 * 60));
                let why = (
                    format!("{:?}", field.machine_state("i003")).chars().take(120).collect::<String>(),
                    held(&field, "i003", FaultKind::NotReady),
                );
                found.push((links, how, name, before, touched(&field, "i003"), why));
            }
        }
    }
    let stalled: Vec<_> = found.iter().filter(|it| !it.4).collect();
    assert!(stalled.is_empty(), "(links, how, name, before, touched, why): {stalled:#?}");
}

/// Two machines were labelled the wrong way round. A person gives each the host name of the other; their kubelets go on under
/// the other one's Node. Later they drain the Node `node-i003`, on which `i004` runs, and keep that machine. Then the other dies.
#[test]
fn drain_of_a_machine_that_swapped_names_is_its_own() {
    let mut found = Vec::new();
    for links in ["provider", "uuid", "address"] {
        for drains in [false, true] {
            for restarts in [false, true] {
                let mut field = fleet(links, 12, roster());
                field.run(min(20));
                let (a, b) = (field.nodes["i003"].clone(), field.nodes["i004"].clone());
                let over = |from: &Node, to: &Node| Node {
                    name: to.name.clone(),
                    uid: to.uid.clone(),
                    provider: to.provider.clone(),
                    ..from.clone()
                };
                // The fixture's leases go by Node; both are Ready.
                field.nodes.insert("i003".into(), over(&b, &a));
                field.nodes.insert("i004".into(), over(&a, &b));
                field.run(min(60));
                let before = made(&field);
                if drains {
                    field.nodes.get_mut("i003").unwrap().cordoned = true;
                    field.run(min(5));
                    field.nodes.remove("i003");
                }
                if restarts {
                    field = off(field, min(2), roster());
                    field.ledger = Ledger::unknown();
                }
                field.deaf = true;
                field.run(min(3 * 60));
                let on_drained = on(&field, "i004");
                // `i003`, which runs under `node-i004`, dies.
                set(&mut field, "i004", Ready::Unknown);
                field.run(min(6 * 60));
                let why = (
                    format!("{:?}", field.machine_state("i003")).chars().take(120).collect::<String>(),
                    held(&field, "i003", FaultKind::NotReady),
                );
                let again = drains && touched(&field, "i004");
                found.push((
                    links,
                    drains,
                    restarts,
                    before,
                    on_drained,
                    again,
                    touched(&field, "i003"),
                    why,
                ));
            }
        }
    }
    // With provider IDs both are contested, and the one that the drained Node names is held as well.
    assert!(found.iter().filter(|it| it.0 == "provider").all(|it| it.4.is_empty() && !it.5), "{found:#?}");
    let bad: Vec<_> =
        found.iter().filter(|it| it.0 != "provider").filter(|it| !it.4.is_empty() || it.5 || !it.6).collect();
    assert!(bad.is_empty(), "(links, drains, restarts, before, on i004, later, i003 touched, why): {bad:#?}");
}

/// A spare, `i003`, takes the place of the dead `i004`: a person gives it that host name, and its kubelet registers on that Node,
/// which names `i004`. Its own old Node is left there, silent. Later they drain it, delete the Node that it serves under, and
/// keep it.
#[test]
fn drained_spare_with_a_left_over_node_is_left_alone() {
    let mut found = Vec::new();
    for (links, old) in
        [("provider", "locked"), ("provider", "deleted"), ("uuid", "locked"), ("address", "locked")]
    {
        for left_over in [false, true] {
            let mut field = fleet(links, 12, roster());
            field.run(min(20));
            set(&mut field, "i004", Ready::Unknown);
            field.instances.get_mut("i004").unwrap().locked = true;
            field.run(min(2));
            let its = field.nodes["i003"].clone();
            let dead = field.nodes.get_mut("i004").unwrap();
            (dead.system_uuid, dead.addresses) = (its.system_uuid, its.addresses);
            (dead.boot_id, dead.ready) = (Some("another".into()), Ready::True);
            if left_over {
                set(&mut field, "i003", Ready::Unknown);
            } else {
                field.nodes.remove("i003");
            }
            if old == "deleted" {
                field.delete_machine("i004");
            }
            field.run(min(60));
            let before = made(&field);
            field.nodes.get_mut("i004").unwrap().cordoned = true;
            field.run(min(5));
            field.nodes.remove("i004");
            field.deaf = true;
            field.run(min(6 * 60));
            found.push((links, old, left_over, before, on(&field, "i003")));
        }
    }
    assert!(
        found.iter().all(|(.., made)| made.is_empty()),
        "(links, old, left over, before, calls): {found:#?}"
    );
}

/// As `provider_id_that_is_written_late_gives_no_history`, while Reveille is upgraded, or while the watch is away.
#[test]
fn provider_id_written_during_a_restart_gives_no_history() {
    let mut found = Vec::new();
    for how in ["nothing", "written", "written, silent"] {
        for restarts in [false, true] {
            let mut field = fleet("address", 12, roster());
            field.nodes.values_mut().for_each(|node| node.provider = Provider::Unset);
            field.run(min(20));
            let at = field.now - min(15);
            field.add_machine("old", false);
            let old = field.instances.get_mut("old").unwrap();
            (old.created, old.name) = (Some(stamp(at)), "vm-old".into());
            field.run(min(2));
            if how != "nothing" {
                field.nodes.get_mut("i007").unwrap().provider = Provider::Instance("old".into());
            }
            if restarts {
                field = off(field, Span::from_s(30), roster());
                field.ledger = Ledger::unknown();
            }
            field.deaf = true;
            field.run(min(1));
            if how.ends_with("silent") {
                set(&mut field, "i007", Ready::Unknown);
            }
            field.run(min(150));
            found.push((how, restarts, on(&field, "old")));
        }
    }
    assert!(
        found.iter().all(|(.., made)| !made.iter().any(|it| it.starts_with("delete"))),
        "(how, restarts, calls on it): {found:#?}"
    );
}

/// As `successor_that_dies_is_repaired`: the old machine comes back to life and registers under a name of its own.
#[test]
fn successor_of_one_that_joined_elsewhere_is_repaired() {
    let mut found = Vec::new();
    for links in ["uuid", "address"] {
        for name in ["vm-new", "node-i004"] {
            let mut field = fleet(links, 12, roster_with(|pool| pool.deadlines.join_within = None));
            if name == "node-i004" {
                field.instances.get_mut("i004").unwrap().name = name.into();
            }
            field.run(min(20));
            let own = field.nodes["i004"].clone();
            taken_over(&mut field, links, InstanceState::Active, name);
            field.run(min(60));
            field.instances.get_mut("i004").unwrap().locked = false;
            let its = Node { name: "node-back".into(), uid: "back".into(), ..own };
            field.nodes.insert("back".into(), its);
            field.run(min(3 * 60));
            let before = made(&field);
            set(&mut field, "i004", Ready::Unknown);
            field.deaf = true;
            field.run(min(8 * 60));
            let why = held(&field, "new", FaultKind::NotReady);
            found.push((links, name, before, touched(&field, "new"), on(&field, "i004"), why));
        }
    }
    let bad: Vec<_> = found.iter().filter(|it| !it.3 || !it.4.is_empty()).collect();
    assert!(bad.is_empty(), "(links, name, before, touched, on the old one, why): {bad:#?}");
}

/// An operator took the marks off the dead `i004`, to keep its disk, and it is off. Its host name goes to a new machine, which
/// serves for hours under the Node that is there. A person drains that one, and deletes its Node while Reveille is upgraded.
#[test]
fn drained_successor_of_an_unmarked_machine_is_left_alone() {
    let mut found = Vec::new();
    for links in ["uuid", "address"] {
        for restarts in [false, true] {
            let mut field = fleet(links, 12, roster());
            field.run(min(20));
            taken_over(&mut field, links, InstanceState::Stopped, "vm-new");
            field.instances.get_mut("i004").unwrap().marks = Arc::new([Mark::Tag("keep".into())].into());
            field.run(min(3 * 60));
            let before = made(&field);
            field.nodes.get_mut("i004").unwrap().cordoned = true;
            field.run(min(5));
            field.nodes.remove("i004");
            if restarts {
                field = off(field, min(2), roster());
                field.ledger = Ledger::unknown();
            }
            field.deaf = true;
            field.run(min(4 * 60));
            found.push((links, restarts, before, on(&field, "new")));
        }
    }
    assert!(found.iter().all(|(.., made)| made.is_empty()), "(links, restarts, before, calls): {found:#?}");
}

/// A person pauses the machine that took over the Node, by the annotation on that Node, and works on it. The Node is deleted: by
/// them, so that the kubelet registers again, or by the cloud controller.
#[test]
fn paused_successor_is_left_alone_without_its_node() {
    let mut found = Vec::new();
    for links in ["uuid", "address"] {
        for old in [InstanceState::Active, InstanceState::Stopped] {
            for restarts in [false, true] {
                let mut field = fleet(links, 12, roster());
                field.run(min(20));
                taken_over(&mut field, links, old, "vm-new");
                field.run(min(3 * 60));
                field.nodes.get_mut("i004").unwrap().intent.paused = true;
                field.run(min(5));
                field.nodes.remove("i004");
                if restarts {
                    field = off(field, min(2), roster());
                    field.ledger = Ledger::unknown();
                }
                field.deaf = true;
                field.run(min(4 * 60));
                found.push((links, old, restarts, on(&field, "new")));
            }
        }
    }
    let harmed: Vec<_> = found.iter().filter(|it| !it.3.is_empty()).collect();
    assert!(harmed.is_empty(), "(links, old, restarts, calls): {harmed:#?}");
}

/// `i004` was off and locked, and another machine has served under its Node for an hour. The lock is taken off, and its cloud
/// shows it in ERROR: Reveille deletes it. No machine comes in its place. The one that served before proves nothing of that.
#[test]
fn machine_that_served_before_a_replacement_proves_none() {
    let mut found = Vec::new();
    for links in ["uuid", "address"] {
        for name in ["vm-new", "node-i004"] {
            let mut field = fleet(links, 12, roster());
            if name == "node-i004" {
                field.instances.get_mut("i004").unwrap().name = name.into();
            }
            field.run(min(20));
            taken_over(&mut field, links, InstanceState::Stopped, name);
            field.run(min(60));
            let its = field.instances.get_mut("i004").unwrap();
            (its.locked, its.state) = (false, InstanceState::Errored);
            field.run(min(4 * 60));
            found.push((links, name, made(&field), proved(&field), blamed(&field)));
        }
    }
    assert!(found.iter().all(|(_, _, _, proved, _)| proved.is_empty()), "{found:#?}");
}

/// A person gives a machine another host name: they drain its Node, rename and reboot it, see it come as a new Node, and delete
/// the old one, which is silent and still cordoned. The machine serves for a day, and dies.
#[test]
fn renamed_machine_is_repaired() {
    let mut found = Vec::new();
    for links in ["provider", "uuid", "address"] {
        for cordons in [false, true] {
            for restarts in [false, true] {
                let mut field = renamed(links, cordons);
                field.nodes.remove("i003");
                field.run(min(60));
                if restarts {
                    field = off(field, min(2), roster());
                    field.ledger = Ledger::unknown();
                }
                field.run(min(23 * 60));
                let before = made(&field);
                set(&mut field, "again", Ready::Unknown);
                field.deaf = true;
                field.run(min(6 * 60));
                let why = (
                    format!("{:?}", field.machine_state("i003")).chars().take(90).collect::<String>(),
                    held(&field, "i003", FaultKind::NotReady),
                );
                found.push((links, cordons, restarts, before, touched(&field, "i003"), why));
            }
        }
    }
    let stalled: Vec<_> = found.iter().filter(|it| !it.4 || !it.3.is_empty()).collect();
    assert!(stalled.is_empty(), "(links, cordons, restarts, before, touched, why): {stalled:#?}");
}

/// `i003` has another host name since an hour: its new Node is Ready, its old one is silent.
fn renamed(links: &str, cordons: bool) -> Field {
    let mut field = fleet(links, 12, roster());
    field.run(min(20));
    field.nodes.get_mut("i003").unwrap().cordoned = cordons;
    field.run(min(2));
    set(&mut field, "i003", Ready::Unknown);
    field.run(min(2));
    let old = field.nodes["i003"].clone();
    let its = Node { name: "fine-name".into(), uid: "again".into(), boot_id: Some("b".into()), ..old };
    field.nodes.insert("again".into(), Node { ready: Ready::True, cordoned: false, ..its });
    field.run(min(60));
    field
}

/// The same, where the old Node is left there. They drain the machine under its new name, delete that Node, and keep the machine.
#[test]
fn drained_machine_with_a_node_of_its_old_name_is_left_alone() {
    let mut found = Vec::new();
    for links in ["provider", "uuid", "address"] {
        for cordons in [false, true] {
            for restarts in [false, true] {
                let mut field = renamed(links, cordons);
                let before = made(&field);
                field.nodes.get_mut("again").unwrap().cordoned = true;
                field.run(min(5));
                field.nodes.remove("again");
                if restarts {
                    field = off(field, min(2), roster());
                    field.ledger = Ledger::unknown();
                }
                field.deaf = true;
                field.run(min(6 * 60));
                found.push((links, cordons, restarts, before, on(&field, "i003")));
            }
        }
    }
    let harmed: Vec<_> = found.iter().filter(|it| !it.4.is_empty() || !it.3.is_empty()).collect();
    assert!(harmed.is_empty(), "(links, cordons, restarts, before, calls): {harmed:#?}");
}

/// The machine that took over the Node of one that is off has served for hours. Nova's network cache of it is empty for an hour
/// (https://bugs.launchpad.net/nova/+bug/1751923), so that its cloud lists it without an address. It is Ready and renews its
/// lease.
#[test]
fn successor_that_is_listed_without_addresses_is_left_alone() {
    let mut found = Vec::new();
    for old in ["none", "locked and off", "unmarked and off", "locked and active"] {
        let mut field = fleet("address", 12, roster());
        field.run(min(20));
        let state = if old.ends_with("active") { InstanceState::Active } else { InstanceState::Stopped };
        taken_over(&mut field, "address", state, "vm-new");
        if old.starts_with("unmarked") {
            field.instances.get_mut("i004").unwrap().marks = Arc::new([Mark::Tag("keep".into())].into());
        }
        if old == "none" {
            field.delete_machine("i004");
        }
        field.run(min(3 * 60));
        let before = made(&field);
        // Neutron lists its port all the time.
        field.unaddressed = vec!["new".to_owned()];
        field.deaf = true;
        field.run(min(3 * 60));
        found.push((old, before, on(&field, "new")));
    }
    assert!(found.iter().all(|(.., made)| made.is_empty()), "(old, before, calls): {found:#?}");
}

/// As `drained_spare_with_a_left_over_node_is_left_alone`, on bare metal, whose Nodes show the UUID of the hardware. The dead
/// machine is deleted. The spare serves for hours under its Node, and is rebooted for a new kernel, which takes five minutes.
#[test]
fn node_of_a_spare_that_reboots_is_not_cleaned_up() {
    let mut found = Vec::new();
    for uuids in ["instance", "hardware"] {
        for left_over in [false, true] {
            let mut field = fleet("provider", 12, roster());
            if uuids == "hardware" {
                for (id, node) in &mut field.nodes {
                    node.system_uuid = Some(format!("hardware-{id}").as_str().into());
                }
            }
            field.run(min(20));
            set(&mut field, "i004", Ready::Unknown);
            field.instances.get_mut("i004").unwrap().locked = true;
            field.run(min(2));
            let its = field.nodes["i003"].clone();
            let dead = field.nodes.get_mut("i004").unwrap();
            (dead.system_uuid, dead.addresses) = (its.system_uuid, its.addresses);
            (dead.boot_id, dead.ready) = (Some("another".into()), Ready::True);
            if left_over {
                set(&mut field, "i003", Ready::Unknown);
            } else {
                field.nodes.remove("i003");
            }
            field.delete_machine("i004");
            field.run(min(3 * 60));
            let before = made(&field);
            set(&mut field, "i004", Ready::Unknown);
            field.deaf = true;
            field.run(min(5));
            found.push((uuids, left_over, before.clone(), made(&field)[before.len()..].to_vec()));
        }
    }
    let harmed: Vec<_> =
        found.iter().filter(|it| it.3.iter().any(|call| call.contains("node-i004"))).collect();
    assert!(harmed.is_empty(), "(UUIDs, left over, before, calls): {found:#?}");
}

/// The Node of `i003` went in a night without Reveille, and the machine is held. A person gives its host name to a new machine,
/// and keeps the old one. The new one serves for hours, is drained in our sight, and kept.
#[test]
fn drained_namesake_of_a_held_machine_is_left_alone() {
    let mut found = Vec::new();
    for links in ["uuid", "address"] {
        for name in ["vm-new", "node-i003"] {
            for drains in [false, true] {
                // Where it dies, joining may take for ever.
                let its = || match drains {
                    true => roster(),
                    false => roster_with(|pool| pool.deadlines.join_within = None),
                };
                let mut field = fleet(links, 12, its());
                if name == "node-i003" {
                    field.instances.get_mut("i003").unwrap().name = name.into();
                }
                field.run(min(20));
                field.nodes.remove("i003");
                field = off(field, min(5 * 60), its());
                field.ledger = Ledger::unknown();
                field.run(min(20));
                comes(&mut field, links, "new", name);
                field.nodes.get_mut("new").unwrap().name = "node-i003".into();
                field.run(min(3 * 60));
                let before = made(&field);
                field.deaf = true;
                if drains {
                    field.nodes.get_mut("new").unwrap().cordoned = true;
                    field.run(min(5));
                    field.nodes.remove("new");
                } else {
                    set(&mut field, "new", Ready::Unknown);
                }
                field.run(min(6 * 60));
                let why = held(&field, "new", FaultKind::NotReady);
                found.push((
                    links,
                    name,
                    drains,
                    before,
                    on(&field, "new").len(),
                    on(&field, "i003").len(),
                    why,
                ));
            }
        }
    }
    let bad: Vec<_> = found.iter().filter(|it| it.2 != (it.4 == 0) || it.5 > 0).collect();
    assert!(bad.is_empty(), "(links, name, drains, before, calls on it, on the held one, why): {bad:#?}");
}

/// A kubelet shows the UUID of another machine for twelve minutes, in which that one is silent. Then it shows its own again, and
/// its machine is ended with its Node. What is told of that Node is nothing about the other machine (seed 9300074).
#[test]
fn machine_whose_uuid_another_showed_keeps_its_own_node() {
    for links in ["provider", "uuid"] {
        let mut field = fleet(links, 12, roster());
        field.run(min(20));
        field.deaf = true;
        set(&mut field, "i005", Ready::Unknown);
        field.run(min(2));
        field.nodes.get_mut("i004").unwrap().system_uuid = Some("i005".into());
        field.run(min(12));
        field.nodes.get_mut("i004").unwrap().system_uuid = Some("i004".into());
        field.run(min(2));
        field.delete_machine("i004");
        field.run(min(1));
        field.nodes.remove("i004");
        field.run(min(2));
        let opened =
            [FaultKind::NotReady, FaultKind::Vanished].map(|kind| field.case("i005", kind).is_some());
        assert_eq!(opened, [true, false], "{links}: {:?}", field.machine_state("i005"));
    }
}

/// A fleet of k3s in which `i005` is held: its Node went while Reveille was upgraded.
fn with_a_held_one() -> Field {
    let mut field = fleet("uuid", 12, roster());
    field.run(min(20));
    field.nodes.remove("i005");
    field = off(field, min(1), roster());
    field.run(min(5));
    field
}

/// The same of a machine that is held, because its Node went while Reveille was upgraded: it is in the hands of the person who
/// drained it as before (seed 9301868).
#[test]
fn machine_whose_uuid_another_showed_is_held_as_before() {
    for shows_again in [true, false] {
        let mut field = with_a_held_one();
        field.nodes.get_mut("i004").unwrap().system_uuid = Some("i005".into());
        field.run(min(12));
        if shows_again {
            field.nodes.get_mut("i004").unwrap().system_uuid = Some("i004".into());
            field.run(min(60));
        }
        let gone = field.nodes.remove("i004").unwrap();
        field.delete_machine("i004");
        field.run(min(4 * 60));
        // Without a word from its kubelet that it is another machine's, it was this one's Node, and went in our sight.
        assert_eq!(on(&field, "i005").is_empty(), shows_again, "{gone:?}: {:?}", made(&field));
    }
}

/// A machine is drained and kept. The kubelet of one that is not the roster's shows its UUID for a while, and goes off. Once the
/// drained machine is ended, that Node is no left-over of it (seed 9302616).
#[test]
fn node_that_showed_a_drained_machine_is_no_leftover_of_it() {
    let mut field = fleet("uuid", 12, roster());
    field.instances.get_mut("i004").unwrap().marks = Arc::default();
    field.run(min(20));
    field.nodes.get_mut("i005").unwrap().cordoned = true;
    field.run(min(2));
    field.nodes.remove("i005");
    field.run(min(10));
    field.nodes.get_mut("i004").unwrap().system_uuid = Some("i005".into());
    field.run(min(5));
    set(&mut field, "i004", Ready::Unknown);
    field.run(min(5));
    field.delete_machine("i005");
    field.run(min(4 * 60));
    assert!(made(&field).is_empty(), "{:?}", made(&field));
}

/// The same where a process begins while the other kubelet shows it, and takes that for true at once (seed 10200683).
#[test]
fn identity_shown_at_a_start_ends_no_hold_for_good() {
    let mut field = with_a_held_one();
    field.nodes.get_mut("i004").unwrap().system_uuid = Some("i005".into());
    field = off(field, min(1), roster());
    field.run(min(1));
    field.nodes.get_mut("i004").unwrap().system_uuid = Some("i004".into());
    field.run(min(6 * 60));
    assert!(on(&field, "i005").is_empty(), "{:?}", made(&field));
}

//! Nodes that another machine took over or shows, where all that leads to a machine is what a kubelet writes; machines that serve
//! although their cloud does not call them ACTIVE; and lists of leases that come now close together, now far apart.

use reveille_core::event::{ClusterFact, Event};
use reveille_core::model::incident::FaultKind;
use reveille_core::model::instance::InstanceState;
use reveille_core::model::node::{Node, Provider, Ready};
use reveille_core::model::roster::Roster;
use reveille_core::model::time::Span;

use super::fixture::{Field, roster, stamp};
use super::replacing::{blamed, deletes, fails};
use super::steps::{made, min, off, patch, roster_with, set, touched};

const STATES: [InstanceState; 4] =
    [InstanceState::Active, InstanceState::Errored, InstanceState::Rebooting, InstanceState::Other];

/// Ten machines, whose Nodes lead to them in this way alone: by provider ID, or, as with k3s on OpenStack, by UUID.
fn fleet(links: &str, roster: Roster) -> Field {
    let mut field = Field::new(roster).populate(10);
    for (id, node) in &mut field.nodes {
        node.system_uuid = Some(id.as_str().into());
        node.addresses = field.ports[id].addresses.clone();
        if links != "provider" {
            node.provider = Provider::Unread(format!("k3s://node-{id}").as_str().into());
        }
    }
    field.run(min(20));
    field
}

/// The host of `i004` is dead, its cloud shows it as `old`, and a person locked it.
fn host_dies(field: &mut Field, old: InstanceState) {
    let its = field.instances.get_mut("i004").unwrap();
    (its.locked, its.state) = (true, old);
    set(field, "i004", Ready::Unknown);
    field.run(min(2));
}

/// A person makes `new` under the name of `i004`. Its kubelet registers on the Node that is there.
fn successor_registers(field: &mut Field) {
    field.add_machine("new", false);
    field.instances.get_mut("new").unwrap().name = "node-i004".into();
    let addresses = field.ports["new"].addresses.clone();
    let its = field.nodes.get_mut("i004").unwrap();
    (its.system_uuid, its.addresses) = (Some("new".into()), addresses);
    (its.boot_id, its.ready) = (Some("another".into()), Ready::True);
}

/// It joins under a name of its own.
fn joins(field: &mut Field, id: &str) {
    field.add_machine(id, true);
    let addresses = field.ports[id].addresses.clone();
    let its = field.nodes.get_mut(id).unwrap();
    its.provider = Provider::Unread(format!("k3s://node-{id}").as_str().into());
    (its.system_uuid, its.addresses) = (Some(id.into()), addresses);
}

/// As `machine_that_took_over_the_node_of_one_shown_as_active`: the machine that took over serves for hours. A person drains it,
/// which takes more than an hour (a disruption budget), and its Node is deleted while Reveille is upgraded.
#[test]
fn successor_drained_during_a_restart_is_left_alone() {
    let mut found = Vec::new();
    for links in ["uuid", "provider"] {
        for old in [InstanceState::Stopped, InstanceState::Active] {
            let mut field = fleet(links, roster());
            host_dies(&mut field, old);
            successor_registers(&mut field);
            field.run(min(3 * 60));
            field.nodes.get_mut("i004").unwrap().cordoned = true;
            field.run(min(70));
            let before = made(&field);
            field.nodes.remove("i004");
            let mut field = off(field, min(2), roster());
            field.deaf = true;
            field.run(min(6 * 60));
            found.push((links, old, before, made(&field)));
        }
    }
    assert!(found.iter().all(|(.., made)| made.is_empty()), "{found:#?}");
}

/// The same machine is drained and its Node deleted in our sight, for an upgrade of its kernel. It comes back, serves for an
/// hour, and dies: it is repaired as any other. Where the old one was stopped when it was replaced, a person may have started it
/// again since, without its kubelet, to fetch what is on its disk.
#[test]
fn successor_that_came_back_from_a_drain_is_repaired() {
    let mut found = Vec::new();
    for (old, later) in [
        (InstanceState::Stopped, InstanceState::Stopped),
        (InstanceState::Stopped, InstanceState::Active),
        (InstanceState::Active, InstanceState::Active),
    ] {
        let mut field = fleet("uuid", roster());
        host_dies(&mut field, old);
        successor_registers(&mut field);
        field.run(min(60));
        field.instances.get_mut("i004").unwrap().state = later;
        field.run(min(2 * 60));
        field.nodes.get_mut("i004").unwrap().cordoned = true;
        field.run(min(2));
        let its = field.nodes.remove("i004").unwrap();
        field.run(min(20));
        field.nodes.insert("i004".into(), Node { uid: "again".into(), cordoned: false, ..its });
        field.run(min(60));
        let before = made(&field);
        set(&mut field, "i004", Ready::Unknown);
        field.deaf = true;
        field.run(min(6 * 60));
        let held = field.case("new", FaultKind::NotReady).map(|_| field.held("new", FaultKind::NotReady));
        found.push((old, later, before, touched(&field, "new"), held));
    }
    let fine = found.iter().all(|(_, _, before, is_touched, _)| before.is_empty() && *is_touched);
    assert!(fine, "{found:#?}");
}

/// `terraform apply` with `create_before_destroy`: the new machine of the same name takes over the Node, and then the old one is
/// deleted. Joining may take for ever in this pool. The new one is Ready for hours, and dies.
#[test]
fn successor_made_before_its_predecessor_went_is_repaired() {
    let mut found = Vec::new();
    for links in ["uuid", "provider"] {
        for when in ["before", "after"] {
            let mut field = fleet(links, roster_with(|pool| pool.deadlines.join_within = None));
            if when == "before" {
                field.delete_machine("i004");
                field.run(min(2));
            }
            successor_registers(&mut field);
            field.run(min(60));
            if when == "after" {
                field.delete_machine("i004");
            }
            field.run(min(3 * 60));
            let before = made(&field);
            set(&mut field, "i004", Ready::Unknown);
            field.deaf = true;
            field.run(min(8 * 60));
            let held = field.case("new", FaultKind::NotReady).map(|_| field.held("new", FaultKind::NotReady));
            found.push((links, when, before, touched(&field, "new"), held));
        }
    }
    // With provider IDs the Node of the one that is gone is contested, as documented.
    let fine = found.iter().all(|(links, _, _, is_touched, _)| *links == "provider" || *is_touched);
    assert!(fine, "{found:#?}");
}

/// The same, where the old machine is deleted and the new one joins while Reveille is restarted.
#[test]
fn successor_that_joined_during_a_restart_is_repaired() {
    let mut found = Vec::new();
    for named_alike in [false, true] {
        for down in [min(2), min(10)] {
            let slow = || roster_with(|pool| pool.deadlines.join_within = None);
            let mut field = fleet("uuid", slow());
            let last = field.now;
            field.now = field.now + Span::from_s(30);
            field.delete_machine("i004");
            if named_alike {
                successor_registers(&mut field);
            } else {
                field.nodes.remove("i004");
                joins(&mut field, "new");
            }
            field.now = last;
            let mut field = off(field, down, slow());
            field.run(min(3 * 60));
            let before = made(&field);
            set(&mut field, if named_alike { "i004" } else { "new" }, Ready::Unknown);
            field.deaf = true;
            field.run(min(8 * 60));
            let held = field.case("new", FaultKind::NotReady).map(|_| field.held("new", FaultKind::NotReady));
            found.push((named_alike, down, before, touched(&field, "new"), held));
        }
    }
    assert!(found.iter().all(|(.., is_touched, _)| *is_touched), "{found:#?}");
}

/// Reveille deletes a machine in ERROR, and is restarted. Meanwhile its successor, which has its name, is made and joins.
#[test]
fn successor_of_its_name_proves_replacement_over_restart() {
    let mut found = Vec::new();
    for named_alike in [false, true] {
        let mut field = fleet("uuid", roster());
        fails(&mut field, "i004");
        field.run_until(min(20), |field| deletes(field) > 0);
        let last = field.now;
        field.now = field.now + min(1);
        joins(&mut field, "new");
        if named_alike {
            field.instances.get_mut("new").unwrap().name = "node-i004".into();
            field.nodes.get_mut("new").unwrap().name = "node-i004".into();
        }
        field.now = last;
        let mut field = off(field, min(3), roster());
        field.run(min(2 * 60));
        found.push((named_alike, blamed(&field), made(&field)));
    }
    assert!(found.iter().all(|(_, blamed, _)| blamed.is_empty()), "{found:#?}");
}

/// As `uuid_shown_for_a_moment_gives_no_machine_a_history`, where the machine whose kubelet shows another serves in ERROR, is
/// being rebooted, or was resized and waits for the word of its owner (Nova: VERIFY_RESIZE).
#[test]
fn kubelet_of_a_machine_in_error_gives_no_history() {
    let mut found = Vec::new();
    for links in ["uuid", "provider"] {
        for state in STATES {
            let mut field = fleet(links, roster());
            field.instances.get_mut("i007").unwrap().state = state;
            field.run(min(30));
            let at = field.now - min(15);
            field.add_machine("old", false);
            field.instances.get_mut("old").unwrap().created = Some(stamp(at));
            field.deaf = true;
            field.run(min(2));
            let own = field.nodes["i007"].clone();
            let other = Node { system_uuid: Some("old".into()), ..own.clone() };
            [other, own].iter().for_each(|node| patch(&mut field, node));
            field.run(min(6 * 60));
            found.push((links, state, made(&field)));
        }
    }
    let replaced = |made: &Vec<String>| made.iter().any(|call| *call == "delete instance old");
    assert!(found.iter().all(|(_, _, made)| !replaced(made)), "{found:#?}");
}

/// A failed live migration left `i007` in ERROR, where it serves. As `kubelet_of_another_machine_ends_no_removal`: a person
/// drained `i003` and keeps it; the kubelet of `i007` shows its identity for a minute.
#[test]
fn kubelet_of_a_machine_in_error_ends_no_removal() {
    let mut found = Vec::new();
    for links in ["uuid", "address"] {
        for state in STATES {
            let mut field = fleet("uuid", roster());
            if links == "address" {
                for (id, node) in &mut field.nodes {
                    node.system_uuid = Some(format!("hardware-{id}").as_str().into());
                }
                field.run(min(5));
            }
            field.instances.get_mut("i007").unwrap().state = state;
            field.run(min(30));
            field.nodes.get_mut("i003").unwrap().cordoned = true;
            field.run(min(2));
            field.nodes.remove("i003");
            field.run(min(60));
            let own = field.nodes["i007"].clone();
            let addresses = field.ports["i003"].addresses.clone();
            let its = field.nodes.get_mut("i007").unwrap();
            match links {
                "uuid" => its.system_uuid = Some("i003".into()),
                _ => its.addresses = addresses,
            }
            field.run(min(1));
            field.nodes.insert("i007".into(), own);
            field.deaf = true;
            field.run(min(6 * 60));
            found.push((links, state, touched(&field, "i003"), made(&field)));
        }
    }
    assert!(found.iter().all(|(_, _, is_touched, _)| !is_touched), "{found:#?}");
}

/// The kubelet of `i007` shows the UUID of `i003`. A person finds that odd, drains `i007`, deletes its Node and keeps the
/// machine. They meant `i007`, and not `i003`, which serves on. Months later the kubelet of that one dies.
#[test]
fn node_that_shows_another_is_drained_for_its_own_machine() {
    let mut found = Vec::new();
    for links in ["provider", "uuid"] {
        for cordon in ["not", "before", "while"] {
            for restarts in [false, true] {
                let mut field = fleet(links, roster());
                field.nodes.get_mut("i007").unwrap().cordoned = cordon == "before";
                field.run(min(2));
                field.nodes.get_mut("i007").unwrap().system_uuid = Some("i003".into());
                field.run(min(2));
                field.nodes.get_mut("i007").unwrap().cordoned = cordon != "not";
                field.run(min(5));
                field.nodes.remove("i007");
                if restarts {
                    field = off(field, Span::from_s(10), roster());
                }
                field.deaf = true;
                field.run(min(3 * 60));
                let drained = touched(&field, "i007");
                set(&mut field, "i003", Ready::Unknown);
                field.run(min(6 * 60));
                let held =
                    field.case("i003", FaultKind::NotReady).map(|_| field.held("i003", FaultKind::NotReady));
                found.push((links, cordon, restarts, drained, touched(&field, "i003"), held));
            }
        }
    }
    let fine = found.iter().filter(|(_, cordon, ..)| *cordon != "not");
    let fine = fine.clone().all(|(_, _, _, drained, other, _)| !drained && *other);
    assert!(fine, "(links, cordon, restarts, drained i007 touched, dead i003 touched): {found:#?}");
}

/// Lists of leases come at these distances in turn, in seconds; all else as always.
fn run_with_gaps(field: &mut Field, span: Span, gaps_s: &[i64]) {
    let end = field.now + span;
    let (mut next, mut turn) = (field.now, 0);
    while field.now < end {
        field.now = field.now + Span::from_s(2);
        if field.now.ms % 30_000 == 0 {
            field.list_cloud();
        }
        if field.now.ms % 10_000 == 0 {
            field.sync_nodes();
            field.feed(Event::Cluster(ClusterFact::Alive));
        }
        if field.now >= next {
            field.list_leases();
            next = next + Span::from_s(gaps_s[turn % gaps_s.len()]);
            turn += 1;
        }
    }
}

/// One of three API servers hangs, or all are slow: lists of leases fail now and then, or take half a minute each. All others
/// renew theirs all the time, and each list is true. A machine dies.
#[test]
fn lists_of_leases_at_uneven_distances_delay_no_repair_for_ever() {
    let mut found = Vec::new();
    for gaps_s in [&[10][..], &[38], &[50], &[10, 50], &[38, 42], &[10, 10, 60], &[30, 60]] {
        let mut field = fleet("provider", roster());
        set(&mut field, "i004", Ready::Unknown);
        field.deaf = true;
        run_with_gaps(&mut field, min(3 * 60), gaps_s);
        let held = field.case("i004", FaultKind::NotReady).map(|_| field.held("i004", FaultKind::NotReady));
        found.push((gaps_s, touched(&field, "i004"), held));
    }
    assert!(found.iter().all(|(_, is_touched, _)| *is_touched), "{found:#?}");
}

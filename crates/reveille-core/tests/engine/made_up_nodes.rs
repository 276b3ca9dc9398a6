//! Who has a bootstrap token makes Nodes of any name, and names any instance in their provider IDs: a kubelet may do that as it
//! registers (`--provider-id`), and no cloud controller takes it back. What is known of machines that are out of sight must
//! neither fill the ledger with that, nor be led astray.

use std::collections::BTreeSet;
use std::sync::Arc;

use reveille_core::event::{ClusterFact, Event};
use reveille_core::model::incident::FaultKind;
use reveille_core::model::instance::Mark;
use reveille_core::model::node::{Node, Provider, Ready};
use reveille_core::record::Record;

use super::fixture::{Field, node, roster};
use super::fleets::k3s;
use reveille_core::model::time::Span;

use super::steps::{min, off, on, patch, roster_with, set, touched};

fn made_up(name: &str, names: &str) -> Node {
    let mut made_up = node(name, Ready::True);
    made_up.provider = Provider::Instance(names.into());
    made_up
}

fn unmark(field: &mut Field, id: &str) {
    field.instances.get_mut(id).unwrap().marks = Arc::new([Mark::Tag("in-quarantine".into())].into());
}

/// As `flips_of_a_shown_identity_fill_no_ledger` and `two_changing_nodes_of_one_machine_fill_no_ledger`, of a machine that is out
/// of sight: it was scaled down an hour ago, or an operator took its marks off. Two kubelets whose Nodes name it write their own
/// status in turn, fifty times a second.
#[test]
fn nodes_that_name_a_machine_out_of_sight_fill_no_ledger() {
    let mut told = Vec::new();
    for how in ["scaled down", "unmarked"] {
        let mut field = Field::new(roster()).populate(10);
        field.run(min(20));
        if how == "unmarked" {
            unmark(&mut field, "i004");
        } else {
            field.delete_machine("i004");
            field.nodes.remove("i004");
        }
        field.run(min(60));
        let (one, other) = (made_up("made-up-1", "i004"), made_up("made-up-2", "i004"));
        field.nodes.insert("made-up-1".into(), one.clone());
        field.nodes.insert("made-up-2".into(), other.clone());
        field.run(min(2));
        let before = field.records.len();
        for number in 0..500 {
            for its in [&one, &other] {
                let mut its = its.clone();
                its.boot_id = Some(format!("boot-{number}").as_str().into());
                patch(&mut field, &its);
            }
        }
        let records = &field.records[before..];
        let joins = records.iter().filter(|it| matches!(it, Record::Joined { .. })).count();
        let bytes: usize = records.iter().map(|it| serde_json::to_vec(it).unwrap().len()).sum();
        told.push((how, records.len(), joins, bytes));
    }
    assert!(told.iter().all(|(_, records, ..)| *records < 100), "(how, records, joins, bytes): {told:#?}");
}

/// The same where a client makes Nodes that are cordoned and name ids which no cloud has, and deletes them.
#[test]
fn made_up_nodes_that_go_cordoned_fill_no_ledger() {
    let mut field = Field::new(roster()).populate(10);
    field.run(min(20));
    let before = field.records.len();
    for number in 0..500 {
        let mut its = made_up(&format!("made-up-{number}"), &format!("none-{number}"));
        its.cordoned = true;
        patch(&mut field, &its);
        let (name, uid) = (its.name.clone(), its.uid.clone());
        field.feed(Event::Cluster(ClusterFact::Deleted { name, uid }));
    }
    let records = &field.records[before..];
    let bytes: usize = records.iter().map(|it| serde_json::to_vec(it).unwrap().len()).sum();
    assert!(records.len() < 200, "{} records, {bytes} bytes in ten seconds", records.len());
}

/// As `machine_drained_while_unmarked_is_left_alone_by_any_uuid`: an operator takes the marks off `i003`, drains it and deletes
/// its Node, looks at it, and puts the marks back. Meanwhile there was a Node of another name that names it.
#[test]
fn node_that_names_an_unmarked_machine_hides_no_drain() {
    let mut found = Vec::new();
    for names in [false, true] {
        for stays in [min(1), min(90)] {
            let mut field = k3s(roster());
            unmark(&mut field, "i003");
            field.run(min(5));
            if names {
                let mut its = made_up("made-up", "i003");
                its.system_uuid = Some("hardware-made-up".into());
                field.nodes.insert("made-up".into(), its);
                field.run(min(2));
            }
            field.nodes.get_mut("i003").unwrap().cordoned = true;
            field.run(min(5));
            field.nodes.remove("i003");
            field.run(stays);
            field.nodes.remove("made-up");
            field.run(min(5));
            let before = on(&field, "i003");
            field.instances.get_mut("i003").unwrap().marks = field.instances["i001"].marks.clone();
            field.deaf = true;
            field.run(min(6 * 60));
            found.push((names, stays, before, on(&field, "i003")));
        }
    }
    let fine = found.iter().all(|(.., before, after)| before.is_empty() && after.is_empty());
    assert!(fine, "(names it, stays, acts before, acts after): {found:#?}");
}

/// A host name is given again: an operator takes the marks off a machine and deletes it later, which no list tells of any more.
/// The next machine of that host name has another name in its cloud (`vm-…`), as where cloud-init gives the host names of a
/// fixed set. It joins as the Node of that name, and serves for hours.
fn takes_the_name(how: &str, roster: fn() -> reveille_core::model::roster::Roster) -> Field {
    let mut field = k3s(roster());
    if how == "unmarked" {
        unmark(&mut field, "i004");
        field.run(min(5));
    }
    field.delete_machine("i004");
    field.nodes.remove("i004");
    field.run(min(60));
    field.add_machine("new", false);
    field.instances.get_mut("new").unwrap().name = "vm-new".into();
    let addresses = field.ports["new"].addresses.clone();
    field.instances.get_mut("new").unwrap().addresses = addresses.clone();
    field.run(min(2));
    let mut its = node("i004", Ready::True);
    its.provider = Provider::Unread("k3s://node-i004".into());
    (its.uid, its.system_uuid, its.addresses) = ("new".into(), Some("new".into()), addresses);
    field.nodes.insert("new".into(), its);
    field.run(min(3 * 60));
    field
}

/// A person drains it, and its Node is deleted while Reveille is restarted.
#[test]
fn drain_under_the_host_name_of_one_unmarked_is_known() {
    let mut found = Vec::new();
    for how in ["deleted", "unmarked"] {
        let mut field = takes_the_name(how, roster);
        field.nodes.get_mut("new").unwrap().cordoned = true;
        field.run(min(70));
        let before = on(&field, "new");
        field.nodes.remove("new");
        let mut field = off(field, min(2), roster());
        field.deaf = true;
        field.run(min(6 * 60));
        found.push((how, before, on(&field, "new")));
    }
    let fine = found.iter().all(|(_, before, after)| before.is_empty() && after.is_empty());
    assert!(fine, "(how, acts before, acts after): {found:#?}");
}

/// It dies. Joining may take for ever in this pool.
#[test]
fn machine_with_the_host_name_of_one_unmarked_is_repaired() {
    let mut found = Vec::new();
    for how in ["deleted", "unmarked"] {
        let mut field = takes_the_name(how, || roster_with(|pool| pool.deadlines.join_within = None));
        let joined: BTreeSet<String> = field
            .records
            .iter()
            .filter_map(|it| match it {
                Record::Joined { machines, .. } => Some(machines),
                _ => None,
            })
            .flatten()
            .map(|it| it.machine.to_string())
            .collect();
        let is_known = joined.iter().any(|it| it.contains("new"));
        set(&mut field, "new", Ready::Unknown);
        field.deaf = true;
        field.run(min(8 * 60));
        let held = field.case("new", FaultKind::NotReady).map(|_| field.held("new", FaultKind::NotReady));
        found.push((how, is_known, touched(&field, "new"), held));
    }
    assert!(found.iter().all(|(_, _, touched, _)| *touched), "(how, join known, touched, held): {found:#?}");
}

/// A client registers a second Node that names `i003`. A person finds that odd, drains the made-up one and deletes it. `i003` has
/// its own Node all the time: no person drained that, and when its kubelet dies, before or long after, it is to be repaired.
#[test]
fn drain_of_a_made_up_node_is_none_of_a_machine_with_its_own() {
    let mut found = Vec::new();
    for dies in ["before", "a day after", "after an upgrade", "after a restart"] {
        for made in [false, true] {
            let mut field = Field::new(roster()).populate(12);
            field.run(min(20));
            if dies == "before" {
                set(&mut field, "i003", Ready::Unknown);
                field.run(min(1));
            }
            if made {
                let mut its = made_up("made-up", "i003");
                its.ready = Ready::Unknown;
                field.nodes.insert("made-up".into(), its);
                field.run(min(1));
                field.nodes.get_mut("made-up").unwrap().cordoned = true;
                field.run(Span::from_s(20));
                field.nodes.remove("made-up");
            }
            field.run(min(5));
            match dies {
                "a day after" => field.run(min(24 * 60)),
                "after an upgrade" => {
                    field.nodes.get_mut("i003").unwrap().kubelet = Some("v1.36.4".into());
                    field.run(min(60));
                }
                "after a restart" => {
                    field = off(field, min(2), roster());
                    field.run(min(60));
                }
                _ => {}
            }
            field.deaf = true;
            set(&mut field, "i003", Ready::Unknown);
            field.run(min(3 * 60));
            let held =
                field.case("i003", FaultKind::NotReady).map(|_| field.held("i003", FaultKind::NotReady));
            found.push((dies, made, touched(&field, "i003"), held));
        }
    }
    assert!(found.iter().all(|(_, _, touched, _)| *touched), "(dies, made up, repaired, held): {found:#?}");
}

/// The same in turn, fifty times a second, by a client that may make and delete Nodes.
#[test]
fn made_up_nodes_of_a_serving_machine_fill_no_ledger() {
    let mut field = Field::new(roster()).populate(10);
    field.run(min(20));
    let before = field.records.len();
    for number in 0..500 {
        let mut its = made_up(&format!("made-up-{number}"), "i003");
        its.cordoned = true;
        patch(&mut field, &its);
        let (name, uid) = (its.name.clone(), its.uid.clone());
        field.feed(Event::Cluster(ClusterFact::Deleted { name, uid }));
    }
    let records = &field.records[before..];
    let bytes: usize = records.iter().map(|it| serde_json::to_vec(it).unwrap().len()).sum();
    assert!(records.len() < 200, "{} records, {bytes} bytes in ten seconds", records.len());
}

/// As `provider_id_that_is_written_late_gives_no_history`, by one kubelet alone, without any token: bare metal without a cloud
/// controller. An operator takes the marks off `i003`, drains it and deletes its Node, and puts the marks back. Meanwhile the
/// kubelet of `i007` names `i003` in the provider ID of its own Node, once.
#[test]
fn provider_id_written_late_hides_no_drain_of_one_unmarked() {
    let mut found = Vec::new();
    for then in ["nothing", "stays", "silent", "gone"] {
        let mut field = k3s(roster());
        for (id, node) in &mut field.nodes {
            (node.provider, node.system_uuid) =
                (Provider::Unset, Some(format!("hardware-{id}").as_str().into()));
        }
        field.run(min(20));
        unmark(&mut field, "i003");
        field.run(min(5));
        if then != "nothing" {
            field.nodes.get_mut("i007").unwrap().provider = Provider::Instance("i003".into());
            field.run(min(1));
        }
        field.nodes.get_mut("i003").unwrap().cordoned = true;
        field.run(min(5));
        field.nodes.remove("i003");
        field.run(min(30));
        let before = on(&field, "i003");
        field.instances.get_mut("i003").unwrap().marks = field.instances["i001"].marks.clone();
        field.deaf = true;
        field.run(min(30));
        match then {
            "silent" => set(&mut field, "i007", Ready::Unknown),
            "gone" => {
                field.nodes.remove("i007");
                field.delete_machine("i007");
            }
            _ => {}
        }
        field.run(min(4 * 60));
        found.push((then, before, on(&field, "i003")));
    }
    let fine = found.iter().all(|(_, before, after)| before.is_empty() && after.is_empty());
    assert!(fine, "(then, acts before, acts after): {found:#?}");
}

/// As `uuid_shown_on_an_adopted_node_gives_no_history`. The Node is a new one, which names an instance that no cloud of the
/// roster lists: a machine that joined the cluster by hand, of another project. For 20 ms it shows the UUID of an old machine
/// that just got its pool's marks, and may have served.
#[test]
fn uuid_shown_on_a_node_of_no_listed_machine_gives_no_history() {
    let mut found = Vec::new();
    for how in ["nothing", "flash"] {
        let mut field = Field::new(roster()).populate(12);
        for (id, node) in &mut field.nodes {
            node.system_uuid = Some(id.as_str().into());
            node.addresses = field.ports[id].addresses.clone();
        }
        let mut foreign = made_up("foreign", "elsewhere");
        foreign.system_uuid = Some("elsewhere".into());
        field.nodes.insert("foreign".into(), foreign.clone());
        field.run(min(60));
        let at = field.now - min(15);
        field.add_machine("old", false);
        field.instances.get_mut("old").unwrap().created = Some(super::fixture::stamp(at));
        field.deaf = true;
        field.run(min(2));
        if how == "flash" {
            let mut its = foreign.clone();
            its.system_uuid = Some("old".into());
            patch(&mut field, &its);
            patch(&mut field, &foreign);
        }
        field.run(min(4 * 60));
        field.nodes.remove("foreign");
        field.run(min(4 * 60));
        found.push((how, on(&field, "old")));
    }
    assert!(found.iter().all(|(_, made)| !made.iter().any(|it| it.starts_with("delete"))), "{found:#?}");
}

/// The Node of `i003` is gone for a minute (a person deleted it, so that its kubelet registers again). Each kubelet may
/// annotate its own Node: that of `i007` shows the identity of `i003` for 20 ms, with a request for a repair now.
#[test]
fn request_on_a_node_that_shows_another_is_none_for_that() {
    let mut found = Vec::new();
    for how in ["nothing", "shown", "asks", "asks, silent"] {
        let mut field = k3s(roster_with(|pool| pool.repair.rejoin = reveille_core::model::roster::Mode::Off));
        let back = field.nodes.remove("i003").unwrap();
        field.run(Span::from_s(20));
        let own = field.nodes["i007"].clone();
        let mut other = own.clone();
        other.system_uuid = Some("i003".into());
        if how.starts_with("asks") {
            let asks =
                reveille_core::model::node::Asks { repair: Some("OPS-1".into()), ..Default::default() };
            other.intent.asks = Some(Box::new(asks));
        }
        if how.ends_with("silent") {
            other.ready = Ready::False;
        }
        if how != "nothing" {
            patch(&mut field, &other);
            patch(&mut field, &own);
        }
        field.deaf = true;
        field.run(Span::from_s(50));
        let made = on(&field, "i003");
        field.nodes.insert("i003".into(), Node { uid: "again".into(), ..back });
        field.run(min(5));
        found.push((how, made, on(&field, "i003")));
    }
    assert!(found.iter().all(|(_, made, after)| made.is_empty() && after.is_empty()), "{found:#?}");
}

/// A client registers a second Node that names `i003`, or shows its UUID, and renews its lease. `i003` reboots once, and serves
/// as its own Node again. A person drains that one, deletes it and keeps the machine. Then the made-up Node falls silent.
#[test]
fn made_up_node_that_was_ready_amid_a_reboot_ends_no_removal() {
    let mut found = Vec::new();
    for links in ["provider", "uuid"] {
        for made in [false, true] {
            for reboots in [false, true] {
                let mut field = match links {
                    "uuid" => k3s(roster()),
                    _ => Field::new(roster()).populate(12),
                };
                field.run(min(20));
                if made {
                    let mut its = made_up("made-up", "i003");
                    if links == "uuid" {
                        (its.provider, its.system_uuid) = (Provider::Unset, Some("i003".into()));
                    }
                    field.nodes.insert("made-up".into(), its);
                    field.run(min(2));
                }
                if reboots {
                    set(&mut field, "i003", Ready::Unknown);
                    field.run(min(2));
                    set(&mut field, "i003", Ready::True);
                }
                field.run(min(30));
                field.nodes.get_mut("i003").unwrap().cordoned = true;
                field.run(min(2));
                field.nodes.remove("i003");
                field.run(min(30));
                let before = on(&field, "i003");
                field.deaf = true;
                if made {
                    set(&mut field, "made-up", Ready::Unknown);
                }
                field.run(min(3 * 60));
                found.push((links, made, reboots, before, on(&field, "i003")));
            }
        }
    }
    let fine = found.iter().all(|(.., before, after)| before.is_empty() && after.is_empty());
    assert!(fine, "(links, made up, reboots, acts before, acts after): {found:#?}");
}

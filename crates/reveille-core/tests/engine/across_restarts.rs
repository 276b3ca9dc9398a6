//! Host names that are given to another machine while Reveille is restarted, Nodes that speak while another one is silent, and
//! machines of many sites that are alike.

use std::net::IpAddr;
use std::sync::Arc;

use reveille_core::model::incident::FaultKind;
use reveille_core::model::instance::{InstanceState, Mark};
use reveille_core::model::node::{Provider, Ready};
use reveille_core::model::roster::Roster;
use reveille_core::model::time::Span;

use super::fixture::{Field, node, roster};
use super::fleets::{comes, fleet};
use super::next_process::Ledger;
use super::steps::{made, min, off, on, roster_with, set};

fn held(field: &Field, id: &str) -> String {
    let kinds = [FaultKind::NotReady, FaultKind::Vanished, FaultKind::NeverJoined, FaultKind::Errored];
    let its = kinds.into_iter().filter(|kind| field.case(id, *kind).is_some());
    let its: Vec<_> = its.map(|kind| format!("{kind:?}: {}", field.held(id, kind))).collect();
    format!(
        "{} {}",
        its.join("; "),
        format!("{:?}", field.machine_state(id)).chars().take(70).collect::<String>()
    )
}

/// One line for each case that went wrong: what it is, what was called, and how it ended.
fn rows<'a, A: std::fmt::Debug + 'a>(bad: impl Iterator<Item = &'a (A, Vec<String>, String)>) {
    let bad: Vec<String> = bad.map(|(what, calls, why)| format!("{what:?}: {calls:?} {why}")).collect();
    assert!(bad.is_empty(), "{} cases:\n{}", bad.len(), bad.join("\n"));
}

fn restarted(field: Field, roster: Roster) -> Field {
    let mut field = off(field, min(3), roster);
    field.ledger = Ledger::unknown();
    field
}

/// The host of `i004` is dead; a person locked it or took its marks off. `new` was made with its host name, and registers on the
/// Node that is there, or as a new object, while Reveille is upgraded for three minutes.
fn took_over_unseen(links: &str, old: &str, object: &str, shows: usize, its: fn() -> Roster) -> Field {
    let mut field = fleet(links, 12, its());
    field.run(min(20));
    let dead = field.instances.get_mut("i004").unwrap();
    match old {
        "locked, active" => dead.locked = true,
        "locked, off" => (dead.locked, dead.state) = (true, InstanceState::Stopped),
        _ => {
            dead.state = InstanceState::Stopped;
            dead.marks = Arc::new([Mark::Tag("keep".into())].into());
        }
    }
    set(&mut field, "i004", Ready::Unknown);
    field.run(min(2));
    if object == "new" {
        field.nodes.remove("i004");
        field.run(min(2));
    }
    comes(&mut field, links, "new", "vm-new");
    let mut new = field.nodes.remove("new").unwrap();
    field.run(min(2));
    let mut addresses = new.addresses.to_vec();
    addresses.extend((0..shows).map(|number| field.ports[&format!("i{number:03}")].addresses[0]));
    let addresses: Box<[IpAddr]> = addresses.into();
    new.addresses = addresses;
    new.name = "node-i004".into();
    new.provider = Provider::Unread("k3s://node-i004".into());
    new.boot_id = Some("another".into());
    if object == "same" {
        new.uid = field.nodes["i004"].uid.clone();
        field.nodes.insert("i004".into(), new);
    } else {
        new.uid = "uid-new".into();
        field.nodes.insert("i004".into(), new);
    }
    // It has not been the machine's Node for ten minutes when the process ends.
    if EARLY.get() {
        field.run(min(5));
    }
    restarted(field, its())
}

thread_local! {
    /// The machine registers five minutes before the upgrade of Reveille, and not amid it.
    static EARLY: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

const OLD: [&str; 3] = ["locked, active", "locked, off", "unmarked"];

/// It serves for hours: nothing is done to it.
#[test]
fn successor_that_came_in_a_restart_serves_on() {
    let mut found = Vec::new();
    for links in ["uuid", "address"] {
        for old in OLD {
            for object in ["same", "new"] {
                for (shows, early) in [(0, false), (2, false), (2, true), (9, false), (9, true)] {
                    EARLY.set(early);
                    // Nine: none but its own, and Nova's network cache of it is empty for some hours.
                    let mut field = took_over_unseen(links, old, object, shows % 9, roster);
                    field.deaf = true;
                    field.run(min(30));
                    if shows == 9 {
                        field.unaddressed = vec!["new".to_owned()];
                    }
                    field.run(min(5 * 60));
                    let why = held(&field, "new");
                    found.push(((links, old, object, shows, early), on(&field, "new"), why));
                }
            }
        }
    }
    rows(found.iter().filter(|it| !it.1.is_empty()));
}

/// It serves for hours and is rebooted by a person for a new kernel, which takes four minutes.
#[test]
fn successor_that_came_in_a_restart_may_reboot() {
    let mut found = Vec::new();
    for links in ["uuid", "address"] {
        for old in OLD {
            for object in ["same", "new"] {
                let mut field = took_over_unseen(links, old, object, 0, roster);
                field.run(min(3 * 60));
                let before = made(&field);
                field.deaf = true;
                set(&mut field, "i004", Ready::Unknown);
                field.run(min(4));
                found.push(((links, old, object, before), on(&field, "new"), held(&field, "new")));
            }
        }
    }
    rows(found.iter().filter(|it| !it.1.is_empty()));
}

/// A person drains it, deletes its Node and keeps it: while it is Ready, or once its kubelet is stopped.
#[test]
fn drained_successor_that_came_in_a_restart_is_left_alone() {
    let mut found = Vec::new();
    for links in ["uuid", "address"] {
        for old in OLD {
            for object in ["same", "new"] {
                for (how, early) in
                    [("ready", false), ("ready", true), ("stopped kubelet", true), ("restart", true)]
                {
                    EARLY.set(early);
                    let mut field = took_over_unseen(links, old, object, 0, roster);
                    field.run(min(3 * 60));
                    let before = made(&field);
                    field.deaf = true;
                    field.nodes.get_mut("i004").unwrap().cordoned = true;
                    field.run(min(2));
                    if how == "stopped kubelet" {
                        set(&mut field, "i004", Ready::Unknown);
                        field.run(Span::from_s(40));
                    }
                    field.nodes.remove("i004");
                    if how == "restart" {
                        field = restarted(field, roster());
                        field.deaf = true;
                    }
                    field.run(min(5 * 60));
                    found.push((
                        (links, old, object, how, early, before),
                        on(&field, "new"),
                        held(&field, "new"),
                    ));
                }
            }
        }
    }
    rows(found.iter().filter(|it| !it.1.is_empty()));
}

/// It dies.
#[test]
fn dead_successor_that_came_in_a_restart_is_repaired() {
    let mut found = Vec::new();
    for links in ["uuid", "address"] {
        for old in OLD {
            for object in ["same", "new"] {
                for forever in [false, true] {
                    let its: fn() -> Roster = match forever {
                        true => || roster_with(|pool| pool.deadlines.join_within = None),
                        false => roster,
                    };
                    let mut field = took_over_unseen(links, old, object, 0, its);
                    field.run(min(3 * 60));
                    field.deaf = true;
                    set(&mut field, "i004", Ready::Unknown);
                    field.run(min(8 * 60));
                    found.push(((links, old, object, forever), on(&field, "new"), held(&field, "new")));
                }
            }
        }
    }
    rows(found.iter().filter(|it| it.1.is_empty()));
}

/// As `drained_successor_is_left_alone`: the person finds after some minutes that the new machine is of no use, drains it,
/// deletes the Node and keeps the machine to look at it. Or its Node is Ready and not in turn for hours before that.
#[test]
fn successor_drained_within_minutes_is_left_alone() {
    let mut found = Vec::new();
    for links in ["uuid", "address"] {
        for old in [InstanceState::Active, InstanceState::Stopped] {
            for serves in ["5 min", "flaps"] {
                let mut field = fleet(links, 12, roster());
                field.run(min(20));
                let its = field.instances.get_mut("i004").unwrap();
                (its.locked, its.state) = (true, old);
                set(&mut field, "i004", Ready::Unknown);
                field.run(min(2));
                comes(&mut field, links, "new", "vm-new");
                let new = field.nodes.remove("new").unwrap();
                let its = field.nodes.get_mut("i004").unwrap();
                (its.system_uuid, its.addresses) = (new.system_uuid, new.addresses);
                (its.boot_id, its.ready) = (Some("another".into()), Ready::True);
                if serves == "flaps" {
                    for _ in 0..20 {
                        field.run(min(7));
                        set(&mut field, "i004", Ready::False);
                        field.run(Span::from_s(30));
                        set(&mut field, "i004", Ready::True);
                    }
                } else {
                    field.run(min(5));
                }
                let before = made(&field);
                field.deaf = true;
                field.nodes.get_mut("i004").unwrap().cordoned = true;
                field.run(min(1));
                field.nodes.remove("i004");
                field.run(min(5 * 60));
                found.push(((links, old, serves, before), on(&field, "new"), held(&field, "new")));
            }
        }
    }
    rows(found.iter().filter(|it| !it.1.is_empty()));
}

/// As `made_up_node_that_was_ready_amid_a_reboot_ends_no_removal`: the reboot takes a while, as on bare metal, and the other
/// Node's kubelet writes its own status meanwhile. With a token: a second Node that names `i003`, or shows its UUID. Without:
/// the kubelet of `i007` shows the UUID of `i003` on its own Node.
#[test]
fn node_that_speaks_amid_a_reboot_hides_no_drain() {
    let mut found = Vec::new();
    for how in ["nothing", "token, names", "token, shows", "kubelet, shows"] {
        for reboot in [2, 15] {
            for restarts in [false, true] {
                let links = if how == "token, names" { "provider" } else { "uuid" };
                let mut field = fleet(links, 12, roster());
                field.run(min(20));
                let which = match how {
                    "token, names" | "token, shows" => {
                        let mut its = node("made-up", Ready::True);
                        its.provider = match how {
                            "token, names" => Provider::Instance("i003".into()),
                            _ => Provider::Unset,
                        };
                        its.system_uuid = Some("i003".into());
                        field.nodes.insert("made-up".into(), its);
                        "made-up"
                    }
                    "kubelet, shows" => {
                        field.nodes.get_mut("i007").unwrap().system_uuid = Some("i003".into());
                        "i007"
                    }
                    _ => "",
                };
                field.run(min(1));
                set(&mut field, "i003", Ready::Unknown);
                for number in 0..reboot {
                    if let Some(its) = field.nodes.get_mut(which) {
                        its.boot_id = Some(format!("b-{number}").as_str().into());
                    }
                    field.run(min(1));
                }
                set(&mut field, "i003", Ready::True);
                field.run(min(30));
                let before = on(&field, "i003");
                field.deaf = true;
                field.nodes.get_mut("i003").unwrap().cordoned = true;
                field.run(min(2));
                field.nodes.remove("i003");
                if restarts {
                    field = restarted(field, roster());
                    field.deaf = true;
                }
                field.run(min(30));
                if which == "made-up" {
                    field.nodes.remove("made-up");
                } else if let Some(its) = field.nodes.get_mut(which) {
                    its.ready = Ready::Unknown;
                }
                field.run(min(5 * 60));
                // The next process has called nothing yet.
                let known = if restarts { 0 } else { before.len() };
                let after = on(&field, "i003").split_off(known);
                found.push(((how, reboot, restarts, before), after, held(&field, "i003")));
            }
        }
    }
    rows(found.iter().filter(|it| !it.1.is_empty()));
}

/// The same, and the other Node falls silent and stays there.
#[test]
fn node_that_speaks_amid_a_reboot_then_stops_hides_no_drain() {
    let mut found = Vec::new();
    for how in ["token, names", "token, shows"] {
        for reboot in [2, 15] {
            let links = if how == "token, names" { "provider" } else { "uuid" };
            let mut field = fleet(links, 12, roster());
            field.run(min(20));
            let mut its = node("made-up", Ready::True);
            its.provider = match how {
                "token, names" => Provider::Instance("i003".into()),
                _ => Provider::Unset,
            };
            its.system_uuid = Some("i003".into());
            field.nodes.insert("made-up".into(), its);
            field.run(min(1));
            set(&mut field, "i003", Ready::Unknown);
            for number in 0..reboot {
                field.nodes.get_mut("made-up").unwrap().boot_id = Some(format!("b-{number}").as_str().into());
                field.run(min(1));
            }
            set(&mut field, "i003", Ready::True);
            field.run(min(30));
            let before = on(&field, "i003");
            field.deaf = true;
            field.nodes.get_mut("i003").unwrap().cordoned = true;
            field.run(min(2));
            field.nodes.remove("i003");
            field.run(min(30));
            set(&mut field, "made-up", Ready::Unknown);
            field.run(min(5 * 60));
            let after = on(&field, "i003").split_off(before.len());
            found.push(((how, reboot, before), after, held(&field, "i003")));
        }
    }
    rows(found.iter().filter(|it| !it.1.is_empty()));
}

/// Edge sites that are copies of each other: each has one range and one machine, whose Node shows the address of that range and
/// the UUID of the hardware (bare metal, k3s). One more site is made. Its machine joins and serves for good.
#[test]
fn machine_of_the_next_site_serves_on() {
    let mut found = Vec::new();
    for count in [40, 63, 70] {
        for when in ["new", "old"] {
            for names in ["same", "apart"] {
                let mut field = Field::new(roster());
                field.ledger = Ledger::unknown();
                for number in 0..count {
                    site(&mut field, &format!("i{number:03}"), names);
                }
                field.deaf = true;
                field.run(min(20));
                if when == "new" {
                    site(&mut field, "new", names);
                }
                field.run(min(5 * 60));
                let its = made(&field);
                found.push((count, when, names, its.len(), its.into_iter().take(3).collect::<Vec<_>>()));
            }
        }
    }
    let harmed: Vec<_> = found.iter().filter(|it| it.3 > 0).collect();
    assert!(harmed.is_empty(), "(sites, when, names, calls): {harmed:#?}");
}

fn site(field: &mut Field, id: &str, names: &str) {
    field.add_machine(id, true);
    let address: Box<[IpAddr]> = Box::new([[192, 168, 0, 10].into()]);
    let its = field.instances.get_mut(id).unwrap();
    its.addresses = address.clone();
    its.name = "worker".into();
    field.ports.get_mut(id).unwrap().addresses = address.clone();
    let its = field.nodes.get_mut(id).unwrap();
    its.name = match names {
        "same" => format!("worker.site-{id}.example.com").as_str().into(),
        _ => format!("site-{id}").as_str().into(),
    };
    its.addresses = address;
    its.provider = Provider::Unread(format!("k3s://site-{id}").as_str().into());
    its.system_uuid = Some(format!("hardware-{id}").as_str().into());
}

/// `new` joins a fleet whose Nodes lead to their machines by address, and serves for good. A tenant made servers with the
/// cluster's mark alone, in networks of their own, that have the addresses of the range from which the fleet's machines get
/// theirs (a port may have many fixed addresses). One of them contests the new machine; of 66 an address is said to tell
/// nothing.
#[test]
fn servers_with_a_new_machines_address_hide_no_serving_one() {
    let mut found = Vec::new();
    for links in ["uuid", "address"] {
        for count in [0, 1, 60, 66] {
            for named in [false, true] {
                let mut field = fleet(links, 12, roster());
                field.run(min(20));
                comes(&mut field, links, "new", "node-new");
                let node = field.nodes.remove("new").unwrap();
                let (its, port) =
                    (field.instances.remove("new").unwrap(), field.ports.remove("new").unwrap());
                for number in 0..count {
                    let id = format!("t{number:03}");
                    field.add_machine(&id, false);
                    let tenants = field.instances.get_mut(&id).unwrap();
                    tenants.marks = Arc::new([Mark::Tag("k8s-cluster=prod".into())].into());
                    tenants.addresses = its.addresses.clone();
                    tenants.name = if named { "node-new".into() } else { tenants.name.clone() };
                    field.ports.get_mut(&id).unwrap().addresses = its.addresses.clone();
                }
                field.run(min(5));
                field.instances.insert("new".into(), its);
                field.ports.insert("new".into(), port);
                field.run(min(2));
                field.nodes.insert("new".into(), node);
                field.deaf = true;
                field.run(min(5 * 60));
                found.push(((links, count, named), on(&field, "new"), held(&field, "new")));
            }
        }
    }
    rows(found.iter().filter(|it| !it.1.is_empty()));
}

/// As `node_of_a_site_like_all_others_concerns_few_machines`: k3s on edge sites that are copies of each other. Each has one range
/// and one machine, called `worker`. Nodes lead to their machines by UUID. On one of them the kubelet cannot read the UUID of the
/// board (no DMI, as on many arm64 boards). It serves all the time.
#[test]
fn machine_without_a_uuid_among_many_alike_serves_on() {
    let mut found = Vec::new();
    for count in [40, 60, 70] {
        for joins in ["in sight", "before"] {
            let mut field = Field::new(roster());
            field.ledger = Ledger::unknown();
            for number in 0..count {
                let id = format!("i{number:03}");
                site(&mut field, &id, "same");
                field.nodes.get_mut(&id).unwrap().system_uuid = Some(id.as_str().into());
            }
            if joins == "in sight" {
                field.run(min(20));
            }
            site(&mut field, "new", "same");
            field.nodes.get_mut("new").unwrap().system_uuid = None;
            field.deaf = true;
            field.run(min(5 * 60));
            found.push(((count, joins), on(&field, "new"), held(&field, "new")));
        }
    }
    rows(found.iter().filter(|it| !it.1.is_empty()));
}

/// A person cordons `i003`, or pauses it by annotation, and has its kubelet stopped for a quarter of an hour. Its Node is deleted
/// while Reveille is upgraded, and they keep the machine. The kubelet of `i007` shows the UUID of `i003` on its own Node before
/// that, and shows its own again later.
#[test]
fn kubelet_that_shows_a_silent_machine_hides_no_sign_of_it() {
    let mut found = Vec::new();
    for links in ["provider", "uuid"] {
        for shows in [false, true] {
            for sign in ["cordon", "pause"] {
                for restarts in [false, true] {
                    let mut field = fleet(links, 12, roster());
                    field.run(min(20));
                    let own = field.nodes.get_mut("i003").unwrap();
                    (own.cordoned, own.intent.paused) = (sign == "cordon", sign == "pause");
                    field.run(min(2));
                    field.deaf = true;
                    if shows {
                        field.nodes.get_mut("i007").unwrap().system_uuid = Some("i003".into());
                    }
                    field.run(min(1));
                    set(&mut field, "i003", Ready::Unknown);
                    for number in 0..if sign == "pause" { 15 } else { 12 } {
                        let its = field.nodes.get_mut("i007").unwrap();
                        its.boot_id = Some(format!("b-{number}").as_str().into());
                        field.run(min(1));
                    }
                    let before = on(&field, "i003");
                    field.nodes.remove("i003");
                    if restarts {
                        field = restarted(field, roster());
                        field.deaf = true;
                    }
                    field.run(min(30));
                    field.nodes.get_mut("i007").unwrap().system_uuid = Some("i007".into());
                    field.run(min(5 * 60));
                    let known = if restarts { 0 } else { before.len() };
                    let after = on(&field, "i003").split_off(known);
                    found.push(((links, shows, sign, restarts, before), after, held(&field, "i003")));
                }
            }
        }
    }
    rows(found.iter().filter(|it| !it.1.is_empty()));
}

/// As `node_of_a_spare_that_reboots_is_not_cleaned_up`. The spare is no machine of the roster: its server has no marks. The dead
/// `i004`, whose host name it got, is deleted hours later. Then the spare is rebooted for a new kernel, which takes five minutes.
#[test]
fn node_of_an_unlisted_spare_that_reboots_is_not_cleaned_up() {
    let mut found = Vec::new();
    for links in ["uuid", "address"] {
        for stands in [5, 3 * 60] {
            for restarts in [false, true] {
                let mut field = fleet(links, 12, roster());
                field.run(min(20));
                set(&mut field, "i004", Ready::Unknown);
                field.instances.get_mut("i004").unwrap().locked = true;
                field.run(min(2));
                let its = field.nodes.get_mut("i004").unwrap();
                its.system_uuid = Some("foreign".into());
                its.addresses = Box::new([[10, 77, 0, 1].into()]);
                (its.boot_id, its.ready) = (Some("another".into()), Ready::True);
                field.run(min(stands));
                field.delete_machine("i004");
                field.run(min(2));
                if restarts {
                    field = restarted(field, roster());
                }
                field.run(min(3));
                let before = made(&field);
                set(&mut field, "i004", Ready::Unknown);
                field.deaf = true;
                field.run(min(6));
                let calls = made(&field).split_off(before.len());
                found.push(((links, stands, restarts, before), calls, held_node(&field)));
            }
        }
    }
    rows(found.iter().filter(|it| !it.1.is_empty()));
}

fn held_node(field: &Field) -> String {
    let node = field.state.context().cluster.nodes.get("node-i004");
    format!("{:?}", node.and_then(|node| node.link.clone()))
}

/// As `drain_of_a_machine_that_swapped_names_is_its_own`: Reveille is upgraded five minutes after the swap, or amid it. Hours
/// later they drain `node-i003`, on which `i004` runs, and keep that machine; its Node is deleted in our sight, or amid another
/// upgrade.
#[test]
fn drain_of_one_that_swapped_names_at_a_restart_is_its_own() {
    let mut found = Vec::new();
    for links in ["uuid", "address"] {
        for swap in ["amid", "before", "no upgrade"] {
            for restarts in [false, true] {
                for drains in [true, false] {
                    let mut field = fleet(links, 12, roster());
                    field.run(min(20));
                    let (a, b) = (field.nodes["i003"].clone(), field.nodes["i004"].clone());
                    for (id, own, its) in [("i003", &a, &b), ("i004", &b, &a)] {
                        let mut node = its.clone();
                        (node.name, node.uid) = (own.name.clone(), own.uid.clone());
                        node.provider = own.provider.clone();
                        field.nodes.insert(id.into(), node);
                    }
                    if swap == "before" {
                        field.run(min(5));
                    }
                    if swap != "no upgrade" {
                        field = restarted(field, roster());
                    }
                    field.run(min(3 * 60));
                    let before = made(&field);
                    field.deaf = true;
                    if drains {
                        field.nodes.get_mut("i003").unwrap().cordoned = true;
                        field.run(min(5));
                        field.nodes.remove("i003");
                    }
                    if restarts {
                        field = restarted(field, roster());
                        field.deaf = true;
                    }
                    field.run(min(5 * 60));
                    let known = if restarts { 0 } else { before.len() };
                    let calls = made(&field).split_off(known);
                    found.push(((links, swap, restarts, drains, before), calls, held(&field, "i004")));
                }
            }
        }
    }
    rows(found.iter().filter(|it| !it.1.is_empty()));
}

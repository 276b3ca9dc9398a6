//! One kubelet, or one client that makes many things, against the machines of others: what it shows gives no past, ends no
//! removal and takes no machine away.

use std::net::IpAddr;
use std::sync::Arc;

use reveille_core::engine::State;
use reveille_core::event::{ClusterFact, Event};
use reveille_core::model::incident::FaultKind;
use reveille_core::model::instance::{InstanceState, Mark};
use reveille_core::model::lease::Leases;
use reveille_core::model::node::{Node, Provider, Ready};
use reveille_core::model::time::Span;

use super::fixture::{Field, node, port, roster, stamp};
use super::fleets::led_by;
use super::next_process::Ledger;
use super::steps::{made, min, next, off, on, patch, run_with, set, touched};

fn fleet(links: &str, count: usize) -> Field {
    let mut field = led_by(links, count, roster());
    field.run(min(20));
    field
}

/// The Node of `i007`, as its kubelet writes it: it shows the UUID or the address of this machine.
fn showing(field: &Field, links: &str, victim: &str) -> Node {
    let mut its = field.nodes["i007"].clone();
    match links {
        "address" => its.addresses = field.ports[victim].addresses.clone(),
        _ => its.system_uuid = Some(victim.into()),
    }
    its
}

fn drain(field: &mut Field, id: &str) {
    field.nodes.get_mut(id).unwrap().cordoned = true;
    field.run(min(2));
    field.nodes.remove(id);
    field.run(min(5));
}

/// The machine of the kubelet that showed another identity goes in the end.
fn ends(field: &mut Field) {
    field.run(min(60));
    field.delete_machine("i007");
    field.nodes.remove("i007");
    field.run(min(120));
}

/// As `uuid_shown_for_a_moment_gives_no_machine_a_history`. The machine of the kubelet had taken over a Node that names an
/// instance which is gone. For 20 ms it shows the UUID of an old machine that just got its pool's marks.
#[test]
fn uuid_shown_on_an_adopted_node_gives_no_history() {
    let mut found = Vec::new();
    for how in ["nothing", "flash"] {
        let mut field = Field::new(roster()).populate(12);
        for (id, node) in &mut field.nodes {
            node.system_uuid = Some(id.as_str().into());
            node.addresses = field.ports[id].addresses.clone();
        }
        field.nodes.get_mut("i007").unwrap().provider = Provider::Instance("gone".into());
        field.run(min(20));
        let at = field.now - min(15);
        field.add_machine("old", false);
        field.instances.get_mut("old").unwrap().created = Some(stamp(at));
        field.deaf = true;
        field.run(min(2));
        if how == "flash" {
            let own = field.nodes["i007"].clone();
            let other = showing(&field, "uuid", "old");
            patch(&mut field, &other);
            patch(&mut field, &own);
        }
        ends(&mut field);
        found.push((how, on(&field, "old")));
    }
    assert!(found.iter().all(|(_, made)| !made.iter().any(|it| it.starts_with("delete"))), "{found:#?}");
}

/// As `identity_shown_at_a_start_ends_no_removal`. A person drained `i003` and keeps it. The kubelet of `i007` shows its
/// identity for a minute, and then its own machine is powered off from inside, or is in another state for a while.
#[test]
fn kubelet_that_powers_its_own_machine_off_ends_no_removal() {
    let mut found = Vec::new();
    for links in ["uuid", "address"] {
        for how in ["nothing", "stopped", "stopped, silent", "rebooting", "errored", "other"] {
            let mut field = fleet(links, 12);
            drain(&mut field, "i003");
            field.deaf = true;
            let own = field.nodes["i007"].clone();
            let other = showing(&field, links, "i003");
            field.nodes.insert("i007".into(), other);
            field.run(min(1));
            let state = match how {
                "nothing" => InstanceState::Active,
                "rebooting" => InstanceState::Rebooting,
                "errored" => InstanceState::Errored,
                "other" => InstanceState::Other,
                _ => InstanceState::Stopped,
            };
            field.instances.get_mut("i007").unwrap().state = state;
            if how.ends_with("silent") {
                field.run(Span::from_s(40));
                set(&mut field, "i007", Ready::Unknown);
            }
            field.run(min(2));
            field.instances.get_mut("i007").unwrap().state = InstanceState::Active;
            field.nodes.insert("i007".into(), own);
            ends(&mut field);
            found.push((links, how, on(&field, "i003")));
        }
    }
    assert!(found.iter().all(|(.., made)| made.is_empty()), "{found:#?}");
}

/// The same for a past: an old machine whose history is not known.
#[test]
fn kubelet_that_powers_its_own_machine_off_gives_no_history() {
    let mut found = Vec::new();
    for links in ["uuid", "address"] {
        for how in ["nothing", "shown", "stopped", "stopped, silent"] {
            let mut field = fleet(links, 12);
            let at = field.now - min(15);
            field.add_machine("old", false);
            let old = field.instances.get_mut("old").unwrap();
            (old.created, old.name) = (Some(stamp(at)), "vm-old".into());
            field.deaf = true;
            field.run(min(2));
            let own = field.nodes["i007"].clone();
            if how != "nothing" {
                let other = showing(&field, links, "old");
                field.nodes.insert("i007".into(), other);
                field.run(min(1));
            }
            if how.starts_with("stopped") {
                field.instances.get_mut("i007").unwrap().state = InstanceState::Stopped;
                field.run(min(1));
            }
            if how.ends_with("silent") {
                set(&mut field, "i007", Ready::Unknown);
                field.run(min(1));
            }
            field.instances.get_mut("i007").unwrap().state = InstanceState::Active;
            field.nodes.insert("i007".into(), own);
            ends(&mut field);
            found.push((links, how, on(&field, "old")));
        }
    }
    assert!(found.iter().all(|(.., made)| !made.iter().any(|it| it.starts_with("delete"))), "{found:#?}");
}

/// A person drained `i003` and keeps it. An operator takes the marks off `i007`, to look at it undisturbed. Its kubelet shows the
/// identity of `i003` for a few minutes.
#[test]
fn kubelet_of_a_machine_without_marks_ends_no_removal() {
    let mut found = Vec::new();
    for links in ["uuid", "address"] {
        for how in ["nothing", "shown", "unmarked", "unmarked and shown"] {
            let mut field = fleet(links, 12);
            drain(&mut field, "i003");
            field.deaf = true;
            if how.starts_with("unmarked") {
                field.instances.get_mut("i007").unwrap().marks =
                    Arc::new([Mark::Tag("in-quarantine".into())].into());
                field.run(min(5));
            }
            let own = field.nodes["i007"].clone();
            if how.ends_with("shown") {
                let other = showing(&field, links, "i003");
                field.nodes.insert("i007".into(), other);
                field.run(min(3));
            }
            field.nodes.insert("i007".into(), own);
            ends(&mut field);
            found.push((links, how, on(&field, "i003")));
        }
    }
    assert!(found.iter().all(|(.., made)| made.is_empty()), "{found:#?}");
}

/// A person drained `i003` and `i007`, and keeps both: the second one is taken by an attacker, and runs. Its kubelet registers
/// its Node once more, as kubelets may, and shows the identity of `i003` on it.
#[test]
fn drained_kubelet_that_registers_again_ends_no_other_removal() {
    let mut found = Vec::new();
    for links in ["uuid", "address"] {
        for how in ["nothing", "own", "shown"] {
            let mut field = fleet(links, 12);
            let own = field.nodes["i007"].clone();
            let other = showing(&field, links, "i003");
            drain(&mut field, "i003");
            drain(&mut field, "i007");
            field.deaf = true;
            let again = if how == "own" { own } else { other };
            if how != "nothing" {
                field.nodes.insert("i007".into(), Node { uid: "again".into(), cordoned: false, ..again });
                field.run(min(3));
                field.nodes.remove("i007");
            }
            field.run(min(60));
            found.push((links, how, on(&field, "i003")));
        }
    }
    assert!(found.iter().all(|(.., made)| made.is_empty()), "{found:#?}");
}

/// A person drained `i003` and keeps it. A machine that an attacker owns joins for the first time, and its kubelet registers with
/// the identity of `i003`, under its own name.
#[test]
fn first_registration_of_another_machine_ends_no_removal() {
    let mut found = Vec::new();
    for links in ["uuid", "address"] {
        for how in ["nothing", "shown", "shown, named alike"] {
            let mut field = fleet(links, 12);
            let other = Node { uid: "new".into(), name: "node-new".into(), ..showing(&field, links, "i003") };
            drain(&mut field, "i003");
            field.deaf = true;
            field.add_machine("new", false);
            let name = if how.ends_with("alike") { "node-new" } else { "vm-new" };
            field.instances.get_mut("new").unwrap().name = name.into();
            field.run(min(2));
            if how != "nothing" {
                field.nodes.insert("new".into(), other.clone());
                field.run(min(3));
                let mut its = other;
                its.system_uuid = Some(if links == "uuid" { "new" } else { "hardware-new" }.into());
                its.addresses = field.ports["new"].addresses.clone();
                field.nodes.insert("new".into(), its);
            }
            ends(&mut field);
            found.push((links, how, on(&field, "i003")));
        }
    }
    assert!(found.iter().all(|(.., made)| made.is_empty()), "{found:#?}");
}

/// The kubelet of `i007` shows the identity of another machine. A person drains the Node and deletes it, and keeps `i007`.
/// The other one, which has its own Node and joined as that, dies: it is to be repaired; and `i007` is to be left alone.
#[test]
fn drain_of_a_node_that_shows_another_machine_is_its_own() {
    let mut found = Vec::new();
    for links in ["provider", "uuid", "address"] {
        for victim_dies in ["before", "after"] {
            for shows in [false, true] {
                let mut field = fleet(links, 12);
                field.deaf = true;
                if victim_dies == "before" {
                    set(&mut field, "i003", Ready::Unknown);
                    field.run(Span::from_s(20));
                }
                if shows {
                    let other = showing(&field, links, "i003");
                    field.nodes.insert("i007".into(), other);
                    field.run(Span::from_s(20));
                }
                field.nodes.get_mut("i007").unwrap().cordoned = true;
                field.run(Span::from_s(20));
                field.nodes.remove("i007");
                if victim_dies == "after" {
                    set(&mut field, "i003", Ready::Unknown);
                }
                field.run(min(120));
                found.push((links, victim_dies, shows, on(&field, "i003").len(), on(&field, "i007")));
            }
        }
    }
    let fine = found.iter().all(|(_, _, _, repaired, on_drained)| *repaired > 0 && on_drained.is_empty());
    assert!(fine, "(links, dies, shows, acts on the dead one, on the drained one): {found:#?}");
}

/// One list of leases is empty, and no other one comes: the right to list them is taken away. Nothing that is dead is repaired.
#[test]
fn one_empty_list_of_leases_stops_no_repair_for_ever() {
    let mut found = Vec::new();
    for first in ["none", "empty", "full"] {
        let mut field = Field::new(roster()).populate(10);
        // It comes before the first list of nodes.
        field.now = field.now + Span::from_s(10);
        field.list_cloud();
        let empty: Leases = std::iter::empty().collect();
        match first {
            "empty" => field.feed(Event::Cluster(ClusterFact::Leases(empty))),
            "full" => field.list_leases(),
            _ => {}
        }
        run_with(&mut field, min(20), |_| None);
        set(&mut field, "i003", Ready::Unknown);
        field.deaf = true;
        run_with(&mut field, min(60), |_| None);
        let held = field.case("i003", FaultKind::NotReady).map(|_| field.held("i003", FaultKind::NotReady));
        found.push((first, touched(&field, "i003"), held));
    }
    assert!(found.iter().all(|(_, is_touched, _)| *is_touched), "{found:#?}");
}

/// The same where the empty list is believed after half an hour, of kubelets that keep no leases.
#[test]
fn last_list_of_no_leases_stops_no_repair_for_ever() {
    let mut field = Field::new(roster()).populate(10);
    let empty = || -> Leases { std::iter::empty().collect() };
    run_with(&mut field, min(30), |_| Some(empty()));
    run_with(&mut field, min(2), |_| Some(empty()));
    // The API server is away for the lists of leases alone, and then one comes, and no other.
    run_with(&mut field, min(5), |_| None);
    field.now = field.now + Span::from_s(10);
    field.feed(Event::Cluster(ClusterFact::Leases(empty())));
    run_with(&mut field, min(5), |_| None);
    set(&mut field, "i003", Ready::Unknown);
    field.deaf = true;
    run_with(&mut field, min(60), |_| None);
    let held = field.case("i003", FaultKind::NotReady).map(|_| field.held("i003", FaultKind::NotReady));
    assert!(touched(&field, "i003"), "{held:?}");
}

/// A Node that shows the addresses of several machines is a sign of none (docs/SAFETY.md). Where Nodes lead to their machines by
/// UUID or address, one that hides its own shows those of five machines; the first of them is dead, or never joined.
#[test]
fn addresses_of_many_machines_vouch_for_none() {
    let mut found = Vec::new();
    for links in ["uuid", "address"] {
        for what in ["dead", "never joined"] {
            for shows in [false, true] {
                let mut field = fleet(links, 12);
                let victim = if what == "dead" { "i010" } else { "new" };
                if what == "dead" {
                    set(&mut field, victim, Ready::Unknown);
                } else {
                    field.add_machine(victim, false);
                    let its = field.instances.get_mut(victim).unwrap();
                    its.name = "vm-new".into();
                    its.addresses = field.ports[victim].addresses.clone();
                }
                if shows {
                    let mut addresses = field.ports[victim].addresses.to_vec();
                    addresses.extend(
                        [1, 2, 4, 5].map(|number| field.ports[&format!("i{number:03}")].addresses[0]),
                    );
                    let its = field.nodes.get_mut("i007").unwrap();
                    (its.system_uuid, its.addresses) = (None, addresses.into_iter().collect());
                }
                field.deaf = true;
                field.run(min(60));
                found.push((links, what, shows, touched(&field, victim)));
            }
        }
    }
    assert!(found.iter().all(|(.., is_touched)| *is_touched), "(links, victim, shows, touched): {found:#?}");
}

/// One kubelet of a small fleet shows the addresses of two others that serve. Another machine dies.
#[test]
fn addresses_of_two_that_serve_freeze_no_small_fleet() {
    let mut found = Vec::new();
    for count in [8, 10, 12] {
        for shows in [0, 2] {
            let mut field = fleet("address", count);
            if shows > 0 {
                let both = ["i001", "i002"].map(|id| field.ports[id].addresses[0]);
                field.nodes.get_mut("i007").unwrap().addresses = both.into();
            }
            field.run(min(2));
            set(&mut field, "i003", Ready::Unknown);
            field.deaf = true;
            field.run(min(60));
            let held =
                field.case("i003", FaultKind::NotReady).map(|_| field.held("i003", FaultKind::NotReady));
            found.push((count, shows, touched(&field, "i003"), held));
        }
    }
    assert!(found.iter().all(|(_, _, is_touched, _)| *is_touched), "{found:#?}");
}

/// Which machine each Node leads to.
fn links_of(state: &State) -> Vec<(String, Option<String>)> {
    let nodes = &state.context().cluster.nodes;
    nodes
        .iter()
        .map(|(name, seen)| (name.to_string(), seen.link.as_ref().map(|link| link.instance.to_string())))
        .collect()
}

/// The kubelet of `i007` shows its own address, that of `i003`, and one that no machine has. Then a machine gets that one: its
/// Node shows those of three, and takes no Node from its machine. A process that begins now says so.
#[test]
fn links_are_those_that_the_next_process_finds() {
    let mut found = Vec::new();
    for comes in [true, false] {
        let mut field = fleet("address", 12);
        if !comes {
            field.add_machine("new", false);
            field.instances.get_mut("new").unwrap().name = "vm-new".into();
            field.run(min(1));
        }
        let mut shown = field.nodes["i007"].addresses.to_vec();
        let free: IpAddr = port("new", &[]).addresses[0];
        shown.extend([field.ports["i003"].addresses[0], free]);
        field.nodes.get_mut("i007").unwrap().addresses = shown.into_iter().collect();
        field.run(min(1));
        if comes {
            field.add_machine("new", false);
            field.instances.get_mut("new").unwrap().name = "vm-new".into();
        } else {
            field.delete_machine("new");
        }
        field.run(min(5));
        let runs = links_of(&field.state);
        let mut next = off(field, Span::from_s(5), roster());
        next.run(min(1));
        let differ: Vec<_> =
            links_of(&next.state).into_iter().zip(runs).filter(|(next, runs)| next != runs).collect();
        found.push((comes, differ));
    }
    assert!(found.iter().all(|(_, differ)| differ.is_empty()), "(next process, this process): {found:#?}");
}

/// A Node that names an instance which is gone shows the UUID of each server in turn that a client makes and deletes.
#[test]
fn servers_that_come_and_go_leave_nothing_behind() {
    let mut field = Field::new(roster()).populate(10);
    field.run(min(5));
    let mut its = node("evil", Ready::True);
    its.provider = Provider::Instance("gone".into());
    let mut sizes = Vec::new();
    for round in 0..6 {
        for batch in 0..8 {
            let ids: Vec<String> =
                (0..100).map(|number| format!("server-{round}-{batch}-{number:02}")).collect();
            ids.iter().for_each(|id| field.add_machine(id, false));
            field.now = field.now + Span::from_s(10);
            field.list_cloud();
            for id in &ids {
                its.system_uuid = Some(id.as_str().into());
                field.now = field.now + Span::from_ms(20);
                field.feed(Event::Cluster(ClusterFact::Applied(Arc::new(its.clone()))));
            }
            ids.iter().for_each(|id| field.delete_machine(id));
            for _ in 0..6 {
                field.now = field.now + Span::from_s(15);
                field.list_cloud();
                field.sync_nodes();
            }
        }
        let text = format!("{:?}", field.state);
        let homes = text.find("homes: Homes").map_or("", |at| &text[at..]);
        let homes = homes.split("unproved:").next().unwrap_or_default();
        sizes.push((text.matches("server-").count(), homes.matches("server-").count()));
    }
    assert!(
        sizes[5].0 <= sizes[2].0 + 100,
        "how often the state names servers that are gone, and its homes, each 800 servers: {sizes:?}"
    );
}

/// A machine's host is dead, and its cloud shows it ACTIVE for ever. A person makes another machine of that name, which takes
/// over its Node on k3s and serves for hours. A person cordons it; it is deleted while Reveille is restarted.
#[test]
fn drain_of_a_successor_is_known_to_the_next_process() {
    let mut found = Vec::new();
    for old in [InstanceState::Stopped, InstanceState::Active] {
        let mut field = fleet("uuid", 12);
        let name = "node-i004";
        for (id, instance) in &mut field.instances {
            instance.name = format!("node-{id}").as_str().into();
        }
        field.run(min(2));
        let mut its = field.nodes["i004"].clone();
        set(&mut field, "i004", Ready::Unknown);
        let dead = field.instances.get_mut("i004").unwrap();
        (dead.locked, dead.state) = (true, old);
        field.run(min(2));
        field.add_machine("new", false);
        field.instances.get_mut("new").unwrap().name = name.into();
        field.run(min(2));
        its.system_uuid = Some("new".into());
        its.addresses = field.ports["new"].addresses.clone();
        its.boot_id = Some("another".into());
        field.nodes.insert("i004".into(), its);
        field.run(min(3 * 60));
        let before = made(&field);
        field.nodes.get_mut("i004").unwrap().cordoned = true;
        field.run(min(5));
        let last = field.now;
        field.now = field.now + min(2);
        field.nodes.remove("i004");
        let mut field = next(field, roster(), last);
        field.deaf = true;
        field.ledger = Ledger::unknown();
        field.run(min(60));
        found.push((old, before, on(&field, "new")));
    }
    assert!(found.iter().all(|(.., made)| made.is_empty()), "{found:#?}");
}

/// A client makes one server with the cluster's marks, in networks of its own, that has the addresses of 29 machines.
#[test]
fn server_with_addresses_of_many_machines_stops_no_repair() {
    let mut found = Vec::new();
    for links in ["uuid", "address"] {
        for pool in [true, false] {
            for shows in [0, 29] {
                let mut field = fleet(links, 40);
                field.ledger = Ledger::unknown();
                if shows > 0 {
                    field.add_machine("evil", false);
                    let shown =
                        (10..10 + shows).map(|number| field.ports[&format!("i{number:03}")].addresses[0]);
                    let shown: Box<[IpAddr]> = shown.collect();
                    let its = field.instances.get_mut("evil").unwrap();
                    (its.name, its.addresses) = ("vm-evil".into(), shown);
                    if !pool {
                        its.marks = Arc::new([Mark::Tag("k8s-cluster=prod".into())].into());
                    }
                }
                field.run(min(2));
                for id in ["i010", "i003"] {
                    set(&mut field, id, Ready::Unknown);
                }
                field.deaf = true;
                field.run(min(120));
                found.push((links, pool, shows, ["i010", "i003"].map(|id| touched(&field, id))));
            }
        }
    }
    assert!(found.iter().all(|(.., touched)| touched.iter().all(|it| *it)), "{found:#?}");
}

/// Bare metal without a cloud controller: no Node has a provider ID, and a kubelet may write one into its own Node, once. That of
/// `i007` names an old machine that just got its pool's marks, and falls silent later.
#[test]
fn provider_id_that_is_written_late_gives_no_history() {
    let mut found = Vec::new();
    for how in ["nothing", "written", "written, silent"] {
        let mut field = fleet("address", 12);
        field.nodes.values_mut().for_each(|node| node.provider = Provider::Unset);
        field.run(min(20));
        let at = field.now - min(15);
        field.add_machine("old", false);
        let old = field.instances.get_mut("old").unwrap();
        (old.created, old.name) = (Some(stamp(at)), "vm-old".into());
        field.deaf = true;
        field.run(min(2));
        if how != "nothing" {
            field.nodes.get_mut("i007").unwrap().provider = Provider::Instance("old".into());
            field.run(min(1));
        }
        if how.ends_with("silent") {
            set(&mut field, "i007", Ready::Unknown);
        }
        field.run(min(150));
        found.push((how, on(&field, "old")));
    }
    assert!(found.iter().all(|(_, made)| !made.iter().any(|it| it.starts_with("delete"))), "{found:#?}");
}

/// As `untagged_machine_whose_node_names_no_instance_is_left_alone`. Before it gets its tags, a client makes and deletes Nodes of
/// made-up names, each of them cordoned.
#[test]
fn made_up_nodes_push_out_no_drain_of_an_untagged_machine() {
    let mut found = Vec::new();
    for count in [0, 1000, 1100] {
        let mut field = Field::new(roster()).populate(10);
        field.run(min(20));
        field.add_machine("new", true);
        let marks = std::mem::take(&mut field.instances.get_mut("new").unwrap().marks);
        let its = field.nodes.get_mut("new").unwrap();
        its.provider = Provider::Unread("k3s://node-new".into());
        its.system_uuid = Some("hardware-new".into());
        field.run(min(60));
        set(&mut field, "new", Ready::True);
        field.nodes.get_mut("new").unwrap().cordoned = true;
        field.run(min(2));
        field.nodes.remove("new");
        field.run(min(1));
        for number in 0..count {
            let mut evil = node(&format!("evil-{number:05}"), Ready::Unknown);
            (evil.provider, evil.cordoned) = (Provider::Unset, true);
            let (name, uid) = (evil.name.clone(), evil.uid.clone());
            patch(&mut field, &evil);
            field.feed(Event::Cluster(ClusterFact::Deleted { name, uid }));
        }
        field.run(min(15));
        field.instances.get_mut("new").unwrap().marks = marks;
        field.deaf = true;
        field.run(min(90));
        found.push((count, made(&field)));
    }
    assert!(found.iter().all(|(_, made)| made.is_empty()), "{found:#?}");
}

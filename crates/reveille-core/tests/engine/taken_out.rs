//! Machines that a person took out, where what tells of that is overlaid: by events heard at once, by a written removal, by a
//! successor of their name, by a Node that shows nothing but the name; and what is no reason to hold one for ever.

use reveille_core::engine::{Restored, State};
use reveille_core::model::instance::InstanceState;
use reveille_core::model::node::{Provider, Ready};
use reveille_core::model::time::Span;

use super::fixture::{Field, node, roster, stamp};
use super::fleets::ten as fleet;
use super::next_process::Ledger;
use super::steps::{api_down, fleet_with_uuids, made, min, off, roster_with, say, touched};

const ONE: &str = "i004";

/// A Node as of k3s on bare metal, of this name.
fn k3s(field: &mut Field, id: &str, name: &str, address: Option<&str>) {
    let mut its = node(id, Ready::True);
    its.name = name.into();
    its.provider = Provider::Unread(format!("k3s://{name}").as_str().into());
    its.system_uuid = Some(format!("hardware-{id}").as_str().into());
    its.addresses = match address {
        Some(address) => Box::new([address.parse().unwrap()]),
        None => field.ports[id].addresses.clone(),
    };
    field.nodes.insert(id.into(), its);
}

/// A process starts. Its API server shows an old list of nodes for two minutes. The events of the last hour are heard at once:
/// the node was uncordoned half an hour ago (after a first maintenance), and cordoned ten minutes ago, then deleted.
#[test]
fn uncordon_before_a_cordon_takes_it_not_back() {
    let mut found = Vec::new();
    for (uncordoned_before, apart_ms) in [(false, 0), (true, 0), (true, 1)] {
        let mut field = off(fleet(), min(40), roster());
        let now = field.now;
        field.sync_nodes();
        if uncordoned_before {
            say(&mut field, "node-i004", "NodeSchedulable", None, now - min(30));
            field.now = field.now + Span::from_ms(apart_ms);
        }
        say(&mut field, "node-i004", "NodeNotSchedulable", None, now - min(10));
        field.run(min(2));
        field.nodes.remove(ONE);
        field.run(min(6 * 60));
        found.push((uncordoned_before, apart_ms, made(&field)));
    }
    assert!(found.iter().all(|(.., made)| made.is_empty()), "{found:#?}");
}

/// The same in a process that lives: its watch of events is down for a while and then listed again; its watch of nodes lags.
#[test]
fn uncordon_before_a_cordon_heard_at_once_later_holds() {
    let mut found = Vec::new();
    for uncordoned_before in [false, true] {
        let mut field = fleet();
        let now = field.now;
        if uncordoned_before {
            say(&mut field, "node-i004", "NodeSchedulable", None, now - min(10));
        }
        say(&mut field, "node-i004", "NodeNotSchedulable", None, now - min(2));
        field.watch_for(min(2));
        field.nodes.remove(ONE);
        field.run(min(6 * 60));
        found.push((uncordoned_before, made(&field)));
    }
    assert!(found.iter().all(|(_, made)| made.is_empty()), "{found:#?}");
}

/// As `written_uncordon_takes_no_cordon_back`: a client writes that another object of that name was removed.
#[test]
fn written_removal_of_another_object_takes_no_cordon_back() {
    let mut found = Vec::new();
    for forged in [false, true] {
        let mut field = fleet();
        let now = field.now;
        say(&mut field, "node-i004", "NodeNotSchedulable", None, now);
        field.now = field.now + Span::from_ms(5);
        if forged {
            say(&mut field, "node-i004", "RemovingNode", Some("made-up"), now);
        }
        field.nodes.remove(ONE);
        field.run(min(6 * 60));
        found.push((forged, made(&field)));
    }
    assert!(found.iter().all(|(_, made)| made.is_empty()), "{found:#?}");
}

/// As `drained_machine_whose_name_a_successor_took_is_held`, of bare metal or k3s: Nodes name no instance.
#[test]
fn drained_bare_metal_whose_name_a_successor_took_is_held() {
    let mut found = Vec::new();
    for y in ["is scaled down", "dies", "dies and is scaled down"] {
        let mut field = Field::new(roster()).populate(10);
        for id in field.nodes.keys().cloned().collect::<Vec<_>>() {
            k3s(&mut field, &id, &format!("node-{id}"), None);
        }
        field.run(min(20));
        let made_at = field.now + min(3 * 60);
        let mut field = off(field, min(5 * 60), roster());
        field.add_machine("new", false);
        field.instances.get_mut("new").unwrap().created = Some(stamp(made_at));
        field.instances.get_mut("new").unwrap().name = "node-i004".into();
        field.nodes.remove(ONE);
        k3s(&mut field, "new", "node-i004", None);
        field.run(min(60));
        let before = made(&field);
        if y.starts_with("dies") {
            field.nodes.get_mut("new").unwrap().ready = Ready::Unknown;
            field.run(min(30));
        }
        if y.ends_with("scaled down") {
            field.delete_machine("new");
            field.run(min(2));
            field.nodes.remove("new");
        }
        field.run(min(6 * 60));
        found.push((y, before, touched(&field, ONE), made(&field)));
    }
    assert!(found.iter().all(|(_, _, is_touched, _)| !is_touched), "{found:#?}");
}

/// k3s over a VPN: the Node's address is the VPN's, its UUID the hardware's, and it is called as the machine or by a qualified
/// name. The machine was seen being made, serves for an hour, and a person drains it, all in our sight.
#[test]
fn machine_under_node_of_a_vpn_is_left_alone_once_drained() {
    let mut found = Vec::new();
    for name in ["node-new", "node-new.example.com"] {
        for told in [false, true] {
            let mut field = fleet();
            field.add_machine("new", false);
            field.instances.get_mut("new").unwrap().state = InstanceState::Building;
            field.run(min(2));
            field.instances.get_mut("new").unwrap().state = InstanceState::Active;
            field.run(min(2));
            k3s(&mut field, "new", name, Some("100.64.0.5"));
            field.run(min(60));
            let before = made(&field);
            field.nodes.get_mut("new").unwrap().cordoned = true;
            if told {
                let at = field.now;
                say(&mut field, name, "NodeNotSchedulable", None, at);
            }
            field.run(min(2));
            field.nodes.remove("new");
            field.run(min(6 * 60));
            found.push((name, told, before, made(&field)));
        }
    }
    assert!(found.iter().all(|(.., made)| made.is_empty()), "{found:#?}");
}

/// As `node_that_came_back_while_unmarked_counts_as_back`, where it comes back under another name: a person installs it once
/// more.
#[test]
fn node_back_under_another_name_while_unmarked_counts() {
    let mut field = fleet();
    field.instances.get_mut(ONE).unwrap().state = InstanceState::Stopped;
    field.nodes.get_mut(ONE).unwrap().ready = Ready::Unknown;
    field.run(min(1));
    field.nodes.remove(ONE);
    field.run(min(1));
    let marks = std::mem::take(&mut field.instances.get_mut(ONE).unwrap().marks);
    field.run(min(2));
    field.instances.get_mut(ONE).unwrap().state = InstanceState::Active;
    let mut again = node(ONE, Ready::True);
    (again.name, again.uid) = ("installed-again".into(), "uid-again".into());
    field.nodes.insert(ONE.into(), again);
    field.run(min(60));
    let mut field = off(field, min(5 * 60), roster());
    field.nodes.remove(ONE);
    field.run(min(30));
    field.instances.get_mut(ONE).unwrap().marks = marks;
    field.run(min(6 * 60));
    assert!(!touched(&field, ONE), "{:?}", made(&field));
}

/// As `escalation_begins_again_after_three_days`, where it is not known when the last process was alive, or the process slept,
/// or reached no API server.
#[test]
fn escalation_begins_again_after_any_gap_of_days() {
    let mut found = Vec::new();
    for how in ["off", "card lost", "asleep", "api down"] {
        let mut field = fleet();
        field.nodes.get_mut(ONE).unwrap().ready = Ready::Unknown;
        field.run_until(min(120), |field| field.calls.len() == 2);
        field.run(min(10));
        let before = made(&field).len();
        field.nodes.get_mut(ONE).unwrap().boot_id = Some("another".into());
        let (field, before) = match how {
            "off" => (off(field, min(3 * 24 * 60), roster()), 0),
            "card lost" => {
                field.now = field.now + min(3 * 24 * 60);
                let how = Restored { last_alive: None, ..field.next_begins() };
                let mut next = Field::with(State::restore(roster(), how, field.records.clone()));
                (next.now, next.records, next.made) = (field.now, field.records, field.made);
                (next.instances, next.ports, next.nodes) = (field.instances, field.ports, field.nodes);
                (next, 0)
            }
            "asleep" => {
                field.now = field.now + min(3 * 24 * 60);
                (field, before)
            }
            _ => {
                api_down(&mut field, min(12 * 60));
                (field, before)
            }
        };
        let mut field = field;
        field.run(min(3 * 60));
        found.push((how, made(&field)[before..].to_vec()));
    }
    assert!(
        found.iter().all(|(_, made)| made.first().is_some_and(|it| !it.contains("delete"))),
        "{found:#?}"
    );
}

/// A build hangs. The API server is away for two hours, or no process runs for a night. It is still being built: it never ran.
#[test]
fn build_that_hangs_over_a_gap_is_deleted() {
    let mut found = Vec::new();
    for how in ["nothing", "api down", "night", "asleep"] {
        for addressed in [true, false] {
            let mut field = fleet();
            field.add_machine("new", false);
            field.instances.get_mut("new").unwrap().state = InstanceState::Building;
            if !addressed {
                field.ports.remove("new");
            }
            field.run(min(5));
            match how {
                "api down" => api_down(&mut field, min(2 * 60)),
                "night" => field = off(field, min(5 * 60), roster()),
                "asleep" => field.now = field.now + min(5 * 60),
                _ => {}
            }
            // Until the cloud is listed, the ledger holds the birth, and the gap.
            field.ledger = Ledger::unknown();
            field.run(min(12 * 60));
            found.push((how, addressed, touched(&field, "new")));
        }
    }
    assert!(found.iter().all(|(.., is_touched)| *is_touched), "{found:#?}");
}

/// The same, where the build ends after the gap, and the machine does not join.
#[test]
fn machine_built_until_after_a_gap_is_repaired() {
    let mut found = Vec::new();
    for outage in [false, true] {
        let slow = roster_with(|pool| pool.deadlines.build_within = min(3 * 60));
        let mut field = Field::new(slow).populate(10);
        field.run(min(20));
        field.add_machine("new", false);
        field.instances.get_mut("new").unwrap().state = InstanceState::Building;
        field.run(min(5));
        if outage {
            api_down(&mut field, min(70));
            field.ledger = Ledger::unknown();
        }
        field.run(min(2));
        field.instances.get_mut("new").unwrap().state = InstanceState::Active;
        field.run(min(12 * 60));
        found.push((outage, touched(&field, "new")));
    }
    assert!(found.iter().all(|(_, is_touched)| *is_touched), "{found:#?}");
}

/// A machine's host is dead, and its cloud shows it ACTIVE all the same, as Nova does. A person makes another machine of that
/// name, which takes over the Node that is there, serves for hours, and is drained by a person; or another client deletes the
/// Node.
#[test]
fn machine_that_took_over_the_node_of_one_shown_as_active() {
    let mut found = Vec::new();
    for old in [InstanceState::Stopped, InstanceState::Active] {
        for drained in [true, false] {
            let mut field = fleet_with_uuids();
            let mut its = field.nodes["i004"].clone();
            field.nodes.get_mut("i004").unwrap().ready = Ready::Unknown;
            field.instances.get_mut("i004").unwrap().locked = true;
            field.instances.get_mut("i004").unwrap().state = old;
            field.run(min(2));
            field.add_machine("new", false);
            let made_name = field.instances["i004"].name.clone();
            field.instances.get_mut("new").unwrap().name = made_name;
            field.run(min(2));
            its.system_uuid = Some("new".into());
            its.addresses = field.ports["new"].addresses.clone();
            its.boot_id = Some("another".into());
            field.nodes.insert("i004".into(), its);
            field.run(min(3 * 60));
            let before = made(&field);
            if drained {
                field.nodes.get_mut("i004").unwrap().cordoned = true;
                field.run(min(5));
            }
            field.nodes.remove("i004");
            field.deaf = true;
            field.run(min(3 * 60));
            found.push((old, drained, before, made(&field)));
        }
    }
    // A Node that another client deletes without a sign may lead to a repair: that is as documented.
    assert!(found.iter().all(|(_, drained, _, made)| !drained || made.is_empty()), "{found:#?}");
}

//! What people and programs write on a Node stands when that Node is gone, whichever process saw it, and on whichever of the
//! machine's Nodes it stood.

use std::sync::Arc;

use reveille_core::effect::Call;
use reveille_core::event::{ClusterFact, Event};
use reveille_core::model::incident::{FaultKind, MachineKey};
use reveille_core::model::instance::InstanceState;
use reveille_core::model::node::{Asks, Node, Ready};
use reveille_core::model::time::Span;
use reveille_core::record::Record;

use super::fixture::{CLOUD, Field, node, roster};
use super::steps::cloud_deletes;

/// What people and programs write on a Node, and what takes it off again.
fn write_on(node: &mut Node, sign: &str, stands: bool) {
    match sign {
        "pause" => node.intent.paused = stands,
        "keep" => {
            let asks = Asks { keep: Some(true), ..Asks::default() };
            node.intent.asks = stands.then(|| Box::new(asks));
        }
        "leaving" => node.intent.leaving = stands.then(|| "medik8s.io/drain".into()),
        _ => node.cordoned = stands,
    }
}

/// It is deleted while no process runs: only the ledger tells the next one what stood on it.
#[test]
fn marked_node_deleted_while_no_process_ran_left_on_purpose() {
    for sign in ["pause", "keep", "leaving", "cordon"] {
        for (stands, rotated) in [(true, false), (true, true), (false, false), (false, true)] {
            let mut field = Field::new(roster()).populate(10);
            field.run(Span::from_min(20));
            write_on(field.nodes.get_mut("i004").unwrap(), sign, true);
            field.run(Span::from_min(20));
            write_on(field.nodes.get_mut("i004").unwrap(), sign, stands);
            field.run(Span::from_min(5));
            if rotated {
                field.records = field.state.checkpoint();
            }
            let gone = field.nodes.remove("i004").unwrap();
            let mut field = field.restarted(roster());
            cloud_deletes(&mut field, &gone);
            field.run(Span::from_min(60));
            let context = format!("{sign} stands: {stands}, rotated: {rotated}: {:?}", field.calls);
            assert_eq!(field.calls.is_empty(), stands, "{context}");
            assert_eq!(field.case("i004", FaultKind::StuckLeaving).is_some(), stands, "{context}");
        }
    }
}

/// A successor's kubelet took over the Node of its name, which still names the machine before it.
#[test]
fn node_taken_over_by_successor_may_be_removed_on_purpose() {
    for sign in ["pause", "keep", "leaving", "cordon"] {
        let mut field = Field::new(roster()).populate(10);
        field.run(Span::from_min(20));
        field.delete_machine("i004");
        field.add_machine("i900", false);
        field.instances.get_mut("i900").unwrap().name = "node-i004".into();
        let node = field.nodes.get_mut("i004").unwrap();
        (node.system_uuid, node.boot_id) = (Some("i900".into()), Some("boot-i900".into()));
        field.run(Span::from_min(30));
        assert_eq!(field.calls, [], "{sign}");
        write_on(field.nodes.get_mut("i004").unwrap(), sign, true);
        field.run(Span::from_min(5));
        field.nodes.remove("i004");
        field.run(Span::from_min(120));
        assert_eq!(field.calls, [], "{sign}");
    }
}

/// A pause stands on the Node that its kubelet took over, or on the second one that names the machine.
#[test]
fn pause_counts_on_every_node_that_a_machine_has() {
    for taken_over in [true, false] {
        let mut field = Field::new(roster()).populate(10);
        field.run(Span::from_min(20));
        let id = if taken_over { "i900" } else { "i004" };
        if taken_over {
            field.add_machine("i900", false);
            field.delete_machine("i004");
            field.instances.get_mut("i900").unwrap().name = "node-i004".into();
            field.nodes.get_mut("i004").unwrap().system_uuid = Some("i900".into());
            field.run(Span::from_min(30));
        } else {
            let mut twin = node("i004", Ready::Unknown);
            (twin.name, twin.uid) = ("node-i004-old".into(), "uid-old".into());
            field.nodes.insert("twin".into(), twin);
        }
        let paused = if taken_over { "i004" } else { "twin" };
        field.nodes.get_mut(paused).unwrap().intent.paused = true;
        field.run(Span::from_min(5));
        field.ports.get_mut(id).unwrap().groups = Box::new(["g-other".into()]);
        field.run(Span::from_min(30));
        assert_eq!(field.calls, [], "taken over: {taken_over}");
        field.nodes.get_mut(paused).unwrap().intent.paused = false;
        field.run(Span::from_min(30));
        assert!(!field.calls.is_empty(), "taken over: {taken_over}: {:?}", field.machine_state(id));
    }
}

/// Its paused Node is deleted while no process runs, and another machine registers under that name, and goes: what stood on
/// that one's Node unsays nothing.
#[test]
fn node_of_a_namesake_unsays_no_sign() {
    let mut field = Field::new(roster()).populate(10);
    field.run(Span::from_min(20));
    write_on(field.nodes.get_mut("i004").unwrap(), "pause", true);
    field.run(Span::from_min(20));
    field.nodes.remove("i004");
    let mut namesakes = node("i901", Ready::True);
    namesakes.name = "node-i004".into();
    field.add_machine("i901", false);
    field.nodes.insert("i901".into(), namesakes);
    let mut field = field.restarted(roster());
    field.run(Span::from_min(10));
    field.nodes.remove("i901");
    field.delete_machine("i901");
    field.run(Span::from_min(120));
    assert_eq!(field.calls, [], "{:?}", field.machine_state("i004"));
}

/// Who took it out uses it for something else, with another group. It gets the pool's when it is back.
#[test]
fn machine_taken_out_on_purpose_regains_group_on_return() {
    for sign in ["pause", "keep", "leaving", "cordon"] {
        let mut field = Field::new(roster()).populate(10);
        field.run(Span::from_min(20));
        let there = field.nodes["i004"].clone();
        write_on(field.nodes.get_mut("i004").unwrap(), sign, true);
        field.run(Span::from_min(2));
        field.nodes.remove("i004");
        field.run(Span::from_min(2));
        field.ports.get_mut("i004").unwrap().groups = Box::new(["g-other".into()]);
        field.run(Span::from_min(40));
        assert_eq!(field.calls, [], "{sign}");
        assert!(field.case("i004", FaultKind::GroupMissing).is_none(), "{sign}");
        field.nodes.insert("i004".into(), there);
        field.run(Span::from_min(2));
        assert!(matches!(field.calls[..], [Call::SetPortGroups(_)]), "{sign}: {:?}", field.calls);
    }
}

/// It serves in ERROR, and something stands on its Node. The next process hears of its cloud before it hears of Nodes.
#[test]
fn node_that_is_not_listed_yet_was_not_removed() {
    for (sign, goes) in [("pause", false), ("cordon", false), ("pause", true), ("cordon", true)] {
        let mut field = Field::new(roster()).populate(10);
        field.run(Span::from_min(20));
        field.instances.get_mut("i004").unwrap().state = InstanceState::Errored;
        write_on(field.nodes.get_mut("i004").unwrap(), sign, true);
        field.run(Span::from_min(20));
        if goes {
            field.nodes.remove("i004");
        }
        let mut field = field.restarted(roster());
        let before = field.records.len();
        field.list_cloud();
        field.run(Span::from_min(2));
        let left = |record: &&Record| matches!(record, Record::Left { .. } | Record::OthersActed { .. });
        let said: Vec<&Record> = field.records[before..].iter().filter(left).collect();
        assert_eq!(said.is_empty(), !goes, "{sign}, {goes}: {said:?}");
        field.run(Span::from_min(60));
        assert_eq!(field.calls, [], "{sign}, {goes}: {:?}", field.machine_state("i004"));
    }
}

/// Parts of its cloud do not list it yet when its Node is there, carries a sign and goes.
#[test]
fn node_removed_on_purpose_before_machine_listing_is_accepted() {
    for sign in ["none", "pause", "keep", "leaving", "cordon"] {
        let mut roster = roster();
        roster.settles.insert(CLOUD.into(), Span::from_min(5));
        let mut field = Field::new(roster).populate(10);
        field.run(Span::from_min(20));
        let mut early = node("i900", Ready::True);
        if sign != "none" {
            write_on(&mut early, sign, true);
        }
        field.nodes.insert("i900".into(), early);
        field.run(Span::from_min(1));
        field.nodes.remove("i900");
        field.run(Span::from_min(1));
        field.add_machine("i900", false);
        field.run(Span::from_min(60));
        assert_eq!(field.calls.is_empty(), sign != "none", "{sign}: {:?}", field.calls);
    }
}

/// It was being built when a process ended. The next one sees its Node come and go before its cloud can be read.
#[test]
fn early_node_of_a_machine_in_the_ledger_keeps_its_signs() {
    let mut settling = roster();
    settling.settles.insert(CLOUD.into(), Span::from_min(5));
    let mut field = Field::new(settling.clone()).populate(10);
    field.run(Span::from_min(20));
    field.add_machine("i900", false);
    field.instances.get_mut("i900").unwrap().locked = true;
    field.run(Span::from_min(1));
    let mut field = field.restarted(settling);
    let early = Arc::new(node("i900", Ready::True));
    field.sync_nodes();
    field.feed(Event::Cluster(ClusterFact::Applied(early.clone())));
    field.now = field.now + Span::from_s(30);
    let (name, uid) = (early.name.clone(), early.uid.clone());
    field.feed(Event::Cluster(ClusterFact::Deleted { name, uid }));
    let is_early = |machine: &MachineKey| machine.to_string().contains("i900");
    let said = field.state.checkpoint();
    let count = |of: &dyn Fn(&Record) -> bool| said.iter().filter(|record| of(record)).count();
    let locked = |record: &Record| matches!(record, Record::Cordoned { machine, locked: true, .. } if is_early(machine));
    let joined = |record: &Record| match record {
        Record::Joined { machines, .. } => machines.iter().any(|joined| is_early(&joined.machine)),
        _ => false,
    };
    let gone = |record: &Record| match record {
        Record::Departed { machines, .. } => machines.iter().any(is_early),
        _ => false,
    };
    assert_eq!((count(&locked), count(&joined), count(&gone)), (1, 1, 0), "{said:#?}");
    field.assert_next_process_knows_the_same();
}

/// An operator takes the marks off a machine, or its cloud cannot be read since our start, and something is written on its Node,
/// which is deleted while no process runs. The marks are put back before or after the restart.
#[test]
fn sign_on_node_of_unseen_machine_outlives_node_over_restart() {
    for sign in ["pause", "keep", "leaving", "cordon"] {
        for (way, stands, rotated) in [
            ("marks", true, false),
            ("marks", true, true),
            ("marks", false, false),
            ("marks back later", true, false),
            ("pool mark", true, false),
            ("cloud away", true, false),
            ("cloud away", true, true),
            ("cloud away", false, false),
        ] {
            let mut field = Field::new(roster()).populate(10);
            field.run(Span::from_min(20));
            let marks = field.instances["i004"].marks.clone();
            match way {
                "cloud away" => field = field.restarted(roster()),
                "pool mark" => {
                    let own = marks.iter().filter(|mark| !format!("{mark:?}").contains("pool")).cloned();
                    field.instances.get_mut("i004").unwrap().marks = Arc::new(own.collect());
                }
                _ => field.instances.get_mut("i004").unwrap().marks = Arc::default(),
            }
            for round in 0..30 {
                match round {
                    10 => write_on(field.nodes.get_mut("i004").unwrap(), sign, true),
                    20 => write_on(field.nodes.get_mut("i004").unwrap(), sign, stands),
                    _ => {}
                }
                field.now = field.now + Span::from_s(30);
                if way != "cloud away" {
                    field.list_cloud();
                }
                field.sync_nodes();
                field.list_leases();
                field.feed(Event::Cluster(ClusterFact::Alive));
            }
            if rotated {
                field.records = field.state.checkpoint();
            }
            let gone = field.nodes.remove("i004").unwrap();
            if way == "marks back later" {
                field = field.restarted(roster());
                field.run(Span::from_min(10));
            }
            field.instances.get_mut("i004").unwrap().marks = marks;
            let mut field = field.restarted(roster());
            cloud_deletes(&mut field, &gone);
            field.run(Span::from_min(120));
            let context = format!("{sign}, {way}, stands: {stands}, rotated: {rotated}: {:?}", field.calls);
            assert_eq!(field.calls.is_empty(), stands, "{context}");
        }
    }
}

/// A person pauses a machine by the annotation and takes a group off its port. We restart while no API server answers.
#[test]
fn port_of_paused_machine_is_left_alone_before_first_node_list() {
    for is_cordoned in [false, true] {
        for (restarts, rotated) in [(false, false), (true, false), (true, true)] {
            let mut field = Field::new(roster()).populate(10);
            field.run(Span::from_min(20));
            let node = field.nodes.get_mut("i004").unwrap();
            (node.intent.paused, node.cordoned) = (true, is_cordoned);
            field.run(Span::from_min(2));
            field.ports.get_mut("i004").unwrap().groups = Box::new(["g-quarantine".into()]);
            if rotated {
                field.records = field.state.checkpoint();
            }
            if restarts {
                field = field.restarted(roster());
            }
            for _ in 0..20 {
                field.now = field.now + Span::from_s(30);
                field.list_cloud();
            }
            let what = format!("cordoned: {is_cordoned}, restarts: {restarts}, rotated: {rotated}");
            assert_eq!(field.calls, [], "{what}: {:?}", field.calls);
            // The person ends the pause.
            field.nodes.get_mut("i004").unwrap().intent.paused = false;
            field.run_until(Span::from_min(20), |field| !field.calls.is_empty());
            assert_eq!(field.calls.len(), 1, "{what}");
        }
    }
}

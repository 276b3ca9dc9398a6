//! Machines whose marks are taken off for a while, or that their cloud denies and shows again: what protected them, and what was
//! begun on them, is as it was when they are back.

use std::sync::Arc;

use reveille_core::diagnose::machine_state::MachineState;
use reveille_core::effect::{Call, Outcome};
use reveille_core::model::agent::{AgentBlocker, AgentBlockerKind};
use reveille_core::model::incident::FaultKind;
use reveille_core::model::instance::{Fault, InstanceState};
use reveille_core::model::node::Ready;
use reveille_core::model::roster::Mode;
use reveille_core::model::time::Span;
use reveille_core::record::Record;

use super::fixture::{Field, node, roster};

/// How the machine goes out of sight for a minute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Away {
    Never,
    Unmarked,
    Denied,
}

const EACH: [Away; 3] = [Away::Never, Away::Unmarked, Away::Denied];

fn away(field: &mut Field, id: &str, how: Away) {
    let machine = field.instances[id].clone();
    match how {
        Away::Never => {}
        Away::Unmarked => field.instances.get_mut(id).unwrap().marks = Arc::default(),
        Away::Denied => drop(field.instances.remove(id)),
    }
    field.watch_for(Span::from_s(90));
    field.instances.insert(id.to_owned(), machine);
    field.watch_for(Span::from_s(60));
}

fn fleet() -> Field {
    let mut field = Field::new(roster()).populate(10);
    field.run(Span::from_min(5));
    field
}

fn until_a_call(field: &mut Field) {
    field.run_until(Span::from_min(60), |field| !field.calls.is_empty());
    assert_eq!(field.calls.len(), 1, "{:?}", field.calls);
}

#[test]
fn well_machine_whose_marks_come_back_answers() {
    let mut field = fleet();
    away(&mut field, "i001", Away::Unmarked);
    assert_eq!(field.machine_state("i001"), MachineState::Answers);
    field.run(Span::from_min(60));
    assert_eq!(field.calls, []);
}

/// Four of ten: were they never seen to answer again, everything would be frozen.
#[test]
fn machine_is_repaired_after_marks_of_some_came_back() {
    let mut field = fleet();
    for id in ["i001", "i002", "i003", "i004"] {
        away(&mut field, id, Away::Unmarked);
    }
    field.run(Span::from_min(10));
    for id in ["i001", "i007"] {
        field.nodes.get_mut(id).unwrap().ready = Ready::Unknown;
    }
    field.run(Span::from_min(600));
    assert!(field.destructive_calls() > 1, "{}", field.held("i007", FaultKind::NotReady));
}

/// So many others go meanwhile that nothing is remembered of it.
#[test]
fn serving_machine_that_was_unmarked_for_long_is_left_alone() {
    let mut field = Field::new(roster()).populate(10);
    // EC2, or a kubelet with a hostname override: the Node is not called as the instance is.
    field.instances.get_mut("i001").unwrap().name = "worker-one".into();
    field.run(Span::from_min(5));
    let marks = std::mem::take(&mut field.instances.get_mut("i001").unwrap().marks);
    field.run(Span::from_min(2));
    for number in 0..260 {
        let id = format!("s{number:03}");
        field.add_machine(&id, true);
        field.run(Span::from_min(1));
        field.nodes.remove(&id);
        field.delete_machine(&id);
        field.run(Span::from_min(2));
    }
    field.instances.get_mut("i001").unwrap().marks = marks;
    field.run(Span::from_min(1));
    assert_eq!(field.machine_state("i001"), MachineState::Answers);
    field.run(Span::from_min(120));
    assert_eq!(field.destructive_calls(), 0, "{:?}", field.calls);
}

/// Four Nodes went together; three are back, and the fourth machine goes out of sight for a minute.
#[test]
fn machine_that_was_lost_with_others_is_held_when_it_is_back() {
    for how in EACH {
        for restarts in [false, true] {
            let mut field = fleet();
            for id in ["i001", "i002", "i003", "i004"] {
                field.nodes.remove(id);
            }
            field.sync_nodes();
            field.watch_for(Span::from_min(15));
            for id in ["i002", "i003", "i004"] {
                field.nodes.insert(id.to_owned(), node(id, Ready::True));
            }
            field.sync_nodes();
            field.watch_for(Span::from_min(5));
            away(&mut field, "i001", how);
            if restarts {
                field = field.restarted(roster());
                field.sync_nodes();
            }
            field.watch_for(Span::from_min(120));
            assert_eq!(field.destructive_calls(), 0, "{how:?}, {restarts}: {:?}", field.calls);
        }
    }
}

/// Its Node is gone, it is rebooted, and takes ten minutes to boot.
#[test]
fn reboot_under_way_keeps_its_patience_when_the_machine_is_back() {
    for how in EACH {
        let mut field = fleet();
        field.nodes.remove("i001");
        until_a_call(&mut field);
        let begun = field.now;
        field.run(Span::from_s(60));
        away(&mut field, "i001", how);
        while field.now.since(begun) < Span::from_min(14) {
            field.run(Span::from_s(30));
        }
        assert_eq!(field.calls.len(), 1, "{how:?}: {:?}", field.calls);
    }
}

/// The agent said that the machine is to go, and is silent since; its Node is deleted.
#[test]
fn word_of_a_leaving_agent_stands_when_the_machine_is_back() {
    for how in EACH {
        let mut field = Field::new(roster()).populate(10).with_agents(&["i001"]);
        field.run(Span::from_min(5));
        let blocker = AgentBlocker { kind: AgentBlockerKind::Leaving, text: "it is drained".into() };
        field.agents.get_mut("i001").unwrap().blocker = Some(blocker);
        field.run(Span::from_min(1));
        field.agents.clear();
        field.nodes.remove("i001");
        field.run(Span::from_min(3));
        away(&mut field, "i001", how);
        field.run(Span::from_min(240));
        assert_eq!(field.destructive_calls(), 0, "{how:?}: {:?}", field.calls);
    }
}

/// No reboot cures it, and nothing harsher is allowed.
#[test]
fn steps_that_were_tried_count_when_the_machine_is_back() {
    let mut reboots = Vec::new();
    for how in EACH {
        let mut wanted = roster();
        wanted.pools.get_mut("workers").unwrap().repair.replace = Mode::Off;
        let mut field = Field::new(wanted).populate(10);
        field.run(Span::from_min(5));
        field.nodes.remove("i001");
        for _ in 0..8 {
            field.run(Span::from_min(50));
            away(&mut field, "i001", how);
        }
        reboots.push(field.destructive_calls());
    }
    assert!(reboots[0] > 0 && reboots.iter().all(|count| *count <= reboots[0] + 1), "{reboots:?}");
}

/// A deletion is answered with 504 and does nothing. The operator takes the marks off, to save the machine.
#[test]
fn machine_that_an_operator_saves_was_not_replaced() {
    let mut field = fleet();
    let machine = field.instances.get_mut("i001").unwrap();
    machine.state = InstanceState::Errored;
    machine.fault = Some(Fault { code: 500, message: "boom".into() });
    field.nodes.get_mut("i001").unwrap().ready = Ready::Unknown;
    field.refuses = Some(Outcome::Failed { retry_after: None, text: "504".into() });
    until_a_call(&mut field);
    assert!(matches!(field.calls[..], [Call::DeleteInstance(_)]), "{:?}", field.calls);
    field.refuses = None;
    field.instances.get_mut("i001").unwrap().marks = Arc::default();
    field.run(Span::from_min(30));
    let judged = field.records.iter().filter(|record| matches!(record, Record::Judged { held: true, .. }));
    assert_eq!(judged.count(), 0);
}

/// Three hundred others are scaled down and gone for good, while one has no marks that was drained on purpose.
#[test]
fn many_removed_machines_evict_no_unmarked_machine_from_memory() {
    let mut field = Field::new(roster()).populate(700);
    field.run(Span::from_min(2));
    field.nodes.get_mut("i004").unwrap().cordoned = true;
    field.run(Span::from_s(30));
    field.nodes.remove("i004");
    field.run(Span::from_min(1));
    let marks = std::mem::take(&mut field.instances.get_mut("i004").unwrap().marks);
    field.run(Span::from_min(2));
    for batch in 0..3 {
        for number in 0..100 {
            let id = format!("i{:03}", 100 + batch * 100 + number);
            field.delete_machine(&id);
            field.nodes.remove(&id);
        }
        field.run(Span::from_min(2));
    }
    field.instances.get_mut("i004").unwrap().marks = marks;
    field.run(Span::from_min(60));
    assert_eq!(field.calls, []);
}

//! A disk that is full for a moment refuses a record and keeps later ones: what the ledger says of machines is said again behind
//! them, and the next process knows what this one did.

use std::sync::Arc;

use reveille_core::effect::Effect;
use reveille_core::event::{ClusterFact, Event};
use reveille_core::model::agent::{AgentBlocker, AgentBlockerKind};
use reveille_core::model::incident::FaultKind;
use reveille_core::model::node::Ready;
use reveille_core::record::Record;

use super::fixture::{Field, roster};
use super::steps::{cloud_deletes, made, min, set, without_rejoin};

const ONE: &str = "i004";

/// The effects are performed, but for the first record: the disk refuses that one.
fn perform_with_first_refused(field: &mut Field, out: Vec<Effect>) {
    let mut refused = 0;
    for effect in out {
        match effect {
            Effect::Record { id, .. } if refused == 0 => {
                refused += 1;
                let effects = field.step(Event::RecordFailed(id));
                field.perform(effects);
            }
            other => field.perform(vec![other]),
        }
    }
    assert_eq!(refused, 1);
}

/// The disk is full for a moment: what is told of these two machines is on its way, the first of these records is refused, and
/// the others find room. The writer asks for a checkpoint then, or, where nothing is on its way any more, after the refused
/// record comes again; a disk that is nearly full has no room for that one.
fn disk_is_full_for_a_moment(field: &mut Field, checkpoint: bool) {
    let mut out = Vec::new();
    for id in ["i007", "i008"] {
        set(field, id, Ready::Unknown);
        let silent = Arc::new(field.nodes[id].clone());
        out.extend(field.step(Event::Cluster(ClusterFact::Applied(silent))));
    }
    perform_with_first_refused(field, out);
    if checkpoint {
        field.records = field.state.checkpoint();
    }
    field.run(min(1));
    for id in ["i007", "i008"] {
        set(field, id, Ready::True);
    }
}

/// A person takes the marks off a machine, drains its Node and deletes it. The disk is full for a moment. We are restarted, and
/// the marks are put back a while later.
#[test]
fn unmarked_departed_machine_is_left_alone_after_full_disk() {
    for full in [None, Some(false), Some(true)] {
        let mut field = Field::new(roster()).populate(10);
        field.run(min(20));
        let marks = std::mem::take(&mut field.instances.get_mut(ONE).unwrap().marks);
        field.run(min(2));
        field.nodes.get_mut(ONE).unwrap().cordoned = true;
        field.run(min(1));
        field.nodes.remove(ONE);
        field.run(min(2));
        let left = |record: &Record| matches!(record, Record::Left { .. });
        assert!(field.records.iter().any(left), "the ledger knows that it left");
        if let Some(checkpoint) = full {
            disk_is_full_for_a_moment(&mut field, checkpoint);
        }
        field.run(min(3));
        let mut field = field.restarted(roster());
        field.run(min(5));
        field.instances.get_mut(ONE).unwrap().marks = marks;
        field.run_until(min(120), |field| !field.calls.is_empty());
        assert!(field.calls.is_empty(), "full, with a checkpoint: {full:?}: {:?}", made(&field));
    }
}

/// A Node is cordoned and uncordoned while the disk hangs: the first record is refused, and the second one is kept. Then the Node
/// is deleted by the cloud's controller while we are restarted: no person drained it.
#[test]
fn node_that_was_uncordoned_while_the_disk_was_full_is_missed() {
    for (full, has_marks) in [(false, true), (true, true), (true, false)] {
        let mut field = Field::new(without_rejoin()).populate(10);
        field.run(min(20));
        let marks = field.instances[ONE].marks.clone();
        if !has_marks {
            field.instances.get_mut(ONE).unwrap().marks = Arc::default();
            field.run(min(2));
        }
        let mut out = Vec::new();
        for cordoned in [true, false] {
            field.nodes.get_mut(ONE).unwrap().cordoned = cordoned;
            let node = Arc::new(field.nodes[ONE].clone());
            out.extend(field.step(Event::Cluster(ClusterFact::Applied(node))));
        }
        if full {
            perform_with_first_refused(&mut field, out);
        } else {
            field.perform(out);
        }
        field.records = field.state.checkpoint();
        field.run(min(2));
        let gone = field.nodes.remove(ONE).unwrap();
        field.instances.get_mut(ONE).unwrap().marks = marks;
        let mut field = field.restarted(without_rejoin());
        cloud_deletes(&mut field, &gone);
        field.run_until(min(120), |field| !field.calls.is_empty());
        let what = format!("full: {full}, with marks: {has_marks}");
        assert!(!field.calls.is_empty(), "{what}: never repaired: {:?}", field.machine_state(ONE));
    }
}

/// The same with the word of an agent that its machine is to go: it is refused, and taken back in a record that is kept.
#[test]
fn agent_hold_withdrawn_during_full_disk_is_void() {
    let mut field = Field::new(roster()).populate(10).with_agents(&[ONE]);
    field.run(min(20));
    let mut out = Vec::new();
    for says in [true, false] {
        let blocker = AgentBlocker { kind: AgentBlockerKind::Leaving, text: "it is drained".into() };
        field.agents.get_mut(ONE).unwrap().blocker = says.then_some(blocker);
        for said in field.said() {
            out.extend(field.step(Event::Agent(said)));
        }
    }
    perform_with_first_refused(&mut field, out);
    field.records = field.state.checkpoint();
    field.run(min(5));
    field.agents.clear();
    set(&mut field, ONE, Ready::Unknown);
    let mut field = field.restarted(roster());
    field.run_until(min(120), |field| !field.calls.is_empty());
    assert!(!field.calls.is_empty(), "{}", field.held(ONE, FaultKind::NotReady));
}

//! What must not happen, and what is said instead.

use std::collections::BTreeSet;

use reveille_core::event::{Command, Event, Pause, PauseScope};
use reveille_core::model::incident::FaultKind;
use reveille_core::model::node::Ready;
use reveille_core::model::time::Span;

use super::fixture::{Field, roster};

#[test]
fn an_empty_node_list_deletes_nobody() {
    let mut field = Field::new(roster()).populate(100);
    field.run(Span::from_min(5));
    field.nodes.clear();
    field.run(Span::from_min(600));
    assert!(field.calls.is_empty(), "{:?}", field.calls);
    let trust = field.state.desk().cluster.source.trust(field.now).to_string();
    assert!(trust.contains("the node list is empty beside 100 running instances"), "{trust}");
}

#[test]
fn an_empty_server_list_deletes_nobody() {
    let mut field = Field::new(roster()).populate(100);
    field.run(Span::from_min(5));
    field.instances.clear();
    field.ports.clear();
    field.run(Span::from_min(600));
    assert!(field.calls.is_empty(), "{:?}", field.calls);
}

#[test]
fn a_zone_that_went_dark_is_left_alone() {
    let mut field = Field::new(roster()).populate(20);
    for number in 0..4 {
        field.instances.get_mut(&format!("i{number:03}")).unwrap().zone = Some("dark".into());
    }
    field.run(Span::from_min(5));
    for number in 0..4 {
        field.nodes.get_mut(&format!("i{number:03}")).unwrap().ready = Ready::Unknown;
    }
    field.run(Span::from_min(120));
    assert_eq!(field.destructive_calls(), 0, "{:?}", field.calls);
    let held = field.held("i001", FaultKind::NotReady);
    assert!(held.contains("zone dark is dark: none of 4 machines answers"), "{held}");
}

#[test]
fn above_the_breaker_nothing_is_done() {
    let mut field = Field::new(roster()).populate(10);
    field.run(Span::from_min(5));
    for number in 0..4 {
        field.nodes.get_mut(&format!("i{number:03}")).unwrap().ready = Ready::False;
    }
    field.run(Span::from_min(120));
    assert_eq!(field.destructive_calls(), 0, "{:?}", field.calls);
    let held = field.held("i001", FaultKind::NotReady);
    assert!(held.contains("4 of 10 machines of pool workers are amiss"), "{held}");
}

#[test]
fn one_at_a_time_and_the_next_only_after_proof_or_failure() {
    let mut field = Field::new(roster()).populate(20);
    field.run(Span::from_min(5));
    for number in 0..3 {
        field.nodes.get_mut(&format!("i{number:03}")).unwrap().ready = Ready::False;
    }
    field.run(Span::from_min(16));
    assert_eq!(field.destructive_calls(), 1, "{:?}", field.calls);
}

#[test]
fn a_pause_holds_and_its_end_lets_go() {
    let mut field = Field::new(roster()).populate(5);
    field.run(Span::from_min(2));
    let pause =
        Pause { scope: PauseScope::Pool("workers".into()), by: "ada".into(), reason: "upgrade".into() };
    field.feed(Event::Command(Command::Pauses(BTreeSet::from([pause]))));
    field.ports.get_mut("i001").unwrap().groups = Box::new([]);
    field.run(Span::from_min(10));
    assert!(field.calls.is_empty());
    let held = field.held("i001", FaultKind::GroupMissing);
    assert!(held.contains("pool workers is paused by ada: upgrade"), "{held}");
    field.feed(Event::Command(Command::Pauses(BTreeSet::new())));
    assert_eq!(field.calls.len(), 1);
}

#[test]
fn a_pause_of_ours_restarts_every_timer() {
    let mut field = Field::new(roster()).populate(10);
    field.run(Span::from_min(2));
    field.add_machine("new", false);
    field.run(Span::from_min(10));
    field.now = field.now + Span::from_min(60);
    field.lists();
    field.run(Span::from_min(13));
    assert!(field.calls.is_empty(), "it was asleep, not missing: {:?}", field.calls);
}

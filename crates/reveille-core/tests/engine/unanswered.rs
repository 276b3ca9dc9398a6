//! Reads by id that fail: how often they are repeated.

use reveille_core::effect::{Call, Effect, Look};
use reveille_core::event::{CloudFact, ClusterFact, Event};
use reveille_core::model::incident::FaultKind;
use reveille_core::model::instance::InstanceState;
use reveille_core::model::node::Ready;
use reveille_core::model::roster::Mode;
use reveille_core::model::time::Span;

use super::fixture::*;
use super::steps::{made, min, set, without_rejoin};

fn reads_of(field: &mut Field, id: &str, span: Span) -> usize {
    let end = field.now + span;
    let mut reads = 0;
    while field.now < end {
        field.now = field.now + Span::from_s(10);
        let fact = CloudFact::read(field.snapshot());
        let listed = (field.now.ms / 10_000 % 3 == 0).then_some(Event::Cloud { cloud: CLOUD.into(), fact });
        for event in listed.into_iter().chain([Event::Cluster(ClusterFact::Alive)]) {
            let effects = field.step(event);
            let is_such = |effect: &&Effect| match effect {
                Effect::Look { look: Look::Instance(_, asked), .. } => asked.as_str() == id,
                _ => false,
            };
            reads += effects.iter().filter(is_such).count();
            field.perform(effects);
        }
    }
    reads
}

/// A Node that the roster does not let the controller clean up stands for an instance that is gone, and the cloud no longer
/// answers for it.
#[test]
fn ghost_whose_reads_fail_is_asked_for_later_and_later() {
    let mut wanted = roster();
    wanted.pools.get_mut("workers").unwrap().repair.cleanup = Mode::Propose;
    let mut field = Field::new(wanted).populate(10);
    field.run(Span::from_min(5));
    field.nodes.get_mut("i003").unwrap().ready = Ready::Unknown;
    field.delete_machine("i003");
    field.run(Span::from_min(10));
    field.cell_down = Some("i003".into());
    let reads = reads_of(&mut field, "i003", Span::from_min(240));
    assert!((3..=12).contains(&reads), "{reads} reads in four hours");
}

/// A list lacks a machine, and its cloud cannot say whether there is one: a cell is down, and lists omit its servers.
#[test]
fn unlisted_machine_with_failing_reads_is_read_with_backoff() {
    let mut field = Field::new(roster()).populate(10);
    field.run(Span::from_min(5));
    field.delete_machine("i003");
    field.cell_down = Some("i003".into());
    let reads = reads_of(&mut field, "i003", Span::from_min(60));
    assert!((10..=20).contains(&reads), "{reads} reads in an hour");
    // It is asked for soon enough once the cell is back.
    field.cell_down = None;
    field.nodes.get_mut("i003").unwrap().ready = Ready::Unknown;
    field.run(Span::from_min(12));
    assert!(matches!(field.calls[..], [Call::DeleteNode(_)]), "{:?}", field.calls);
}

/// A machine that was seen being built never joins, and its cloud takes minutes for each read. A person renames it between two
/// rounds of reads, so that its kubelet asks for a certificate by another name: two reads of what it says are answered, and none
/// of its log of actions.
#[test]
fn machine_with_unread_action_log_is_not_deleted() {
    for renamed in [false, true] {
        let mut field = Field::new(roster()).populate(10);
        field.run(Span::from_min(5));
        field.add_machine("new", false);
        field.instances.get_mut("new").unwrap().state = InstanceState::Building;
        field.run(Span::from_min(1));
        field.instances.get_mut("new").unwrap().state = InstanceState::Active;
        field.unanswered = Some(Vec::new());
        let is_asked = |field: &Field| field.unanswered.iter().flatten().count() >= 2;
        field.run_until(Span::from_min(60), is_asked);
        assert!(is_asked(&field), "{:?}", field.machine_state("new"));
        if renamed {
            field.instances.get_mut("new").unwrap().name = "another".into();
        }
        field.run(Span::from_min(4));
        let is_log = |look: &Look| matches!(look, Look::Actions(..));
        for (look, asked) in field.unanswered.take().unwrap() {
            if !is_log(&asked) {
                let answer = Ok(field.answer(&asked));
                field.unanswered = Some(Vec::new());
                field.feed(Event::Looked { look, answer });
            }
        }
        field.run(Span::from_s(20));
        assert_eq!(field.calls, [], "renamed: {renamed}");
    }
}

/// The log of actions takes more than two minutes to be read, so that it is waited for in a second round; it is as old as its
/// question. A person rebooted the machine meanwhile.
#[test]
fn log_that_is_answered_late_is_read_once_more_before_a_reboot() {
    for person in [false, true] {
        let mut field = Field::new(without_rejoin()).populate(10);
        field.run(Span::from_min(20));
        field.nodes.get_mut("i004").unwrap().ready = Ready::Unknown;
        field.unanswered = Some(Vec::new());
        let is_asked = |field: &Field| field.unanswered.iter().flatten().count() >= 2;
        field.run_until(Span::from_min(60), is_asked);
        let out = field.unanswered.take().unwrap();
        let answers: Vec<_> = out.iter().map(|(look, asked)| (*look, field.answer(asked))).collect();
        field.unanswered = Some(Vec::new());
        field.run(Span::from_s(60));
        if person {
            super::operators::rebooted_by_a_person(&mut field, "i004");
        }
        field.run(Span::from_s(80));
        field.unanswered = None;
        for (look, answer) in answers {
            field.feed(Event::Looked { look, answer: Ok(answer) });
        }
        field.run(Span::from_s(30));
        assert_eq!(field.calls.is_empty(), person, "a person rebooted it: {person}");
    }
}

/// A cell is down, and its cloud cannot say what became of a machine there. A dead one beside it is held for an hour at most,
/// also where we are restarted each fifty minutes.
#[test]
fn open_machine_fate_holds_pool_for_an_hour_over_restarts() {
    for (every, rotated) in [(600, false), (50, false), (50, true)] {
        let mut field = Field::new(without_rejoin()).populate(10);
        field.run(min(20));
        field.delete_machine("i007");
        field.cell_down = Some("i007".into());
        field.run(min(2));
        set(&mut field, "i004", Ready::Unknown);
        field.run(min(2));
        let mut calls = made(&field);
        for _ in 0..600 / every {
            if rotated {
                field.records = field.state.checkpoint();
            }
            field = field.restarted(without_rejoin());
            field.cell_down = Some("i007".into());
            field.run(min(every));
            calls.extend(made(&field));
        }
        let held = || field.held("i004", FaultKind::NotReady);
        assert!(!calls.is_empty(), "each {every} min, rotated: {rotated}: {}", held());
    }
}

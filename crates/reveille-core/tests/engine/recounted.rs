//! How often a step was tried, as the next process counts it.

use reveille_core::effect::{Call, Outcome};
use reveille_core::event::Event;
use reveille_core::model::incident::FaultKind;
use reveille_core::model::node::Ready;
use reveille_core::model::roster::Mode;
use reveille_core::model::time::Span;
use reveille_core::record::Record;
use reveille_core::remedies::Reboot;

use super::fixture::{Field, node, roster};
use super::steps::{made, min, roster_with, set, without_rejoin};

const ONE: &str = "i004";

/// A silent machine is rebooted, once.
fn rebooted(how: &str) -> Field {
    let mut field = Field::new(without_rejoin()).populate(10);
    field.run(min(20));
    set(&mut field, ONE, Ready::Unknown);
    field.run_until(min(30), |field| !field.calls.is_empty());
    assert_eq!(field.calls.len(), 1, "{how}");
    field
}

fn is_judged_in_vain(field: &mut Field, how: &str) {
    let in_vain = |field: &Field| {
        field.records.iter().any(|record| matches!(record, Record::Judged { held: false, .. }))
    };
    field.run_until(min(30), in_vain);
    assert!(in_vain(field), "{how}: {:?}", made(field));
}

fn is_power_cycled_next(mut field: Field, how: &str) {
    let calls = field.calls.len();
    field.run_until(min(60), |field| field.calls.len() > calls);
    let is_power_cycle = matches!(field.calls.last(), Some(Call::Reboot(Reboot { hard: true, .. })));
    assert!(is_power_cycle, "{how}: {:?}", made(&field));
}

/// A machine is rebooted, and its Node is deleted while it boots; it comes back, and is not Ready: the power cycle is next. The
/// first reboot is judged to have been in vain, and we are restarted.
#[test]
fn reboot_that_was_in_vain_is_counted_once_by_the_next_process() {
    for how in ["nothing", "restart", "rotated"] {
        let mut field = rebooted(how);
        field.run(min(1));
        field.nodes.remove(ONE);
        field.run(min(2));
        assert!(field.case(ONE, FaultKind::Vanished).is_some());
        field.nodes.insert(ONE.into(), node(ONE, Ready::False));
        field.run(min(2));
        assert!(field.case(ONE, FaultKind::NotReady).is_some());
        is_judged_in_vain(&mut field, how);
        let calls = field.calls.len();
        assert_eq!(calls, 1, "{how}: {:?}", made(&field));
        if how == "rotated" {
            field.records = field.state.checkpoint();
        }
        if how != "nothing" {
            field = field.restarted(without_rejoin());
        }
        is_power_cycled_next(field, how);
    }
}

/// A reboot brings the Node back for half a minute, and then it is not Ready again: that was its one try, and the power cycle is
/// next. The ledger is rotated, the first reboot is judged to have been in vain, and we are restarted.
#[test]
fn reboot_lapsed_before_rotation_is_counted_once_after_restart() {
    for how in ["nothing", "restart", "rotation, restart"] {
        let mut field = rebooted(how);
        field.run(min(2));
        field.boots(ONE);
        field.run(Span::from_s(30));
        set(&mut field, ONE, Ready::Unknown);
        field.run(min(1));
        if how.starts_with("rotation") {
            field.records = field.state.checkpoint();
        }
        is_judged_in_vain(&mut field, how);
        assert_eq!(field.calls.len(), 1, "{how}: {:?}", made(&field));
        if how.ends_with("restart") {
            field = field.restarted(without_rejoin());
        }
        is_power_cycled_next(field, how);
    }
}

/// A port gets its group back, and loses it once more. Then our credential lacks the right for an hour, which is no try. We are
/// restarted, and the port gets its group; it loses it a second time: two tries of three.
#[test]
fn calls_that_were_denied_are_no_tries_for_the_next_process() {
    for how in ["nothing", "restart", "rotation, restart"] {
        let mut field = Field::new(roster()).populate(10);
        field.run(min(20));
        let lose = |field: &mut Field| field.ports.get_mut(ONE).unwrap().groups = Box::new([]);
        lose(&mut field);
        field.run_until(min(10), |field| !field.calls.is_empty());
        lose(&mut field);
        field.denial = Some(Outcome::Denied { text: "403".into() });
        field.run(min(60));
        assert!(field.calls.len() > 2, "{how}: {:?}", made(&field));
        if how.starts_with("rotation") {
            field.records = field.state.checkpoint();
        }
        field.denial = None;
        if how.ends_with("restart") {
            field = field.restarted(roster());
        }
        let has_group = |field: &Field| !field.ports[ONE].groups.is_empty();
        field.run_until(min(60), has_group);
        let is = field.case(ONE, FaultKind::GroupMissing).map(|it| (it.incident.tries, it.incident.given_up));
        assert!(has_group(&field), "{how}: never, after the right came back; tries, given up: {is:?}");
        let tries = field.case(ONE, FaultKind::GroupMissing).map(|case| case.incident.tries);
        lose(&mut field);
        field.run_until(min(120), has_group);
        assert!(has_group(&field), "{how}: given up after two tries; tries: {tries:?}, {:?}", made(&field));
    }
}

/// A deletion is not answered yet when the Node of its machine goes, comes back and is not Ready: the fault has another number by
/// then. The answer is a refusal, which is no word about the incident that is open now: that one is not given up for it.
#[test]
fn refusal_for_an_incident_that_is_over_ends_no_other() {
    let only_deleting =
        || roster_with(|pool| (pool.repair.rejoin, pool.repair.reboot) = (Mode::Off, Mode::Off));
    for how in ["nothing", "restart", "rotation, restart"] {
        let mut field = Field::new(only_deleting()).populate(10);
        field.run(min(20));
        set(&mut field, ONE, Ready::Unknown);
        field.mute = Some(Vec::new());
        let is_out = |field: &Field| field.mute.as_ref().is_some_and(|out| !out.is_empty());
        field.run_until(min(30), is_out);
        let out = field.mute.take().unwrap();
        let before = field.case(ONE, FaultKind::NotReady).unwrap().incident.id;
        field.nodes.remove(ONE);
        field.run(Span::from_s(50));
        field.nodes.insert(ONE.into(), node(ONE, Ready::False));
        field.run(Span::from_s(20));
        let number = |field: &Field| field.case(ONE, FaultKind::NotReady).map(|case| case.incident.id);
        assert!(number(&field).is_some_and(|now| now != before), "{how}");
        for intent in out {
            field.feed(Event::Done { intent, outcome: Outcome::Refused { text: "409".into() } });
        }
        if how.starts_with("rotation") {
            field.records = field.state.checkpoint();
        }
        if how.ends_with("restart") {
            field = field.restarted(only_deleting());
        }
        let calls = field.calls.len();
        field.run_until(min(120), |field| field.calls.len() > calls);
        assert!(field.calls.len() > calls, "{how}: {}", field.held(ONE, FaultKind::NotReady));
    }
}

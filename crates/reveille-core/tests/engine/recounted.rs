//! How often a step was tried, as the next process counts it.

use reveille_core::effect::{Call, Outcome};
use reveille_core::model::incident::FaultKind;
use reveille_core::model::node::Ready;
use reveille_core::model::time::Span;
use reveille_core::record::Record;
use reveille_core::remedies::Reboot;

use super::fixture::{Field, node, roster};
use super::steps::{made, min, set, without_rejoin};

const ONE: &str = "i004";

/// A machine is rebooted, and its Node is deleted while it boots; it comes back, and is not Ready: the power cycle is next. The
/// first reboot is judged to have been in vain, and we are restarted.
#[test]
fn reboot_that_was_in_vain_is_counted_once_by_the_next_process() {
    for how in ["nothing", "restart", "rotated"] {
        let mut field = Field::new(without_rejoin()).populate(10);
        field.run(min(20));
        set(&mut field, ONE, Ready::Unknown);
        field.run_until(min(30), |field| !field.calls.is_empty());
        assert_eq!(field.calls.len(), 1, "{how}");
        field.run(min(1));
        field.nodes.remove(ONE);
        field.run(min(2));
        assert!(field.case(ONE, FaultKind::Vanished).is_some());
        field.nodes.insert(ONE.into(), node(ONE, Ready::False));
        field.run(min(2));
        assert!(field.case(ONE, FaultKind::NotReady).is_some());
        let in_vain = |field: &Field| {
            field.records.iter().any(|record| matches!(record, Record::Judged { held: false, .. }))
        };
        field.run_until(min(30), in_vain);
        assert!(in_vain(&field), "{how}: {:?}", made(&field));
        let calls = field.calls.len();
        assert_eq!(calls, 1, "{how}: {:?}", made(&field));
        if how == "rotated" {
            field.records = field.state.checkpoint();
        }
        if how != "nothing" {
            field = field.restarted(without_rejoin());
        }
        let calls = field.calls.len();
        field.run_until(min(60), |field| field.calls.len() > calls);
        let is_power_cycle = matches!(field.calls.last(), Some(Call::Reboot(Reboot { hard: true, .. })));
        assert!(is_power_cycle, "{how}: {:?}", made(&field));
    }
}

/// A reboot brings the Node back for half a minute, and then it is not Ready again: that was its one try, and the power cycle is
/// next. The ledger is rotated, the first reboot is judged to have been in vain, and we are restarted.
#[test]
fn reboot_that_lapsed_before_a_rotation_is_counted_once_by_the_next_process() {
    for how in ["nothing", "restart", "rotation, restart"] {
        let mut field = Field::new(without_rejoin()).populate(10);
        field.run(min(20));
        set(&mut field, ONE, Ready::Unknown);
        field.run_until(min(30), |field| !field.calls.is_empty());
        assert_eq!(field.calls.len(), 1, "{how}");
        field.run(min(2));
        field.boots(ONE);
        field.run(Span::from_s(30));
        set(&mut field, ONE, Ready::Unknown);
        field.run(min(1));
        if how.starts_with("rotation") {
            field.records = field.state.checkpoint();
        }
        let in_vain = |field: &Field| {
            field.records.iter().any(|record| matches!(record, Record::Judged { held: false, .. }))
        };
        field.run_until(min(30), in_vain);
        assert!(in_vain(&field), "{how}: {:?}", made(&field));
        assert_eq!(field.calls.len(), 1, "{how}: {:?}", made(&field));
        if how.ends_with("restart") {
            field = field.restarted(without_rejoin());
        }
        let calls = field.calls.len();
        field.run_until(min(60), |field| field.calls.len() > calls);
        let is_power_cycle = matches!(field.calls.last(), Some(Call::Reboot(Reboot { hard: true, .. })));
        assert!(is_power_cycle, "{how}: {:?}", made(&field));
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

//! A rotated ledger restores what the process before knew of what is under way, may only be late, or was proved.

use reveille_core::effect::{Call, Outcome};
use reveille_core::event::Event;
use reveille_core::model::incident::FaultKind;
use reveille_core::model::instance::{Fault, InstanceState};
use reveille_core::model::node::Ready;
use reveille_core::model::roster::{Mode, Roster};
use reveille_core::model::time::Span;

use super::fixture::{Field, roster};
use super::steps::{made, min, roster_with, set, without_rejoin};

/// Three machines fall silent, and the first of them comes back by its reboot.
fn first_of_three_is_back(roster: Roster) -> Field {
    let mut field = Field::new(roster).populate(20);
    field.run(min(20));
    for id in ["i001", "i002", "i003"] {
        set(&mut field, id, Ready::Unknown);
    }
    field.run_until(min(30), |field| !field.calls.is_empty());
    field.run(min(1));
    field.boots("i001");
    field
}

/// One machine came back by its reboot, a second one is rebooted, and a third one waits for it: one at once. The ledger is
/// rotated, and we are restarted.
#[test]
fn reboot_keeps_its_place_over_rotation_after_earlier_proof() {
    for how in ["nothing", "restart", "rotation, restart"] {
        let mut field = first_of_three_is_back(without_rejoin());
        field.run_until(min(30), |field| field.calls.len() > 1);
        assert_eq!(field.calls.len(), 2, "{how}: {:?}", made(&field));
        field.run(min(1));
        if how.starts_with("rotation") {
            field.records = field.state.checkpoint();
        }
        let rebooted = field.now;
        if how.ends_with("restart") {
            field = field.restarted(without_rejoin());
        }
        let calls = field.calls.len();
        let under_way = field.state.context().book.destructive_under_way();
        assert_eq!(under_way, 1, "{how}: the second one still boots");
        field.run_until(min(60), |field| field.calls.len() > calls);
        let took = field.now.since(rebooted);
        assert!(took >= min(14), "{how}: {:?} after {took}", made(&field));
    }
}

/// Two are rebooted at once, and one of them comes back after the other was rebooted.
#[test]
fn reboot_keeps_its_place_over_rotation_after_parallel_proof() {
    let wide = || {
        let mut roster = without_rejoin();
        roster.limits.at_once = 2;
        roster
    };
    for how in ["nothing", "restart", "rotation, restart"] {
        let mut field = first_of_three_is_back(wide());
        field.run_until(min(30), |field| field.calls.len() > 2);
        field.run(min(1));
        field.boots("i002");
        let under_way = |field: &Field| field.state.context().book.destructive_under_way();
        assert_eq!(under_way(&field), 2, "{how}: {:?}", made(&field));
        field.run_until(min(10), |field| under_way(field) == 1);
        if how.starts_with("rotation") {
            field.records = field.state.checkpoint();
        }
        if how.ends_with("restart") {
            field = field.restarted(wide());
        }
        assert_eq!(under_way(&field), 1, "{how}: the third one still boots");
    }
}

/// One deletion for a fault is allowed. It is answered with 504 and may come late. The ledger is rotated, and the next process
/// has a second machine with the same fault before it.
#[test]
fn possible_late_deletion_counts_for_its_fault_after_rotation() {
    for (restarts, rotated) in [(false, false), (true, false), (true, true)] {
        let mut roster = roster();
        roster.limits.same_fault_stops_at = 1;
        let mut field = Field::new(roster.clone()).populate(12);
        field.instances.get_mut("i007").unwrap().zone = Some("z2".into());
        field.instances.get_mut("i008").unwrap().zone = Some("z2".into());
        field.run(min(5));
        let fails = |field: &mut Field, id: &str| {
            let found = field.instances.get_mut(id).unwrap();
            found.state = InstanceState::Errored;
            found.fault = Some(Fault { code: 500, message: "No valid host was found.".into() });
            field.nodes.remove(id);
        };
        fails(&mut field, "i004");
        let retry_after = Some(min(30));
        field.refuses = Some(Outcome::Failed { retry_after, text: "504 Gateway Timeout".into() });
        field.run_until(min(20), |field| !field.calls.is_empty());
        assert!(matches!(field.calls[..], [Call::DeleteInstance(_)]), "{:?}", made(&field));
        field.refuses = None;
        if rotated {
            field.records = field.state.checkpoint();
        }
        if restarts {
            field = field.restarted(roster);
            field.list_cloud();
            field.sync_nodes();
        }
        field.run(Span::from_s(20));
        fails(&mut field, "i007");
        field.mute = Some(Vec::new());
        field.run(min(7));
        let second = made(&field).into_iter().filter(|call| call.contains("i007")).count();
        assert_eq!(second, 0, "restarts: {restarts}, rotated: {rotated}: {:?}", made(&field));
    }
}

/// A deletion is on its way when the fault gets another name: the Node of the silent machine is deleted. It is answered as
/// failed, and nothing comes of it. That is known of a try whose incident is closed, too, to each process after this one.
#[test]
fn call_of_an_incident_that_closed_is_over_for_the_next_process() {
    let wanted = || roster_with(|pool| (pool.repair.rejoin, pool.repair.reboot) = (Mode::Off, Mode::Off));
    for how in ["nothing", "restart", "rotation, restart", "restart, rotation, restart"] {
        let mut field = Field::new(wanted()).populate(10);
        field.run(min(20));
        set(&mut field, "i004", Ready::Unknown);
        field.mute = Some(Vec::new());
        field.run_until(min(60), |field| !field.calls.is_empty());
        assert!(matches!(field.calls[..], [Call::DeleteInstance(_)]), "{:?}", made(&field));
        field.nodes.remove("i004");
        field.run(Span::from_s(30));
        assert!(field.case("i004", FaultKind::NotReady).is_none(), "{how}");
        for intent in field.mute.take().unwrap_or_default() {
            let outcome = Outcome::Failed { text: "504 Gateway Timeout".into(), retry_after: None };
            field.feed(Event::Done { intent, outcome });
        }
        let under_way = |field: &Field| field.state.context().book.destructive_under_way();
        assert_eq!(under_way(&field), 0, "{how}");
        if how.starts_with("restart") {
            field = field.restarted(wanted());
        }
        if how.contains("rotation") {
            field.records = field.state.checkpoint();
        }
        if how.ends_with("restart") {
            field = field.restarted(wanted());
        }
        assert_eq!(under_way(&field), 0, "{how}: nothing is on its way");
        let doubted = field.state.context().book.doubted().count();
        assert_eq!(doubted, 1, "{how}: it may only be late");
    }
}

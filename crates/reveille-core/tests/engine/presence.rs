//! Which machines are Ready, which are not, and in which way.

use reveille_core::diagnose::machine_state::MachineState;
use reveille_core::effect::Call;
use reveille_core::model::incident::{FaultKind, MachineKey};
use reveille_core::model::instance::{Fault, InstanceState};
use reveille_core::model::node::Ready;
use reveille_core::model::time::Span;
use reveille_core::record::Record;
use reveille_core::remedies::Reboot;

use super::fixture::{Field, roster};
use super::steps::say;

#[test]
fn a_healthy_fleet_costs_nothing() {
    let mut field = Field::new(roster()).populate(20);
    field.run(Span::from_min(2));
    let before = field.records.len();
    field.run(Span::from_min(60));
    assert_eq!(field.records.len(), before, "{:?}", &field.records[before..]);
    assert!(field.calls.is_empty());
    assert_eq!(field.machine_state("i000"), MachineState::Answers);
}

#[test]
fn a_machine_that_never_joins_is_rebooted_then_replaced() {
    let mut field = Field::new(roster()).populate(10);
    field.run(Span::from_min(2));
    field.add_machine("new", false);
    field.run(Span::from_min(14));
    assert!(field.calls.is_empty(), "the deadline is 15 min: {:?}", field.calls);
    field.run(Span::from_min(3));
    assert!(matches!(field.calls[..], [Call::Reboot(Reboot { hard: false, .. })]), "{:?}", field.calls);
    field.run(Span::from_min(180));
    assert!(field.calls.iter().any(|call| matches!(call, Call::DeleteInstance(_))), "{:?}", field.calls);
    assert!(field.case("new", FaultKind::NeverJoined).is_none(), "gone, and so is its incident");
}

#[test]
fn a_machine_that_joins_late_is_left_alone() {
    let mut field = Field::new(roster()).populate(10);
    field.run(Span::from_min(2));
    field.add_machine("new", false);
    field.run(Span::from_min(10));
    field.add_machine("new", true);
    field.run(Span::from_min(30));
    assert!(field.calls.is_empty());
    assert!(field.case("new", FaultKind::NeverJoined).is_none());
}

#[test]
fn node_deleted_beside_live_instance_is_vanished_not_replaced() {
    let mut field = Field::new(roster()).populate(10);
    field.run(Span::from_min(2));
    field.nodes.remove("i003");
    field.run(Span::from_min(3));
    let case = field.case("i003", FaultKind::Vanished).expect("it joined once");
    assert_eq!(case.incident.findings[0].cause.label(), "node-object-deleted");
    assert!(field.calls.is_empty(), "a person is asked to restart the kubelet first");
    assert!(field.case("i003", FaultKind::NeverJoined).is_none());
}

#[test]
fn a_ghost_is_cleaned_up_only_when_its_instance_is_denied_twice() {
    let mut field = Field::new(roster()).populate(10);
    field.run(Span::from_min(2));
    field.delete_machine("i004");
    field.run(Span::from_min(1));
    assert!(matches!(field.machine_state("i004"), MachineState::CannotTell(_)), "its node is Ready");
    field.nodes.get_mut("i004").unwrap().ready = Ready::Unknown;
    field.run(Span::from_min(5));
    assert!(matches!(field.calls[..], [Call::DeleteNode(_)]), "{:?}", field.calls);
}

#[test]
fn errored_instance_with_a_fault_is_deleted_once() {
    let mut field = Field::new(roster()).populate(10);
    field.run(Span::from_min(2));
    field.add_machine("bad", false);
    let bad = field.instances.get_mut("bad").unwrap();
    bad.state = InstanceState::Errored;
    bad.fault = Some(Fault { code: 500, message: "No valid host was found.".into() });
    field.run(Span::from_min(5));
    assert!(matches!(field.calls[..], [Call::DeleteInstance(_)]), "{:?}", field.calls);
}

#[test]
fn stuck_deleting_is_told_once_and_not_deleted_again() {
    let mut field = Field::new(roster()).populate(10);
    field.run(Span::from_min(2));
    field.add_machine("old", false);
    field.instances.get_mut("old").unwrap().state = InstanceState::Deleting;
    field.run(Span::from_min(60));
    assert!(field.calls.is_empty(), "{:?}", field.calls);
    assert!(field.case("old", FaultKind::StuckDeleting).is_some());
}

#[test]
fn machine_that_lost_and_regained_its_marks_is_no_newcomer() {
    let mut field = Field::new(roster()).populate(10);
    field.run(Span::from_min(2));
    let marks = field.instances["i005"].marks.clone();
    field.instances.get_mut("i005").unwrap().marks = std::sync::Arc::default();
    field.nodes.remove("i005");
    field.run(Span::from_min(2));
    field.instances.get_mut("i005").unwrap().marks = marks;
    field.run(Span::from_min(3));
    assert!(field.case("i005", FaultKind::Vanished).is_some(), "it joined once");
    assert!(field.case("i005", FaultKind::NeverJoined).is_none());
}

/// The registration server forgets a machine a day after it was told that it is gone; its certificate is worth nothing then.
#[test]
fn denied_new_machine_is_recorded_as_back_once_listed() {
    let mut field = Field::new(roster()).populate(10);
    field.run(Span::from_min(2));
    field.add_machine("new", false);
    field.run(Span::from_min(1));
    let new = field.instances["new"].clone();
    field.delete_machine("new");
    field.run(Span::from_min(3));
    field.instances.insert("new".into(), new);
    field.run(Span::from_min(2));
    let said = field.records.iter().filter_map(|record| match record {
        Record::Forgotten { machines, .. } => Some((machines, false)),
        Record::Returned { machines, .. } => Some((machines, true)),
        _ => None,
    });
    let machine = MachineKey::Instance("os".into(), "new".into());
    let said: Vec<bool> =
        said.filter(|(machines, _)| machines.contains(&machine)).map(|(_, back)| back).collect();
    assert_eq!(said, [false, true]);
}

#[test]
fn a_bare_record_of_a_cell_that_is_down_unsays_nothing() {
    let mut field = Field::new(roster()).populate(10);
    field.run(Span::from_min(2));
    let healthy = field.instances["i005"].clone();
    let bare = field.instances.get_mut("i005").unwrap();
    bare.state = InstanceState::Other;
    bare.marks = std::sync::Arc::default();
    field.run(Span::from_min(30));
    assert_eq!(field.machine_state("i005"), MachineState::Answers);
    field.instances.insert("i005".into(), healthy);
    field.run(Span::from_min(1));
    assert!(field.calls.is_empty());
}

#[test]
fn fault_limit_of_one_allows_exactly_one_deletion() {
    let mut roster = roster();
    roster.limits.same_fault_stops_at = 1;
    let mut field = Field::new(roster).populate(10);
    field.run(Span::from_min(2));
    for id in ["bad-1", "bad-2"] {
        field.add_machine(id, false);
        let bad = field.instances.get_mut(id).unwrap();
        bad.state = InstanceState::Errored;
        bad.fault = Some(Fault { code: 500, message: "No valid host was found.".into() });
    }
    field.run(Span::from_min(3));
    let held = field.held("bad-2", FaultKind::Errored);
    assert!(held.contains("a machine was deleted for the same fault"), "{held}");
    field.run(Span::from_min(90));
    assert_eq!(field.destructive_calls(), 1, "{:?}", field.calls);
}

#[test]
fn registration_after_reboot_closes_never_joined_as_mended() {
    let mut field = Field::new(roster()).populate(10);
    field.run(Span::from_min(2));
    field.add_machine("new", false);
    field.run(Span::from_min(17));
    assert!(matches!(field.calls[..], [Call::Reboot(_)]), "{:?}", field.calls);
    field.nodes.insert("new".into(), super::fixture::node("new", Ready::False));
    field.run(Span::from_s(20));
    field.nodes.insert("new".into(), super::fixture::node("new", Ready::True));
    field.run(Span::from_min(3));
    let closed = field.state.closed().find(|closed| closed.incident.key.kind == FaultKind::NeverJoined);
    assert_eq!(closed.map(|closed| closed.verdict.name()), Some("mended"));
}

/// Whether a node that is not Ready at first sight is joining or was Ready once, a new process does not know.
#[test]
fn node_never_seen_ready_gets_the_longer_deadline() {
    for (not_ready_min, join_min) in [(5, 15), (40, 15)] {
        let mut roster = roster();
        let deadlines = &mut roster.pools.values_mut().next().unwrap().deadlines;
        deadlines.not_ready_within = Span::from_min(not_ready_min);
        deadlines.join_within = Some(Span::from_min(join_min));
        let mut field = Field::new(roster).populate(10);
        field.nodes.get_mut("i001").unwrap().ready = Ready::Unknown;
        let wider = not_ready_min.max(join_min);
        field.run(Span::from_min(wider - 1));
        let case = field.case("i001", FaultKind::NotReady).expect("it is told at once");
        assert_eq!(case.due_after, Some(Span::from_min(wider)));
        assert!(field.calls.is_empty());
    }
}

/// The lists of nodes are old, and those of leases are not: a machine that joined meanwhile seems to have no Node. Nodes are
/// often called by the qualified name of their host.
#[test]
fn machine_with_renewed_lease_is_kept_though_node_is_unlisted() {
    for name in ["node-new", "node-new.prod.example.internal"] {
        let mut field = Field::new(roster()).populate(10);
        field.run(Span::from_min(5));
        field.add_machine("new", false);
        field.unlisted_leases = vec![name.into()];
        field.run(Span::from_min(180));
        assert_eq!(field.destructive_calls(), 0, "{name}: {:?}", field.calls);
        // It was renewed by a kubelet that has ended.
        field.unlisted_leases.clear();
        field.run(Span::from_min(180));
        assert!(field.destructive_calls() > 0, "{name}: held for ever");
    }
}

/// A client that may write leases renews one of a longer name, to which no Node belongs: it kept a machine that never joined from
/// every repair for ever. Names that change do no more than one.
#[test]
fn lease_of_a_name_that_no_node_has_holds_no_machine_for_ever() {
    for names in [1, 1000] {
        let mut field = Field::new(roster()).populate(10);
        field.run(Span::from_min(5));
        field.add_machine("new", false);
        for number in 0..24 * 6 {
            field.unlisted_leases = vec![format!("node-new.of-another-{}", number % names).as_str().into()];
            field.run(Span::from_min(10));
        }
        assert!(field.destructive_calls() > 0, "held for a day by a lease that belongs to no Node");
    }
}

/// It serves for a day although its cloud shows it in ERROR (a live migration that failed), and is rebooted from within.
#[test]
fn errored_machine_that_served_gets_time_for_its_own_reboot() {
    let mut field = Field::new(roster()).populate(10);
    field.run(Span::from_min(5));
    field.instances.get_mut("i004").unwrap().state = InstanceState::Errored;
    field.run(Span::from_min(24 * 60));
    assert_eq!(field.calls, []);
    field.nodes.get_mut("i004").unwrap().ready = Ready::Unknown;
    field.run(Span::from_min(2));
    assert_eq!(field.calls, []);
}

/// A failed live migration left it in ERROR two hours ago, and it serves.
fn serves_in_error() -> Field {
    let mut field = Field::new(roster()).populate(10);
    field.run(Span::from_min(5));
    field.instances.get_mut("i004").unwrap().state = InstanceState::Errored;
    field.run(Span::from_min(120));
    assert_eq!(field.calls, []);
    field
}

/// It reboots by itself, and was deleted meanwhile: a process that began a moment ago, or slept, took its ERROR for new, and so
/// did one that saw its Node go.
#[test]
fn errored_serving_machine_gets_normal_time_when_it_reboots() {
    for how in ["it goes on", "another process", "a pause of ours"] {
        for gone in [false, true] {
            let mut field = serves_in_error();
            match how {
                "another process" => field = field.restarted(roster()),
                "a pause of ours" => field.now = field.now + Span::from_s(90),
                _ => {}
            }
            field.run(Span::from_min(3));
            match gone {
                true => drop(field.nodes.remove("i004")),
                false => field.nodes.get_mut("i004").unwrap().ready = Ready::Unknown,
            }
            field.run(Span::from_min(4));
            assert_eq!(field.calls, [], "{how}, its Node is gone: {gone}");
            field.run(Span::from_min(5));
            assert!(
                matches!(field.calls[..], [Call::DeleteInstance(_)]),
                "{how}, its Node is gone: {gone}: {:?}",
                field.calls
            );
        }
    }
}

/// The machine's Node went while no process ran: the controller does not know when, nor whether the machine served until
/// then. A cloud controller says that it was no person who took the Node away.
#[test]
fn errored_machine_with_unseen_node_loss_gets_normal_time() {
    let mut field = serves_in_error();
    let node = field.nodes.remove("i004").unwrap();
    let mut field = field.restarted(roster());
    let at = field.now;
    say(&mut field, node.name.as_str(), "DeletingNode", Some(node.uid.as_str()), at);
    field.run(Span::from_min(4));
    assert_eq!(field.calls, []);
    field.run(Span::from_min(5));
    assert!(matches!(field.calls[..], [Call::DeleteInstance(_)]), "{:?}", field.calls);
}

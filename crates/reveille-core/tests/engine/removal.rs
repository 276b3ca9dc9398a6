//! Nodes that a person drains and deletes, and those that a controller deletes while they are cordoned.

use std::sync::Arc;

use reveille_core::diagnose::machine_state::{Excuse, MachineState};
use reveille_core::effect::Call;
use reveille_core::event::{ClusterFact, Event};
use reveille_core::model::cause::Cause;
use reveille_core::model::incident::{Confidence, FaultKind};
use reveille_core::model::instance::{Instance, InstanceState};
use reveille_core::model::node::{Node, NodeEvent, Provider, Ready};
use reveille_core::model::time::Span;
use reveille_core::record::Record;

use super::fixture::{Field, instance, node, roster};
use super::steps::{cloud_deletes, made, min, set, without_rejoin};

fn cordoned() -> Field {
    let mut field = Field::new(roster()).populate(10);
    field.run(Span::from_min(2));
    field.nodes.get_mut("i003").unwrap().cordoned = true;
    field.run(Span::from_min(5));
    field
}

fn say(field: &mut Field, reason: &str, reporter: &str) {
    let event = NodeEvent {
        node: "node-i003".into(),
        uid: None,
        reason: reason.into(),
        message: "Deleting node node-i003 because it does not exist in the cloud provider".into(),
        reporter: reporter.into(),
        stamped: None,
    };
    field.feed(Event::Cluster(ClusterFact::NodeEvent(event)));
}

/// `kubectl drain` and `kubectl delete node`.
#[test]
fn cordoned_node_that_is_deleted_was_removed_on_purpose() {
    let mut field = cordoned();
    field.nodes.remove("i003");
    say(&mut field, "RemovingNode", "node-controller");
    field.run(Span::from_min(3));
    let MachineState::Excused(Excuse::NodeLeft(sign)) = field.machine_state("i003") else {
        panic!("{:?}", field.machine_state("i003"))
    };
    assert!(sign.contains("cordoned before it was deleted"), "{sign}");
    field.run(Span::from_min(180));
    assert!(field.calls.is_empty(), "{:?}", field.calls);
    assert!(field.case("i003", FaultKind::Vanished).is_none());
    assert!(field.case("i003", FaultKind::StuckLeaving).is_some(), "a person is told that it is still there");
    assert_eq!(field.records.iter().filter(|record| matches!(record, Record::Left { .. })).count(), 1);
}

/// A client with the right to write events, as every kubelet has, can claim that the cloud controller deleted the Node, or
/// that the Node was uncordoned before. Such a claim must not make the controller reboot or delete a machine that a person
/// works on. The agents read these events in the same way.
#[test]
fn no_event_unsays_that_a_node_was_cordoned_when_it_was_deleted() {
    let told = [
        ("DeletingNode", "cloud-node-lifecycle-controller"),
        ("NodeSchedulable", "kubelet"),
        ("NodeSchedulable", "other-client"),
    ];
    for (reason, reporter) in told {
        for minutes in [None, Some(0), Some(60)] {
            let mut field = cordoned();
            if minutes.is_none() {
                say(&mut field, reason, reporter);
            }
            field.nodes.remove("i003");
            field.sync_nodes();
            if let Some(minutes) = minutes {
                field.run(Span::from_min(minutes));
                say(&mut field, reason, reporter);
            }
            field.run(Span::from_min(180));
            assert_eq!(field.calls, [], "{reason} {minutes:?}");
            assert!(field.case("i003", FaultKind::Vanished).is_none());
        }
    }
}

/// The API keeps an event for an hour, and a Node that was deleted comes back under its name: a process that did not watch it go
/// cannot know of which deletion an event tells (seed 3103885).
#[test]
fn event_about_an_unwatched_deletion_proves_no_cause() {
    for watched in [true, false] {
        let mut field = Field::new(roster()).populate(10);
        field.run(Span::from_min(5));
        field.nodes.remove("i003");
        if watched {
            field.sync_nodes();
        } else {
            field = field.restarted(roster());
        }
        say(&mut field, "DeletingNode", "cloud-node-lifecycle-controller");
        field.run(Span::from_min(3));
        let case = field.case("i003", FaultKind::Vanished).expect("its Node is gone");
        let finding = &case.incident.findings[0];
        assert_eq!(finding.cause, Cause::NodeDeletedByCloudController);
        assert_eq!(finding.confidence == Confidence::Sure, watched, "{finding:?}");
    }
}

#[test]
fn node_uncordoned_before_its_deletion_is_vanished() {
    let mut field = cordoned();
    field.nodes.get_mut("i003").unwrap().cordoned = false;
    field.run(Span::from_min(1));
    field.nodes.remove("i003");
    field.run(Span::from_min(3));
    assert!(field.case("i003", FaultKind::Vanished).is_some());
}

/// The watch was away while a person drained the node and deleted it: no list showed it cordoned.
#[test]
fn kubelet_event_proves_drain_missed_in_a_watch_gap() {
    for uncordoned in [false, true] {
        let mut field = Field::new(roster()).populate(10);
        field.run(Span::from_min(5));
        if uncordoned {
            say(&mut field, "NodeNotSchedulable", "kubelet");
            say(&mut field, "NodeSchedulable", "kubelet");
            // Each client may say that. The Node is shown, and is not cordoned.
            field.run(Span::from_min(2));
        }
        field.nodes.remove("i003");
        field.sync_nodes();
        // The other one is deleted by its cloud.
        let what = if uncordoned { "DeletingNode" } else { "NodeNotSchedulable" };
        say(&mut field, what, "one of them");
        say(&mut field, "RemovingNode", "node-controller");
        field.run(Span::from_min(20));
        let opened = field.case("i003", FaultKind::Vanished).is_some();
        assert_eq!(opened, uncordoned, "{:?}", field.machine_state("i003"));
        assert_eq!(field.calls.is_empty(), !uncordoned, "{:?}", field.calls);
    }
}

/// The same for a machine in ERROR: the operator who drained it is at work on it (seed 3600191).
#[test]
fn kubelet_event_proves_drain_of_an_errored_machine() {
    let mut field = Field::new(roster()).populate(10);
    field.run(Span::from_min(5));
    field.instances.get_mut("i003").unwrap().state = InstanceState::Errored;
    field.nodes.remove("i003");
    field.sync_nodes();
    say(&mut field, "NodeNotSchedulable", "kubelet");
    field.run(Span::from_min(60));
    assert!(field.calls.is_empty(), "{:?}", field.calls);
}

/// A second Node that names the machine and never answered does not unsay that the first was drained and deleted.
#[test]
fn node_that_never_answered_does_not_unsay_a_drain() {
    let mut field = cordoned();
    let mut twin = super::fixture::node("i003", reveille_core::model::node::Ready::Unknown);
    (twin.name, twin.uid) = ("node-i003-old".into(), "uid-i003-old".into());
    field.nodes.insert("i003-old".to_owned(), twin);
    field.run(Span::from_min(1));
    field.nodes.remove("i003");
    field.run(Span::from_min(60));
    assert_eq!(field.destructive_calls(), 0, "{:?}", field.calls);
}

/// It is drained and deleted while its marks are off for a while: known when they are back.
#[test]
fn cordoned_node_of_unmarked_machine_was_removed_on_purpose() {
    for restarts in [false, true] {
        let mut field = cordoned();
        let marks = std::mem::take(&mut field.instances.get_mut("i003").unwrap().marks);
        field.run(Span::from_min(2));
        if restarts {
            field = field.restarted(roster());
            field.run(Span::from_min(2));
        }
        field.nodes.remove("i003");
        field.run(Span::from_min(2));
        field.instances.get_mut("i003").unwrap().marks = marks;
        field.run(Span::from_min(180));
        assert!(field.calls.is_empty(), "{restarts}: {:?}", field.calls);
        assert!(field.case("i003", FaultKind::Vanished).is_none());
    }
}

/// Machines that people took away on purpose are in this state then.
fn freeze_none(state: InstanceState) {
    let mut field = Field::new(roster()).populate(10);
    field.run(Span::from_min(5));
    for id in ["i005", "i006", "i007", "i008"] {
        field.nodes.get_mut(id).unwrap().cordoned = true;
        field.run(Span::from_min(1));
        field.nodes.remove(id);
        field.run(Span::from_min(1));
        field.instances.get_mut(id).unwrap().state = state;
        field.run(Span::from_min(1));
    }
    field.run(Span::from_min(20));
    field.nodes.get_mut("i004").unwrap().ready = Ready::Unknown;
    field.run(Span::from_min(60));
    assert!(field.destructive_calls() > 0, "{state:?}: {}", field.held("i004", FaultKind::NotReady));
}

/// They are not expected, and keep no other from its repair.
#[test]
fn departed_machines_that_are_stopped_freeze_no_repair() {
    [InstanceState::Active, InstanceState::Stopped].into_iter().for_each(freeze_none);
}

#[test]
fn departed_machines_in_error_freeze_no_repair() {
    freeze_none(InstanceState::Errored);
}

/// A Node was drained and deleted once, and came back. Months later it vanishes while no process runs.
#[test]
fn machine_back_after_drain_is_repaired_after_restart_too() {
    for (restarts, rotated) in [(false, false), (true, true), (true, false)] {
        let mut field = Field::new(roster()).populate(10);
        field.run(Span::from_min(5));
        let there = field.nodes["i004"].clone();
        field.nodes.get_mut("i004").unwrap().cordoned = true;
        field.run(Span::from_min(1));
        field.nodes.remove("i004");
        field.run(Span::from_min(1));
        field.nodes.insert("i004".into(), there);
        field.run(Span::from_min(60));
        if rotated {
            field.records = field.state.checkpoint();
        }
        let gone = field.nodes.remove("i004").unwrap();
        if restarts {
            field = field.restarted(roster());
            cloud_deletes(&mut field, &gone);
        }
        field.run(Span::from_min(60));
        assert!(
            field.destructive_calls() > 0,
            "restarts: {restarts}, rotated: {rotated}: {:?}",
            field.machine_state("i004")
        );
    }
}

/// A finalizer holds the Node, and who set it never takes it off.
#[test]
fn node_whose_deletion_does_not_end_is_told() {
    let mut field = Field::new(roster()).populate(10);
    field.run(Span::from_min(20));
    let node = field.nodes.get_mut("i004").unwrap();
    (node.intent.deleting, node.ready) = (true, Ready::Unknown);
    field.run(Span::from_min(2));
    assert!(
        matches!(field.machine_state("i004"), MachineState::Excused(_)),
        "{:?}",
        field.machine_state("i004")
    );
    field.run(Span::from_min(15));
    let told = field.case("i004", FaultKind::StuckLeaving).expect("a person is told");
    assert_eq!(told.incident.findings[0].cause, Cause::RemovalStuck);
    let evidence = told.incident.findings[0].evidence[0].fact.to_string();
    assert!(evidence.contains("metadata.deletionTimestamp"), "{evidence}");
    assert_eq!(field.calls, []);
}

/// A person drains a Node, deletes it and keeps the machine. Later etcd is restored from a backup from before that: the same
/// object, uid and all, is there again, as it was before the cordon. Its kubelet is stopped, so that it falls silent.
#[test]
fn drained_machine_is_left_alone_when_etcd_restores_its_node() {
    for (backed_up_ready, restarts) in [(true, false), (false, false), (true, true), (false, true)] {
        let mut field = Field::new(without_rejoin()).populate(10);
        field.run(min(20));
        let mut backup = field.nodes["i004"].clone();
        field.nodes.get_mut("i004").unwrap().cordoned = true;
        field.run(min(2));
        field.nodes.remove("i004");
        field.run(min(20));
        assert_eq!(field.calls, []);
        if restarts {
            field = field.restarted(without_rejoin());
        }
        field.silent.push(backup.name.to_string());
        backup.ready = if backed_up_ready { Ready::True } else { Ready::Unknown };
        field.nodes.insert("i004".into(), backup);
        field.run(Span::from_s(50));
        set(&mut field, "i004", Ready::Unknown);
        field.run(min(120));
        let what = format!("ready in the backup: {backed_up_ready}, restarts: {restarts}");
        assert_eq!(field.calls, [], "{what}: {:?}", made(&field));
    }
}

/// The kubelet of a machine registered its Node a second time, as another object. A person drains that Node, deletes it and keeps
/// the machine. Then etcd is restored from a backup from before the second registration: the first object is there again. It is
/// another one than the one that went, and no kubelet wrote it.
#[test]
fn drained_machine_is_left_alone_when_backup_has_older_object() {
    for registered_twice in [false, true] {
        let mut field = Field::new(without_rejoin()).populate(10);
        field.run(min(20));
        let backup = field.nodes["i004"].clone();
        if registered_twice {
            field.nodes.remove("i004");
            field.run(Span::from_s(30));
            let again = Node { uid: "uid-second".into(), ..backup.clone() };
            field.nodes.insert("i004".into(), again);
            field.run(min(20));
        }
        field.nodes.get_mut("i004").unwrap().cordoned = true;
        field.run(min(2));
        field.nodes.remove("i004");
        field.run(min(20));
        assert_eq!(field.calls, []);
        field.silent.push(backup.name.to_string());
        field.nodes.insert("i004".into(), backup);
        field.run(Span::from_s(50));
        set(&mut field, "i004", Ready::Unknown);
        field.run(min(120));
        assert_eq!(made(&field), [""; 0], "registered twice: {registered_twice}");
    }
}

/// The same object comes back and falls silent. The restore did not satisfy, and the same backup is restored a second time: it is
/// Ready once more, as it was then, and no kubelet wrote that. Its lease is not renewed; that of another backup is another one.
#[test]
fn drained_machine_is_left_alone_when_backup_is_restored_twice() {
    for (twice, another) in [(false, false), (true, false), (true, true)] {
        let mut field = Field::new(without_rejoin()).populate(10);
        field.run(min(20));
        let backup = field.nodes["i004"].clone();
        field.nodes.get_mut("i004").unwrap().cordoned = true;
        field.run(min(2));
        field.nodes.remove("i004");
        field.run(min(20));
        field.silent.push(backup.name.to_string());
        field.nodes.insert("i004".into(), backup);
        field.run(Span::from_s(50));
        set(&mut field, "i004", Ready::Unknown);
        field.run(Span::from_s(30));
        if twice {
            field.renewal_of_silent += u64::from(another);
            set(&mut field, "i004", Ready::True);
            field.run(Span::from_s(50));
            set(&mut field, "i004", Ready::Unknown);
        }
        field.run(min(120));
        assert_eq!(made(&field), [""; 0], "twice: {twice}, another: {another}");
    }
}

/// The Nodes of four machines go together, and a newer backup brings them back: that of a machine which has been off since, too.
#[test]
fn machine_lost_with_others_is_left_alone_after_etcd_restore() {
    for restarts in [false, true] {
        let mut field = Field::new(without_rejoin()).populate(10);
        field.lists_alone = true;
        field.run(min(20));
        let ids = ["i001", "i002", "i003", "i004"];
        let backup: Vec<_> = ids.iter().map(|id| field.nodes.remove(*id).unwrap()).collect();
        field.run(min(20));
        assert_eq!(field.state.context().cluster.lost_together.nodes(), 4);
        if restarts {
            field = field.restarted(without_rejoin());
        }
        field.silent.push(backup[3].name.to_string());
        field.nodes.extend(ids.iter().map(|id| (*id).to_owned()).zip(backup));
        field.run(Span::from_s(50));
        set(&mut field, "i004", Ready::Unknown);
        field.run(min(120));
        assert_eq!(field.calls, [], "restarts: {restarts}: {:?}", made(&field));
    }
}

/// A machine that was drained comes back for good: its kubelet registers again, or goes on with the object of the backup. From
/// then on it is repaired as any other.
#[test]
fn drained_machine_is_repaired_once_its_kubelet_lives_again() {
    for (registers, serves, restarts) in [
        (true, true, false),
        (true, false, false),
        (false, true, false),
        (true, true, true),
        (false, true, true),
    ] {
        let mut field = Field::new(without_rejoin()).populate(10);
        field.run(min(20));
        let mut node = field.nodes["i004"].clone();
        field.nodes.get_mut("i004").unwrap().cordoned = true;
        field.run(min(2));
        field.nodes.remove("i004");
        field.run(min(20));
        if restarts {
            field = field.restarted(without_rejoin());
        }
        if registers {
            node.uid = "uid-again".into();
        }
        node.ready = if serves { Ready::True } else { Ready::False };
        field.nodes.insert("i004".into(), node);
        field.renews.push("i004".into());
        field.run(min(2));
        field.renews.clear();
        set(&mut field, "i004", Ready::Unknown);
        field.run_until(min(120), |field| !field.calls.is_empty());
        let what = format!("registers: {registers}, serves: {serves}, restarts: {restarts}");
        assert!(!field.calls.is_empty(), "{what}: {:?}", field.machine_state("i004"));
    }
}

/// A machine's marks are off, and its Node is lost. A machine of another owner has a Node of the same name for a while, which is
/// drained and deleted. Then the marks are back: its own Node did not leave on purpose.
#[test]
fn foreign_node_of_same_name_removes_no_unmarked_machine() {
    for cordoned in [false, true] {
        let mut field = Field::new(without_rejoin()).populate(12);
        field.run(min(20));
        let marks = std::mem::take(&mut field.instances.get_mut("i004").unwrap().marks);
        field.run(min(2));
        field.nodes.remove("i004");
        field.run(min(2));
        field.instances.insert("foreign".into(), Instance { marks: Arc::default(), ..instance("foreign") });
        let of_foreign = Node {
            name: "node-i004".into(),
            provider: Provider::Instance("foreign".into()),
            cordoned,
            ..node("foreign", Ready::True)
        };
        field.nodes.insert("foreign".into(), of_foreign);
        field.run(min(2));
        field.nodes.remove("foreign");
        field.instances.remove("foreign");
        field.run(min(2));
        field.instances.get_mut("i004").unwrap().marks = marks;
        field.run(min(12 * 60));
        let reboots = field.calls.iter().filter(|call| matches!(call, Call::Reboot(_))).count();
        assert!(reboots > 0, "cordoned: {cordoned}: {:?}", made(&field));
    }
}

/// A fleet as k3s makes it, on bare metal or on EC2: the provider ID names no instance, and the system UUID is the hardware's and
/// not the instance's id. Each Node is linked by its name and its address.
fn without_identity(mut field: Field) -> Field {
    for (id, node) in &mut field.nodes {
        node.provider = Provider::Unread(format!("k3s://node-{id}").as_str().into());
        node.system_uuid = Some(format!("hardware-{id}").as_str().into());
        node.addresses = field.ports[id].addresses.clone();
    }
    field
}

/// A person takes the marks off a machine, pauses or drains it, and deletes its Node. A while later they put the marks back: it
/// left on purpose.
#[test]
fn machine_taken_out_while_unmarked_is_left_alone_by_any_uuid() {
    let mut touched = Vec::new();
    for (hardware, paused) in [(false, false), (false, true), (true, false), (true, true)] {
        let mut field = Field::new(roster()).populate(10);
        if hardware {
            field = without_identity(field);
        }
        field.run(min(20));
        let marks = std::mem::take(&mut field.instances.get_mut("i003").unwrap().marks);
        field.run(min(5));
        take_out(&mut field, paused);
        field.run(min(5));
        field.nodes.remove("i003");
        field.run(min(60));
        field.instances.get_mut("i003").unwrap().marks = marks;
        field.run(min(6 * 60));
        if !field.calls.is_empty() {
            touched.push((hardware, paused, made(&field)));
        }
    }
    assert!(touched.is_empty(), "UUIDs of hardware, paused: {touched:#?}");
}

fn take_out(field: &mut Field, paused: bool) {
    let node = field.nodes.get_mut("i003").unwrap();
    (node.intent.paused, node.cordoned) = (paused, !paused);
}

/// The same as `machine_taken_out_while_unmarked_is_left_alone_by_any_uuid`, where it was drained by the
/// autoscaler: a mark of a program stood on its Node when that went.
#[test]
fn machine_drained_while_unmarked_is_left_alone_by_any_uuid() {
    for hardware in [false, true] {
        let mut field = Field::new(roster()).populate(10);
        if hardware {
            field = without_identity(field);
        }
        field.run(min(20));
        let marks = std::mem::take(&mut field.instances.get_mut("i003").unwrap().marks);
        field.run(min(5));
        field.nodes.get_mut("i003").unwrap().intent.leaving = Some("ToBeDeletedByClusterAutoscaler".into());
        field.run(min(5));
        field.nodes.remove("i003");
        field.run(min(5));
        field.instances.get_mut("i003").unwrap().marks = marks;
        field.run(min(6 * 60));
        assert_eq!(made(&field), [""; 0], "UUIDs of hardware: {hardware}");
    }
}

/// We are restarted, and the cloud cannot be read for a quarter of an hour. Meanwhile a person pauses or drains a machine and
/// deletes its Node, in our sight: it left on purpose.
#[test]
fn machine_taken_out_before_first_listing_is_left_alone() {
    let mut touched = Vec::new();
    for (hardware, paused) in [(false, false), (false, true), (true, false), (true, true)] {
        let mut field = Field::new(roster()).populate(10);
        if hardware {
            field = without_identity(field);
        }
        field.run(min(20));
        let mut field = field.restarted(roster());
        let away = |field: &mut Field, span: Span| {
            let end = field.now + span;
            while field.now < end {
                field.now = field.now + Span::from_s(10);
                field.list_leases();
                field.feed(Event::Cluster(ClusterFact::Alive));
            }
        };
        field.sync_nodes();
        away(&mut field, min(5));
        let node = field.nodes.get_mut("i003").unwrap();
        (node.intent.paused, node.cordoned) = (paused, !paused);
        let node = node.clone();
        field.feed(Event::Cluster(ClusterFact::Applied(Arc::new(node.clone()))));
        away(&mut field, min(5));
        field.nodes.remove("i003");
        field.feed(Event::Cluster(ClusterFact::Deleted { name: node.name, uid: node.uid }));
        away(&mut field, min(5));
        field.run(min(24 * 60));
        touched.push((hardware, paused, made(&field)));
    }
    assert!(touched.iter().all(|(_, _, made)| made.is_empty()), "hardware, paused: {touched:#?}");
}

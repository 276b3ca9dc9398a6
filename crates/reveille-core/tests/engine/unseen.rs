//! Nodes that go while no process sees the cluster (none runs, it sleeps, no API server answers, another one does): after an hour
//! no event tells whether a person drained them, and their machines are told and held.

use std::collections::BTreeSet;
use std::sync::Arc;

use reveille_core::effect::{ReadError, ReadErrorKind};
use reveille_core::engine::{Restored, State};
use reveille_core::event::{ClusterFact, Event};
use reveille_core::model::incident::FaultKind;
use reveille_core::model::instance::{InstanceState, Mark};
use reveille_core::model::node::Ready;
use reveille_core::model::time::{Span, Time};
use reveille_core::record::Record;

use super::fixture::{Field, node, roster};
use super::fleets::ten as fleet;
use super::steps::{cloud_deletes, made, min, say, set, without_rejoin};

const ONE: &str = "i004";

fn refused() -> ClusterFact {
    let (kind, text) = (ReadErrorKind::Unavailable, "connection refused".into());
    ClusterFact::Failed(ReadError { kind, text, retry_after: None })
}

/// For so long the cluster says no more than this; the cloud is listed all the time, and we are awake.
fn hears_only(field: &mut Field, fact: &ClusterFact, span: Span) {
    let end = field.now + span;
    while field.now < end {
        field.now = field.now + Span::from_s(10);
        if (field.now.ms / 10_000) % 3 == 0 {
            field.list_cloud();
        }
        field.feed(Event::Cluster(fact.clone()));
    }
}

/// The API server cannot be reached for so long.
fn blind(field: &mut Field, span: Span) {
    hears_only(field, &refused(), span);
}

/// No process runs for so long.
fn off(mut field: Field, span: Span) -> Field {
    let last_alive = Some(field.now);
    field.now = field.now + span;
    next(field, last_alive)
}

fn next(field: Field, last_alive: Option<Time>) -> Field {
    let how = Restored { last_alive, ..field.next_begins() };
    let mut next = Field::with(State::restore(roster(), how, field.records.clone()));
    (next.now, next.records, next.made) = (field.now, field.records, field.made);
    (next.instances, next.ports, next.nodes) = (field.instances, field.ports, field.nodes);
    next.cloud_behind = field.cloud_behind;
    next
}

/// Our clock is set back by so much, and no other.
fn set_back(field: &mut Field, by: Span) {
    field.now = field.now - by;
    field.cloud_behind = Span::from_ms(field.cloud_behind.ms - by.ms);
}

fn unmark(field: &mut Field) -> Arc<BTreeSet<Mark>> {
    std::mem::take(&mut field.instances.get_mut(ONE).unwrap().marks)
}

fn mark(field: &mut Field, marks: Arc<BTreeSet<Mark>>) {
    field.instances.get_mut(ONE).unwrap().marks = marks;
}

/// In two hours nothing is done to the machine, and a person is told why.
fn is_told_and_held(mut field: Field, how: &str) {
    field.run_until(min(120), |field| !field.calls.is_empty());
    assert!(field.calls.is_empty(), "{how}: {:?}", made(&field));
    let kind = if field.case(ONE, FaultKind::NotReady).is_some() {
        FaultKind::NotReady
    } else {
        FaultKind::Vanished
    };
    let held = field.held(ONE, kind);
    assert!(held.contains("while Reveille could not watch"), "{how}: {held}");
}

/// A VPN is down for eight hours, in which a person drains a Node and deletes it; we are restarted when it is back, or not.
#[test]
fn node_lost_during_api_outage_is_unwatched_after_restart() {
    for how in ["nothing", "restart", "rotated"] {
        let mut field = fleet();
        blind(&mut field, min(240));
        field.nodes.remove(ONE);
        blind(&mut field, min(240));
        assert_eq!(field.calls, []);
        if how == "rotated" {
            field.records = field.state.checkpoint();
        }
        if how != "nothing" {
            field = field.restarted(roster());
        }
        is_told_and_held(field, how);
    }
}

/// A night without us, and half a minute of a process that reaches no API server; or three times less than an hour, which add up.
#[test]
fn absence_of_process_and_api_outage_add_up_to_one_gap() {
    for (how, before, lives, after) in [
        ("a short process after a night", min(8 * 60), Span::from_s(30), Span::from_s(5)),
        ("a process that dies at once", min(8 * 60), Span::from_s(10), Span::from_s(5)),
        ("two short gaps", min(50), Span::from_s(20), min(50)),
        ("a short gap and the API after that", min(40), min(30), Span::ZERO),
    ] {
        let mut field = fleet();
        field.nodes.remove(ONE);
        field = off(field, before);
        blind(&mut field, lives);
        if after > Span::ZERO {
            field = off(field, after);
        }
        is_told_and_held(field, how);
    }
}

/// A process takes in the first list after a night, and dies before the cloud is listed.
#[test]
fn gap_lasts_until_what_went_in_it_is_in_the_ledger() {
    let mut field = fleet();
    field.nodes.remove(ONE);
    field = off(field, min(8 * 60));
    field.sync_nodes();
    field = field.restarted(roster());
    is_told_and_held(field, "restarted after the first list");
}

/// Our audit is quicker than the watch, and tells of one Node that is gone. No list comes after it.
#[test]
fn node_lost_during_api_outage_is_unwatched_when_audit_tells() {
    let mut field = fleet();
    blind(&mut field, min(20));
    let gone = field.nodes.remove(ONE).unwrap();
    blind(&mut field, min(100));
    field.feed(Event::Cluster(ClusterFact::Deleted { name: gone.name, uid: gone.uid }));
    field.watch_for(min(120));
    is_told_and_held(field, "audit");
}

/// A proof of life was on its way when we fell asleep, and comes before the list.
#[test]
fn proof_of_life_from_before_a_sleep_ends_no_gap() {
    let mut field = fleet();
    field.nodes.remove(ONE);
    field.now = field.now + min(8 * 60);
    field.feed(Event::Cluster(ClusterFact::Alive));
    is_told_and_held(field, "alive");
}

/// A tunnel leads to another cluster for two hours, and back. Its answers are refused, and its watch proves that it lives.
#[test]
fn node_that_went_while_another_cluster_answered_is_unwatched() {
    for fact in [ClusterFact::Alive, refused()] {
        let mut field = Field::new(roster()).populate(10);
        let cluster = |uid: &str| Event::Cluster(ClusterFact::Identity(uid.into()));
        field.feed(cluster("ours"));
        field.run(min(20));
        field.feed(cluster("staging"));
        field.feed(Event::Cluster(ClusterFact::Synced(Vec::new())));
        field.nodes.remove(ONE);
        hears_only(&mut field, &fact, min(120));
        assert_eq!(field.calls, []);
        field.feed(cluster("ours"));
        is_told_and_held(field, &format!("{fact:?}"));
    }
}

/// A machine was renamed: the Node of its old name stays, silent. A person drains the new one in a night without us.
#[test]
fn node_that_went_unwatched_beside_a_left_over_one_is_held() {
    for sleeps in [true, false] {
        let mut field = fleet();
        let mut old = node(ONE, Ready::Unknown);
        (old.name, old.uid) = ("old-i004".into(), "uid-old".into());
        field.nodes.insert("old".into(), old);
        field.run(min(20));
        assert_eq!(field.calls, []);
        field.nodes.remove(ONE);
        if sleeps {
            field.now = field.now + min(8 * 60);
        } else {
            field = off(field, min(8 * 60));
        }
        is_told_and_held(field, &format!("sleeps: {sleeps}"));
    }
}

/// After a gap the watch goes on where it was, and no list comes: a Node that goes a few minutes later is seen to go, and so is
/// one that goes in a restart after the gap.
#[test]
fn node_that_goes_after_a_gap_is_missed_as_any_other() {
    for restarts in [false, true] {
        let mut field = fleet();
        blind(&mut field, min(120));
        field.watch_for(min(2));
        if restarts {
            let gone = field.nodes.remove(ONE).unwrap();
            field = field.restarted(roster());
            cloud_deletes(&mut field, &gone);
        } else {
            let gone = field.nodes.remove(ONE).unwrap();
            field.feed(Event::Cluster(ClusterFact::Deleted { name: gone.name, uid: gone.uid }));
            field.watch_for(min(30));
        }
        field.run_until(min(60), |field| !field.calls.is_empty());
        assert!(!field.calls.is_empty(), "restarts: {restarts}: {}", field.held(ONE, FaultKind::Vanished));
    }
}

/// The ledger is told that a gap began and that it is over, once each, and nothing while all is seen.
#[test]
fn ledger_is_told_of_a_gap_once_at_each_end() {
    let mut field = fleet();
    let told = |field: &Field| -> Vec<bool> {
        let since = |record: &Record| match record {
            Record::Numbered { unseen_since, .. } => Some(unseen_since.is_some()),
            _ => None,
        };
        field.records.iter().filter_map(since).collect()
    };
    field.watch_for(min(20));
    assert!(told(&field).is_empty(), "{:?}", told(&field));
    blind(&mut field, min(20));
    field.watch_for(min(20));
    assert_eq!(told(&field), [true, false]);
    let mut field = field.restarted(roster());
    field.run(min(5));
    assert_eq!(told(&field), [true, false, true, false]);
}

/// The API server is away for two hours, in which a person drains a Node and deletes it. Our host is restarted then, and its
/// clock is set back by an hour and a half.
#[test]
fn gap_is_as_long_although_the_clock_goes_back_over_a_restart() {
    let mut field = fleet();
    blind(&mut field, min(60));
    field.nodes.remove(ONE);
    blind(&mut field, min(60));
    let last_alive = Some(field.now);
    set_back(&mut field, min(90));
    is_told_and_held(next(field, last_alive), "set back by 90 minutes");
}

/// The API server is away, our clock is set back by two hours meanwhile, and we are restarted when the API is back, or not.
#[test]
fn gap_keeps_its_length_after_clock_set_back_and_restart() {
    for restarts in [false, true] {
        let mut field = fleet();
        field.run(min(180));
        blind(&mut field, min(10));
        set_back(&mut field, min(120));
        blind(&mut field, min(60));
        field.nodes.remove(ONE);
        blind(&mut field, min(90));
        if restarts {
            field = off(field, Span::from_s(5));
        }
        is_told_and_held(field, &format!("restarts: {restarts}"));
    }
}

/// A person takes the marks off a machine to have it to themselves. Reveille is down for a night, in which they drain its Node
/// and delete it. In the morning they put the marks back, before or after Reveille is started. Once it has a Node again, it is a
/// machine like any other.
#[test]
fn node_of_unmarked_machine_lost_unwatched_is_told_and_held() {
    for (back_before, rotated) in [(true, false), (false, false), (true, true), (false, true)] {
        let mut field = fleet();
        let marks = unmark(&mut field);
        field.run(min(10));
        if rotated {
            field.records = field.state.checkpoint();
        }
        let node = field.nodes.remove(ONE).unwrap();
        if back_before {
            mark(&mut field, marks.clone());
        }
        field = off(field, min(8 * 60));
        if !back_before {
            field.run(min(10));
            mark(&mut field, marks);
        }
        field.run(min(60));
        let how = format!("back before: {back_before}, rotated: {rotated}");
        assert_eq!(field.calls, [], "{how}");
        field.nodes.insert(ONE.into(), node);
        field.run(min(10));
        field.nodes.remove(ONE);
        field.run_until(min(60), |field| !field.calls.is_empty());
        assert!(!field.calls.is_empty(), "{how}: {}", field.held(ONE, FaultKind::Vanished));
    }
}

/// The marks are off, and the API server is away for two hours, in which the Node is drained and deleted. It is back for ten
/// minutes; the marks are put back then, or after a restart of ours.
#[test]
fn node_of_unmarked_machine_lost_unwatched_is_held_on_restart() {
    for how in ["nothing", "restart", "rotated"] {
        let mut field = fleet();
        let marks = unmark(&mut field);
        field.run(min(10));
        blind(&mut field, min(60));
        field.nodes.remove(ONE);
        blind(&mut field, min(60));
        field.run(min(10));
        if how == "rotated" {
            field.records = field.state.checkpoint();
        }
        if how != "nothing" {
            field = field.restarted(roster());
            field.run(min(5));
        }
        mark(&mut field, marks);
        field.run(min(1));
        is_told_and_held(field, how);
    }
}

/// A machine keeps its marks off for good, and its Node went in a long gap: that gap is over all the same, and what goes in a
/// restart some hours later is missed as any other.
#[test]
fn machine_that_stays_without_marks_prolongs_no_gap() {
    let mut field = fleet();
    unmark(&mut field);
    field.run(min(10));
    blind(&mut field, min(60));
    field.nodes.remove(ONE);
    blind(&mut field, min(60));
    field.run(min(3 * 60));
    let gone = field.nodes.remove("i005").unwrap();
    field = field.restarted(roster());
    cloud_deletes(&mut field, &gone);
    field.run_until(min(60), |field| !field.calls.is_empty());
    assert!(!field.calls.is_empty(), "{}", field.held("i005", FaultKind::Vanished));
}

/// A machine is in ERROR, or off, and its Node goes while we watch, or in a restart of ours, without a sign. Then no process
/// runs for a night.
#[test]
fn node_that_was_seen_to_go_before_a_night_is_not_unwatched() {
    for kind in ["errored", "stopped", "stand-in", "vanished"] {
        for (restarts, rotated) in [(false, false), (true, false), (false, true)] {
            let mut field = fleet();
            if kind == "stand-in" {
                let mut old = node(ONE, Ready::Unknown);
                (old.name, old.uid) = ("old-i004".into(), "uid-old".into());
                field.nodes.insert("old".into(), old);
                field.run(min(20));
            }
            field.nodes.get_mut(ONE).unwrap().ready = Ready::Unknown;
            match kind {
                "errored" => field.instances.get_mut(ONE).unwrap().state = InstanceState::Errored,
                "stopped" => field.instances.get_mut(ONE).unwrap().state = InstanceState::Stopped,
                _ => {}
            }
            field.run(Span::from_s(10));
            let gone = field.nodes.remove(ONE).unwrap();
            if restarts {
                field = field.restarted(roster());
                // Its cloud controller says that it took the Node away: what a dead kubelet leaves in a restart may be drained.
                let at = field.now;
                say(&mut field, gone.name.as_str(), "DeletingNode", Some(gone.uid.as_str()), at);
            }
            // The process has not seen that object: for half a minute a later word may come.
            field.run(Span::from_s(if restarts { 60 } else { 30 }));
            let how = format!("{kind}, restarts: {restarts}, rotated: {rotated}");
            assert_eq!(field.calls, [], "{how}");
            if rotated {
                field.records = field.state.checkpoint();
            }
            field = off(field, min(8 * 60));
            field.run_until(min(240), |field| !field.calls.is_empty());
            assert!(!field.calls.is_empty(), "{how}: never repaired");
        }
    }
}

/// The Node of a machine that is off is seen to go, and is back. That it goes once more, in a night without us, is another
/// matter.
#[test]
fn node_lost_and_back_before_a_night_is_unwatched_when_lost() {
    let mut field = fleet();
    field.instances.get_mut(ONE).unwrap().state = InstanceState::Stopped;
    field.nodes.get_mut(ONE).unwrap().ready = Ready::Unknown;
    field.run(Span::from_s(10));
    let mut node = field.nodes.remove(ONE).unwrap();
    field.run(Span::from_s(20));
    field.instances.get_mut(ONE).unwrap().state = InstanceState::Active;
    node.ready = Ready::True;
    field.nodes.insert(ONE.into(), node);
    field.run(min(20));
    field.nodes.remove(ONE);
    is_told_and_held(off(field, min(8 * 60)), "went, came back, went");
}

/// We see a machine being built, and sleep, or are stopped, for eight hours. It joins and serves meanwhile; a person drains its
/// Node, deletes it, and keeps the machine. Some minutes later we are restarted once more.
#[test]
fn machine_built_before_a_night_without_us_may_have_served() {
    for (sleeps, again) in
        [(true, None), (false, None), (true, Some(false)), (true, Some(true)), (false, Some(false))]
    {
        let mut field = Field::new(without_rejoin()).populate(10);
        field.run(min(20));
        field.add_machine("new", false);
        field.instances.get_mut("new").unwrap().state = InstanceState::Building;
        field.run(min(2));
        let last_alive = Some(field.now);
        field.now = field.now + min(8 * 60);
        field.instances.get_mut("new").unwrap().state = InstanceState::Active;
        if !sleeps {
            let how = Restored { now: field.now, last_alive, ..field.next_begins() };
            let mut next = Field::with(State::restore(without_rejoin(), how, field.records.clone()));
            (next.now, next.records) = (field.now, field.records);
            (next.instances, next.ports, next.nodes) = (field.instances, field.ports, field.nodes);
            field = next;
        }
        field.run(min(2));
        if let Some(rotated) = again {
            if rotated {
                field.records = field.state.checkpoint();
            }
            field = field.restarted(without_rejoin());
        }
        field.run(min(120));
        let deleted = made(&field).into_iter().filter(|call| call.contains("delete instance new")).count();
        assert_eq!(deleted, 0, "sleeps: {sleeps}, restarted again, rotated: {again:?}: {:?}", made(&field));
    }
}

/// A machine was made in sight, and from then on we reach no API server for 65 minutes: it may have joined, served and been
/// drained meanwhile. The ledger is rotated in that time, and we are restarted after it.
#[test]
fn machine_made_before_gap_may_have_served_after_rotation() {
    let mut deleted = Vec::new();
    for (rotated, restarts) in [(false, false), (false, true), (true, false), (true, true)] {
        let mut field = Field::new(without_rejoin()).populate(10);
        field.run(min(20));
        field.add_machine("new", false);
        field.instances.get_mut("new").unwrap().state = InstanceState::Building;
        field.run(min(1));
        field.instances.get_mut("new").unwrap().state = InstanceState::Active;
        field.run(min(1));
        for minute in 0..66 {
            field.now = field.now + min(1);
            field.list_cloud();
            if rotated && minute == 50 {
                field.records = field.state.checkpoint();
            }
        }
        field.run(min(3));
        if restarts {
            field = field.restarted(without_rejoin());
        }
        field.run(min(180));
        let is_deleted = made(&field).iter().any(|call| call.starts_with("delete instance new"));
        if is_deleted {
            deleted.push((rotated, restarts, made(&field)));
        }
    }
    assert_eq!(deleted, []);
}

/// The same where we are restarted within that time: the machine is new to the next process, and was made before the gap.
#[test]
fn machine_made_before_gap_may_have_served_after_restart() {
    for rotated in [false, true] {
        let mut field = Field::new(without_rejoin()).populate(10);
        field.run(min(20));
        field.add_machine("new", false);
        field.run(min(1));
        for minute in 0..66 {
            field.now = field.now + min(1);
            field.list_cloud();
            if minute == 20 {
                if rotated {
                    field.records = field.state.checkpoint();
                }
                field = field.restarted(without_rejoin());
            }
        }
        field.run(min(180));
        let is_deleted = made(&field).iter().any(|call| call.starts_with("delete instance new"));
        assert!(!is_deleted, "rotated: {rotated}: {:?}", made(&field));
    }
}

/// A machine that is made once the cluster is seen again, or so lately that events would tell of its Node, has not served.
#[test]
fn machine_made_after_a_night_without_us_is_replaced() {
    for restarts in [false, true] {
        let mut field = Field::new(without_rejoin()).populate(10);
        field.run(min(20));
        field.now = field.now + min(8 * 60);
        field.run(min(2));
        field.add_machine("new", false);
        field.instances.get_mut("new").unwrap().state = InstanceState::Building;
        field.run(min(2));
        field.instances.get_mut("new").unwrap().state = InstanceState::Active;
        if restarts {
            field = field.restarted(without_rejoin());
        }
        let is_deleted = |field: &Field| made(field).iter().any(|call| call.contains("delete instance new"));
        field.run_until(min(240), is_deleted);
        assert!(is_deleted(&field), "restarts: {restarts}: {:?}", made(&field));
    }
}

/// A person drained a Node and deleted it during a night without us, and keeps the machine with other groups on its port.
#[test]
fn port_of_machine_with_node_lost_in_our_absence_is_untouched() {
    for restarts in [false, true] {
        let mut field = Field::new(roster()).populate(10);
        field.run(min(20));
        field.nodes.remove(ONE);
        field.ports.get_mut(ONE).unwrap().groups = Box::new(["g-quarantine".into()]);
        field.now = field.now + min(8 * 60);
        if restarts {
            field.run(min(2));
            field = field.restarted(roster());
        }
        field.run_until(min(120), |field| !field.calls.is_empty());
        assert_eq!(field.calls, [], "restarts: {restarts}: {:?}", made(&field));
        // Once it has a Node again, its port is as any other.
        field.nodes.insert(ONE.into(), node(ONE, Ready::True));
        field.run_until(min(20), |field| !field.calls.is_empty());
        assert_eq!(made(&field).len(), 1, "restarts: {restarts}");
    }
}

/// A gap of a minute is as long where the kubelet is dead, also of a machine whose marks a person took off before.
#[test]
fn silent_unmarked_machine_drained_in_a_short_gap_is_held() {
    for how in ["drained in a restart", "api gap, then a restart", "the pool's mark alone is off"] {
        let mut field = fleet();
        set(&mut field, ONE, Ready::Unknown);
        field.run(min(2));
        let mut marks = unmark(&mut field);
        if how == "the pool's mark alone is off" {
            mark(&mut field, Arc::new([Mark::Tag("k8s-cluster=prod".into())].into()));
        }
        field.run(min(10));
        if how == "api gap, then a restart" {
            blind(&mut field, min(1));
            field.nodes.remove(ONE);
            blind(&mut field, min(1));
            field.run(min(2));
        } else {
            field.nodes.remove(ONE);
        }
        field = off(field, Span::from_s(30));
        field.run(min(5));
        mark(&mut field, std::mem::take(&mut marks));
        field.run(min(1));
        is_told_and_held(field, how);
    }
}

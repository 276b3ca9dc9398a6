//! Many Nodes that a list lacks: how often the controller judges the list for the answers about them, and when the doubt
//! ends.

use std::collections::VecDeque;
use std::sync::Arc;

use reveille_core::effect::{Effect, Look};
use reveille_core::engine::{Restored, State};
use reveille_core::event::{Answer, ClusterFact, Event};
use reveille_core::model::id::LookId;
use reveille_core::model::incident::FaultKind;
use reveille_core::model::instance::{Fault, InstanceState};
use reveille_core::model::node::Ready;
use reveille_core::model::time::Span;

use super::fixture::*;
use super::steps::{cloud_deletes, made, min, without_rejoin};

/// All but one of so many nodes are missing from a list, each is asked for by its name and denied: how often the list was judged
/// for it.
fn judgements_of_lost(count: usize) -> u64 {
    let mut field = Field::new(roster()).populate(count);
    field.list_cloud();
    field.sync_nodes();
    field.now = field.now + Span::from_s(10);
    field.unanswered = Some(Vec::new());
    let one = field.nodes.values().next().cloned().map(Arc::new).into_iter().collect();
    field.feed(Event::Cluster(ClusterFact::Synced(one)));
    let before = field.state.context().cluster.judgements();
    let mut asked: VecDeque<(LookId, Look)> = field.unanswered.take().unwrap_or_default().into();
    let mut answered = 0;
    while let Some((look, of)) = asked.pop_front() {
        let answer = match &of {
            Look::Node(_) => Answer::Node(None),
            _ => field.answer(&of),
        };
        answered += usize::from(matches!(of, Look::Node(_)));
        for effect in field.step(Event::Looked { look, answer: Ok(answer) }) {
            if let Effect::Look { id, look } = effect {
                asked.push_back((id, look));
            }
        }
    }
    assert_eq!(answered, count - 1, "each is asked for once");
    field.state.context().cluster.judgements() - before
}

#[test]
fn lost_node_answers_trigger_at_most_one_list_judgement() {
    for count in [20, 200] {
        let judged = judgements_of_lost(count);
        assert!(judged <= 1, "{count} nodes lost: judged {judged} times");
    }
}

/// A failed live migration left a machine in ERROR, where it served on. Then etcd is restored without the Nodes of eight of
/// twenty machines, and five of the eight register again. The machine's Node went with the others, and its loss says as
/// little of the machine. Seed 3252634.
#[test]
fn errored_machine_whose_node_went_with_others_is_not_deleted() {
    let mut field = Field::new(roster()).populate(20);
    field.run(Span::from_min(5));
    let errored = field.instances.get_mut("i001").unwrap();
    errored.state = InstanceState::Errored;
    errored.fault = Some(Fault { code: 500, message: "Live migration failed".into() });
    field.run(Span::from_min(30));
    assert_eq!(field.calls, [], "it is Ready");
    let ids = ["i001", "i002", "i003", "i004", "i005", "i006", "i007", "i008"];
    let lost = ids.map(|id| (id.to_owned(), field.nodes.remove(id).unwrap()));
    let mut field = field.restarted(roster());
    field.list_cloud();
    field.run(Span::from_min(15));
    field.nodes.extend(lost.into_iter().skip(3));
    field.run(Span::from_min(180));
    assert_eq!(field.destructive_calls(), 0, "{:?}", field.calls);
}

/// The watch tells the lost nodes one by one: they are back, and the list that lacked them is of no more interest.
#[test]
fn nodes_that_come_back_one_by_one_end_the_doubt_with_the_last() {
    let mut field = Field::new(roster()).populate(20);
    field.run(Span::from_min(2));
    field.feed(Event::Cluster(ClusterFact::Synced(Vec::new())));
    let doubted = |field: &Field| field.state.context().cluster.source.doubted().is_some();
    assert!(doubted(&field));
    let nodes: Vec<_> = field.nodes.values().cloned().map(Arc::new).collect();
    for node in nodes {
        assert!(doubted(&field));
        field.feed(Event::Cluster(ClusterFact::Applied(node)));
    }
    assert!(!doubted(&field));
}

/// A person drained a Node and deleted it during a night without us, and keeps the machine: its events are gone by the morning.
/// It was rebooted, power-cycled and deleted 39 minutes after we woke.
#[test]
fn node_lost_in_a_long_absence_is_held_until_the_node_returns() {
    for sleeps in [true, false] {
        let mut field = Field::new(roster()).populate(10);
        field.run(Span::from_min(20));
        let last_alive = Some(field.now);
        let node = field.nodes.remove("i004").unwrap();
        field.now = field.now + Span::from_min(8 * 60);
        if !sleeps {
            let how = Restored { now: field.now, last_alive, ..field.next_begins() };
            let mut next = Field::with(State::restore(roster(), how, field.records.clone()));
            (next.now, next.records) = (field.now, field.records);
            (next.instances, next.ports, next.nodes) = (field.instances, field.ports, field.nodes);
            field = next;
        }
        field.run_until(Span::from_min(120), |field| !field.calls.is_empty());
        assert_eq!(field.calls, [], "sleeps: {sleeps}");
        let held = field.held("i004", FaultKind::Vanished);
        assert!(
            held.contains("or while Reveille could not watch, and may have been drained"),
            "sleeps: {sleeps}: {held}"
        );
        field = field.restarted(roster());
        field.run_until(Span::from_min(60), |field| !field.calls.is_empty());
        assert_eq!(field.calls, [], "sleeps: {sleeps}, restarted");
        // A person restarts its kubelet. From then on it is a machine like any other.
        field.nodes.insert("i004".into(), node);
        field.run(Span::from_min(10));
        field.nodes.remove("i004");
        field.run_until(Span::from_min(60), |field| !field.calls.is_empty());
        assert_eq!(field.calls.len(), 1, "sleeps: {sleeps}: {}", field.held("i004", FaultKind::Vanished));
    }
}

/// A Node that is there after such a night, and one that went in a gap that events outlive, are no such Nodes.
#[test]
fn node_lost_after_a_gap_or_deleted_by_its_cloud_is_repaired() {
    for gap in [8 * 60, 20] {
        let mut field = Field::new(roster()).populate(10);
        field.run(Span::from_min(20));
        field.now = field.now + Span::from_min(gap);
        if gap > 60 {
            field.run(Span::from_min(1));
        }
        let gone = field.nodes.remove("i004").unwrap();
        if gap < 60 {
            cloud_deletes(&mut field, &gone);
        }
        field.run_until(Span::from_min(60), |field| !field.calls.is_empty());
        assert_eq!(field.calls.len(), 1, "{gap}: {}", field.held("i004", FaultKind::Vanished));
    }
}

/// Etcd is restored from an old backup: six Nodes are missing from the list, and a seventh goes a few minutes later. The six are
/// denied twice by their names; the seventh is back, as the next list (a relist or an audit) shows. We are restarted, and four
/// more come back.
#[test]
fn nodes_lost_together_are_held_after_restart_and_ended_doubt() {
    for how in ["nothing", "restart", "rotation, restart"] {
        let mut field = Field::new(without_rejoin()).populate(12);
        field.lists_alone = true;
        field.run(min(20));
        for number in 3..9 {
            field.nodes.remove(&format!("i{number:03}"));
        }
        field.run(min(6));
        let seventh = field.nodes.remove("i002").unwrap();
        field.run(min(6));
        field.nodes.insert("i002".into(), seventh);
        field.run(min(5));
        assert_eq!(field.calls, [], "{how}");
        let lost = field.state.context().cluster.lost_together.nodes();
        assert_eq!(lost, 6, "{how}");
        if how.starts_with("rotation") {
            field.records = field.state.checkpoint();
        }
        if how.ends_with("restart") {
            field = field.restarted(without_rejoin());
        }
        field.run(min(2));
        for number in 3..7 {
            let id = format!("i{number:03}");
            field.nodes.insert(id.clone(), node(&id, Ready::True));
        }
        field.run_until(min(240), |field| !field.calls.is_empty());
        assert!(field.calls.is_empty(), "{how}: {:?}", made(&field));
    }
}

/// A list, as an audit reads it beside the watch, lacks five of twelve Nodes. The watch, which lags, tells two of the five
/// one by one while the list is doubted; the other three are denied by their names, twice. All five went in one moment.
#[test]
fn nodes_deleted_by_watch_during_doubt_join_the_mass_loss() {
    let mut touched = Vec::new();
    for told in 0..=5 {
        for after in [1, 6] {
            let mut field = Field::new(without_rejoin()).populate(12);
            field.run(min(20));
            let lost: Vec<_> = (3..8).map(|n| field.nodes.remove(&format!("i{n:03}")).unwrap()).collect();
            field.run(min(after));
            for node in &lost[..told] {
                let (name, uid) = (node.name.clone(), node.uid.clone());
                field.feed(Event::Cluster(ClusterFact::Deleted { name, uid }));
            }
            field.run_until(min(240), |field| !field.calls.is_empty());
            if !field.calls.is_empty() {
                touched.push((
                    told,
                    after,
                    made(&field),
                    field.state.context().cluster.lost_together.nodes(),
                ));
            }
        }
    }
    assert!(touched.is_empty(), "{touched:#?}");
}

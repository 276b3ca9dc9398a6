//! The first readings of all sources in every order: what a list means depends on the others, whichever came first.
//!
//! An API server answers a list of nodes within milliseconds, Nova one of servers within seconds; and a watch lists its
//! nodes once, not again and again. So each reading here comes once, and only proofs of life follow.

use reveille_core::diagnose::machine_state::MachineState;
use reveille_core::effect::Effect;
use reveille_core::event::{CloudFact, CloudSnapshot, ClusterFact, Event, Scope};
use reveille_core::model::incident::FaultKind;
use reveille_core::model::time::Span;
use reveille_core::record::Record;

use super::fixture::{CLOUD, Field, roster};

/// A first reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum First {
    Nodes,
    Cloud,
    Leases,
}

const ORDERS: [[First; 3]; 6] = [
    [First::Nodes, First::Cloud, First::Leases],
    [First::Nodes, First::Leases, First::Cloud],
    [First::Cloud, First::Nodes, First::Leases],
    [First::Cloud, First::Leases, First::Nodes],
    [First::Leases, First::Nodes, First::Cloud],
    [First::Leases, First::Cloud, First::Nodes],
];

/// Each first reading once, five seconds apart.
fn begin(field: &mut Field, order: [First; 3]) {
    for first in order {
        field.now = field.now + Span::from_s(5);
        match first {
            First::Nodes => field.sync_nodes(),
            First::Cloud => field.list_cloud(),
            First::Leases => field.list_leases(),
        }
    }
}

fn why_not(field: &Field) -> String {
    field.state.context().cluster.source.trust(field.now).to_string()
}

fn opened(field: &Field) -> usize {
    field.records.iter().filter(|record| matches!(record, Record::Opened { .. })).count()
}

#[test]
fn empty_node_list_is_doubted_in_any_order() {
    for order in ORDERS {
        let mut field = Field::new(roster()).populate(7);
        field.nodes.clear();
        begin(&mut field, order);
        assert_eq!(why_not(&field), "the node list is empty beside 7 running instances", "{order:?}");
        assert!(matches!(field.machine_state("i000"), MachineState::CannotTell(_)), "{order:?}");
        field.watch_for(Span::from_min(60));
        assert_eq!((opened(&field), field.destructive_calls()), (0, 0), "{order:?}");
    }
}

#[test]
fn empty_node_list_after_restart_is_doubted_in_any_order() {
    for order in ORDERS {
        let mut field = Field::new(roster()).populate(7);
        field.run(Span::from_min(2));
        let mut field = field.restarted(roster());
        field.nodes.clear();
        begin(&mut field, order);
        assert!(!field.state.context().cluster.source.trust(field.now).is_given(), "{order:?}");
        field.watch_for(Span::from_min(60));
        assert_eq!((opened(&field), field.destructive_calls()), (0, 0), "{order:?}");
    }
}

/// Proofs of life and single nodes may come before the first complete list; what is not in a list is not missing then.
#[test]
fn signs_of_life_before_first_list_prove_nothing() {
    let mut field = Field::new(roster()).populate(7);
    field.list_cloud();
    let first = field.nodes.values().next().cloned().expect("there are seven");
    field.feed(Event::Cluster(ClusterFact::Applied(first.into())));
    field.watch_for(Span::from_min(5));
    assert_eq!((why_not(&field).as_str(), opened(&field)), ("not read yet", 0));
    field.sync_nodes();
    assert_eq!((why_not(&field).as_str(), opened(&field)), ("complete", 0));
}

/// etcd restored from a snapshot that is older than most machines: their Nodes are not in the first list.
#[test]
fn shrunken_node_list_after_restart_is_doubted_in_any_order() {
    for order in ORDERS {
        let mut field = Field::new(roster()).populate(10);
        field.run(Span::from_min(2));
        let mut field = field.restarted(roster());
        let nodes = field.nodes.clone();
        field.nodes.retain(|id, _| id.as_str() < "i004");
        begin(&mut field, order);
        assert_eq!(
            why_not(&field),
            "6 of 10 machines that joined before have no Node in the list while their instances run",
            "{order:?}"
        );
        field.watch_for(Span::from_min(9));
        assert_eq!((opened(&field), field.destructive_calls()), (0, 0), "{order:?}");
        field.nodes = nodes;
        field.sync_nodes();
        assert_eq!(why_not(&field), "complete", "{order:?}");
        field.watch_for(Span::from_min(5));
        assert_eq!(opened(&field), 0, "{order:?}");
    }
}

#[test]
fn few_nodes_missing_after_restart_are_believed() {
    for order in ORDERS {
        let mut field = Field::new(roster()).populate(10);
        field.run(Span::from_min(2));
        let mut field = field.restarted(roster());
        field.nodes.remove("i009");
        begin(&mut field, order);
        field.watch_for(Span::from_min(2));
        assert_eq!(why_not(&field), "complete", "{order:?}");
        assert!(field.case("i009", FaultKind::Vanished).is_some(), "{order:?}");
    }
}

/// The second list of nodes came before the first listing of the cloud: which instances run was not known then.
#[test]
fn nodes_lost_before_first_listing_are_doubted_after() {
    let mut field = Field::new(roster()).populate(10);
    field.sync_nodes();
    let nodes = field.nodes.clone();
    field.nodes.retain(|id, _| id.as_str() < "i004");
    field.sync_nodes();
    field.list_leases();
    field.now = field.now + Span::from_s(5);
    field.list_cloud();
    assert_eq!(why_not(&field), "6 of 10 nodes went missing at once while their instances run");
    field.watch_for(Span::from_min(9));
    assert_eq!((opened(&field), field.destructive_calls()), (0, 0));
    field.nodes = nodes;
    field.sync_nodes();
    assert_eq!(why_not(&field), "complete");
}

/// A new cluster: everything was there before its first machine, which never joins. The controller believes the empty list,
/// and asks for no further proof.
#[test]
fn empty_node_list_of_new_cluster_is_believed() {
    let mut field = Field::new(roster());
    begin(&mut field, ORDERS[0]);
    field.add_machine("new", false);
    field.list_cloud();
    assert_eq!(why_not(&field), "complete");
    field.watch_for(Span::from_min(60));
    assert!(field.case("new", FaultKind::NeverJoined).is_some(), "it is told");
    assert_eq!(field.destructive_calls(), 0);
    let held = field.held("new", FaultKind::NeverJoined);
    assert!(held.contains("the cluster has no Node yet"), "{held}");
}

/// While the node list is doubted, ports are repaired all the same: that rests on the cloud alone.
#[test]
fn ports_are_repaired_beside_empty_node_list() {
    let mut field = Field::new(roster()).populate(7);
    field.nodes.clear();
    field.ports.get_mut("i003").expect("it is there").groups = Box::new([]);
    begin(&mut field, ORDERS[0]);
    field.watch_for(Span::from_min(5));
    assert_eq!(field.calls.len(), 1, "{:?}", field.calls);
}

/// Single deletions that the watch tells are no list, however many they are.
#[test]
fn nodes_deleted_one_by_one_are_believed() {
    let mut field = Field::new(roster()).populate(2);
    begin(&mut field, ORDERS[0]);
    for (_, node) in std::mem::take(&mut field.nodes) {
        let deleted = ClusterFact::Deleted { name: node.name.clone(), uid: node.uid.clone() };
        field.feed(Event::Cluster(deleted));
    }
    field.watch_for(Span::from_min(2));
    assert_eq!(why_not(&field), "complete");
    assert!(field.case("i000", FaultKind::Vanished).is_some());
}

#[test]
fn doubt_that_begins_with_cloud_listing_asks_nothing() {
    let mut field = Field::new(roster()).populate(20);
    field.nodes.clear();
    field.sync_nodes();
    let snapshot = field.snapshot();
    let fact = reveille_core::event::CloudFact::read(snapshot);
    let effects = field.step(Event::Cloud { cloud: super::fixture::CLOUD.into(), fact });
    let asked = effects.iter().filter(|effect| !matches!(effect, Effect::WakeAt(_))).count();
    assert_eq!(asked, 0);
}

/// An operator deletes a machine while no process runs. The next one asks the cloud for it before its first list of nodes has
/// come, and cannot use the answer: it asks again as soon as that list is there, and not at the next full listing.
#[test]
fn machine_deleted_before_start_is_read_again_with_first_nodes() {
    let mut field = Field::new(roster()).populate(10);
    field.run(Span::from_min(5));
    field.delete_machine("i003");
    let mut next = field.restarted(roster());
    let began = next.now;
    next.list_cloud();
    next.answer_all();
    next.now = next.now + Span::from_s(5);
    next.sync_nodes();
    for _ in 0..8 {
        next.now = next.now + Span::from_s(30);
        let snapshot = CloudSnapshot { scope: Scope::Changes, ..next.snapshot() };
        next.feed(Event::Cloud { cloud: CLOUD.into(), fact: CloudFact::read(snapshot) });
        next.feed(Event::Cluster(ClusterFact::Alive));
    }
    let acted = |record: &&Record| matches!(record, Record::OthersActed { at, .. } if *at > began);
    assert!(next.records.iter().any(|record| acted(&record)), "who deletes there is left alone");
}

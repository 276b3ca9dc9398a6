//! Another cluster behind the kubeconfig: it answers everything with 200, and knows none of our machines.

use std::sync::Arc;

use reveille_core::effect::{ReadError, ReadErrorKind};
use reveille_core::event::{ClusterFact, Command, Event};
use reveille_core::model::id::ClusterUid;
use reveille_core::model::node::Ready;
use reveille_core::model::roster::Roster;
use reveille_core::model::time::Span;
use reveille_core::record::Record;

use super::fixture::{Field, node, roster};

const OURS: &str = "uid-ours";
const ANOTHER: &str = "uid-another";

/// Nothing is too many: what would otherwise keep the engine from acting is out of the way.
fn reckless() -> Roster {
    let mut roster = roster();
    (roster.limits.at_once, roster.limits.per_hour, roster.limits.freeze_above_pct) = (8, 100, 100);
    roster.timing.shrink_pct = 100;
    roster
}

fn answers_as(field: &mut Field, cluster: &str) {
    field.feed(Event::Cluster(ClusterFact::Identity(ClusterUid::from(cluster))));
}

/// Ten machines that joined, in a ledger that knows the cluster.
fn ten() -> Field {
    let mut field = Field::new(reckless()).populate(10);
    answers_as(&mut field, OURS);
    field.run(Span::from_min(2));
    field
}

/// The next process: the kubeconfig leads to this cluster now, which has one Node of its own.
fn restarted(mut field: Field, rotated: bool) -> Field {
    if rotated {
        field.records = field.state.checkpoint();
    }
    field.nodes = [("elsewhere".to_owned(), node("elsewhere", Ready::True))].into();
    field.restarted(reckless())
}

fn clusters(field: &Field) -> Vec<&str> {
    let kept = |record: &'_ Record| matches!(record, Record::Cluster { .. });
    let records = field.records.iter().filter(|record| kept(record));
    records
        .filter_map(
            |record| if let Record::Cluster { cluster, .. } = record { Some(cluster.as_str()) } else { None },
        )
        .collect()
}

fn why_not(field: &Field) -> String {
    field.state.context().cluster.source.trust(field.now).to_string()
}

#[test]
fn first_cluster_is_kept_in_ledger_once_nodes_are_trusted() {
    let mut field = Field::new(reckless()).populate(10);
    let nodes = std::mem::take(&mut field.nodes);
    answers_as(&mut field, OURS);
    field.run(Span::from_min(2));
    assert!(clusters(&field).is_empty(), "an empty list beside ten machines confirms nothing");
    field.nodes = nodes;
    field.run(Span::from_min(2));
    assert_eq!(clusters(&field), [OURS]);
}

#[test]
fn another_cluster_after_restart_is_refused() {
    for rotated in [false, true] {
        let mut field = restarted(ten(), rotated);
        answers_as(&mut field, ANOTHER);
        field.run(Span::from_min(90));
        let why = why_not(&field);
        assert!(why.contains(OURS) && why.contains(ANOTHER) && why.contains("--confirm-cluster"), "{why}");
        assert!(field.state.context().cluster.nodes.is_empty(), "no Node of it is taken in");
        assert_eq!(field.calls, [], "rotated: {rotated}");
        assert_eq!(clusters(&field), [OURS], "rotated: {rotated}");
    }
}

#[test]
fn foreign_cluster_is_refused_and_own_cluster_is_accepted_again() {
    let mut field = ten();
    let ours = std::mem::take(&mut field.nodes);
    field.nodes.insert("elsewhere".into(), node("elsewhere", Ready::True));
    answers_as(&mut field, ANOTHER);
    field.run(Span::from_min(60));
    assert!(why_not(&field).contains(ANOTHER));
    assert_eq!((field.calls.len(), field.state.context().cluster.nodes.len()), (0, 10));
    field.nodes = ours;
    answers_as(&mut field, OURS);
    field.run(Span::from_min(30));
    assert_eq!((why_not(&field).as_str(), field.calls.len()), ("complete", 0));
}

#[test]
fn another_cluster_that_person_confirms_is_taken_in() {
    let mut field = restarted(ten(), false);
    field.feed(Event::Command(Command::ConfirmCluster(ClusterUid::from("uid-third"))));
    answers_as(&mut field, ANOTHER);
    assert!(why_not(&field).contains(ANOTHER), "another UID was confirmed");
    field.feed(Event::Command(Command::ConfirmCluster(ClusterUid::from(ANOTHER))));
    assert_eq!(clusters(&field), [OURS, ANOTHER]);
    field.lists();
    assert_eq!(field.state.context().cluster.nodes.len(), 1);
    // The process after that expects it, without being told again.
    let mut next = restarted(field, true);
    answers_as(&mut next, ANOTHER);
    next.lists();
    assert_eq!(next.state.context().cluster.nodes.len(), 1);
}

/// The right to read the namespace was taken away: what it was before is neither confirmed nor refused.
#[test]
fn identity_that_cannot_be_read_changes_nothing() {
    let text = Arc::from("403 Forbidden");
    let unread = ReadError { kind: ReadErrorKind::Forbidden, text, retry_after: None };
    let mut field = Field::new(reckless()).populate(10);
    field.feed(Event::Cluster(ClusterFact::IdentityUnread(unread.clone())));
    field.run(Span::from_min(2));
    assert_eq!((why_not(&field).as_str(), clusters(&field).len()), ("complete", 0));
    let mut field = restarted(ten(), false);
    answers_as(&mut field, ANOTHER);
    field.feed(Event::Cluster(ClusterFact::IdentityUnread(unread)));
    field.run(Span::from_min(2));
    assert!(why_not(&field).contains(ANOTHER), "still refused");
}

//! Models in front of a few recorded events.

use std::sync::Arc;

use reveille_core::effect::{ReadError, ReadErrorKind};
use reveille_core::event::{CloudFact, CloudSnapshot, ClusterFact, Event, Scope};
use reveille_core::model::instance::{Instance, InstanceState};
use reveille_core::model::node::{Node, NodeIntent, Provider, Ready};
use reveille_core::model::time::{Span, Time};

use super::*;
use crate::world::layout::Layout;

const START: Time = Time::from_ms(1_700_000_000_000);

fn min(minutes: i64) -> Time {
    START + Span::from_min(minutes)
}

fn roster() -> Roster {
    Layout::fleet(1, 3).roster()
}

fn instance(number: u32) -> Arc<Instance> {
    let roster = roster();
    let pool = roster.pools.values().next().expect("a fleet has a pool");
    let mut one =
        Instance::unknown(format!("i{number}").as_str().into(), format!("w-{number}").as_str().into());
    one.state = InstanceState::Active;
    one.marks = Arc::new(pool.owned.marks().cloned().collect());
    Arc::new(one)
}

fn node(number: u32, ready: Ready) -> Arc<Node> {
    Arc::new(Node {
        name: format!("w-{number}").as_str().into(),
        uid: format!("u{number}").as_str().into(),
        provider: Provider::Instance(format!("i{number}").as_str().into()),
        system_uuid: Some(format!("i{number}").as_str().into()),
        boot_id: None,
        kubelet: None,
        addresses: Box::default(),
        pod_ranges: Box::default(),
        ready,
        conditions: Box::default(),
        zone: None,
        cordoned: false,
        intent: NodeIntent::default(),
        uninitialized: false,
        taints: Box::default(),
    })
}

fn listed(numbers: impl IntoIterator<Item = u32>) -> Event {
    let instances = numbers.into_iter().map(instance).collect();
    let snapshot = CloudSnapshot { instances, scope: Scope::Full, ..CloudSnapshot::default() };
    let cloud = roster().clouds[0].clone();
    Event::Cloud { cloud, fact: CloudFact::read(snapshot) }
}

fn synced(nodes: Vec<Arc<Node>>) -> Event {
    Event::Cluster(ClusterFact::Synced(nodes))
}

fn applied(number: u32, ready: Ready) -> Event {
    Event::Cluster(ClusterFact::Applied(node(number, ready)))
}

fn began(policy: Policy) -> Onlooker {
    let mut onlooker = Onlooker::new(policy, roster());
    onlooker.play(min(0), &listed(0..10));
    onlooker.play(min(0), &synced((0..10).map(|number| node(number, Ready::True)).collect()));
    onlooker
}

fn ticks(onlooker: &mut Onlooker, minutes: std::ops::Range<i64>) {
    for minute in minutes {
        onlooker.play(min(minute), &Event::Tick);
    }
}

fn told(onlooker: &Onlooker) -> Vec<(&str, Kind, Stood, Afterwards)> {
    onlooker.would_do().iter().map(|one| (&*one.label, one.kind, one.stood, one.afterwards)).collect()
}

#[test]
fn machine_that_recovers_alone_is_reported_as_needless_deletion() {
    let mut onlooker = began(Policy::MachineHealthCheck);
    onlooker.play(min(1), &applied(3, Ready::Unknown));
    ticks(&mut onlooker, 2..30);
    onlooker.play(min(30), &applied(3, Ready::True));
    ticks(&mut onlooker, 31..40);
    let told = told(&onlooker);
    assert_eq!(told, [("w-3", Kind::DeleteInstance, Stood::NotReady, Afterwards::Answered(min(30)))]);
    assert!(onlooker.would_do()[0].times > 1, "it asks again, because the recorded machine stays");
}

#[test]
fn a_fleet_that_answers_is_left_alone_by_every_policy() {
    for policy in Policy::ALL {
        let mut onlooker = began(*policy);
        ticks(&mut onlooker, 1..120);
        assert_eq!(told(&onlooker), [], "{policy}");
    }
}

/// Flight control's node cache may be empty and synced; names are all that it compares.
#[test]
fn an_empty_node_list_makes_flight_control_delete_everybody() {
    let mut onlooker = began(Policy::FlightControl);
    onlooker.play(min(1), &synced(Vec::new()));
    ticks(&mut onlooker, 2..6);
    onlooker.play(min(6), &synced((0..10).map(|number| node(number, Ready::True)).collect()));
    let told = told(&onlooker);
    assert_eq!(told.len(), 10);
    let came_back = (Kind::DeleteInstance, Stood::NoNode, Afterwards::Answered(min(6)));
    assert!(told.iter().all(|(_, kind, stood, after)| (*kind, *stood, *after) == came_back), "{told:?}");
}

#[test]
fn onlooker_reports_nothing_while_a_source_is_unread_or_failing() {
    let mut onlooker = Onlooker::new(Policy::FlightControl, roster());
    onlooker.play(min(0), &listed(0..10));
    ticks(&mut onlooker, 1..60);
    assert_eq!(told(&onlooker), [], "no nodes were ever listed");

    let mut onlooker = began(Policy::FlightControl);
    let error = ReadError { kind: ReadErrorKind::TimedOut, text: "late".into(), retry_after: None };
    let cloud = roster().clouds[0].clone();
    onlooker.play(min(1), &Event::Cloud { cloud, fact: CloudFact::Failed(error) });
    onlooker.play(min(1), &synced(Vec::new()));
    ticks(&mut onlooker, 2..60);
    assert_eq!(told(&onlooker), [], "its listing fails");
}

#[test]
fn hours_in_which_the_process_slept_are_one_pass() {
    let mut onlooker = began(Policy::Karpenter);
    onlooker.play(min(1), &applied(3, Ready::Unknown));
    onlooker.play(min(6_000), &Event::Tick);
    assert!(onlooker.would_do().iter().all(|one| one.times == 1), "{:?}", onlooker.would_do());
}

/// A list of servers that lacks a machine for a while does not make it gone.
#[test]
fn a_machine_that_a_list_lacked_for_a_while_is_not_told_as_gone() {
    let mut onlooker = began(Policy::MachineHealthCheck);
    onlooker.play(min(1), &applied(3, Ready::Unknown));
    ticks(&mut onlooker, 2..10);
    onlooker.play(min(10), &listed([]));
    assert_eq!(onlooker.would_do()[0].afterwards, Afterwards::Gone(min(10)));
    onlooker.play(min(11), &listed(0..10));
    assert_eq!(onlooker.would_do()[0].afterwards, Afterwards::Same);
}

//! Machines of which nothing tells whether they joined and were drained before they came into sight: events have expired, or a
//! kubelet that hung said nothing, or the list of nodes was an old one.

use reveille_core::event::{CloudFact, CloudSnapshot, ClusterFact, Event, Scope};
use reveille_core::model::id::NodeName;
use reveille_core::model::incident::FaultKind;
use reveille_core::model::instance::{Fault, InstanceState, Mark};
use reveille_core::model::node::{NodeEvent, Provider, Ready};
use reveille_core::model::time::{Span, Time};

use super::fixture::{CLOUD, Field, node, roster, stamp};
use super::steps::{cut_off, made, min, next};

/// A machine that no Node stands for, made then, with its marks or without.
fn unknown_machine(field: &mut Field, made_at: Time) {
    field.add_machine("new", false);
    field.instances.get_mut("new").unwrap().created = Some(stamp(made_at));
}

/// For five hours no process runs. The fleet as it is at their end, and when the last process was alive.
fn five_hours_without_us() -> (Field, Time) {
    let mut field = Field::new(roster()).populate(10);
    field.run(min(20));
    let last = field.now;
    field.now = field.now + min(5 * 60);
    (field, last)
}

fn cordon_is_told(field: &mut Field, at: Time) {
    let event = NodeEvent {
        node: NodeName::from("node-new"),
        uid: None,
        reason: "NodeNotSchedulable".into(),
        message: "".into(),
        reporter: "kubelet".into(),
        stamped: Some(stamp(at)),
    };
    field.feed(Event::Cluster(ClusterFact::NodeEvent(event)));
}

fn is_held(field: &Field) -> bool {
    let context = field.state.context();
    context.cluster.lost_together.iter().any(|key| key.to_string().contains("new"))
}

/// For five hours no process runs. In that time a machine is made, joins, serves, and a person drains it: the events have expired
/// when a process runs again (seed 7202253). One that was made half an hour before is known by its events, which say nothing: it
/// never joined, and is rebooted.
#[test]
fn machine_made_before_events_tell_is_held() {
    let mut found = Vec::new();
    for (age_min, restarts) in [(30, false), (90, false), (90, true)] {
        let (mut field, last) = five_hours_without_us();
        let made_at = field.now - min(age_min);
        unknown_machine(&mut field, made_at);
        let mut field = next(field, roster(), last);
        field.run(min(2));
        // What holds it is in the ledger: for the next process it is an old incident.
        if restarts {
            let last = field.now;
            field.now = field.now + Span::from_s(30);
            field = next(field, roster(), last);
        }
        field.run(min(6 * 60));
        found.push((age_min, restarts, is_held(&field), made(&field).is_empty()));
    }
    assert_eq!(found, [(30, false, false, false), (90, false, true, true), (90, true, true, true)]);
}

/// A process that was started again a quarter of an hour ago, after a short gap, and a machine that gets its marks: it was made
/// two hours before, and drained then (seed 7205545).
#[test]
fn machine_tagged_after_a_restart_is_held() {
    let mut field = Field::new(roster()).populate(10);
    field.run(min(20));
    let made_at = field.now;
    unknown_machine(&mut field, made_at);
    let marks = std::mem::take(&mut field.instances.get_mut("new").unwrap().marks);
    field.run(min(2 * 60));
    let last = field.now;
    field.now = field.now + min(1);
    let mut field = next(field, roster(), last);
    field.run(min(15));
    field.instances.get_mut("new").unwrap().marks = marks;
    field.run(min(6 * 60));
    assert!(made(&field).is_empty() && is_held(&field), "{:?}", made(&field));
}

/// What does not work when a controller is installed is to be repaired: no process was there before, and no person has been told.
#[test]
fn machine_older_than_the_first_process_is_repaired() {
    let mut field = Field::new(roster()).populate(10);
    field.now = field.now + min(24 * 60);
    unknown_machine(&mut field, Time::from_ms(0));
    field.run(min(2 * 60));
    assert!(!made(&field).is_empty() && !is_held(&field));
}

/// A machine that is held so has a Node: that is over.
#[test]
fn held_machine_is_repaired_once_it_had_a_node() {
    let (mut field, last) = five_hours_without_us();
    let made_at = field.now - min(90);
    unknown_machine(&mut field, made_at);
    let mut field = next(field, roster(), last);
    field.run(min(60));
    assert!(is_held(&field));
    field.nodes.insert("new".into(), node("new", Ready::True));
    field.run(min(30));
    assert!(!is_held(&field));
    field.nodes.get_mut("new").unwrap().ready = Ready::Unknown;
    field.run(min(2 * 60));
    assert!(!made(&field).is_empty());
}

/// Bare metal without its marks hangs while a person drains it, so that its kubelet tells of no cordon. Its Node names no
/// instance. The marks come two hours later (seed 7100423).
#[test]
fn bare_metal_drained_while_it_hung_is_left_alone() {
    let mut field = Field::new(roster()).populate(10);
    field.run(min(20));
    field.add_machine("new", true);
    let marks = std::mem::take(&mut field.instances.get_mut("new").unwrap().marks);
    let its = field.nodes.get_mut("new").unwrap();
    its.provider = Provider::Unread("k3s://node-new".into());
    its.system_uuid = Some("4c4c4544-0000".into());
    field.run(min(60));
    let its = field.nodes.get_mut("new").unwrap();
    (its.ready, its.cordoned) = (Ready::Unknown, true);
    field.run(min(2));
    field.nodes.remove("new");
    field.run(min(2 * 60));
    field.instances.get_mut("new").unwrap().marks = marks;
    field.run(min(6 * 60));
    assert!(made(&field).is_empty(), "{:?}", made(&field));
}

/// The API server shows an old list while a machine that we saw being made joins and is drained; its events come through (seed
/// 7204868). What was said of a namesake, before the machine was minutes old, says nothing of it.
#[test]
fn cordon_told_while_the_list_was_old_holds_the_machine() {
    let mut touched = Vec::new();
    for told_after_min in [12, 3] {
        let mut field = Field::new(roster()).populate(10);
        field.run(min(20));
        let made_at = field.now;
        unknown_machine(&mut field, made_at);
        field.run(min(told_after_min));
        let at = field.now;
        cordon_is_told(&mut field, at);
        field.run(min(6 * 60));
        touched.push((told_after_min, !made(&field).is_empty()));
    }
    assert_eq!(touched, [(12, false), (3, true)]);
}

/// The process lives, and sees nothing for hours, in which a machine is made, joins and is drained. By the cloud's clock it was
/// made after the last listing: it was rebooted, power-cycled and deleted as one that was seen being born.
#[test]
fn machine_made_while_we_were_cut_off_is_held() {
    let mut found = Vec::new();
    for asleep in [false, true] {
        for cloud_first in [false, true] {
            for restarts in [false, true] {
                let mut field = Field::new(roster()).populate(10);
                field.run(min(20));
                cut_off(&mut field, min(5 * 60), asleep);
                let made_at = field.now - min(3 * 60);
                unknown_machine(&mut field, made_at);
                field.now = field.now + Span::from_s(1);
                if cloud_first {
                    field.list_cloud();
                }
                field.sync_nodes();
                field.run(min(2));
                if restarts {
                    let last = field.now;
                    field.now = field.now + Span::from_s(20);
                    field = next(field, roster(), last);
                }
                field.run(min(6 * 60));
                found.push((asleep, cloud_first, restarts, is_held(&field), made(&field)));
            }
        }
    }
    assert!(found.iter().all(|(.., held, made)| *held && made.is_empty()), "{found:#?}");
}

/// The same, where the machine is younger than events live: they would tell.
#[test]
fn machine_that_events_would_tell_of_is_repaired_after_a_gap() {
    let mut held = Vec::new();
    for age_min in [30, 68] {
        let mut field = Field::new(roster()).populate(10);
        field.run(min(20));
        cut_off(&mut field, min(70), false);
        let made_at = field.now - min(age_min);
        unknown_machine(&mut field, made_at);
        field.run(min(6 * 60));
        held.push((age_min, is_held(&field), made(&field).is_empty()));
    }
    assert_eq!(held, [(30, false, false), (68, true, true)]);
}

/// The first listing after a gap lacks a machine that an incident names, and it is read by its id.
#[test]
fn machine_read_by_id_after_a_gap_is_held() {
    let mut field = Field::new(roster()).populate(10);
    field.now = field.now + min(24 * 60);
    unknown_machine(&mut field, Time::from_ms(0));
    field.run_until(min(60), |field| field.case("new", FaultKind::NeverJoined).is_some());
    let (last, before) = (field.now, made(&field));
    field.now = field.now + min(5 * 60);
    let mut field = next(field, roster(), last);
    field.now = field.now + Span::from_s(10);
    let mut snapshot = field.snapshot();
    snapshot.instances.retain(|it| it.id.as_str() != "new");
    field.feed(Event::Cloud { cloud: CLOUD.into(), fact: CloudFact::read(snapshot) });
    field.sync_nodes();
    field.run(min(6 * 60));
    assert!(is_held(&field) && made(&field) == before, "{:?}", made(&field));
}

/// Builds that failed while no process ran have no address: none of them ever ran, and none is held.
#[test]
fn failed_build_of_a_gap_is_deleted() {
    let (mut field, last) = five_hours_without_us();
    let made_at = field.now - min(120);
    unknown_machine(&mut field, made_at);
    field.ports.remove("new");
    let its = field.instances.get_mut("new").unwrap();
    (its.state, its.addresses) = (InstanceState::Errored, Box::new([]));
    its.fault = Some(Fault { code: 500, message: "No valid host was found.".into() });
    let mut field = next(field, roster(), last);
    field.run(min(6 * 60));
    assert_eq!(made(&field), ["delete instance new"]);
}

/// Machines that are held without a Node are no lost Nodes: one Node that is deleted by mistake an hour later is no fourth.
#[test]
fn held_machines_without_node_are_no_mass_loss() {
    for restarts in [false, true] {
        let (mut field, last) = five_hours_without_us();
        let made_at = field.now - min(120);
        for id in ["new0", "new1", "new2"] {
            field.add_machine(id, false);
            field.instances.get_mut(id).unwrap().created = Some(stamp(made_at));
        }
        let mut field = next(field, roster(), last);
        field.run(min(60));
        if restarts {
            let last = field.now;
            field.now = field.now + Span::from_s(30);
            field = next(field, roster(), last);
            field.run(min(5));
        }
        let lost = &field.state.context().cluster.lost_together;
        assert_eq!((lost.iter().count(), lost.nodes()), (3, 0), "restarts: {restarts}");
        field.nodes.remove("i004");
        field.run(min(4 * 60));
        assert!(made(&field).iter().any(|call| call.contains("i004")), "{restarts}: {:?}", made(&field));
    }
}

/// A pool is put into the roster of a controller that runs for long, because its machines do not join.
#[test]
fn machine_of_a_pool_that_is_new_is_repaired() {
    let mut field = Field::new(roster()).populate(10);
    field.now = field.now + min(24 * 60);
    unknown_machine(&mut field, Time::from_ms(0));
    let marks = [Mark::Tag("k8s-cluster=edge".into()), Mark::Tag("k8s-pool=gpu".into())];
    field.instances.get_mut("new").unwrap().marks = std::sync::Arc::new(marks.into());
    field.run(min(60));
    let mut after = roster();
    let mut pool = after.pools.values().next().unwrap().clone();
    pool.name = "gpu".into();
    (pool.owned.cluster, pool.owned.pool) =
        (Mark::Tag("k8s-cluster=edge".into()), Some(Mark::Tag("k8s-pool=gpu".into())));
    after.pools.insert(pool.name.clone(), pool);
    let last = field.now;
    field.now = field.now + Span::from_s(30);
    let mut field = next(field, after, last);
    let end = field.now + min(6 * 60);
    while field.now < end {
        field.now = field.now + Span::from_s(10);
        // The fixture lists what carries the marks of the first pool.
        let mut snapshot = field.snapshot();
        let new = std::sync::Arc::new(field.instances["new"].clone());
        snapshot.instances.retain(|it| it.id != new.id);
        snapshot.instances.push(new);
        snapshot.instances.sort_by(|one, other| one.id.cmp(&other.id));
        field.feed(Event::Cloud { cloud: CLOUD.into(), fact: CloudFact::read(snapshot) });
        field.sync_nodes();
        field.list_leases();
        field.feed(Event::Cluster(ClusterFact::Alive));
    }
    assert!(!is_held(&field) && !made(&field).is_empty());
}

/// We sleep for less than an hour. A list of what changed, that was on its way, is read when we wake up: the cloud was heard a
/// moment ago when the next list shows a machine that was made, served and was drained meanwhile (seed 7800177).
#[test]
fn machine_drained_in_a_short_sleep_is_left_alone() {
    for restarts in [false, true] {
        let mut field = Field::new(roster()).populate(10);
        field.run(min(20));
        let on_its_way = CloudSnapshot { scope: Scope::Changes, instances: Vec::new(), ..field.snapshot() };
        field.now = field.now + min(52);
        field.feed(Event::Cloud { cloud: CLOUD.into(), fact: CloudFact::read(on_its_way) });
        let (made_at, drained_at) = (field.now - min(43), field.now - min(34));
        unknown_machine(&mut field, made_at);
        if restarts {
            field.list_cloud();
            let last = field.now;
            field.now = field.now + Span::from_s(20);
            field = next(field, roster(), last);
        }
        field.sync_nodes();
        cordon_is_told(&mut field, drained_at);
        field.now = field.now + Span::from_s(30);
        field.run(min(6 * 60));
        assert!(made(&field).is_empty(), "restarts {restarts}: {:?}", made(&field));
    }
}

/// A pool is rolled under the same names: the machine before was cordoned ten minutes before the new one was made, and the API
/// server is silent for a minute then. What was said of the first one holds up no repair of the second.
#[test]
fn cordon_of_a_namesake_before_it_holds_no_newborn() {
    let mut field = Field::new(roster()).populate(10);
    field.run(min(20));
    let told_at = field.now;
    cordon_is_told(&mut field, told_at);
    field.run(min(12));
    let made_at = field.now;
    unknown_machine(&mut field, made_at);
    field.run(min(1));
    cut_off(&mut field, Span::from_s(60), false);
    field.run(min(24 * 60));
    assert!(!made(&field).is_empty());
}

//! Machines that joined, or may have, and were drained while no process looked, beside what takes their names, hides their
//! return or shortens the gap: none of them is touched.

use reveille_core::event::{ClusterFact, Event};
use reveille_core::model::incident::FaultKind;
use reveille_core::model::instance::{InstanceState, Mark};
use reveille_core::model::node::{NodeEvent, Provider, Ready};
use reveille_core::model::roster::Roster;
use reveille_core::model::time::{Span, Time};
use reveille_core::record::Record;

use super::fixture::{Field, node, roster, stamp};
use super::fleets::ten as fleet;
use super::steps::{api_down, cut_off, made, min, off, roster_with, see_nodes_alone, set, touched};

const ONE: &str = "i004";

fn made_then(field: &mut Field, id: &str, at: Time) {
    field.add_machine(id, false);
    field.instances.get_mut(id).unwrap().created = Some(stamp(at));
}

fn two_pools() -> Roster {
    let mut both = roster();
    let mut pool = both.pools.values().next().unwrap().clone();
    pool.name = "gpu".into();
    pool.owned.pool = Some(Mark::Tag("k8s-pool=gpu".into()));
    both.pools.insert(pool.name.clone(), pool);
    both
}

fn of_gpu(field: &mut Field, id: &str) {
    let marks = [Mark::Tag("k8s-cluster=prod".into()), Mark::Tag("k8s-pool=gpu".into())];
    field.instances.get_mut(id).unwrap().marks = std::sync::Arc::new(marks.into());
}

fn say(field: &mut Field, reason: &str, uid: Option<&str>, at: Time) {
    field.feed(Event::Cluster(ClusterFact::NodeEvent(NodeEvent {
        node: format!("node-{ONE}").as_str().into(),
        uid: uid.map(Into::into),
        reason: reason.into(),
        message: "".into(),
        reporter: "x".into(),
        stamped: Some(stamp(at)),
    })));
}

/// The roster, which asks a person to confirm that a machine is well, or does not.
fn confirmed(confirm: bool) -> Roster {
    roster_with(|pool| pool.deadlines.confirm = confirm)
}

/// The Node of [`ONE`] is gone for half a minute, and its incident waits for a person's word, or for its dwell.
fn vanished_and_back(roster: &Roster, confirm: bool) -> Field {
    let mut field = Field::new(roster.clone()).populate(10);
    field.run(min(20));
    field.nodes.remove(ONE);
    field.run(Span::from_s(30));
    field.nodes.insert(ONE.into(), node(ONE, Ready::True));
    field.run(if confirm { min(12 * 60) } else { Span::from_s(30) });
    field
}

/// The machine `new` joins under a Node that names no instance, as of bare metal or k3s, serves for an hour, and is drained.
fn try_and_drain(field: &mut Field) {
    let mut its = node("new", Ready::True);
    its.provider = Provider::Unread("k3s://node-new".into());
    its.system_uuid = Some("4c4c4544-0000".into());
    field.nodes.insert("new".into(), its);
    field.run(min(60));
    field.nodes.get_mut("new").unwrap().cordoned = true;
    field.run(min(2));
    field.nodes.remove("new");
}

/// Y, which has the name of [`ONE`], registers under that name.
pub fn successor(field: &mut Field, id: &str, made_at: Time) {
    made_then(field, id, made_at);
    field.instances.get_mut(id).unwrap().name = format!("node-{ONE}").as_str().into();
    field.nodes.remove(ONE);
    let mut its = node(ONE, Ready::True);
    its.uid = "uid-new".into();
    its.provider = Provider::Instance(id.into());
    field.nodes.insert(id.into(), its);
}

/// The host is suspended for five hours. Monotonic clocks stand still, so that the first listing is one of changes. A machine
/// was made, joined, and was drained meanwhile.
#[test]
fn first_listing_after_a_sleep_is_of_changes() {
    let mut field = fleet();
    cut_off(&mut field, min(5 * 60), true);
    let made_at = field.now - min(3 * 60);
    made_then(&mut field, "new", made_at);
    field.now = field.now + Span::from_s(1);
    // Scope::Changes.
    field.unnamed = vec!["i000".into()];
    field.list_cloud();
    field.sync_nodes();
    field.run(min(2));
    field.unnamed.clear();
    field.run(min(6 * 60));
    assert!(!touched(&field, "new"), "{:?}", made(&field));
}

/// A pool was added to the roster at the last start. Hours later the process is cut off for five hours.
#[test]
fn pool_that_was_new_at_the_last_start_is_doubted_after_a_gap() {
    for asleep in [true, false] {
        let mut field = off(fleet(), Span::from_s(30), two_pools());
        for id in ["g1", "g2", "g3", "g4"] {
            field.add_machine(id, true);
            of_gpu(&mut field, id);
        }
        field.run(min(3 * 60));
        assert!(made(&field).is_empty());
        cut_off(&mut field, min(5 * 60), asleep);
        let made_at = field.now - min(3 * 60);
        made_then(&mut field, "new", made_at);
        of_gpu(&mut field, "new");
        field.run(min(6 * 60));
        assert!(!touched(&field, "new"), "{asleep}: {:?}", made(&field));
    }
}

/// In a night without us X is drained and kept, and Y is made under its name. Later Y goes.
#[test]
fn drained_machine_whose_name_a_successor_took_is_held() {
    let mut found = Vec::new();
    for y in ["is scaled down", "dies", "is unmarked, and dies"] {
        let field = fleet();
        let made_at = field.now + min(3 * 60);
        let mut field = off(field, min(5 * 60), roster());
        successor(&mut field, "new", made_at);
        if y == "is unmarked, and dies" {
            field.instances.get_mut("new").unwrap().marks = std::sync::Arc::default();
        }
        field.run(min(60));
        assert!(made(&field).is_empty());
        if y == "is scaled down" {
            field.delete_machine("new");
            field.run(min(2));
            field.nodes.remove("new");
        } else {
            field.nodes.get_mut("new").unwrap().ready = Ready::Unknown;
        }
        field.run(min(6 * 60));
        found.push((y, touched(&field, ONE), made(&field)));
    }
    assert!(found.iter().all(|(_, is_touched, _)| !is_touched), "{found:#?}");
}

/// Its incident waits for a person's word, or for its dwell, when a night without us begins, in which it is drained.
#[test]
fn machine_that_was_back_before_a_night_is_held_after_it() {
    let mut found = Vec::new();
    for confirm in [true, false] {
        let field = vanished_and_back(&confirmed(confirm), confirm);
        let is_open = field.case(ONE, FaultKind::Vanished).is_some();
        let mut field = off(field, min(5 * 60), confirmed(confirm));
        field.nodes.remove(ONE);
        field.run(min(6 * 60));
        found.push((confirm, is_open, touched(&field, ONE), made(&field)));
    }
    assert!(found.iter().all(|(.., is_touched, _)| !is_touched), "{found:#?}");
}

/// Shut off, and its Node deleted in our sight. A person takes the marks off, brings it up, its Node is back. In a night
/// without us they drain it, and put the marks back in the morning.
#[test]
fn node_that_came_back_while_unmarked_counts_as_back() {
    let mut found = Vec::new();
    for goes_first in [false, true] {
        let mut field = fleet();
        if goes_first {
            field.instances.get_mut(ONE).unwrap().state = InstanceState::Stopped;
            field.nodes.get_mut(ONE).unwrap().ready = Ready::Unknown;
            field.run(min(1));
            field.nodes.remove(ONE);
            field.run(min(1));
        }
        let marks = std::mem::take(&mut field.instances.get_mut(ONE).unwrap().marks);
        field.run(min(2));
        field.instances.get_mut(ONE).unwrap().state = InstanceState::Active;
        field.nodes.insert(ONE.into(), node(ONE, Ready::True));
        field.run(min(60));
        let mut field = off(field, min(5 * 60), roster());
        field.nodes.remove(ONE);
        field.run(min(30));
        field.instances.get_mut(ONE).unwrap().marks = marks;
        field.run(min(6 * 60));
        found.push((goes_first, touched(&field, ONE), made(&field)));
    }
    assert!(found.iter().all(|(_, is_touched, _)| !is_touched), "{found:#?}");
}

/// A machine of unknown history never joined. An event of the hour before tells that the Node of its namesake was removed: it
/// is no more "never joined, of unknown history, which is never deleted" but "vanished".
#[test]
fn removal_of_a_namesake_deletes_no_machine() {
    let mut found = Vec::new();
    for told in [false, true] {
        let slow = || roster_with(|pool| pool.deadlines.join_within = Some(min(60)));
        let mut field = Field::new(slow()).populate(10);
        field.run(min(20));
        let at = field.now;
        field.nodes.get_mut(ONE).unwrap().cordoned = true;
        field.run(min(2));
        field.nodes.remove(ONE);
        say(&mut field, "RemovingNode", Some("uid-i004"), at);
        field.delete_machine(ONE);
        field.run(min(15));
        let mut field = off(field, min(10), slow());
        let made_at = field.now - min(7);
        made_then(&mut field, "new", made_at);
        field.instances.get_mut("new").unwrap().name = format!("node-{ONE}").as_str().into();
        field.now = field.now + Span::from_s(1);
        if told {
            say(&mut field, "RemovingNode", Some("uid-i004"), at);
        }
        field.run(min(30));
        let early = made(&field);
        field.run(min(8 * 60));
        found.push((told, early, made(&field)));
    }
    assert!(
        found.iter().all(|(_, early, all)| early.is_empty() && !all.iter().any(|it| it.contains("delete"))),
        "{found:#?}"
    );
}

/// Two machines joined under one name. The Node goes in a night without us: both are held.
#[test]
fn node_of_two_machines_that_goes_unwatched_holds_both() {
    let mut found = Vec::new();
    for id in ["new", "a-new"] {
        let mut field = fleet();
        api_down(&mut field, min(3));
        let made_at = field.now - min(3);
        successor(&mut field, id, made_at);
        field.run(min(2 * 60));
        assert!(made(&field).is_empty());
        let mut field = off(field, min(5 * 60), roster());
        field.nodes.remove(id);
        field.run(min(6 * 60));
        found.push((id, made(&field)));
    }
    assert!(found.iter().all(|(_, made)| made.is_empty()), "{found:#?}");
}

/// The first machine of a pool is made in our sight. In a night without us it joins and is drained. The nodes are listed before
/// its cloud, as at each start.
#[test]
fn first_machine_of_a_pool_born_before_a_night_is_held() {
    let mut found = Vec::new();
    for cloud_first in [true, false] {
        let mut field = Field::new(two_pools()).populate(10);
        field.run(min(20));
        field.add_machine("new", false);
        of_gpu(&mut field, "new");
        field.instances.get_mut("new").unwrap().state = InstanceState::Building;
        field.run(min(3));
        field.instances.get_mut("new").unwrap().state = InstanceState::Active;
        let mut field = off(field, min(5 * 60), two_pools());
        field.now = field.now + Span::from_s(1);
        if cloud_first {
            field.list_cloud();
        }
        field.sync_nodes();
        field.run(min(6 * 60));
        found.push((cloud_first, made(&field)));
    }
    assert!(found.iter().all(|(_, made)| made.is_empty()), "{found:#?}");
}

/// The ledger knows no machine. Two starts after a night without us, the first of which reaches no API server.
#[test]
fn two_starts_beside_a_fleet_at_zero_delete_nothing() {
    let mut field = Field::new(roster());
    let mut cp = node("cp", Ready::True);
    cp.provider = Provider::Unset;
    field.nodes.insert("cp".into(), cp);
    field.feed(Event::Cluster(ClusterFact::Identity("uid-1".into())));
    field.run(min(20));
    let made_at = field.now + min(2 * 60);
    let mut field = off(field, min(5 * 60), roster());
    made_then(&mut field, "new", made_at);
    field.instances.get_mut("new").unwrap().state = InstanceState::Errored;
    api_down(&mut field, min(2));
    let mut field = off(field, Span::from_s(5), roster());
    field.run(min(6 * 60));
    assert!(!touched(&field, "new"), "{:?}", made(&field));
}

/// An incident names it, its cell is down, and the API server is away for hours, in which it joined and was drained.
#[test]
fn machine_judged_before_a_gap_of_this_process_is_held() {
    let mut field = Field::new(roster()).populate(10);
    field.now = field.now + min(24 * 60);
    made_then(&mut field, "new", Time::from_ms(0));
    field.run_until(min(60), |field| field.case("new", FaultKind::NeverJoined).is_some());
    let mut field = off(field, Span::from_s(30), roster());
    let it = field.instances.remove("new").unwrap();
    field.cell_down = Some("new".into());
    field.run(min(5));
    api_down(&mut field, min(5 * 60));
    field.cell_down = None;
    field.instances.insert("new".into(), it);
    field.run(min(6 * 60));
    assert!(!touched(&field, "new"), "{:?}", made(&field));
}

/// Its Node is seen to go, and is back before a night without us. Its cloud cannot be listed by the process that sees that.
#[test]
fn node_back_while_its_cloud_is_away_counts_as_back() {
    let mut found = Vec::new();
    for errored in [true, false] {
        let mut field = fleet();
        if errored {
            field.instances.get_mut(ONE).unwrap().state = InstanceState::Errored;
            field.run(min(1));
        }
        field.nodes.remove(ONE);
        field.run(Span::from_s(30));
        let mut field = off(field, Span::from_s(30), roster());
        // A person brings it back. Its cloud does not answer.
        field.instances.get_mut(ONE).unwrap().state = InstanceState::Active;
        field.nodes.insert(ONE.into(), node(ONE, Ready::True));
        see_nodes_alone(&mut field, min(120));
        let mut field = off(field, min(5 * 60), roster());
        field.nodes.remove(ONE);
        field.run(min(6 * 60));
        found.push((errored, touched(&field, ONE), made(&field)));
    }
    assert!(found.iter().all(|(_, is_touched, _)| !is_touched), "{found:#?}");
}

/// Its incident is open, it is well, and a few hours without the API server begin, in which it is drained.
#[test]
fn machine_back_before_a_gap_of_this_process_is_held() {
    let mut found = Vec::new();
    for confirm in [true, false] {
        let mut field = vanished_and_back(&confirmed(confirm), confirm);
        api_down(&mut field, min(5 * 60));
        field.nodes.remove(ONE);
        field.run(min(6 * 60));
        found.push((confirm, touched(&field, ONE), made(&field)));
    }
    assert!(found.iter().all(|(_, is_touched, _)| !is_touched), "{found:#?}");
}

/// It was seen being born, was in sight, and its cloud denies it for a while in a gap of two hours; rotation between.
#[test]
fn newborn_before_a_long_gap_is_held_after_a_rotation() {
    let mut found = Vec::new();
    for rotated in ["no", "in the gap", "after it"] {
        let mut field = fleet();
        field.add_machine("new", false);
        field.run(min(3));
        api_down(&mut field, min(4 * 60));
        if rotated == "in the gap" {
            field.records = field.state.checkpoint();
            field = off(field, Span::from_s(5), roster());
        }
        field.now = field.now + Span::from_s(1);
        field.sync_nodes();
        if rotated == "after it" {
            field.records = field.state.checkpoint();
            field = off(field, Span::from_s(5), roster());
        }
        field.run(min(6 * 60));
        found.push((rotated, touched(&field, "new"), made(&field)));
    }
    assert!(found.iter().all(|(_, is_touched, _)| !is_touched), "{found:#?}");
}

/// A night without us, after which the first process sees the nodes and not its cloud, and is restarted. The machine was
/// joining in the evening, as an incident tells; it joined and was drained at night.
#[test]
fn gap_is_not_over_before_its_cloud_is_listed() {
    let mut found = Vec::new();
    for through in [true, false] {
        let mut field = fleet();
        field.add_machine("new", false);
        field.run(min(3));
        assert!(field.case("new", FaultKind::NeverJoined).is_some());
        let mut field = off(field, min(5 * 60), roster());
        if through {
            see_nodes_alone(&mut field, min(5));
            field = off(field, Span::from_s(30), roster());
        }
        field.run(min(6 * 60));
        found.push((through, touched(&field, "new"), made(&field)));
    }
    assert!(found.iter().all(|(_, is_touched, _)| !is_touched), "{found:#?}");
}

/// Bare metal or k3s. A machine was seen being made and did not join. A person takes its marks off to mend it, it joins, is
/// drained again, all of it in our sight, and gets its marks back.
#[test]
fn newborn_that_was_unmarked_tried_and_drained_is_held() {
    let mut found = Vec::new();
    for born in [false, true] {
        let mut field = fleet();
        field.add_machine("new", false);
        let marks = field.instances["new"].marks.clone();
        if born {
            field.run(min(3));
        }
        field.instances.get_mut("new").unwrap().marks = std::sync::Arc::default();
        field.run(min(3));
        try_and_drain(&mut field);
        field.run(min(2 * 60));
        field.instances.get_mut("new").unwrap().marks = marks;
        field.run(min(6 * 60));
        found.push((born, touched(&field, "new"), made(&field)));
    }
    assert!(found.iter().all(|(_, is_touched, _)| !is_touched), "{found:#?}");
}

/// Rebooted and power-cycled in vain; no process for three days; it is not Ready again when the next one begins.
#[test]
fn escalation_begins_again_after_three_days() {
    let mut field = fleet();
    field.nodes.get_mut(ONE).unwrap().ready = Ready::Unknown;
    field.run_until(min(120), |field| field.calls.len() == 2);
    field.run(min(10));
    let before = made(&field);
    // It was well for three days, has booted since, and fails again as the next process begins.
    field.nodes.get_mut(ONE).unwrap().boot_id = Some("another".into());
    let mut field = off(field, min(3 * 24 * 60), roster());
    field.run(min(3 * 60));
    assert!(
        made(&field).first().is_some_and(|first| !first.contains("delete")),
        "{before:?}, then {:?}",
        made(&field)
    );
}

/// The roster gives a pool another name while no process runs for a night.
#[test]
fn machine_of_a_pool_renamed_in_a_night_is_held() {
    let field = fleet();
    let mut renamed = roster();
    let mut pool = renamed.pools.pop_first().unwrap().1;
    pool.name = "workers-a".into();
    renamed.pools.insert(pool.name.clone(), pool);
    let mut field = off(field, min(5 * 60), renamed);
    let made_at = field.now - min(2 * 60);
    made_then(&mut field, "new", made_at);
    field.run(min(6 * 60));
    assert!(!touched(&field, "new"), "{:?}", made(&field));
}

/// The same, where its cloud denies the machine for a while (a cell that is down), and it has its marks.
#[test]
fn newborn_drained_while_its_cell_was_down_is_held() {
    let mut field = fleet();
    field.add_machine("new", false);
    field.run(min(3));
    let (it, its_port) = (field.instances.remove("new").unwrap(), field.ports.remove("new").unwrap());
    field.run(min(3));
    try_and_drain(&mut field);
    field.run(min(60));
    field.instances.insert("new".into(), it);
    field.ports.insert("new".into(), its_port);
    field.run(min(6 * 60));
    assert!(!touched(&field, "new"), "{:?}", made(&field));
}

/// An incident alone names a machine: it ran before our first start and never joined. Others delete it while no process runs, and
/// may be at work on the next one of its pool (seed 7801812).
#[test]
fn machine_that_an_incident_alone_knew_went_by_others() {
    let mut field = Field::new(roster()).populate(10);
    field.now = field.now + min(24 * 60);
    made_then(&mut field, "new", Time::from_ms(0));
    field.run_until(min(60), |field| field.case("new", FaultKind::NeverJoined).is_some());
    field.delete_machine("new");
    let mut field = off(field, min(2), roster());
    field.run(min(1));
    let is_noted =
        |record: &Record| matches!(record, Record::OthersActed { what, .. } if what.contains("new"));
    assert!(field.records.iter().any(is_noted));
}

/// The gap is shorter than events live, and the kubelet was dead before it. A successor takes the name in it, and is scaled down
/// hours later without a cordon.
#[test]
fn silent_machine_whose_name_was_taken_in_a_short_gap_is_held() {
    let mut field = fleet();
    set(&mut field, ONE, Ready::Unknown);
    field.run(min(3));
    let made_at = field.now + min(20);
    let mut field = off(field, min(40), roster());
    successor(&mut field, "new", made_at);
    field.run(min(60));
    assert!(made(&field).is_empty());
    field.delete_machine("new");
    field.run(min(2));
    field.nodes.remove("new");
    field.run(min(6 * 60));
    assert!(!touched(&field, ONE), "{:?}", made(&field));
}

/// We slept for most of an hour, and a person drained a Node and took the marks off its machine meanwhile. The kubelet's event
/// of the cordon is read before the cloud is listed, and the machine is out of sight then. It gets its marks back once events
/// have expired.
#[test]
fn drain_told_of_a_machine_that_lost_its_marks_is_kept() {
    let mut field = fleet();
    let at = field.now + min(2);
    field.nodes.remove(ONE);
    field.now = field.now + min(56);
    field.sync_nodes();
    say(&mut field, "NodeNotSchedulable", None, at);
    let marks = std::mem::take(&mut field.instances.get_mut(ONE).unwrap().marks);
    field.run(min(70));
    let mut field = off(field, Span::from_s(30), roster());
    field.run(min(2));
    field.instances.get_mut(ONE).unwrap().marks = marks;
    field.run(min(6 * 60));
    assert!(!touched(&field, ONE), "{:?}", made(&field));
}

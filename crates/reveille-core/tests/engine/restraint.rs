//! What must not happen, and what the controller says instead.

use std::collections::BTreeSet;
use std::sync::Arc;

use reveille_core::effect::{Call, Outcome};
use reveille_core::engine::{Restored, State};
use reveille_core::event::{CloudFact, CloudSnapshot, Command, Event, Pause, PauseScope};
use reveille_core::model::incident::FaultKind;
use reveille_core::model::instance::{InstanceState, Mark};
use reveille_core::model::node::Ready;
use reveille_core::model::roster::{Mode, Pool};
use reveille_core::model::time::Span;

use super::fixture::{CLOUD, Field, instance, node, roster};
use super::restart::restarted;

#[test]
fn empty_node_list_deletes_no_machine() {
    let mut field = Field::new(roster()).populate(100);
    field.run(Span::from_min(5));
    field.nodes.clear();
    field.run(Span::from_min(600));
    assert!(field.calls.is_empty(), "{:?}", field.calls);
    let trust = field.state.context().cluster.source.trust(field.now).to_string();
    assert!(trust.contains("the node list is empty beside 100 running instances"), "{trust}");
}

#[test]
fn empty_server_list_deletes_no_machine() {
    let mut field = Field::new(roster()).populate(100);
    field.run(Span::from_min(5));
    field.instances.clear();
    field.ports.clear();
    field.run(Span::from_min(600));
    assert!(field.calls.is_empty(), "{:?}", field.calls);
}

#[test]
fn a_zone_that_went_dark_is_left_alone() {
    let mut field = Field::new(roster()).populate(20);
    for number in 0..4 {
        field.instances.get_mut(&format!("i{number:03}")).unwrap().zone = Some("dark".into());
    }
    field.run(Span::from_min(5));
    for number in 0..4 {
        field.nodes.get_mut(&format!("i{number:03}")).unwrap().ready = Ready::Unknown;
    }
    field.run(Span::from_min(120));
    assert_eq!(field.destructive_calls(), 0, "{:?}", field.calls);
    let held = field.held("i001", FaultKind::NotReady);
    assert!(held.contains("zone dark is down: none of its 4 machines is Ready"), "{held}");
}

#[test]
fn above_the_breaker_nothing_is_done() {
    let mut field = Field::new(roster()).populate(10);
    field.run(Span::from_min(5));
    for number in 0..4 {
        field.nodes.get_mut(&format!("i{number:03}")).unwrap().ready = Ready::False;
    }
    field.run(Span::from_min(120));
    assert_eq!(field.destructive_calls(), 0, "{:?}", field.calls);
    let held = field.held("i001", FaultKind::NotReady);
    assert!(held.contains("4 of 10 machines of pool workers have a problem"), "{held}");
}

#[test]
fn one_at_a_time_and_the_next_only_after_proof_or_failure() {
    let mut field = Field::new(roster()).populate(20);
    field.run(Span::from_min(5));
    for number in 0..3 {
        field.nodes.get_mut(&format!("i{number:03}")).unwrap().ready = Ready::False;
    }
    field.run(Span::from_min(16));
    assert_eq!(field.destructive_calls(), 1, "{:?}", field.calls);
}

#[test]
fn a_pause_holds_and_its_end_lets_go() {
    let mut field = Field::new(roster()).populate(5);
    field.run(Span::from_min(2));
    let pause =
        Pause { scope: PauseScope::Pool("workers".into()), by: "ada".into(), reason: "upgrade".into() };
    field.feed(Event::Command(Command::Pauses(BTreeSet::from([pause]))));
    field.ports.get_mut("i001").unwrap().groups = Box::new([]);
    field.run(Span::from_min(10));
    assert!(field.calls.is_empty());
    let held = field.held("i001", FaultKind::GroupMissing);
    assert!(held.contains("pool workers is paused by ada: upgrade"), "{held}");
    field.feed(Event::Command(Command::Pauses(BTreeSet::new())));
    assert_eq!(field.calls.len(), 1);
}

#[test]
fn a_pause_of_ours_restarts_every_timer() {
    let mut field = Field::new(roster()).populate(10);
    field.run(Span::from_min(2));
    field.add_machine("new", false);
    field.run(Span::from_min(10));
    field.now = field.now + Span::from_min(60);
    field.lists();
    field.run(Span::from_min(13));
    assert!(field.calls.is_empty(), "it was asleep, not missing: {:?}", field.calls);
}

#[test]
fn while_most_machines_do_not_answer_yet_nothing_is_done() {
    let mut field = Field::new(roster()).populate(4);
    field.run(Span::from_min(5));
    for number in 0..8 {
        field.add_machine(&format!("new{number}"), false);
    }
    field.add_machine("bad", false);
    field.instances.get_mut("bad").unwrap().state = InstanceState::Errored;
    field.run(Span::from_min(10));
    assert!(field.calls.is_empty(), "{:?}", field.calls);
    let held = field.held("bad", FaultKind::Errored);
    assert!(
        held.contains("9 of 13 machines are not Ready, machines that are still starting included"),
        "{held}"
    );
    for number in 0..8 {
        let id = format!("new{number}");
        field.nodes.insert(id.clone(), node(&id, Ready::True));
    }
    field.run(Span::from_min(5));
    assert_eq!(field.destructive_calls(), 1, "{:?}", field.calls);
}

/// In a small cluster that is new, most machines may be missing for days. A roster that tolerates problems of all machines
/// at once is followed to the letter.
#[test]
fn roster_tolerating_all_problems_allows_repair_in_dark_fleet() {
    let mut brave = roster();
    brave.limits.freeze_above_pct = 100;
    let mut field = Field::new(brave).populate(1);
    field.run(Span::from_min(5));
    for id in ["new0", "new1", "bad"] {
        field.add_machine(id, false);
    }
    field.instances.get_mut("bad").unwrap().state = InstanceState::Errored;
    field.run(Span::from_min(10));
    assert_eq!(field.destructive_calls(), 1, "{:?}", field.calls);
}

#[test]
fn late_joiners_count_as_unhealthy_after_restart_and_sleep() {
    let mut field = Field::new(roster()).populate(8);
    field.run(Span::from_min(5));
    for number in 0..6 {
        field.add_machine(&format!("bad{number}"), false);
    }
    field.run(Span::from_min(20));
    let unhealthy = |field: &Field| field.state.context().counts.pool(&"workers".into()).unhealthy;
    assert_eq!((unhealthy(&field), field.calls.len()), (6, 0), "the breaker holds");
    let mut field = restarted(field);
    field.add_machine("errored", false);
    field.instances.get_mut("errored").unwrap().state = InstanceState::Errored;
    field.run(Span::from_min(10));
    assert_eq!((unhealthy(&field), field.calls.len()), (7, 0), "after the restart, too");
    field.now = field.now + Span::from_min(60);
    field.run(Span::from_min(10));
    assert_eq!((unhealthy(&field), field.calls.len()), (7, 0), "and after a sleep");
}

#[test]
fn machine_with_unknown_fate_holds_its_pool_for_an_hour() {
    for marked in [true, false] {
        let mut field = Field::new(roster()).populate(8);
        if !marked {
            // Its marks do not tell whose it is: it may be of any pool.
            field.instances.get_mut("i000").unwrap().marks =
                Arc::new([Mark::Tag("k8s-cluster=prod".into())].into());
        }
        field.run(Span::from_min(5));
        // Its cell is down: no listing has it, and asked for by id it is not answered.
        field.instances.remove("i000");
        field.nodes.get_mut("i000").unwrap().ready = Ready::Unknown;
        field.cell_down = Some("i000".into());
        field.run(Span::from_min(12));
        field.add_machine("bad", false);
        field.instances.get_mut("bad").unwrap().state = InstanceState::Errored;
        field.run(Span::from_min(20));
        assert!(field.calls.is_empty(), "marked: {marked}: {:?}", field.calls);
        let held = field.held("bad", FaultKind::Errored);
        assert!(
            held.contains("is missing from the cloud's list, and the reason is not known yet"),
            "marked: {marked}: {held}"
        );
        field.run(Span::from_min(40));
        assert_eq!(field.destructive_calls(), 1, "for an hour at most: {:?}", field.calls);
    }
}

/// A machine of the pool was deleted while no process ran, and the cloud does not answer for a while when it is asked for.
/// The ledger alone knows it: by its having joined, or by its open incident.
#[test]
fn machine_lost_while_no_process_ran_holds_pool_until_known() {
    for joined in [true, false] {
        let mut field = Field::new(roster()).populate(8);
        field.run(Span::from_min(5));
        let id = if joined { "i000" } else { "late" };
        if !joined {
            field.add_machine("late", false);
            field.run(Span::from_min(11));
        }
        field.instances.remove(id);
        field.ports.remove(id);
        field.nodes.remove(id);
        field.add_machine("bad", false);
        field.instances.get_mut("bad").unwrap().state = InstanceState::Errored;
        let mut field = restarted(field);
        field.cell_down = Some(id.into());
        field.run(Span::from_min(20));
        assert_eq!(field.destructive_calls(), 0, "joined: {joined}: {:?}", field.calls);
        let held = field.held("bad", FaultKind::Errored);
        assert!(
            held.contains("is missing from the cloud's list, and the reason is not known yet"),
            "joined: {joined}: {held}"
        );
        field.run(Span::from_min(50));
        assert_eq!(field.destructive_calls(), 1, "joined: {joined}: for an hour at most: {:?}", field.calls);
    }
}

/// Two machines of one pool, in two zones, are due at once.
#[test]
fn deletions_under_way_count_against_the_minimum_of_the_pool() {
    let mut roster = roster();
    (roster.limits.at_once, roster.limits.per_hour) = (2, 10);
    let pool = roster.pools.values_mut().next().unwrap();
    pool.min = 9;
    (pool.repair.rejoin, pool.repair.reboot) = (Mode::Off, Mode::Off);
    let mut field = Field::new(roster).populate(10);
    for id in ["i005", "i006", "i007", "i008", "i009"] {
        field.instances.get_mut(id).unwrap().zone = Some("z2".into());
    }
    field.run(Span::from_min(20));
    for id in ["i004", "i007"] {
        field.nodes.get_mut(id).unwrap().ready = Ready::Unknown;
    }
    field.run(Span::from_min(20));
    assert!(field.instances.len() >= 9, "{} are left: {:?}", field.instances.len(), field.calls);
}

/// A slow Nova behind a proxy: the first deletion is not answered, is not to be seen for a minute, and is carried out after
/// three.
#[test]
fn late_deletion_counts_against_the_pool_minimum() {
    let mut roster = roster();
    let pool = roster.pools.values_mut().next().unwrap();
    pool.min = 9;
    (pool.repair.rejoin, pool.repair.reboot) = (Mode::Off, Mode::Off);
    let mut field = Field::new(roster).populate(10);
    for id in ["i005", "i006", "i007", "i008", "i009"] {
        field.instances.get_mut(id).unwrap().zone = Some("z2".into());
    }
    field.run(Span::from_min(20));
    for id in ["i004", "i007"] {
        field.nodes.get_mut(id).unwrap().ready = Ready::Unknown;
    }
    field.mute = Some(Vec::new());
    for _ in 0..180 {
        field.run(Span::from_s(10));
        for intent in std::mem::take(field.mute.as_mut().unwrap()) {
            let outcome = Outcome::Unknown { text: "504".into() };
            field.feed(Event::Done { intent, outcome });
        }
        let late: Vec<Call> = field.calls.clone();
        if late.len() > 1 {
            // Three minutes late, both are carried out.
            field.run(Span::from_min(1));
            late.iter().for_each(|call| field.apply(call));
            break;
        }
    }
    assert!(field.instances.len() >= 9, "{} are left: {:?}", field.instances.len(), field.calls);
}

/// EC2 describes an instance for an hour after its end, and its Node stays until a client deletes it (hunt, seed 4000381).
#[test]
fn ended_machine_still_described_does_not_count_for_minimum() {
    let mut roster = roster();
    let pool = roster.pools.values_mut().next().unwrap();
    pool.min = 9;
    (pool.repair.rejoin, pool.repair.reboot, pool.repair.cleanup) = (Mode::Off, Mode::Off, Mode::Off);
    let mut field = Field::new(roster).populate(10);
    field.run(Span::from_min(20));
    field.nodes.get_mut("i004").unwrap().ready = Ready::Unknown;
    field.run(Span::from_min(2));
    field.instances.get_mut("i004").unwrap().state = InstanceState::Gone;
    field.run(Span::from_min(2));
    field.nodes.get_mut("i007").unwrap().ready = Ready::Unknown;
    field.run(Span::from_min(30));
    assert!(field.calls.is_empty(), "nine are there: {:?}", field.calls);
}

/// When a clock is set ahead by an hour, seen from the processes.
#[derive(Clone, Copy, Debug)]
enum SetAhead {
    Within,
    Between,
    BeforeRestart,
    BeforeRotation,
    BetweenAndOnceMore,
}

/// An hour of a clock that is set ahead is no hour.
#[test]
fn clock_that_is_set_ahead_frees_no_room_within_the_hour() {
    use SetAhead::{BeforeRestart, BeforeRotation, Between, BetweenAndOnceMore, Within};
    for when in [Within, Between, BeforeRestart, BeforeRotation, BetweenAndOnceMore] {
        let mut wanted = roster();
        wanted.limits.per_hour = 1;
        wanted.pools.values_mut().for_each(|pool| pool.repair.rejoin = Mode::Off);
        let mut field = Field::new(wanted.clone()).populate(10);
        field.run(Span::from_min(5));
        field.nodes.get_mut("i004").unwrap().ready = Ready::Unknown;
        field.run_until(Span::from_min(90), |field| !field.made.is_empty());
        field.run(Span::from_min(2));
        field.boots("i004");
        field.run(Span::from_min(3));
        field.nodes.get_mut("i007").unwrap().ready = Ready::Unknown;
        field.run(Span::from_min(5));
        let last_alive = Some(field.now);
        if matches!(when, Between | BetweenAndOnceMore) {
            field = field.restarted(wanted.clone());
            field.now = field.now + Span::from_min(61);
            let how = Restored { last_alive, ..field.next_begins() };
            field.state = State::restore(wanted.clone(), how, field.records.clone());
        } else {
            field.now = field.now + Span::from_min(61);
        }
        field.run(Span::from_min(1));
        if matches!(when, BeforeRotation) {
            field.records = field.state.checkpoint();
        }
        if matches!(when, BeforeRestart | BeforeRotation | BetweenAndOnceMore) {
            field = field.restarted(wanted);
        }
        field.run(Span::from_min(30));
        assert_eq!(field.made.len(), 1, "{when:?}: {:?}", field.made);
        field.run(Span::from_min(60));
        assert!(field.made.len() > 1, "{when:?}: {}", field.held("i007", FaultKind::NotReady));
    }
}

const SECOND: &str = "os-b";

/// Ten machines of one cloud, the last two in a zone of their own, and others of a second cloud, all of them in that zone.
fn two_clouds(count: usize) -> (Field, CloudSnapshot) {
    let mut wanted = roster();
    wanted.clouds = vec![CLOUD.into(), SECOND.into()];
    let gate = Pool { name: "gate".into(), cloud: SECOND.into(), ..wanted.pools["workers"].clone() };
    wanted.pools.insert("gate".into(), gate);
    let mut field = Field::new(wanted).populate(10);
    for number in 0..8 {
        field.instances.get_mut(&format!("i00{number}")).unwrap().zone = Some("z2".into());
    }
    let ids: Vec<String> = (0..count).map(|number| format!("b{number:03}")).collect();
    for id in &ids {
        field.nodes.insert(id.clone(), node(id, Ready::True));
    }
    let instances = ids.iter().map(|id| instance(id).into()).collect();
    let there = CloudSnapshot { instances, groups: field.snapshot().groups, ..CloudSnapshot::default() };
    (field, there)
}

fn run_both(field: &mut Field, second: &CloudSnapshot, minutes: i64) {
    for _ in 0..minutes * 2 {
        let fact = CloudFact::read(second.clone());
        field.feed(Event::Cloud { cloud: SECOND.into(), fact });
        field.run(Span::from_s(30));
    }
}

/// Nova calls a zone "nova" when its operator gave it no name: two regions may both have one.
#[test]
fn dark_zone_is_dark_despite_same_zone_name_in_another_cloud() {
    for (silent, not_ready) in [(2, 2), (2, 1), (1, 1)] {
        let (mut field, second) = two_clouds(10);
        run_both(&mut field, &second, 20);
        for id in &["i008", "i009"][..not_ready] {
            field.nodes.get_mut(*id).unwrap().ready = Ready::Unknown;
        }
        field.silent = ["node-i008", "node-i009"][..silent].iter().map(|name| (*name).to_owned()).collect();
        run_both(&mut field, &second, 60);
        let is_dark = silent == 2;
        assert_eq!(field.calls.is_empty(), is_dark, "{silent}, {not_ready}: {:?}", field.calls);
    }
}

/// Two projects of one region have one machine each in a zone, which tells nothing of the zone by itself.
#[test]
fn dark_zone_is_dark_where_two_projects_share_it() {
    for both in [true, false] {
        let (mut field, second) = two_clouds(1);
        field.instances.get_mut("i008").unwrap().zone = Some("z2".into());
        run_both(&mut field, &second, 20);
        field.nodes.get_mut("i009").unwrap().ready = Ready::Unknown;
        if both {
            field.nodes.get_mut("b000").unwrap().ready = Ready::Unknown;
        }
        run_both(&mut field, &second, 60);
        assert_eq!(field.calls.is_empty(), both, "{:?}", field.calls);
    }
}

//! Machines that a person had in hand until a moment ago, where what tells of it ends or is forgotten: a pause, a lock, marks
//! that are put back, a restart of ours, a clock that is set ahead. Each has the time of a boot, and is repaired after it.

use std::sync::Arc;

use reveille_core::event::{ClusterFact, Command, Event, Pause, PauseScope};
use reveille_core::model::hosting::{GroupPhase, Hosting, OwnerGroup};
use reveille_core::model::instance::{InstanceAction, InstanceState, Mark};
use reveille_core::model::node::{Asks, Ready};
use reveille_core::model::time::Span;
use reveille_core::record::Record;

use super::fixture::{Field, roster};
use super::steps::{made, min, set, without_rejoin};

const ONE: &str = "i004";

/// Nova's log tells that a person did this just now.
fn person_does(field: &mut Field, action: &str) {
    let (started, request) = (field.cloud_time(), format!("req-erin-{}", field.by_others.len()));
    let (request, user) = (request.as_str().into(), Some("erin".into()));
    let by_erin = InstanceAction { request, action: action.into(), started, user, message: None };
    field.by_others.insert(0, (ONE.to_owned(), by_erin));
}

fn state(field: &mut Field, state: InstanceState, task: Option<&str>) {
    let instance = field.instances.get_mut(ONE).unwrap();
    (instance.state, instance.task) = (state, task.map(Arc::from));
}

/// It has the time of a boot, 15 minutes and the dwell, and no more than a while longer.
fn has_the_time_of_a_boot(mut field: Field, what: &str) {
    let (calls, back) = (field.calls.len(), field.now);
    field.run_until(min(60), |field| field.calls.len() > calls);
    assert!(field.calls.len() > calls, "{what}: never repaired");
    let took = field.now.since(back);
    assert!(took >= min(13), "{what}: {:?} after {took}", made(&field));
    assert!(took <= min(40), "{what}: {:?} after {took}", made(&field));
}

/// A person's resize, or their rebuild of a machine whose Node is gone, took 20 minutes. We restart a moment after it, or our
/// clock is set ahead.
#[test]
fn machine_returned_before_restart_or_jump_gets_time_to_boot() {
    for (action, fails) in [("resize", true), ("rebuild", false)] {
        for how in ["nothing", "restart", "rotated", "jump"] {
            let mut field = Field::new(roster()).populate(10);
            field.run(min(20));
            if fails {
                set(&mut field, ONE, Ready::Unknown);
            } else {
                field.nodes.remove(ONE);
            }
            field.run(min(1));
            person_does(&mut field, action);
            state(&mut field, InstanceState::Other, Some("in_its_hands"));
            field.run(min(20));
            state(&mut field, if fails { InstanceState::Errored } else { InstanceState::Active }, None);
            field.run(Span::from_s(30));
            if how == "rotated" {
                field.records = field.state.checkpoint();
            }
            if matches!(how, "restart" | "rotated") {
                let by_others = std::mem::take(&mut field.by_others);
                field = field.restarted(roster());
                field.by_others = by_others;
            }
            if how == "jump" {
                field.now = field.now + min(60);
                field.cloud_behind = min(60);
            }
            has_the_time_of_a_boot(field, &format!("{action}, {how}"));
        }
    }
}

/// EC2 keeps no log of reboots: a person pauses the machine, or locks it, reboots it, and lets go of it while it boots.
#[test]
fn machine_whose_pause_or_lock_ends_has_the_time_of_a_boot() {
    let scopes = [
        PauseScope::Machine("node-i004".into()),
        PauseScope::Pool(roster().pools.values().next().unwrap().name.as_str().into()),
        PauseScope::Roster,
    ];
    let by_annotation = |field: &mut Field, on| field.nodes.get_mut(ONE).unwrap().intent.paused = on;
    let by_lock = |field: &mut Field, on| field.instances.get_mut(ONE).unwrap().locked = on;
    let by_command = |scope: &PauseScope| {
        let pause = Pause { scope: scope.clone(), by: "erin".into(), reason: "reboots it".into() };
        move |field: &mut Field, on: bool| {
            let pauses = on.then(|| pause.clone()).into_iter().collect();
            field.feed(Event::Command(Command::Pauses(pauses)));
        }
    };
    let mut ways: Vec<Box<dyn Fn(&mut Field, bool)>> = vec![Box::new(by_annotation), Box::new(by_lock)];
    ways.extend(scopes.iter().map(|scope| Box::new(by_command(scope)) as Box<dyn Fn(&mut Field, bool)>));
    for (number, put) in ways.iter().enumerate() {
        for when in ["away", "away after our reboot", "serving"] {
            let mut field = Field::new(without_rejoin()).populate(10);
            for instance in field.instances.values_mut() {
                instance.hosting = Some(Arc::new(Hosting::default()));
            }
            field.run(min(20));
            set(&mut field, ONE, Ready::Unknown);
            field.run(min(3));
            if when == "away after our reboot" {
                field.run_until(min(10), |field| !field.calls.is_empty());
                field.run(min(2));
            }
            put(&mut field, true);
            field.run(min(60));
            if when == "serving" {
                set(&mut field, ONE, Ready::True);
                field.run(min(10));
            }
            put(&mut field, false);
            let calls = field.calls.len();
            field.run(Span::from_s(20));
            assert_eq!(field.calls.len(), calls, "way {number}, {when}: {:?}", made(&field));
            set(&mut field, ONE, Ready::Unknown);
            has_the_time_of_a_boot(field, &format!("way {number}, {when}"));
        }
    }
}

/// A person keeps the machine to themselves in this way, or is done with it.
fn keep(field: &mut Field, way: &str, on: bool) {
    let marks = field.instances["i001"].marks.clone();
    let instance = field.instances.get_mut(ONE).unwrap();
    match way {
        "annotation" => field.nodes.get_mut(ONE).unwrap().intent.paused = on,
        "lock" => instance.locked = on,
        "marks" => instance.marks = if on { Arc::default() } else { marks },
        _ => {
            let scope = PauseScope::Machine("node-i004".into());
            let pause = Pause { scope, by: "erin".into(), reason: "works on it".into() };
            let pauses = on.then_some(pause).into_iter().collect();
            field.feed(Event::Command(Command::Pauses(pauses)));
        }
    }
}

/// A person has it to themselves for an hour, and it is off, or a reboot of ours never ended on its dead host. When they let go
/// of it they work on. It was started, or deleted, 20 s later.
#[test]
fn machine_released_in_any_state_gets_time_to_boot() {
    for way in ["annotation", "lock", "command", "marks"] {
        for is in [InstanceState::Stopped, InstanceState::Rebooting] {
            let mut field = Field::new(without_rejoin()).populate(10);
            field.run(min(20));
            set(&mut field, ONE, Ready::Unknown);
            if is == InstanceState::Rebooting {
                field.run_until(min(20), |field| !field.calls.is_empty());
                state(&mut field, is, Some("reboot_started"));
                field.run(min(2));
            }
            keep(&mut field, way, true);
            field.run(min(1));
            if is == InstanceState::Stopped {
                state(&mut field, is, None);
            }
            let calls = field.calls.len();
            field.run(min(60));
            assert_eq!(field.calls.len(), calls, "{way}, {is:?}: {:?}", made(&field));
            keep(&mut field, way, false);
            has_the_time_of_a_boot(field, &format!("{way}, {is:?}"));
        }
    }
}

/// The same for one that is stuck in its build.
#[test]
fn machine_unlocked_while_building_gets_time_to_boot() {
    let mut field = Field::new(without_rejoin()).populate(10);
    field.run(min(20));
    field.add_machine("new", false);
    field.instances.get_mut("new").unwrap().state = InstanceState::Building;
    field.run(min(2));
    field.instances.get_mut("new").unwrap().locked = true;
    field.run(min(60));
    assert_eq!(field.calls, []);
    field.instances.get_mut("new").unwrap().locked = false;
    has_the_time_of_a_boot(field, "building");
}

/// Half a minute after a person let go of a machine that serves, which they reboot from inside (EC2: nothing shows that), we are
/// restarted, or our clock is set ahead; its Node is silent only then. A command may be over while no process runs, as a pause in
/// the roster is by a restart.
#[test]
fn machine_released_just_before_restart_gets_time_to_boot() {
    for way in ["annotation", "lock", "command", "command while no process ran", "roster", "marks"] {
        for how in ["nothing", "restart", "restart twice", "rotated", "jump"] {
            let needs_restart = matches!(way, "command while no process ran" | "roster");
            if needs_restart && !how.contains("restart") {
                continue;
            }
            let mut wanted = without_rejoin();
            wanted.pools.values_mut().for_each(|pool| pool.paused = way == "roster");
            let mut field = Field::new(wanted).populate(10);
            for instance in field.instances.values_mut() {
                instance.hosting = Some(Arc::new(Hosting::default()));
            }
            field.run(min(20));
            if way != "roster" {
                keep(&mut field, way, true);
            }
            field.run(min(30));
            if !needs_restart {
                keep(&mut field, way, false);
            }
            field.run(Span::from_s(30));
            if how == "rotated" {
                field.records = field.state.checkpoint();
            }
            if how == "jump" {
                field.now = field.now + min(60);
                field.cloud_behind = min(60);
            } else if how != "nothing" {
                field = field.restarted(without_rejoin());
                field.run(Span::from_s(20));
            }
            if how == "restart twice" {
                field = field.restarted(without_rejoin());
                field.run(Span::from_s(20));
            }
            set(&mut field, ONE, Ready::Unknown);
            has_the_time_of_a_boot(field, &format!("{way}, {how}"));
        }
    }
}

/// A pause or a lock that stands over many restarts is over once: its machines are not left alone for as long as we are
/// restarted.
#[test]
fn ended_pause_or_lock_allows_repair_despite_frequent_restarts() {
    for way in ["command", "annotation", "lock"] {
        let mut field = Field::new(without_rejoin()).populate(10);
        keep(&mut field, way, true);
        field.run(min(20));
        for _ in 0..3 {
            field = field.restarted(without_rejoin());
            field.run(min(5));
        }
        // The next process knows of no command, so that one was over with the first restart.
        if way != "command" {
            keep(&mut field, way, false);
        }
        for _ in 0..3 {
            field = field.restarted(without_rejoin());
            field.run(min(5));
        }
        let told = |is: fn(&Record) -> bool| field.records.iter().filter(|record| is(record)).count();
        assert_eq!(told(|record| matches!(record, Record::Paused { over: true, .. })), 1, "{way}");
        assert_eq!(told(|record| matches!(record, Record::Cordoned { .. })), 2, "{way}");
        set(&mut field, ONE, Ready::Unknown);
        field.run_until(min(30), |field| !field.calls.is_empty());
        assert!(!field.calls.is_empty(), "{way}: never repaired");
    }
}

/// A person asks for a repair of a machine that is locked, reboots it from inside and unlocks it, and we are restarted then:
/// their request was before that.
#[test]
fn machine_unlocked_after_request_gets_boot_time_over_restart() {
    for restarts in [false, true] {
        let mut field = Field::new(without_rejoin()).populate(10);
        field.run(min(20));
        set(&mut field, ONE, Ready::Unknown);
        keep(&mut field, "lock", true);
        field.run(min(5));
        let asks = Asks { repair: Some("OPS-7".into()), ..Asks::default() };
        field.nodes.get_mut(ONE).unwrap().intent.asks = Some(Box::new(asks));
        field.run(min(5));
        keep(&mut field, "lock", false);
        field.run(Span::from_s(30));
        assert_eq!(field.calls, []);
        if restarts {
            field = field.restarted(without_rejoin());
        }
        has_the_time_of_a_boot(field, &format!("restarts: {restarts}"));
    }
}

/// A person has a machine to themselves, and is done with it while no process runs. It serves, or is off.
fn is_let_go_of_while_no_process_runs(ways: &[&str]) {
    for way in ways {
        for (is, rotated) in [
            (InstanceState::Active, false),
            (InstanceState::Active, true),
            (InstanceState::Stopped, false),
            (InstanceState::Stopped, true),
        ] {
            let mut field = Field::new(without_rejoin()).populate(10);
            field.run(min(20));
            keep(&mut field, way, true);
            field.run(min(5));
            if is == InstanceState::Stopped {
                set(&mut field, ONE, Ready::Unknown);
                state(&mut field, is, None);
            }
            field.run(min(60));
            let what = format!("{way}, {is:?}, rotated: {rotated}");
            assert_eq!(field.calls, [], "{what}");
            if rotated {
                field.records = field.state.checkpoint();
            }
            keep(&mut field, way, false);
            field = field.restarted(without_rejoin());
            if is == InstanceState::Active {
                field.run(Span::from_s(20));
                set(&mut field, ONE, Ready::Unknown);
            }
            has_the_time_of_a_boot(field, &what);
        }
    }
}

#[test]
fn machine_remarked_while_no_process_runs_gets_time_to_boot() {
    is_let_go_of_while_no_process_runs(&["marks"]);
}

#[test]
fn pause_or_lock_ending_while_no_process_runs_gives_boot_time() {
    is_let_go_of_while_no_process_runs(&["annotation", "lock"]);
}

/// They unlock it after our start, and its cloud cannot be read in the hour after that: they may have done so a moment ago.
#[test]
fn machine_unlocked_before_its_cloud_is_read_gets_time_to_boot() {
    let mut field = Field::new(without_rejoin()).populate(10);
    field.run(min(20));
    keep(&mut field, "lock", true);
    field.run(min(30));
    field = field.restarted(without_rejoin());
    keep(&mut field, "lock", false);
    for _ in 0..120 {
        field.now = field.now + Span::from_s(30);
        field.sync_nodes();
        field.list_leases();
        field.feed(Event::Cluster(ClusterFact::Alive));
    }
    field.run(Span::from_s(20));
    set(&mut field, ONE, Ready::Unknown);
    has_the_time_of_a_boot(field, "cloud away");
}

/// A program drains a Node for a person, who pauses it as well. Both end, at once or the pause first, while we look or while no
/// process runs.
#[test]
fn pause_ending_beside_another_sign_gives_time_to_boot() {
    for stays in [false, true] {
        for how in ["nothing", "restart", "rotated"] {
            let mut field = Field::new(without_rejoin()).populate(10);
            field.run(min(20));
            let drains = |field: &mut Field, on: bool| {
                field.nodes.get_mut(ONE).unwrap().intent.leaving = on.then(|| "medik8s.io/drain".into());
            };
            keep(&mut field, "annotation", true);
            drains(&mut field, true);
            field.run(min(30));
            if how == "rotated" {
                field.records = field.state.checkpoint();
            }
            keep(&mut field, "annotation", false);
            drains(&mut field, stays);
            if how != "nothing" {
                field = field.restarted(without_rejoin());
            }
            field.run(Span::from_s(20));
            drains(&mut field, false);
            field.run(Span::from_s(20));
            set(&mut field, ONE, Ready::Unknown);
            has_the_time_of_a_boot(field, &format!("the other sign stays: {stays}, {how}"));
        }
    }
}

/// A person takes the pool's tag alone off a machine to save it (the cluster's stays), works on it, and puts the tag back: it
/// boots then, or is off. They do so while we run, or while no process runs.
#[test]
fn machine_with_restored_pool_tag_gets_time_to_boot() {
    let mut early = Vec::new();
    for is in [InstanceState::Active, InstanceState::Stopped] {
        for how in
            ["while we run", "after a restart", "while no process runs", "rotated, while no process runs"]
        {
            let mut field = Field::new(without_rejoin()).populate(10);
            field.run(min(20));
            let marks = field.instances[ONE].marks.clone();
            let cluster = marks.iter().filter(|mark| **mark == Mark::Tag("k8s-cluster=prod".into()));
            field.instances.get_mut(ONE).unwrap().marks = Arc::new(cluster.cloned().collect());
            field.run(min(10));
            set(&mut field, ONE, Ready::Unknown);
            field.instances.get_mut(ONE).unwrap().state = is;
            field.run(min(20));
            assert_eq!(field.calls, []);
            if how == "after a restart" {
                field = field.restarted(without_rejoin());
                field.run(min(10));
            }
            if how.starts_with("rotated") {
                field.records = field.state.checkpoint();
            }
            field.instances.get_mut(ONE).unwrap().marks = marks;
            if how.ends_with("while no process runs") {
                field = field.restarted(without_rejoin());
            }
            let since = field.now;
            field.run_until(min(60), |field| !field.calls.is_empty());
            let took = field.now.since(since);
            if took < min(13) {
                early.push(format!("{is:?}, {how}: {:?} after {took}", made(&field)));
            }
        }
    }
    assert!(early.is_empty(), "{early:#?}");
}

/// A person puts a machine of an Auto Scaling group into standby, reboots it from inside, and takes it out of standby while it
/// boots: at once, by way of the phase that new machines have as well, or while no process runs.
#[test]
fn machine_leaving_standby_during_boot_gets_time_to_boot() {
    for how in ["at once", "by way of Pending", "while no process runs", "rotated, while no process runs"] {
        let is = |field: &mut Field, phase: GroupPhase, word: &str| {
            let group = OwnerGroup { name: "asg".into(), phase, word: word.into(), protected: false };
            let hosting = Hosting { group: Some(group), ..Hosting::default() };
            field.instances.get_mut(ONE).unwrap().hosting = Some(Arc::new(hosting));
        };
        let mut field = Field::new(without_rejoin()).populate(10);
        is(&mut field, GroupPhase::Kept, "InService");
        field.run(min(20));
        is(&mut field, GroupPhase::Apart, "Standby");
        field.run(min(10));
        set(&mut field, ONE, Ready::Unknown);
        field.run(min(20));
        assert_eq!(field.calls, []);
        if how.starts_with("rotated") {
            field.records = field.state.checkpoint();
        }
        if how == "by way of Pending" {
            is(&mut field, GroupPhase::Coming, "Pending");
            field.run(min(1));
        }
        is(&mut field, GroupPhase::Kept, "InService");
        if how.ends_with("while no process runs") {
            field = field.restarted(without_rejoin());
        }
        has_the_time_of_a_boot(field, how);
    }
}

/// A person has a Node drained by the Node Maintenance Operator, works on the machine, and ends the maintenance while it boots:
/// it was silent by then, or reboots a moment later.
#[test]
fn machine_leaving_maintenance_during_boot_gets_time_to_boot() {
    for is_silent in [true, false] {
        for how in ["while we run", "while no process runs", "rotated, while no process runs"] {
            let mut field = Field::new(without_rejoin()).populate(10);
            field.run(min(20));
            let drains = |field: &mut Field, is: bool| {
                let node = field.nodes.get_mut(ONE).unwrap();
                (node.cordoned, node.intent.leaving) = (is, is.then(|| "medik8s.io/drain".into()));
            };
            drains(&mut field, true);
            field.run(min(10));
            if is_silent {
                set(&mut field, ONE, Ready::Unknown);
            }
            field.run(min(30));
            assert_eq!(field.calls, []);
            if how.starts_with("rotated") {
                field.records = field.state.checkpoint();
            }
            drains(&mut field, false);
            if how.ends_with("while no process runs") {
                field = field.restarted(without_rejoin());
            }
            if !is_silent {
                field.run(Span::from_s(30));
                set(&mut field, ONE, Ready::Unknown);
            }
            has_the_time_of_a_boot(field, &format!("silent: {is_silent}, {how}"));
        }
    }
}

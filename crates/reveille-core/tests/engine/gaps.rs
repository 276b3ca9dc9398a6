//! A jump of the clock or a gap without a process, and a restart after it: the next process waits for as long as this one.

use std::sync::Arc;

use reveille_core::engine::{Restored, State};
use reveille_core::event::{Command, Event, Pause, PauseScope};
use reveille_core::model::incident::FaultKind;
use reveille_core::model::instance::{Fault, InstanceAction, InstanceState};
use reveille_core::model::node::Ready;
use reveille_core::model::roster::{Keep, Mode};
use reveille_core::model::time::Span;

use super::fixture::{Field, roster};
use super::steps::{made, min, next, roster_with, set, set_ahead, upgraded, without_rejoin};

const ONE: &str = "i004";

/// Two builds failed, and one of the two is deleted: the other has to wait until the successor of the first is well, or its time
/// is over. A minute later our clock is set three hours ahead, and a minute after that we are upgraded. (Or another host, whose
/// clock is ahead, takes over, and is restarted itself.)
#[test]
fn successor_keeps_its_time_after_clock_jump_and_restart() {
    for how in ["restart", "jump", "takeover", "jump, restart", "takeover, restart"] {
        let mut field = Field::new(without_rejoin()).populate(10);
        field.run(min(20));
        for (id, text) in [(ONE, "No valid host was found."), ("i006", "Build was aborted.")] {
            let instance = field.instances.get_mut(id).unwrap();
            instance.state = InstanceState::Errored;
            instance.fault = Some(Fault { code: 500, message: text.into() });
            field.nodes.remove(id);
        }
        field.run_until(min(30), |field| !field.calls.is_empty());
        assert_eq!(field.calls.len(), 1, "{how}: {:?}", made(&field));
        field.run(min(1));
        let last = field.now;
        if how != "restart" {
            set_ahead(&mut field, min(180));
        }
        let calls = std::mem::take(&mut field.calls);
        if how.starts_with("takeover") {
            field = next(field, without_rejoin(), last);
        }
        let since = field.now;
        field.run(min(1));
        if how.ends_with("restart") {
            field = upgraded(field, without_rejoin(), how.contains("rotation"));
        }
        field.run_until(min(180), |field| !field.calls.is_empty());
        let took = field.now.since(since);
        assert!(took >= min(22), "{how}: after {calls:?} {:?} {took} later", made(&field));
        assert!(!field.calls.is_empty(), "{how}: never");
    }
}

/// A person's resize, which took 20 minutes, failed: the machine is in ERROR, and they are at work. Our clock is set an hour
/// ahead and we are restarted; or another host, whose clock is an hour ahead, takes over.
#[test]
fn returned_machine_gets_time_to_boot_by_a_fast_clock() {
    for how in ["nothing", "restart", "jump", "takeover", "jump, restart", "jump, rotation, restart"] {
        let mut field = Field::new(roster()).populate(10);
        field.run(min(20));
        set(&mut field, ONE, Ready::Unknown);
        field.run(min(1));
        let (started, request) = (field.cloud_time(), "req-erin".into());
        let by_erin = InstanceAction {
            request,
            action: "resize".into(),
            started,
            user: Some("erin".into()),
            message: None,
        };
        field.by_others.insert(0, (ONE.to_owned(), by_erin));
        let is = |field: &mut Field, state: InstanceState, task: Option<&str>| {
            let instance = field.instances.get_mut(ONE).unwrap();
            (instance.state, instance.task) = (state, task.map(Arc::from));
        };
        is(&mut field, InstanceState::Other, Some("resize_migrating"));
        field.run(min(20));
        is(&mut field, InstanceState::Errored, None);
        field.run(Span::from_s(30));
        let last = field.now;
        if how.starts_with("jump") || how == "takeover" {
            set_ahead(&mut field, min(60));
        }
        if how == "takeover" {
            field = next(field, roster(), last);
        }
        let since = field.now;
        if how.ends_with("restart") {
            field.run(Span::from_s(30));
            field = upgraded(field, roster(), how.contains("rotation"));
        }
        field.run_until(min(60), |field| !field.calls.is_empty());
        let took = field.now.since(since);
        assert!(took >= min(13), "{how}: {:?} after {took}", made(&field));
        assert!(!field.calls.is_empty(), "{how}: never");
    }
}

/// A person drains a machine of the pool and deletes its Node. Our clock is set two hours ahead (or no process runs for two
/// hours), and we are restarted a minute later.
#[test]
fn pool_changed_by_operator_rests_as_long_after_gap_and_restart() {
    for how in ["jump", "gap", "jump, restart", "gap, restart"] {
        let mut field = Field::new(without_rejoin()).populate(10);
        field.run(min(20));
        field.nodes.get_mut("i001").unwrap().cordoned = true;
        field.run(Span::from_s(10));
        field.nodes.remove("i001");
        field.run(Span::from_s(30));
        let last = field.now;
        set_ahead(&mut field, min(120));
        if how.starts_with("gap") {
            field = next(field, without_rejoin(), last);
        }
        let since = field.now;
        field.run(min(1));
        if how.ends_with("restart") {
            field = upgraded(field, without_rejoin(), how.contains("rotation"));
        }
        field.run(Span::from_s(30));
        field.nodes.remove(ONE);
        field.run_until(min(60), |field| !field.calls.is_empty());
        let took = field.now.since(since);
        assert!(took >= min(10), "{how}: {:?} after {took}", made(&field));
        assert!(!field.calls.is_empty(), "{how}: never");
    }
}

/// Another controller of this roster hands over a pool of bare metal: what it rebooted has two hours to come up. Our clock is set
/// ahead, and we are restarted.
#[test]
fn handover_keeps_its_time_after_clock_jump_and_restart() {
    for how in ["jump", "restart", "jump, restart", "jump, rotation, restart"] {
        let slow = || {
            roster_with(|pool| {
                pool.repair.rejoin = Mode::Off;
                pool.deadlines.join_within = Some(min(120));
            })
        };
        let acts = |field: &mut Field, acts: bool| {
            let scope = PauseScope::OtherController;
            let pause = Pause { scope, by: "another".into(), reason: "acts".into() };
            field.feed(Event::Command(Command::Pauses(acts.then_some(pause).into_iter().collect())));
        };
        let mut field = Field::new(slow()).populate(10);
        acts(&mut field, true);
        field.run(min(15));
        acts(&mut field, false);
        field.run(min(1));
        if how != "restart" {
            set_ahead(&mut field, min(180));
        }
        let since = field.now;
        field.run(min(1));
        if how.ends_with("restart") {
            field = upgraded(field, slow(), how.contains("rotation"));
        }
        field.run(min(1));
        field.nodes.remove(ONE);
        field.run_until(min(180), |field| !field.calls.is_empty());
        let took = field.now.since(since);
        assert!(took >= min(115), "{how}: {:?} after {took}", made(&field));
    }
}

/// A failed machine is kept for two hours, so that a person can look at it. Half an hour later our clock is set three hours
/// ahead, and we may be restarted; or another host takes over whose clock is ahead.
#[test]
fn kept_machine_keeps_its_time_after_clock_jump() {
    for how in ["nothing", "jump", "takeover", "jump, restart", "jump, rotation, restart"] {
        let keeping = || {
            roster_with(|pool| {
                pool.keep = Some(Keep { within: min(120), at_most: 1, failed: true });
                (pool.repair.rejoin, pool.repair.reboot) = (Mode::Off, Mode::Off);
            })
        };
        let mut field = Field::new(keeping()).populate(10);
        field.run(min(2));
        set(&mut field, ONE, Ready::Unknown);
        field.run(min(30));
        let held = field.held(ONE, FaultKind::NotReady);
        assert!(held.contains("kept for inspection for"), "{how}: {held}");
        let last = field.now;
        if how != "nothing" {
            set_ahead(&mut field, min(180));
        }
        if how == "takeover" {
            field = next(field, keeping(), last);
        }
        let since = field.now;
        if how.ends_with("restart") {
            field.run(min(1));
            field = upgraded(field, keeping(), how.contains("rotation"));
        }
        field.run_until(min(180), |field| !field.calls.is_empty());
        let took = field.now.since(since);
        assert!(took >= min(70), "{how}: {:?} after {took}", made(&field));
    }
}

/// A machine is rebooted, and has the time of a boot to come back. Our clock is set three hours ahead meanwhile, the ledger is
/// rotated, and we are restarted: one at once still.
#[test]
fn reboot_keeps_its_slot_after_clock_jump_and_restart() {
    for how in ["restart", "jump", "jump, restart", "jump, rotation, restart"] {
        let mut field = Field::new(without_rejoin()).populate(10);
        field.run(min(20));
        set(&mut field, ONE, Ready::Unknown);
        field.run_until(min(30), |field| !field.calls.is_empty());
        assert_eq!(field.calls.len(), 1, "{how}: {:?}", made(&field));
        field.run(min(1));
        if how.starts_with("jump") {
            set_ahead(&mut field, min(180));
            field.run(Span::from_s(30));
        }
        if how.ends_with("restart") {
            field = upgraded(field, without_rejoin(), how.contains("rotation"));
        }
        field.run(min(10));
        assert_eq!(field.state.context().book.destructive_under_way(), 1, "{how}: it still boots");
    }
}

/// A pool is rolled. Our clock, which was five hours ahead, is set right while no process runs: the pool is left alone for its
/// half hour, and no longer.
#[test]
fn rollout_wait_is_not_extended_by_clock_set_back() {
    for is_known in [true, false] {
        let mut field = Field::new(without_rejoin()).populate(10);
        field.now = field.now + min(300);
        field.cloud_behind = min(300);
        field.run(min(20));
        for node in field.nodes.values_mut() {
            node.kubelet = Some("v1.37.0".into());
        }
        field.run(min(2));
        let last = Some(field.now).filter(|_| is_known);
        field.now = field.now - min(300);
        field.cloud_behind = Span::ZERO;
        let how = Restored { last_alive: last, ..field.next_begins() };
        let mut next = Field::with(State::restore(without_rejoin(), how, field.records.clone()));
        (next.now, next.instances, next.ports, next.nodes) =
            (field.now, field.instances, field.ports, field.nodes);
        next.run(min(2));
        set(&mut next, ONE, Ready::Unknown);
        next.run(min(20));
        assert_eq!(next.calls, [], "known: {is_known}");
        next.run(min(30));
        assert!(!next.calls.is_empty(), "known: {is_known}: {}", next.held(ONE, FaultKind::NotReady));
    }
}

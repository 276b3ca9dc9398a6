//! What we rebooted or started has the time of a boot, whatever its fault is called meanwhile.

use reveille_core::effect::Call;
use reveille_core::model::incident::FaultKind;
use reveille_core::model::instance::{InstanceAction, InstanceState};
use reveille_core::model::node::Ready;
use reveille_core::model::roster::{Keep, Mode, Roster};
use reveille_core::model::time::Span;

use super::fixture::{Field, node};
use super::steps::{made, min, roster_with, say, set};

const ONE: &str = "i004";

fn bare_metal() -> Roster {
    roster_with(|pool| {
        pool.repair.rejoin = Mode::Off;
        pool.deadlines.join_within = Some(min(60));
    })
}

fn bare_metal_in_parallel() -> Roster {
    let mut roster = bare_metal();
    roster.limits.at_once = 3;
    roster
}

/// We start a machine of bare metal that was off. It boots for an hour; ten minutes after the start its old Node, which is not
/// Ready, is deleted, and not on purpose.
#[test]
fn started_machine_gets_time_to_boot_after_node_deletion() {
    let ways = [
        (0, false, ""),
        (0, true, ""),
        (10, true, ""),
        (10, true, "restart"),
        (10, true, "rotation, restart"),
    ];
    for (after, deleted, how) in ways {
        let mut field = Field::new(bare_metal()).populate(10);
        field.run(min(20));
        set(&mut field, ONE, Ready::Unknown);
        field.instances.get_mut(ONE).unwrap().state = InstanceState::Stopped;
        field.run_until(min(20), |field| !field.calls.is_empty());
        assert!(matches!(field.calls[..], [Call::Start(_)]), "{:?}", made(&field));
        field.instances.get_mut(ONE).unwrap().state = InstanceState::Active;
        let (started, request) = (field.cloud_time(), "req-0".into());
        let by_us = InstanceAction { request, action: "start".into(), started, user: None, message: None };
        field.by_others.insert(0, (ONE.to_owned(), by_us));
        field.run(min(after));
        if how.starts_with("rotation") {
            field.records = field.state.checkpoint();
        }
        if how.ends_with("restart") {
            let (by_others, calls) = (std::mem::take(&mut field.by_others), std::mem::take(&mut field.calls));
            field = field.restarted(bare_metal());
            (field.by_others, field.calls) = (by_others, calls);
        }
        if deleted {
            // Its cloud controller says so: what goes silent and without a word may have been drained.
            let node = field.nodes.remove(ONE).unwrap();
            let at = field.now;
            say(&mut field, node.name.as_str(), "DeletingNode", Some(node.uid.as_str()), at);
        }
        field.run(min(55 - after));
        assert_eq!(field.calls.len(), 1, "deleted: {deleted}, after {after}, {how}: {:?}", made(&field));
        // Its time ends: it is repaired after it.
        field.run_until(min(60), |field| field.calls.len() > 1);
        assert!(field.calls.len() > 1, "deleted: {deleted}, after {after}, {how}: never repaired");
    }
}

/// The same of one that we rebooted, where three repairs may run at the same time: its Node is deleted, made again by its
/// kubelet, which falls silent at once, and deleted again.
#[test]
fn rebooted_machine_gets_time_to_boot_while_its_node_flaps() {
    for times in [0, 1, 2, 3] {
        let mut field = Field::new(bare_metal_in_parallel()).populate(10);
        field.run(min(20));
        set(&mut field, ONE, Ready::Unknown);
        field.run_until(min(20), |field| !field.calls.is_empty());
        assert!(matches!(field.calls[..], [Call::Reboot(_)]), "{:?}", made(&field));
        let rebooted = field.now;
        for time in 0..times {
            field.run(min(3));
            let Some(mut node) = field.nodes.remove(ONE) else { break };
            if time + 1 < times {
                field.run(min(3));
                node.uid = format!("uid-again-{time}").as_str().into();
                node.ready = Ready::Unknown;
                field.nodes.insert(ONE.into(), node);
                field.run(min(3));
            }
        }
        let left = rebooted + min(55);
        field.run(left.since(field.now));
        assert_eq!(field.calls.len(), 1, "{times}: {:?}", made(&field));
    }
}

/// We start a machine of bare metal that was off, and see that it runs. Then the API server is away, and we restart. Its Node is
/// deleted meanwhile. It comes up for an hour.
#[test]
fn machine_started_before_restart_gets_time_to_boot() {
    for (restarts, rotated) in [(false, false), (true, false), (true, true)] {
        let mut field = Field::new(bare_metal()).populate(10);
        field.run(min(20));
        set(&mut field, ONE, Ready::Unknown);
        field.instances.get_mut(ONE).unwrap().state = InstanceState::Stopped;
        let mut started = false;
        for _ in 0..120 {
            field.run(Span::from_s(10));
            if let Some(Call::Start(_)) = field.calls.first() {
                started = true;
                break;
            }
        }
        assert!(started, "{:?}", made(&field));
        // It runs, and no list of nodes comes any more.
        field.instances.get_mut(ONE).unwrap().state = InstanceState::Active;
        let (started, request) = (field.cloud_time(), "req-0".into());
        let by_us = InstanceAction { request, action: "start".into(), started, user: None, message: None };
        field.by_others.insert(0, (ONE.to_owned(), by_us));
        field.now = field.now + Span::from_s(10);
        field.list_cloud();
        field.nodes.remove(ONE);
        let before = if restarts { 0 } else { field.calls.len() };
        if rotated {
            field.records = field.state.checkpoint();
        }
        if restarts {
            let by_others = std::mem::take(&mut field.by_others);
            field = field.restarted(bare_metal());
            field.by_others = by_others;
        }
        field.run(min(45));
        assert_eq!(field.calls.len(), before, "restarts: {restarts}, rotated: {rotated}: {:?}", made(&field));
    }
}

/// A failed machine was rebooted twice in vain and is kept for a look. The person who looks deletes its Node, so that its kubelet
/// registers again, which it does, and is not Ready; or they shut the machine off. We are restarted meanwhile, or not.
#[test]
fn kept_machine_is_not_rebooted_again_after_node_deletion() {
    let keeping = || {
        roster_with(|pool| {
            pool.keep = Some(Keep { within: min(120), at_most: 1, failed: true });
            pool.repair.rejoin = Mode::Off;
        })
    };
    for does in
        ["nothing", "delete", "delete, restart", "delete, rotation, restart", "delete, register", "shut off"]
    {
        let mut field = Field::new(keeping()).populate(10);
        field.run(min(20));
        set(&mut field, ONE, Ready::Unknown);
        let is_kept = |field: &Field| {
            let case = field.case(ONE, FaultKind::NotReady);
            case.is_some_and(|case| case.incident.kept_until.is_some())
        };
        field.run_until(min(120), is_kept);
        assert!(is_kept(&field), "{:?}", made(&field));
        assert_eq!(field.calls.len(), 2, "{:?}", made(&field));
        field.run(min(10));
        if does.starts_with("delete") {
            field.nodes.remove(ONE);
        }
        if does == "shut off" {
            field.instances.get_mut(ONE).unwrap().state = InstanceState::Stopped;
        }
        field.run(min(10));
        if does.contains("rotation") {
            field.records = field.state.checkpoint();
        }
        if does.ends_with("restart") {
            let calls = std::mem::take(&mut field.calls);
            field = field.restarted(keeping());
            field.calls = calls;
        }
        if does.ends_with("register") {
            field.nodes.insert(ONE.into(), node(ONE, Ready::False));
        }
        field.run(min(55));
        assert_eq!(field.calls.len(), 2, "{does}: {:?}", made(&field));
        field.run_until(min(180), |field| field.calls.len() > 2);
        assert!(field.calls.len() > 2, "{does}: kept for ever");
    }
}

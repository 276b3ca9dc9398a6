//! Machines that a person had in hand until a moment ago, where what tells of it ends or is forgotten: a pause, a lock, a
//! restart of ours, a clock that is set ahead. Each has the time of a boot, and is repaired after it.

use std::sync::Arc;

use reveille_core::event::{Command, Event, Pause, PauseScope};
use reveille_core::model::hosting::Hosting;
use reveille_core::model::instance::{InstanceAction, InstanceState};
use reveille_core::model::node::Ready;
use reveille_core::model::time::Span;

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
fn machine_that_was_given_back_before_a_restart_or_a_jump_has_the_time_of_a_boot() {
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

//! The controller's own clock is set ahead, or back: what is waited for has as long to go as before.

use std::sync::Arc;

use reveille_core::effect::Outcome;
use reveille_core::event::Event;
use reveille_core::model::hosting::Hosting;
use reveille_core::model::incident::FaultKind;
use reveille_core::model::node::{Asks, Ready};
use reveille_core::model::roster::Mode;
use reveille_core::model::time::Span;

use super::fixture::{Field, roster};
use super::steps::{made, min, next, roster_with, set, set_ahead, upgraded, without_rejoin};

const ONE: &str = "i004";

/// Half of the fleet is silent, and its cloud denies three of them for a while. Our clock is set ahead, or another host takes
/// over, whose clock is ahead.
#[test]
fn denied_away_machines_end_no_freeze_after_clock_jump() {
    for how in ["nothing", "jump", "takeover"] {
        let mut field = Field::new(roster()).populate(12);
        field.run(min(5));
        let silent = ["i003", "i004", "i005", "i006", "i007"];
        for id in silent {
            set(&mut field, id, Ready::Unknown);
        }
        field.run(min(3));
        silent[..3].iter().for_each(|id| drop(field.instances.remove(*id)));
        field.run(min(6));
        assert!(field.case("i003", FaultKind::Ghost).is_some(), "both the list and the answer by id lack it");
        assert_eq!(field.calls, []);
        let last = field.now;
        if how != "nothing" {
            set_ahead(&mut field, min(40));
        }
        if how == "takeover" {
            field = next(field, roster(), last);
        }
        field.run(min(15));
        assert_eq!(field.calls, [], "{how}: {:?}", made(&field));
    }
}

/// A person asks for a repair of a machine that is locked, reboots it from inside and unlocks it. Then our clock is set back,
/// while we run or while no process does.
#[test]
fn unlocked_machine_gets_time_to_boot_after_clock_set_back() {
    for (back, restarts) in [(0, false), (30, false), (30, true)] {
        let mut field = Field::new(without_rejoin()).populate(10);
        if back > 0 {
            field.now = field.now + min(60);
            field.cloud_behind = min(back);
        }
        field.run(min(20));
        set(&mut field, ONE, Ready::Unknown);
        field.instances.get_mut(ONE).unwrap().locked = true;
        field.run(min(5));
        let asks = Asks { repair: Some("OPS-7".into()), ..Asks::default() };
        field.nodes.get_mut(ONE).unwrap().intent.asks = Some(Box::new(asks));
        field.run(min(5));
        field.instances.get_mut(ONE).unwrap().locked = false;
        field.run(Span::from_s(30));
        assert_eq!(field.calls, []);
        field.now = field.now - min(back);
        field.cloud_behind = Span::ZERO;
        if restarts {
            let last = field.now + min(back);
            field = next(field, without_rejoin(), last);
        }
        field.run(min(12));
        assert_eq!(field.calls, [], "back by {back}, restarts: {restarts}: {:?}", made(&field));
    }
}

/// EC2 answers our first reboot with 504; the same is made once more, is seen, and the machine is well. Our clock is set ahead
/// by 70 minutes, and two minutes later the first one comes. We may be restarted meanwhile.
#[test]
fn possible_late_reboot_is_expected_after_clock_jump() {
    for how in ["nothing", "jump", "takeover", "jump, restart", "jump, rotation, restart"] {
        let mut field = Field::new(without_rejoin()).populate(10);
        for instance in field.instances.values_mut() {
            instance.hosting = Some(Arc::new(Hosting::default()));
        }
        field.run(min(20));
        set(&mut field, ONE, Ready::Unknown);
        field.refuses = Some(Outcome::Failed { retry_after: None, text: "504 Gateway Timeout".into() });
        field.run_until(min(20), |field| !field.calls.is_empty());
        field.refuses = None;
        field.run_until(min(20), |field| field.calls.len() > 1);
        field.boots(ONE);
        field.run(min(3));
        assert!(field.case(ONE, FaultKind::NotReady).is_none(), "the incident is closed");
        let last = field.now;
        if how != "nothing" {
            set_ahead(&mut field, min(70));
        }
        field.calls.clear();
        if how == "takeover" {
            field = next(field, without_rejoin(), last);
        }
        field.run(min(1));
        if how.ends_with("restart") {
            field = upgraded(field, without_rejoin(), how.contains("rotation"));
        }
        field.run(min(1));
        set(&mut field, ONE, Ready::Unknown);
        field.run(min(14));
        assert_eq!(field.calls, [], "{how}: {:?}", made(&field));
    }
}

/// Two deletions of a machine are answered with 504. Our clock is set ahead by half an hour, and a second machine of the pool is
/// due: the deletion of the first comes seven minutes late, and both are gone.
#[test]
fn late_deletion_counts_against_minimum_after_clock_jump() {
    for ahead in [0, 30] {
        let roster = roster_with(|pool| {
            pool.min = 9;
            (pool.repair.rejoin, pool.repair.reboot) = (Mode::Off, Mode::Off);
        });
        let mut field = Field::new(roster).populate(10);
        for id in ["i005", "i006", "i007", "i008", "i009"] {
            field.instances.get_mut(id).unwrap().zone = Some("z2".into());
        }
        field.run(min(20));
        set(&mut field, ONE, Ready::Unknown);
        field.run(Span::from_s(30));
        set(&mut field, "i007", Ready::Unknown);
        field.mute = Some(Vec::new());
        for _ in 0..1000 {
            field.run(Span::from_s(10));
            for intent in std::mem::take(field.mute.as_mut().unwrap()) {
                let outcome = Outcome::Unknown { text: "504".into() };
                field.feed(Event::Done { intent, outcome });
            }
            let given_up = field.case(ONE, FaultKind::NotReady).is_some_and(|case| case.incident.given_up);
            if given_up {
                break;
            }
        }
        let made_before = made(&field);
        let before = field.calls.len();
        set_ahead(&mut field, min(ahead));
        field.run_until(min(9), |field| field.calls.len() > before);
        assert_eq!(field.calls.len(), before, "ahead: {ahead}, {made_before:?}: {:?}", made(&field));
    }
}

/// A machine of the pool is missing from the list, and its cell cannot be asked. Our clock is set ahead by 70 minutes, and
/// another machine of the pool, which is silent, is due a moment later. The list may have lacked the first one since this
/// process began.
#[test]
fn open_machine_fate_holds_its_pool_after_clock_jump() {
    for (restarts, ahead) in [(false, 0), (false, 70), (true, 0), (true, 70)] {
        let mut field = Field::new(without_rejoin()).populate(10);
        field.run(min(20));
        field.instances.remove("i002");
        set(&mut field, "i002", Ready::Unknown);
        field.cell_down = Some("i002".into());
        set(&mut field, ONE, Ready::Unknown);
        if restarts {
            field = upgraded(field, without_rejoin(), false);
            field.cell_down = Some("i002".into());
        }
        field.run(min(3));
        field.now = field.now + min(ahead);
        field.cloud_behind = min(ahead);
        field.run(min(15));
        assert_eq!(field.calls, [], "restarts: {restarts}, ahead: {ahead}: {:?}", made(&field));
    }
}

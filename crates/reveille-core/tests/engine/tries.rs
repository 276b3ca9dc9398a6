//! What counts as a try of a repair, and how often: one act is one try, whatever the machine does after it and whichever process
//! looks.

use std::sync::Arc;

use reveille_core::effect::{Call, Outcome};
use reveille_core::event::Event;
use reveille_core::model::hosting::Hosting;
use reveille_core::model::incident::FaultKind;
use reveille_core::model::node::Ready;
use reveille_core::model::roster::{Mode, Roster};
use reveille_core::model::time::Span;
use reveille_core::remedies::Reboot;

use super::fixture::{CLOUD, Field, boot_id, roster};
use super::steps::{made, min, set, set_ahead, upgraded, without_rejoin};

const ONE: &str = "i004";

/// Its machine is rebooted for the first time.
fn rebooted(roster: Roster) -> Field {
    let mut field = Field::new(roster).populate(10);
    field.run(Span::from_min(5));
    field.nodes.get_mut(ONE).unwrap().ready = Ready::Unknown;
    field.run_until(Span::from_min(90), |field| !field.calls.is_empty());
    field
}

fn flaps(field: &mut Field, times: usize) {
    for _ in 0..times {
        field.run(Span::from_s(20));
        field.nodes.get_mut(ONE).unwrap().ready = Ready::False;
        field.run(Span::from_s(20));
        field.nodes.get_mut(ONE).unwrap().ready = Ready::True;
    }
    field.run(Span::from_s(20));
    field.nodes.get_mut(ONE).unwrap().ready = Ready::Unknown;
}

const fn is_power_cycle(call: &Call) -> bool {
    matches!(call, Call::Reboot(Reboot { hard: true, .. }))
}

/// It was deleted 18 minutes after a soft reboot, and never power-cycled: the relapse and the deadline counted one try each.
#[test]
fn machine_ready_briefly_after_reboot_is_power_cycled_next() {
    for moment in [false, true] {
        let mut field = rebooted(roster());
        if moment {
            field.run(Span::from_min(2));
            field.boots(ONE);
            field.run(Span::from_s(20));
            field.nodes.get_mut(ONE).unwrap().ready = Ready::Unknown;
        }
        field.run_until(Span::from_min(90), |field| field.calls.len() >= 2);
        assert!(is_power_cycle(&field.calls[1]), "moment: {moment}: {}", field.calls[1]);
    }
}

/// Softly once, hard once, however often it was well for a moment after that.
#[test]
fn machine_that_relapses_after_each_reboot_is_power_cycled_once() {
    let mut field = rebooted(roster());
    for calls in 2..=3 {
        field.run(Span::from_min(2));
        field.boots(ONE);
        field.run(Span::from_s(20));
        field.nodes.get_mut(ONE).unwrap().ready = Ready::Unknown;
        field.run_until(Span::from_min(90), |field| field.calls.len() >= calls);
    }
    let made: Vec<String> = field.calls.iter().map(Call::to_string).collect();
    assert!(is_power_cycle(&field.calls[1]), "{made:?}");
    assert!(matches!(field.calls[2], Call::DeleteInstance(_)), "{made:?}");
}

/// Four flaps after one reboot used up two steps of the escalation.
#[test]
fn machine_flapping_after_reboot_is_power_cycled_next() {
    for rejoin in [Mode::Act, Mode::Off] {
        for times in [1, 4, 30] {
            let mut roster = roster();
            roster.pools.values_mut().next().unwrap().repair.rejoin = rejoin;
            let mut field = rebooted(roster);
            field.boots(ONE);
            flaps(&mut field, times);
            field.run_until(Span::from_min(180), |field| field.calls.len() >= 2);
            let second = field.calls.get(1).map(Call::to_string);
            assert!(field.calls.get(1).is_some_and(is_power_cycle), "{times}: {second:?}");
        }
    }
}

/// On EC2 no log of actions shows a reboot. What was accepted before a restart is a try after it: nine soft reboots followed each
/// other where each was followed by a restart.
#[test]
fn accepted_reboot_that_is_not_seen_is_a_try_over_a_restart_too() {
    let mut made = Vec::new();
    for restarts in [false, true] {
        let mut roster = roster();
        roster.limits.per_hour = 100;
        let mut field = Field::new(roster.clone()).populate(10);
        field.instances.get_mut(ONE).unwrap().hosting = Some(Arc::new(Hosting::default()));
        field.run(Span::from_min(5));
        field.nodes.get_mut(ONE).unwrap().ready = Ready::Unknown;
        field.run_until(Span::from_min(90), |field| !field.calls.is_empty());
        for count in 2..=3 {
            field.run(Span::from_min(1));
            if restarts {
                let calls = std::mem::take(&mut field.calls);
                field = field.restarted(roster.clone());
                field.calls = calls;
            }
            field.run_until(Span::from_min(90), |field| field.calls.len() >= count);
        }
        made.push(field.calls.iter().map(Call::to_string).collect::<Vec<_>>());
    }
    assert_eq!(made[0], made[1]);
}

/// Ten hours without a repair, for a port without its group in a pool whose network is left to others.
#[test]
fn fault_ignored_by_roster_does_not_block_machine_repair() {
    let mut roster = roster();
    roster.pools.values_mut().next().unwrap().repair.network = Mode::Off;
    let mut field = Field::new(roster).populate(10);
    field.run(Span::from_min(5));
    field.ports.get_mut(ONE).unwrap().groups = Box::new([]);
    field.run(Span::from_min(1));
    field.nodes.get_mut(ONE).unwrap().ready = Ready::Unknown;
    field.run(Span::from_min(60));
    assert!(field.destructive_calls() > 0, "{}", field.held(ONE, FaultKind::NotReady));
}

/// A machine was rebooted, was well for half a minute and is silent again; another process begins, with a rotated ledger or a
/// plain one.
fn relapsed_and_restarted(rotated: bool) -> Field {
    let mut field = Field::new(roster()).populate(10);
    field.run(Span::from_min(5));
    field.nodes.get_mut("i004").unwrap().ready = Ready::Unknown;
    field.run_until(Span::from_min(90), |field| !field.calls.is_empty());
    field.run(Span::from_min(2));
    field.boots("i004");
    field.run(Span::from_s(30));
    field.nodes.get_mut("i004").unwrap().ready = Ready::Unknown;
    field.run(Span::from_min(1));
    if rotated {
        field.records = field.state.checkpoint();
    }
    let calls = std::mem::take(&mut field.calls);
    let mut next = field.restarted(roster());
    next.calls = calls;
    next
}

/// The step after the reboot is a power cycle.
fn power_cycled_next(field: &mut Field, rotated: bool) {
    field.run_until(Span::from_min(180), |field| field.calls.len() >= 2);
    let made: Vec<String> = field.calls.iter().map(Call::to_string).collect();
    assert!(
        matches!(field.calls[1], Call::Reboot(Reboot { hard: true, .. })),
        "rotated: {rotated}: {made:?}"
    );
}

/// One reboot that did not last is one try, whichever process looks, with a rotated ledger or a plain one.
#[test]
fn lapse_is_one_try_over_a_restart_too() {
    for rotated in [false, true] {
        let mut field = relapsed_and_restarted(rotated);
        field.run(Span::from_min(1));
        field.nodes.get_mut("i004").unwrap().ready = Ready::True;
        field.run(Span::from_s(30));
        field.nodes.get_mut("i004").unwrap().ready = Ready::Unknown;
        power_cycled_next(&mut field, rotated);
    }
}

/// The same without a second lapse.
#[test]
fn lapse_is_known_to_the_next_process() {
    for rotated in [false, true] {
        let mut field = relapsed_and_restarted(rotated);
        power_cycled_next(&mut field, rotated);
    }
}

/// Softly once, hard once: each reboot is followed by a moment of health, a relapse and a restart.
#[test]
fn relapsing_machine_is_power_cycled_once_over_restarts() {
    for restarts in [false, true] {
        let mut wanted = roster();
        wanted.limits.per_hour = 100;
        let mut field = Field::new(wanted.clone()).populate(10);
        field.run(Span::from_min(5));
        field.nodes.get_mut("i004").unwrap().ready = Ready::Unknown;
        field.run_until(Span::from_min(90), |field| !field.calls.is_empty());
        for calls in 2..=6 {
            if !field.instances.contains_key("i004") {
                break;
            }
            field.run(Span::from_min(2));
            field.boots("i004");
            field.run(Span::from_s(20));
            field.nodes.get_mut("i004").unwrap().ready = Ready::Unknown;
            field.run(Span::from_s(30));
            if restarts {
                let calls = std::mem::take(&mut field.calls);
                field = field.restarted(wanted.clone());
                field.calls = calls;
            }
            field.run_until(Span::from_min(120), |field| field.calls.len() >= calls);
        }
        let made: Vec<String> = field.calls.iter().map(Call::to_string).collect();
        let wanted = ["reboot instance i004", "power-cycle instance i004", "delete instance i004"];
        assert_eq!(made, wanted, "restarts: {restarts}");
    }
}

/// The machine fails every few hours, is rebooted and is well, and no person confirms that. The third time, the controller
/// deleted it. It must decide as for any other machine that was well for hours.
#[test]
fn unconfirmed_machine_healthy_for_hours_is_soft_rebooted() {
    for (confirm, restarts) in [(false, false), (true, false), (true, true)] {
        let mut wanted = roster();
        let pool = wanted.pools.values_mut().next().unwrap();
        (pool.repair.rejoin, pool.deadlines.confirm) = (Mode::Off, confirm);
        let mut field = Field::new(wanted.clone()).populate(10);
        field.run(Span::from_min(20));
        for _ in 0..3 {
            let before = field.calls.len();
            field.nodes.get_mut(ONE).unwrap().ready = Ready::Unknown;
            field.run(Span::from_min(1));
            if restarts {
                let calls = std::mem::take(&mut field.calls);
                field = field.restarted(wanted.clone());
                field.calls = calls;
            }
            field.run_until(Span::from_min(60), |field| field.calls.len() > before);
            field.run(Span::from_min(2));
            if field.instances.contains_key(ONE) {
                field.boots(ONE);
            }
            field.run(Span::from_min(180));
        }
        let made: Vec<String> = field.calls.iter().map(Call::to_string).collect();
        let softly = ["reboot instance i004"; 3];
        assert_eq!(made, softly, "confirm: {confirm}, restarts: {restarts}");
    }
}

/// The controller gave the machine up, and a person repaired it by hand without confirming that. Within the hour it stays
/// given up; hours later the controller repairs it, also in the next process.
#[test]
fn given_up_machine_healthy_for_hours_is_repaired_again() {
    for (confirm, rotated) in [(false, false), (true, false), (true, true)] {
        let mut wanted = roster();
        let pool = wanted.pools.values_mut().next().unwrap();
        (pool.repair.rejoin, pool.repair.replace) = (Mode::Off, Mode::Off);
        pool.deadlines.confirm = confirm;
        let mut field = Field::new(wanted.clone()).populate(10);
        field.run(Span::from_min(20));
        field.nodes.get_mut(ONE).unwrap().ready = Ready::Unknown;
        field.run(Span::from_min(240));
        let tried = field.calls.len();
        field.nodes.get_mut(ONE).unwrap().ready = Ready::True;
        field.run(Span::from_min(30));
        if confirm {
            field.nodes.get_mut(ONE).unwrap().ready = Ready::Unknown;
            field.run(Span::from_min(60));
            assert_eq!(field.calls.len(), tried, "its earlier tries still count");
            field.nodes.get_mut(ONE).unwrap().ready = Ready::True;
        }
        field.run(Span::from_min(240));
        field.nodes.get_mut(ONE).unwrap().ready = Ready::Unknown;
        field.run(Span::from_min(1));
        if rotated {
            field.records = field.state.checkpoint();
            field = field.restarted(wanted);
            field.run(Span::from_min(60));
            assert!(!field.calls.is_empty(), "{}", field.held(ONE, FaultKind::NotReady));
            continue;
        }
        field.run(Span::from_min(60));
        assert!(field.calls.len() > tried, "confirm: {confirm}: {}", field.held(ONE, FaultKind::NotReady));
    }
}

/// It was Ready for less than its dwell, after whatever was tried for it, and a person reboots it from inside: its kubelet says
/// that it shuts down, and falls silent.
fn is_rebooted_from_inside(field: &mut Field, boots: usize, is_scaled_up: bool) {
    let node = field.nodes.get_mut(ONE).unwrap();
    node.ready = Ready::True;
    node.boot_id = Some(boot_id(ONE, boots));
    field.run(Span::from_s(20));
    if is_scaled_up {
        field.add_machine("i010", true);
    }
    field.run(Span::from_s(30));
    field.nodes.get_mut(ONE).unwrap().ready = Ready::False;
    let calls = field.calls.len();
    let not_ready = Span::from_s(270);
    field.run_until(not_ready, |field| field.calls.len() > calls);
    assert_eq!(field.calls.len(), calls, "{:?}", field.calls.last().map(Call::to_string));
}

/// It was rebooted 70 seconds after a person had mended its kubelet, and at the last step deleted: nothing was left of its
/// deadline.
#[test]
fn machine_that_returns_and_fails_again_gets_its_full_time() {
    let mut field = Field::new(roster()).populate(10);
    field.run(Span::from_min(20));
    field.nodes.get_mut(ONE).unwrap().ready = Ready::Unknown;
    field.run(Span::from_min(9) + Span::from_s(40));
    is_rebooted_from_inside(&mut field, 0, false);

    // Two reboots were in vain, and the deletion is next, or waits for room in its pool.
    for waits in [false, true] {
        let mut roster = without_rejoin();
        roster.pools.values_mut().next().unwrap().min = if waits { 10 } else { 0 };
        let mut field = rebooted(roster);
        field.run_until(Span::from_min(60), |field| field.calls.len() > 1);
        field.run(Span::from_min(if waits { 60 } else { 15 }));
        assert_eq!(field.calls.len(), 2);
        is_rebooted_from_inside(&mut field, 2, waits);
    }
}

/// That ends: what is never well for long is repaired, however often it is Ready for a moment.
#[test]
fn machine_that_is_ready_only_for_moments_is_repaired() {
    let mut field = Field::new(roster()).populate(10);
    field.run(Span::from_min(5));
    for _ in 0..15 {
        field.nodes.get_mut(ONE).unwrap().ready = Ready::Unknown;
        field.run_until(Span::from_min(3), |field| !field.calls.is_empty());
        if !field.calls.is_empty() {
            return;
        }
        field.nodes.get_mut(ONE).unwrap().ready = Ready::True;
        field.run(Span::from_s(20));
    }
    panic!("never repaired: {}", field.held(ONE, FaultKind::NotReady));
}

/// Its Node is deleted, and made again by its kubelet, which falls silent at once.
fn node_comes_and_goes(field: &mut Field) {
    let mut node = field.nodes.remove(ONE).unwrap();
    field.run(Span::from_s(20));
    (node.uid, node.ready) = ("uid-again".into(), Ready::False);
    field.nodes.insert(ONE.into(), node);
    field.run(Span::from_s(20));
}

/// A reboot is on its way to a cloud that cannot be reached, and the fault becomes another one and the same again meanwhile. Then
/// the answer says that it was never sent: that was no try of it, and no reason for a harsher step.
#[test]
fn unsent_reboot_is_no_try_of_the_following_incident() {
    let not_sent = || Outcome::NotSent { text: "connection refused".into(), retry_after: None };
    let failed = || Outcome::Failed { text: "503".into(), retry_after: None };
    let denied = || Outcome::Denied { text: "403".into() };
    for (first, comes_and_goes, outcome) in [
        (true, false, not_sent()),
        (true, true, not_sent()),
        (false, false, not_sent()),
        (false, true, not_sent()),
        (false, true, failed()),
        (false, true, denied()),
        (false, true, Outcome::Unknown { text: "no answer came".into() }),
    ] {
        let mut field = Field::new(without_rejoin()).populate(10);
        field.run(min(20));
        set(&mut field, ONE, Ready::Unknown);
        if !first {
            field.run_until(min(30), |field| !field.calls.is_empty());
        }
        field.mute = Some(Vec::new());
        field.run_until(min(60), |field| field.mute.iter().flatten().next().is_some());
        let step = made(&field).pop();
        if comes_and_goes {
            node_comes_and_goes(&mut field);
        }
        for intent in field.mute.take().unwrap_or_default() {
            field.feed(Event::Done { intent, outcome: outcome.clone() });
        }
        let before = field.calls.len();
        field.run_until(min(120), |field| field.calls.len() > before);
        let what = format!("first: {first}, comes and goes: {comes_and_goes}, {outcome}");
        assert_eq!(made(&field).pop(), step, "{what}: {:?}", made(&field));
        assert!(field.calls.len() > before, "{what}: never");
    }
}

/// EC2 shows nothing of a reboot in place, so that it has its whole patience, sixteen minutes. We are restarted each fourteen:
/// it began from zero each time, and the next step was never tried.
#[test]
fn invisible_reboot_leads_to_next_step_despite_restarts() {
    for (every, rotated) in [(600, false), (30, false), (14, false), (14, true)] {
        let mut settling = without_rejoin();
        settling.settles.insert(CLOUD.into(), min(5));
        let mut field = Field::new(settling.clone()).populate(10);
        field.instances.get_mut("i004").unwrap().hosting = Some(Arc::new(Hosting::default()));
        field.run(min(20));
        set(&mut field, "i004", Ready::Unknown);
        field.run_until(min(60), |field| !field.calls.is_empty());
        let mut calls = made(&field);
        field.run(min(1));
        for _ in 0..600 / every {
            if rotated {
                field.records = field.state.checkpoint();
            }
            field = field.restarted(settling.clone());
            field.run(min(every));
            calls.extend(made(&field));
        }
        let under_way = field.state.context().book.operations.len();
        assert!(calls.len() > 1, "each {every} min, rotated: {rotated}: {calls:?}, under way: {under_way}");
    }
}

/// Our clock is set ahead by an hour a minute after a reboot that shows nothing, the ledger is rotated and we are restarted.
/// The hour is no part of its patience.
#[test]
fn invisible_reboot_has_full_patience_after_jump_and_restart() {
    for how in ["nothing", "jump", "restart", "jump, restart", "jump, rotation, restart"] {
        let mut settling = without_rejoin();
        settling.settles.insert(CLOUD.into(), min(5));
        let mut field = Field::new(settling.clone()).populate(10);
        field.instances.get_mut(ONE).unwrap().hosting = Some(Arc::new(Hosting::default()));
        field.run(min(20));
        set(&mut field, ONE, Ready::Unknown);
        field.run_until(min(60), |field| !field.calls.is_empty());
        field.run(min(1));
        if how.contains("jump") {
            set_ahead(&mut field, min(60));
            field.run(Span::from_s(20));
        }
        if how.contains("restart") {
            field = upgraded(field, settling, how.contains("rotation"));
        }
        let before = field.calls.len();
        field.run(min(13));
        assert_eq!(field.calls.len(), before, "{how}: {:?}", made(&field));
        assert_eq!(field.state.context().book.operations.len(), 1, "{how}: it is waited for");
    }
}

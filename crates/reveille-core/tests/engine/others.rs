//! Pools in which others are at work are left alone for a while, whatever else happens meanwhile.

use reveille_core::engine::{Restored, State};
use reveille_core::event::{Command, Event, Pause, PauseScope};
use reveille_core::model::incident::FaultKind;
use reveille_core::model::instance::{Fault, InstanceAction, InstanceState};
use reveille_core::model::node::Ready;
use reveille_core::model::roster::{Mode, Roster};
use reveille_core::model::time::{Span, Time};

use super::fixture::{Field, roster};
use super::steps::{made, min, next, roster_with, set, without_rejoin};

const ONE: &str = "i004";

/// Machines of the pool may take this long to join, as bare metal does.
fn slow(join: Span) -> Roster {
    roster_with(|pool| {
        pool.repair.rejoin = Mode::Off;
        pool.deadlines.join_within = Some(join);
    })
}

/// Another controller acts for the roster, or lets go.
fn another_acts(field: &mut Field, acts: bool) {
    let scope = PauseScope::OtherController;
    let pause = Pause { scope, by: "another".into(), reason: "acts".into() };
    field.feed(Event::Command(Command::Pauses(acts.then_some(pause).into_iter().collect())));
}

/// A person drains another machine of the pool and deletes its Node.
fn others_take_one(field: &mut Field) {
    field.nodes.get_mut("i001").unwrap().cordoned = true;
    field.run(Span::from_s(10));
    field.nodes.remove("i001");
}

/// Its build failed: it is deleted as soon as that is allowed.
fn is_in_error(field: &mut Field) {
    let instance = field.instances.get_mut(ONE).unwrap();
    instance.state = InstanceState::Errored;
    instance.fault = Some(Fault { code: 500, message: "No valid host was found.".into() });
}

/// The next process, which begins now; the one before was alive until then.
fn next_after(field: Field, last_alive: Time) -> Field {
    let how = Restored { last_alive: Some(last_alive), ..field.next_begins() };
    let mut next = Field::with(State::restore(roster(), how, field.records.clone()));
    (next.now, next.records, next.made) = (field.now, field.records, field.made);
    (next.instances, next.ports, next.nodes) = (field.instances, field.ports, field.nodes);
    next
}

/// Bare metal takes two hours to come up. Another controller hands over; six minutes before its time is over an autoscaler (or a
/// person) drains another machine of the pool.
#[test]
fn handover_keeps_its_time_although_others_delete_meanwhile() {
    for drains in [false, true] {
        let mut field = Field::new(slow(min(120))).populate(10);
        another_acts(&mut field, true);
        field.run(min(5));
        set(&mut field, ONE, Ready::Unknown);
        field.run(min(30));
        another_acts(&mut field, false);
        // The handover holds for 120 + 1 + 10 minutes.
        field.run(min(125));
        assert_eq!(field.calls, []);
        if drains {
            others_take_one(&mut field);
        }
        field.run(min(5));
        assert_eq!(field.calls, [], "drains: {drains}");
    }
}

/// Others delete a machine when a handover has held for more than an hour and is nearly over: they are left alone for ten
/// minutes as after any other deletion.
#[test]
fn deletion_by_others_an_hour_after_a_handover_holds_the_pool() {
    for handover in [false, true] {
        let mut field = Field::new(slow(min(60))).populate(10);
        if handover {
            another_acts(&mut field, true);
            field.run(min(20));
            another_acts(&mut field, false);
        } else {
            field.run(min(20));
        }
        field.run(min(68));
        assert_eq!(field.calls, []);
        others_take_one(&mut field);
        field.run(Span::from_s(10));
        is_in_error(&mut field);
        field.nodes.remove(ONE);
        let since = field.now;
        field.run_until(min(60), |field| !field.calls.is_empty());
        let took = field.now.since(since);
        assert!(took >= min(9), "handover: {handover}: {:?} after {took}", made(&field));
    }
}

/// Another client takes a machine away, and we sleep two hours a moment later.
#[test]
fn pool_of_others_is_left_alone_for_as_long_again_after_a_sleep() {
    for hours in [0, 2] {
        let mut field = Field::new(without_rejoin()).populate(10);
        field.run(min(20));
        set(&mut field, ONE, Ready::Unknown);
        field.run(min(1));
        others_take_one(&mut field);
        field.run(min(1));
        // Shorter than an hour, and longer.
        field.now = field.now + if hours == 0 { min(30) } else { min(120) };
        let woke = field.now;
        field.run_until(min(60), |field| !field.calls.is_empty());
        let took = field.now.since(woke);
        assert!(took >= min(10), "{hours} h: {:?} after {took}", made(&field));
    }
}

/// The same over the time between two processes.
#[test]
fn pool_changed_by_others_rests_as_long_after_process_gap() {
    for gap in [30, 120] {
        let mut field = Field::new(roster()).populate(10);
        field.run(min(20));
        others_take_one(&mut field);
        field.run(min(1));
        let last = field.now;
        field.now = field.now + min(gap);
        let woke = field.now;
        let mut field = next_after(field, last);
        field.run(min(1));
        is_in_error(&mut field);
        set(&mut field, ONE, Ready::Unknown);
        field.run_until(min(60), |field| !field.calls.is_empty());
        let took = field.now.since(woke);
        assert!(took >= min(10), "{gap} min: {:?} after {took}", made(&field));
    }
}

/// Others scale the pool all day, and we sleep for an hour each two hours: a dead machine of it is repaired all the same.
#[test]
fn dead_machine_is_repaired_in_scaled_pool_despite_our_sleeps() {
    let mut field = Field::new(without_rejoin()).populate(10);
    field.run(min(20));
    set(&mut field, ONE, Ready::Unknown);
    for round in 0..60 {
        let came = format!("i{:03}", 10 + round);
        field.add_machine(&came, true);
        field.run(min(1));
        field.nodes.get_mut(&came).unwrap().cordoned = true;
        field.run(Span::from_s(30));
        field.nodes.remove(&came);
        field.delete_machine(&came);
        if round % 16 == 15 {
            field.now = field.now + min(60);
        }
        field.run_until(min(6), |field| !field.calls.is_empty());
        if !field.calls.is_empty() {
            break;
        }
    }
    assert!(!field.calls.is_empty(), "never repaired: {}", field.held(ONE, FaultKind::NotReady));
}

/// Others delete a machine of the pool each five minutes. That blocks the repair of a dead one for an hour at most, also where
/// the ledger is rotated in that hour and the controller restarted.
#[test]
fn foreign_deletions_hold_pool_at_most_an_hour_over_rotation() {
    for how in ["nothing", "restart", "rotated"] {
        let mut field = Field::new(without_rejoin()).populate(30);
        field.run(min(20));
        set(&mut field, ONE, Ready::Unknown);
        for number in 0..18 {
            let id = format!("i{:03}", number + 10);
            field.delete_machine(&id);
            field.nodes.remove(&id);
            field.add_machine(&format!("j{number:03}"), true);
            field.run(min(5));
            if number == 10 && how != "nothing" {
                if how == "rotated" {
                    field.records = field.state.checkpoint();
                }
                assert_eq!(field.calls, [], "{how}");
                field = field.restarted(without_rejoin());
            }
        }
        assert!(!field.calls.is_empty(), "{how}: {}", field.held(ONE, FaultKind::NotReady));
    }
}

/// As a pod in `CrashLoopBackOff`: it runs for so long, and is away for five minutes each time. What was called, for 12 hours.
fn in_a_crash_loop(mut field: Field, lives: Span, rotated: bool) -> (Vec<String>, String) {
    let (end, mut calls) = (field.now + min(12 * 60), Vec::new());
    while field.now < end && calls.is_empty() {
        let last_alive = field.now;
        if rotated {
            field.records = field.state.checkpoint();
        }
        field.now = field.now + min(5);
        field = next(field, without_rejoin(), last_alive);
        field.run(lives);
        calls = made(&field);
    }
    (calls, field.held("i004", FaultKind::NotReady))
}

/// Another controller let go of the roster, and a machine is dead. We are restarted each twenty minutes: the pool is left to that
/// controller's last acts for ever.
#[test]
fn dead_machine_is_repaired_in_crash_loop_after_handover() {
    for (handover, rotated) in [(false, false), (true, false), (true, true)] {
        let mut field = Field::new(without_rejoin()).populate(10);
        field.run(min(20));
        if handover {
            let others =
                Pause { scope: PauseScope::OtherController, by: "other".into(), reason: "acts".into() };
            field.feed(Event::Command(Command::Pauses([others].into())));
            field.run(min(5));
            field.feed(Event::Command(Command::Pauses([].into())));
        }
        set(&mut field, "i004", Ready::Unknown);
        field.run(min(2));
        let (calls, held) = in_a_crash_loop(field, min(20), rotated);
        assert!(!calls.is_empty(), "handover: {handover}, rotated: {rotated}: {held}");
    }
}

/// The same after a rollout that ended long ago.
#[test]
fn dead_machine_is_repaired_in_crash_loop_after_rollout() {
    for (rolled, rotated) in [(false, false), (true, false), (true, true)] {
        let mut field = Field::new(without_rejoin()).populate(10);
        field.run(min(20));
        if rolled {
            field.nodes.values_mut().for_each(|it| it.kubelet = Some("v1.37.0".into()));
            field.run(min(2));
        }
        set(&mut field, "i004", Ready::Unknown);
        field.run(min(2));
        let (calls, held) = in_a_crash_loop(field, min(20), rotated);
        assert!(!calls.is_empty(), "rolled: {rolled}, rotated: {rotated}: {held}");
    }
}

/// One node of the pool has had another version for years. A dead machine was never repaired where we are restarted each 25
/// minutes: each process took that for a rollout, and waited for half an hour. A version that is too long for the ledger is none.
#[test]
fn dead_machine_in_two_version_pool_is_repaired_over_restarts() {
    let [old, garbled] = ["v1.35.9".to_owned(), "v1.35.9 節点 {{.Name}} %s ".repeat(50)].map(Some);
    let one = None;
    for (two, every, rotated) in
        [(&one, 25, false), (&old, 60, false), (&old, 25, false), (&old, 25, true), (&garbled, 25, false)]
    {
        let mut field = Field::new(without_rejoin()).populate(10);
        if let Some(version) = two {
            field.nodes.get_mut("i009").unwrap().kubelet = Some(version.as_str().into());
        }
        field.run(min(60));
        set(&mut field, "i004", Ready::Unknown);
        field.run(min(1));
        let mut calls = made(&field);
        for _ in 0..600 / every {
            if rotated {
                field.records = field.state.checkpoint();
            }
            field = field.restarted(without_rejoin());
            field.run(min(every));
            calls.extend(made(&field));
        }
        let held = || field.held("i004", FaultKind::NotReady);
        assert!(!calls.is_empty(), "two: {two:?}, each {every} min, rotated: {rotated}: {}", held());
    }
}

/// A list of what changed left a machine out that another client had begun to delete, because a part of the cloud was away, and
/// no later one names it. Its log of actions, which is read before a reboot, tells; then the machine itself is asked for (seed
/// 5701372). One whose deletion the cloud gave up runs, and is repaired.
#[test]
fn machine_with_logged_deletion_is_read_before_its_reboot() {
    for goes in [true, false] {
        let mut field = Field::new(without_rejoin()).populate(10);
        field.run(min(20));
        field.unnamed.push(ONE.to_owned());
        let started = field.cloud_time();
        let (request, user) = ("req-erin".into(), Some("erin".into()));
        let deletes = InstanceAction { request, action: "delete".into(), started, user, message: None };
        field.by_others.push((ONE.to_owned(), deletes));
        if goes {
            let instance = field.instances.get_mut(ONE).unwrap();
            (instance.state, instance.task) = (InstanceState::Deleting, Some("deleting".into()));
        }
        set(&mut field, ONE, Ready::Unknown);
        field.run(min(30));
        assert_eq!(field.calls.is_empty(), goes, "deletion goes on: {goes}, {:?}", made(&field));
    }
}

/// As `machine_with_logged_deletion_is_read_before_its_reboot`, and the read of the machine fails, as everything of
/// the part of its cloud that is away: three reads that failed were evidence enough.
#[test]
fn unreadable_machine_with_logged_deletion_is_not_rebooted() {
    let mut field = Field::new(without_rejoin()).populate(10);
    field.run(min(20));
    field.unnamed.push("i004".to_owned());
    let started = field.cloud_time();
    let (request, user) = ("req-erin".into(), Some("erin".into()));
    let deletes = InstanceAction { request, action: "delete".into(), started, user, message: None };
    field.by_others.push(("i004".to_owned(), deletes));
    let instance = field.instances.get_mut("i004").unwrap();
    (instance.state, instance.task) = (InstanceState::Deleting, Some("deleting".into()));
    field.cell_down = Some("i004".to_owned());
    set(&mut field, "i004", Ready::Unknown);
    field.run(min(60));
    assert_eq!(field.calls, [], "{:?}", made(&field));
}

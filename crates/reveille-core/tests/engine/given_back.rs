//! What people do to a machine beside our own tries, and what fails while they do it.

use std::sync::Arc;

use reveille_core::effect::{Call, Outcome};
use reveille_core::event::Event;
use reveille_core::model::hosting::Hosting;
use reveille_core::model::incident::FaultKind;
use reveille_core::model::instance::{InstanceAction, InstanceState};
use reveille_core::model::node::Ready;
use reveille_core::model::time::Span;
use reveille_core::remedies::StartInstance;

use super::fixture::{Field, roster};
use super::steps::{made, min, set, without_rejoin};

/// Nova's log tells that a person did this just now.
fn person_does(field: &mut Field, action: &str) {
    let request = format!("req-erin-{}", field.by_others.len());
    is_logged(field, action, "erin", &request);
}

fn is_logged(field: &mut Field, action: &str, user: &str, request: &str) {
    let (started, request, user) = (field.cloud_time(), request.into(), Some(user.into()));
    let logged = InstanceAction { request, action: action.into(), started, user, message: None };
    field.by_others.insert(0, ("i004".to_owned(), logged));
}

/// The calls that are out are answered so.
fn answer(field: &mut Field, outcome: &Outcome) {
    for intent in field.mute.take().unwrap_or_default() {
        field.feed(Event::Done { intent, outcome: outcome.clone() });
    }
}

fn state(field: &mut Field, state: InstanceState, task: Option<&str>) {
    let instance = field.instances.get_mut("i004").unwrap();
    (instance.state, instance.task) = (state, task.map(Arc::from));
}

/// Nothing more is done for this long, and something is after the time of a boot.
fn is_left_alone_for(field: &mut Field, time: Span, case: &str) {
    let tried = field.calls.len();
    field.run(time);
    assert_eq!(field.calls.len(), tried, "{case}: {:?}", made(field));
    field.run_until(min(30), |field| field.calls.len() > tried);
    assert!(field.calls.len() > tried, "{case}: {}", field.held("i004", FaultKind::NotReady));
}

/// Ten machines, one of which has not been Ready for this long.
fn not_ready_for(time: Span) -> Field {
    let mut field = Field::new(roster()).populate(10);
    field.run(min(20));
    set(&mut field, "i004", Ready::Unknown);
    field.run(time);
    field
}

/// It is shut down for what the person wants, and the driver fails within seconds: the lists show it running, and then in ERROR.
/// It was deleted 60 s later.
#[test]
fn failed_rescue_leaves_serving_machine_alone_for_boot_time() {
    for action in ["resize", "rescue", "migrate", "live-migration", "suspend", "shelve"] {
        let mut field = Field::new(roster()).populate(10);
        field.run(min(20));
        person_does(&mut field, action);
        set(&mut field, "i004", Ready::False);
        field.run(Span::from_s(10));
        state(&mut field, InstanceState::Errored, None);
        is_left_alone_for(&mut field, min(13), action);
    }
}

/// Volumes are attached to it and detached from it all day, by the storage driver of the cluster: no person is at work on it.
#[test]
fn errored_machine_with_detached_volumes_is_replaced_at_once() {
    for action in ["create", "delete", "attach_volume", "detach_volume"] {
        let mut field = Field::new(roster()).populate(10);
        field.run(min(20));
        person_does(&mut field, action);
        set(&mut field, "i004", Ready::False);
        field.run(Span::from_s(10));
        state(&mut field, InstanceState::Errored, None);
        field.run_until(min(5), |field| !field.calls.is_empty());
        assert!(matches!(field.calls[..], [Call::DeleteInstance(_)]), "{action}: {:?}", made(&field));
    }
}

/// A crash dump, and migrations, that no list shows.
#[test]
fn crash_dumped_or_migrated_machine_gets_time_to_boot() {
    for action in ["trigger_crash_dump", "migrate", "live-migration"] {
        let mut field = not_ready_for(min(9));
        person_does(&mut field, action);
        is_left_alone_for(&mut field, min(14), action);

        let mut field = Field::new(without_rejoin()).populate(10);
        field.run(min(20));
        set(&mut field, "i004", Ready::Unknown);
        field.run_until(min(20), |field| !field.calls.is_empty());
        field.run(min(15));
        person_does(&mut field, action);
        is_left_alone_for(&mut field, min(14), &format!("{action} after our reboot"));
    }
}

/// A person's hard reboot or start hangs, as its volumes cannot be attached, and ends in ERROR; or an administrator ends it
/// (`nova reset-state`), to evacuate the machine next.
#[test]
fn failed_operator_reboot_leaves_machine_alone_for_boot_time() {
    let (rebooting, stopped) = (InstanceState::Rebooting, InstanceState::Stopped);
    for (action, before, task) in [("reboot", rebooting, "rebooting_hard"), ("start", stopped, "powering-on")]
    {
        let mut field = not_ready_for(min(4));
        person_does(&mut field, action);
        state(&mut field, before, Some(task));
        field.run(min(20));
        assert_eq!(field.calls, [], "{action}");
        state(&mut field, InstanceState::Errored, None);
        is_left_alone_for(&mut field, min(13), action);
    }
}

/// A reboot of ours ended in ERROR: no person is at work on it, and it is replaced as soon as its own patience is over.
#[test]
fn machine_whose_reboot_by_us_ended_in_error_is_replaced() {
    let mut field = not_ready_for(Span::ZERO);
    field.run_until(min(20), |field| !field.calls.is_empty());
    state(&mut field, InstanceState::Rebooting, Some("rebooting"));
    field.run(min(3));
    state(&mut field, InstanceState::Errored, None);
    field.run_until(min(20), |field| field.calls.len() > 1);
    assert!(matches!(field.calls[1], Call::DeleteInstance(_)), "{:?}", made(&field));
}

/// No list showed our reboot, or our power cycle. Two minutes later a person takes the machine in hand for 13 minutes, and it
/// boots when they give it back: also where the log calls what they did by a word that we do not know.
#[test]
fn machine_moved_by_operator_after_our_reboot_gets_time_to_boot() {
    for tries in [1, 2] {
        for action in ["resize", "evacuate", "rebuild", "migrate", "a_later_word"] {
            let mut field = Field::new(without_rejoin()).populate(10);
            field.run(min(20));
            set(&mut field, "i004", Ready::Unknown);
            field.run_until(min(40), |field| field.calls.len() == tries);
            field.run(min(2));
            person_does(&mut field, action);
            state(&mut field, InstanceState::Other, Some("in_its_hands"));
            field.run(min(13));
            assert_eq!(field.calls.len(), tries, "{action}: before: {:?}", made(&field));
            state(&mut field, InstanceState::Active, None);
            is_left_alone_for(&mut field, min(14), action);
        }
    }
}

/// Our stop and start was over between two lists. Twelve minutes later a person stops and starts the machine, which a list shows
/// as `pending`: it has another `LaunchTime` than after ours.
#[test]
fn ec2_start_by_operator_after_power_cycle_gets_time_to_boot() {
    let mut field = Field::new(without_rejoin()).populate(10);
    for instance in field.instances.values_mut() {
        instance.hosting = Some(Arc::new(Hosting::default()));
    }
    field.run(min(20));
    set(&mut field, "i004", Ready::Unknown);
    field.run_until(min(60), |field| field.calls.len() > 1);
    field.run(min(12));
    assert_eq!(field.calls.len(), 2, "{:?}", made(&field));
    let owned = roster().pools.values().next().unwrap().owned.clone();
    let by_erin = Call::Start(StartInstance { cloud: "os".into(), instance: "i004".into(), owned });
    field.made.push((by_erin, field.cloud_time()));
    state(&mut field, InstanceState::Rebooting, None);
    field.run(Span::from_s(30));
    state(&mut field, InstanceState::Active, None);
    is_left_alone_for(&mut field, min(14), "started");
}

/// No answer came to a reboot of ours, which may never have been made, and in that minute a reboot is logged that never ends. Of
/// a person's we keep away as long as it lasts, also where no log has told yet who we are. The next step follows on our own.
#[test]
fn unanswered_reboot_is_ours_only_when_logged_by_our_user() {
    for (user, answered_before) in [("erin", false), ("erin", true), ("reveille", true)] {
        let mut field = not_ready_for(min(4));
        field.mute = Some(Vec::new());
        field.run_until(min(20), |field| !field.calls.is_empty());
        if answered_before {
            is_logged(&mut field, "reboot", "reveille", "req-ours");
            answer(&mut field, &Outcome::Accepted { request: Some("req-ours".into()) });
            field.mute = Some(Vec::new());
            field.run_until(min(40), |field| field.calls.len() > 1);
        }
        is_logged(&mut field, "reboot", user, "req-lost");
        state(&mut field, InstanceState::Rebooting, Some("reboot_started_hard"));
        field.run(Span::from_s(30));
        answer(&mut field, &Outcome::Unknown { text: "no answer came".into() });
        let calls = field.calls.len();
        assert_eq!(calls, 1 + usize::from(answered_before), "{user}: {:?}", made(&field));
        field.run_until(min(180), |field| field.calls.len() > calls);
        assert_eq!(field.calls.len() > calls, user == "reveille", "{user}: {:?}", made(&field));
    }
}

/// Twelve minutes after our power cycle a person reboots the machine. The log cannot be read, and the lists show it running, then
/// in its reboot for as long, and running again.
#[test]
fn machine_rebooted_with_unreadable_log_gets_time_to_boot() {
    for lasts in [2, 40] {
        let mut field = Field::new(without_rejoin()).populate(10);
        field.run(min(20));
        set(&mut field, "i004", Ready::Unknown);
        field.run_until(min(40), |field| field.calls.len() == 2);
        field.no_action_log = true;
        field.run(min(12));
        person_does(&mut field, "reboot");
        state(&mut field, InstanceState::Rebooting, Some("reboot_started_hard"));
        field.run(min(lasts));
        assert_eq!(field.calls.len(), 2, "{lasts}: {:?}", made(&field));
        state(&mut field, InstanceState::Active, None);
        is_left_alone_for(&mut field, min(14), "rebooted");
    }
}

/// A dead machine is snapshotted by a backup each quarter of an hour.
#[test]
fn dead_machine_with_frequent_snapshots_is_repaired() {
    for snapshots in [false, true] {
        let mut field = Field::new(without_rejoin()).populate(10);
        field.run(min(20));
        set(&mut field, "i004", Ready::Unknown);
        for _ in 0..24 {
            if snapshots {
                state(&mut field, InstanceState::Active, Some("image_snapshot"));
            }
            field.run(min(1));
            state(&mut field, InstanceState::Active, None);
            field.run_until(min(14), |field| !field.calls.is_empty());
        }
        assert!(
            !field.calls.is_empty(),
            "snapshots: {snapshots}: {}",
            field.held("i004", FaultKind::NotReady)
        );
    }
}

/// A driver without live snapshots holds the guest still while it copies the disk: the guest is back some seconds later.
#[test]
fn machine_paused_by_disk_copy_is_not_rebooted_too_early() {
    let mut field = Field::new(without_rejoin()).populate(10);
    field.run(min(20));
    state(&mut field, InstanceState::Active, Some("image_snapshot"));
    field.run(Span::from_s(30));
    set(&mut field, "i004", Ready::Unknown);
    field.run(min(20));
    state(&mut field, InstanceState::Active, Some("image_uploading"));
    field.run(Span::from_s(30));
    state(&mut field, InstanceState::Active, None);
    field.run(Span::from_s(40));
    set(&mut field, "i004", Ready::True);
    field.run(min(30));
    assert_eq!(field.calls, []);
}

/// A person migrates a silent machine to another host, which takes 40 minutes. We restart meanwhile; the cell of the machine is
/// down by then, and it is listed again only once the migration is over.
#[test]
fn machine_listed_late_after_restart_gets_time_to_boot() {
    for (is_listed_late, restarts) in [(false, 1), (true, 1), (true, 2)] {
        let mut field = Field::new(without_rejoin()).populate(10);
        field.run(min(20));
        set(&mut field, "i004", Ready::Unknown);
        field.run(min(1));
        person_does(&mut field, "migrate");
        let instance = field.instances.get_mut("i004").unwrap();
        (instance.state, instance.task) = (InstanceState::Other, Some("resize_migrating".into()));
        field.run(min(20));
        assert_eq!(field.calls, []);
        let mut away = field.instances["i004"].clone();
        if is_listed_late {
            field.instances.remove("i004");
        }
        for _ in 0..restarts {
            let by_others = std::mem::take(&mut field.by_others);
            field = field.restarted(without_rejoin());
            field.by_others = by_others;
            field.cell_down = is_listed_late.then(|| "i004".into());
            field.run(min(20));
        }
        assert_eq!(field.calls, []);
        (away.state, away.task) = (InstanceState::Active, None);
        field.instances.insert("i004".into(), away);
        field.cell_down = None;
        field.run(min(13));
        assert_eq!(field.calls, [], "listed late: {is_listed_late}: {:?}", made(&field));
    }
}

/// A machine is dead, and we are restarted again and again: by an update, or for want of memory.
#[test]
fn dead_machine_is_repaired_despite_frequent_restarts() {
    for rotated in [false, true] {
        for every in [60, 30, 14, 10] {
            let mut field = Field::new(without_rejoin()).populate(10);
            field.run(min(20));
            set(&mut field, "i004", Ready::Unknown);
            field.run(min(1));
            let mut calls = 0;
            for _ in 0..600 / every {
                if rotated {
                    field.records = field.state.checkpoint();
                }
                field = field.restarted(without_rejoin());
                field.run(min(every));
                calls += field.calls.len();
            }
            let held = || field.held("i004", FaultKind::NotReady);
            assert!(calls > 0, "restarted every {every} min, rotated: {rotated}: {}", held());
        }
    }
}

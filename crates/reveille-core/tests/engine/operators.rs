//! Machines that another client is working on, and that boot when that client has finished.

use std::sync::Arc;

use reveille_core::effect::{Call, Outcome};
use reveille_core::engine::State;
use reveille_core::event::{CloudFact, CloudSnapshot, Command, Event, Pause, PauseScope, Scope};
use reveille_core::model::hosting::Hosting;
use reveille_core::model::incident::FaultKind;
use reveille_core::model::instance::{InstanceAction, InstanceState};
use reveille_core::model::node::{Asks, Ready};
use reveille_core::model::roster::Mode;
use reveille_core::model::time::Span;

use super::fixture::{Field, boot_id, instance, roster};
use super::steps::{made, min, without_rejoin};

/// The steps before the deletion were in vain. An operator repairs the disk in a rescue, and the machine boots: it was deleted
/// half a minute after the unrescue, because its time had been over for long.
#[test]
fn unrescued_machine_gets_time_to_boot_before_deletion() {
    let mut roster = roster();
    let pool = roster.pools.values_mut().next().unwrap();
    (pool.repair.rejoin, pool.repair.reboot) = (Mode::Off, Mode::Off);
    let patience = pool.deadlines.boot_patience();
    let mut field = Field::new(roster).populate(10);
    field.run(Span::from_min(5));
    field.nodes.get_mut("i004").unwrap().ready = Ready::Unknown;
    field.run(Span::from_min(2));
    field.instances.get_mut("i004").unwrap().state = InstanceState::Other;
    field.run(Span::from_min(30));
    assert_eq!(field.calls, []);
    field.instances.get_mut("i004").unwrap().state = InstanceState::Active;
    field.run(Span::from_ms(patience.ms - 60_000));
    assert_eq!(field.calls, [], "{}", field.held("i004", FaultKind::NotReady));
    field.run(Span::from_min(10));
    assert!(matches!(field.calls[..], [Call::DeleteInstance(_)]), "it did not come back: {:?}", field.calls);
}

/// Nova reboots in ten seconds, which no list of every half minute shows: its log of actions does, by its own clock.
#[test]
fn operator_reboot_between_two_lists_gets_time_to_boot() {
    let mut field = Field::new(roster()).populate(10);
    field.run(Span::from_min(20));
    let started = field.cloud_time();
    field.nodes.get_mut("i004").unwrap().ready = Ready::Unknown;
    let (request, action) = ("req-erin".into(), "reboot".into());
    let by_erin = InstanceAction { request, action, started, user: Some("erin".into()), message: None };
    field.by_others = vec![("i004".to_owned(), by_erin)];
    field.run(Span::from_min(14));
    assert_eq!(field.calls, [], "{}", field.held("i004", FaultKind::NotReady));
    field.run(Span::from_min(30));
    assert!(matches!(field.calls.first(), Some(Call::Reboot(_))), "{:?}", field.calls);
}

/// What is being proved is not forgotten by a rotation, however many incidents have closed since.
#[test]
fn checkpoint_keeps_unproven_replacement_among_many_closed() {
    let mut field = Field::new(roster()).populate(320);
    field.run(Span::from_min(5));
    field.instances.get_mut("i004").unwrap().state = InstanceState::Errored;
    field.nodes.remove("i004");
    field.run_until(Span::from_min(60), |field| field.destructive_calls() > 0);
    for number in 10..310 {
        field.ports.get_mut(&format!("i{number:03}")).unwrap().groups = Box::new([]);
    }
    field.run(Span::from_min(10));
    let under_way = |state: &State| state.context().book.operations.len();
    assert_eq!(under_way(&field.state), 1, "the replacement is being proved");
    let next = State::restore(roster(), field.next_begins(), field.state.checkpoint());
    assert_eq!(under_way(&next), 1);
}

/// A pool is rolled. Its first new machine is in a list of changes alone, and has lost its mark by the next full list: the roll
/// was seen all the same, and the old machines are left alone meanwhile.
#[test]
fn rollout_that_only_a_list_of_changes_shows_is_heeded() {
    let mut field = Field::new(roster()).populate(10);
    field.run(Span::from_min(5));
    let mut new = instance("new");
    new.image = Some("image-2".into());
    let changes = CloudSnapshot { scope: Scope::Changes, instances: vec![Arc::new(new)], ..field.snapshot() };
    field.feed(Event::Cloud { cloud: "os".into(), fact: CloudFact::read(changes) });
    field.nodes.get_mut("i004").unwrap().ready = Ready::Unknown;
    field.run(Span::from_min(25));
    assert_eq!(field.calls, [], "{}", field.held("i004", FaultKind::NotReady));
    field.run(Span::from_min(20));
    assert!(matches!(field.calls.first(), Some(Call::Reboot(_))), "{:?}", field.calls);
}

/// Nova's log of actions tells that a person rebooted the machine just now.
pub fn rebooted_by_a_person(field: &mut Field, id: &str) {
    let started = field.cloud_time();
    let (request, action) = ("req-erin".into(), "reboot".into());
    let by_erin = InstanceAction { request, action, started, user: Some("erin".into()), message: None };
    field.by_others = vec![(id.to_owned(), by_erin)];
}

/// The log of actions was read five minutes ago, and a person has rebooted the machine since.
#[test]
fn operator_reboot_after_evidence_read_gets_time_to_boot() {
    for reboot in [Mode::Act, Mode::Off] {
        let mut roster = roster();
        roster.pools.values_mut().next().unwrap().repair.reboot = reboot;
        let mut field = Field::new(roster).populate(10);
        field.run(Span::from_min(20));
        field.nodes.get_mut("i004").unwrap().ready = Ready::Unknown;
        field.run(Span::from_min(7));
        rebooted_by_a_person(&mut field, "i004");
        field.run(Span::from_min(14));
        assert_eq!(field.calls, [], "reboot: {reboot:?}");
    }
}

/// The roster is paused for a person's work, and the pause ends while the machine boots.
#[test]
fn operator_reboot_during_a_pause_gets_time_to_boot() {
    let mut field = Field::new(roster()).populate(10);
    field.run(Span::from_min(20));
    field.nodes.get_mut("i004").unwrap().ready = Ready::Unknown;
    field.run(Span::from_min(6));
    let pause = Pause { scope: PauseScope::Roster, by: "erin".into(), reason: "looks".into() };
    field.feed(Event::Command(Command::Pauses([pause].into())));
    field.run(Span::from_min(6));
    rebooted_by_a_person(&mut field, "i004");
    field.run(Span::from_min(1));
    field.feed(Event::Command(Command::Pauses([].into())));
    field.run(Span::from_min(10));
    assert_eq!(field.calls, []);
}

/// We rebooted a machine softly, in vain, and a person has rebooted it once more just now.
fn rebooted_after_us() -> Field {
    let mut field = Field::new(roster()).populate(10);
    field.run(Span::from_min(20));
    field.nodes.get_mut("i004").unwrap().ready = Ready::Unknown;
    field.run_until(Span::from_min(20), |field| !field.calls.is_empty());
    field.run(Span::from_min(12));
    rebooted_by_a_person(&mut field, "i004");
    field
}

/// We rebooted it softly, in vain; a person looks at it and reboots it once more.
#[test]
fn operator_reboot_after_our_reboot_gets_time_to_boot() {
    let mut field = rebooted_after_us();
    field.run(Span::from_min(14));
    assert_eq!(field.calls.len(), 1, "{:?}", field.calls.iter().map(Call::to_string).collect::<Vec<_>>());
}

/// The same, where a list shows the person's reboot while it lasts.
#[test]
fn listed_operator_reboot_after_our_reboot_gets_time_to_boot() {
    let mut field = rebooted_after_us();
    field.instances.get_mut("i004").unwrap().state = InstanceState::Rebooting;
    field.run(Span::from_min(1));
    field.instances.get_mut("i004").unwrap().state = InstanceState::Active;
    field.run(Span::from_min(13));
    assert_eq!(field.calls.len(), 1, "{:?}", field.calls.iter().map(Call::to_string).collect::<Vec<_>>());
}

/// The agent was asked to bring the machine back, and died with it. Then a person reboots the machine, which the log tells, and
/// the list as well where it was made meanwhile.
#[test]
fn operator_reboot_after_agent_request_gets_time_to_boot() {
    for listed in [false, true] {
        let mut field = Field::new(roster()).populate(10).with_agents(&["i004"]);
        field.answers_ask = (Outcome::Accepted { request: None }, false);
        field.run(min(20));
        field.nodes.get_mut("i004").unwrap().ready = Ready::Unknown;
        field.run_until(min(20), |field| !field.calls.is_empty());
        field.run(min(3));
        field.agents.clear();
        field.run(min(2));
        rebooted_by_a_person(&mut field, "i004");
        if listed {
            field.instances.get_mut("i004").unwrap().state = InstanceState::Rebooting;
            field.run(min(1));
            field.instances.get_mut("i004").unwrap().state = InstanceState::Active;
        }
        field.run(min(13));
        assert!(matches!(field.calls[..], [Call::AskAgent(_)]), "listed: {listed}: {:?}", made(&field));
        field.run_until(min(30), |field| field.calls.len() > 1);
        assert!(matches!(field.calls[1], Call::Reboot(_)), "listed: {listed}: {:?}", made(&field));
    }
}

/// Each deletion was answered with 503. None of them is a reboot.
#[test]
fn operator_reboot_after_failed_deletions_gets_time_to_boot() {
    let mut roster = without_rejoin();
    roster.pools.values_mut().next().unwrap().repair.reboot = Mode::Off;
    roster.limits.per_hour = 20;
    let mut field = Field::new(roster).populate(10);
    field.run(min(20));
    field.nodes.get_mut("i004").unwrap().ready = Ready::Unknown;
    field.refuses = Some(Outcome::Failed { text: "503".into(), retry_after: None });
    field.run_until(min(20), |field| !field.calls.is_empty());
    field.run(min(10));
    field.refuses = None;
    let tried = field.calls.len();
    rebooted_by_a_person(&mut field, "i004");
    field.run(min(14));
    assert_eq!(field.calls.len(), tried, "{:?}", made(&field));
    field.run_until(min(30), |field| field.calls.len() > tried);
    assert!(field.calls.len() > tried, "{}", field.held("i004", FaultKind::NotReady));
}

/// Two reboots were answered with 503 and never made; a third was, half an hour ago.
#[test]
fn operator_reboot_after_failed_reboots_gets_time_to_boot() {
    for failed in [false, true] {
        let mut field = Field::new(without_rejoin()).populate(10);
        field.run(min(20));
        field.nodes.get_mut("i004").unwrap().ready = Ready::Unknown;
        if failed {
            field.refuses = Some(Outcome::Failed { text: "503".into(), retry_after: None });
            field.run_until(min(20), |field| field.calls.len() == 2);
            field.refuses = None;
        }
        let before = field.calls.len();
        field.run_until(min(20), |field| field.calls.len() > before);
        let tried = field.calls.len();
        field.run(min(if failed { 30 } else { 14 }));
        rebooted_by_a_person(&mut field, "i004");
        field.run(min(14));
        assert_eq!(field.calls.len(), tried, "failed: {failed}: {:?}", made(&field));
        field.run_until(min(30), |field| field.calls.len() > tried);
        assert!(field.calls.len() > tried, "failed: {failed}: it is repaired when it does not come back");
    }
}

/// A person's resize failed: the machine was in their hands for three minutes, and is in ERROR. It was deleted half a minute
/// later.
#[test]
fn failed_operator_resize_leaves_machine_alone_for_boot_time() {
    for logged in [false, true] {
        let mut field = Field::new(roster()).populate(10);
        field.run(min(20));
        field.nodes.get_mut("i004").unwrap().ready = Ready::Unknown;
        rebooted_by_a_person(&mut field, "i004");
        field.by_others[0].1.action = "resize".into();
        field.by_others[0].1.message = Some("Error".into());
        if !logged {
            field.by_others.clear();
        }
        field.instances.get_mut("i004").unwrap().state = InstanceState::Other;
        field.run(min(3));
        field.instances.get_mut("i004").unwrap().state = InstanceState::Errored;
        field.run(min(10));
        assert_eq!(field.calls, [], "logged: {logged}: {:?}", made(&field));
        field.run_until(min(15), |field| !field.calls.is_empty());
        assert!(matches!(field.calls[..], [Call::DeleteInstance(_)]), "logged: {logged}: {:?}", made(&field));
    }
}

/// A request for a repair was denied with 403. Ten minutes later a person reboots the machine instead.
#[test]
fn operator_reboot_after_denied_request_gets_time_to_boot() {
    let mut field = Field::new(roster()).populate(10);
    field.run(min(20));
    field.nodes.get_mut("i004").unwrap().ready = Ready::Unknown;
    field.run(min(1));
    field.refuses = Some(Outcome::Denied { text: "403".into() });
    let asks = Asks { repair: Some("OPS-7".into()), ..Asks::default() };
    field.nodes.get_mut("i004").unwrap().intent.asks = Some(Box::new(asks));
    field.run(min(10));
    let tried = field.calls.len();
    assert!(tried > 0);
    field.refuses = None;
    rebooted_by_a_person(&mut field, "i004");
    field.run(min(14));
    assert_eq!(field.calls.len(), tried, "{:?}", made(&field));
    field.run_until(min(30), |field| field.calls.len() > tried);
    assert!(field.calls.len() > tried, "{}", field.held("i004", FaultKind::NotReady));
}

/// Ten machines on EC2, which keeps no log of who started what.
fn on_ec2() -> Field {
    let mut field = Field::new(without_rejoin()).populate(10);
    for instance in field.instances.values_mut() {
        instance.hosting = Some(Arc::new(Hosting::default()));
    }
    field.run(min(20));
    field
}

/// Our soft reboot, which EC2 shows nothing of, was seen by the boot id. Then a person stops and starts the machine, and a list
/// shows it `pending`.
#[test]
fn ec2_start_by_operator_after_our_soft_reboot_gets_boot_time() {
    let mut field = on_ec2();
    field.nodes.get_mut("i004").unwrap().ready = Ready::Unknown;
    field.run_until(min(20), |field| !field.calls.is_empty());
    field.run(min(3));
    let node = field.nodes.get_mut("i004").unwrap();
    (node.ready, node.boot_id) = (Ready::False, Some(boot_id("i004", 1)));
    field.run(min(11));
    field.nodes.get_mut("i004").unwrap().ready = Ready::Unknown;
    field.instances.get_mut("i004").unwrap().state = InstanceState::Rebooting;
    field.run(Span::from_s(30));
    field.instances.get_mut("i004").unwrap().state = InstanceState::Active;
    field.run(min(14));
    assert_eq!(field.calls.len(), 1, "{:?}", made(&field));
    field.run_until(min(30), |field| field.calls.len() > 1);
    assert_eq!(field.calls.len(), 2, "{}", field.held("i004", FaultKind::NotReady));
}

/// A person deletes the machine's Node, stops and starts it. The process that saw that ends a minute later.
#[test]
fn ec2_start_by_operator_before_restart_gets_time_to_boot() {
    for (restarts, rotated) in [(false, false), (true, false), (true, true)] {
        let mut field = on_ec2();
        field.instances.get_mut("i004").unwrap().state = InstanceState::Stopped;
        field.nodes.remove("i004");
        field.run(min(3));
        field.instances.get_mut("i004").unwrap().state = InstanceState::Active;
        field.run(min(1));
        if rotated {
            field.records = field.state.checkpoint();
        }
        if restarts {
            field = field.restarted(without_rejoin());
        }
        field.run(min(13));
        assert_eq!(field.calls, [], "restarts: {restarts}, rotated: {rotated}: {:?}", made(&field));
        field.run_until(min(30), |field| !field.calls.is_empty());
        assert!(!field.calls.is_empty(), "restarts: {restarts}: {}", field.held("i004", FaultKind::Vanished));
    }
}

/// A person takes the marks off, stops and starts the machine, and puts the marks back while it boots.
#[test]
fn machine_marked_again_while_booting_gets_time_to_boot() {
    for marked in [true, false] {
        let mut field = on_ec2();
        let marks = field.instances["i004"].marks.clone();
        if !marked {
            field.instances.get_mut("i004").unwrap().marks = Arc::default();
        }
        field.run(min(1));
        field.instances.get_mut("i004").unwrap().state = InstanceState::Stopped;
        field.nodes.remove("i004");
        field.run(min(3));
        let instance = field.instances.get_mut("i004").unwrap();
        (instance.state, instance.marks) = (InstanceState::Active, marks);
        field.run(min(14));
        assert_eq!(field.calls, [], "marked: {marked}: {:?}", made(&field));
        field.run_until(min(30), |field| !field.calls.is_empty());
        assert!(!field.calls.is_empty(), "marked: {marked}: {}", field.held("i004", FaultKind::Vanished));
    }
}

/// A person asks for a repair, puts another value, and the first one again.
#[test]
fn request_counts_once_although_another_came_between() {
    for restart in [false, true] {
        let mut field = Field::new(without_rejoin()).populate(10);
        field.run(min(20));
        let ask = |field: &mut Field, value: &str| {
            let asks = Asks { repair: Some(value.into()), ..Asks::default() };
            field.nodes.get_mut("i004").unwrap().intent.asks = Some(Box::new(asks));
            field.run(min(1));
        };
        ask(&mut field, "OPS-7");
        ask(&mut field, "OPS-8");
        if restart {
            field.records = field.state.checkpoint();
            field = field.restarted(without_rejoin());
            field.run(min(3));
        }
        field.nodes.get_mut("i004").unwrap().ready = Ready::Unknown;
        field.run(min(1));
        ask(&mut field, "OPS-7");
        assert_eq!(field.calls, [], "restart: {restart}");
        ask(&mut field, "OPS-9");
        assert!(field.destructive_calls() > 0, "restart: {restart}");
    }
}

#[test]
fn rollout_is_heeded_by_the_next_process() {
    for (restart, rotated) in [(false, false), (true, false), (true, true)] {
        let mut field = Field::new(without_rejoin()).populate(10);
        field.run(min(20));
        // A pool is rolled in place: every machine has the new version now.
        for node in field.nodes.values_mut() {
            node.kubelet = Some("v1.37.0".into());
        }
        field.run(min(2));
        if rotated {
            field.records = field.state.checkpoint();
        }
        if restart {
            field = field.restarted(without_rejoin());
            field.run(min(2));
        }
        field.nodes.get_mut("i004").unwrap().ready = Ready::Unknown;
        field.run(min(20));
        assert_eq!(field.calls, [], "restart: {restart}, rotated: {rotated}");
        field.run(min(30));
        assert!(field.destructive_calls() > 0, "restart: {restart}, rotated: {rotated}");
    }
}

/// A person resizes a machine, and it is not confirmed yet. Its kubelet does not start: the state of its CPU manager is another
/// machine's. Its agent lives. Or the resize goes on still, or they rescue or reboot it.
#[test]
fn machine_that_a_person_has_in_hand_is_not_asked_to_rejoin() {
    let in_hand = [
        (InstanceState::Other, None),
        (InstanceState::Other, Some("resize_migrating")),
        (InstanceState::Rebooting, Some("reboot_started")),
        (InstanceState::Active, Some("migrating")),
    ];
    for (state, task) in in_hand {
        let mut field = Field::new(roster()).populate(10).with_agents(&["i004"]);
        field.run(min(20));
        let instance = field.instances.get_mut("i004").unwrap();
        (instance.state, instance.task) = (state, task.map(Arc::from));
        field.nodes.get_mut("i004").unwrap().ready = Ready::Unknown;
        field.run(min(30));
        assert_eq!(field.calls, [], "{state:?}, {task:?}: {:?}", made(&field));
        let instance = field.instances.get_mut("i004").unwrap();
        (instance.state, instance.task) = (InstanceState::Active, None);
        field.run_until(min(30), |field| !field.calls.is_empty());
        assert!(matches!(field.calls[..], [Call::AskAgent(_)]), "{state:?}, {task:?}: {:?}", made(&field));
    }
}

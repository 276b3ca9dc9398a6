//! Reboots of ours that come late, or never end.

use std::sync::Arc;

use reveille_core::effect::{Call, Effect, Outcome};
use reveille_core::event::{CloudFact, ClusterFact, Event};
use reveille_core::model::incident::FaultKind;
use reveille_core::model::instance::InstanceState;
use reveille_core::model::node::Ready;
use reveille_core::model::roster::Roster;
use reveille_core::model::time::Span;

use super::fixture::{CLOUD, Field};
use super::steps::{made, min, set, without_rejoin};

/// The reboot of a silent machine is answered with 504, and comes later.
fn rebooted_with_504() -> (Field, Call) {
    let mut field = Field::new(without_rejoin()).populate(10);
    field.run(min(20));
    field.nodes.get_mut("i004").unwrap().ready = Ready::Unknown;
    field.refuses = Some(Outcome::Failed { text: "504".into(), retry_after: None });
    field.run_until(min(20), |field| !field.calls.is_empty());
    field.refuses = None;
    let reboot = field.calls[0].clone();
    (field, reboot)
}

fn comes_late(field: &mut Field, reboot: Call) {
    assert_eq!(field.calls.len(), 1);
    let at = field.cloud_time();
    field.made.push((reboot, at));
    field.run(min(14));
}

/// Every record is refused.
fn feed_full(field: &mut Field, event: Event) {
    for effect in field.step(event) {
        match effect {
            Effect::Record { id, .. } => feed_full(field, Event::RecordFailed(id)),
            Effect::Look { id, look } => {
                let answer = field.answer(&look);
                feed_full(field, Event::Looked { look: id, answer: Ok(answer) });
            }
            Effect::Call { call, .. } => panic!("{call} without a ledger"),
            Effect::List { .. } | Effect::WakeAt(_) => {}
        }
    }
}

/// The next reboot is decided, and the disk is full: it is not made, and the first one may come yet.
#[test]
fn late_reboot_after_unrecorded_intent_gets_time_to_boot() {
    for full in [false, true] {
        let (mut field, reboot) = rebooted_with_504();
        field.run(Span::from_s(40));
        for _ in 0..if full { 4 } else { 0 } {
            field.now = field.now + Span::from_s(10);
            let fact = CloudFact::read(field.snapshot());
            feed_full(&mut field, Event::Cloud { cloud: CLOUD.into(), fact });
            let nodes = field.nodes.values().cloned().map(Arc::new).collect();
            feed_full(&mut field, Event::Cluster(ClusterFact::Synced(nodes)));
            feed_full(&mut field, Event::Cluster(ClusterFact::Alive));
        }
        comes_late(&mut field, reboot);
        assert_eq!(field.calls.len(), 1, "full: {full}: {:?}", made(&field));
    }
}

/// Its Node is deleted meanwhile, so that the machine has another fault when the reboot comes.
#[test]
fn reboot_that_comes_after_the_node_was_deleted_has_its_time() {
    for deleted in [false, true] {
        let (mut field, reboot) = rebooted_with_504();
        field.run(Span::from_s(20));
        if deleted {
            field.nodes.remove("i004");
        }
        field.run(Span::from_s(20));
        comes_late(&mut field, reboot);
        assert_eq!(field.calls.len(), 1, "deleted: {deleted}: {:?}", made(&field));
    }
}

/// The host is dead: Nova takes the reboot, and goes on saying that it reboots.
fn never_ended(field: &mut Field) {
    let instance = field.instances.get_mut("i004").unwrap();
    (instance.state, instance.task) = (InstanceState::Rebooting, Some("reboot_started".into()));
}

#[test]
fn our_endless_reboot_is_followed_by_next_step() {
    for ends in [true, false] {
        let mut field = Field::new(without_rejoin()).populate(10);
        field.run(min(20));
        field.nodes.get_mut("i004").unwrap().ready = Ready::Unknown;
        field.run_until(min(20), |field| !field.calls.is_empty());
        if !ends {
            never_ended(&mut field);
        }
        field.run(min(14));
        assert_eq!(field.calls.len(), 1, "ends: {ends}: {:?}", made(&field));
        field.run(min(60));
        // The Node goes as well, after its machine.
        let mut steps = vec!["reboot instance i004", "power-cycle instance i004", "delete instance i004"];
        steps.retain(|step| ends || !step.starts_with("power-cycle"));
        assert_eq!(made(&field)[..steps.len()], steps, "ends: {ends}");
    }
}

/// The same where a person asked for the reboot: they may know why it takes so long.
#[test]
fn operator_reboot_that_never_ends_is_left_to_operators() {
    let mut field = Field::new(without_rejoin()).populate(10);
    field.run(min(20));
    field.nodes.get_mut("i004").unwrap().ready = Ready::Unknown;
    field.run_until(min(20), |field| !field.calls.is_empty());
    field.run(min(5));
    super::operators::rebooted_by_a_person(&mut field, "i004");
    let (others, ours) = (&mut field.by_others, field.made.pop().unwrap());
    // The log tells the newest first.
    others.push(("i004".to_owned(), {
        let mut first = others[0].1.clone();
        (first.request, first.started, first.user) = ("req-0".into(), ours.1, None);
        first
    }));
    never_ended(&mut field);
    field.run(min(24 * 60));
    assert_eq!(field.calls.len(), 1, "{:?}", made(&field));
    let held = field.held("i004", FaultKind::NotReady);
    assert!(held.contains("reboot_started since 1970-01-01T00:"), "{held}");
}

/// The same where the answer was lost: by the 504 of a gateway, or with the connection.
#[test]
fn our_unanswered_endless_reboot_is_followed_by_next_step() {
    for answered in [true, false] {
        let mut field = Field::new(without_rejoin()).populate(10);
        field.run(min(20));
        field.nodes.get_mut("i004").unwrap().ready = Ready::Unknown;
        field.fails = answered;
        field.mute = (!answered).then(Vec::new);
        field.run_until(min(20), |field| !field.calls.is_empty());
        field.fails = false;
        // It was made all the same.
        for intent in field.mute.take().unwrap_or_default() {
            field.made.push((field.calls[0].clone(), field.cloud_time()));
            let outcome = Outcome::Unknown { text: "no answer came".into() };
            field.feed(Event::Done { intent, outcome });
        }
        never_ended(&mut field);
        field.run(min(14));
        assert_eq!(field.calls.len(), 1, "answered: {answered}: {:?}", made(&field));
        field.run(min(60));
        let steps = ["reboot instance i004", "delete instance i004"];
        assert_eq!(made(&field)[..2], steps, "answered: {answered}");
    }
}

/// A person rebooted it in the moment of ours, whose answer was lost: the log does not tell which of the two never ends.
#[test]
fn endless_reboot_of_unclear_author_is_left_to_operators() {
    let mut field = Field::new(without_rejoin()).populate(10);
    field.run(min(20));
    field.nodes.get_mut("i004").unwrap().ready = Ready::Unknown;
    field.fails = true;
    field.run_until(min(20), |field| !field.calls.is_empty());
    field.fails = false;
    super::operators::rebooted_by_a_person(&mut field, "i004");
    never_ended(&mut field);
    field.run(min(180));
    assert_eq!(field.calls.len(), 1, "{:?}", made(&field));
}

/// Five minutes later we are restarted, or not: the reboot is known to be ours.
fn is_followed_by_the_next_step(mut field: Field, restarts: bool, rotated: bool) {
    field.run(min(5));
    if rotated {
        field.records = field.state.checkpoint();
    }
    let before = if restarts { 0 } else { 1 };
    if restarts {
        field = field.restarted(without_rejoin());
    }
    field.run_until(min(240), |field| field.calls.len() > before);
    let what = format!("restarts: {restarts}, rotated: {rotated}");
    assert!(field.calls.len() > before, "{what}: {}", field.held("i004", FaultKind::NotReady));
}

/// A gateway answers our reboot with 504, Nova takes it 40 s later, and its host is dead: it never ends.
#[test]
fn our_late_endless_reboot_is_followed_by_next_step() {
    for late in [0, 40] {
        let (mut field, reboot) = rebooted_with_504();
        field.run(Span::from_s(late));
        assert_eq!(field.calls.len(), 1);
        let at = field.cloud_time();
        field.made.push((reboot, at));
        never_ended(&mut field);
        field.run_until(min(240), |field| field.calls.len() > 1);
        assert!(field.calls.len() > 1, "{late} s: {}", field.held("i004", FaultKind::NotReady));
    }
}

/// A reboot of ours whose answer was lost never ends on a dead host; meanwhile our clock is set right.
#[test]
fn our_unanswered_endless_reboot_is_known_after_clock_change() {
    for how in ["nothing", "ahead", "back"] {
        let mut field = Field::new(without_rejoin()).populate(10);
        if how == "back" {
            field.now = field.now + min(60);
            field.cloud_behind = min(30);
        }
        field.run(min(20));
        set(&mut field, "i004", Ready::Unknown);
        field.fails = true;
        field.run_until(min(20), |field| !field.calls.is_empty());
        field.fails = false;
        never_ended(&mut field);
        field.run(min(3));
        match how {
            "ahead" => {
                field.now = field.now + min(30);
                field.cloud_behind = min(30);
            }
            "back" => {
                field.now = field.now - min(30);
                field.cloud_behind = Span::ZERO;
            }
            _ => {}
        }
        field.run_until(min(240), |field| field.calls.len() > 1);
        assert!(field.calls.len() > 1, "{how}: {}", field.held("i004", FaultKind::NotReady));
    }
}

/// Our reboot is taken, and the gateway lost the header with its request id: it never ends.
#[test]
fn our_endless_reboot_without_request_id_leads_to_next_step() {
    let mut field = Field::new(without_rejoin()).populate(10);
    field.run(min(20));
    set(&mut field, "i004", Ready::Unknown);
    field.mute = Some(Vec::new());
    field.run_until(min(20), |field| !field.calls.is_empty());
    field.made.push((field.calls[0].clone(), field.cloud_time()));
    for intent in field.mute.take().unwrap_or_default() {
        field.feed(Event::Done { intent, outcome: Outcome::Accepted { request: None } });
    }
    never_ended(&mut field);
    field.run_until(min(240), |field| field.calls.len() > 1);
    assert!(field.calls.len() > 1, "{}", field.held("i004", FaultKind::NotReady));
}

/// A gateway answers our reboot with 504, Nova takes it 40 s later, and its host is dead: it never ends. We restart.
#[test]
fn our_late_endless_reboot_is_known_to_next_process() {
    for (restarts, rotated) in [(false, false), (true, false), (true, true)] {
        let (mut field, reboot) = rebooted_with_504();
        field.run(Span::from_s(40));
        assert_eq!(field.calls.len(), 1);
        let at = field.cloud_time();
        field.made.push((reboot, at));
        never_ended(&mut field);
        is_followed_by_the_next_step(field, restarts, rotated);
    }
}

/// The same where the connection was lost, and the log told of it at once.
#[test]
fn our_endless_reboot_without_request_id_survives_restart() {
    for (restarts, rotated) in [(false, false), (true, false), (true, true)] {
        let mut field = Field::new(without_rejoin()).populate(10);
        field.run(min(20));
        set(&mut field, "i004", Ready::Unknown);
        field.mute = Some(Vec::new());
        field.run_until(min(20), |field| !field.calls.is_empty());
        let out = field.mute.take().unwrap();
        for intent in out {
            field.feed(Event::Done { intent, outcome: Outcome::Unknown { text: "no answer came".into() } });
        }
        field.run(Span::from_s(30));
        let call = field.calls[0].clone();
        let at = field.cloud_time();
        field.made.push((call, at));
        never_ended(&mut field);
        is_followed_by_the_next_step(field, restarts, rotated);
    }
}

/// Its Node is deleted after the log has told of it: the machine has another fault, and the reboot is ours all the same.
#[test]
fn our_late_endless_reboot_is_known_after_node_deletion() {
    for restarts in [false, true] {
        let (mut field, reboot) = rebooted_with_504();
        field.run(Span::from_s(40));
        let at = field.cloud_time();
        field.made.push((reboot, at));
        never_ended(&mut field);
        field.run(min(5));
        field.nodes.remove("i004");
        field.run(min(1));
        let before = if restarts { 0 } else { field.calls.len() };
        if restarts {
            field = field.restarted(without_rejoin());
        }
        field.run_until(min(240), |field| field.calls.len() > before);
        assert!(
            field.calls.len() > before,
            "restarts: {restarts}: {}",
            field.held("i004", FaultKind::Vanished)
        );
    }
}

/// Its reboot gets no answer and comes three minutes later, when the machine has been well again by itself for two.
#[test]
fn machine_lost_to_our_late_reboot_gets_time_to_boot() {
    for restarts in [false, true] {
        let mut field = Field::new(without_rejoin()).populate(10);
        field.run(min(20));
        set(&mut field, "i004", Ready::Unknown);
        field.mute = Some(Vec::new());
        field.run_until(min(20), |field| !field.calls.is_empty());
        let reboot = field.calls[0].clone();
        set(&mut field, "i004", Ready::True);
        field.run(min(3));
        let at = field.cloud_time();
        field.made.push((reboot, at));
        field.run_until(min(3), |field| field.case("i004", FaultKind::NotReady).is_none());
        assert!(field.case("i004", FaultKind::NotReady).is_none(), "it is over");
        set(&mut field, "i004", Ready::Unknown);
        if restarts {
            field = field.restarted(without_rejoin());
        }
        field.run(min(12));
        assert_eq!(field.calls.len(), usize::from(!restarts), "{restarts}: {:?}", made(&field));
    }
}

/// The reboot of `i004` is answered with 504, and comes half a minute later: the log of actions shows it, and it boots.
fn boots_late(roster: Roster) -> Field {
    let mut field = Field::new(roster).populate(10);
    field.run(min(20));
    set(&mut field, "i004", Ready::Unknown);
    field.refuses = Some(Outcome::Failed { text: "504".into(), retry_after: None });
    field.run_until(min(20), |field| !field.calls.is_empty());
    field.refuses = None;
    let reboot: Call = field.calls[0].clone();
    field.run(Span::from_s(20));
    let at = field.cloud_time();
    field.made.push((reboot, at));
    field.run(min(2));
    assert_eq!(field.calls.len(), 1, "{:?}", made(&field));
    field
}

/// The same where bare metal boots for an hour, and time synchronisation sets our clock back by a minute meanwhile.
#[test]
fn late_reboot_keeps_its_slot_after_clock_set_back() {
    for back in [Span::ZERO, min(1)] {
        let mut slow = without_rejoin();
        slow.pools.values_mut().for_each(|pool| pool.deadlines.join_within = Some(min(60)));
        let mut field = boots_late(slow);
        field.now = field.now - back;
        field.run(Span::from_s(60));
        set(&mut field, "i005", Ready::Unknown);
        field.run(min(50));
        assert_eq!(field.calls.len(), 1, "set back by {back}: {:?}", made(&field));
    }
}

/// Nova carries out what its gateway answered with 504, and the log shows it. We are restarted while the machine boots, and
/// another one falls silent: with one repair at once, it is not rebooted beside the first.
#[test]
fn reboot_that_came_late_keeps_its_place_over_a_restart() {
    let mut acted = Vec::new();
    for how in ["no restart", "restart", "rotation"] {
        let mut field = boots_late(without_rejoin());
        let calls = field.calls.len();
        field.run(Span::from_s(10));
        if how == "rotation" {
            field.records = field.state.checkpoint();
        }
        let calls = if how == "no restart" {
            calls
        } else {
            field = field.restarted(without_rejoin());
            0
        };
        field.run(Span::from_s(60));
        set(&mut field, "i005", Ready::Unknown);
        field.run(min(10));
        if field.calls.len() > calls {
            acted.push((how, made(&field)));
        }
    }
    assert_eq!(acted, []);
}

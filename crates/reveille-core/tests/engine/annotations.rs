//! What people request for a machine: a repair now, a look at it before it is deleted, a confirmation of their own before
//! it counts as well. Also what the controller reports of a machine that is Ready and not in service, or whose removal
//! hangs.

use std::collections::VecDeque;
use std::sync::Arc;

use reveille_core::diagnose::machine_state::MachineState;
use reveille_core::effect::{Call, Effect};
use reveille_core::event::{ClusterFact, Event};
use reveille_core::model::incident::FaultKind;
use reveille_core::model::instance::{InstanceState, Mark};
use reveille_core::model::node::{Asks, Ready};
use reveille_core::model::roster::{Keep, Mode, Roster};
use reveille_core::model::time::Span;
use reveille_core::record::{Record, Verdict};
use reveille_core::remedies::DeleteInstance;

use super::fixture::{Field, roster};
use super::operators::rebooted_by_a_person;
use super::steps::{min, roster_with};

const TAINT: &str = "node.cilium.io/agent-not-ready";

fn asks(field: &mut Field, id: &str, change: impl FnOnce(&mut Asks)) {
    let node = field.nodes.get_mut(id).unwrap();
    let mut asks = node.intent.asks.as_deref().cloned().unwrap_or_default();
    change(&mut asks);
    node.intent.asks = Some(Box::new(asks));
}

fn ask(field: &mut Field, id: &str, value: &str) {
    asks(field, id, |asks| asks.repair = Some(value.into()));
}

fn set_ready(field: &mut Field, id: &str, ready: Ready) {
    field.nodes.get_mut(id).unwrap().ready = ready;
}

/// Another process takes over the ledger, as it was written, and the world.
fn restarted(mut field: Field, roster: Roster, records: Vec<Record>) -> Field {
    field.records = records;
    field.restarted(roster)
}

fn asked(field: &Field) -> Vec<bool> {
    let asked = field.records.iter().filter_map(|record| match record {
        Record::Asked { incident, .. } => Some(incident.is_some()),
        _ => None,
    });
    asked.collect()
}

#[test]
fn a_request_skips_the_waiting_and_nothing_else() {
    let mut field = Field::new(roster()).populate(10);
    field.run(min(2));
    set_ready(&mut field, "i001", Ready::Unknown);
    field.run(min(1));
    assert!(field.calls.is_empty());
    ask(&mut field, "i001", "OPS-7");
    field.run(Span::from_s(30));
    assert!(matches!(field.calls.as_slice(), [Call::Reboot(_)]), "{:?}", field.calls);
    assert_eq!(asked(&field), [true]);
    // The one repair at once that the roster allows is used: another request waits for it.
    set_ready(&mut field, "i002", Ready::Unknown);
    field.run(min(1));
    ask(&mut field, "i002", "OPS-8");
    field.run(min(1));
    assert_eq!(field.calls.len(), 1);
    let held = field.held("i002", FaultKind::NotReady);
    assert!(held.contains("1 of 1 repairs under way"), "{held}");
}

#[test]
fn a_request_does_not_move_what_stands_against_an_act() {
    for (id, change, why) in [
        (
            "i001",
            Box::new(|field: &mut Field| {
                field.nodes.get_mut("i001").unwrap().intent.paused = true;
            }) as Box<dyn Fn(&mut Field)>,
            "is paused by the annotation",
        ),
        (
            "i001",
            Box::new(|field: &mut Field| {
                field.instances.get_mut("i001").unwrap().locked = true;
            }),
            "locked",
        ),
        (
            "i001",
            Box::new(|field: &mut Field| {
                for id in ["i003", "i004", "i005", "i006"] {
                    set_ready(field, id, Ready::Unknown);
                }
            }),
            "at most 3 are allowed",
        ),
    ] {
        let mut field = Field::new(roster()).populate(10);
        field.run(min(2));
        change(&mut field);
        set_ready(&mut field, id, Ready::Unknown);
        field.run(min(1));
        ask(&mut field, id, "OPS-7");
        field.run(min(2));
        assert!(field.calls.is_empty(), "{why}: {:?}", field.calls);
        let held = field.held(id, FaultKind::NotReady);
        assert!(held.contains(why), "{why}: {held}");
    }
}

#[test]
fn a_value_counts_once_also_over_restarts_and_checkpoints() {
    let mut field = Field::new(roster()).populate(10);
    field.run(min(2));
    set_ready(&mut field, "i001", Ready::Unknown);
    field.run(min(1));
    ask(&mut field, "i001", "OPS-7");
    field.run(Span::from_s(30));
    assert_eq!(field.calls.len(), 1);
    set_ready(&mut field, "i001", Ready::True);
    field.run(min(20));
    assert!(field.case("i001", FaultKind::NotReady).is_none(), "it is mended");
    for rotated in [false, true] {
        let records = if rotated { field.state.checkpoint() } else { field.records.clone() };
        field = restarted(field, roster(), records);
        field.run(min(5));
        set_ready(&mut field, "i001", Ready::Unknown);
        field.run(min(4));
        assert!(field.calls.is_empty(), "the old request is spent: {:?}", field.calls);
        set_ready(&mut field, "i001", Ready::True);
        field.run(min(5));
    }
    set_ready(&mut field, "i001", Ready::Unknown);
    field.run(min(2));
    ask(&mut field, "i001", "OPS-8");
    field.run(min(1));
    assert_eq!(field.calls.len(), 1, "a new value is a new request");
}

#[test]
fn a_request_survives_a_restart_before_it_is_carried_out() {
    let mut field = Field::new(roster()).populate(10);
    field.run(min(2));
    field.instances.get_mut("i001").unwrap().locked = true;
    set_ready(&mut field, "i001", Ready::Unknown);
    field.run(min(1));
    ask(&mut field, "i001", "OPS-7");
    field.run(Span::from_s(30));
    assert!(field.calls.is_empty());
    let records = field.records.clone();
    let mut field = restarted(field, roster(), records);
    field.instances.get_mut("i001").unwrap().locked = false;
    // What a person unlocked after their request has the time of a boot first.
    field.run_until(min(20), |field| !field.calls.is_empty());
    assert!(matches!(field.calls.as_slice(), [Call::Reboot(_)]), "{:?}", field.calls);
    assert_eq!(asked(&field), [true], "it is heard once");
}

#[test]
fn repair_request_on_a_healthy_machine_is_spent_without_call() {
    let mut field = Field::new(roster()).populate(10);
    field.run(min(2));
    ask(&mut field, "i001", "OPS-7");
    field.run(min(1));
    assert_eq!(asked(&field), [false]);
    set_ready(&mut field, "i001", Ready::Unknown);
    field.run(min(4));
    assert!(field.calls.is_empty(), "{:?}", field.calls);
}

#[test]
fn a_request_from_before_our_first_watch_does_not_count() {
    let mut field = Field::new(roster()).populate(10);
    set_ready(&mut field, "i001", Ready::Unknown);
    ask(&mut field, "i001", "OPS-7");
    field.run(min(4));
    assert!(field.calls.is_empty(), "its age is unknown: {:?}", field.calls);
    ask(&mut field, "i001", "OPS-8");
    field.run(min(1));
    assert_eq!(field.calls.len(), 1);
}

fn keeping(failed: bool) -> Roster {
    roster_with(|pool| {
        pool.keep = Some(Keep { within: min(120), at_most: 1, failed });
        (pool.repair.rejoin, pool.repair.reboot) = (Mode::Off, Mode::Off);
    })
}

fn deleted(field: &Field, id: &str) -> bool {
    field
        .calls
        .iter()
        .any(|call| matches!(call, Call::DeleteInstance(DeleteInstance { instance, .. }) if instance.as_str() == id))
}

#[test]
fn failed_machine_is_kept_for_inspection_and_then_deleted() {
    let mut field = Field::new(keeping(true)).populate(10);
    field.run(min(2));
    set_ready(&mut field, "i001", Ready::Unknown);
    field.run(min(30));
    let held = field.held("i001", FaultKind::NotReady);
    assert!(held.contains("kept for inspection for"), "{held}");
    let kept = field.records.iter().filter(|record| matches!(record, Record::Kept { .. })).count();
    assert_eq!((kept, field.calls.len()), (1, 0));
    let until = field.case("i001", FaultKind::NotReady).unwrap().incident.kept_until;
    let records = field.state.checkpoint();
    let mut field = restarted(field, keeping(true), records);
    assert_eq!(field.case("i001", FaultKind::NotReady).unwrap().incident.kept_until, until);
    field.run(min(80));
    assert!(field.calls.is_empty(), "{:?}", field.calls);
    field.run(min(30));
    assert!(deleted(&field, "i001"), "{:?}", field.calls);
}

#[test]
fn only_so_many_are_kept_and_only_those_that_are_wanted() {
    let mut field = Field::new(keeping(false)).populate(10);
    field.run(min(2));
    let mark = Mark::Metadata("reveille-keep".into(), "true".into());
    let marks = &mut field.instances.get_mut("i001").unwrap().marks;
    *marks = std::sync::Arc::new(marks.iter().cloned().chain([mark]).collect());
    asks(&mut field, "i002", |asks| asks.keep = Some(true));
    set_ready(&mut field, "i001", Ready::Unknown);
    field.run(min(15));
    assert!(field.calls.is_empty(), "its mark keeps it");
    set_ready(&mut field, "i002", Ready::Unknown);
    field.run(min(15));
    assert!(deleted(&field, "i002"), "there is room for one: {:?}", field.calls);
    asks(&mut field, "i001", |asks| asks.keep = Some(false));
    field.run(min(5));
    assert!(!deleted(&field, "i001"), "of two wishes the more careful one counts");
    field.instances.insert("i001".into(), super::fixture::instance("i001"));
    field.run(min(60));
    assert!(deleted(&field, "i001"), "no person wants to keep it any more: {:?}", field.calls);
}

fn confirming() -> Roster {
    roster_with(|pool| pool.deadlines.confirm = true)
}

#[test]
fn incident_to_confirm_stays_open_until_its_number_is_named() {
    let mut field = Field::new(confirming()).populate(10);
    field.run(min(2));
    set_ready(&mut field, "i001", Ready::Unknown);
    field.run(min(12));
    assert_eq!(field.calls.len(), 1);
    set_ready(&mut field, "i001", Ready::True);
    field.run(min(60));
    let number = field.case("i001", FaultKind::NotReady).expect("no person has confirmed it").incident.id;
    assert_eq!(
        field.state.context().book.destructive_under_way(),
        0,
        "its repair is proved and frees its slot"
    );
    let records = field.records.clone();
    let mut field = restarted(field, confirming(), records);
    field.run(min(10));
    for wrong in ["true", "inc-999", "1"] {
        asks(&mut field, "i001", |asks| asks.confirm = Some(wrong.into()));
        field.run(min(1));
        assert!(field.case("i001", FaultKind::NotReady).is_some(), "{wrong}");
    }
    asks(&mut field, "i001", |asks| asks.confirm = Some(number.to_string().as_str().into()));
    field.run(min(2));
    assert!(field.case("i001", FaultKind::NotReady).is_none());
    let closed = field.state.closed().last().map(|closed| closed.verdict);
    assert_eq!(closed, Some(Verdict::Mended));
}

#[test]
fn confirmation_does_not_close_incident_of_unhealthy_machine() {
    let mut field = Field::new(confirming()).populate(10);
    field.run(min(2));
    set_ready(&mut field, "i001", Ready::Unknown);
    field.run(min(1));
    let number = field.case("i001", FaultKind::NotReady).unwrap().incident.id;
    asks(&mut field, "i001", |asks| asks.confirm = Some(number.to_string().as_str().into()));
    field.run(min(3));
    assert!(field.case("i001", FaultKind::NotReady).is_some());
    set_ready(&mut field, "i001", Ready::True);
    field.run(min(3));
    assert!(field.case("i001", FaultKind::NotReady).is_none(), "given before, it counts when it is well");
}

#[test]
fn unconfirmed_machine_failing_again_gets_a_new_deadline() {
    let mut field = Field::new(confirming()).populate(10);
    field.run(min(2));
    set_ready(&mut field, "i001", Ready::Unknown);
    field.run(min(2));
    set_ready(&mut field, "i001", Ready::True);
    field.run(min(60));
    set_ready(&mut field, "i001", Ready::Unknown);
    field.run(min(4));
    assert!(field.calls.is_empty(), "it was well for an hour: {:?}", field.calls);
    field.run(min(10));
    assert_eq!(field.calls.len(), 1);
}

fn serving() -> Roster {
    roster_with(|pool| pool.startup_taints = vec![TAINT.into()])
}

#[test]
fn startup_taint_is_starting_then_not_in_service_without_call() {
    let mut field = Field::new(serving()).populate(10);
    field.run(min(2));
    field.nodes.get_mut("i001").unwrap().taints = Box::new([TAINT.into()]);
    field.nodes.get_mut("i002").unwrap().taints = Box::new(["dedicated".into()]);
    field.run(min(5));
    assert!(matches!(field.machine_state("i001"), MachineState::Starting(taint) if &*taint == TAINT));
    assert_eq!(field.machine_state("i002"), MachineState::Answers, "that one says something else");
    // Another taint that comes meanwhile does not restart the timer; a restart of the process does.
    field.nodes.get_mut("i001").unwrap().taints = Box::new(["a".into(), TAINT.into()]);
    field.run(min(6));
    assert!(
        matches!(field.machine_state("i001"), MachineState::Absent(absence) if absence.kind == FaultKind::NotInService)
    );
    assert!(field.case("i001", FaultKind::NotInService).is_some());
    let records = field.records.clone();
    let mut field = restarted(field, serving(), records);
    field.run(min(5));
    assert!(matches!(field.machine_state("i001"), MachineState::Starting(_)));
    field.run(min(30));
    assert!(field.calls.is_empty(), "{:?}", field.calls);
    field.nodes.get_mut("i001").unwrap().taints = Box::default();
    field.run(min(2));
    assert_eq!(field.machine_state("i001"), MachineState::Answers);
    assert!(field.case("i001", FaultKind::NotInService).is_none());
}

#[test]
fn machine_not_ready_before_service_is_treated_as_not_ready() {
    let mut field = Field::new(serving()).populate(10);
    field.run(min(2));
    field.nodes.get_mut("i001").unwrap().taints = Box::new([TAINT.into()]);
    field.run(min(12));
    assert!(field.case("i001", FaultKind::NotInService).is_some());
    set_ready(&mut field, "i001", Ready::Unknown);
    field.run(min(3));
    assert!(field.case("i001", FaultKind::NotInService).is_none(), "it is another question now");
    assert!(field.case("i001", FaultKind::NotReady).is_some());
    assert!(field.calls.is_empty());
    field.run(min(15));
    assert_eq!(field.calls.len(), 1);
}

#[test]
fn hanging_removal_is_reported_after_deadline_and_left_alone() {
    let mut field = Field::new(roster()).populate(10);
    field.run(min(2));
    field.nodes.get_mut("i001").unwrap().intent.leaving = Some("karpenter.sh/disrupted".into());
    field.run(min(20));
    assert_eq!(field.machine_state("i001"), MachineState::Answers, "it serves until it goes");
    set_ready(&mut field, "i001", Ready::Unknown);
    field.run(min(9));
    assert!(matches!(field.machine_state("i001"), MachineState::Excused(_)));
    field.run(min(3));
    assert!(field.case("i001", FaultKind::StuckLeaving).is_some());
    field.run(min(60));
    assert!(field.calls.is_empty(), "{:?}", field.calls);
}

#[test]
fn instance_left_after_node_removal_is_told_and_left_alone() {
    for restart in [false, true] {
        let mut field = Field::new(roster()).populate(10);
        field.run(min(2));
        field.nodes.get_mut("i001").unwrap().intent.leaving = Some("ToBeDeletedByClusterAutoscaler".into());
        field.run(min(1));
        field.nodes.remove("i001");
        field.run(min(9));
        assert!(
            matches!(field.machine_state("i001"), MachineState::Excused(_)),
            "the client that removed the Node has time"
        );
        if restart {
            let records = field.records.clone();
            field = restarted(field, roster(), records);
            field.run(min(9));
            assert!(matches!(field.machine_state("i001"), MachineState::Excused(_)), "it starts from zero");
        }
        field.run(min(3));
        let case = field.case("i001", FaultKind::StuckLeaving).expect("an operator is told");
        let said = case.incident.findings[0].evidence[0].fact.to_string();
        assert!(said.contains("its node left on purpose (ToBeDeletedByClusterAutoscaler)"), "{said}");
        field.run(min(120));
        assert!(field.calls.is_empty(), "{:?}", field.calls);
        field.instances.remove("i001");
        field.run(min(2));
        assert!(field.case("i001", FaultKind::StuckLeaving).is_none(), "it went after all");
    }
}

/// A person rebooted the machine, or had it in a rescue, and asks for a repair while it may still boot. The answer to each
/// record is an event of its own, as in production; a hundred intents are enough to see that they would go on at the pace of the
/// disk.
fn intents_for_a_request(rescued: bool) -> u32 {
    let mut field = Field::new(roster()).populate(10);
    field.run(Span::from_min(20));
    field.nodes.get_mut("i004").unwrap().ready = Ready::Unknown;
    field.run(Span::from_min(1));
    if rescued {
        field.instances.get_mut("i004").unwrap().state = InstanceState::Other;
        field.run(Span::from_min(10));
        field.instances.get_mut("i004").unwrap().state = InstanceState::Active;
    } else {
        rebooted_by_a_person(&mut field, "i004");
        field.run(Span::from_min(10));
    }
    field.run(Span::from_min(2));
    assert_eq!(field.calls, []);
    let wish = Asks { repair: Some("now".into()), ..Asks::default() };
    field.nodes.get_mut("i004").unwrap().intent.asks = Some(Box::new(wish));
    let node = Arc::new(field.nodes["i004"].clone());
    let mut events = VecDeque::from([Event::Cluster(ClusterFact::Applied(node))]);
    let mut intended = 0;
    while let Some(event) = events.pop_front().filter(|_| intended <= 100) {
        for effect in field.step(event) {
            match effect {
                Effect::Record { id, record } => {
                    intended += u32::from(matches!(record, Record::Intended { .. }));
                    events.push_back(Event::Recorded(id));
                }
                Effect::Look { id, look } => {
                    let answer = Ok(field.answer(&look));
                    events.push_back(Event::Looked { look: id, answer });
                }
                Effect::Call { .. } | Effect::List { .. } | Effect::WakeAt(_) => {}
            }
        }
    }
    intended
}

#[test]
fn repair_request_for_a_released_machine_does_not_loop() {
    let intended = [false, true].map(intents_for_a_request);
    assert!(intended.iter().all(|intended| *intended <= 3), "{intended:?} intents within one moment");
}

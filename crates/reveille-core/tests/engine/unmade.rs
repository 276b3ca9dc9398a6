//! Calls that never took effect, and machines that another client is working on: neither is a reason for a more harmful
//! step.

use std::sync::Arc;

use reveille_core::effect::{Call, Outcome};
use reveille_core::event::Event;
use reveille_core::model::incident::FaultKind;
use reveille_core::model::instance::{Fault, InstanceState};
use reveille_core::model::node::Ready;
use reveille_core::model::time::{Span, Time};
use reveille_core::record::Record;
use reveille_core::remedies::Reboot;

use super::fixture::{Field, roster};

const fn s(seconds: i64) -> Span {
    Span::from_s(seconds)
}

/// A person puts a server into rescue mode (Nova: RESCUE, no task), to look at its disk.
#[test]
fn rescued_machine_is_not_deleted() {
    not_deleted_in(InstanceState::Other);
}

/// A person starts a stopped EC2 instance of bare metal: `pending` for a quarter of an hour, with no task.
#[test]
fn machine_started_by_an_operator_is_not_deleted() {
    not_deleted_in(InstanceState::Rebooting);
}

fn not_deleted_in(state: InstanceState) {
    let mut field = Field::new(roster()).populate(10);
    field.run(Span::from_min(5));
    field.instances.get_mut("i004").unwrap().state = state;
    field.nodes.get_mut("i004").unwrap().ready = Ready::Unknown;
    let begun = field.now;
    while field.calls.is_empty() && field.now.since(begun) < Span::from_min(60) {
        field.run(s(10));
    }
    assert!(field.calls.is_empty(), "after {}: {:?}", field.now.since(begun), field.calls);
    // Once the other client has finished, the machine boots. When that did not help, the controller repairs it like any
    // other, gently first.
    field.instances.get_mut("i004").unwrap().state = InstanceState::Active;
    field.run(Span::from_min(15));
    assert_eq!(field.calls, []);
    field.run(Span::from_min(10));
    assert!(matches!(field.calls.first(), Some(Call::Reboot(_))), "{:?}", field.calls);
}

/// Leadership could not be proved for four minutes: by then no answer had come, and the controller was reading the machine
/// back.
#[test]
fn call_that_was_not_sent_is_no_try_although_its_answer_is_late() {
    let mut field = Field::new(roster()).populate(10);
    field.run(Span::from_min(5));
    field.nodes.get_mut("i004").unwrap().ready = Ready::Unknown;
    (field.mute, field.deaf) = (Some(Vec::new()), true);
    let end = field.now + Span::from_min(240);
    let mut given_up = None;
    let is_out = |field: &Field| field.mute.as_ref().is_some_and(|out| !out.is_empty());
    while field.now < end || is_out(&field) {
        field.run(s(10));
        if !is_out(&field) {
            continue;
        }
        // A call without an answer is given up after three minutes.
        if field.now.since(*given_up.get_or_insert(field.now + s(180))) < s(10) {
            continue;
        }
        given_up = None;
        let text: Arc<str> = "leadership could not be proved".into();
        for intent in field.mute.replace(Vec::new()).unwrap_or_default() {
            let outcome = Outcome::NotSent { text: text.clone(), retry_after: None };
            field.feed(Event::Done { intent, outcome });
        }
    }
    let harsher = |call: &&Call| !matches!(call, Call::Reboot(Reboot { hard: false, .. }));
    assert!(field.calls.len() > 2, "it is tried again: {:?}", field.calls);
    assert_eq!(field.calls.iter().find(harsher), None);
    let before = field.state.context().book.tried().clone();
    let field = field.restarted(roster());
    assert_eq!(field.state.context().book.tried(), &before, "as the ledger tells it");
}

/// The one that is silent, and what is done to it in six hours in which each call is answered so and nothing comes of it.
fn calls_to_one_that_is_silent(answer: Outcome) -> Field {
    let mut field = Field::new(roster()).populate(10);
    field.run(Span::from_min(5));
    field.nodes.get_mut("i004").unwrap().ready = Ready::Unknown;
    field.refuses = Some(answer);
    field.run(Span::from_min(360));
    assert!(field.calls.len() > 3, "it is tried again: {:?}", field.calls);
    field
}

/// nova-api is restarted behind its proxy for hours: 502, and the log of actions shows no reboot. Neither a power cycle nor a
/// deletion follows from that.
#[test]
fn reboots_without_answer_or_trace_lead_to_no_harsher_step() {
    let field = calls_to_one_that_is_silent(Outcome::Unknown { text: "502 Bad Gateway".into() });
    let soft = |call: &Call| matches!(call, Call::Reboot(Reboot { hard: false, .. }));
    assert!(field.calls.iter().all(soft), "{:?}", field.calls);
    let mut field = field.restarted(roster());
    field.refuses = None;
    field.run(Span::from_min(90));
    assert!(soft(&field.calls[0]), "{:?}", field.calls);
}

/// What was refused may be allowed in an hour, and is no reason to delete.
#[test]
fn reboot_that_is_refused_leads_to_nothing_harsher() {
    let mut field = calls_to_one_that_is_silent(Outcome::Refused { text: "400: not now".into() });
    let soft = |call: &Call| matches!(call, Call::Reboot(Reboot { hard: false, .. }));
    assert!(field.calls.iter().all(soft), "{:?}", field.calls);
    let before = field.calls.len();
    field.refuses = None;
    field.run(Span::from_min(60));
    assert!(soft(&field.calls[before]), "{:?}", field.calls);
}

/// EC2 has no room to start what our own stop left off: five hundreds for an hour, and it is started when there is.
#[test]
fn machine_failing_to_start_is_started_once_capacity_is_back() {
    let mut field = Field::new(roster()).populate(10);
    field.run(Span::from_min(5));
    field.instances.get_mut("i004").unwrap().state = InstanceState::Stopped;
    field.nodes.get_mut("i004").unwrap().ready = Ready::Unknown;
    field.refuses = Some(Outcome::Unknown { text: "503 InsufficientInstanceCapacity".into() });
    field.run(Span::from_min(60));
    let before = field.calls.len();
    assert!(before > 2 && field.calls.iter().all(|call| matches!(call, Call::Start(_))), "{:?}", field.calls);
    field.refuses = None;
    field.run(Span::from_min(60));
    assert!(field.calls.len() > before, "it is started: {:?}", field.calls);
}

fn denied() -> Option<Outcome> {
    Some(Outcome::Denied { text: "403 Forbidden: Policy doesn't allow os_compute_api:servers:delete".into() })
}

/// Three machines that Nova could not place. The credential may not delete; then it may.
#[test]
fn denied_deletions_do_not_count_as_the_same_fault_again() {
    never_happened(denied());
}

/// The same where the API fails (503).
#[test]
fn failed_deletions_do_not_count_as_the_same_fault_again() {
    never_happened(Some(Outcome::Failed { retry_after: None, text: "503".into() }));
}

/// The same where no call was sent at all because leadership was not proved.
#[test]
fn unsent_deletions_do_not_count_as_the_same_fault_again() {
    never_happened(Some(Outcome::NotSent { retry_after: None, text: "leadership is not proved".into() }));
}

fn never_happened(outcome: Option<Outcome>) {
    let mut field = Field::new(roster()).populate(12);
    field.run(Span::from_min(5));
    for id in ["i001", "i002", "i003"] {
        let found = field.instances.get_mut(id).unwrap();
        found.state = InstanceState::Errored;
        found.fault = Some(Fault { message: "No valid host was found".into(), ..fault() });
        field.nodes.remove(id);
    }
    field.denial = outcome.clone();
    field.run(Span::from_min(60));
    let tried = field.calls.len();
    let deleted = field.records.iter().filter(|r| matches!(r, Record::FaultSeen { .. })).count();
    field.denial = None;
    field.run(Span::from_min(600));
    let why: Vec<String> = ["i001", "i002", "i003"]
        .iter()
        .filter(|id| field.case(id, FaultKind::Errored).is_some())
        .map(|id| field.held(id, FaultKind::Errored))
        .collect();
    assert!(
        field.calls[tried..].iter().any(|call| matches!(call, Call::DeleteInstance(_))),
        "{outcome:?}: {tried} calls, none did anything; {deleted} faults counted; ten hours after the right is back: {why:?}"
    );
}

fn fault() -> Fault {
    Fault { code: 500, message: "".into() }
}

/// Three machines whose reboots are forbidden, and later one whose reboot is allowed.
#[test]
fn denied_reboots_do_not_use_up_the_budget_of_others() {
    one_more(true);
}

/// How long it takes otherwise: passes.
#[test]
fn control_without_denials() {
    one_more(false);
}

fn one_more(deny: bool) {
    let mut field = Field::new(roster()).populate(20);
    field.run(Span::from_min(5));
    let forbidden = ["i001", "i002", "i003"];
    for id in forbidden {
        field.nodes.get_mut(id).unwrap().ready = Ready::Unknown;
    }
    field.denial = denied().filter(|_| deny);
    field.denied_only = forbidden.iter().map(|id| (*id).to_owned()).collect();
    field.run(Span::from_min(30));
    if !deny {
        // The other three are well again.
        forbidden.iter().for_each(|id| field.boots(id));
        field.run(Span::from_min(60));
    }
    field.nodes.get_mut("i015").unwrap().ready = Ready::Unknown;
    let begun = field.now;
    let mut waited = None;
    for _ in 0..(6 * 60) {
        field.run(s(60));
        let on = |call: &Call| matches!(call, Call::Reboot(Reboot { instance, .. }) if instance.as_str() == "i015");
        if field.calls.iter().any(on) {
            waited = Some(field.now.since(begun));
            break;
        }
    }
    let waited = waited.unwrap_or(Span::from_min(9999));
    assert!(
        waited < Span::from_min(15),
        "rebooted only {waited} after it fell silent; {} calls: {}",
        field.calls.len(),
        field.held("i015", FaultKind::NotReady)
    );
}

/// Nova answers 409 while another task of the instance runs, which is over a moment later. Nothing was rebooted.
#[test]
fn reboot_that_was_never_made_is_no_reason_to_delete() {
    let mut field = Field::new(roster()).populate(10);
    field.run(Span::from_min(5));
    field.nodes.get_mut("i004").unwrap().ready = Ready::Unknown;
    let text = "409 Conflict: Cannot 'reboot' instance while it is in task_state powering-off";
    field.refuses = Some(Outcome::Moved { text: text.into() });
    while field.calls.len() < 2 && field.now < Time::from_ms(20_000_000) {
        field.run(s(10));
    }
    field.refuses = None;
    field.run(Span::from_min(40));
    assert!(matches!(field.calls[2], Call::Reboot(_)), "{:#?}", field.calls);
}

/// Nothing was sent for half a day, because the Lease could not be written. Then it can.
#[test]
fn call_that_was_never_sent_is_made_when_it_can_be() {
    let mut field = Field::new(roster()).populate(10);
    field.run(Span::from_min(5));
    field.nodes.get_mut("i004").unwrap().ready = Ready::Unknown;
    let text = "leadership is not proved: the Lease of this roster cannot be read or written";
    field.denial = Some(Outcome::NotSent { retry_after: Some(s(10)), text: text.into() });
    field.run(Span::from_min(14 * 60));
    let tried = field.calls.len();
    field.denial = None;
    field.run(Span::from_min(10 * 60));
    let case = field.case("i004", FaultKind::NotReady).map(|case| case.incident.given_up);
    assert!(
        field.calls.len() > tried,
        "{tried} calls that were not sent, then none in ten hours; given up: {case:?}"
    );
}

/// Another client deletes a machine, and our own deletion of it comes a moment later. The deletion is charged to that
/// client, which may delete the next machine too.
#[test]
fn deletion_by_a_faster_client_is_charged_to_that_client() {
    let mut field = Field::new(roster()).populate(10);
    field.run(Span::from_min(5));
    let found = field.instances.get_mut("i004").unwrap();
    (found.state, found.fault) = (InstanceState::Errored, Some(fault()));
    field.nodes.remove("i004");
    field.denial = Some(Outcome::AlreadySo { text: "there is no instance i004".into() });
    field.run_until(Span::from_min(120), |field| !field.calls.is_empty());
    assert!(matches!(field.calls[..], [Call::DeleteInstance(_)]), "{:?}", field.calls);
    field.delete_machine("i004");
    field.run(Span::from_min(5));
    let others = field.records.iter().filter(|record| matches!(record, Record::OthersActed { .. }));
    assert_eq!(others.count(), 1, "the pool is left alone for a while");
    let held = |record: &Record| matches!(record, Record::Judged { held: true, .. });
    assert!(!field.records.iter().any(held), "it earns nothing");
}

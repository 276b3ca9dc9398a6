//! A deletion that is answered as failed, or read back as not done, and takes effect all the same is a replacement like
//! any other: what comes of it is waited for and counted, also by the process after this one.

use reveille_core::effect::{Call, Outcome};
use reveille_core::engine::{Restored, Start, State};
use reveille_core::model::id::Fence;
use reveille_core::model::instance::{Fault, InstanceState};
use reveille_core::model::node::Ready;
use reveille_core::model::time::Span;
use reveille_core::plan::budget::REPLACEMENT_FAILED;
use reveille_core::record::Record;

use super::fixture::{Field, roster};
use super::steps::{made, min, set, set_ahead, upgraded, without_rejoin};

/// Seven machines, and one that the cloud has given up: its deletion has just been answered as failed.
fn answered_as_failed() -> Field {
    let mut field = Field::new(roster()).populate(7);
    field.run(Span::from_min(2));
    field.fails = true;
    put(&mut field);
    while field.calls.is_empty() {
        field.run(Span::from_s(10));
        assert!(field.now.ms < 3_600_000, "nothing was tried");
    }
    // The machine is still there, as far as the controller has heard.
    assert_eq!(field.state.context().book.destructive_under_way(), 0);
    field
}

fn put(field: &mut Field) {
    field.add_machine("bad", false);
    field.instances.get_mut("bad").expect("it was just put").state = InstanceState::Errored;
}

/// The next process, with this ledger, and the world as it is.
fn taken_over(field: Field, records: Vec<Record>) -> Field {
    let start = Start { fence: Fence(2), acting: true };
    let now = field.now + Span::from_s(5);
    let how = Restored { start, now, last_alive: Some(field.now) };
    let state = State::restore(roster(), how, records.clone());
    let mut next = Field::with(state);
    (next.now, next.records, next.fails) = (now, records, field.fails);
    (next.instances, next.ports, next.nodes) = (field.instances, field.ports, field.nodes);
    next
}

fn in_vain(field: &Field) -> u32 {
    field.state.context().book.fault_count(field.now, &"workers".into(), REPLACEMENT_FAILED, None)
}

#[test]
fn deletion_answered_as_failed_counts_when_machine_goes() {
    let mut field = answered_as_failed();
    field.run(Span::from_min(2));
    assert_eq!(field.state.context().book.destructive_under_way(), 1, "it keeps its slot until it is proved");
    field.run(Span::from_min(60));
    assert_eq!((in_vain(&field), field.calls.len()), (1, 1), "no successor joined");
}

#[test]
fn it_counts_for_the_next_process_too() {
    for rotated in [false, true] {
        let field = answered_as_failed();
        let records = if rotated { field.state.checkpoint() } else { field.records.clone() };
        let mut field = taken_over(field, records);
        let tried = field.state.context().book.tried().values().map(|tried| tried.requested).sum::<u32>();
        assert_eq!(tried, 1, "rotated: {rotated}");
        field.run(Span::from_min(2));
        assert_eq!(field.state.context().book.destructive_under_way(), 1, "rotated: {rotated}");
        // And the one after that reads of a verdict beside an answer that said otherwise.
        let records = if rotated { field.state.checkpoint() } else { field.records.clone() };
        let mut field = taken_over(field, records);
        assert_eq!(field.state.context().book.destructive_under_way(), 1, "rotated: {rotated}");
        field.run(Span::from_min(60));
        assert_eq!(in_vain(&field), 1, "rotated: {rotated}");
    }
}

/// A call that the cloud carries out minutes later: by then its read has said that nothing came of it.
#[test]
fn unobserved_deletion_counts_when_machine_goes() {
    let same: fn(Field) -> Field = |field| field;
    let again: fn(Field) -> Field = |field| {
        let records = field.records.clone();
        taken_over(field, records)
    };
    let rotated: fn(Field) -> Field = |field| {
        let records = field.state.checkpoint();
        taken_over(field, records)
    };
    for (life, next) in [("same", same), ("next", again), ("rotated", rotated)] {
        let mut field = Field::new(roster()).populate(7);
        field.run(Span::from_min(2));
        field.deaf = true;
        put(&mut field);
        let in_vain_yet = |record: &Record| matches!(record, Record::Judged { held: false, .. });
        while !field.records.iter().any(in_vain_yet) {
            field.run(Span::from_s(10));
            assert!(field.now.ms < 3_600_000, "nothing was judged");
        }
        assert_eq!(field.state.context().book.destructive_under_way(), 0, "{life}");
        let mut field = next(field);
        field.deaf = true;
        field.instances.get_mut("bad").expect("it is there").state = InstanceState::Deleting;
        field.run(Span::from_min(1));
        assert_eq!(field.state.context().book.destructive_under_way(), 1, "{life}: no successor joined yet");
        field.instances.remove("bad");
        field.run(Span::from_min(60));
        assert_eq!(in_vain(&field), 1, "{life}: no successor joined");
    }
}

#[test]
fn a_machine_that_stays_is_tried_again_and_counts_once() {
    let mut field = answered_as_failed();
    // Nothing came of it after all.
    put(&mut field);
    field.fails = false;
    field.run(Span::from_min(30));
    assert_eq!(field.calls.len(), 2, "{:?}", field.calls);
    field.run(Span::from_min(60));
    assert_eq!(in_vain(&field), 1);
    let held = |record: &&Record| matches!(record, Record::Judged { held: true, .. });
    assert_eq!(field.records.iter().filter(held).count(), 1, "one of the two took effect");
}

#[test]
fn one_that_gets_well_first_was_not_replaced() {
    let mut field = answered_as_failed();
    field.add_machine("bad", true);
    field.run(Span::from_min(5));
    let gone = field.instances.get_mut("bad").expect("it is there");
    gone.state = InstanceState::Deleting;
    field.nodes.remove("bad");
    field.run(Span::from_min(60));
    assert_eq!(in_vain(&field), 0);
}

#[test]
fn machine_going_after_our_failed_deletion_is_blamed_on_others() {
    for failed in [false, true] {
        let mut field = Field::new(roster()).populate(7);
        field.run(Span::from_min(2));
        (field.deaf, field.fails) = (true, failed);
        put(&mut field);
        field.run(Span::from_min(5));
        assert!(!field.calls.is_empty(), "it was tried");
        let mut field = if failed { field } else { over_a_restart(field) };
        field.instances.get_mut("bad").expect("it is there").state = InstanceState::Deleting;
        field.run(Span::from_min(1));
        let others =
            field.state.context().others.of(&"workers".into()).next().map(|others| others.what.to_string());
        assert!(others.is_some_and(|what| what.contains("bad")), "answered as failed: {failed}");
    }
}

fn over_a_restart(field: Field) -> Field {
    let records = field.records.clone();
    let mut next = taken_over(field, records);
    next.deaf = true;
    next.run(Span::from_min(1));
    next
}

/// Its build failed.
fn is_in_error(field: &mut Field, id: &str, text: &str) {
    let instance = field.instances.get_mut(id).unwrap();
    instance.state = InstanceState::Errored;
    instance.fault = Some(Fault { code: 500, message: text.into() });
    field.nodes.remove(id);
}

/// Two machines are in ERROR. The deletion of the first is answered with 504, and takes effect all the same: that shows within a
/// minute. One at once: the second waits for it, and then for the successor.
#[test]
fn second_machine_is_not_deleted_while_first_fate_is_unknown() {
    for how in ["nothing", "restart", "rotation, restart"] {
        let mut field = Field::new(without_rejoin()).populate(10);
        field.run(min(20));
        is_in_error(&mut field, "i004", "No valid host was found.");
        is_in_error(&mut field, "i006", "Build was aborted.");
        field.fails = true;
        field.run_until(min(30), |field| !field.calls.is_empty());
        assert_eq!(field.calls.len(), 1, "{how}: {:?}", made(&field));
        let since = field.now;
        field.fails = false;
        if how.starts_with("rotation") {
            field.records = field.state.checkpoint();
        }
        if how.ends_with("restart") {
            field = field.restarted(without_rejoin());
        }
        let calls = field.calls.len();
        field.run_until(min(60), |field| field.calls.len() > calls);
        let took = field.now.since(since);
        assert!(took >= min(20), "{how}: {:?}: the second {took} after the first", made(&field));
        assert!(field.calls.len() > calls, "{how}: never");
    }
}

/// The same of reboots: that the first one was made shows in the log of actions, and its machine has the time of a boot.
#[test]
fn second_machine_is_not_rebooted_while_first_fate_is_unknown() {
    for how in ["nothing", "restart"] {
        let mut field = Field::new(without_rejoin()).populate(10);
        field.run(min(20));
        for id in ["i004", "i006"] {
            set(&mut field, id, Ready::Unknown);
        }
        field.fails = true;
        field.run_until(min(30), |field| !field.calls.is_empty());
        assert_eq!(field.calls.len(), 1, "{how}: {:?}", made(&field));
        let since = field.now;
        field.fails = false;
        if how == "restart" {
            field = field.restarted(without_rejoin());
        }
        let calls = field.calls.len();
        field.run_until(min(60), |field| field.calls.len() > calls);
        let took = field.now.since(since);
        assert!(took >= min(14), "{how}: {:?}: the second {took} after the first", made(&field));
        assert!(field.calls.len() > calls, "{how}: never");
    }
}

/// What was answered with 504 and was not made keeps its place for a moment only.
#[test]
fn finally_failed_call_blocks_no_other_machine() {
    let mut field = Field::new(without_rejoin()).populate(10);
    field.run(min(20));
    for id in ["i004", "i006"] {
        set(&mut field, id, Ready::Unknown);
    }
    field.refuses = Some(Outcome::Failed { text: "504".into(), retry_after: Some(min(30)) });
    field.run_until(min(30), |field| !field.calls.is_empty());
    assert_eq!(field.calls.len(), 1, "{:?}", made(&field));
    field.refuses = None;
    let since = field.now;
    let first = field.calls[0].clone();
    field.run_until(min(30), |field| field.calls.len() > 1);
    let took = field.now.since(since);
    assert!(field.calls.last() != Some(&first) && took <= min(4), "{:?} after {took}", made(&field));
    assert!(matches!(field.calls[..], [Call::Reboot(_), Call::Reboot(_)]), "{:?}", made(&field));
}

/// A service may say "in two hours", and the machine is down for as long: half an hour is the longest wait between two tries.
#[test]
fn call_deferred_for_hours_is_retried_after_longest_wait() {
    let mut field = Field::new(without_rejoin()).populate(10);
    field.run(min(20));
    set(&mut field, "i004", Ready::Unknown);
    field.refuses = Some(Outcome::Failed { text: "429".into(), retry_after: Some(min(120)) });
    field.run_until(min(30), |field| !field.calls.is_empty());
    field.refuses = None;
    let since = field.now;
    field.run_until(min(150), |field| field.calls.len() > 1);
    let took = field.now.since(since);
    assert!((min(25)..=min(35)).contains(&took), "{:?} after {took}", made(&field));
}

/// A deletion is answered with 504, and may come for ten minutes. Our clock is set ahead by half an hour meanwhile, the ledger is
/// rotated and we are restarted; a second machine has the same fault, of which one deletion is allowed.
#[test]
fn possible_late_deletion_counts_for_its_fault_after_rotation() {
    let mut acted = Vec::new();
    for how in ["nothing", "jump", "restart", "jump, restart", "rotation, restart", "jump, rotation, restart"]
    {
        let mut wanted = roster();
        wanted.limits.same_fault_stops_at = 1;
        let mut field = Field::new(wanted.clone()).populate(10);
        field.run(min(20));
        is_in_error(&mut field, "i004", "No valid host was found.");
        field.refuses = Some(Outcome::Failed { retry_after: Some(min(90)), text: "504".into() });
        field.run_until(min(20), |field| !field.calls.is_empty());
        field.refuses = None;
        assert_eq!(made(&field), ["delete instance i004"]);
        field.run(Span::from_s(20));
        if how.contains("jump") {
            set_ahead(&mut field, min(30));
            field.run(Span::from_s(20));
        }
        if how.contains("restart") {
            field = upgraded(field, wanted, how.contains("rotation"));
        }
        field.run(Span::from_s(20));
        field.calls.clear();
        is_in_error(&mut field, "i005", "No valid host was found.");
        field.run(min(7));
        if !field.calls.is_empty() {
            acted.push((how, made(&field)));
        }
    }
    assert_eq!(acted, []);
}

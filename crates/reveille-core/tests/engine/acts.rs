//! What is concluded after an act: from what the real service shows of it, and from nothing else.

use std::sync::Arc;

use reveille_core::decide::Next;
use reveille_core::effect::{Call, Outcome};
use reveille_core::model::hosting::{GroupPhase, Hosting, OwnerGroup};
use reveille_core::model::incident::FaultKind;
use reveille_core::model::instance::InstanceState;
use reveille_core::model::node::Ready;
use reveille_core::model::roster::Limits;
use reveille_core::model::time::{Span, Time};
use reveille_core::record::Record;
use reveille_core::remedies::Reboot;

use super::fixture::{CLOUD, Field, boot_id, roster};

const ONE: &str = "i004";

const fn s(seconds: i64) -> Span {
    Span::from_s(seconds)
}

/// Ten machines, all Ready, of which one is on EC2; a group keeps it where `in_group` says so. Then its kubelet falls silent.
fn silent_on_ec2(in_group: bool) -> Field {
    let mut roster = roster();
    for pool in roster.pools.values_mut() {
        pool.through_group = true;
    }
    // As every roster of EC2 has it (`CloudRef::settles_within`).
    roster.settles.insert(CLOUD.into(), Span::from_min(5));
    let word = "InService".into();
    let group = OwnerGroup { name: "asg".into(), phase: GroupPhase::Kept, word, protected: false };
    let hosting = Hosting { group: in_group.then_some(group), ..Hosting::default() };
    let mut field = Field::new(roster).populate(10);
    field.instances.get_mut(ONE).unwrap().hosting = Some(Arc::new(hosting));
    field.run(Span::from_min(5));
    field.nodes.get_mut(ONE).unwrap().ready = Ready::Unknown;
    field
}

/// Runs until that many calls were made, for an hour and a half at most; says when the last of them was.
fn until_calls(field: &mut Field, count: usize) -> Option<Time> {
    field.run_until(Span::from_min(90), |field| field.calls.len() >= count);
    (field.calls.len() >= count).then_some(field.now)
}

fn soft_reboots(field: &Field) -> usize {
    field.calls.iter().filter(|call| matches!(call, Call::Reboot(Reboot { hard: false, .. }))).count()
}

#[test]
fn late_success_of_ec2_soft_reboot_prevents_deletion() {
    let mut field = silent_on_ec2(true);
    until_calls(&mut field, 1).expect("it is rebooted");
    field.run(s(360));
    assert_eq!(
        field.calls.len(),
        soft_reboots(&field),
        "nothing but reboots before it is back: {:?}",
        field.calls
    );
    field.boots(ONE);
    field.run(Span::from_min(30));
    assert_eq!((soft_reboots(&field), field.calls.len()), (1, 1), "{:?}", field.calls);
    assert!(field.case(ONE, FaultKind::NotReady).is_none(), "the incident is closed");
}

#[test]
fn ec2_soft_reboot_unseen_gets_its_whole_patience_and_no_more() {
    let mut field = silent_on_ec2(true);
    let rebooted = until_calls(&mut field, 1).expect("it is rebooted");
    let deleted = until_calls(&mut field, 2).expect("it is replaced in the end");
    assert!(matches!(field.calls[1], Call::DeleteInstance(_)), "{:?}", field.calls);
    // Fifteen minutes to join, one of dwell: the pool's defaults.
    let waited = deleted.since(rebooted);
    assert!(waited >= Span::from_min(16), "deleted {waited} after its reboot");
    assert!(waited <= Span::from_min(25), "deleted only {waited} after its reboot");
}

#[test]
fn ec2_standalone_machine_is_not_power_cycled_in_mid_boot() {
    let mut field = silent_on_ec2(false);
    until_calls(&mut field, 1).expect("it is rebooted");
    field.run(Span::from_min(12));
    assert_eq!(field.calls.len(), 1, "{:?}", field.calls);
    field.boots(ONE);
    field.run(Span::from_min(20));
    assert_eq!(field.calls.len(), 1, "{:?}", field.calls);
}

#[test]
fn openstack_reboot_with_unreadable_log_gets_its_patience() {
    let mut field = Field::new(roster()).populate(10);
    field.run(Span::from_min(5));
    field.nodes.get_mut(ONE).unwrap().ready = Ready::Unknown;
    field.no_action_log = true;
    until_calls(&mut field, 1).expect("it is rebooted");
    field.run(Span::from_min(12));
    assert_eq!(field.calls.len(), 1, "{:?}", field.calls);
}

/// A call that Nova carries out minutes late: judged in vain, and in the action log before the next step.
#[test]
fn openstack_reboot_after_its_verdict_gets_full_patience() {
    let mut field = Field::new(roster()).populate(10);
    field.run(Span::from_min(5));
    field.nodes.get_mut(ONE).unwrap().ready = Ready::Unknown;
    field.deaf = true;
    until_calls(&mut field, 1).expect("it is rebooted");
    let in_vain = |record: &Record| matches!(record, Record::Judged { held: false, .. });
    while !field.records.iter().any(in_vain) {
        field.run(s(10));
    }
    field.deaf = false;
    field.run(Span::from_min(12));
    assert_eq!(field.calls.len(), 1, "{:?}", field.calls);
    field.boots(ONE);
    field.run(Span::from_min(20));
    assert_eq!(field.calls.len(), 1, "{:?}", field.calls);
}

/// EC2 answers the first reboot with 504 and carries it out all the same; the same is made once more, is seen, and the machine is
/// well. Then the first one comes: it is on its way up, whatever was tried before. Seed 3232452.
#[test]
fn ec2_reboot_answered_504_may_come_after_its_retry() {
    let mut field = silent_on_ec2(true);
    field.refuses = Some(Outcome::Failed { text: "504 Gateway Timeout".into(), retry_after: None });
    until_calls(&mut field, 1).expect("it is rebooted");
    field.run(s(5));
    field.refuses = None;
    until_calls(&mut field, 2).expect("it is rebooted once more");
    field.boots(ONE);
    field.run(Span::from_min(3));
    assert!(field.case(ONE, FaultKind::NotReady).is_none(), "the incident is closed");
    field.nodes.get_mut(ONE).unwrap().ready = Ready::Unknown;
    field.run(Span::from_min(15));
    assert_eq!((soft_reboots(&field), field.calls.len()), (2, 2), "{:?}", field.calls);
    until_calls(&mut field, 3).expect("what does not come back is replaced in the end");
}

/// The call is answered with 504, and Nova reboots the machine all the same. Nova's action log says so, but the controller
/// did not read it before it made the same call again.
#[test]
fn reboot_answered_as_failed_but_executed_gets_time_to_boot() {
    for restarts in [false, true] {
        let mut field = Field::new(roster()).populate(10);
        field.run(Span::from_min(5));
        field.nodes.get_mut(ONE).unwrap().ready = Ready::Unknown;
        field.fails = true;
        until_calls(&mut field, 1).expect("it is rebooted");
        field.nodes.get_mut(ONE).unwrap().ready = Ready::Unknown;
        let mut field = if restarts { field.restarted(roster()) } else { field };
        field.run(Span::from_min(4));
        assert_eq!(field.calls.len(), usize::from(!restarts), "in mid-boot: {:?}", field.calls);
    }
}

fn credits(field: &Field) -> usize {
    let credit = |record: &&Record| matches!(record, Record::Width { proved: Some(_), .. });
    field.records.iter().filter(credit).count()
}

/// One machine of ten is silent until it is rebooted; then its kubelet is Ready, after a boot or without one.
fn ready_after_reboot(booted: bool) -> Field {
    let mut field = Field::new(roster()).populate(10);
    field.run(Span::from_min(5));
    field.nodes.get_mut(ONE).unwrap().ready = Ready::Unknown;
    until_calls(&mut field, 1).expect("it is rebooted");
    if booted {
        field.boots(ONE);
    } else {
        field.nodes.get_mut(ONE).unwrap().ready = Ready::True;
    }
    field.run(Span::from_min(10));
    assert!(field.case(ONE, FaultKind::NotReady).is_none(), "the incident is closed");
    field
}

#[test]
fn machine_that_came_right_by_itself_gives_no_credit() {
    assert_eq!(credits(&ready_after_reboot(true)), 1, "its kubelet reports another boot id");
    assert_eq!(credits(&ready_after_reboot(false)), 0, "its kubelet reports the same boot id");
}

/// Its Node was deleted and is back after the reboot, not Ready: a new question, and no credit for the reboot. Seed 3252109.
#[test]
fn machine_whose_node_is_back_and_not_ready_gives_no_credit() {
    let credits_if = |ready| {
        let mut field = Field::new(roster()).populate(10);
        field.run(Span::from_min(5));
        let mut node = field.nodes.remove(ONE).unwrap();
        until_calls(&mut field, 1).expect("it is rebooted");
        (node.ready, node.boot_id) = (ready, Some(boot_id(ONE, 1)));
        field.nodes.insert(ONE.into(), node);
        field.run(Span::from_min(3));
        assert!(field.case(ONE, FaultKind::Vanished).is_none(), "the incident is closed");
        credits(&field)
    };
    assert_eq!(credits_if(Ready::True), 1);
    assert_eq!(credits_if(Ready::False), 0);
}

/// Sixteen of forty machines fell silent for eight minutes; says which.
fn silent_together() -> (Field, Vec<String>) {
    let mut roster = roster();
    roster.limits = Limits { at_once: 4, per_hour: 40, ..Limits::default() };
    let mut field = Field::new(roster).populate(40);
    for (number, instance) in field.instances.values_mut().enumerate() {
        instance.zone = Some(format!("z{}", number % 4).as_str().into());
    }
    field.run(Span::from_min(5));
    let silent: Vec<String> = field.nodes.keys().take(16).cloned().collect();
    for id in &silent {
        field.nodes.get_mut(id).unwrap().ready = Ready::Unknown;
    }
    field.run(Span::from_min(8));
    (field, silent)
}

#[test]
fn machines_that_recover_together_are_left_alone() {
    let (mut field, silent) = silent_together();
    // One does not come back.
    for id in &silent[1..] {
        field.nodes.get_mut(id).unwrap().ready = Ready::True;
        field.run(s(10));
    }
    assert!(field.calls.is_empty(), "nothing is done to machines that come back: {:?}", field.calls);
    field.run(Span::from_min(5));
    assert_eq!(field.calls.len(), 1, "the one that stayed away is rebooted: {:?}", field.calls);
}

/// As many machines are created as come back: the number of those that are away stays the same.
#[test]
fn newcomers_do_not_hide_that_others_come_back() {
    for newcomers in [false, true] {
        let (mut field, silent) = silent_together();
        for (number, id) in silent.iter().enumerate() {
            field.nodes.get_mut(id).unwrap().ready = Ready::True;
            if newcomers {
                field.add_machine(&format!("new{number:02}"), false);
            }
            field.run(s(20));
        }
        assert!(field.calls.is_empty(), "newcomers: {newcomers}: {:?}", field.calls);
    }
}

/// While they come back, the watch begins to show an old state: only their leases tell, which are listed apart. Those that are
/// still away would have come back a moment later.
#[test]
fn renewed_leases_show_recovery_while_the_watch_is_stale() {
    let (mut field, silent) = silent_together();
    let (shown, hidden) = silent.split_at(silent.len() / 2);
    for id in shown {
        field.nodes.get_mut(id).unwrap().ready = Ready::True;
        field.run(s(10));
    }
    for id in hidden {
        field.run(s(20));
        field.renews.push(id.clone());
    }
    assert!(field.calls.is_empty(), "{:?}", field.calls);
}

#[test]
fn denied_call_is_made_again_and_ends_no_repair() {
    let mut field = Field::new(roster()).populate(10);
    field.run(Span::from_min(5));
    field.ports.get_mut(ONE).unwrap().groups = Box::new([]);
    field.denial = Some(Outcome::Denied { text: "403 Forbidden: Policy doesn't allow it".into() });
    field.run(Span::from_min(200));
    let tries = field.calls.len();
    assert!(tries > 5, "it is tried again: {tries}");
    assert!(tries < 20, "later and later: {tries}");
    let case = field.case(ONE, FaultKind::GroupMissing).expect("the group is missing");
    assert_eq!(
        (case.incident.attempts.len(), case.incident.given_up),
        (1, false),
        "bounded, and not given up"
    );
    let decision = reveille_core::decide::decide(&field.state.context(), case);
    let Next::Wait { why, .. } = decision.next else { panic!("{decision:?}") };
    assert!(why.contains("403 Forbidden"), "{why}");
    field.denial = None;
    field.run(Span::from_min(31));
    assert!(field.case(ONE, FaultKind::GroupMissing).is_none(), "the right came back");
}

#[test]
fn denied_reboot_is_no_reason_to_delete() {
    let mut field = Field::new(roster()).populate(10);
    field.run(Span::from_min(5));
    field.nodes.get_mut(ONE).unwrap().ready = Ready::Unknown;
    field.denial = Some(Outcome::Denied { text: "403 Forbidden: Policy doesn't allow it".into() });
    field.run(Span::from_min(120));
    assert!(!field.calls.is_empty());
    assert_eq!(soft_reboots(&field), field.calls.len(), "{:?}", field.calls);
}

/// EC2 shows nothing of a soft reboot. Half a minute after it a person deletes the Node: another fault of the same machine, which
/// is on its way up all the same.
#[test]
fn reboot_under_way_keeps_patience_when_its_fault_changes() {
    let mut field = silent_on_ec2(false);
    let rebooted = until_calls(&mut field, 1).expect("it is rebooted");
    field.nodes.remove(ONE);
    let again = until_calls(&mut field, 2).expect("in the end it is tried again");
    let patience = again.since(rebooted);
    assert!(patience >= Span::from_min(10), "once more {patience} after its reboot: {:?}", field.calls);
}

/// EC2 takes minutes to stop a machine whose guest is dead. The call ends before that, and the machine is not started.
#[test]
fn ec2_machine_whose_stop_took_long_is_started_soon() {
    let mut field = silent_on_ec2(false);
    until_calls(&mut field, 1).expect("it is rebooted");
    let text = Arc::from("it is stopping and not started yet: not stopped yet");
    field.refuses = Some(Outcome::Unknown { text });
    until_calls(&mut field, 2).expect("it is stopped and started");
    let stopped = field.now;
    field.refuses = None;
    field.instances.get_mut(ONE).unwrap().state = InstanceState::Stopped;
    until_calls(&mut field, 3).expect("it is started");
    assert!(matches!(field.calls[2], Call::Start(_)), "{:?}", field.calls);
    let off = field.now.since(stopped);
    assert!(off <= Span::from_min(8), "it was off for {off}");
}

/// The result of a command "might not be immediately visible to all subsequent commands" (Amazon EC2 Developer Guide, "Eventual
/// consistency in the Amazon EC2 API"). The first reads after the start show `stopped`; the machine boots.
#[test]
fn stale_stopped_read_after_ec2_start_opens_no_new_incident() {
    let mut field = silent_on_ec2(false);
    until_calls(&mut field, 2).expect("it is rebooted, then stopped and started");
    assert!(matches!(field.calls[1], Call::Reboot(Reboot { hard: true, .. })), "{:?}", field.calls);
    let before = field.case(ONE, FaultKind::NotReady).expect("it is not Ready").incident.id;
    let is_seen = |field: &Field| {
        let case = field.case(ONE, FaultKind::NotReady);
        case.is_some_and(|case| case.incident.attempts.last().is_some_and(|last| last.readback.is_some()))
    };
    field.run_until(s(120), is_seen);
    assert!(is_seen(&field), "the launch is seen");
    field.instances.get_mut(ONE).unwrap().state = InstanceState::Stopped;
    field.run(s(30));
    assert!(field.case(ONE, FaultKind::Stopped).is_none(), "that reading is out of date");
    field.instances.get_mut(ONE).unwrap().state = InstanceState::Active;
    field.run(s(60));
    assert_eq!(field.case(ONE, FaultKind::NotReady).map(|case| case.incident.id), Some(before));
    assert_eq!(field.calls.len(), 2, "{:?}", field.calls);
}

/// A person who stops the machine just after our start of it: it is off when the cloud agrees with itself.
#[test]
fn ec2_machine_staying_stopped_after_start_is_reported_stopped() {
    let mut field = silent_on_ec2(false);
    until_calls(&mut field, 2).expect("it is rebooted, then stopped and started");
    field.run(s(60));
    field.instances.get_mut(ONE).unwrap().state = InstanceState::Stopped;
    field.run(Span::from_min(12));
    assert!(field.case(ONE, FaultKind::Stopped).is_some(), "{:?}", field.calls);
}

/// What stop and start does not cure goes on up its escalation, although the machine had another fault in between: it was off.
#[test]
fn ec2_machine_not_cured_by_stop_and_start_is_deleted_at_last() {
    let mut field = silent_on_ec2(false);
    let end = field.now + Span::from_min(600);
    let mut seen = 0;
    while field.now < end {
        field.run(s(10));
        let Some(last) = field.calls.last().filter(|_| field.calls.len() > seen) else { continue };
        seen = field.calls.len();
        let left_off = match last {
            Call::Reboot(Reboot { hard: true, .. }) => InstanceState::Stopped,
            Call::Start(_) => InstanceState::Active,
            Call::DeleteInstance(_) => break,
            _ => continue,
        };
        field.instances.get_mut(ONE).unwrap().state = left_off;
    }
    let hard =
        field.calls.iter().filter(|call| matches!(call, Call::Reboot(Reboot { hard: true, .. }))).count();
    assert!(hard >= 1 && soft_reboots(&field) + hard <= 3, "{:?}", field.calls);
    assert!(matches!(field.calls.last(), Some(Call::DeleteInstance(_))), "{:?}", field.calls);
}

/// Joins may take for ever there; one that had joined before this process began has no such time.
#[test]
fn machine_joined_before_restart_is_repaired_without_join_limit() {
    let mut roster = roster();
    roster.pools.values_mut().for_each(|pool| pool.deadlines.join_within = None);
    let mut field = Field::new(roster.clone()).populate(10);
    field.run(Span::from_min(5));
    field.nodes.get_mut(ONE).unwrap().ready = Ready::Unknown;
    let mut next = field.restarted(roster);
    until_calls(&mut next, 1).expect("it is rebooted");
}

//! What the hunt found, each as the smallest course that showed it.

use reveille_core::model::access::{RoleRef, UserRef};
use reveille_core::model::cause::Cause;
use reveille_core::model::incident::FaultKind;
use reveille_core::model::roster::Mode;
use reveille_core::model::roster::ServiceUser;
use reveille_core::record::Record;
use reveille_sim::drive::Mishap;
use reveille_sim::world::fault::{CallLie, Fault};
use reveille_sim::world::layout::{CLOUD, Layout, PoolPlan};
use reveille_sim::world::vm::Trouble;

use crate::field::*;

/// Timers that were set on the clock before it went back would have been waited for twice.
#[test]
fn a_clock_that_goes_back_delays_nothing_by_as_much() {
    let mut field = Field::new(Layout::fleet(20, 6));
    let victim = field.machine(0);
    field.fault(Fault::Breaks(victim.clone(), Trouble::KubeletHung));
    field.run(min(3));
    field.0.mishap_in(s(0), Mishap::Jump(-3 * 3_600_000));
    field.run(min(20));
    assert_eq!(field.reboots(), 1, "{}", field.tail());
    field.run(min(10));
    field.ends_well();
}

/// The cluster keeps events for an hour. What was concluded from one does not become a guess when it is gone, not even
/// after a restart.
#[test]
fn who_deleted_a_node_is_still_known_when_the_event_is_gone() {
    let offers = |pool: &mut PoolPlan| (pool.repair.reboot, pool.repair.replace) = (Mode::Off, Mode::Off);
    let mut field = Field::new(Layout::fleet(21, 6).pool(offers));
    let victim = field.machine(0);
    field.fault(Fault::NodeDeletedByController(victim.clone()));
    field.run(min(70));
    field.0.mishap_in(s(0), Mishap::Crash(s(20)));
    field.run(min(10));
    let case = field.case(&victim, FaultKind::Vanished).expect("it is still away");
    assert_eq!(case.incident.findings[0].cause, Cause::NodeDeletedByCloudController, "{}", field.tail());
    field.clean();
}

/// A machine that was made with the name of one that is gone never joined. What was said of the other's node is not about
/// it, and it has its own time to come.
#[test]
fn a_newcomer_is_not_taken_for_the_one_whose_name_it_has() {
    let mut field = Field::new(Layout { plain_names: true, names_reused: true, ..Layout::fleet(22, 5) });
    let victim = field.machine(4);
    let before = field.machines();
    field.fault(Fault::BadImage(workers(), Some(Trouble::Broken)));
    field.fault(Fault::ForeignDelete(victim));
    field.run(min(12));
    let newcomer = field.newcomer(&before).expect("the owner makes another");
    assert!(field.case(&newcomer, FaultKind::Vanished).is_none(), "{:?}\n{}", field.open(), field.tail());
    assert!(field.case(&newcomer, FaultKind::NeverJoined).is_some(), "{:?}\n{}", field.open(), field.tail());
    assert_eq!(field.destructive(), 0, "its time to join is not over\n{}", field.tail());
    field.clean();
}

/// When a zone comes back, its machines come back one after another: the last of them is not rebooted because the first
/// answers already.
#[test]
fn a_zone_that_comes_back_is_given_a_while() {
    for seed in 0..20 {
        let mut field = Field::new(Layout::fleet(seed, 6));
        field.fault(Fault::ZoneDark("nova-b".into(), min(14)));
        field.run(min(40));
        assert_eq!(field.destructive(), 0, "seed {seed}\n{}", field.tail());
        field.ends_well();
    }
}

/// The ledger was written under a clock that was ahead.
#[test]
fn a_restart_after_the_clock_went_back_counts_from_now() {
    let mut field = Field::new(Layout::fleet(23, 6));
    let victim = field.machine(0);
    field.fault(Fault::StuckDeleting(victim));
    field.run(min(15));
    field.0.mishap_in(s(0), Mishap::Crash(s(30)));
    field.0.mishap_in(s(10), Mishap::Jump(-2 * 3_600_000));
    field.run(min(180));
    field.clean();
}

/// How long an instance was building while our process slept is not known: it is not deleted as stuck on waking.
#[test]
fn a_build_is_not_stuck_because_we_slept() {
    let mut field = Field::new(Layout::fleet(24, 12));
    field.fault(Fault::Launch { pool: workers(), trouble: None });
    field.0.mishap_in(s(7), Mishap::Pause(min(45)));
    field.run(min(53));
    assert_eq!(field.destructive(), 0, "{}", field.tail());
    assert_eq!(field.verdicts(FaultKind::StuckBuilding), [], "{}", field.tail());
    field.clean();
}

/// A stale second node names an instance; then its real node is deleted. What the stale one says of a kubelet is not about this
/// machine's, so it counts as vanished, and not as one whose kubelet is silent.
#[test]
fn a_stale_node_does_not_speak_for_a_machine_whose_own_is_gone() {
    let mut field = Field::new(Layout::fleet(7, 8));
    let machine = field.machine(0);
    field.fault(Fault::NodeTwin(machine.clone()));
    field.run(min(3));
    field.fault(Fault::NodeDeletedByPerson(machine.clone()));
    field.run(min(3));
    assert!(field.case(&machine, FaultKind::NotReady).is_none(), "{:?}", field.open());
    let case = field.case(&machine, FaultKind::Vanished).expect("its node is gone");
    let label = case.incident.findings[0].cause.label();
    assert_eq!(label, "node-object-deleted", "{}", field.tail());
    field.clean();
}

/// The clock goes back after the console was read: what was read an hour ago is not taken for fresh.
#[test]
fn evidence_is_as_old_as_before_when_the_clock_goes_back() {
    let mut field = Field::new(Layout::fleet(25, 6));
    let victim = field.machine(0);
    field.fault(Fault::Breaks(victim.clone(), Trouble::KubeletHung));
    field.0.mishap_in(min(9), Mishap::Paused(workers(), min(45)));
    field.run(min(13));
    assert!(field.held(&victim, FaultKind::NotReady).contains("paused"), "{}", field.tail());
    field.0.mishap_in(s(0), Mishap::Jump(-3 * 3_600_000));
    field.run(min(60));
    assert_eq!(field.reboots(), 1, "{}", field.tail());
    field.clean();
}

/// The clock goes back while answers take minutes: what a user held when that was asked is not taken for what it holds now.
#[test]
fn role_answer_keeps_its_age_when_the_clock_goes_back() {
    let user = UserRef::Name { name: "ccm".into(), domain: None };
    let roles = vec![RoleRef::Name("member".into())];
    let mut layout = Layout::fleet(27, 2);
    layout.access.users = vec![ServiceUser { cloud: CLOUD.into(), user: user.into(), roles }];
    (layout.access.repair, layout.access.check_every) = (Mode::Act, min(5));
    let mut field = Field::new(layout);
    field.fault(Fault::AnswersLate(min(12)));
    field.fault(Fault::RoleLost("ccm".into(), "member".into()));
    for minute in 2..10 {
        field.0.mishap_in(min(minute), Mishap::Jump(-30 * 60_000));
    }
    field.run(min(40));
    field.ends_well();
}

/// What is being proved when the clock goes back keeps its slot for as long as before, and not for three hours more.
#[test]
fn a_proof_is_not_waited_for_longer_because_the_clock_went_back() {
    let one = |limits: &mut reveille_core::model::roster::Limits| limits.at_once = 1;
    let mut field = Field::new(Layout::fleet(26, 8).limits(one));
    let (first, second) = (field.machine(0), field.machine(1));
    field.fault(Fault::Breaks(first, Trouble::Broken));
    field.run(min(15));
    assert_eq!(field.reboots(), 1, "{}", field.tail());
    field.0.mishap_in(s(0), Mishap::Jump(-3 * 3_600_000));
    field.fault(Fault::Breaks(second.clone(), Trouble::KubeletHung));
    field.run(min(50));
    assert!(field.well(&second), "{:?}\n{}", field.held(&second, FaultKind::NotReady), field.tail());
    field.clean();
}

/// A machine made while no process watched, with the name of one that is gone, is not taken for that one: no ledger knows it. Its
/// own console says that its first boot failed: a reboot is of no use.
#[test]
fn a_machine_that_was_made_meanwhile_is_asked_by_its_console() {
    let (fleet, at_once) = (Layout::fleet(27, 5), (s(1), s(1)));
    let names = Layout { plain_names: true, names_reused: true, deletes_within: at_once, ..fleet };
    let mut field = Field::new(names);
    let victim = field.machine(4);
    let before = field.machines();
    field.fault(Fault::BadImage(workers(), Some(Trouble::NoNetwork)));
    field.0.mishap_in(s(0), Mishap::Crash(min(4)));
    field.fault_in(s(5), Fault::ForeignDelete(victim));
    field.run(min(5));
    let newcomer = field.newcomer(&before).expect("the owner makes another");
    assert!(field.case(&newcomer, FaultKind::NeverJoined).is_some(), "{:?}\n{}", field.open(), field.tail());
    field.run(min(40));
    assert!(!field.exists(&newcomer), "{}", field.tail());
    assert_eq!(field.reboots(), 0, "{}", field.tail());
    field.clean();
}

/// A rollout is under way when the clock jumps, or we sleep: it may be under way still.
#[test]
fn a_rollout_is_not_over_because_the_clock_jumped() {
    let mut field = Field::new(Layout::fleet(28, 8));
    let victim = field.machine(0);
    field.fault(Fault::Rollout(workers()));
    field.run(min(4));
    field.0.mishap_in(s(0), Mishap::Jump(3 * 3_600_000));
    field.fault(Fault::Breaks(victim.clone(), Trouble::KubeletHung));
    field.run(min(20));
    assert!(field.held(&victim, FaultKind::NotReady).contains("rolling"), "{}", field.tail());
    assert_eq!(field.destructive(), 0, "{}", field.tail());
    field.run(min(20));
    assert_eq!(field.reboots(), 1, "{}", field.tail());
    field.clean();
}

/// A cell is down and comes back: whose id was denied a minute ago is asked for once more before its Node is deleted.
#[test]
fn a_node_stays_when_its_instance_is_back_a_moment_before() {
    for lasts in (60..120).step_by(2) {
        let mut field = Field::new(Layout::fleet(29, 8));
        let victim = field.machine(0);
        field.fault(Fault::Breaks(victim.clone(), Trouble::Broken));
        field.fault_in(min(2), Fault::SomeUnlisted { machines: vec![victim], lasts: s(lasts), denies: true });
        field.run(min(6));
        field.clean();
    }
}

/// A call is not answered in time, its effect is seen by a read, and the disk is full: the verdict is asked for again and
/// again, and the answer that comes at last changes nothing of it.
#[test]
fn a_verdict_that_is_asked_for_again_is_the_same_verdict() {
    // Few draw delays in which the answer comes between the verdict and its being asked for again.
    for seed in [67, 120, 303, 336] {
        let mut field = Field::new(Layout::fleet(seed, 6));
        field.fault(Fault::Breaks(field.machine(0), Trouble::KubeletHung));
        assert!(field.0.run_until(min(40), |drive| drive.counts().calls > 0), "{}", field.tail());
        field.fault(Fault::AnswersLate(min(11)));
        field.0.mishap_in(s(165), Mishap::DiskFull(min(6)));
        field.run(min(40));
        assert_eq!(field.reboots(), 1, "seed {seed}\n{}", field.tail());
        field.clean();
    }
}

/// A call is overtaken by the next, so that its answer comes minutes after it was judged in vain. It is under way no more.
#[test]
fn failed_call_is_not_under_way_again_by_a_late_answer() {
    let reboots_only = |pool: &mut PoolPlan| pool.repair.replace = Mode::Propose;
    let mut field = Field::new(Layout::fleet(30, 26).pool(reboots_only));
    let zone = |id| field.0.world.machine(id).and_then(|machine| machine.zone);
    let machines = field.machines();
    let first = machines[0].clone();
    let second =
        machines[1..].iter().find(|id| zone(id) == zone(&first)).expect("a zone has several").clone();
    field.fault(Fault::Call(CallLie::Overtaken));
    field.fault(Fault::Call(CallLie::Ignored));
    field.fault(Fault::Breaks(first, Trouble::Broken));
    field.fault_in(s(590), Fault::Breaks(second, Trouble::Broken));
    field.run(min(60));
    assert!(field.reboots() >= 3, "{}", field.tail());
    field.clean();
}

/// The process sleeps while a reboot is being proved. Its time ran out during the sleep, and that proves nothing: it had helped.
#[test]
fn a_proof_is_not_over_because_we_slept() {
    let mut field = Field::new(Layout::fleet(31, 8));
    field.fault(Fault::Breaks(field.machine(0), Trouble::KubeletHung));
    assert!(field.0.run_until(min(40), |drive| drive.destructive_calls().len() == 1), "{}", field.tail());
    field.0.mishap_in(s(8), Mishap::Pause(min(60)));
    field.run(min(90));
    assert_eq!(field.reboots(), 1, "{}", field.tail());
    let failed = |record: &Record| matches!(record, Record::Judged { held: false, .. });
    assert_eq!(field.recorded(failed), 0, "{}", field.tail());
    field.ends_well();
}

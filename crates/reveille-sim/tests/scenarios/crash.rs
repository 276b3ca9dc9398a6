//! Crashes at every point of an intent's life, a full disk, a lost lead: nothing is repeated and nothing is lost.

use reveille_core::effect::Call;
use reveille_core::model::incident::FaultKind;
use reveille_core::model::roster::Mode;
use reveille_core::record::Record;
use reveille_sim::drive::{CrashPoint, Mishap};
use reveille_sim::world::fault::Fault;
use reveille_sim::world::layout::{Layout, PoolPlan};
use reveille_sim::world::vm::Trouble;

use crate::field::*;

/// A hung kubelet needs one reboot. Wherever the process dies on the way, the machine is rebooted once and comes back.
#[test]
fn a_crash_anywhere_reboots_once() {
    for point in CrashPoint::ALL {
        for down_s in [5, 100] {
            let mut field = Field::new(Layout::fleet(3, 5));
            let victim = field.machine(0);
            field.0.mishap_in(s(0), Mishap::CrashAt(point, s(down_s)));
            field.fault(Fault::Breaks(victim, Trouble::KubeletHung));
            field.run(min(70));
            assert_eq!(field.reboots(), 1, "{point:?}, down for {down_s} s\n{}", field.tail());
            assert_eq!(field.deletes(), 0, "{point:?}");
            field.ends_well();
        }
    }
}

/// The same for a deletion, with a successor to wait for.
#[test]
fn a_crash_anywhere_deletes_once() {
    for point in CrashPoint::ALL {
        let mut field = Field::new(Layout::fleet(4, 5));
        let victim = field.machine(0);
        field.0.mishap_in(s(0), Mishap::CrashAt(point, s(30)));
        field.fault(Fault::Errored(victim.clone()));
        field.run(min(60));
        assert_eq!(field.deletes(), 1, "{point:?}\n{}", field.tail());
        assert!(!field.exists(&victim), "{point:?}");
        field.ends_well();
    }
}

/// The same for a group that is put back.
#[test]
fn a_crash_anywhere_puts_the_group_back() {
    for point in CrashPoint::ALL {
        let mut field = Field::new(Layout::fleet(5, 5));
        let victim = field.machine(0);
        field.0.mishap_in(s(0), Mishap::CrashAt(point, s(15)));
        field.fault(Fault::GroupLost { machine: victim, slips: false });
        field.run(min(20));
        let calls = field.count(|call| matches!(call, Call::SetPortGroups(_)));
        assert_eq!(calls, 1, "{point:?}\n{}", field.tail());
        field.ends_well();
    }
}

/// A reboot that took effect and was being proved when the process died is not made again while it may still help.
#[test]
fn reboot_under_proof_is_not_repeated_after_a_restart() {
    let mut field = Field::new(Layout::fleet(6, 5));
    let victim = field.machine(0);
    field.fault(Fault::Breaks(victim, Trouble::Broken));
    assert!(field.0.run_until(min(30), |drive| !drive.destructive_calls().is_empty()));
    field.run(min(2));
    field.0.mishap_in(s(0), Mishap::Crash(s(10)));
    field.run(min(13));
    assert_eq!(field.destructive(), 1, "{}", field.tail());
    field.run(min(90));
    assert_eq!(
        field.deletes(),
        1,
        "a reboot that did not help is followed by a replacement\n{}",
        field.tail()
    );
    field.ends_well();
}

/// A repair that was proved before the restart takes no place in the budget after it.
#[test]
fn a_proved_repair_frees_its_slot_across_a_restart() {
    let mut field = Field::new(Layout::fleet(7, 8));
    let (first, second) = (field.machine(0), field.machine(1));
    field.fault(Fault::Breaks(first, Trouble::KubeletHung));
    field.run(min(14));
    assert_eq!(field.reboots(), 1, "{}", field.tail());
    field.0.mishap_in(s(0), Mishap::Crash(s(5)));
    field.run(s(10));
    field.fault(Fault::Breaks(second, Trouble::KubeletHung));
    field.run(min(14));
    assert_eq!(field.reboots(), 2, "{}", field.tail());
    field.ends_well();
}

/// What was begun within the hour counts across a restart.
#[test]
fn the_hourly_rate_survives_a_restart() {
    let mut field = Field::new(Layout::fleet(13, 8).limits(|limits| limits.per_hour = 1));
    let (first, second) = (field.machine(0), field.machine(1));
    field.fault(Fault::Breaks(first, Trouble::KubeletHung));
    field.run(min(14));
    assert_eq!(field.reboots(), 1, "{}", field.tail());
    field.0.mishap_in(s(0), Mishap::Crash(s(5)));
    field.fault_in(s(10), Fault::Breaks(second, Trouble::KubeletHung));
    field.run(min(40));
    assert_eq!(field.reboots(), 1, "{}", field.tail());
    field.run(min(30));
    assert_eq!(field.reboots(), 2, "{}", field.tail());
    field.ends_well();
}

/// A machine that joined once has joined for good: long after its node went, and after a restart, it is one whose node
/// vanished and not one that never came.
#[test]
fn who_had_joined_is_known_after_a_restart() {
    let offers = |pool: &mut PoolPlan| (pool.repair.reboot, pool.repair.replace) = (Mode::Off, Mode::Off);
    let mut field = Field::new(Layout::fleet(14, 5).pool(offers));
    let victim = field.machine(0);
    field.fault(Fault::NodeDeletedByPerson(victim.clone()));
    // Longer than the cluster keeps its events: only the ledger knows.
    field.run(min(70));
    for rotate in [false, true] {
        if rotate {
            field.0.mishap_in(s(0), Mishap::Rotate);
        }
        field.0.mishap_in(s(1), Mishap::Crash(s(5)));
        field.run(min(3));
        assert!(
            field.case(&victim, FaultKind::Vanished).is_some(),
            "{rotate}: {:?}\n{}",
            field.open(),
            field.tail()
        );
        assert_eq!(field.open().len(), 1, "{:?}", field.open());
    }
    assert_eq!(field.calls(), []);
    field.clean();
}

/// A restart forgets since when an instance leaves. What was told as stuck stays told.
#[test]
fn what_is_stuck_is_not_well_after_a_restart() {
    let mut field = Field::new(Layout::fleet(8, 5));
    let victim = field.machine(0);
    field.fault(Fault::StuckDeleting(victim.clone()));
    field.run(min(12));
    let told = field.case(&victim, FaultKind::StuckDeleting).expect("told").incident.id;
    field.0.mishap_in(s(0), Mishap::Crash(s(90)));
    field.run(min(15));
    let after = field.case(&victim, FaultKind::StuckDeleting).map(|case| case.incident.id);
    assert_eq!(after, Some(told), "{}", field.tail());
    field.clean();
}

/// No record, no act: while the disk is full nothing is called, and afterwards everything is.
#[test]
fn a_full_disk_stops_every_act_until_it_is_empty() {
    let mut field = Field::new(Layout::fleet(9, 5));
    let (grouped, errored) = (field.machine(0), field.machine(1));
    field.0.mishap_in(s(0), Mishap::DiskFull(min(10)));
    field.fault(Fault::GroupLost { machine: grouped, slips: false });
    field.fault(Fault::Errored(errored));
    field.run(min(10));
    assert_eq!(field.calls(), [], "{}", field.tail());
    field.run(min(15));
    assert_eq!(field.calls().len(), 2, "{}", field.tail());
    field.ends_well();
}

/// What was refused is written as soon as there is room, before anything rests on it: a crash later finds the whole
/// story and repeats nothing.
#[test]
fn records_refused_by_a_full_disk_are_written_later() {
    let mut field = Field::new(Layout::fleet(12, 5));
    let victim = field.machine(0);
    field.0.mishap_in(s(0), Mishap::DiskFull(min(3)));
    field.fault(Fault::Breaks(victim.clone(), Trouble::Broken));
    field.run(min(4));
    let first_seen = field.case(&victim, FaultKind::NotReady).expect("seen").incident.first_seen;
    field.0.mishap_in(s(0), Mishap::CrashAt(CrashPoint::BeforeDone, s(5)));
    assert!(field.0.run_until(min(20), |drive| !drive.is_running()), "it dies at its first call");
    field.run(min(2));
    let after = &field.case(&victim, FaultKind::NotReady).expect("still seen").incident;
    assert_eq!((after.first_seen, after.attempts.len()), (first_seen, 1), "{}", field.tail());
    field.clean();
}

/// A process that lost the ledger to another is refused, and stops by itself.
#[test]
fn a_deposed_process_changes_nothing_and_stops() {
    let mut field = Field::new(Layout::fleet(10, 6));
    let machines = field.machines();
    field.0.mishap_in(s(0), Mishap::Deposed);
    for (machine, after) in machines.iter().zip([s(1), s(1), s(1), min(5), min(10)]) {
        field.fault_in(after, Fault::GroupLost { machine: machine.clone(), slips: false });
    }
    field.run(min(30));
    assert!(!field.calls().is_empty(), "the first call is what tells");
    let taken =
        field.calls().iter().filter(|c| c.outcome != reveille_core::effect::Outcome::Fenced {}).count();
    assert_eq!(taken, 0, "{}", field.tail());
    let late = field.calls().iter().filter(|called| field.0.now().since(called.at) < min(28)).count();
    assert_eq!(late, 0, "it goes on trying\n{}", field.tail());
    field.clean();
}

/// A rotated ledger remembers the same: what was given up stays given up, who had joined is known.
#[test]
fn a_checkpoint_remembers_what_the_records_did() {
    let network_only = |pool: &mut PoolPlan| {
        (pool.repair.reboot, pool.repair.replace) = (Mode::Off, Mode::Off);
    };
    let mut field = Field::new(Layout::fleet(11, 5).pool(network_only));
    let slips = field.machine(0);
    field.fault(Fault::GroupLost { machine: slips.clone(), slips: true });
    field.run(min(60));
    assert!(
        field.case(&slips, FaultKind::GroupMissing).is_some_and(|case| case.incident.given_up),
        "{}",
        field.tail()
    );
    let calls = field.calls().len();
    field.0.mishap_in(s(0), Mishap::Rotate);
    field.0.mishap_in(s(1), Mishap::Crash(s(5)));
    field.run(min(30));
    assert_eq!(field.calls().len(), calls, "{}", field.tail());
    assert!(
        field.recorded(|record| matches!(record, Record::Joined { machines, .. } if machines.len() == 5)) > 0
    );
    field.clean();
}

/// Two reboots did not help and the process dies: the next one knows that this repair step is used up.
#[test]
fn a_restart_takes_no_used_up_repair_step_again() {
    let layout = Layout::fleet(11, 8).pool(|pool| pool.repair.replace = Mode::Propose);
    let mut field = Field::new(layout);
    field.fault(Fault::Breaks(field.machine(0), Trouble::Broken));
    field.run(min(60));
    assert_eq!(field.reboots(), 2, "{}", field.tail());
    field.0.mishap_in(s(1), Mishap::Crash(s(30)));
    field.run(min(90));
    assert_eq!(field.reboots(), 2, "{}", field.tail());
    field.clean();
}

/// A replacement was proved before the process died: the next one does not judge it again, and calls it no failure.
#[test]
fn a_proof_is_remembered_over_a_restart() {
    let mut field = Field::new(Layout::fleet(12, 8));
    field.fault(Fault::Errored(field.machine(0)));
    let proved = |record: &Record| matches!(record, Record::Width { width: 2, .. });
    field.run(min(12));
    assert_eq!(field.recorded(proved), 1, "{}", field.tail());
    field.0.mishap_in(s(1), Mishap::Crash(s(30)));
    field.run(min(60));
    let failed = |record: &Record| matches!(record, Record::Judged { held: false, .. });
    assert_eq!(field.recorded(failed), 0, "{}", field.tail());
    field.ends_well();
}

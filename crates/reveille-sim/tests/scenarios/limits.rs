//! How much at once: level, rate, width, minimum, breakers, rollouts, pauses, and other actors.

use std::collections::BTreeSet;

use reveille_core::event::{Pause, PauseScope};
use reveille_core::model::incident::FaultKind;
use reveille_core::model::roster::{Limits, Mode};
use reveille_core::record::{Record, Verdict};
use reveille_sim::world::fault::Fault;
use reveille_sim::world::layout::Layout;
use reveille_sim::world::vm::Trouble;

use crate::field::*;

/// A deletion that takes its time proves nothing by that: trust grows when the successor answers, and not before.
#[test]
fn a_slow_deletion_is_no_proof() {
    let mut layout = Layout::fleet(1, 6);
    layout.deletes_within = (min(4), min(4));
    let mut field = Field::new(layout);
    let victim = field.machine(0);
    field.fault(Fault::Errored(victim.clone()));
    field.run(s(165));
    let widened = |record: &Record| matches!(record, Record::Width { width, .. } if *width > 1);
    assert!(field.exists(&victim) && field.deletes() == 1, "{}", field.tail());
    assert_eq!(field.recorded(widened), 0, "{}", field.tail());
    field.run(min(10));
    assert_eq!(field.verdicts(FaultKind::Errored), [Verdict::SubjectGone], "{}", field.tail());
    assert_eq!(field.recorded(widened), 1, "{}", field.tail());
    field.ends_well();
}

fn breaker(limits: &mut Limits) {
    (limits.freeze_above_pct, limits.at_once, limits.per_hour) = (20, 1, 20);
}

/// Ten machines, twenty percent: two that are ill are repaired, three freeze everything.
#[test]
fn the_breaker_lets_two_of_ten_pass_and_not_three() {
    for (ill, acts) in [(2, true), (3, false)] {
        let mut field = Field::new(Layout::fleet(2, 10).limits(breaker));
        for index in 0..ill {
            field.fault(Fault::Breaks(field.machine(index), Trouble::KubeletHung));
        }
        field.run(min(40));
        assert_eq!(field.destructive() > 0, acts, "{ill} ill\n{}", field.tail());
        if acts {
            field.ends_well();
        } else {
            let why = field.held(&field.machine(0), FaultKind::NotReady);
            assert!(why.contains("3 of 10 machines of pool workers have a problem"), "{why}");
            field.clean();
        }
    }
}

/// Faults count from first sight and not from the end of patience: one that is due and two fresh ones freeze.
#[test]
fn fresh_faults_count_against_the_breaker() {
    let mut field = Field::new(Layout::fleet(3, 10).limits(breaker));
    field.fault(Fault::Breaks(field.machine(0), Trouble::KubeletHung));
    field.fault_in(min(8), Fault::Breaks(field.machine(1), Trouble::KubeletHung));
    field.fault_in(min(8), Fault::Breaks(field.machine(2), Trouble::KubeletHung));
    field.run(min(30));
    assert_eq!(field.destructive(), 0, "{}", field.tail());
    field.clean();
}

/// A second pool goes on while the first is frozen, as long as the roster as a whole is within its share.
#[test]
fn a_frozen_pool_freezes_no_other() {
    let mut layout = Layout::fleet(4, 4).limits(|limits| limits.freeze_above_pct = 30);
    layout.pools.push(reveille_sim::world::layout::PoolPlan::new("gpu", 16));
    let mut field = Field::new(layout);
    let of = |field: &Field, pool: &str| {
        let found = field.0.world.machines().into_iter().filter(|m| m.pool == Some(pool.into()));
        found.map(|machine| machine.id).collect::<Vec<_>>()
    };
    for ill in &of(&field, "workers")[..3] {
        field.fault(Fault::Breaks(ill.clone(), Trouble::KubeletHung));
    }
    let other = of(&field, "gpu")[0].clone();
    field.fault(Fault::Breaks(other.clone(), Trouble::KubeletHung));
    field.run(min(30));
    assert_eq!(field.reboots(), 1, "{}", field.tail());
    assert!(field.well(&other));
    field.clean();
}

/// One under way at a time, and the next only when it is proved; then two, because trust was earned; and a failure takes
/// that back.
#[test]
fn width_doubles_on_proof_and_resets_on_failure() {
    let limits = |limits: &mut Limits| {
        (limits.at_once, limits.per_hour, limits.freeze_above_pct) = (8, 60, 100);
    };
    // All in one zone and one pool, so all in one domain.
    let mut field = Field::new(Layout::fleet(5, 20).limits(limits).pool(|pool| pool.zones.truncate(1)));
    for machine in field.machines()[..7].to_vec() {
        field.fault(Fault::Breaks(machine, Trouble::KubeletHung));
    }
    // The first is alone until it is proved; the second wave is two, and no more.
    assert!(field.0.run_until(min(30), |drive| drive.world.calls().len() > 1), "{}", field.tail());
    let proved = field.0.records().iter().find_map(|record| match record {
        Record::Width { at, width: 2, .. } => Some(*at),
        _ => None,
    });
    let calls = || field.calls().iter().map(|called| called.at);
    assert!(proved.is_some_and(|at| calls().filter(|call| *call < at).count() == 1), "{}", field.tail());
    field.run(s(30));
    assert_eq!(field.reboots(), 3, "{}", field.tail());
    field.run(min(60));
    assert_eq!(field.reboots(), 7, "{}", field.tail());
    field.ends_well();
    // Quiet since then: the next burst starts at one again, and one that fails keeps it there after a pause.
    for machine in field.machines()[..4].to_vec() {
        field.fault(Fault::Breaks(machine, Trouble::Broken));
    }
    let before = field.calls().len();
    field.run(min(20));
    assert_eq!(field.calls().len() - before, 1, "past success is no licence\n{}", field.tail());
    field.run(min(15));
    assert_eq!(field.calls().len() - before, 2, "a failure pauses and does not halt\n{}", field.tail());
    let failed = field.0.records().iter().rev().find_map(|record| match record {
        Record::Judged { at, held: false, .. } => Some(*at),
        _ => None,
    });
    let next = field.calls().last().map(|called| called.at);
    assert!(next.zip(failed).is_some_and(|(next, failed)| next.since(failed) >= min(1)), "{}", field.tail());
    field.clean();
}

/// Repairs begun in any hour are counted over the roster, whatever they are for.
#[test]
fn the_hourly_rate_holds_over_all_faults() {
    let limits = |limits: &mut Limits| {
        (limits.at_once, limits.per_hour, limits.freeze_above_pct) = (4, 3, 100);
    };
    let mut field = Field::new(Layout::fleet(6, 20).limits(limits));
    for (index, machine) in field.machines()[..6].iter().enumerate() {
        let fault = if index % 2 == 0 {
            Fault::Errored(machine.clone())
        } else {
            Fault::Breaks(machine.clone(), Trouble::KubeletHung)
        };
        field.fault(fault);
    }
    field.run(min(59));
    assert_eq!(field.destructive(), 3, "{}", field.tail());
    field.run(min(100));
    assert_eq!(field.destructive(), 6, "{}", field.tail());
    field.ends_well();
}

/// A pool at its minimum loses no machine through us; an errored one was none.
#[test]
fn the_pools_minimum_is_kept() {
    let layout = Layout::fleet(7, 4).limits(|limits| limits.freeze_above_pct = 100).pool(|pool| {
        pool.min = 4;
        pool.zones.truncate(1);
        pool.repair.reboot = Mode::Off;
    });
    let mut field = Field::new(layout);
    let ill = field.machine(0);
    field.fault(Fault::Breaks(ill.clone(), Trouble::Broken));
    field.run(min(60));
    assert_eq!(field.destructive(), 0, "{}", field.tail());
    let why = field.held(&ill, FaultKind::NotReady);
    assert!(why.contains("4 machines and its minimum is 4"), "{why}");
    let errored = field.machine(1);
    field.fault(Fault::Errored(errored.clone()));
    field.run(min(5));
    assert!(!field.exists(&errored), "{}", field.tail());
    field.clean();
}

/// A pool that was given a new image a moment ago is left to the client that rolls it.
#[test]
fn a_pool_that_is_rolled_is_left_alone() {
    let mut field = Field::new(Layout::fleet(8, 10));
    field.fault(Fault::Rollout(workers()));
    field.run(min(12));
    let ill = field.machine(0);
    field.fault(Fault::Breaks(ill.clone(), Trouble::KubeletHung));
    field.run(min(16));
    assert_eq!(field.calls(), [], "{}", field.tail());
    let why = field.held(&ill, FaultKind::NotReady);
    assert!(why.contains("rolling"), "{why}");
    field.run(min(20));
    assert_eq!(field.reboots(), 1, "and when it is over, it goes on\n{}", field.tail());
    field.ends_well();
}

/// A pause of a machine, of a pool or of the roster: nothing is begun there, and everything when it ends.
#[test]
fn a_pause_holds_what_it_covers_and_nothing_else() {
    let probe = Field::new(Layout::fleet(9, 8));
    let (covered, other) = (probe.machine(0), probe.machine(1));
    let name = probe.0.world.machines().into_iter().find(|m| m.id == covered).unwrap().name;
    for (scope, holds_other) in [
        (PauseScope::Machine(name.shared()), false),
        (PauseScope::Machine(covered.shared()), false),
        (PauseScope::Pool("workers".into()), true),
        (PauseScope::Pool("gpu".into()), false),
        (PauseScope::Roster, true),
    ] {
        let mut field = Field::new(Layout::fleet(9, 8));
        let covers = scope != PauseScope::Pool("gpu".into());
        let pause = Pause { scope: scope.clone(), by: "ada".into(), reason: "maintenance".into() };
        field.0.set_pauses([pause].into());
        field.fault(Fault::GroupLost { machine: covered.clone(), slips: false });
        field.fault(Fault::GroupLost { machine: other.clone(), slips: false });
        field.run(min(3));
        let lacking = |id| field.case(id, FaultKind::GroupMissing).is_some();
        assert_eq!(
            (lacking(&covered), lacking(&other)),
            (covers, holds_other),
            "{scope:?}\n{}",
            field.tail()
        );
        if covers {
            let why = field.held(&covered, FaultKind::GroupMissing);
            assert!(why.contains("is paused by ada: maintenance"), "{why}");
        }
        field.0.set_pauses(BTreeSet::new());
        field.run(min(5));
        field.ends_well();
    }
}

/// Another client deletes machines of the pool: the controller does not disturb it, and names it.
#[test]
fn deletions_by_another_client_pause_repair_and_name_the_client() {
    let mut field = Field::new(Layout::fleet(10, 10));
    let ill = field.machine(1);
    field.fault(Fault::Errored(ill.clone()));
    field.run(s(90));
    field.fault(Fault::ForeignDelete(field.machine(0)));
    field.run(min(3));
    assert_eq!(field.destructive(), 1, "what was begun before they were seen is finished\n{}", field.tail());
    let second = field.machine(2);
    field.fault(Fault::Errored(second.clone()));
    field.run(min(3));
    assert_eq!(field.destructive(), 1, "{}", field.tail());
    let why = field.held(&second, FaultKind::Errored);
    assert!(why.contains("user erin deleted instance"), "{why}");
    field.run(min(15));
    field.ends_well();
}

/// The taint of an autoscaler says that the node leaves: its machine is not expected back, and the controller does not bring it
/// back.
#[test]
fn an_intended_removal_is_no_absence() {
    let mut field = Field::new(Layout::fleet(11, 8));
    let leaving = field.machine(0);
    field.fault(Fault::ScaledDown(leaving));
    field.run(min(20));
    assert_eq!(field.recorded(|record| matches!(record, Record::Opened { .. })), 0, "{}", field.tail());
    assert_eq!(field.recorded(|record| matches!(record, Record::Left { .. })), 1);
    field.ends_well();
}

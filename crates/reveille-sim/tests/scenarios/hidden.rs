//! What a watch, a listing, a late answer or a sleep hides, found by the hunt: each as the smallest course that showed it.

use reveille_core::effect::Call;
use reveille_core::model::incident::FaultKind;
use reveille_core::record::Record;
use reveille_sim::drive::Mishap;
use reveille_sim::world::fault::{CallLie, Fault};
use reveille_sim::world::layout::Layout;
use reveille_sim::world::vm::Trouble;

use crate::field::*;

/// A watch that loses what happens goes on calling the nodes of a dark zone Ready. Their leases tell.
#[test]
fn zone_with_silent_leases_is_dark_although_its_nodes_are_ready() {
    let mut field = Field::new(Layout::fleet(32, 12));
    let victim = field.machine(0);
    let zone = field.0.world.machine(&victim).and_then(|machine| machine.zone).expect("it has one");
    field.fault(Fault::WatchGap(min(12)));
    field.fault_in(s(1), Fault::ZoneDark(zone, min(12)));
    field.fault_in(s(5), Fault::Errored(victim.clone()));
    field.run(min(10));
    assert_eq!(field.destructive(), 0, "{}", field.tail());
    assert!(field.held(&victim, FaultKind::Errored).contains("is down"), "{}", field.tail());
    field.run(min(30));
    assert_eq!(field.deletes(), 1, "{}", field.tail());
    field.ends_well();
}

/// Another client deletes a machine, and answers come minutes late: before its id was denied twice, the listing already says that
/// it is being deleted, or lacks it.
#[test]
fn who_deletes_beside_us_is_known_before_an_id_is_denied_twice() {
    for seed in 0..6 {
        let mut field = Field::new(Layout::fleet(seed, 12));
        let (theirs, ill) = (field.machine(0), field.machine(1));
        field.fault(Fault::AnswersLate(min(9)));
        field.fault_in(s(10), Fault::ForeignDelete(theirs));
        field.fault_in(s(15), Fault::Errored(ill));
        field.run(min(9));
        assert_eq!(field.destructive(), 0, "seed {seed}\n{}", field.tail());
        field.run(min(60));
        field.ends_well();
    }
}

/// The marks of a stray do not tell whose it is. When another client deletes it, it may have been of any pool.
#[test]
fn deletion_of_an_unmarked_machine_by_others_holds_every_pool() {
    let mut field = Field::new(Layout::fleet(34, 10));
    let (stray, ill) = (field.machine(0), field.machine(1));
    field.fault(Fault::Unmarked(stray.clone()));
    field.run(min(2));
    field.fault(Fault::ForeignDelete(stray));
    field.run(min(1));
    field.fault(Fault::Errored(ill.clone()));
    field.run(min(3));
    assert_eq!(field.destructive(), 0, "{}", field.tail());
    assert!(field.held(&ill, FaultKind::Errored).contains("another actor is at work"), "{}", field.tail());
    field.clean();
}

/// A read was answered, with the machine in it, before the machine went, and arrives after that was proved.
#[test]
fn late_answer_brings_no_machine_back() {
    for seed in 0..12 {
        let mut field = Field::new(Layout::fleet(seed, 10));
        let victim = field.machine(0);
        field.fault(Fault::Call(CallLie::Late(s(215))));
        field.fault(Fault::Errored(victim));
        assert!(field.0.run_until(min(10), |drive| drive.counts().calls > 0), "{}", field.tail());
        field.fault_in(s(170), Fault::AnswersLate(s(30)));
        field.run(min(20));
        let errored =
            |record: &Record| matches!(record, Record::Opened { key, .. } if key.kind == FaultKind::Errored);
        assert_eq!(field.recorded(errored), 1, "seed {seed}\n{}", field.tail());
        field.clean();
    }
}

/// One port of a machine loses its group over and over; another has lost it once.
#[test]
fn slipping_port_is_given_up_although_another_port_hides_it() {
    let mut field = Field::new(Layout::fleet(35, 6));
    let machine = field.machine(0);
    field.fault(Fault::GroupLost { machine: machine.clone(), slips: true });
    field.fault_in(s(15), Fault::SecondPort(machine.clone()));
    field.run(min(240));
    let puts = field.count(|call| matches!(call, Call::SetPortGroups(_)));
    assert!((2..=8).contains(&puts), "{puts}\n{}", field.tail());
    field.clean();
}

/// One nudge serves every machine of a group; where it failed for one of them, the others wait as well.
#[test]
fn a_nudge_that_failed_is_not_made_at_once_for_the_next_machine() {
    let mut field = Field::new(Layout::fleet(36, 12));
    field.fault(Fault::Call(CallLie::Fails { retry_after: None }));
    field.fault(Fault::RouteBroken(field.machine(0)));
    field.fault_in(s(6), Fault::RouteBroken(field.machine(1)));
    field.run(min(30));
    assert!(field.count(|call| matches!(call, Call::NudgeGroup(_))) >= 2, "{}", field.tail());
    field.ends_well();
}

/// A reboot took effect under a clock that was hours ahead: the next process waits for its proof as long as any.
#[test]
fn proof_begun_under_a_clock_ahead_ends_after_the_usual_time() {
    let mut field = Field::new(Layout::fleet(37, 8));
    field.0.mishap_in(s(0), Mishap::Jump(3 * 3_600_000));
    field.run(min(2));
    field.fault(Fault::Breaks(field.machine(0), Trouble::Broken));
    assert!(field.0.run_until(min(40), |drive| drive.destructive_calls().len() == 1), "{}", field.tail());
    field.0.mishap_in(s(5), Mishap::Crash(s(30)));
    field.0.mishap_in(s(10), Mishap::Jump(-3 * 3_600_000));
    field.run(min(75));
    assert!(field.reboots() >= 2, "{:?}\n{}", field.open(), field.tail());
    field.clean();
}

/// A replacement is proved after the incident of the machine that it replaced was closed. Trust falls back all the same.
#[test]
fn trust_that_was_earned_late_is_no_licence_for_later() {
    let mut field = Field::new(Layout::fleet(38, 8));
    field.fault(Fault::Breaks(field.machine(0), Trouble::Broken));
    field.run(min(120));
    field.ends_well();
    let widened = |record: &Record| matches!(record, Record::Width { width: 2, .. });
    assert!(field.recorded(widened) > 0, "{}", field.tail());
    let book = field.0.state().context().book;
    assert!(book.widths().all(|(_, width)| width.width == 1), "{:?}", book.widths().collect::<Vec<_>>());
}

/// A person says "hands off" while our process stands still. It is the first thing that is read when it goes on.
#[test]
fn hands_off_that_was_said_while_we_slept_is_heard_on_waking() {
    let mut field = Field::new(Layout::fleet(39, 6));
    field.0.mishap_in(s(1), Mishap::Pause(min(10)));
    field.0.mishap_in(min(5), Mishap::Paused(workers(), min(60)));
    field.fault_in(min(2), Fault::GroupLost { machine: field.machine(0), slips: false });
    field.run(min(30));
    assert_eq!(field.calls().len(), 0, "{}", field.tail());
    field.run(min(60));
    field.ends_well();
}

//! Widths, the hour, and the same fault of several machines.

use super::*;
use crate::model::incident::FaultKind;

const T0: Time = Time::from_ms(0);

fn domain() -> Domain {
    Domain { pool: PoolName::from("p"), zone: None, kind: FaultKind::NotReady }
}

#[test]
fn width_doubles_on_proof_and_resets_on_failure() {
    let mut book = Book::default();
    assert_eq!(book.width(&domain(), T0).width, 1);
    assert_eq!(book.proved(&domain(), T0, IntentId(1)).width, 2);
    assert_eq!(book.proved(&domain(), T0, IntentId(1)).width, 3);
    assert_eq!(book.proved(&domain(), T0, IntentId(1)).width, 4);
    let failed = book.failed(&domain(), Time::from_ms(0));
    assert_eq!((failed.width, failed.not_before), (1, Some(Time::from_ms(60_000))));
    let again = book.failed(&domain(), Time::from_ms(0));
    assert_eq!(again.not_before, Some(Time::from_ms(120_000)));
}

#[test]
fn past_success_is_no_licence() {
    let mut book = Book::default();
    book.proved(&domain(), T0, IntentId(1));
    assert!(book.quiet(&domain(), Time::from_ms(0)));
    assert_eq!(book.width(&domain(), T0).width, 1);
}

#[test]
fn a_pause_is_not_over_because_another_repair_helped_meanwhile() {
    let mut book = Book::default();
    book.failed(&domain(), T0);
    let proved = book.proved(&domain(), Time::from_ms(30_000), IntentId(1));
    assert_eq!((proved.width, proved.not_before), (2, Some(Time::from_ms(60_000))));
    assert_eq!(book.proved(&domain(), Time::from_ms(60_000), IntentId(1)).not_before, None);
}

#[test]
fn a_proof_lapses_where_nothing_falls_quiet() {
    let mut book = Book::default();
    book.proved(&domain(), T0, IntentId(1));
    assert_eq!(book.width(&domain(), Time::from_ms(3_599_999)).width, 2);
    assert_eq!(book.width(&domain(), Time::from_ms(3_600_000)).width, 1);
    assert_eq!(
        book.proved(&domain(), Time::from_ms(7_200_000), IntentId(1)).width,
        2,
        "not on top of what lapsed"
    );
}

#[test]
fn budget_pause_outlasts_a_short_quiet_moment() {
    let mut book = Book::default();
    book.failed(&domain(), Time::from_ms(0));
    assert!(!book.quiet(&domain(), Time::from_ms(30_000)));
    assert_eq!(book.width(&domain(), T0).not_before, Some(Time::from_ms(60_000)));
    assert!(book.quiet(&domain(), Time::from_ms(60_000)));
}

#[test]
fn the_hour_slides() {
    let mut book = Book::default();
    book.begin(Time::from_ms(0), RepairStep::Reboot);
    book.begin(Time::from_ms(1_800_000), RepairStep::Reboot);
    assert_eq!(book.begun_within_hour(Time::from_ms(3_599_999)), 2);
    assert_eq!(book.begun_within_hour(Time::from_ms(3_600_000)), 1);
}

#[test]
fn what_tidies_up_leaves_half_of_the_hour_to_repairs() {
    let at = |min: i64| Time::from_ms(min * 60_000);
    for (per_hour, cleanups) in [(0, 0), (1, 1), (2, 1), (4, 2), (5, 2)] {
        let limits = Limits { per_hour, ..Limits::default() };
        let begin = |book: &mut Book, repair_step: RepairStep| {
            let is_free = book.used_up(at(30), &limits, repair_step).is_none();
            is_free.then(|| book.begin(at(30), repair_step)).is_some()
        };
        let (mut book, mut begun) = (Book::default(), Vec::new());
        for repair_step in [RepairStep::Cleanup, RepairStep::Reboot] {
            begun.push((0..9).filter(|_| begin(&mut book, repair_step)).count() as u32);
        }
        assert_eq!(begun, [cleanups, per_hour - cleanups], "{per_hour} an hour");
    }
    let mut book = Book::default();
    book.begin(at(10), RepairStep::Reboot);
    book.begin(at(20), RepairStep::Cleanup);
    book.begin(at(30), RepairStep::Cleanup);
    let used_up = |repair_step: RepairStep| book.used_up(at(40), &Limits::default(), repair_step)?.free_at;
    assert_eq!((used_up(RepairStep::Cleanup), used_up(RepairStep::Reboot)), (Some(at(80)), None));
}

#[test]
fn the_same_fault_of_two_machines_is_one_fault() {
    let a = normalise_fault("No valid host was found. request req-1f for 10.0.0.7");
    let b = normalise_fault("No valid host was found. request req-2a for 10.0.0.9");
    assert_eq!(a, b);
}

//! Two engines over one world and one ledger: nothing is done twice, and the one that lost the lead stops.

use std::collections::BTreeSet;

use reveille_core::effect::{Call, Outcome};
use reveille_core::model::time::{Span, Time};
use reveille_sim::drive::{Estranged, Mishap, Usurped};
use reveille_sim::world::Called;
use reveille_sim::world::fault::Fault;
use reveille_sim::world::layout::Layout;

use crate::boundaries::{self, machines_and_a_port as three_things};
use crate::field::*;

/// The moments at which something is asked for, and those at which an answer may be on its way.
fn moments() -> BTreeSet<Time> {
    let asked = boundaries::moments(three_things);
    asked.iter().flat_map(|at| [0, 2, 8, 60, 200].map(|ms| *at + Span::from_ms(ms))).collect()
}

fn taken(field: &Field, is: impl Fn(&Call) -> bool) -> usize {
    let accepted = |called: &&Called| matches!(called.outcome, Outcome::Accepted { .. });
    field.calls().iter().filter(accepted).filter(|called| is(&called.call)).count()
}

fn fenced(field: &Field) -> usize {
    field.calls().iter().filter(|called| called.outcome == Outcome::Fenced {}).count()
}

fn each_is_done_once(usurped: Usurped) {
    let moments = moments();
    assert!(moments.len() > 100, "only {} moments", moments.len());
    for at in moments {
        let mut field = three_things();
        while field.0.turn_before(at) {}
        field.0.mishap_in(s(0), Mishap::TwoLeaders(usurped));
        field.run(min(90));
        let what = format!("{usurped:?} at {}\n{}", at.since(Time::from_ms(0)), field.0.log().tail(200));
        let done = (
            taken(&field, |call| matches!(call, Call::Reboot(_))),
            taken(&field, |call| matches!(call, Call::SetPortGroups(_))),
            taken(&field, |call| matches!(call, Call::DeleteInstance(_))),
        );
        assert_eq!(done, (1, 1, 1), "{what}");
        assert!(fenced(&field) <= 3, "it does not stop: {what}");
        assert!(field.0.former().is_none(), "{what}");
        field.ends_well();
    }
}

#[test]
fn whenever_the_lead_is_taken_each_thing_is_done_once() {
    for refused in [false, true] {
        each_is_done_once(Usurped { lasts: min(40), how: Estranged::Hears, refused, skew_ms: 0 });
    }
}

#[test]
fn leader_that_slept_through_a_takeover_does_nothing_on_waking() {
    each_is_done_once(Usurped { lasts: min(40), how: Estranged::Sleeps, refused: false, skew_ms: 0 });
}

#[test]
fn leader_cut_off_during_a_takeover_does_nothing_on_return() {
    each_is_done_once(Usurped { lasts: min(40), how: Estranged::CutOff, refused: false, skew_ms: 0 });
}

/// The new one's clock is minutes behind that of the one before, or ahead of it: what the ledger says in the other's time
/// is neither waited for nor forgotten.
#[test]
fn the_clocks_of_two_leaders_need_not_agree() {
    for skew in [min(-7), min(7)] {
        each_is_done_once(Usurped {
            lasts: min(40),
            how: Estranged::Hears,
            refused: false,
            skew_ms: skew.ms,
        });
    }
}

/// After its first refused call it asks for nothing that would change anything, however much there is to do.
#[test]
fn the_one_that_lost_the_lead_is_refused_once_and_stops() {
    let mut field = Field::new(Layout::fleet(34, 8));
    let machines = field.machines();
    let usurped = Usurped { lasts: min(60), how: Estranged::Hears, refused: false, skew_ms: 0 };
    field.0.mishap_in(s(0), Mishap::TwoLeaders(usurped));
    for (machine, after) in machines.iter().zip([s(5), min(5), min(10), min(15)]) {
        field.fault_in(after, Fault::GroupLost { machine: machine.clone(), slips: false });
    }
    field.run(min(30));
    assert_eq!(fenced(&field), 1, "{}", field.tail());
    let context = field.0.former().expect("it is there").context();
    assert!(!context.leading && context.cases.is_empty(), "it sees what the other mends: {}", field.tail());
    assert_eq!(taken(&field, |call| matches!(call, Call::SetPortGroups(_))), 4, "{}", field.tail());
    field.run(min(40));
    field.ends_well();
}

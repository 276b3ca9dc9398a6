//! A crash, a torn ledger and a full disk at every boundary of every effect of three small courses, exhaustively: what is
//! done is done as often as without them, and all ends well.
//!
//! ```text
//!  course ─ undisturbed ─▶ the moments of its effects, what was done ─┐
//!         └ disturbed at each of these moments, in each way ──────────┴─▶ the same was done, and all is well
//! ```

use std::collections::{BTreeMap, BTreeSet};

use reveille_core::effect::{Call, Outcome};
use reveille_core::model::time::{Span, Time};
use reveille_sim::drive::{Counts, Mishap};
use reveille_sim::world::Called;
use reveille_sim::world::fault::Fault;
use reveille_sim::world::layout::Layout;
use reveille_sim::world::vm::Trouble;

use crate::field::*;

/// A reboot, a group that is put back, a deletion with a successor.
pub fn machines_and_a_port() -> Field {
    let mut field = Field::new(Layout::fleet(33, 5));
    let machines = field.machines();
    field.fault(Fault::Breaks(machines[0].clone(), Trouble::KubeletHung));
    field.fault(Fault::GroupLost { machine: machines[1].clone(), slips: false });
    field.fault_in(min(20), Fault::Errored(machines[2].clone()));
    field
}

/// A route that is taken out, one that is put back, an address pair, and the rules of a group.
fn routes_and_rules() -> Field {
    let mut field = Field::new(Layout::fleet(35, 5).routed());
    let machines = field.machines();
    field.fault(Fault::DuplicateRoute(machines[0].clone()));
    field.fault_in(min(2), Fault::MissingRoute(machines[1].clone()));
    field.fault_in(min(4), Fault::PairLost(machines[2].clone()));
    field.fault_in(min(6), Fault::RulesLost);
    field
}

/// A Node whose instance is gone, a machine that is shut off, and one whose first boot fails.
fn a_ghost_and_a_newcomer() -> Field {
    let mut field = Field::new(Layout::fleet(36, 6));
    let machines = field.machines();
    field.fault(Fault::ControllerDown(min(60)));
    field.fault(Fault::ForeignDelete(machines[0].clone()));
    field.fault_in(min(15), Fault::ShutOff(machines[1].clone()));
    field.fault_in(min(62), Fault::Launch { pool: workers(), trouble: Some(Trouble::NoNetwork) });
    field
}

const LENGTH: Span = Span::from_min(150);

/// The moments at which a record, a call or a read is asked for.
pub fn moments(scenario_run: fn() -> Field) -> BTreeSet<Time> {
    let mut field = scenario_run();
    let end = field.0.now() + LENGTH;
    let asked = |counts: Counts| (counts.records, counts.calls, counts.looks);
    let mut moments = BTreeSet::new();
    let mut before = asked(field.0.counts());
    while field.0.turn_before(end) {
        let now = asked(field.0.counts());
        if std::mem::replace(&mut before, now) != now {
            moments.insert(field.0.now());
        }
    }
    moments
}

type Done = BTreeMap<&'static str, usize>;

/// What was done, and how often: nudges and calls that were refused, or found it done, left out.
fn done(field: &Field) -> Done {
    let took = |called: &&Called| matches!(called.outcome, Outcome::Accepted { .. });
    let kind = |call: &Call| match call {
        Call::AddRules(_) => "rules",
        Call::SetPortGroups(_) => "groups",
        Call::AddPortPairs(_) => "pairs",
        Call::RemoveRoutes(_) => "routes removed",
        Call::AddRoutes(_) => "routes added",
        Call::AssignRoles(_) => "roles",
        Call::AskAgent(_) => "asks",
        Call::Reboot(_) => "reboots",
        Call::Start(_) => "starts",
        Call::DeleteInstance(_) => "deletions",
        Call::DeleteNode(_) => "nodes deleted",
        Call::DropRule(_) | Call::NudgeGroup(_) | Call::NudgeRouter(_) => "nudges",
    };
    let mut done = Done::new();
    for called in field.calls().iter().filter(took) {
        *done.entry(kind(&called.call)).or_default() += 1;
    }
    done.remove("nudges");
    done
}

fn undisturbed(scenario_run: fn() -> Field) -> Done {
    let mut field = scenario_run();
    field.run(LENGTH);
    field.ends_well();
    done(&field)
}

fn same_when(scenario_run: fn() -> Field, at: Time, mishap: Mishap, expected: &Done) {
    let mut field = scenario_run();
    let what = format!("{mishap:?} at {at:?}");
    while field.0.turn_before(at) {}
    field.0.mishap_in(s(0), mishap);
    field.run(LENGTH + min(30));
    assert_eq!(done(&field), *expected, "{what}\n{}", field.0.log().tail(150));
    field.ends_well();
}

const COURSES: [fn() -> Field; 3] = [machines_and_a_port, routes_and_rules, a_ghost_and_a_newcomer];

#[test]
fn each_course_does_what_it_is_for() {
    let expected: [&[(&str, usize)]; 3] = [
        &[("deletions", 1), ("groups", 1), ("reboots", 1)],
        &[("pairs", 1), ("routes added", 1), ("routes removed", 1), ("rules", 1)],
        &[("deletions", 1), ("nodes deleted", 1), ("starts", 1)],
    ];
    for (scenario_run, expected) in COURSES.into_iter().zip(expected) {
        assert_eq!(undisturbed(scenario_run), expected.iter().copied().collect());
    }
}

/// Before and after each effect there is, whichever it is: records, calls, reads, wake-ups.
#[test]
fn a_crash_beside_any_effect_repeats_nothing_and_loses_nothing() {
    for scenario_run in COURSES {
        let expected = undisturbed(scenario_run);
        for after in [false, true] {
            for nth in 0.. {
                let mut field = scenario_run();
                field.0.mishap_in(s(0), Mishap::CrashAtEffect { nth, after, down: s(20) });
                field.run(LENGTH + min(30));
                let died = field.0.log().lines().any(|line| line.contains("the process dies"));
                assert_eq!(done(&field), expected, "{nth} {after}\n{}", field.0.log().tail(150));
                field.ends_well();
                if !died {
                    assert!(nth > 40, "only {nth} effects");
                    break;
                }
            }
        }
    }
}

/// The process dies while records are on their way: none, one or two of them are whole on the disk, the next is torn.
#[test]
fn a_torn_tail_at_any_moment_repeats_nothing_and_loses_nothing() {
    for scenario_run in COURSES {
        let expected = undisturbed(scenario_run);
        for at in moments(scenario_run) {
            for whole in 0..3 {
                same_when(scenario_run, at, Mishap::TornTail { whole, down: s(20) }, &expected);
            }
        }
    }
}

/// The disk is full from any moment on, for a while: what cannot be written is not done, and is done afterwards.
#[test]
fn a_full_disk_at_any_moment_repeats_nothing_and_loses_nothing() {
    for scenario_run in COURSES {
        let expected = undisturbed(scenario_run);
        for at in moments(scenario_run) {
            same_when(scenario_run, at, Mishap::DiskFull(min(3)), &expected);
        }
    }
}

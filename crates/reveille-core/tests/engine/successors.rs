//! Who is the successor of whom, whichever process looks: each proves one replacement, and none that it came before.

use reveille_core::effect::{Call, Outcome};
use reveille_core::event::Event;
use reveille_core::model::instance::Fault;
use reveille_core::model::node::Ready;
use reveille_core::model::roster::Roster;
use reveille_core::model::time::Span;
use reveille_core::record::Record;

use super::fixture::{Field, roster};
use super::replacing::{blamed, counted, deletes, fails, is_made, proved};
use super::steps::{made, min, roster_with, run_with, set};

fn under_way(field: &Field) -> usize {
    field.state.context().book.operations.len()
}

/// Four at once, in two zones.
fn wide() -> Roster {
    let mut roster = roster();
    roster.limits.at_once = 4;
    roster
}

fn two_zones(roster: Roster) -> Field {
    let mut field = Field::new(roster).populate(10);
    for id in ["i001", "i003", "i005"] {
        field.instances.get_mut(id).unwrap().zone = Some("z2".into());
    }
    field.run(min(5));
    field
}

/// Two machines are replaced at once. The deletion that was begun later takes effect first, and its successor joins; a moment
/// later the other deletion takes effect, whose successor never comes.
#[test]
fn successor_is_not_claimed_by_older_later_replacement() {
    let mut field = two_zones(wide());
    field.mute = Some(Vec::new());
    fails(&mut field, "i001");
    fails(&mut field, "i002");
    field.run_until(min(60), |field| deletes(field) > 1);
    let intents = field.mute.take().unwrap();
    let calls = field.calls.clone();
    assert_eq!((intents.len(), calls.len()), (2, 2), "{:?}", made(&field));
    let takes_effect = |field: &mut Field, number: usize| {
        field.apply(&calls[number]);
        field.feed(Event::Done { intent: intents[number], outcome: Outcome::Accepted { request: None } });
    };
    takes_effect(&mut field, 1);
    is_made(&mut field, "new1");
    field.run(Span::from_s(30));
    assert_eq!(proved(&field), [], "not for its dwell yet");
    takes_effect(&mut field, 0);
    field.run(min(60));
    let older = match &calls[0] {
        Call::DeleteInstance(delete) => delete.instance.to_string(),
        _ => unreachable!(),
    };
    assert_eq!((proved(&field), blamed(&field)), (vec![intents[1]], vec![older]));
}

/// As `replaced::one_newcomer_proves_one_replacement`, with a restart between the two.
#[test]
fn one_newcomer_proves_one_replacement_over_a_restart() {
    for restart in [false, true] {
        let mut field = two_zones(wide());
        fails(&mut field, "i001");
        field.run_until(min(60), |field| deletes(field) > 0);
        field.run(min(1));
        if restart {
            field = field.restarted(wide());
        }
        field.run(min(1));
        let before = deletes(&field);
        fails(&mut field, "i002");
        field.run_until(min(10), |field| deletes(field) > before);
        field.run(min(1));
        assert_eq!(under_way(&field), 2, "restart: {restart}: {:?}", made(&field));
        is_made(&mut field, "new1");
        field.run(min(5));
        assert_eq!((under_way(&field), proved(&field).len()), (1, 1), "restart: {restart}");
    }
}

/// Two replacements wait. The first newcomer falls silent at once, and the second one proves one of them. It proves the other as
/// well to the next process.
#[test]
fn newcomer_proves_only_one_replacement_after_restart_too() {
    for (restart, rotated) in [(false, false), (true, true), (true, false)] {
        let mut field = two_zones(wide());
        fails(&mut field, "i001");
        fails(&mut field, "i002");
        field.run_until(min(60), |field| deletes(field) > 1);
        field.run(min(1));
        assert_eq!(under_way(&field), 2);
        is_made(&mut field, "new1");
        field.run_until(min(1), |field| {
            field.records.iter().any(|record| matches!(record, Record::Arrived { .. }))
        });
        set(&mut field, "new1", Ready::Unknown);
        is_made(&mut field, "new2");
        // Lists in a step of their own, without the question what the next process would know.
        run_with(&mut field, min(3), |field| Some(field.leases_without(&[])));
        assert_eq!(proved(&field).len(), 1, "new2 answers for its dwell, and new1 does not");
        if rotated {
            field.records = field.state.checkpoint();
        }
        if restart {
            field = field.restarted(wide());
        }
        let before = proved(&field).len();
        run_with(&mut field, min(4), |field| Some(field.leases_without(&[])));
        assert_eq!(proved(&field).len(), before, "restart: {restart}, rotated: {rotated}");
    }
}

/// A deletion is on its way when a machine joins that others made. Then it takes effect. To the process that called, that
/// machine is no successor, and to the next one it is.
#[test]
fn machine_joined_before_deletion_takes_effect_proves_nothing() {
    for restart in [false, true] {
        let mut field = Field::new(roster()).populate(10);
        field.run(min(5));
        field.mute = Some(Vec::new());
        fails(&mut field, "i004");
        field.run_until(min(60), |field| deletes(field) > 0);
        is_made(&mut field, "scaled-up");
        field.run(Span::from_s(40));
        let (intent, call) = (field.mute.take().unwrap()[0], field.calls[0].clone());
        field.apply(&call);
        field.feed(Event::Done { intent, outcome: Outcome::Accepted { request: None } });
        field.run(Span::from_s(20));
        if restart {
            field = field.restarted(roster());
        }
        field.run(min(60));
        assert_eq!((proved(&field).len(), blamed(&field).len()), (0, 1), "restart: {restart}");
    }
}

/// What is made from the pool's template runs for less than its dwell, and falls. Two of them, one behind the other, look like
/// one that answers for a minute.
#[test]
fn two_newcomers_failing_within_their_dwell_prove_nothing() {
    for restart in [false, true] {
        let mut field = Field::new(roster()).populate(10);
        field.run(min(20));
        fails(&mut field, "i004");
        field.run_until(min(20), |field| !field.calls.is_empty());
        field.run(min(1));
        if restart {
            field = field.restarted(roster());
            field.now = field.now + Span::from_s(5);
            field.run(min(1));
        }
        is_made(&mut field, "new1");
        field.run(Span::from_s(20));
        is_made(&mut field, "new2");
        field.run(Span::from_s(20));
        set(&mut field, "new1", Ready::Unknown);
        field.run(Span::from_s(40));
        set(&mut field, "new2", Ready::Unknown);
        field.run(min(3));
        assert_eq!(proved(&field), [], "restart: {restart}");
    }
}

/// Each of several replacements has a successor, and the process that began in the middle knows how many it may credit: as the
/// one before it, rotated or not.
#[test]
fn three_replacements_get_three_newcomers_over_restarts() {
    for (restarts, rotated) in [(0, false), (1, false), (1, true), (3, false), (3, true)] {
        let mut field = two_zones(wide());
        field.instances.get_mut("i006").unwrap().zone = Some("z3".into());
        field.instances.get_mut("i008").unwrap().zone = Some("z3".into());
        field.run(min(1));
        ["i001", "i002", "i006"].iter().for_each(|id| fails(&mut field, id));
        field.run_until(min(20), |field| deletes(field) > 2);
        assert_eq!(under_way(&field), 3, "{:?}", made(&field));
        field.run(min(1));
        for number in 0..3 {
            is_made(&mut field, &format!("new{number}"));
            field.run(Span::from_s(20));
            if restarts > number {
                if rotated {
                    field.records = field.state.checkpoint();
                }
                field = field.restarted(wide());
            }
            field.run(min(3));
            assert_eq!(under_way(&field), 2 - number, "restarts: {restarts}, rotated: {rotated}");
        }
        assert_eq!(blamed(&field), [""; 0]);
    }
}

/// As `one_newcomer_proves_one_replacement_over_a_restart`, and both replacements are of an earlier process. What was credited is
/// among those that arrived still, in a checkpoint alone.
#[test]
fn newcomer_proves_only_one_inherited_replacement_on_rotation() {
    for rotated in [false, true] {
        let mut field = two_zones(wide());
        fails(&mut field, "i001");
        fails(&mut field, "i002");
        field.run_until(min(60), |field| deletes(field) > 1);
        field.run(min(1));
        field = field.restarted(wide());
        field.run(min(1));
        assert_eq!(under_way(&field), 2);
        is_made(&mut field, "new1");
        let listed = |field: &mut Field| Some(field.leases_without(&[]));
        run_with(&mut field, min(4), listed);
        assert_eq!((under_way(&field), proved(&field).len()), (1, 1));
        if rotated {
            field.records = field.state.checkpoint();
        }
        field = field.restarted(wide());
        run_with(&mut field, min(4), listed);
        assert_eq!(under_way(&field), 1, "rotated: {rotated}: one still waits for its successor");
    }
}

/// A successor is Ready for a moment and then not, until its replacement is counted as one that did not help. Then it is well for
/// a day. It was made since, and joined before the count.
#[test]
fn flapping_successor_that_recovers_clears_pool_failure_count() {
    for flaps in [false, true] {
        let mut field = Field::new(roster()).populate(10);
        field.run(min(5));
        fails(&mut field, "i004");
        field.run_until(min(60), |field| deletes(field) > 0);
        field.run(min(10));
        is_made(&mut field, "slow");
        if !flaps {
            set(&mut field, "slow", Ready::False);
        }
        field.run(Span::from_s(40));
        set(&mut field, "slow", Ready::False);
        field.run_until(min(60), |field| counted(field) > 0);
        assert_eq!(counted(&field), 1);
        set(&mut field, "slow", Ready::True);
        field.run(min(24 * 60));
        assert_eq!(counted(&field), 0, "flaps: {flaps}");
    }
}

/// A deletion is answered with 504 and comes late, while no process runs; its successor joins in the same gap.
#[test]
fn successor_of_a_deletion_that_came_late_in_a_gap_proves_it() {
    for answered in ["accepted", "504"] {
        let mut field = Field::new(roster()).populate(10);
        field.run(min(20));
        fails(&mut field, "i004");
        if answered == "504" {
            let retry_after = Some(min(30));
            field.refuses = Some(Outcome::Failed { retry_after, text: "504 Gateway Timeout".into() });
        }
        field.run_until(min(20), |field| deletes(field) > 0);
        field.refuses = None;
        field.run(Span::from_s(30));
        field.delete_machine("i004");
        field.now = field.now + min(3);
        field.add_machine("new1", true);
        field.now = field.now + min(2);
        field = field.restarted(roster());
        field.run(min(60));
        assert_eq!((proved(&field).len(), blamed(&field).len()), (1, 0), "{answered}");
    }
}

/// The same in the sight of one process: the machine goes while its cell denies nothing yet, and the successor is quick.
#[test]
fn successor_joining_before_late_deletion_proves_replacement() {
    for answered in ["accepted", "504"] {
        let mut field = Field::new(roster()).populate(10);
        field.run(min(20));
        fails(&mut field, "i004");
        if answered == "504" {
            let retry_after = Some(min(30));
            field.refuses = Some(Outcome::Failed { retry_after, text: "504 Gateway Timeout".into() });
        }
        field.run_until(min(20), |field| deletes(field) > 0);
        field.refuses = None;
        field.run(min(1));
        // Its id cannot be read for some minutes after it went.
        field.cell_down = Some("i004".to_owned());
        field.delete_machine("i004");
        field.run(min(2));
        is_made(&mut field, "new1");
        field.run(min(2));
        field.cell_down = None;
        field.run(min(60));
        assert_eq!((proved(&field).len(), blamed(&field).len()), (1, 0), "{answered}");
    }
}

/// Two machines are replaced, each in a zone of its own. The first one's successor joins; then the second is deleted for a fault
/// that is counted, and its successor joins as well. The ledger is rotated and we are restarted before the two were well for
/// their dwell: each has proved its replacement in the end.
#[test]
fn successors_keep_their_order_after_a_rotation() {
    let wanted = || {
        let mut wanted = roster_with(|pool| pool.deadlines.dwell = min(10));
        (wanted.limits.at_once, wanted.limits.per_hour) = (4, 12);
        wanted
    };
    for (restart, rotated) in [(false, false), (true, false), (true, true)] {
        let mut field = Field::new(wanted()).populate(12);
        for number in 6..12 {
            field.instances.get_mut(&format!("i{number:03}")).unwrap().zone = Some("z2".into());
        }
        field.run(min(30));
        fails(&mut field, "i001");
        field.run_until(min(20), |field| deletes(field) == 1);
        field.run(min(1));
        is_made(&mut field, "a");
        field.run(min(1));
        fails(&mut field, "i007");
        field.instances.get_mut("i007").unwrap().fault =
            Some(Fault { code: 500, message: "No valid host was found.".into() });
        field.run_until(min(8), |field| deletes(field) == 2);
        assert_eq!(deletes(&field), 2, "{:?}", made(&field));
        field.run(min(1));
        is_made(&mut field, "b");
        field.run(min(1));
        assert_eq!(proved(&field), [], "too early for this test");
        if rotated {
            field.records = field.state.checkpoint();
        }
        if restart {
            field = field.restarted(wanted());
        }
        field.run(min(90));
        let (proved, blamed) = (proved(&field), blamed(&field));
        assert_eq!(blamed, [""; 0], "restart: {restart}, rotated: {rotated}; proved {proved:?}");
    }
}

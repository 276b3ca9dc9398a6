//! Which machines are newcomers, whichever process looks: those that were made in our sight and have not been Ready before.

use std::sync::Arc;

use reveille_core::effect::Outcome;
use reveille_core::model::incident::FaultKind;
use reveille_core::model::instance::Fault;
use reveille_core::model::node::Ready;
use reveille_core::model::roster::Mode;
use reveille_core::model::time::Span;

use super::fixture::{Field, roster};
use super::replacing::{
    blamed, counted, deletes, fails, is_made, proved, three_fail, three_failed_replacements,
};
use super::steps::{made, min, roster_with, set};

/// The Node of a successor registers, and is not Ready before its network is there. Meanwhile we are restarted.
#[test]
fn successor_unready_at_restart_proves_its_replacement() {
    for (restart, rotated) in [(false, false), (true, false), (true, true)] {
        let mut field = Field::new(roster()).populate(10);
        field.run(min(20));
        fails(&mut field, "i004");
        field.run_until(min(20), |field| !field.calls.is_empty());
        field.run(min(3));
        is_made(&mut field, "n004");
        set(&mut field, "n004", Ready::False);
        field.run(Span::from_s(40));
        if rotated {
            field.records = field.state.checkpoint();
        }
        if restart {
            field = field.restarted(roster());
        }
        field.run(Span::from_s(40));
        set(&mut field, "n004", Ready::True);
        field.run(min(60));
        assert_eq!(blamed(&field), [""; 0], "restart: {restart}, rotated: {rotated}");
    }
}

/// The same, where three replacements are counted against the pool. The machine that was made since is well for hours.
#[test]
fn successor_unready_at_restart_clears_failures_of_its_pool() {
    for restart in [false, true] {
        let mut field = three_failed_replacements();
        is_made(&mut field, "new1");
        set(&mut field, "new1", Ready::False);
        field.run(Span::from_s(40));
        if restart {
            field = field.restarted(roster());
        }
        field.run(Span::from_s(40));
        set(&mut field, "new1", Ready::True);
        field.run(min(24 * 60));
        assert_eq!(counted(&field), 0, "restart: {restart}");
    }
}

/// A machine that was made in our sight has served for hours before anything was counted. A person takes its marks off and puts
/// them back: it proves nothing of the pool's template.
#[test]
fn remarked_machine_that_had_joined_clears_no_pool_failures() {
    for restart in [false, true] {
        let mut field = Field::new(roster()).populate(10);
        field.run(min(5));
        is_made(&mut field, "old");
        field.run(min(60));
        three_fail(&mut field);
        if restart {
            field = field.restarted(roster());
            field.run(min(5));
        }
        let marks = std::mem::take(&mut field.instances.get_mut("old").unwrap().marks);
        field.run(min(5));
        field.instances.get_mut("old").unwrap().marks = marks;
        field.run(min(60));
        assert_eq!(counted(&field), 3, "restart: {restart}");
    }
}

/// The same of one replacement that waits for its successor.
#[test]
fn remarked_machine_that_had_joined_proves_no_replacement() {
    for restart in [false, true] {
        let mut field = Field::new(roster()).populate(10);
        field.run(min(5));
        is_made(&mut field, "old");
        field.run(min(60));
        if restart {
            field = field.restarted(roster());
            field.run(min(5));
        }
        fails(&mut field, "i004");
        field.run_until(min(60), |field| deletes(field) > 0);
        field.run(min(1));
        let marks = std::mem::take(&mut field.instances.get_mut("old").unwrap().marks);
        field.run(min(2));
        field.instances.get_mut("old").unwrap().marks = marks;
        field.run(min(60));
        assert_eq!(proved(&field), [], "restart: {restart}");
    }
}

/// Joining may take for ever. A machine that was made in our sight has served for an hour. A person takes its marks off, its
/// kubelet stops, and the marks are put back: it had joined, and is not joining still.
#[test]
fn joined_machine_remarked_while_silent_is_repaired() {
    let wanted = || roster_with(|pool| (pool.repair.rejoin, pool.deadlines.join_within) = (Mode::Off, None));
    for (id, restart) in [("i001", false), ("old", true), ("old", false)] {
        let mut field = Field::new(wanted()).populate(10);
        field.run(min(5));
        is_made(&mut field, "old");
        field.run(min(60));
        if restart {
            field = field.restarted(wanted());
            field.run(min(5));
        }
        let marks = std::mem::take(&mut field.instances.get_mut(id).unwrap().marks);
        field.run(min(2));
        set(&mut field, id, Ready::Unknown);
        field.run(min(2));
        field.instances.get_mut(id).unwrap().marks = marks;
        field.run(min(6 * 60));
        assert!(!field.calls.is_empty(), "{id}, restart: {restart}: {}", field.held(id, FaultKind::NotReady));
    }
}

/// Joining may take for ever. The Node of a new machine is not Ready yet, which it may be for as long as it takes; we are
/// restarted, and it counts as one that had served.
#[test]
fn machine_joining_without_deadline_is_kept_after_restart() {
    let wanted = || roster_with(|pool| (pool.repair.rejoin, pool.deadlines.join_within) = (Mode::Off, None));
    for restart in [false, true] {
        let mut field = Field::new(wanted()).populate(10);
        field.run(min(5));
        is_made(&mut field, "new1");
        set(&mut field, "new1", Ready::False);
        field.run(min(60));
        assert_eq!(field.calls, [], "it joins");
        if restart {
            field = field.restarted(wanted());
        }
        field.run(min(60));
        assert_eq!(field.calls, [], "restart: {restart}: {:?}", made(&field));
    }
}

/// As `remarked_machine_that_had_joined_clears_no_pool_failures`: its cell denies it, its Node goes, and both come back.
#[test]
fn machine_that_its_cell_denied_for_a_while_is_no_newcomer() {
    for id in ["i005", "old"] {
        let mut field = Field::new(roster()).populate(10);
        field.run(min(5));
        is_made(&mut field, "old");
        field.run(min(60));
        three_fail(&mut field);
        let (instance, node) = (field.instances[id].clone(), field.nodes[id].clone());
        let port = field.ports[id].clone();
        field.delete_machine(id);
        field.nodes.remove(id);
        field.run(min(20));
        field.instances.insert(id.into(), instance);
        field.ports.insert(id.into(), port);
        field.nodes.insert(id.into(), node);
        field.run(min(60));
        assert_eq!(counted(&field), 3, "{id}");
    }
}

/// As `successor_unready_at_restart_proves_its_replacement`: the successor was made in the
/// seconds in which no process ran, and we are restarted once more before its Node is Ready.
#[test]
fn successor_made_unwatched_counts_after_a_second_restart() {
    for second in [false, true] {
        let mut field = Field::new(roster()).populate(10);
        field.run(min(20));
        fails(&mut field, "i004");
        field.run_until(min(20), |field| deletes(field) > 0);
        field.run(min(3));
        field.add_machine("n004", true);
        set(&mut field, "n004", Ready::False);
        let mut field = field.restarted(roster());
        field.run(Span::from_s(40));
        if second {
            field = field.restarted(roster());
        }
        field.run(Span::from_s(40));
        set(&mut field, "n004", Ready::True);
        field.run(min(60));
        assert_eq!(blamed(&field), [""; 0], "second restart: {second}");
    }
}

/// The same, where three replacements are counted against the pool.
#[test]
fn successor_made_unwatched_unblocks_pool_after_second_restart() {
    for second in [false, true] {
        let mut field = three_failed_replacements();
        field.add_machine("new1", true);
        set(&mut field, "new1", Ready::False);
        let mut field = field.restarted(roster());
        field.run(Span::from_s(40));
        if second {
            field = field.restarted(roster());
        }
        field.run(Span::from_s(40));
        set(&mut field, "new1", Ready::True);
        field.run(min(24 * 60));
        assert_eq!(counted(&field), 0, "second restart: {second}");
    }
}

/// Joining may take for ever, as in `machine_joining_without_deadline_is_kept_after_restart`: this
/// one was made in the seconds of the restart, and its Node registers in our sight.
#[test]
fn machine_made_during_restart_joins_as_long_as_it_takes() {
    let wanted = || roster_with(|pool| (pool.repair.rejoin, pool.deadlines.join_within) = (Mode::Off, None));
    let mut field = Field::new(wanted()).populate(10);
    field.run(min(20));
    field.add_machine("new1", false);
    let mut field = field.restarted(wanted());
    field.run(min(2));
    field.nodes.insert("new1".into(), super::fixture::node("new1", Ready::False));
    field.run(min(60));
    assert_eq!(field.calls, [], "{:?}", made(&field));
}

/// A witness answers within its dwell, and is about to prove that two failed replacements are over. A third machine fails, and
/// the deletion is refused for want of a right: nothing was deleted, and nothing is counted. The witness counts still.
#[test]
fn denied_deletion_takes_no_witness_away() {
    for denied in [false, true] {
        let mut wanted = roster_with(|pool| pool.deadlines.dwell = min(10));
        wanted.limits.per_hour = 12;
        let mut field = Field::new(wanted).populate(12);
        field.run(min(20));
        for id in ["i001", "i002"] {
            fails(&mut field, id);
            let calls = field.calls.len();
            field.run_until(min(180), |field| field.calls.len() > calls);
            field.run(min(60));
        }
        assert_eq!(counted(&field), 2);
        is_made(&mut field, "new1");
        field.run(min(2));
        let calls = field.calls.len();
        if denied {
            field.denial = Some(Outcome::Denied { text: "403: Policy does not allow it".into() });
            fails(&mut field, "i005");
            field.instances.get_mut("i005").unwrap().fault =
                Some(Fault { code: 500, message: "No valid host was found.".into() });
        }
        field.run(min(6 * 60));
        assert_eq!(counted(&field), 0, "denied: {denied}: {} calls since", field.calls.len() - calls);
    }
}

/// A deletion was answered with 504, and a person took the marks off the machine to save it: whether that deletion comes late is
/// open for good. A machine joins after it. Days later three replacements fail, and the pool is held. The ledger is rotated, and
/// we are restarted: who joined before anything was counted is no witness that it is over.
#[test]
fn newcomer_before_count_is_no_witness_after_rotation() {
    for (restart, rotated) in [(false, false), (true, false), (true, true)] {
        let mut field = Field::new(roster()).populate(12);
        field.run(min(20));
        fails(&mut field, "i009");
        (field.fails, field.deaf) = (true, true);
        field.run_until(min(60), |field| deletes(field) > 0);
        field.instances.get_mut("i009").unwrap().marks = Arc::default();
        field.run(min(5));
        (field.fails, field.deaf) = (false, false);
        is_made(&mut field, "old");
        field.run(min(3 * 60));
        three_fail(&mut field);
        if rotated {
            field.records = field.state.checkpoint();
        }
        if restart {
            field = field.restarted(roster());
        }
        field.run(min(30));
        assert_eq!(counted(&field), 3, "restart: {restart}, rotated: {rotated}");
    }
}

//! A rotated ledger restores what the process before knew of what is under way, may only be late, or was proved.

use reveille_core::model::node::Ready;

use super::fixture::Field;
use super::steps::{made, min, set, without_rejoin};

/// One machine came back by its reboot, a second one is rebooted, and a third one waits for it: one at once. The ledger is rotated,
/// and we are restarted.
#[test]
fn reboot_under_way_keeps_its_place_over_a_rotation_although_another_one_was_proved_before() {
    for how in ["nothing", "restart", "rotation, restart"] {
        let mut field = Field::new(without_rejoin()).populate(20);
        field.run(min(20));
        for id in ["i001", "i002", "i003"] {
            set(&mut field, id, Ready::Unknown);
        }
        field.run_until(min(30), |field| !field.calls.is_empty());
        field.run(min(1));
        field.boots("i001");
        field.run_until(min(30), |field| field.calls.len() > 1);
        assert_eq!(field.calls.len(), 2, "{how}: {:?}", made(&field));
        field.run(min(1));
        if how.starts_with("rotation") {
            field.records = field.state.checkpoint();
        }
        let rebooted = field.now;
        if how.ends_with("restart") {
            field = field.restarted(without_rejoin());
        }
        let calls = field.calls.len();
        let under_way = field.state.desk().book.destructive_under_way();
        assert_eq!(under_way, 1, "{how}: the second one still boots");
        field.run_until(min(60), |field| field.calls.len() > calls);
        let took = field.now.since(rebooted);
        assert!(took >= min(14), "{how}: {:?} after {took}", made(&field));
    }
}

/// Two are rebooted at once, and one of them comes back after the other was rebooted.
#[test]
fn reboot_under_way_keeps_its_place_over_a_rotation_although_one_beside_it_was_proved() {
    let wide = || {
        let mut roster = without_rejoin();
        roster.limits.at_once = 2;
        roster
    };
    for how in ["nothing", "restart", "rotation, restart"] {
        let mut field = Field::new(wide()).populate(20);
        field.run(min(20));
        for id in ["i001", "i002", "i003"] {
            set(&mut field, id, Ready::Unknown);
        }
        field.run_until(min(30), |field| !field.calls.is_empty());
        field.run(min(1));
        field.boots("i001");
        field.run_until(min(30), |field| field.calls.len() > 2);
        field.run(min(1));
        field.boots("i002");
        let under_way = |field: &Field| field.state.desk().book.destructive_under_way();
        assert_eq!(under_way(&field), 2, "{how}: {:?}", made(&field));
        field.run_until(min(10), |field| under_way(field) == 1);
        if how.starts_with("rotation") {
            field.records = field.state.checkpoint();
        }
        if how.ends_with("restart") {
            field = field.restarted(wide());
        }
        assert_eq!(under_way(&field), 1, "{how}: the third one still boots");
    }
}

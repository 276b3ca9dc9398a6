//! What freezes repairs, and for how long: what is silent, what its cloud denies, what serves all the same, and what need not be
//! there.

use std::sync::Arc;

use reveille_core::effect::Call;
use reveille_core::model::incident::FaultKind;
use reveille_core::model::instance::{InstanceState, Mark};
use reveille_core::model::node::Ready;
use reveille_core::model::roster::Mode;
use reveille_core::model::time::Span;

use super::beside::{Beside, restarted};
use super::fixture::{Field, roster};
use super::steps::{min, roster_with, set};

fn cleaned(field: &Field) -> usize {
    field.calls.iter().filter(|call| matches!(call, Call::DeleteNode(_))).count()
}

const SILENT: [&str; 5] = ["i003", "i004", "i005", "i006", "i007"];

/// Half of a fleet is silent, and its cloud denies a part of it, before or after.
#[test]
fn machine_denied_before_or_after_silence_counts_as_away() {
    for denied_for in [-3, 0, 2, 20] {
        for restart in [false, true] {
            let mut field = Field::new(roster()).populate(12);
            field.run(min(5));
            let silence =
                |field: &mut Field| SILENT.into_iter().for_each(|id| set(field, id, Ready::Unknown));
            if denied_for < 0 {
                silence(&mut field);
                field.run(min(-denied_for));
            }
            for id in &SILENT[..3] {
                field.instances.remove(*id);
            }
            if denied_for >= 0 {
                field.run(min(denied_for));
                silence(&mut field);
            }
            if restart {
                field = field.restarted(roster());
            }
            field.run(min(25));
            assert_eq!(field.calls, [], "denied for {denied_for} min, restart: {restart}");
            // The two that are there are repaired in the end.
            field.run(min(60));
            assert!(
                field.destructive_calls() > 0,
                "{denied_for} {restart}: {}",
                field.held("i006", FaultKind::NotReady)
            );
        }
    }
}

/// Its machines were drained before others took them away: nothing is frozen by that.
#[test]
fn scale_down_that_is_seen_to_be_one_freezes_nothing() {
    let mut field = Field::new(roster()).populate(12);
    field.run(min(20));
    for id in SILENT {
        field.nodes.get_mut(id).unwrap().cordoned = true;
    }
    field.run(min(1));
    for id in SILENT {
        field.delete_machine(id);
        set(&mut field, id, Ready::Unknown);
    }
    field.run(min(15));
    assert!(cleaned(&field) > 0, "{}", field.held("i003", FaultKind::Ghost));
}

/// Half of a roster is silent, in a cloud that cannot be read any more.
#[test]
fn restart_in_unreadable_cloud_keeps_freeze_by_silent_machines() {
    for restart in [false, true] {
        let (beside, mut field) = Beside::new();
        beside.run_listed(&mut field, 20);
        beside.set(&mut field, Ready::Unknown);
        set(&mut field, "i004", Ready::Unknown);
        beside.run_listed(&mut field, 3);
        if restart {
            field = restarted(field);
        }
        beside.run_unread(&mut field, 40);
        assert_eq!(field.calls, [], "restart: {restart}");
        // They are back, although their cloud still cannot be read.
        beside.set(&mut field, Ready::True);
        beside.run_unread(&mut field, 20);
        assert!(
            field.destructive_calls() > 0,
            "restart: {restart}: {}",
            field.held("i004", FaultKind::NotReady)
        );
    }
}

#[test]
fn machines_that_serve_in_error_freeze_nothing() {
    let mut field = Field::new(roster()).populate(10);
    field.run(min(5));
    for id in ["i000", "i001", "i002", "i003"] {
        field.instances.get_mut(id).unwrap().state = InstanceState::Errored;
    }
    field.run(min(60));
    set(&mut field, "i009", Ready::Unknown);
    field.deaf = true;
    field.run(min(360));
    assert!(field.destructive_calls() > 0, "{}", field.held("i009", FaultKind::NotReady));
}

#[test]
fn zone_whose_machines_serve_in_error_is_not_dark() {
    let mut field = Field::new(roster()).populate(12);
    for id in ["i000", "i001", "i009"] {
        field.instances.get_mut(id).unwrap().zone = Some("z2".into());
    }
    field.run(min(5));
    for id in ["i000", "i001"] {
        field.instances.get_mut(id).unwrap().state = InstanceState::Errored;
    }
    field.run(min(60));
    set(&mut field, "i009", Ready::Unknown);
    field.deaf = true;
    field.run(min(360));
    assert!(field.destructive_calls() > 0, "{}", field.held("i009", FaultKind::NotReady));
}

#[test]
fn left_over_nodes_of_a_scale_down_make_no_fleet_dark() {
    let mut field = Field::new(roster()).populate(12);
    field.run(min(20));
    for n in 3..12 {
        let id = format!("i{n:03}");
        field.delete_machine(&id);
        set(&mut field, &id, Ready::Unknown);
        field.run(Span::from_s(30));
    }
    field.run(min(12 * 60));
    assert_eq!(cleaned(&field), 9, "{}", field.held("i010", FaultKind::Ghost));
}

#[test]
fn left_over_nodes_that_may_not_be_cleaned_up_stop_no_repair() {
    let roster = roster_with(|pool| (pool.repair.cleanup, pool.repair.rejoin) = (Mode::Off, Mode::Off));
    let mut field = Field::new(roster).populate(12);
    field.run(min(20));
    for n in 4..12 {
        let id = format!("i{n:03}");
        field.delete_machine(&id);
        set(&mut field, &id, Ready::Unknown);
        field.run(min(60));
    }
    set(&mut field, "i000", Ready::Unknown);
    field.run(min(6 * 60));
    assert!(field.destructive_calls() > 0, "{}", field.held("i000", FaultKind::NotReady));
}

#[test]
fn machines_that_need_not_join_freeze_nothing() {
    let mut wanted = roster_with(|pool| pool.repair.rejoin = Mode::Off);
    let mut other = wanted.pools.values().next().unwrap().clone();
    other.name = "other".into();
    other.deadlines.join_within = None;
    other.owned.pool = Some(Mark::Tag("k8s-pool=other".into()));
    wanted.pools.insert(other.name.clone(), other);
    let mut field = Field::new(wanted).populate(6);
    let marks: Arc<std::collections::BTreeSet<Mark>> =
        Arc::new([Mark::Tag("k8s-cluster=prod".into()), Mark::Tag("k8s-pool=other".into())].into());
    for n in 0..8 {
        let id = format!("o{n:03}");
        field.add_machine(&id, false);
        field.instances.get_mut(&id).unwrap().marks = marks.clone();
    }
    field.run(min(60));
    set(&mut field, "i004", Ready::Unknown);
    field.run(min(360));
    assert!(field.destructive_calls() > 0, "{}", field.held("i004", FaultKind::NotReady));
}

/// The list of nodes was old, so that every Node was Ready, while the leases of half of a fleet stood still: the one machine that
/// was known to be broken before was rebooted in the middle of that (seed 5305304).
#[test]
fn machines_with_silent_leases_are_away_despite_ready_nodes() {
    for many in [2, 6] {
        let mut field = Field::new(roster()).populate(12);
        field.run(min(5));
        field.silent = (0..many).map(|number| format!("node-i{number:03}")).collect();
        set(&mut field, "i011", Ready::False);
        field.run(min(40));
        assert_eq!(field.calls.is_empty(), many == 6, "{many}: {:?}", field.calls);
        let held = field.held("i011", FaultKind::NotReady);
        assert!(many == 2 || held.contains("7 of 12"), "{held}");
        // They are renewed again, and nothing that was held is forgotten.
        field.silent.clear();
        field.run(min(40));
        assert!(field.destructive_calls() > 0, "{many}");
    }
}

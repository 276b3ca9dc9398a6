//! How machines are counted as present, away, silent and back: by their Nodes, by their leases, and where a list is doubted.

use std::sync::Arc;

use reveille_core::effect::Call;
use reveille_core::model::incident::FaultKind;
use reveille_core::model::instance::{Instance, InstanceState, Mark};
use reveille_core::model::lease::Leases;
use reveille_core::model::node::{Provider, Ready};
use reveille_core::model::roster::Mode;
use reveille_core::model::time::Span;

use super::beside::{Beside, restarted};
use super::fixture::{CLOUD, Field, instance, node, roster};
use super::steps::{min, roster_with, run_with, set, without_rejoin};

fn silence(field: &mut Field, ids: std::ops::Range<usize>) {
    field.silent.extend(ids.map(|number| format!("node-i{number:03}")));
}

/// The leases of five machines stand still, their Nodes are called Ready, and their cloud denies three of them, before or after.
#[test]
fn machine_with_silent_lease_is_away_when_its_cloud_denies_it() {
    for denied_first in [false, true] {
        let mut field = Field::new(without_rejoin()).populate(12);
        field.run(min(20));
        let deny = |field: &mut Field| (0..3).for_each(|n| field.delete_machine(&format!("i{n:03}")));
        if denied_first {
            deny(&mut field);
            field.run(min(2));
        }
        silence(&mut field, 0..5);
        set(&mut field, "i011", Ready::Unknown);
        field.run(min(3));
        if !denied_first {
            deny(&mut field);
        }
        field.run(min(40));
        assert_eq!(field.calls, [], "denied first: {denied_first}");
    }
}

/// Half of a roster is silent by its leases alone, in a cloud that cannot be read any more, and we are restarted.
#[test]
fn restart_in_unreadable_cloud_keeps_freeze_by_silent_leases() {
    for restart in [false, true] {
        let (beside, mut field) = Beside::new();
        beside.run_listed(&mut field, 20);
        let silent: Vec<String> = beside.ids().map(|id| format!("node-{id}")).collect();
        field.silent = silent.clone();
        set(&mut field, "i004", Ready::Unknown);
        beside.run_listed(&mut field, 3);
        if restart {
            field = restarted(field);
            field.silent = silent;
        }
        beside.run_unread(&mut field, 40);
        assert_eq!(field.calls, [], "restart: {restart}");
    }
}

/// As `lamed::one_is_dead`.
fn one_is_dead() -> Field {
    let mut field = Field::new(roster()).populate(10);
    field.run(min(30));
    set(&mut field, "i009", Ready::Unknown);
    field.deaf = true;
    field
}

fn is_repaired(field: &Field) {
    assert!(field.destructive_calls() >= 3, "{:?}: {}", field.calls, field.held("i009", FaultKind::NotReady));
}

/// Machines with the cluster's mark and no pool's of this roster, another roster's or a dead control plane's, are shut down.
#[test]
fn silent_nodes_of_machines_of_no_pool_make_no_fleet_dark() {
    let mut field = one_is_dead();
    for n in 0..15 {
        let id = format!("f{n:03}");
        let marks = Arc::new([Mark::Tag("k8s-cluster=prod".into())].into());
        field.instances.insert(id.clone(), Instance { marks, ..instance(&id) });
        field.nodes.insert(id.clone(), node(&id, Ready::Unknown));
    }
    field.run(min(360));
    is_repaired(&field);
}

/// Each of nine machines that serve has two older Nodes of other names, whose leases no kubelet renews.
#[test]
fn older_nodes_of_machines_that_serve_make_no_fleet_dark() {
    let mut field = one_is_dead();
    for n in 0..9 {
        for number in 0..2 {
            let mut older = node(&format!("i{n:03}"), Ready::Unknown);
            let name = format!("zz-{number}-i{n:03}");
            (older.name, older.uid) = (name.as_str().into(), format!("u-{name}").as_str().into());
            field.nodes.insert(name, older);
        }
    }
    field.run(min(360));
    is_repaired(&field);
}

/// Two machines are all of a zone. The cloud has lost the record of one, which serves; the other one is dead.
#[test]
fn zone_with_serving_machine_denied_by_cloud_is_not_dark() {
    let mut field = Field::new(roster()).populate(12);
    for id in ["i008", "i009"] {
        field.instances.get_mut(id).unwrap().zone = Some("z2".into());
    }
    field.run(min(5));
    field.delete_machine("i008");
    field.run(min(90));
    set(&mut field, "i009", Ready::Unknown);
    field.deaf = true;
    field.run(min(600));
    assert!(field.destructive_calls() > 0, "{}", field.held("i009", FaultKind::NotReady));
}

/// While leases are silent, a list of leases comes back empty, as after a restore or from a wrong endpoint.
#[test]
fn empty_list_of_leases_ends_no_freeze_by_silent_leases() {
    let mut field = Field::new(without_rejoin()).populate(12);
    field.run(min(5));
    silence(&mut field, 0..6);
    set(&mut field, "i011", Ready::Unknown);
    field.run(min(40));
    assert_eq!(field.calls, []);
    run_with(&mut field, min(5), |_| Some(Leases::default()));
    assert_eq!(field.calls, []);
}

/// Five leases were silent at the last list of leases that could be read. All Nodes but one are Ready for hours since.
#[test]
fn unlistable_leases_cause_no_permanent_freeze() {
    let mut field = Field::new(roster()).populate(12);
    field.run(min(5));
    silence(&mut field, 0..5);
    field.run(min(2));
    field.deaf = true;
    // Its lease is silent by the last list as well, and says nothing against a repair.
    silence(&mut field, 11..12);
    field.run(min(2));
    set(&mut field, "i011", Ready::Unknown);
    run_with(&mut field, min(12 * 60), |_| None);
    assert!(field.destructive_calls() > 0, "{}", field.held("i011", FaultKind::NotReady));
}

/// A kubelet may write the label of its own zone. Its cloud names none.
#[test]
fn zones_renamed_by_one_kubelet_are_not_all_remembered() {
    let mut field = Field::new(roster()).populate(10);
    field.instances.get_mut("i000").unwrap().zone = None;
    field.run(min(2));
    for n in 0..200 {
        field.nodes.get_mut("i000").unwrap().zone = Some(format!("zone-{n}").as_str().into());
        field.run(Span::from_s(10));
    }
    let zones = field.state.context().counts.zones().count();
    assert!(zones < 20, "{zones}");
}

/// The pool waits for no join: also machines whose Node is there and was never Ready are no loss.
#[test]
fn nodes_of_machines_without_join_deadline_cause_no_freeze() {
    let mut wanted = roster_with(|pool| pool.repair.rejoin = Mode::Off);
    let mut other = wanted.pools.values().next().unwrap().clone();
    other.name = "other".into();
    other.deadlines.join_within = None;
    other.owned.pool = Some(Mark::Tag("k8s-pool=other".into()));
    wanted.pools.insert(other.name.clone(), other);
    let mut field = Field::new(wanted).populate(6);
    field.run(min(5));
    let marks: Arc<std::collections::BTreeSet<Mark>> =
        Arc::new([Mark::Tag("k8s-cluster=prod".into()), Mark::Tag("k8s-pool=other".into())].into());
    for n in 0..8 {
        let id = format!("o{n:03}");
        field.add_machine(&id, false);
        field.instances.get_mut(&id).unwrap().marks = marks.clone();
        field.nodes.insert(id.clone(), node(&id, Ready::False));
        field.renews.push(id);
    }
    field.run(min(60));
    set(&mut field, "i004", Ready::Unknown);
    field.run(min(360));
    assert!(field.destructive_calls() > 0, "{}", field.held("i004", FaultKind::NotReady));
}

fn take_marks_off(field: &mut Field, id: &str) {
    field.instances.get_mut(id).unwrap().marks = Arc::default();
}

/// An operator hands machines over to another owner: takes our marks off, one after another. That owner shuts them down later.
#[test]
fn silent_nodes_of_unmarked_machines_make_no_fleet_dark() {
    let mut field = Field::new(roster()).populate(25);
    field.run(min(5));
    for n in 10..25 {
        take_marks_off(&mut field, &format!("i{n:03}"));
        field.run(min(2));
    }
    field.run(min(60));
    for n in 10..25 {
        set(&mut field, &format!("i{n:03}"), Ready::Unknown);
    }
    set(&mut field, "i009", Ready::Unknown);
    field.deaf = true;
    field.run(min(360));
    is_repaired(&field);
}

/// The same with all marks taken off at once, so that the list that lacks them is doubted for a while.
#[test]
fn machines_unmarked_at_once_leave_the_count_after_the_doubt() {
    for silent in [false, true] {
        let mut field = Field::new(roster()).populate(12);
        field.run(min(5));
        let ids: Vec<String> = (0..5).map(|n| format!("i{n:03}")).collect();
        if silent {
            ids.iter().for_each(|id| set(&mut field, id, Ready::Unknown));
            field.run(min(2));
        }
        ids.iter().for_each(|id| take_marks_off(&mut field, id));
        field.run(min(120));
        let context = field.state.context();
        assert!(context.clouds[CLOUD].source.trust(field.now).is_given(), "the doubt is over");
        let all = context.counts.all();
        assert_eq!((all.total(), all.unhealthy), (7, 0), "silent: {silent}: {all:?}");
    }
}

/// The pool has its minimum, and not one more: nothing is deleted. Those that were given away do not count.
#[test]
fn machines_unmarked_in_doubt_do_not_count_for_the_minimum() {
    for at_once in [false, true] {
        let mut field = Field::new(roster_with(|pool| (pool.min, pool.repair.rejoin) = (7, Mode::Off)));
        field = field.populate(12);
        field.run(min(5));
        for n in 0..5 {
            take_marks_off(&mut field, &format!("i{n:03}"));
            field.run(if at_once { Span::ZERO } else { min(2) });
        }
        field.run(min(120));
        set(&mut field, "i011", Ready::Unknown);
        field.deaf = true;
        field.run(min(360));
        let deleted = field.calls.iter().filter(|call| matches!(call, Call::DeleteInstance(_))).count();
        assert_eq!(deleted, 0, "at once: {at_once}: {:?}", field.calls);
    }
}

/// The same while no process runs; their kubelets are stopped. The nodes are listed before the cloud.
#[test]
fn machines_unmarked_while_no_process_ran_leave_the_count() {
    let mut field = Field::new(roster()).populate(12);
    field.run(min(5));
    for id in (0..5).map(|n| format!("i{n:03}")) {
        take_marks_off(&mut field, &id);
        set(&mut field, &id, Ready::Unknown);
    }
    let mut field = field.restarted(roster());
    field.sync_nodes();
    field.list_cloud();
    field.run(min(120));
    assert_eq!(field.state.context().counts.all().unhealthy, 0);
    set(&mut field, "i011", Ready::Unknown);
    field.deaf = true;
    field.run(min(360));
    assert!(field.destructive_calls() > 0, "{}", field.held("i011", FaultKind::NotReady));
}

/// As `freezes::restart_in_unreadable_cloud_keeps_freeze_by_silent_machines`, in a cluster whose Nodes have no provider ID.
#[test]
fn restart_ends_no_freeze_where_nodes_have_no_provider_id() {
    for restart in [false, true] {
        let (beside, mut field) = Beside::new();
        for id in beside.ids() {
            let its = field.nodes.get_mut(id).unwrap();
            (its.provider, its.system_uuid) = (Provider::Unset, Some(id.into()));
        }
        beside.run_listed(&mut field, 20);
        set(&mut field, "i004", Ready::Unknown);
        beside.run_listed(&mut field, 3);
        // They fall silent while no process runs, or beside one that lists them once more.
        beside.set(&mut field, Ready::Unknown);
        if restart {
            field = restarted(field);
        } else {
            beside.run_listed(&mut field, 1);
        }
        beside.run_unread(&mut field, 40);
        assert_eq!(field.calls, [], "restart: {restart}: {:?}", field.state.context().counts.all());
    }
}

/// The kubelets of five machines live and cannot serve, as without a pod network. They come back one after another; the leases of
/// all were renewed the whole time. A sixth is held as long as that goes on.
#[test]
fn away_machine_with_renewed_lease_is_back_once_ready() {
    for renews in [false, true] {
        let mut field = Field::new(without_rejoin()).populate(12);
        field.run(min(5));
        let ids = ["i000", "i001", "i002", "i003", "i004"];
        if renews {
            field.renews = ids.map(str::to_owned).to_vec();
        }
        ids.iter().for_each(|id| set(&mut field, id, Ready::False));
        set(&mut field, "i011", Ready::Unknown);
        field.run(min(40));
        assert_eq!(field.calls, []);
        set(&mut field, "i000", Ready::True);
        for id in &ids[1..] {
            set(&mut field, id, Ready::True);
            field.run(Span::from_s(40));
        }
        assert_eq!(field.calls, [], "renews: {renews}");
    }
}

/// Each of ten machines that serve has an older Node of another name; then a list lacks the Nodes of four, which are not too
/// many beside twenty (seed 5600763). So it is where ten machines beside them are shut down.
#[test]
fn stopped_and_duplicate_nodes_do_not_mask_a_lost_store() {
    for shut_down in [false, true] {
        let mut field = Field::new(without_rejoin()).populate(if shut_down { 20 } else { 10 });
        field.lists_alone = true;
        field.run(min(5));
        for n in 0..10 {
            if shut_down {
                let id = format!("i{:03}", n + 10);
                field.instances.get_mut(&id).unwrap().state = InstanceState::Stopped;
                set(&mut field, &id, Ready::Unknown);
                continue;
            }
            let mut older = node(&format!("i{n:03}"), Ready::Unknown);
            let name = format!("zz-i{n:03}");
            (older.name, older.uid) = (name.as_str().into(), format!("u-{name}").as_str().into());
            (older.provider, older.system_uuid) = (Provider::Unset, Some(format!("i{n:03}").as_str().into()));
            field.nodes.insert(name, older);
        }
        field.run(min(2));
        for n in 0..4 {
            field.nodes.remove(&format!("i{n:03}"));
            field.nodes.remove(&format!("zz-i{n:03}"));
        }
        field.run(min(2));
        let trust = field.state.context().cluster.source.trust(field.now);
        assert!(!trust.is_given(), "shut down: {shut_down}");
    }
}

/// Most of a fleet falls silent, and a moment before the list of leases comes back empty: its Nodes tell (seed 5651788).
#[test]
fn fleet_of_unknown_nodes_is_dark_without_any_listed_lease() {
    let mut wanted = without_rejoin();
    wanted.limits.freeze_above_pct = 100;
    let mut field = Field::new(wanted).populate(10);
    field.run(min(20));
    set(&mut field, "i009", Ready::Unknown);
    field.deaf = true;
    field.run(min(2));
    for n in 0..8 {
        set(&mut field, &format!("i{n:03}"), Ready::Unknown);
    }
    run_with(&mut field, min(25), |_| Some(Leases::default()));
    assert_eq!(field.calls, [], "{}", field.held("i009", FaultKind::NotReady));
}

//! What lists of leases say that lack some, or that do not come any more.

use std::sync::Arc;

use reveille_core::event::{CloudFact, CloudSnapshot, ClusterFact, Event};
use reveille_core::model::id::{NodeName, PoolName};
use reveille_core::model::incident::FaultKind;
use reveille_core::model::instance::{Instance, Mark};
use reveille_core::model::lease::{Leases, Renewal};
use reveille_core::model::node::Ready;
use reveille_core::model::roster::{Mode, Ownership};
use reveille_core::model::time::Span;

use super::fixture::{Field, instance, node, roster};
use super::steps::{made, min, roster_with, run_with, set, without_rejoin};

/// As [`Field::run`], with lists of leases that lack what this says for the number of the step.
fn run_lacking<'a>(field: &mut Field, span: Span, lacks: impl Fn(usize) -> &'a [&'a str]) {
    let mut steps = 0..;
    run_with(field, span, |field| steps.next().map(|step| field.leases_without(lacks(step))));
}

/// Two machines are all of a zone, which is dark: the list of Nodes is old and calls one of them Ready, and its lease stands
/// still. Then the list of leases lacks that one lease, as few as any list may lack: it counted as present, the zone as lit,
/// and the other machine was rebooted in the middle of the outage.
#[test]
fn silent_lease_that_a_list_lacks_lights_no_dark_zone() {
    for lacks in [&[][..], &["i010"][..]] {
        let mut field = Field::new(without_rejoin()).populate(12);
        for id in ["i010", "i011"] {
            field.instances.get_mut(id).unwrap().zone = Some("z2".into());
        }
        field.run(min(5));
        field.silent = vec!["node-i010".to_owned()];
        set(&mut field, "i011", Ready::Unknown);
        field.run(min(20));
        assert_eq!(field.calls, [], "the zone is dark");
        run_lacking(&mut field, min(20), |_| lacks);
        assert_eq!(field.calls, [], "{lacks:?}: {:?}", made(&field));
    }
}

/// Half of a roster is silent by its leases alone, as in `empty_list_of_leases_ends_no_freeze_by_silent_leases`. No list
/// lacks more than it may beside the one before; with the second, all that are silent are out of the list.
#[test]
fn silent_leases_vanishing_one_by_one_end_no_freeze() {
    let mut field = Field::new(without_rejoin()).populate(12);
    field.run(min(5));
    let ids = ["i000", "i001", "i002", "i003", "i004", "i005"];
    field.silent = ids.iter().map(|id| format!("node-{id}")).collect();
    set(&mut field, "i011", Ready::Unknown);
    field.run(min(40));
    assert_eq!(field.calls, []);
    run_lacking(&mut field, min(20), |step| &ids[..(step + 1).min(6)]);
    assert_eq!(field.calls, [], "{:?}", made(&field));
}

/// The watch shows a Node as silent, or lost it, and its lease is renewed every ten seconds: the machine serves, and is left
/// alone. Then lists of leases lack that one, each or every second one: no list says that it is silent.
#[test]
fn machine_with_renewed_lease_is_alive_when_lists_lack_it() {
    let mut touched = Vec::new();
    for is_node_there in [true, false] {
        for every in [1, 2] {
            let mut field = Field::new(without_rejoin()).populate(12);
            field.run(min(20));
            if is_node_there {
                set(&mut field, "i011", Ready::Unknown);
                field.renews = vec!["i011".to_owned()];
            } else {
                field.nodes.remove("i011");
                field.unlisted_leases = vec!["node-i011".into()];
            }
            run_lacking(&mut field, min(60), |_| &[]);
            assert_eq!(field.calls, [], "its lease is fresh");
            run_lacking(&mut field, min(20), |step| if step % every == 0 { &["i011"] } else { &[] });
            if !field.calls.is_empty() {
                touched.push((is_node_there, every, made(&field)));
            }
        }
    }
    assert!(touched.is_empty(), "{touched:#?}");
}

/// The same right after a restart: the first lists of leases are empty, from a wrong endpoint or a cache that is not filled,
/// while eleven of twelve Nodes are Ready, which no Node is for long without a lease.
#[test]
fn empty_lease_list_is_refused_for_ready_nodes_after_restart() {
    let mut field = Field::new(without_rejoin()).populate(12);
    field.run(min(20));
    set(&mut field, "i011", Ready::Unknown);
    field.renews = vec!["i011".to_owned()];
    field.run(min(60));
    assert_eq!(field.calls, [], "its lease is fresh");
    let mut field = field.restarted(without_rejoin());
    field.renews = vec!["i011".to_owned()];
    let all: Vec<String> = field.nodes.keys().cloned().collect();
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    run_lacking(&mut field, min(20), |_| &all);
    assert_eq!(field.calls, [], "{:?}", made(&field));
}

/// As `counted::unlistable_leases_cause_no_permanent_freeze`, with nine of twelve leases that were silent
/// at the last list, and not five: all Nodes but one are Ready for hours since, and the fleet stayed dark for good.
#[test]
fn unlistable_leases_make_no_fleet_dark_for_good() {
    for silent in [5, 9] {
        let mut field = Field::new(roster()).populate(12);
        field.run(min(5));
        field.silent = (0..silent).chain(11..12).map(|n| format!("node-i{n:03}")).collect();
        field.deaf = true;
        field.run(min(2));
        set(&mut field, "i011", Ready::Unknown);
        run_with(&mut field, min(12 * 60), |_| None);
        let held = field.held("i011", FaultKind::NotReady);
        assert!(field.destructive_calls() > 0, "{silent} silent: {held}");
    }
}

/// The right to list leases is taken away. A machine dies a day later: its lease was fresh at the last list, a day ago.
#[test]
fn lease_of_the_last_list_of_leases_a_day_ago_is_not_fresh() {
    let mut field = Field::new(roster()).populate(12);
    field.run(min(20));
    run_with(&mut field, min(24 * 60), |_| None);
    set(&mut field, "i011", Ready::Unknown);
    field.deaf = true;
    run_with(&mut field, min(12 * 60), |_| None);
    assert!(field.destructive_calls() > 0, "{}", field.held("i011", FaultKind::NotReady));
}

/// The kubelets of some clusters keep no leases: after half an hour the empty list is believed, and a dead machine is repaired.
#[test]
fn empty_list_of_leases_is_believed_after_half_an_hour() {
    let mut field = Field::new(without_rejoin()).populate(12);
    let all: Vec<String> = field.nodes.keys().cloned().collect();
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    run_lacking(&mut field, min(5), |_| &all);
    set(&mut field, "i011", Ready::Unknown);
    run_lacking(&mut field, min(24), |_| &all);
    assert_eq!(field.calls, [], "no list is believed yet");
    run_lacking(&mut field, min(10), |_| &all);
    assert!(!field.calls.is_empty(), "{}", field.held("i011", FaultKind::NotReady));
}

/// A machine joins while the list of Nodes is old, so that its lease alone tells. In the same minutes a restored store loses the
/// Nodes of most others, and their leases are collected: no list of leases is believed, and the last one that was knows
/// nothing of the new machine. It serves, and was rebooted (seed 5809872).
#[test]
fn lease_seen_only_in_doubted_lists_protects_its_machine() {
    let mut field = Field::new(without_rejoin()).populate(10);
    field.run(min(5));
    field.add_machine("new", false);
    field.unlisted_leases = vec!["node-new".into()];
    run_lacking(&mut field, min(120), |_| &["i000", "i001", "i002", "i003", "i004", "i005"]);
    assert_eq!(field.calls, [], "{:?}", made(&field));
}

fn leases(field: &mut Field, list: Leases) {
    field.feed(Event::Cluster(ClusterFact::Leases(list)));
}

/// The API server goes away for forty minutes, and comes back with a cache of leases that is not filled. One such list had
/// come just before it went, too: so the doubt counted as one that had lasted for half an hour.
#[test]
fn doubt_about_a_list_of_leases_does_not_last_while_none_comes() {
    for one_before in [false, true] {
        let mut field = Field::new(without_rejoin()).populate(12);
        field.run(min(20));
        set(&mut field, "i011", Ready::Unknown);
        field.renews = vec!["i011".to_owned()];
        field.run(min(60));
        assert_eq!(field.calls, [], "its lease is fresh");
        if one_before {
            leases(&mut field, Leases::default());
        }
        let end = field.now + min(40);
        while field.now < end {
            field.now = field.now + Span::from_s(10);
            if (field.now.ms / 10_000) % 3 == 0 {
                field.list_cloud();
            }
        }
        assert_eq!(field.calls, [], "the cluster is away");
        run_with(&mut field, min(20), |_| Some(Leases::default()));
        assert_eq!(field.calls, [], "one before: {one_before}: {:?}", made(&field));
    }
}

/// A process begins, and lists of leases are empty. The cloud that is listed first has one machine, and one lease may be lacking:
/// with that the list counted as held against Ready Nodes, and no later one was.
#[test]
fn empty_lease_list_is_not_proved_by_one_node_of_first_cloud() {
    for first in [false, true] {
        let mut wanted = without_rejoin();
        let mut pool = wanted.pools.values().next().unwrap().clone();
        let pool_mark = Mark::Tag("k8s-pool=edge".into());
        pool.name = PoolName::from("edge");
        pool.cloud = "small".into();
        pool.owned =
            Ownership { cluster: Mark::Tag("k8s-cluster=prod".into()), pool: Some(pool_mark.clone()) };
        wanted.clouds.push("small".into());
        wanted.pools.insert(pool.name.clone(), pool);
        let marks = Arc::new([Mark::Tag("k8s-cluster=prod".into()), pool_mark].into());
        let edge = Arc::new(Instance { marks, ..instance("e001") });
        let list_small = |field: &mut Field| {
            let snapshot =
                CloudSnapshot { instances: vec![edge.clone()], ports: Vec::new(), ..field.snapshot() };
            field.feed(Event::Cloud { cloud: "small".into(), fact: CloudFact::read(snapshot) });
        };
        let run = |field: &mut Field, span: Span, lists_leases: bool| {
            let end = field.now + span;
            while field.now < end {
                field.now = field.now + Span::from_s(10);
                if (field.now.ms / 10_000) % 3 == 0 {
                    field.list_cloud();
                    list_small(field);
                }
                field.sync_nodes();
                let list = if lists_leases { field.leases_without(&[]) } else { Leases::default() };
                leases(field, list);
                field.feed(Event::Cluster(ClusterFact::Alive));
            }
        };
        let mut field = Field::new(wanted.clone()).populate(12);
        field.nodes.insert("e001".into(), node("e001", Ready::True));
        field.elsewhere.insert("e001".into(), (*edge).clone());
        run(&mut field, min(20), true);
        set(&mut field, "i011", Ready::Unknown);
        field.renews = vec!["i011".to_owned()];
        run(&mut field, min(60), true);
        assert_eq!(field.calls, [], "its lease is fresh");
        let elsewhere = std::mem::take(&mut field.elsewhere);
        let mut field = field.restarted(wanted);
        field.elsewhere = elsewhere;
        field.sync_nodes();
        if first {
            list_small(&mut field);
        }
        leases(&mut field, Leases::default());
        run(&mut field, min(20), false);
        assert_eq!(field.calls, [], "first: {first}: {:?}", made(&field));
    }
}

/// As `leases::silent_lease_that_a_list_lacks_lights_no_dark_zone`, and our clock is set back by an hour meanwhile: the lease
/// that lists lack had just been renewed then, for half an hour.
#[test]
fn unlisted_silent_lease_keeps_zone_dark_after_clock_set_back() {
    for back in [0, 60] {
        let mut field = Field::new(without_rejoin()).populate(12);
        for id in ["i010", "i011"] {
            field.instances.get_mut(id).unwrap().zone = Some("z2".into());
        }
        field.run(min(5));
        field.silent = vec!["node-i010".to_owned()];
        set(&mut field, "i011", Ready::Unknown);
        field.run(min(20));
        let lacking = |field: &mut Field| Some(field.leases_without(&["i010"]));
        run_with(&mut field, min(5), lacking);
        assert_eq!(field.calls, [], "the zone is dark");
        field.now = field.now - min(back);
        field.cloud_behind = Span::from_ms(-min(back).ms);
        run_with(&mut field, min(24), lacking);
        assert_eq!(field.calls, [], "back by {back} min: {:?}", made(&field));
    }
}

/// Lists with this lease of a Node beside those of all others, a step each.
fn alternating(field: &mut Field, id: &str, shows: [u64; 2]) -> Option<Leases> {
    let others = field.leases_without(&[id]);
    let renewal = Renewal::nth(shows[(field.now.ms / 10_000 % 2) as usize]);
    let own = (NodeName::from(format!("node-{id}").as_str()), renewal);
    let leases = others.iter().map(|(name, renewal)| (name.clone(), renewal)).chain([own]);
    Some(leases.collect())
}

/// A person drained a Node, deleted it and keeps the machine. A store is restored from a backup, and of two API servers one
/// has an older cache than the other: each second list shows the lease as it was a moment before. No kubelet renews it.
#[test]
fn alternating_stale_lease_proves_no_live_kubelet() {
    for shows in [[7, 7], [7, 8]] {
        let mut field = Field::new(without_rejoin()).populate(12);
        field.run(min(20));
        let before = field.nodes["i004"].clone();
        field.nodes.get_mut("i004").unwrap().cordoned = true;
        field.run(min(2));
        field.nodes.remove("i004");
        field.run(min(30));
        assert_eq!(field.calls, [], "it left on purpose");
        field.nodes.insert("i004".into(), before);
        run_with(&mut field, min(1), |field| alternating(field, "i004", shows));
        set(&mut field, "i004", Ready::Unknown);
        run_with(&mut field, min(5), |field| alternating(field, "i004", shows));
        // Both caches show the same from here on.
        run_with(&mut field, min(60), |field| alternating(field, "i004", [8, 8]));
        assert_eq!(field.calls, [], "{shows:?}: {:?}", made(&field));
    }
}

/// A kubelet is dead, and each second list comes from an older cache: its lease is another one at each list, for as long as that
/// lasts.
#[test]
fn alternating_stale_lease_keeps_no_dead_machine_from_repair() {
    for shows in [[7, 7], [7, 8]] {
        let mut field = Field::new(without_rejoin()).populate(12);
        field.run(min(20));
        set(&mut field, "i004", Ready::Unknown);
        run_with(&mut field, min(12 * 60), |field| alternating(field, "i004", shows));
        assert!(!field.calls.is_empty(), "{shows:?}: {}", field.held("i004", FaultKind::NotReady));
    }
}

/// As `leases::empty_lease_list_is_refused_for_ready_nodes_after_restart`, in a cluster of two: one lease may be
/// lacking of one Ready Node.
#[test]
fn empty_lease_list_is_refused_for_one_ready_node_after_restart() {
    let wanted = || {
        let mut roster = without_rejoin();
        roster.limits.freeze_above_pct = 100;
        roster
    };
    for is_empty in [false, true] {
        let mut field = Field::new(wanted()).populate(2);
        field.run(min(20));
        set(&mut field, "i001", Ready::Unknown);
        field.renews = vec!["i001".to_owned()];
        field.run(min(60));
        assert_eq!(field.calls, [], "its lease is fresh");
        let mut field = field.restarted(wanted());
        field.renews = vec!["i001".to_owned()];
        run_with(&mut field, min(20), |field| {
            let full = field.leases_without(&[]);
            Some(if is_empty { Leases::default() } else { full })
        });
        assert_eq!(field.calls, [], "empty: {is_empty}: {:?}", made(&field));
    }
}

/// Kubelets that keep no leases: each list is empty. After half an hour such lists are believed. A second cloud of the roster
/// cannot be listed: no list proves anything, and each believed list is followed by another half an hour of doubt, so that each
/// repair waits for the ten seconds between the two.
#[test]
fn lease_doubt_ends_once_although_one_cloud_is_unlisted() {
    for clouds in [1, 2] {
        let mut wanted = roster_with(|pool| pool.repair.rejoin = Mode::Off);
        if clouds == 2 {
            wanted.clouds.push("away".into());
        }
        let mut field = Field::new(wanted).populate(12);
        run_with(&mut field, min(65), |_| Some(Leases::from_iter([])));
        set(&mut field, "i003", Ready::Unknown);
        run_with(&mut field, min(20), |_| Some(Leases::from_iter([])));
        let held = field.case("i003", FaultKind::NotReady).map(|_| field.held("i003", FaultKind::NotReady));
        assert!(!field.calls.is_empty(), "{clouds} clouds: {held:?}");
    }
}

//! What a person said stands whatever happens to the object that it was said on: a machine that is moved to another pool, a pause
//! of pools that share something, a Node that goes with its annotations.

use std::collections::BTreeSet;
use std::sync::Arc;

use reveille_core::event::{Command, Event, Pause, PauseScope};
use reveille_core::model::instance::Mark;
use reveille_core::model::network::{Route, Router};
use reveille_core::model::node::{Asks, Ready};
use reveille_core::model::roster::{Keep, Mode, Ownership, Pool, Repair, Roster};
use reveille_core::model::time::Span;

use super::fixture::{CLOUD, Field, instance, roster};

const OFF: Repair = Repair {
    network: Mode::Off,
    rejoin: Mode::Off,
    reboot: Mode::Off,
    replace: Mode::Off,
    cleanup: Mode::Off,
};

/// The usual pool, where everything may be done, and one that forbids it.
fn with_quarantine(paused: bool) -> Roster {
    let mut wanted = roster();
    let old = wanted.pools["workers"].clone();
    let repair = if paused { old.repair } else { OFF };
    let pool = Some(Mark::Tag("k8s-pool=quarantine".into()));
    let owned = Ownership { pool, ..old.owned.clone() };
    let pool = Pool { name: "quarantine".into(), owned, repair, paused, min: 0, ..old };
    wanted.pools.insert("quarantine".into(), pool);
    wanted
}

fn quarantine() -> Arc<BTreeSet<Mark>> {
    Arc::new([Mark::Tag("k8s-cluster=prod".into()), Mark::Tag("k8s-pool=quarantine".into())].into())
}

#[test]
fn machine_that_is_moved_to_a_forbidding_pool_is_left_alone() {
    for paused in [true, false] {
        let mut field = Field::new(with_quarantine(paused)).populate(10);
        field.run(Span::from_min(5));
        field.nodes.get_mut("i007").unwrap().ready = Ready::Unknown;
        field.run(Span::from_min(2));
        field.instances.get_mut("i007").unwrap().marks = quarantine();
        field.run(Span::from_min(240));
        assert_eq!(field.calls, [], "{paused}");
    }
}

#[test]
fn machine_that_is_moved_to_an_acting_pool_is_repaired() {
    let mut field = Field::new(with_quarantine(false)).populate(10);
    field.instances.get_mut("i007").unwrap().marks = quarantine();
    field.run(Span::from_min(5));
    field.nodes.get_mut("i007").unwrap().ready = Ready::Unknown;
    field.run(Span::from_min(2));
    field.instances.get_mut("i007").unwrap().marks = instance("i007").marks;
    field.run(Span::from_min(240));
    assert!(field.destructive_calls() > 0);
}

#[test]
fn what_pools_share_rests_while_a_pool_that_uses_it_is_paused() {
    for by_command in [false, true] {
        let mut wanted = roster();
        wanted.network.router = Some((CLOUD.into(), "r-1".into()));
        wanted.pools.get_mut("workers").unwrap().paused = !by_command;
        let mut field = Field::new(wanted).populate(5);
        if by_command {
            let scope = PauseScope::Pool("workers".into());
            let pause = Pause { scope, by: "ann".into(), reason: "hands off".into() };
            field.feed(Event::Command(Command::Pauses([pause].into())));
        }
        let dead = Route { destination: "198.19.77.0/24".parse().unwrap(), next_hop: [10, 8, 0, 250].into() };
        field.routers = vec![Router { id: "r-1".into(), routes: vec![dead], limit: None }];
        field.rules.pop();
        field.run(Span::from_min(20));
        assert_eq!(field.calls, [], "{by_command}");
        if by_command {
            field.feed(Event::Command(Command::Pauses([].into())));
            field.run(Span::from_min(20));
            assert_eq!(field.calls.len(), 2, "{:?}", field.calls);
        }
    }
}

#[test]
fn pause_on_a_node_outlives_the_node() {
    for restarts in [false, true] {
        let mut field = Field::new(roster()).populate(10);
        field.run(Span::from_min(5));
        field.nodes.get_mut("i001").unwrap().intent.paused = true;
        field.run(Span::from_min(1));
        field.nodes.remove("i001");
        field.run(Span::from_min(1));
        if restarts {
            field = field.restarted(roster());
        }
        field.run(Span::from_min(120));
        assert_eq!(field.calls, [], "{restarts}");
    }
}

#[test]
fn machine_that_is_kept_by_its_node_is_kept_without_it() {
    let mut wanted = roster();
    let keep = Keep { within: Span::from_min(60 * 24), at_most: 2, failed: false };
    wanted.pools.get_mut("workers").unwrap().keep = Some(keep);
    let mut field = Field::new(wanted).populate(10);
    field.run(Span::from_min(5));
    let node = field.nodes.get_mut("i001").unwrap();
    node.ready = Ready::Unknown;
    node.intent.asks = Some(Box::new(Asks { keep: Some(true), ..Asks::default() }));
    field.run(Span::from_min(240));
    let before = field.calls.len();
    field.nodes.remove("i001");
    field.run(Span::from_min(240));
    assert_eq!(field.calls.len(), before, "{:?}", field.calls);
}

/// A silent machine is moved to a pool of machines that boot for an hour. It was power-cycled and deleted while it booted.
#[test]
fn machine_moved_to_slow_pool_gets_that_pools_boot_time() {
    for restarts in [false, true] {
        let mut wanted = roster();
        let mut slow = wanted.pools.values().next().unwrap().clone();
        wanted.pools.values_mut().next().unwrap().repair.rejoin = Mode::Off;
        slow.name = "slow".into();
        slow.repair.rejoin = Mode::Off;
        slow.owned.pool = Some(Mark::Tag("k8s-pool=slow".into()));
        slow.deadlines.join_within = Some(Span::from_min(60));
        wanted.pools.insert(slow.name.clone(), slow);
        let mut field = Field::new(wanted.clone()).populate(10);
        field.run(Span::from_min(20));
        field.nodes.get_mut("i004").unwrap().ready = Ready::Unknown;
        field.run(Span::from_min(2));
        let marks = [Mark::Tag("k8s-cluster=prod".into()), Mark::Tag("k8s-pool=slow".into())].into();
        let marks = Arc::new(marks);
        for id in ["i004", "i005", "i006"] {
            field.instances.get_mut(id).unwrap().marks = Arc::clone(&marks);
        }
        field.run_until(Span::from_min(20), |field| !field.calls.is_empty());
        field.run(Span::from_min(5));
        let mut rebooted = field.calls.len();
        if restarts {
            field = field.restarted(wanted);
            rebooted = 0;
        }
        field.run(Span::from_min(50));
        assert_eq!(field.calls.len(), rebooted, "restarts: {restarts}: {:?}", field.calls);
    }
}

//! Both ways of repairing a record, in the simulator: crashes at each step, random courses, what stands against each, and
//! each safeguard taken away once.

#![allow(clippy::unwrap_used, reason = "a test ends where its material is missing")]

mod abandoned;
mod refusals;
mod saboteurs;

use reveille_core::model::time::Time;
use reveille_rancher::repair::{Closing, End, Path};
use reveille_sim::rancher::Plan;
use reveille_sim::rancher::run::Run;
use reveille_sim::rancher::world::{SUBJECT, World};

#[test]
fn record_deleted_before_its_node_returns_as_a_mirror() {
    let mut world = World::of(Path::Evict);
    world.records.retain(|_, record| record.requested_hostname != SUBJECT);
    world.settle(Time::from_ms(0));
    assert_eq!(world.mirrors_made, 1);
    assert!(world.records.values().any(|record| record.name.0.starts_with("machine-")));
}

#[test]
fn both_ways_come_to_their_end_when_nothing_goes_wrong() {
    for (path, closing) in [(Path::Evict, Closing::HandedOver), (Path::Mend, Closing::Mended)] {
        let run = Run::calm(World::of(path));
        assert_eq!(run.ended, Some(End::Closed(closing)), "{}", run.story());
        assert!(run.breach.is_none(), "{:?}", run.breach);
        assert_eq!(run.world.mirrors_made, 0);
        match path {
            Path::Evict => assert!(run.world.subject().is_none() && run.world.its_records().is_empty()),
            Path::Mend => assert!(run.world.its_records()[0].rke_node.is_some()),
        }
    }
}

#[test]
fn a_crash_at_each_step_neither_repeats_nor_loses_anything() {
    let worlds = [
        (World::of(Path::Evict), Closing::HandedOver),
        (World::of(Path::Evict).with_etcd(), Closing::HandedOver),
        (World::of(Path::Mend), Closing::Mended),
    ];
    for (world, closing) in worlds {
        let steps = Run::calm(world.clone()).steps;
        assert!(steps > 20, "{steps}");
        for at in 1..=steps {
            for after in [false, true] {
                let run = Run::with_crash(world.clone(), at, after);
                let told = || format!("{at} {after} {:?}\n{}", run.breach, run.story());
                assert!(run.breach.is_none(), "{}", told());
                assert_eq!(run.ended, Some(End::Closed(closing.clone())), "{}", told());
                assert_eq!(run.world.mirrors_made, 0, "{}", told());
                let left = run.world.members.as_ref().map_or(2, Vec::len);
                assert_eq!(left, 2, "{}", told());
            }
        }
    }
}

#[test]
fn random_runs_break_no_rule_and_one_seed_is_one_run() {
    let (mut closed, mut stopped) = (0, 0);
    for seed in 0..1_500 {
        let plan = Plan::of(seed, &[]).unwrap();
        let outcome = plan.play();
        if let Some(breach) = &outcome.breach {
            panic!("seed {seed} {:?}: {}: {}\n{}", plan.circumstances, breach.by, breach.what, breach.story);
        }
        match &outcome.ended {
            Some(End::Closed(_)) => closed += 1,
            _ => stopped += 1,
        }
        if seed % 100 == 0 {
            assert_eq!(outcome, plan.play(), "seed {seed}");
        }
    }
    assert!(closed > 300 && stopped > 100, "{closed} closed, {stopped} stopped: the draw says little");
}

#[test]
fn edit_that_replaces_etcd_or_gets_no_plan_is_reverted() {
    for spoil in [|world: &mut World| world.replaces_etcd = true, |world: &mut World| world.plans = false] {
        let mut world = World::of(Path::Mend);
        spoil(&mut world);
        let run = Run::calm(world);
        assert_eq!(run.ended, Some(End::Closed(Closing::PutBack)), "{}", run.story());
        let records = run.world.its_records();
        assert!(records[0].rke_node.is_none() && records[0].custom_config.is_none());
    }
}

#[test]
fn edit_is_not_reverted_while_the_cluster_still_works_on_it() {
    let mut world = World::of(Path::Mend);
    // Turns of three seconds: half an hour, and a plan has ten minutes.
    world.update_turns = 600;
    let run = Run::calm(world);
    assert_eq!(run.ended, Some(End::Closed(Closing::Mended)), "{}", run.story());
    assert!(run.breach.is_none(), "{:?}", run.breach);
}

#[test]
fn returning_node_stops_the_repair_before_the_record_is_deleted() {
    let mut world = World::of(Path::Evict);
    world.kubelet_returns = true;
    let run = Run::calm(world);
    let Some(End::Stopped { why, changed: true }) = &run.ended else { panic!("{}", run.story()) };
    assert!(why.contains("came back"), "{why}");
    assert!(!run.story().contains("delete the record"), "{}", run.story());
}

//! Both ways of mending a record, on a made-up cluster whose syncer behaves as Rancher's does: with crashes at each step, lost
//! and doubled answers, and other hands in it. The rules are a witness's, who keeps a book of its own.

#![allow(clippy::unwrap_used, reason = "a test ends where its material is missing")]

mod abandoned;
mod course;
mod refusals;
mod world;

use reveille_rancher::repair::{Closing, End, Path};

use course::{Course, Mishap};
use world::World;

#[test]
fn a_record_that_is_deleted_before_its_node_comes_back_as_a_mirror() {
    let mut world = World::of(Path::Evict);
    world.records.retain(|_, record| record.requested_hostname != world::SUBJECT);
    world.settle();
    assert_eq!(world.mirrors_made, 1);
    assert!(world.records.values().any(|record| record.name.0.starts_with("machine-")));
}

#[test]
fn both_ways_come_to_their_end_when_nothing_goes_wrong() {
    for (path, closing) in [(Path::Evict, Closing::HandedOver), (Path::Mend, Closing::Mended)] {
        let course = Course::play(World::of(path), 1, Mishap::None);
        assert_eq!(course.ended, Some(End::Closed(closing)), "{}", course.story());
        assert_eq!(course.world.mirrors_made, 0);
        match path {
            Path::Evict => assert!(course.world.subject().is_none() && course.world.its_records().is_empty()),
            Path::Mend => assert!(course.world.its_records()[0].rke_node.is_some()),
        }
    }
}

#[test]
fn a_crash_at_each_step_neither_repeats_nor_loses_anything() {
    for (path, closing) in [(Path::Evict, Closing::HandedOver), (Path::Mend, Closing::Mended)] {
        let steps = Course::play(World::of(path), 1, Mishap::None).steps;
        assert!(steps > 20, "{path:?}: {steps}");
        for at in 1..=steps {
            for mishap in [Mishap::CrashBefore(at), Mishap::CrashAfter(at)] {
                let course = Course::play(World::of(path), 1, mishap);
                assert_eq!(
                    course.ended,
                    Some(End::Closed(closing.clone())),
                    "{path:?} {mishap:?}\n{}",
                    course.story()
                );
                assert_eq!(course.world.mirrors_made, 0, "{path:?} {mishap:?}");
            }
        }
    }
}

#[test]
fn a_crash_at_each_step_of_taking_out_a_machine_that_holds_etcd_removes_its_member_once() {
    let world = || World::of(Path::Evict).with_etcd();
    let steps = Course::play(world(), 1, Mishap::None).steps;
    for at in 1..=steps {
        for mishap in [Mishap::CrashBefore(at), Mishap::CrashAfter(at)] {
            let course = Course::play(world(), 1, mishap);
            assert_eq!(
                course.ended,
                Some(End::Closed(Closing::HandedOver)),
                "{mishap:?}\n{}",
                course.story()
            );
            let members = course.world.members.as_ref().unwrap();
            assert_eq!(members.len(), 2, "{mishap:?}\n{}", course.story());
        }
    }
}

#[test]
fn random_courses_break_no_rule_and_one_seed_is_one_course() {
    let worlds = || [World::of(Path::Evict), World::of(Path::Mend), World::of(Path::Evict).with_etcd()];
    for seed in 0..150 {
        for (number, world) in worlds().into_iter().enumerate() {
            let course = Course::play(world.clone(), seed, Mishap::Random);
            assert_eq!(course.world.mirrors_made, 0, "world {number} seed {seed}\n{}", course.story());
            let is_over = matches!(course.ended, Some(End::Closed(_)));
            assert!(is_over, "world {number} seed {seed}\n{}", course.story());
            if seed % 50 == 0 {
                assert_eq!(course.story(), Course::play(world, seed, Mishap::Random).story());
            }
        }
    }
}

#[test]
fn an_edit_after_which_etcd_would_be_replaced_or_no_plan_comes_is_taken_back() {
    for spoil in [|world: &mut World| world.replaces_etcd = true, |world: &mut World| world.plans = false] {
        let mut world = World::of(Path::Mend);
        spoil(&mut world);
        let course = Course::play(world, 1, Mishap::None);
        assert_eq!(course.ended, Some(End::Closed(Closing::PutBack)), "{}", course.story());
        let records = course.world.its_records();
        assert!(records[0].rke_node.is_none() && records[0].custom_config.is_none());
    }
}

#[test]
fn a_kubelet_that_brings_its_node_back_stops_it_before_the_record() {
    let mut world = World::of(Path::Evict);
    world.kubelet_returns = true;
    let course = Course::play(world, 1, Mishap::None);
    let Some(End::Stopped { why, changed: true }) = &course.ended else { panic!("{}", course.story()) };
    assert!(why.contains("came back"), "{why}");
    assert!(!course.story().contains("delete the record"), "{}", course.story());
}

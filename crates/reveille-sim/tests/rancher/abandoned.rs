//! What is left when a repair is given up: at each step of both ways, what a person is told fits what is so.

use reveille_rancher::repair::aftermath::{Aftermath, aftermath};
use reveille_rancher::repair::{Line, Path};

use reveille_sim::rancher::course::Course;
use reveille_sim::rancher::world::World;

/// The process ends after this many steps, and a person looks.
fn after(world: World, steps: u32) -> (Course, Aftermath) {
    let course = Course::cut_short(world, steps);
    let sight = course.world.sight();
    let told = aftermath(&course.world.order, course.book(), Some(&sight));
    (course, told)
}

#[test]
fn operator_is_told_to_delete_a_record_only_after_its_node() {
    let mut stages = [0; 3];
    for steps in 1..200 {
        let (course, told) = after(World::of(Path::Evict).with_etcd(), steps);
        let (left, now) = (told.left.join("; "), told.now.join("; "));
        let story = format!("{steps}: {now} | {left}\n{}", course.story());
        let is_left = course.world.subject().is_none()
            && course.world.its_records().iter().any(|record| record.deleting.is_none());
        assert_eq!(left.contains("delete the record"), is_left, "{story}");
        assert_eq!(
            left.contains("uncordon"),
            course.world.subject().is_some_and(|node| node.unschedulable),
            "{story}"
        );
        assert_eq!(now.contains("the Node w-3 is not there"), course.world.subject().is_none(), "{story}");
        let is_half = course.world.subject().is_some() && course.world.members.as_ref().unwrap().len() == 2;
        assert_eq!(left.contains("member of etcd is out"), is_half, "{story}");
        stages[0] += usize::from(left.contains("uncordon"));
        stages[1] += usize::from(is_half);
        stages[2] += usize::from(left.contains("delete the record"));
    }
    assert!(stages.iter().all(|count| *count > 0), "each was come to: {stages:?}");
}

#[test]
fn abandoned_repair_lists_each_step_with_its_end_or_as_open() {
    let mut undone = 0;
    for steps in 1..60 {
        let (course, told) = after(World::of(Path::Mend), steps);
        let intents = course.book().iter().filter(|line| matches!(line, Line::Intent { .. })).count();
        assert_eq!(told.steps.len(), intents);
        let open = told.steps.iter().filter(|step| step.ended.starts_with("may have been done")).count();
        let ended = course.book().iter().filter(|line| matches!(line, Line::Ended { .. })).count();
        assert_eq!(intents - ended, open, "{}", course.story());
        undone += open;
        let is_written = course.world.its_records()[0].rke_node.is_some();
        assert_eq!(
            told.left.join("; ").contains("watch whether a plan comes"),
            is_written,
            "{}",
            course.story()
        );
    }
    assert!(undone > 0);
}

#[test]
fn without_a_look_nothing_is_said_of_what_is_so() {
    let (course, _) = after(World::of(Path::Evict), 60);
    let told = aftermath(&course.world.order, course.book(), None);
    assert!(told.now.is_empty() && !told.steps.is_empty());
    assert!(told.left[0].contains("look at the Node"), "{:?}", told.left);
}

#[test]
fn a_machine_that_never_held_etcd_is_not_told_to_have_left_it() {
    let mut world = World::of(Path::Evict);
    world.members = World::of(Path::Evict).with_etcd().members.map(|members| members[..2].to_vec());
    for steps in 20..80 {
        let (course, told) = after(world.clone(), steps);
        assert!(!told.left.join("; ").contains("etcd"), "{told:?}\n{}", course.story());
    }
}

//! What is left when a repair is given up: at each step of both ways, what a person is told fits what is so.

use reveille_rancher::repair::aftermath::{Aftermath, aftermath};
use reveille_rancher::repair::{Line, Path};

use reveille_sim::rancher::run::Run;
use reveille_sim::rancher::world::World;

/// The process ends after this many steps, and a person looks.
fn after(world: World, steps: u32) -> (Run, Aftermath) {
    let run = Run::cut_short(world, steps);
    let observation = run.world.observation();
    let told = aftermath(&run.world.order, run.journal(), Some(&observation));
    (run, told)
}

#[test]
fn operator_is_told_to_delete_a_record_only_after_its_node() {
    let mut stages = [0; 3];
    for steps in 1..200 {
        let (run, told) = after(World::of(Path::Evict).with_etcd(), steps);
        let (left, now) = (told.left.join("; "), told.now.join("; "));
        let story = format!("{steps}: {now} | {left}\n{}", run.story());
        let is_left = run.world.subject().is_none()
            && run.world.its_records().iter().any(|record| record.deleting.is_none());
        assert_eq!(left.contains("delete the record"), is_left, "{story}");
        assert_eq!(
            left.contains("uncordon"),
            run.world.subject().is_some_and(|node| node.unschedulable),
            "{story}"
        );
        assert_eq!(now.contains("the Node w-3 is not there"), run.world.subject().is_none(), "{story}");
        let is_half = run.world.subject().is_some() && run.world.members.as_ref().unwrap().len() == 2;
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
        let (run, told) = after(World::of(Path::Mend), steps);
        let intents = run.journal().iter().filter(|line| matches!(line, Line::Intent { .. })).count();
        assert_eq!(told.steps.len(), intents);
        let open = told.steps.iter().filter(|step| step.ended.starts_with("may have been done")).count();
        let ended = run.journal().iter().filter(|line| matches!(line, Line::Ended { .. })).count();
        assert_eq!(intents - ended, open, "{}", run.story());
        undone += open;
        let is_written = run.world.its_records()[0].rke_node.is_some();
        assert_eq!(
            told.left.join("; ").contains("watch whether a plan comes"),
            is_written,
            "{}",
            run.story()
        );
    }
    assert!(undone > 0);
}

#[test]
fn without_a_look_nothing_is_said_of_what_is_so() {
    let (run, _) = after(World::of(Path::Evict), 60);
    let told = aftermath(&run.world.order, run.journal(), None);
    assert!(told.now.is_empty() && !told.steps.is_empty());
    assert!(told.left[0].contains("look at the Node"), "{:?}", told.left);
}

#[test]
fn a_machine_that_never_held_etcd_is_not_told_to_have_left_it() {
    let mut world = World::of(Path::Evict);
    world.members = World::of(Path::Evict).with_etcd().members.map(|members| members[..2].to_vec());
    for steps in 20..80 {
        let (run, told) = after(world.clone(), steps);
        assert!(!told.left.join("; ").contains("etcd"), "{told:?}\n{}", run.story());
    }
}

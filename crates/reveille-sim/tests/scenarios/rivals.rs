//! Models of other programs in the engine's place: the same world, the same faults, other acts.

use reveille_sim::chaos::{Course, Rate};
use reveille_sim::policy::Policy;

use crate::field::*;

/// What the world tells of its own faults does not depend on who decides.
#[test]
fn whoever_decides_meets_the_same_faults_at_the_same_moments() {
    let course = Course::random(3, Rate { machines: 12, length: min(60), ..Rate::default() });
    let told = |policy: Policy| {
        let mut drive = course.stage();
        drive.hand_to(policy);
        assert_eq!(drive.policy(), policy);
        drive.run_for(course.length);
        let over = |line: &&str| line.contains("that is over") || line.contains("the process: ");
        drive.log().lines().filter(over).map(str::to_owned).collect::<Vec<_>>()
    };
    let with_the_engine = told(Policy::Reveille);
    assert!(with_the_engine.len() > 2, "{with_the_engine:?}");
    assert_eq!(with_the_engine, told(Policy::Nobody));
}

/// The engine sleeps while somebody else decides: no step, no record, no call of it.
#[test]
fn the_engine_sleeps_while_another_decides() {
    let course = Course::random(4, Rate { machines: 12, length: min(60), ..Rate::default() });
    let mut drive = course.stage();
    drive.hand_to(Policy::Nobody);
    drive.run_for(course.length);
    let counts = drive.counts();
    assert_eq!((counts.steps, counts.records, counts.calls, counts.looks), (0, 0, 0, 0));
    assert_eq!(drive.world.calls(), []);
    assert!(!drive.world.all_is_well(), "nobody mends anything");
}

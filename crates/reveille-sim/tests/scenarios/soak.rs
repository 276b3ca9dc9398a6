//! Two hundred random courses of events, and what must hold in each of them.

use reveille_core::model::time::Span;
use reveille_core::plan::decide::{self, Next};
use reveille_sim::chaos::{Course, Rate};
use reveille_sim::drive::Drive;

use crate::field::min;

/// Cases for which something could be done now and is not: what a lost timer or a lost wake-up leaves behind.
pub fn left_lying(drive: &Drive) -> Vec<String> {
    let desk = drive.state().desk();
    let mut lying = Vec::new();
    for (key, case) in desk.cases {
        let next = decide::decide(&desk, case).next;
        let what = match &next {
            Next::Act { call, .. } => format!("could {call}"),
            Next::Gather(_) => "could read evidence".to_owned(),
            Next::Wait { until, .. } if *until + Span::from_s(15) < desk.now => {
                "waits for the past".to_owned()
            }
            Next::Well => "looks well".to_owned(),
            _ => continue,
        };
        lying.push(format!("{} of {} ({}): {what}", key.kind, key.subject, case.incident.id));
    }
    lying
}

fn soak(seeds: std::ops::Range<u64>, rate: Rate) {
    for seed in seeds {
        let course = Course::random(seed, rate);
        let mut drive = course.stage();
        drive.run_for(course.length + min(20));
        let tail = || drive.log().tail(60);
        assert!(drive.violations().is_empty(), "seed {seed}: {:?}\n{}", drive.violations(), tail());
        assert!(drive.world.harms().is_empty(), "seed {seed}: {:?}\n{}", drive.world.harms(), tail());
        let before = left_lying(&drive);
        if !before.is_empty() {
            let mut later = drive.clone();
            later.run_for(min(4));
            let still: Vec<String> =
                left_lying(&later).into_iter().filter(|lying| before.contains(lying)).collect();
            assert!(still.is_empty(), "seed {seed}: left lying: {still:#?}\n{}", later.log().tail(200));
        }
    }
}

#[test]
fn two_hundred_seeds_break_no_invariant_harm_nobody_and_forget_nothing() {
    soak(0..200, Rate::default());
}

//! Two hundred random courses of events, and what must hold in each of them.
//!
//! After every step: the invariants. Whenever a call takes effect: it harms nobody. And half an hour after the last
//! happening: nothing that could be done is left lying, and nobody who is ill is in no case. The seeds are dealt to four
//! tests so that they share the cores.

use reveille_core::model::incident::{FaultKind, MachineKey, Subject};
use reveille_core::model::instance::InstanceState;
use reveille_core::model::time::Span;
use reveille_core::plan::decide::{self, Next};
use reveille_sim::chaos::{Course, Rate};
use reveille_sim::drive::Drive;
use reveille_sim::world::layout::CLOUD;

use crate::field::min;

/// Cases for which something could be done now and is not: what a lost timer or a lost wake-up leaves behind.
fn left_lying(drive: &Drive) -> Vec<String> {
    let desk = drive.state().desk();
    let mut lying = Vec::new();
    for (key, case) in desk.cases {
        let what = match decide::decide(&desk, case).next {
            Next::Act { call, .. } => format!("could {call}"),
            Next::Gather(_) => "could read evidence".to_owned(),
            Next::Wait { until, .. } if until + Span::from_s(15) < desk.now => {
                "waits for the past".to_owned()
            }
            Next::Well => "looks well".to_owned(),
            _ => continue,
        };
        lying.push(format!("{} of {} ({}): {what}", key.kind, key.subject, case.incident.id));
    }
    lying
}

/// Machines that are ill and in no case, and machines that are well and in a case of absence: the roll would lie.
fn misjudged(drive: &Drive) -> Vec<String> {
    let desk = drive.state().desk();
    let mut wrong = Vec::new();
    for machine in drive.world.machines().into_iter().filter(|machine| machine.pool.is_some()) {
        let subject = Subject::Machine(MachineKey::Instance(CLOUD.into(), machine.id.clone()));
        let kinds: Vec<FaultKind> =
            desk.cases.keys().filter(|key| key.subject == subject).map(|key| key.kind).collect();
        let passing = matches!(machine.state, InstanceState::Building | InstanceState::Deleting);
        if !machine.well && !passing && kinds.is_empty() {
            wrong.push(format!("{} is ill ({:?}) and in no case", machine.name, machine.trouble));
        }
        let joined = |kind: &&FaultKind| {
            matches!(kind, FaultKind::NeverJoined | FaultKind::Vanished | FaultKind::NotReady)
        };
        if let (true, Some(kind)) = (machine.well, kinds.iter().find(joined)) {
            wrong.push(format!("{} is well and counts as {kind}", machine.name));
        }
    }
    wrong
}

fn soak(seeds: std::ops::Range<u64>) {
    let rate = Rate { machines: 24, length: min(120), every: min(5), ..Rate::default() };
    for seed in seeds {
        let course = Course::random(seed, rate);
        let mut drive = course.stage();
        drive.run_for(course.length + min(30));
        // A pause or a restart that lasts beyond the end is waited for: a sleeping process leaves everything lying.
        drive.run_until(min(90), Drive::is_running);
        drive.run_for(min(10));
        let tail = || drive.log().tail(60);
        assert!(drive.violations().is_empty(), "seed {seed}: {:?}\n{}", drive.violations(), tail());
        assert!(drive.world.harms().is_empty(), "seed {seed}: {:?}\n{}", drive.world.harms(), tail());
        // Whatever is on its way now has arrived after another six minutes.
        let now = [left_lying(&drive), misjudged(&drive)].concat();
        if !now.is_empty() {
            let mut later = drive.clone();
            later.run_for(min(6));
            let still = [left_lying(&later), misjudged(&later)].concat();
            let still: Vec<&String> = still.iter().filter(|wrong| now.contains(wrong)).collect();
            assert!(still.is_empty(), "seed {seed}: {still:#?}\n{}", later.log().tail(120));
        }
    }
}

#[test]
fn seeds_0_to_49_break_no_invariant_harm_nobody_and_forget_nobody() {
    soak(0..50);
}

#[test]
fn seeds_50_to_99_break_no_invariant_harm_nobody_and_forget_nobody() {
    soak(50..100);
}

#[test]
fn seeds_100_to_149_break_no_invariant_harm_nobody_and_forget_nobody() {
    soak(100..150);
}

#[test]
fn seeds_150_to_199_break_no_invariant_harm_nobody_and_forget_nobody() {
    soak(150..200);
}

/// For a longer look: `SEEDS=200..2000 cargo test -p reveille-sim --release -- --ignored more_seeds`.
#[test]
#[ignore = "as long as the range that is asked for"]
fn more_seeds() {
    let range = std::env::var("SEEDS").unwrap_or_else(|_| "200..400".to_owned());
    let (from, to) = range.split_once("..").expect("SEEDS is from..to");
    soak(from.parse().expect("a number")..to.parse().expect("a number"));
}

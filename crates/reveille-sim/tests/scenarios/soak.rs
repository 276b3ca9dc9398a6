//! A hundred random courses of two crowded hours, and what must hold in each of them.
//!
//! After every step the invariants hold. Whenever a call takes effect, it harms no machine, and the oracle reports no foul. Half
//! an hour after the last happening nothing that could be done is left undone, and every ill machine is in a case. The seeds are
//! dealt to two tests so that they share the cores. `days` plays whole days.

use reveille_sim::chaos::{Rate, ScenarioRun};
use reveille_sim::drive::Drive;
use reveille_sim::hunt::liveness;

use crate::field::min;

fn lying(drive: &Drive) -> Vec<(&'static str, String)> {
    let lying = liveness::left_lying(drive).into_iter();
    // Two hours after the faults, an intent may well be under way.
    lying.filter(|(rule, _)| *rule != "what is begun ends").chain(liveness::misjudged(drive)).collect()
}

fn soak(seeds: std::ops::Range<u64>) {
    let rate = Rate { machines: 24, length: min(120), every: min(5), ..Rate::default() };
    for seed in seeds {
        let scenario_run = ScenarioRun::random(seed, rate);
        let mut drive = scenario_run.stage().judged();
        drive.run_for(scenario_run.length + min(30));
        drive.world.end_faults();
        drive.end_mishaps();
        drive.run_for(min(10));
        // A pause or a restart that lasts beyond the end is waited for: a sleeping process leaves everything lying.
        drive.run_until(min(90), Drive::is_running);
        drive.run_for(min(10));
        let tail = || drive.log().tail(60);
        assert!(drive.violations().is_empty(), "seed {seed}: {:?}\n{}", drive.violations(), tail());
        assert!(drive.world.harms().is_empty(), "seed {seed}: {:?}\n{}", drive.world.harms(), tail());
        assert!(drive.fouls().is_empty(), "seed {seed}: {:?}\n{}", drive.fouls(), tail());
        // Whatever is on its way now has arrived after another six minutes.
        let now = lying(&drive);
        if !now.is_empty() {
            let mut later = drive.clone();
            later.run_for(min(6));
            let still = lying(&later);
            let still: Vec<&(&str, String)> = still.iter().filter(|wrong| now.contains(wrong)).collect();
            assert!(still.is_empty(), "seed {seed}: {still:#?}\n{}", later.log().tail(120));
        }
    }
}

#[test]
fn seeds_0_to_49_break_no_invariant_harm_or_forget_no_machine() {
    soak(0..50);
}

#[test]
fn seeds_50_to_99_break_no_invariant_harm_or_forget_no_machine() {
    soak(50..100);
}

/// For a longer look: `SEEDS=200..2000 cargo test -p reveille-sim --release -- --ignored more_seeds`.
#[test]
#[ignore = "as long as the range that is asked for"]
fn more_seeds() {
    let range = std::env::var("SEEDS").unwrap_or_else(|_| "200..400".to_owned());
    let (from, to) = range.split_once("..").expect("SEEDS is from..to");
    soak(from.parse().expect("a number")..to.parse().expect("a number"));
}

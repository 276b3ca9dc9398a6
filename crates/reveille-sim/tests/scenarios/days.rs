//! Two hundred virtual days of fifty machines with every fault that there is, and after each the time until all is at rest.
//!
//! What is judged after every step: the invariants, harm, acts on a wrong diagnosis, and the oracle's rules; at the end: that
//! the curable are cured and the rest is handed to a person (`hunt`). The seeds are dealt to four tests so that they
//! share the cores. [`crate::soak`] packs its happenings closer, into two hours.

use reveille_core::model::time::Span;
use reveille_sim::hunt::{Quarry, play};

fn days(seeds: std::ops::Range<u64>) {
    for seed in seeds {
        let outcome = play(&Quarry::new(seed, 50, Span::from_min(1440), Span::from_min(30))).unwrap();
        assert_eq!(outcome.breach, None, "seed {seed}");
        assert!(outcome.ran > Span::from_min(1440) && outcome.counts.steps > 5_000, "seed {seed}");
    }
}

#[test]
fn days_0_to_49_break_nothing() {
    days(0..50);
}

#[test]
fn days_50_to_99_break_nothing() {
    days(50..100);
}

#[test]
fn days_100_to_149_break_nothing() {
    days(100..150);
}

#[test]
fn days_150_to_199_break_nothing() {
    days(150..200);
}

//! The demo's story, over two hundred seeds.

use reveille_core::model::incident::FaultKind;
use reveille_core::model::time::Span;
use reveille_core::record::Verdict;
use reveille_sim::story::rehearse;

/// A user who runs the demo with any seed sees every kind of trouble found, repaired or held back, and a full roll at the end.
#[test]
fn every_seed_ends_well() {
    for seed in 0..200 {
        let told = rehearse(seed);
        let (summary, tail) = (&told.summary, || told.log.tail(120));
        assert!(summary.ended_well(), "seed {seed}: {summary:#?}\n{}", tail());
        assert!(summary.lasted < Span::from_min(70), "seed {seed} lasted {}", summary.lasted);
        let wrong = |kind| summary.wrong.iter().filter(|wrong| wrong.kind == kind).count();
        for (kind, least) in [
            (FaultKind::GroupMissing, 1),
            (FaultKind::Vanished, 1),
            (FaultKind::DuplicateRoute, 1),
            (FaultKind::NeverJoined, 1),
            (FaultKind::Errored, 1),
        ] {
            assert!(wrong(kind) >= least, "seed {seed}: {kind} not found\n{}", tail());
        }
        let doubted = summary.held.iter().any(|held| &*held.label == "os" && held.why.contains("empty"));
        assert!(doubted, "seed {seed}: the empty list was believed\n{}", tail());
        // The machine whose node was deleted is repaired by the cheapest step there is: neither rebooted nor replaced.
        let vanished = summary.wrong.iter().find(|wrong| wrong.kind == FaultKind::Vanished).unwrap();
        assert!(!matches!(vanished.ended, Some((_, Verdict::SubjectGone)) | None), "seed {seed}\n{}", tail());
        assert!(summary.done.iter().all(|done| done.label != vanished.label), "seed {seed}\n{}", tail());
    }
}

#[test]
fn the_same_seed_is_the_same_story_and_another_is_another() {
    assert_eq!(rehearse(3).digest, rehearse(3).digest);
    assert_ne!(rehearse(3).digest, rehearse(4).digest);
}

/// Only what was struck is deleted: two machines, whatever the seed.
#[test]
fn nothing_is_deleted_but_what_never_lived() {
    for seed in 0..20 {
        let told = rehearse(seed);
        let deleted =
            told.summary.done.iter().filter(|done| done.what.starts_with("delete instance")).count();
        assert_eq!(deleted, 2, "seed {seed}\n{}", told.log.tail(120));
    }
}

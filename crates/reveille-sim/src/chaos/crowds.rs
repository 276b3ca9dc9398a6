//! Many machines at once, and lists that tell less of them than is so: what freezes repairs, and what must not.
//!
//! ```text
//!  seed ─ stream "crowd faults" ─▶ an outage that leases alone show, marks and Nodes of many machines together ─▶ Draft
//! ```
//!
//! Courses of seeds below [`SEEDS_FROM`] were played before. None of them had a list of leases with 200 and nothing in it, an
//! outage that only leases tell of (but by chance, once in 685 000 machine-days), or many machines that lose their marks in the
//! same second: a reader of the code found eleven defects of the counts that these would have shown.

use reveille_core::model::time::Span;

use super::Happening;
use super::dice::{Dice, Drawn};
use super::entry::{Entry, catalog};
use crate::drive::Mishap;
use crate::world::fault::Fault;

/// The first seed with what strikes many machines at once.
pub const SEEDS_FROM: u64 = 5_600_000;

catalog! {
    /// What strikes many at once.
    "leases-unlisted" 2 "the list of leases is empty, with 200" |dice| dice.lasting(Fault::LeasesUnlisted);
    "outage-by-leases" 3 "many machines stand still while the cluster shows an old state, and perhaps no lease, or we are restarted"
        outage_by_leases;
    "handed-over" 2 "many machines lose their marks in the same second, and their new owner shuts some of them down" handed_over;
    "twins" 1 "second Nodes, whose kubelets are silent, name many instances" |dice| {
        let twin = |machine| (Span::ZERO, Happening::Fault(Fault::NodeTwin(machine)));
        dice.some().into_iter().map(twin).collect()
    };
}

fn outage_by_leases(dice: &mut Dice) -> Drawn {
    let share_pct = 20 + dice.rng.below(60) as u32;
    let lasts = dice.rng.span(Span::from_min(6), Span::from_min(20));
    let every = dice.rng.span(Span::from_ms(200), Span::from_s(4));
    let later = dice.rng.span(Span::from_s(20), lasts);
    let mut drawn = vec![
        (Span::ZERO, Happening::Fault(Fault::NodeListStale(lasts + Span::from_min(2)))),
        (Span::from_s(5), Happening::Fault(Fault::ManySilent { share_pct, lasts, every })),
    ];
    match dice.rng.below(4) {
        0 => drawn.push((later, Happening::Fault(Fault::LeasesUnlisted(dice.lasts())))),
        1 => drawn.push((later, Happening::Mishap(Mishap::Crash(dice.down())))),
        _ => {}
    }
    drawn
}

fn handed_over(dice: &mut Dice) -> Drawn {
    let mut drawn = Vec::new();
    for machine in dice.some() {
        drawn.push((Span::ZERO, Happening::Fault(Fault::Unmarked(machine.clone()))));
        if dice.rng.chance(40) {
            let later = dice.rng.span(Span::from_min(1), Span::from_min(90));
            drawn.push((later, Happening::Fault(Fault::ShutOff(machine))));
        }
    }
    drawn
}

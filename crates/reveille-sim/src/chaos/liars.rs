//! What befalls a machine whose kubelet shows the identity of another one.
//!
//! ```text
//!  seed ─ stream "liar faults" ─▶ whom a person drained, whose kubelet shows it, what happens to that one's own machine ─▶ Draft
//! ```
//!
//! Courses of seeds below [`SEEDS_FROM`] were played before. In them the machine of such a kubelet ran on undisturbed: what kept
//! its word from counting for others ended with its state, and nothing showed that.

use reveille_core::model::time::Span;

use super::Happening;
use super::dice::{Dice, Drawn};
use super::entry::{Entry, catalog};
use super::gaps::keeps;
use crate::world::fault::{Fault, Shows};

/// The first seed with these.
pub const SEEDS_FROM: u64 = 8_300_000;

catalog! {
    /// What befalls the one that lies.
    "liar-befallen" 5 "a kubelet shows the identity of a machine that a person drained and keeps, or that is ill, and its own machine is drained too, shut off, given up by its cloud, or loses its marks for a while"
        befallen;
}

fn befallen(dice: &mut Dice) -> Drawn {
    let (liar, of) = (dice.machine(), dice.machine());
    let shows = [Shows::Uuid, Shows::Addresses, Shows::Both][dice.rng.below(3) as usize];
    let victims = if dice.rng.chance(70) {
        Fault::Drained(of.clone(), keeps(dice))
    } else {
        Fault::Breaks(of.clone(), dice.trouble())
    };
    let begins = dice.rng.span(Span::from_min(4), Span::from_min(40));
    let lasts = dice.rng.span(Span::from_s(20), Span::from_min(12));
    let befalls = match dice.rng.below(4) {
        0 => Fault::Drained(liar.clone(), keeps(dice)),
        1 => Fault::ShutOff(liar.clone()),
        2 => Fault::Errored(liar.clone()),
        _ => Fault::MarksAway(liar.clone(), dice.rng.span(Span::from_min(5), Span::from_min(90))),
    };
    // Before, while or after it lies.
    let when = dice.rng.span(Span::from_min(2), begins + lasts + Span::from_min(4));
    vec![
        (Span::ZERO, Happening::Fault(victims)),
        (begins, Happening::Fault(Fault::ShowsIdentity { liar, of, shows, lasts })),
        (when, Happening::Fault(befalls)),
    ]
}

//! What real fleets have and a simple world lacks: how their Nodes are named, what else is on their networks, what is late.
//!
//! ```text
//!  seed ─ one stream for each aspect, by its name ─┬─▶ what this fleet is like                      ─▶ Layout::variety
//!                                                  └─▶ happenings beside those of the other sheets  ─▶ Draft
//! ```
//!
//! Each aspect draws from a stream that is named after it ([`Rng::named`]), so a new aspect moves no draw of another one.
//! Seeds below [`SEEDS_FROM`] were played before there was any of this, and mean what they meant, unless its faults are asked
//! for by name.
//!
//! It judges nothing, and it knows nothing that the engine assumes: each entry is a fact about a real service or fleet.

use reveille_core::model::time::Span;

use super::Happening;
use super::catalog::{Entry, catalog};
use super::dice::call;
use crate::rng::Rng;
use crate::world::fault::{CallLie, Fault};
use crate::world::layout::Layout;

/// The first seed whose fleet has variety of itself.
pub const SEEDS_FROM: u64 = 3_000_000;

catalog! {
    /// What happens in such fleets.
    // Marks that come and go.
    "unmarked-before-call" 3 "an operator takes the pool's mark off between the decision and the call" |_| call(CallLie::Unmarked);
    "mark-returns" 2 "an instance loses its pool's mark, and gets it back" |dice| {
        let (machine, lasts) = (dice.machine(), dice.lasts());
        vec![
            (Span::ZERO, Happening::Fault(Fault::Unmarked(machine.clone()))),
            (lasts, Happening::Fault(Fault::Marked(machine))),
        ]
    };
}

/// Draws what this fleet is like.
pub(super) fn draw(layout: &mut Layout) {
    let mut rng = Rng::named(layout.seed, "boots-slowly");
    if rng.chance(20) {
        layout.variety.boots_slowly = Some(rng.span(Span::from_s(30), Span::from_min(10)));
    }
}

//! What happens while no process looks: long times without us or without a cloud, machines that are made, tried and drained in
//! them, and a night in which nothing can be written.
//!
//! ```text
//!  seed ─ stream "gap faults" ─▶ a gap of ten minutes to a night, and in it a machine made, joined and drained ─▶ Draft
//! ```
//!
//! Courses of seeds below [`SEEDS_FROM`] were played before. In them no process was away for more than three minutes and no
//! cloud for more than a quarter of an hour, a machine that was drained had been there from the start, and a cloud called every
//! guest as its server. A reader of the code found nine defects that these would have shown.

use reveille_core::effect::ReadErrorKind;
use reveille_core::model::time::Span;

use super::Happening;
use super::dice::{Dice, Drawn};
use super::entry::{Entry, catalog};
use crate::drive::Mishap;
use crate::rng::Rng;
use crate::world::fault::{Fault, Refusal};
use crate::world::layout::Layout;

/// The first seed with long gaps.
pub const SEEDS_FROM: u64 = 7_000_000;

catalog! {
    /// What happens while no process looks.
    "tried" 6 "a machine is made, perhaps without its marks, joins, and a person drains it: perhaps while we or its cloud are away"
        tried;
    "away" 3 "no process runs for ten minutes to a night" |dice| {
        let away = gap(dice);
        vec![(Span::ZERO, Happening::Mishap(Mishap::Crash(away)))]
    };
    "drained-in-a-gap" 3 "a person drains a node while no process runs, or a moment before" |dice| {
        let (away, keeps) = (gap(dice), keeps(dice));
        let at = dice.rng.span(Span::ZERO, away);
        let machine = dice.machine();
        vec![
            (Span::from_min(1), Happening::Mishap(Mishap::Crash(away))),
            (at, Happening::Fault(Fault::Drained(machine, keeps))),
        ]
    };
    "writes-refused" 2 "the cloud answers every change with 503 for a night, or a webhook refuses the deletion of Nodes" |dice| {
        let (night, hours) = (dice.rng.chance(60), dice.rng.span(Span::from_min(30), Span::from_min(180)));
        let fault = if night {
            Fault::WritesRefused(Refusal::Unavailable, Span::from_min(480) + hours)
        } else {
            Fault::WritesRefused(Refusal::NodesKept, hours)
        };
        vec![(Span::ZERO, Happening::Fault(fault))]
    };
}

/// For how long no process looks: an upgrade that went wrong, or a night.
pub(super) fn gap(dice: &mut Dice) -> Span {
    if dice.rng.chance(70) {
        dice.rng.span(Span::from_min(10), Span::from_min(70))
    } else {
        dice.rng.span(Span::from_min(240), Span::from_min(600))
    }
}

/// For how long a person keeps a machine that they drained.
pub(super) fn keeps(dice: &mut Dice) -> Span {
    dice.rng.span(Span::from_min(60), Span::from_min(480))
}

fn tried(dice: &mut Dice) -> Drawn {
    let fault = Fault::Tried {
        pool: dice.pool(),
        serves: dice.rng.span(Span::from_min(8), Span::from_min(90)),
        marked_after: dice.rng.chance(50).then(|| dice.rng.span(Span::from_min(10), Span::from_min(120))),
        keeps: keeps(dice),
    };
    // It is made a while before the gap, or within it.
    let (away, made) = (gap(dice), dice.rng.span(Span::ZERO, Span::from_min(40)));
    let begins = dice.rng.span(Span::ZERO, Span::from_min(40));
    let gap = match dice.rng.below(4) {
        0 => Some(Happening::Mishap(Mishap::Crash(away))),
        1 => Some(Happening::Mishap(Mishap::Pause(away))),
        2 => Some(Happening::Fault(Fault::CloudFails(ReadErrorKind::Unavailable, away))),
        _ => None,
    };
    let gap = gap.into_iter().map(|gap| (begins, gap));
    gap.chain([(made, Happening::Fault(fault))]).collect()
}

/// Draws whether this fleet's Nodes tell of their machines what bare metal's and k3s's tell.
pub(super) fn draw(layout: &mut Layout) {
    let own_hardware = Rng::named(layout.seed, "own hardware").chance(15);
    layout.variety.own_hardware = own_hardware && !layout.is_told_of_hosting();
}

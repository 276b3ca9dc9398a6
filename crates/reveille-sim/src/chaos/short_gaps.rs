//! Drains in gaps that events outlive: a restart, a sleep, an API server that does not answer, for minutes or most of an hour.
//!
//! ```text
//!  seed ─ stream "short-gap faults" ─▶ a gap; a machine that is well, or whose kubelet dies in it; a drain; marks off ─▶ Draft
//! ```
//!
//! In courses of seeds below [`SEEDS_FROM`] such a machine was ill before the gap. A reader of the code found that one which dies
//! in the gap itself tells of no cordon either, and was deleted in the hands of the person who drained it.

use reveille_core::model::time::Span;

use super::Happening;
use super::dice::{Dice, Drawn};
use super::entry::{Entry, catalog};
use super::gaps::keeps;
use crate::drive::Mishap;
use crate::world::fault::Fault;
use crate::world::vm::Trouble;

/// The first seed with these.
pub const SEEDS_FROM: u64 = 9_500_000;

/// A drain takes so long: the cordon, and the Node two minutes after it.
const DRAINED_IN: Span = Span::from_min(2);

catalog! {
    /// Drains in such gaps.
    "drained-in-a-gap" 6 "a machine that is well, or dies then, is drained in a gap of three minutes to most of an hour, and perhaps has no marks then"
        drained;
}

fn drained(dice: &mut Dice) -> Drawn {
    let (machine, keeps) = (dice.machine(), keeps(dice));
    let away = dice.rng.span(DRAINED_IN + Span::from_min(1), Span::from_min(50));
    let gap = match dice.rng.below(3) {
        0 => Happening::Mishap(Mishap::Crash(away)),
        1 => Happening::Mishap(Mishap::Pause(away)),
        _ => Happening::Fault(Fault::ApiSilent(away)),
    };
    let begins = Span::from_min(10);
    let drained = begins + dice.rng.span(Span::from_s(5), less(away, DRAINED_IN));
    let mut drawn = vec![(begins, gap), (drained, Happening::Fault(Fault::Drained(machine.clone(), keeps)))];
    // Its kubelet dies shortly before it is drained, and tells of nothing.
    let (dies, before) = (dice.rng.chance(60), dice.rng.span(Span::ZERO, Span::from_s(60)));
    let dies_at = less(drained, before).max(begins);
    let ill = Fault::Breaks(
        machine.clone(),
        if dice.rng.chance(50) { Trouble::KubeletHung } else { Trouble::Broken },
    );
    drawn.extend(dies.then_some((dies_at, Happening::Fault(ill))));
    // A person who wants a machine to themselves takes its marks off first.
    let (unmarked, at) = (dice.rng.chance(25), dice.rng.span(Span::ZERO, begins));
    let lasts = away + dice.rng.span(Span::from_min(20), Span::from_min(240));
    drawn.extend(unmarked.then_some((at, Happening::Fault(Fault::MarksAway(machine, lasts)))));
    // And perhaps we are upgraded once more before they are done.
    let (restarts, again, down) = (
        dice.rng.chance(40),
        begins + away + dice.rng.span(Span::from_s(20), Span::from_min(90)),
        dice.down(),
    );
    drawn.extend(restarts.then_some((again, Happening::Mishap(Mishap::Crash(down)))));
    drawn
}

const fn less(span: Span, by: Span) -> Span {
    Span::from_ms(span.ms - by.ms)
}

//! What a process finds when it wakes up or begins: a watch that lost its place, a ledger whose last processes saw nothing, a
//! cordon that was taken back meanwhile.
//!
//! ```text
//!  seed ─ stream "waking faults" ─▶ a sleep or starts that fail, and in it a machine made, drained, cordoned ─▶ Draft
//! ```
//!
//! Courses of seeds below [`SEEDS_FROM`] were played before. In them a process that woke up was told all that it had slept
//! through, every start came to its first step, and a cordon stood until its Node was gone. Two faults that deleted drained
//! machines were found by reading, because no world had such a start or such a sleep.

use reveille_core::model::time::Span;

use super::Happening;
use super::dice::{Dice, Drawn};
use super::entry::{Entry, catalog};
use super::gaps::{gap, keeps};
use crate::drive::Mishap;
use crate::rng::Rng;
use crate::world::fault::Fault;
use crate::world::layout::Layout;

/// The first seed with these.
pub const SEEDS_FROM: u64 = 7_800_000;

catalog! {
    /// What a process finds when it wakes up or begins.
    "slept" 3 "our process sleeps for ten minutes to a night, and a person drains a node in it, or makes and tries a machine" |dice| {
        let away = gap(dice);
        let mut drawn = vec![(Span::from_min(1), Happening::Mishap(Mishap::Pause(away)))];
        drawn.extend(unseen(dice, away));
        drawn
    };
    "starts-fail" 3 "our process dies, and the next ones end before their first step, while a person drains a node or tries a machine"
        |dice| {
        let away = if dice.rng.chance(50) { gap(dice) } else { dice.down() };
        let times = 1 + dice.rng.below(6) as u32;
        let every = dice.rng.span(Span::from_s(20), Span::from_min(40));
        let all = Span::from_ms(away.ms + every.ms * i64::from(times));
        let mut drawn = vec![
            (Span::ZERO, Happening::Mishap(Mishap::StartsFail(times, every))),
            (Span::from_min(1), Happening::Mishap(Mishap::Crash(away))),
        ];
        drawn.extend(unseen(dice, all));
        drawn
    };
    "uncordoned" 2 "a client cordons a node and uncordons it, once or again and again" uncordoned;
}

/// What a person does while no process looks, or a moment before.
fn unseen(dice: &mut Dice, away: Span) -> Drawn {
    let (at, keeps) = (dice.rng.span(Span::ZERO, away), keeps(dice));
    let fault = if dice.rng.chance(50) {
        Fault::Drained(dice.machine(), keeps)
    } else {
        let serves = dice.rng.span(Span::from_min(8), Span::from_min(90));
        Fault::Tried { pool: dice.pool(), serves, marked_after: None, keeps }
    };
    vec![(at, Happening::Fault(fault))]
}

fn uncordoned(dice: &mut Dice) -> Drawn {
    let machine = dice.machine();
    let times = if dice.rng.chance(70) { 1 } else { 2 + dice.rng.below(12) };
    let most = if times == 1 { Span::from_min(90) } else { Span::from_min(3) };
    let (mut drawn, mut at) = (Vec::new(), Span::ZERO);
    for _ in 0..times {
        for fault in [Fault::Cordoned(machine.clone()), Fault::Uncordoned(machine.clone())] {
            drawn.push((at, Happening::Fault(fault)));
            at = at + dice.rng.span(Span::from_s(2), most);
        }
    }
    drawn
}

/// Draws whether the API server keeps what changes in a long sleep.
pub(super) fn draw(layout: &mut Layout) {
    layout.variety.lists_after_sleep = Rng::named(layout.seed, "long sleeps").chance(50);
}

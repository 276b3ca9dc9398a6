//! Machines that people take in hand in ways that clouds and Nodes show little of.
//!
//! ```text
//!  seed ─ stream "in-hand faults" ─▶ a pause and a new name, a detachment, a drain in a gap of minutes, out of service ─▶ Draft
//! ```
//!
//! Courses of seeds below [`SEEDS_FROM`] were played before. In them a pause named a pool, a server kept its name, what a group
//! had kept it went on keeping, each gap in which a person drained a machine lasted for ten minutes at least, and each listing
//! had every address. A reader of the code found six defects that these would have shown.

use reveille_core::model::time::Span;

use super::Happening;
use super::dice::{Dice, Drawn};
use super::entry::{Entry, catalog};
use super::gaps::keeps;
use crate::drive::Mishap;
use crate::world::fault::Fault;
use crate::world::hands::Hand;
use crate::world::vm::Trouble;

/// The first seed with these.
pub const SEEDS_FROM: u64 = 9_000_000;

catalog! {
    /// What people do with a machine that they have in hand.
    "paused-and-renamed" 4 "a person pauses a machine that is or falls ill by its name, and perhaps renames its server or restarts us"
        paused;
    "detached" 4 "a person takes an ill machine out of its group, and ends it or attaches it again hours later" detached;
    "silent-drained" 4 "a kubelet hangs; a person drains its node while no process runs, sleeps or reaches the API, for minutes"
        silent_drained;
    "out-of-service" 3 "a machine is off or broken, and a person says with a taint that it has to stay so" |dice| {
        let (machine, lasts) = (dice.machine(), keeps(dice));
        let off = dice.rng.chance(50);
        let first = if off { Fault::ShutOff(machine.clone()) } else { Fault::Breaks(machine.clone(), Trouble::Broken) };
        let after = dice.rng.span(Span::from_s(5), Span::from_min(4));
        vec![(Span::ZERO, Happening::Fault(first)), (after, Happening::Fault(Fault::ByHand(machine, Hand::OutOfService(lasts))))]
    };
    "unaddressed" 3 "the cloud lists a machine without its addresses for hours, while its port has them" |dice| {
        let lasts = dice.rng.span(Span::from_min(10), Span::from_min(480));
        dice.on(|machine| Fault::ByHand(machine, Hand::Unaddressed(lasts)))
    };
}

fn paused(dice: &mut Dice) -> Drawn {
    let (machine, lasts, trouble) = (dice.machine(), keeps(dice), dice.trouble());
    let ill_after = dice.rng.span(Span::ZERO, Span::from_min(30));
    let mut drawn = vec![
        (Span::from_min(1), Happening::Mishap(Mishap::HandsOff(machine.clone(), lasts))),
        (ill_after, Happening::Fault(Fault::Breaks(machine.clone(), trouble))),
    ];
    let renamed = dice.rng.span(Span::from_min(2), Span::from_min(40));
    if dice.rng.chance(70) {
        drawn.push((renamed, Happening::Fault(Fault::ByHand(machine, Hand::Renamed))));
    }
    let (restarts, at, down) =
        (dice.rng.chance(50), dice.rng.span(Span::from_min(2), Span::from_min(60)), dice.down());
    drawn.extend(restarts.then_some((at, Happening::Mishap(Mishap::Crash(down)))));
    drawn
}

fn detached(dice: &mut Dice) -> Drawn {
    let (machine, lasts, back) = (dice.machine(), keeps(dice), dice.rng.chance(40));
    let trouble = if dice.rng.chance(50) { Trouble::KubeletHung } else { Trouble::Broken };
    let after = dice.rng.span(Span::ZERO, Span::from_min(20));
    let hand = if back { Hand::DetachedForAWhile(lasts) } else { Hand::Detached(lasts) };
    let mut drawn = vec![
        (Span::ZERO, Happening::Fault(Fault::Breaks(machine.clone(), trouble))),
        (after, Happening::Fault(Fault::ByHand(machine.clone(), hand))),
    ];
    // Perhaps while no process runs; and perhaps they stop it.
    let (restarts, stops, down) = (dice.rng.chance(40), dice.rng.chance(40), dice.down());
    let away = after + dice.rng.span(Span::from_s(-40), Span::from_min(20));
    drawn.extend(restarts.then_some((away.max(Span::ZERO), Happening::Mishap(Mishap::Crash(down)))));
    let off = after + dice.rng.span(Span::from_s(30), Span::from_min(30));
    drawn.extend(stops.then_some((off, Happening::Fault(Fault::ShutOff(machine)))));
    drawn
}

fn silent_drained(dice: &mut Dice) -> Drawn {
    let (machine, keeps) = (dice.machine(), keeps(dice));
    let begins = dice.rng.span(Span::from_s(30), Span::from_min(15));
    // The drain takes two minutes of it.
    let away = dice.rng.span(Span::from_s(150), Span::from_min(9));
    let gap = match dice.rng.below(3) {
        0 => Happening::Mishap(Mishap::Crash(away)),
        1 => Happening::Mishap(Mishap::Pause(away)),
        _ => Happening::Fault(Fault::ApiSilent(away)),
    };
    let drained = begins + dice.rng.span(Span::from_s(5), Span::from_s(30));
    let ill = match dice.rng.below(4) {
        0 => Fault::ShutOff(machine.clone()),
        1 => Fault::Errored(machine.clone()),
        _ => Fault::Breaks(machine.clone(), Trouble::KubeletHung),
    };
    vec![
        (Span::ZERO, Happening::Fault(ill)),
        (begins, gap),
        (drained, Happening::Fault(Fault::Drained(machine, keeps))),
    ]
}

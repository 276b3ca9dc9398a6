//! Machines that a repair helps for a moment: well when they have just been started, and ill again soon after.
//!
//! ```text
//!  seed ─ stream "relapse faults" ─▶ a kubelet that hangs again and again, whatever was done in between ─▶ Draft
//! ```
//!
//! The hunt played courses of seeds below [`SEEDS_FROM`] before: what a reboot repaired there stayed repaired. A reboot could
//! count as two tries, one when the machine relapsed and one at its deadline; none of those courses showed that.

use reveille_core::model::time::Span;

use super::Happening;
use super::dice::{Dice, Drawn};
use super::entry::{Entry, catalog};
use crate::world::fault::Fault;
use crate::world::vm::Trouble;

/// The first seed whose machines relapse.
pub const SEEDS_FROM: u64 = 3_600_000;

/// So often at most a kubelet hangs.
const TIMES: i64 = 60;

catalog! {
    /// What comes back.
    "relapse" 5 "a kubelet hangs again and again, moments after whatever started it" relapse;
}

fn relapse(dice: &mut Dice) -> Drawn {
    let machine = dice.machine();
    let every = dice.rng.span(Span::from_s(20), Span::from_min(4));
    let lasts = dice.rng.span(Span::from_min(20), Span::from_min(120));
    let hangs = |turn: i64| {
        let fault = Fault::Breaks(machine.clone(), Trouble::KubeletHung);
        (Span::from_ms(every.ms * turn), Happening::Fault(fault))
    };
    (0..(lasts.ms / every.ms).min(TIMES)).map(hangs).collect()
}

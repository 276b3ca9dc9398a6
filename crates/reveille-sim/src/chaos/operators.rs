//! What operators do to single machines beside the controller, and what the roster lets the controller do meanwhile.
//!
//! ```text
//!  seed ─ stream "roster" ────────▶ what each pool lets us do, and how many machines it keeps ─▶ Layout
//!  seed ─ stream "hands faults" ──▶ rescues, and those just before a call                       ─▶ Draft
//! ```
//!
//! Courses of seeds below [`SEEDS_FROM`] were played before: one roster, in which every class says `act`, and no rescue.
//! Under the default one (`rejoin: propose`, no agent) a case that a gate held was decided too late, which none of them showed.

use reveille_core::model::roster::{Mode, Repair};
use reveille_core::model::time::Span;

use super::dice::call;
use super::entry::{Entry, catalog};
use crate::rng::Rng;
use crate::world::fault::{CallLie, Fault};
use crate::world::layout::Layout;

/// The first seed whose roster may say less than that everything is repaired, and whose operators rescue machines.
pub const SEEDS_FROM: u64 = 3_400_000;

catalog! {
    /// What operators do.
    "rescued" 5 "an operator puts a machine into a rescue, mends what is wrong inside it, and lets it boot" |dice| {
        let lasts = dice.rng.span(Span::from_min(1), Span::from_min(40));
        dice.on(|machine| Fault::Rescued(machine, lasts))
    };
    "rescued-before-call" 3 "an operator puts a machine into a rescue between the decision and the call" |_| call(CallLie::Rescued);
}

/// What people let it do: everything, what a roster begins with and one class more, or any mixture, in each pool for itself.
pub(super) fn draw(layout: &mut Layout) {
    let mut rng = Rng::named(layout.seed, "roster");
    let any = [Mode::Act, Mode::Act, Mode::Propose, Mode::Off];
    for pool in &mut layout.pools {
        let mut modes = [Mode::Act; 5];
        match rng.below(3) {
            0 => {}
            1 => {
                let begins = Repair::default();
                modes = [begins.network, begins.rejoin, begins.reboot, begins.replace, begins.cleanup];
                modes[rng.below(5) as usize] = Mode::Act;
            }
            _ => modes = modes.map(|_| any[rng.below(4) as usize]),
        }
        let [network, rejoin, reboot, replace, cleanup] = modes;
        pool.repair = Repair { network, rejoin, reboot, replace, cleanup };
        pool.min = [1, 1, pool.machines / 2, pool.machines][rng.below(4) as usize].max(1);
    }
}

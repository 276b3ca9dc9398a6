//! Kubelets that show the identity of another machine, and fleets in which only what a kubelet writes leads to its machine.
//!
//! ```text
//!  seed ─ stream "impostor faults" ─▶ whose kubelet shows whom, for how long, again ─▶ Draft
//! ```
//!
//! Courses of seeds below [`SEEDS_FROM`] were played before. In them each kubelet showed its own machine, and Nodes either named
//! an instance or had a UUID of the hardware's. Faults that deleted drained machines after an identity had been shown for a
//! moment were found by reading.

use reveille_core::model::time::Span;

use super::Happening;
use super::dice::{Dice, Drawn};
use super::entry::{Entry, catalog};
use super::gaps::keeps;
use crate::drive::Mishap;
use crate::rng::Rng;
use crate::world::fault::{Fault, Shows};
use crate::world::layout::Layout;

/// The first seed with these.
pub const SEEDS_FROM: u64 = 8_200_000;

catalog! {
    /// Who shows whom.
    "identity-shown" 5 "a kubelet shows the UUID or the addresses of another machine, for a moment or for minutes, perhaps of one that is ill, or drained, or across a restart"
        shown;
}

fn shown(dice: &mut Dice) -> Drawn {
    let (liar, of) = (dice.machine(), dice.machine());
    let shows = [Shows::Uuid, Shows::Addresses, Shows::Both][dice.rng.below(3) as usize];
    let most = if dice.rng.chance(50) { Span::from_s(3) } else { Span::from_min(12) };
    let lasts = dice.rng.span(Span::from_ms(20), most);
    // Something befalls the machine that is shown, before or after.
    let at = dice.rng.span(Span::ZERO, Span::from_min(30));
    let befalls = match dice.rng.below(4) {
        0 => Some(Fault::Drained(of.clone(), keeps(dice))),
        1 => Some(Fault::NodePaused(of.clone(), dice.rng.span(Span::from_min(5), Span::from_min(60)))),
        2 => Some(Fault::Breaks(of.clone(), dice.trouble())),
        _ => None,
    };
    let mut drawn: Drawn = befalls.into_iter().map(|fault| (at, Happening::Fault(fault))).collect();
    let mut begins = dice.rng.span(Span::ZERO, Span::from_min(30));
    if dice.rng.chance(30) {
        let crash = begins + dice.rng.span(Span::ZERO, lasts);
        drawn.push((crash, Happening::Mishap(Mishap::Crash(dice.down()))));
    }
    let times = if dice.rng.chance(70) { 1 } else { 2 + dice.rng.below(8) };
    for _ in 0..times {
        let fault = Fault::ShowsIdentity { liar: liar.clone(), of: of.clone(), shows, lasts };
        drawn.push((begins, Happening::Fault(fault)));
        begins = begins + lasts + dice.rng.span(Span::from_s(1), Span::from_min(10));
    }
    drawn
}

/// Draws whether Nodes have their servers' UUIDs and name no instance, as with k3s on OpenStack.
pub(super) fn draw(layout: &mut Layout) {
    let k3s = Rng::named(layout.seed, "k3s on servers").chance(40);
    layout.variety.k3s = k3s && !layout.variety.own_hardware && !layout.is_told_of_hosting();
}

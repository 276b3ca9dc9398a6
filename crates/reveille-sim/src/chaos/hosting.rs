//! Clouds that tell how they host their machines, and what they and their groups do by themselves.
//!
//! ```text
//!  seed ─ a stream of its own ─┬─▶ whether this is such a cloud, and how it hosts each pool    ─▶ Layout
//!                              └─▶ happenings beside those of the fleet and of service users ─▶ Draft
//! ```
//!
//! A stream of its own draws them, as in `access`, and for the same reason: a course draws the same for its machines whether
//! their cloud tells of hosting or not. Seeds below [`SEEDS_FROM`] were played before these faults existed, and keep their
//! meaning, unless the faults are named.

use reveille_core::model::time::Span;

use super::Happening;
use super::dice::{Dice, Drawn, one};
use super::entry::{Entry, catalog};
use super::variety;
use crate::rng::Rng;
use crate::world::fault::Fault;
use crate::world::layout::{Layout, PoolHosting};
use crate::world::vm::Trouble;

/// The first seed whose cloud may tell of hosting of itself.
pub const SEEDS_FROM: u64 = 2_000_000;
/// Of a hundred courses of such seeds, so many are in such a cloud.
const SUCH_PCT: u64 = 70;
/// The same where fleets lie in two projects, which those in such a cloud do not.
const SUCH_BESIDE_PROJECTS_PCT: u64 = 40;
/// So long parts of such a cloud may disagree, as rosters that name EC2 have it.
const SETTLES: Span = Span::from_min(5);

catalog! {
    /// What such a cloud, and groups of it, can do.
    "host-impaired" 5 "the host of a machine breaks: only stopped and started it runs again, on another host"
        |dice| dice.on(Fault::HostImpaired);
    "guest-impaired" 4 "a machine's own system hangs until it is booted again"
        |dice| dice.on(Fault::GuestImpaired);
    "check-wrong" 3 "the provider's check of a host fails, and nothing is wrong"
        |dice| {
            let lasts = dice.rng.span(Span::from_min(1), Span::from_min(60));
            dice.on(|machine| Fault::CheckWrong(machine, lasts))
        };
    "spot-taken" 6 "the provider wants a machine back that it sold until then: two minutes later it ends it"
        |dice| dice.on(Fault::SpotTaken);
    "retires" 3 "the provider announces that it stops a machine, and does"
        |dice| {
            let after = dice.rng.span(Span::from_min(2), Span::from_min(120));
            dice.on(|machine| Fault::Retires(machine, after))
        };
    "group-replaces" 4 "the group that keeps a machine finds it unfit, ends it and makes another"
        |dice| dice.on(Fault::GroupReplaces);
    "put-apart" 4 "an operator takes a machine out of its group's service and works on it, or only looks"
        put_apart;
    "not-known" 3 "parts of the cloud do not know an instance that has long been there, and its controller deletes its node if that is not Ready"
        |dice| {
            let lasts = dice.rng.span(Span::from_s(10), Span::from_min(4));
            dice.on(|machine| Fault::NotKnown(machine, lasts))
        };
    "launch-unknown" 7 "a pool grows by a machine that parts of the cloud do not know for a while, and its controller deletes its node"
        launch_unknown;
}

fn put_apart(dice: &mut Dice) -> Drawn {
    let (machine, works) = (dice.machine(), dice.rng.chance(60));
    let lasts = dice.rng.span(Span::from_min(5), Span::from_min(90));
    let after = dice.rng.span(Span::from_s(5), Span::from_min(3));
    let mut drawn = one(Fault::PutApart(machine.clone(), lasts));
    if works {
        drawn.push((after, Happening::Fault(Fault::Breaks(machine, Trouble::KubeletHung))));
    }
    drawn
}

fn launch_unknown(dice: &mut Dice) -> Drawn {
    let pool = dice.pool();
    let after = if dice.rng.chance(30) { Span::ZERO } else { dice.rng.span(Span::ZERO, Span::from_min(2)) };
    let lasts = dice.rng.span(Span::from_s(15), Span::from_min(6));
    let (ill, trouble) = (dice.rng.chance(20), dice.trouble());
    one(Fault::LaunchUnknown { pool, after, lasts, trouble: ill.then_some(trouble) })
}

/// Draws how the fleet is hosted; where these faults were asked for by name, something is.
pub(super) fn draw(rng: &mut Rng, layout: &mut Layout) {
    let asked_for = layout.seed < SEEDS_FROM;
    let such = if layout.seed < variety::TWO_PROJECTS_FROM { SUCH_PCT } else { SUCH_BESIDE_PROJECTS_PCT };
    if !asked_for && !rng.chance(such) {
        return;
    }
    layout.settles = Some(SETTLES);
    for plan in &mut layout.pools {
        let group = rng.chance(60);
        plan.hosting = Some(PoolHosting {
            group,
            through: rng.chance(50) && group,
            spot: rng.chance(50),
            loses_disks: rng.chance(25),
        });
    }
}

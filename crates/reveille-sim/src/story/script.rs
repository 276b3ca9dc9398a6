//! What happens in the story, to which machine and when.
//!
//! Six events, one in each slot of about six minutes. The seed deals the events to the slots, moves each within its slot
//! and picks whom it strikes; no machine is struck twice. The false listing is long enough to be noticed by two listings
//! and short enough that the rest of the story has time to end.

use reveille_core::model::id::{InstanceId, PoolName};
use reveille_core::model::roster::{Deadlines, Mode, Repair};
use reveille_core::model::time::{Span, Time};

use crate::rng::{Rng, Stream};
use crate::world::World;
use crate::world::fault::Fault;
use crate::world::layout::{ACT, Layout, PoolPlan};
use crate::world::vm::Trouble;

/// One slot of the story.
const SLOT: Span = Span::from_min(6);
/// Before the first: the reader sees a healthy roll.
const PRELUDE: Span = Span::from_min(2);

/// Two pools, a dozen machines, pod routes on a router; patience is shorter than by default, so that the story fits.
pub(super) fn layout(seed: u64) -> Layout {
    let mut layout = Layout::fleet(seed, 0).routed();
    let deadlines = Deadlines {
        join_within: Some(Span::from_min(8)),
        vanished_within: Span::from_min(2),
        ..Deadlines::default()
    };
    let repair = Repair { reboot: Mode::Propose, ..ACT };
    let plan = |name, machines, min| PoolPlan { min, deadlines, repair, ..PoolPlan::new(name, machines) };
    layout.pools = vec![plan("workers", 8, 3), plan("gpu", 4, 1)];
    layout.neighbours = 2;
    layout
}

/// Schedules everything; returns when the last of it has struck and ended.
pub(super) fn write(seed: u64, world: &mut World, start: Time) -> Time {
    let mut dice = Rng::new(seed, Stream::Faults);
    let mut whom: Vec<InstanceId> =
        world.machines().into_iter().filter(|machine| machine.pool.is_some()).map(|m| m.id).collect();
    let mut victim = || {
        let index = dice.below(whom.len() as u64) as usize;
        whom.swap_remove(index)
    };
    let (grouped, vanished, routed, also_routed) = (victim(), victim(), victim(), victim());
    let mut pool = || PoolName::from(if dice.chance(50) { "workers" } else { "gpu" });
    let (young, broken) = (pool(), pool());
    let lasts = dice.span(Span::from_min(3), Span::from_min(5));
    let mut slots: Vec<Vec<Fault>> = vec![
        vec![Fault::GroupLost { machine: grouped, slips: false }],
        vec![Fault::NodeDeletedByController(vanished)],
        vec![Fault::DuplicateRoute(routed), Fault::DuplicateRoute(also_routed)],
        vec![Fault::Launch { pool: young, trouble: Some(Trouble::NoNetwork) }],
        vec![Fault::Launch { pool: broken, trouble: Some(Trouble::BuildFails) }],
        vec![Fault::ServersUnlisted { lasts, denies: dice.chance(50) }],
    ];
    let mut at = start + PRELUDE;
    let mut ends = at;
    while !slots.is_empty() {
        let index = dice.below(slots.len() as u64) as usize;
        let within = dice.span(Span::ZERO, Span::from_min(3));
        for fault in slots.swap_remove(index) {
            let strikes = at + within;
            ends = ends.max(strikes + fault.lasts().unwrap_or(Span::ZERO));
            world.schedule(strikes, fault);
        }
        at = at + SLOT;
    }
    ends
}

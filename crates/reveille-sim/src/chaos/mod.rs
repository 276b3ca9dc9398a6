//! Random courses of events: which faults, on whom, when, all from one seed.
//!
//! ```text
//!  seed, Rate (how much), Rates (which, how often) ─▶ Draft (numbered) ─▶ ScenarioRun (plain data) ─ stage ─▶ Drive
//! ```
//!
//! A [`ScenarioRun`] is plain data, drawn completely before anything runs. So a course that fails can be written down, cut
//! shorter and played again: dropping one happening moves no other. Faults come at a rate, bunched now and then, because
//! correlated faults are another thing than single ones.
//!
//! The module judges nothing; `hunt` does.

pub mod access;
pub mod catalog;
pub mod crowds;
mod dice;
mod entry;
pub mod gaps;
pub mod hands;
pub mod hosting;
pub mod impostors;
pub mod liars;
pub mod operators;
pub mod relapse;
pub mod short_gaps;
pub mod variety;
pub mod wakings;

use reveille_core::model::id::InstanceId;
use reveille_core::model::roster::Access;
use reveille_core::model::time::Span;

use crate::drive::{Drive, Mishap};
use crate::rng::{Rng, Stream};
use crate::world::World;
use crate::world::fault::Fault;
use crate::world::layout::{Layout, PoolPlan};

use catalog::SHEETS;
pub use catalog::{CATALOG, Rates, UnknownFault};
use dice::{Dice, Drawn};
pub use entry::Entry;

/// One thing that happens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Happening {
    /// In the world.
    Fault(Fault),
    /// To the controller's process.
    Mishap(Mishap),
    /// A person restarts a machine's kubelet.
    KubeletRestart(InstanceId),
}

impl Happening {
    /// Its name.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Fault(fault) => fault.name(),
            Self::Mishap(mishap) => mishap.name(),
            Self::KubeletRestart(_) => "kubelet-restart",
        }
    }
}

/// A course of events, from the beginning of its world.
#[derive(Clone, Debug)]
pub struct ScenarioRun {
    /// The world that it happens to.
    pub layout: Layout,
    /// What happens, and how long after the beginning.
    pub happenings: Vec<(Span, Happening)>,
    /// When the last of it has happened.
    pub length: Span,
}

/// Everything that was drawn for a course, with what its happenings bring after its end: a shorter course begins with the
/// same numbers.
#[derive(Clone, Debug)]
pub struct Draft {
    /// The world that it happens to.
    pub layout: Layout,
    /// What was drawn.
    pub all: Vec<Numbered>,
    /// When the course ends.
    pub length: Span,
}

/// A happening, and its number, which does not depend on how long the course is.
#[derive(Clone, Debug)]
pub struct Numbered {
    /// Counted from 0 for the fleet, from [`BESIDE`] for service users, from twice that for what a provider does, and from three
    /// times that for what [`variety`] brings, from four times that for what [`operators`] do, and so on, a sheet each.
    pub number: u32,
    /// How long after the beginning.
    pub after: Span,
    /// What happens.
    pub what: Happening,
}

/// No course draws so many happenings for its fleet.
pub const BESIDE: u32 = 1_000_000;

/// How much happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Machines in the world.
    pub machines: u32,
    /// For how long things happen.
    pub length: Span,
    /// The mean time between two happenings.
    pub every: Span,
    /// Of a hundred happenings, so many are a bunch of up to five at once.
    pub bunched_pct: u64,
}

impl Default for Rate {
    fn default() -> Self {
        Self { machines: 30, length: Span::from_min(180), every: Span::from_min(6), bunched_pct: 15 }
    }
}

/// Nothing happens before this: the engine has seen a healthy fleet.
const PRELUDE: Span = Span::from_min(3);

impl ScenarioRun {
    /// The course of this seed at this rate, with every fault there is.
    pub fn random(seed: u64, rate: Rate) -> Self {
        Self::of(seed, rate, &Rates::of_seed(seed))
    }

    /// The course of this seed at this rate, with these faults.
    pub fn of(seed: u64, rate: Rate, rates: &Rates) -> Self {
        Self::drawn(seed, rate, rates).whole()
    }

    /// Everything that is drawn for it.
    pub fn drawn(seed: u64, rate: Rate, rates: &Rates) -> Draft {
        let layout = layout(seed, rate.machines, rates);
        // The machines that the world begins with are known before it runs: they follow from the layout alone.
        let machines: Vec<InstanceId> =
            World::new(&layout).machines().into_iter().filter(|m| m.pool.is_some()).map(|m| m.id).collect();
        let pools = layout.pools.iter().map(|plan| plan.name.clone()).collect();
        let rng = Rng::new(seed, Stream::Faults);
        let mut dice = Dice { rng, machines, pools, holders: Vec::new() };
        let fleet = happenings(&mut dice, rate, |dice| rates.draw(CATALOG, dice));
        let beside = beside(seed, rate, rates, &layout.access);
        dice.rng = Rng::new(seed, Stream::Provider);
        let hosted = if layout.is_told_of_hosting() {
            drawn_of(hosting::CATALOG, &mut dice, rate, rates)
        } else {
            Vec::new()
        };
        let numbered = |from: u32, drawn: Vec<(Span, Happening)>| {
            (from..).zip(drawn).map(|(number, (after, what))| Numbered { number, after, what })
        };
        let first = [fleet, beside, hosted];
        let mut all: Vec<Numbered> =
            (0..).zip(first).flat_map(|(number, drawn)| numbered(number * BESIDE, drawn)).collect();
        for (number, sheet) in (3..).zip(&SHEETS) {
            dice.rng = Rng::named(seed, sheet.stream);
            all.extend(numbered(number * BESIDE, drawn_of(sheet.entries, &mut dice, rate, rates)));
        }
        Draft { layout, all, length: PRELUDE + rate.length }
    }

    /// An engine in this course's world, with everything scheduled and nothing run.
    pub fn stage(&self) -> Drive {
        let mut drive = Drive::new(&self.layout);
        for (after, happening) in &self.happenings {
            match happening {
                Happening::Fault(fault) => drive.fault_in(*after, fault.clone()),
                Happening::Mishap(mishap) => drive.mishap_in(*after, mishap.clone()),
                Happening::KubeletRestart(id) => {
                    drive.world.schedule_kubelet_restart(self.layout.start + *after, id);
                }
            }
        }
        drive
    }
}

impl Draft {
    /// The course of all of it. What would only happen after the end does not.
    pub fn whole(self) -> ScenarioRun {
        self.with(|_| true)
    }

    /// The course of those whose number is wanted.
    pub fn with(self, wants: impl Fn(u32) -> bool) -> ScenarioRun {
        let Self { layout, all, length } = self;
        let kept = all.into_iter().filter(|one| wants(one.number) && one.after <= length);
        ScenarioRun { layout, happenings: kept.map(|one| (one.after, one.what)).collect(), length }
    }
}

/// Happenings at a rate, bunched now and then.
fn happenings(dice: &mut Dice, rate: Rate, draw: impl Fn(&mut Dice) -> Drawn) -> Vec<(Span, Happening)> {
    let mut happenings = Vec::new();
    let mut at = PRELUDE;
    while at < PRELUDE + rate.length {
        let bunch = if dice.rng.chance(rate.bunched_pct) { 1 + dice.rng.below(5) } else { 1 };
        for _ in 0..bunch {
            let within = dice.rng.span(Span::ZERO, Span::from_s(20));
            let drawn = draw(dice);
            happenings.extend(drawn.into_iter().map(|(later, what)| (at + within + later, what)));
        }
        at = at + dice.rng.span(Span::from_s(1), Span::from_ms(rate.every.ms * 2));
    }
    happenings
}

/// What happens to service users.
fn beside(seed: u64, rate: Rate, rates: &Rates, users: &Access) -> Vec<(Span, Happening)> {
    let (machines, pools) = (Vec::new(), Vec::new());
    let rng = Rng::new(seed, Stream::Roles);
    let mut dice = Dice { rng, machines, pools, holders: access::holders(users) };
    drawn_of(access::CATALOG, &mut dice, rate, rates)
}

/// What this sheet holds, as much more seldom than what happens to the fleet as its faults weigh less.
fn drawn_of(sheet: &'static [Entry], dice: &mut Dice, rate: Rate, rates: &Rates) -> Vec<(Span, Happening)> {
    let Some(rate) = seldomer(rate, rates, sheet) else { return Vec::new() };
    happenings(dice, rate, |dice| rates.draw(sheet, dice))
}

/// How often something on this sheet happens beside the fleet; none where nothing on it does.
fn seldomer(rate: Rate, rates: &Rates, sheet: &[Entry]) -> Option<Rate> {
    let (fleet, beside) = (rates.sum(CATALOG), rates.sum(sheet));
    let often = i64::from(if fleet > 0 { fleet } else { beside });
    (beside > 0).then(|| Rate { every: Span::from_ms(rate.every.ms * often / i64::from(beside)), ..rate })
}

/// A fleet of two pools; the seed decides about routes, leases, names and limits.
fn layout(seed: u64, machines: u32, rates: &Rates) -> Layout {
    let mut rng = Rng::new(seed, Stream::People);
    let mut layout = Layout::fleet(seed, 0).limits(|limits| {
        limits.at_once = 1 + rng.below(3) as u32;
        limits.per_hour = 2 + rng.below(8) as u32;
        limits.freeze_above_pct = [20, 30, 50, 100][rng.below(4) as usize];
    });
    let small = machines / 4;
    layout.pools = vec![PoolPlan::new("workers", machines - small)];
    if small > 0 {
        layout.pools.push(PoolPlan::new("gpu", small));
    }
    layout.routed = rng.chance(50);
    layout.lease_outlives_node = rng.chance(30);
    layout.neighbours = rng.below(4) as u32;
    if rng.chance(20) {
        layout.deletes_within = (Span::from_s(30), Span::from_min(8));
    }
    let reused = rng.chance(25) && rates.of("names-reused") > 0;
    (layout.plain_names, layout.names_reused) = (reused, reused);
    if rates.sum(access::CATALOG) > 0 {
        layout.access = access::drawn(&mut Rng::new(seed, Stream::Users));
    }
    if rates.sum(hosting::CATALOG) > 0 {
        hosting::draw(&mut Rng::new(seed, Stream::Hosting), &mut layout);
    }
    if seed >= variety::SEEDS_FROM || rates.sum(variety::CATALOG) > 0 {
        variety::draw(&mut layout);
    }
    if seed >= operators::SEEDS_FROM {
        operators::draw(&mut layout);
    }
    if seed >= gaps::SEEDS_FROM {
        gaps::draw(&mut layout);
    }
    if seed >= wakings::SEEDS_FROM {
        wakings::draw(&mut layout);
    }
    if seed >= impostors::SEEDS_FROM {
        impostors::draw(&mut layout);
    }
    layout
}

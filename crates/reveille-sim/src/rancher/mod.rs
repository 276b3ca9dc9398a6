//! Rancher's records as a world: a management cluster, its controllers, people, and a repair that is played in it.
//!
//! ```text
//!  seed ─▶ Plan: a cluster with its circumstances, what will happen to it and to the process
//!            └─▶ Run: Escalation ── effects ─▶ World ── events ─▶ Escalation …   InvariantChecker and truth after every step
//! ```
//!
//! The escalation is the one of `reveille rancher evict` and `mend`. The world does what Rancher's controllers do
//! ([`controllers`]), lies as far as a list can lie, and knows what is true. A [`Plan`] is plain data: the same plan is the
//! same run, byte for byte, and a happening can be left out of it.
//!
//! It is a world of its own beside [`crate::world`], because a person orders each repair by hand: no engine, no clouds.

mod controllers;
pub mod fault;
pub mod layout;
pub mod run;
pub mod world;

use reveille_core::model::time::Span;
use reveille_rancher::repair::{End, Path};

use crate::rng::{Rng, Stream};
use fault::{Happening, UnknownFault};
use layout::Circumstance;
use run::Run;
use world::World;

/// A run before it is played.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The way.
    pub path: Path,
    /// Machines that hold etcd.
    pub etcd: bool,
    /// What else is so from the beginning.
    pub circumstances: Vec<Circumstance>,
    /// What happens, in order.
    pub happenings: Vec<Happening>,
}

/// A broken rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Breach {
    /// Whose rule: `invariant checker`, `truth`, `liveness`.
    pub by: &'static str,
    /// Which.
    pub what: String,
    /// What came before.
    pub story: String,
}

/// How a run went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The first rule that was broken.
    pub breach: Option<Breach>,
    /// How it ended.
    pub ended: Option<End>,
    /// Effects that were performed.
    pub steps: u32,
    /// Processes that it took.
    pub lives: u32,
    /// What happened, line by line, up to a bound.
    pub story: String,
    /// A hash over every event and effect.
    pub digest: String,
}

/// For how long things happen.
const LENGTH: Span = Span::from_min(30);

impl Plan {
    /// The plan of this seed, with these faults; all, when none are named.
    ///
    /// # Errors
    /// When there is no fault of a name.
    pub fn of(seed: u64, faults: &[String]) -> Result<Self, UnknownFault> {
        let mut rng = Rng::new(seed, Stream::People);
        let path = if rng.chance(50) { Path::Evict } else { Path::Mend };
        let etcd = rng.chance(25);
        let count = if rng.chance(50) { 0 } else { 1 + rng.below(2) };
        let circumstances = (0..count).filter_map(|_| rng.pick(&Circumstance::ALL).copied()).collect();
        let happenings = fault::draw(&mut Rng::new(seed, Stream::Faults), LENGTH, faults)?;
        Ok(Self { path, etcd, circumstances, happenings })
    }

    /// Plays it, and judges.
    pub fn play(&self) -> Outcome {
        let mut world = World::of(self.path);
        if self.etcd {
            world = world.with_etcd();
        }
        for circumstance in &self.circumstances {
            circumstance.apply(&mut world);
        }
        Run::random(world, self.happenings.clone()).outcome()
    }
}

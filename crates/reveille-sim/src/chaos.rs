//! Random courses of events: which faults, on whom, when, all from one seed.
//!
//! A [`Course`] is plain data, drawn completely before anything runs. So a course that fails can be written down, cut
//! shorter and played again: dropping one happening moves no other. Faults come at a rate, bunched now and then, because
//! correlated faults are another thing than single ones.
//!
//! It judges nothing; `Drive` collects what was broken.

use reveille_core::effect::ReadErrorKind;
use reveille_core::model::id::{InstanceId, PoolName, ZoneName};
use reveille_core::model::time::Span;

use crate::drive::{CrashPoint, Drive, Mishap};
use crate::rng::{Rng, Stream};
use crate::world::World;
use crate::world::fault::{CallLie, Fault};
use crate::world::guest::Trouble;
use crate::world::layout::{Layout, PoolPlan};

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

/// A course of events, from the beginning of its world.
#[derive(Clone, Debug)]
pub struct Course {
    /// The world that it happens to.
    pub layout: Layout,
    /// What happens, and how long after the beginning.
    pub happenings: Vec<(Span, Happening)>,
    /// When the last of it has happened.
    pub length: Span,
}

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
    /// Of a hundred happenings, so many befall the process.
    pub mishaps_pct: u64,
}

impl Default for Rate {
    fn default() -> Self {
        Self {
            machines: 30,
            length: Span::from_min(180),
            every: Span::from_min(6),
            bunched_pct: 15,
            mishaps_pct: 12,
        }
    }
}

/// Nothing happens before this: the engine has seen a healthy fleet.
const PRELUDE: Span = Span::from_min(3);

impl Course {
    /// The course of this seed at this rate.
    pub fn random(seed: u64, rate: Rate) -> Self {
        let layout = layout(seed, rate.machines);
        // The machines that the world begins with are known before it runs: they follow from the layout alone.
        let machines: Vec<InstanceId> =
            World::new(&layout).machines().into_iter().filter(|m| m.pool.is_some()).map(|m| m.id).collect();
        let pools = layout.pools.iter().map(|plan| plan.name.clone()).collect();
        let mut dice = Dice { rng: Rng::new(seed, Stream::Faults), machines, pools };
        let mut happenings = Vec::new();
        let mut at = PRELUDE;
        while at < PRELUDE + rate.length {
            let bunch = if dice.rng.chance(rate.bunched_pct) { 1 + dice.rng.below(5) } else { 1 };
            for _ in 0..bunch {
                let within = dice.rng.span(Span::ZERO, Span::from_s(20));
                happenings.push((at + within, dice.happening(rate)));
            }
            at = at + dice.rng.span(Span::from_s(1), Span::from_ms(rate.every.ms * 2));
        }
        Self { layout, happenings, length: PRELUDE + rate.length }
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

/// A fleet of two pools; the seed decides about routes, leases and limits.
fn layout(seed: u64, machines: u32) -> Layout {
    let mut rng = Rng::new(seed, Stream::People);
    let mut layout = Layout::fleet(seed, 0).limits(|limits| {
        limits.at_once = 1 + rng.below(3) as u32;
        limits.per_hour = 2 + rng.below(8) as u32;
        limits.freeze_above_pct = [20, 30, 50, 100][rng.below(4) as usize];
    });
    let small = machines / 4;
    layout.pools = vec![PoolPlan::new("workers", machines - small), PoolPlan::new("gpu", small)];
    layout.routed = rng.chance(50);
    layout.lease_outlives_node = rng.chance(30);
    layout.neighbours = rng.below(4) as u32;
    if rng.chance(20) {
        layout.deletes_within = (Span::from_s(30), Span::from_min(8));
    }
    layout
}

struct Dice {
    rng: Rng,
    machines: Vec<InstanceId>,
    pools: Vec<PoolName>,
}

impl Dice {
    fn happening(&mut self, rate: Rate) -> Happening {
        if self.rng.chance(rate.mishaps_pct) {
            return Happening::Mishap(self.mishap());
        }
        let machine = self.rng.pick(&self.machines).cloned();
        match machine {
            Some(machine) if self.rng.chance(8) => Happening::KubeletRestart(machine),
            Some(machine) if self.rng.chance(65) => Happening::Fault(self.on_machine(machine)),
            _ => Happening::Fault(self.at_large()),
        }
    }

    fn mishap(&mut self) -> Mishap {
        let down = self.rng.span(Span::from_s(1), Span::from_min(3));
        match self.rng.below(9) {
            0 => Mishap::Pause(self.rng.span(Span::from_s(5), Span::from_min(60))),
            1 => Mishap::Crash(down),
            2 => Mishap::CrashAt(CrashPoint::BeforeRecord, down),
            3 => Mishap::CrashAt(CrashPoint::BeforeAcknowledged, down),
            4 => Mishap::CrashAt(CrashPoint::BeforeCall, down),
            5 => Mishap::CrashAt(CrashPoint::BeforeDone, down),
            6 => Mishap::CrashAt(CrashPoint::BeforeVerdict, down),
            7 => Mishap::DiskFull(self.rng.span(Span::from_s(10), Span::from_min(10))),
            _ => Mishap::Rotate,
        }
    }

    fn trouble(&mut self) -> Trouble {
        const ALL: [Trouble; 7] = [
            Trouble::BuildFails,
            Trouble::BuildHangs,
            Trouble::NoNetwork,
            Trouble::MetadataDown,
            Trouble::BadToken,
            Trouble::KubeletHung,
            Trouble::Broken,
        ];
        ALL[self.rng.below(7) as usize]
    }

    fn on_machine(&mut self, machine: InstanceId) -> Fault {
        match self.rng.below(20) {
            0 | 1 => Fault::GroupLost { slips: self.rng.chance(25), machine },
            2 => Fault::PairLost(machine),
            3 => Fault::DuplicateRoute(machine),
            4 => Fault::MissingRoute(machine),
            5 => Fault::RouteBroken(machine),
            6..=8 => Fault::Breaks(machine, Trouble::KubeletHung),
            9 => Fault::Breaks(machine, Trouble::Broken),
            10 => Fault::Errored(machine),
            11 => Fault::ShutOff(machine),
            12 => Fault::StuckDeleting(machine),
            13 => Fault::ForeignDelete(machine),
            14 => Fault::ScaledDown(machine),
            15 | 16 => Fault::NodeDeletedByController(machine),
            17 => Fault::NodeDeletedByPerson(machine),
            18 => Fault::NodeTwin(machine),
            _ => Fault::NameTwin(machine),
        }
    }

    fn at_large(&mut self) -> Fault {
        let lasts = self.rng.span(Span::from_s(20), Span::from_min(15));
        let pool = self.rng.pick(&self.pools).cloned().unwrap_or_else(|| "workers".into());
        match self.rng.below(20) {
            0..=2 => Fault::Launch { pool, trouble: Some(self.trouble()) },
            3 => Fault::Launch { pool, trouble: None },
            4 => Fault::BadImage(pool, Some(self.trouble())),
            5 => Fault::BadImage(pool, None),
            6 => Fault::Rollout(pool),
            7 => Fault::RulesLost,
            8 => Fault::ForeignRoutes(1 + self.rng.below(5) as u32),
            9 => Fault::ControllerDown(lasts),
            10 => Fault::ServersUnlisted { lasts, denies: self.rng.chance(50) },
            11 => {
                let count = 1 + self.rng.below(self.machines.len() as u64 / 2) as usize;
                let machines = (0..count).filter_map(|_| self.rng.pick(&self.machines).cloned()).collect();
                Fault::SomeUnlisted { machines, lasts, denies: self.rng.chance(50) }
            }
            12 => {
                const KINDS: [ReadErrorKind; 4] = [
                    ReadErrorKind::Throttled,
                    ReadErrorKind::Unavailable,
                    ReadErrorKind::TimedOut,
                    ReadErrorKind::Incomplete,
                ];
                Fault::CloudFails(KINDS[self.rng.below(4) as usize], lasts)
            }
            13 => Fault::NodesUnlisted(lasts),
            14 => Fault::ApiSilent(lasts),
            15 if self.rng.chance(50) => Fault::PortsUnlisted(lasts),
            15 => Fault::LeasesFrozen(lasts),
            16 => {
                let zones = ["nova-a", "nova-b", "nova-c"].map(ZoneName::from);
                let zone = zones[self.rng.below(3) as usize].clone();
                Fault::ZoneDark(zone, lasts)
            }
            17 => Fault::Call(CallLie::Ignored),
            18 => Fault::Call(CallLie::Unanswered),
            _ => {
                let retry_after = self.rng.chance(50).then(|| Span::from_s(30));
                let lie = if self.rng.chance(30) { CallLie::Cut } else { CallLie::Fails { retry_after } };
                Fault::Call(lie)
            }
        }
    }
}

//! Draws what a fault needs to be complete: on whom, for how long, in which way.

use std::sync::Arc;

use reveille_core::effect::ReadErrorKind;
use reveille_core::model::id::{InstanceId, PoolName, ZoneName};
use reveille_core::model::time::Span;

use super::Happening;
use crate::drive::{CrashPoint, Estranged, Mishap, Usurped};
use crate::rng::Rng;
use crate::world::fault::{CallLie, Fault};
use crate::world::vm::Trouble;

/// The sequence of a course's faults, and whom they can strike.
pub(super) struct Dice {
    pub(super) rng: Rng,
    pub(super) machines: Vec<InstanceId>,
    pub(super) pools: Vec<PoolName>,
    /// Service users, each with a role that it must hold.
    pub(super) holders: Vec<(Arc<str>, Arc<str>)>,
}

/// Something that happens once or several times, and how long after it was drawn.
pub(super) type Drawn = Vec<(Span, Happening)>;

pub(super) fn one(fault: Fault) -> Drawn {
    vec![(Span::ZERO, Happening::Fault(fault))]
}

pub(super) fn process(mishap: Mishap) -> Drawn {
    vec![(Span::ZERO, Happening::Mishap(mishap))]
}

pub(super) fn call(lie: CallLie) -> Drawn {
    one(Fault::Call(lie))
}

impl Dice {
    /// One of the machines that were there at the beginning.
    pub(super) fn machine(&mut self) -> InstanceId {
        self.rng.pick(&self.machines).cloned().unwrap_or_else(|| InstanceId::new("none"))
    }

    /// A fault on one machine.
    pub(super) fn on(&mut self, fault: impl FnOnce(InstanceId) -> Fault) -> Drawn {
        let machine = self.machine();
        one(fault(machine))
    }

    pub(super) fn pool(&mut self) -> PoolName {
        self.rng.pick(&self.pools).cloned().unwrap_or_else(|| "workers".into())
    }

    pub(super) fn zone(&mut self) -> ZoneName {
        ["nova-a", "nova-b", "nova-c"][self.rng.below(3) as usize].into()
    }

    /// A service user, and a role that it must hold.
    pub(super) fn holder(&mut self) -> (Arc<str>, Arc<str>) {
        self.rng.pick(&self.holders).cloned().unwrap_or_else(|| (Arc::from("none"), Arc::from("member")))
    }

    /// For how long something lasts: from twenty seconds to a quarter of an hour.
    pub(super) fn lasts(&mut self) -> Span {
        self.rng.span(Span::from_s(20), Span::from_min(15))
    }

    /// For how long the process is away after a crash.
    pub(super) fn down(&mut self) -> Span {
        self.rng.span(Span::from_s(1), Span::from_min(3))
    }

    pub(super) fn lasting(&mut self, fault: impl FnOnce(Span) -> Fault) -> Drawn {
        let lasts = self.lasts();
        one(fault(lasts))
    }

    pub(super) fn cloud_fails(&mut self, kind: ReadErrorKind) -> Drawn {
        self.lasting(|lasts| Fault::CloudFails(kind, lasts))
    }

    pub(super) fn trouble(&mut self) -> Trouble {
        Trouble::ALL[self.rng.below(Trouble::ALL.len() as u64) as usize]
    }

    pub(super) fn crash_point(&mut self) -> CrashPoint {
        CrashPoint::ALL[self.rng.below(CrashPoint::ALL.len() as u64) as usize]
    }

    /// Another process takes the lead: how the one before goes on, and how far the new one's clock is off.
    pub(super) fn usurped(&mut self) -> Usurped {
        let lasts = self.lasts();
        let how = Estranged::ALL[self.rng.below(Estranged::ALL.len() as u64) as usize];
        let (refused, off) = (self.rng.chance(50), self.rng.chance(30));
        let skew_ms = self.rng.span(Span::from_min(-10), Span::from_min(10)).ms;
        Usurped { lasts, how, refused, skew_ms: if off { skew_ms } else { 0 } }
    }

    /// A few of the machines, perhaps one of them twice.
    pub(super) fn some(&mut self) -> Vec<InstanceId> {
        let count = 1 + self.rng.below((self.machines.len() as u64 / 2).max(1));
        (0..count).map(|_| self.machine()).collect()
    }

    /// A machine that goes and comes, and goes and comes.
    pub(super) fn flapping(&mut self) -> Drawn {
        let machine = self.machine();
        let mut at = Span::ZERO;
        let mut drawn = Vec::new();
        for _ in 0..3 + self.rng.below(8) {
            let lasts = self.rng.span(Span::from_s(30), Span::from_min(4));
            drawn.push((at, Happening::Fault(Fault::NodePaused(machine.clone(), lasts))));
            at = at + lasts + self.rng.span(Span::from_s(20), Span::from_min(5));
        }
        drawn
    }

    /// One machine after another breaks, in the same way.
    pub(super) fn drip(&mut self) -> Drawn {
        let trouble = if self.rng.chance(50) { Trouble::KubeletHung } else { Trouble::Broken };
        let every = self.rng.span(Span::from_min(5), Span::from_min(25));
        let count = 3 + self.rng.below(6) as i64;
        let breaks = |turn: i64, machine: InstanceId| {
            (Span::from_ms(every.ms * turn), Happening::Fault(Fault::Breaks(machine, trouble)))
        };
        (0..count).map(|turn| breaks(turn, self.machine())).collect()
    }

    /// A pool is rolled to an image whose machines all fail, until a person takes the image back.
    pub(super) fn bad_rollout(&mut self) -> Drawn {
        let (pool, trouble) = (self.pool(), self.trouble());
        let end = self.rng.span(Span::from_min(30), Span::from_min(180));
        let bad = Fault::BadImage(pool.clone(), Some(trouble));
        let good = Fault::BadImage(pool.clone(), None);
        let mut drawn = vec![(Span::ZERO, Happening::Fault(bad)), (end, Happening::Fault(good))];
        for turn in 0..1 + self.rng.below(4) as i64 {
            drawn.push((Span::from_min(1 + 10 * turn), Happening::Fault(Fault::Rollout(pool.clone()))));
        }
        drawn
    }
}

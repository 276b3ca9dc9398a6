//! Models of what other programs are documented to do, in the engine's place, on the same world.
//!
//! ```text
//!  World ─ glance ─▶ observations: what the original sees ─▶ model ─ acts ─▶ rival: calls ─▶ World
//! ```
//!
//! Each model is a function from what its original sees to what its original does, with the original's defaults, and
//! each one's module names the source of every rule and what it leaves out. A model is not the program: it is what its
//! documentation and code say, played on a world that is a model, too.
//!
//! The layout, the seed and the faults are the same for every policy. Delays are drawn as things happen, so once two policies
//! have acted differently, a boot may take some seconds longer under one than under the other.
//!
//! The engine's invariants are not asked of a model. What a policy did is judged by the world's truth alone.

mod flight;
mod healer;
mod karpenter;
mod mhc;
mod observations;
mod onlooker;
mod outlook;
pub(crate) mod places;
mod recorded;
mod removal;
mod rival;
#[cfg(test)]
mod tests;

use std::fmt;
use std::str::FromStr;

use reveille_core::model::id::{InstanceId, NodeName, NodeUid};
use reveille_core::model::network::RuleSpec;
use thiserror::Error;

pub use onlooker::{Afterwards, Kind, Onlooker, Stood, WouldDo};
pub(crate) use rival::Rival;

/// Who decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Policy {
    /// The engine of this project.
    Reveille,
    /// A model of Kubernikus flight control: see its module for every rule's source.
    FlightControl,
    /// A model of Cluster API's `MachineHealthCheck`.
    MachineHealthCheck,
    /// A model of Karpenter's node repair.
    Karpenter,
    /// A model of magnum-auto-healer.
    MagnumAutoHealer,
    /// No policy decides: this shows what recovers by itself.
    NoAction,
}

/// Something that a model does, in its original's terms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Deed {
    /// Delete the instance.
    Delete(InstanceId),
    /// Ask the guest to reboot.
    Reboot(InstanceId),
    /// Delete the Node object.
    DeleteNode(NodeName, NodeUid),
    /// Put the pools' group on every port of the instance that lacks it.
    PutGroup(InstanceId),
    /// Put these rules into the pools' group.
    PutRules(Vec<RuleSpec>),
}

impl Deed {
    const fn rebooted(&self) -> Option<&InstanceId> {
        match self {
            Self::Reboot(id) => Some(id),
            _ => None,
        }
    }
}

/// A name that no policy has.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("no policy is called {0:?}; there are {known}", known = Policy::names())]
pub struct UnknownPolicy(String);

impl Policy {
    /// Every policy, in the order of reports.
    pub const ALL: &'static [Self] = &[
        Self::Reveille,
        Self::FlightControl,
        Self::MachineHealthCheck,
        Self::Karpenter,
        Self::MagnumAutoHealer,
        Self::NoAction,
    ];

    /// The name on the command line and in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Reveille => "reveille",
            Self::FlightControl => "flight-control",
            Self::MachineHealthCheck => "machine-health-check",
            Self::Karpenter => "karpenter",
            Self::MagnumAutoHealer => "magnum-auto-healer",
            Self::NoAction => "no-action",
        }
    }

    fn names() -> String {
        Self::ALL.iter().map(|policy| policy.name()).collect::<Vec<_>>().join(", ")
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Policy {
    type Err = UnknownPolicy;

    fn from_str(name: &str) -> Result<Self, UnknownPolicy> {
        let known = Self::ALL.iter().find(|policy| policy.name() == name);
        known.copied().ok_or_else(|| UnknownPolicy(name.to_owned()))
    }
}

//! Classes of repair: what a roster switches on and off, and what a mistake in each would cost.
//!
//! A step belongs to one class (`model::repair_step`). Not here: which steps a fault escalates through, and whether one may be
//! taken now.

use serde::{Deserialize, Serialize};

use super::roster::{Mode, Repair};

/// Classes of remedy that a roster switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// Nothing is lost by it.
    Network,
    /// Nothing is lost by it, and a user may do more than before: the roster switches it for itself.
    Access,
    /// On the machine, through its agent.
    Rejoin,
    /// The machine's pods are interrupted.
    Reboot,
    /// The machine is lost.
    Replace,
    /// The Node object is lost.
    Cleanup,
}

impl Class {
    /// The roster's word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Network => "network",
            Self::Access => "access",
            Self::Rejoin => "rejoin",
            Self::Reboot => "reboot",
            Self::Replace => "replace",
            Self::Cleanup => "cleanup",
        }
    }

    /// What the roster allows of it: for access it says so once, for all others with each pool.
    pub const fn mode(self, repair: &Repair, access: Mode) -> Mode {
        match self {
            Self::Network => repair.network,
            Self::Access => access,
            Self::Rejoin => repair.rejoin,
            Self::Reboot => repair.reboot,
            Self::Replace => repair.replace,
            Self::Cleanup => repair.cleanup,
        }
    }

    /// True when a mistake would cost the cluster a running machine or its Node.
    pub const fn is_destructive(self) -> bool {
        matches!(self, Self::Reboot | Self::Replace | Self::Cleanup)
    }
}

//! Whether this machine may be rebooted, and whether it can be: the reasons against, in one place.
//!
//! The watchdog is armed only while nothing speaks against a reboot, because an armed watchdog *is* a reboot as soon as the
//! agent hangs.

use std::fmt;

use crate::model::{Device, Machine, Role};

/// Why an agent cannot, or must not, reboot its machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unable {
    /// Nothing is known of the machine yet.
    NotLooked,
    /// A person, or the agent's own end, said so.
    Cancelled,
    /// A join is under way.
    Joining,
    /// It runs a control plane or a member of etcd, and the others are not known to keep their quorum.
    QuorumNeedsIt,
    /// There is no watchdog, and the system may not be asked.
    NoWay,
    /// There is a watchdog that may not be opened, and the system may not be asked.
    NotPermitted,
    /// The watchdog was not read back as armed, and the system may not be asked.
    NotProved,
    /// A reboot was asked for, and did not happen.
    DidNotHappen,
}

impl fmt::Display for Unable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotLooked => "nothing is known of the machine yet",
            Self::Cancelled => "it was told to do nothing",
            Self::Joining => "a join is under way",
            Self::QuorumNeedsIt => {
                "it runs a control plane, and the others are not known to keep their quorum without it"
            }
            Self::NoWay => "it has no watchdog and no permission to reboot",
            Self::NotPermitted => "it may not open the watchdog and has no permission to reboot",
            Self::NotProved => "the watchdog is not proved armed and it has no permission to reboot",
            Self::DidNotHappen => "a reboot was asked for and did not happen",
        })
    }
}

/// What speaks against any reboot of this machine now, whichever way.
pub(crate) fn against(machine: Option<&Machine>, cancelled: bool, rejoining: bool) -> Option<Unable> {
    let Some(machine) = machine else { return Some(Unable::NotLooked) };
    if cancelled {
        return Some(Unable::Cancelled);
    }
    if machine.joining || rejoining {
        return Some(Unable::Joining);
    }
    match machine.role {
        Role::ControlPlane { spare: false } => Some(Unable::QuorumNeedsIt),
        Role::ControlPlane { spare: true } | Role::Worker => None,
    }
}

/// Why there is no way to reboot, when the watchdog is not proved armed.
pub(crate) const fn no_way(machine: &Machine) -> Option<Unable> {
    if machine.may_reboot {
        return None;
    }
    Some(match machine.watchdog {
        Device::Absent => Unable::NoWay,
        Device::Forbidden => Unable::NotPermitted,
        Device::Usable => Unable::NotProved,
    })
}

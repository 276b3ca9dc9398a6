//! Whether this machine may be rebooted, and whether it can be: all reasons against a reboot.
//!
//! The agent arms the watchdog only while nothing forbids a reboot: an armed watchdog *is* a reboot as soon as the agent
//! hangs.

use std::fmt;

use crate::model::{Device, Machine, Role};

/// Why an agent cannot, or must not, reboot its machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unable {
    /// The agent has not inspected the machine yet.
    NotLooked,
    /// An operator, or the shutdown of the agent, forbids it.
    Cancelled,
    /// A join is under way.
    Joining,
    /// The machine runs a control plane or a member of etcd, and the agent does not know that the others keep their
    /// quorum.
    QuorumNeedsIt,
    /// There is no watchdog, and the agent may not ask the system for a reboot.
    NoWay,
    /// The agent may not open the watchdog, and may not ask the system for a reboot.
    NotPermitted,
    /// The watchdog was not read back as armed, and the agent may not ask the system for a reboot.
    NotProved,
    /// The agent asked for a reboot, and it did not happen.
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

/// The reason against any reboot of this machine now, by watchdog or by the system.
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

/// Why there is no way to reboot when the watchdog is not proved armed.
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

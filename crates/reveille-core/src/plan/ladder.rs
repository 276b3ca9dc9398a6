//! The rungs of each fault's ladder, cheapest first; deletion is the last rung of each (DESIGN, invariant 8).
//!
//! A static table: what may be tried for a fault, in which order. Whether a rung is of use for *this* machine and
//! whether it may be climbed *now* is decided elsewhere (`remedy`, `interlock`).

use std::sync::Arc;

use crate::model::cause::Cause;
use crate::model::incident::FaultKind;
use crate::model::roster::{Mode, Repair};

/// One thing that can be tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rung {
    /// Put the missing groups on a port.
    SetGroups,
    /// Put the missing pod rules into the group.
    AddRules,
    /// Make the data plane read the group again.
    NudgeGroup,
    /// Make the router write its table again.
    NudgeRouter,
    /// Remove routes whose next hop is nobody.
    RemoveRoutes,
    /// Add a node's route.
    AddRoutes,
    /// Allow a node's pod range on its port.
    AddPairs,
    /// Take back what an interrupted nudge left.
    DropLeftover,
    /// Let a service user hold the roles that it must.
    AssignRoles,
    /// Restart the kubelet, so that it registers again.
    Rejoin,
    /// Start a stopped instance.
    Start,
    /// Reboot the instance.
    Reboot,
    /// Delete the instance, so that the pool's owner makes another.
    Replace,
    /// Delete the Node object of an instance that is gone.
    Cleanup,
}

/// Classes of remedy that a roster switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// Nothing is lost by it.
    Network,
    /// Nothing is lost by it, and somebody may do more than before: the roster switches it for itself.
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

    /// True when a mistake would cost somebody a running machine or its Node.
    pub const fn is_destructive(self) -> bool {
        matches!(self, Self::Reboot | Self::Replace | Self::Cleanup)
    }
}

impl Rung {
    /// Every rung.
    pub const ALL: [Self; 14] = [
        Self::SetGroups,
        Self::AddRules,
        Self::NudgeGroup,
        Self::NudgeRouter,
        Self::RemoveRoutes,
        Self::AddRoutes,
        Self::AddPairs,
        Self::DropLeftover,
        Self::AssignRoles,
        Self::Rejoin,
        Self::Start,
        Self::Reboot,
        Self::Replace,
        Self::Cleanup,
    ];

    /// The rung of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|rung| rung.name() == name)
    }

    /// Its class.
    pub const fn class(self) -> Class {
        match self {
            Self::SetGroups
            | Self::AddRules
            | Self::NudgeGroup
            | Self::NudgeRouter
            | Self::RemoveRoutes
            | Self::AddRoutes
            | Self::AddPairs
            | Self::DropLeftover => Class::Network,
            Self::AssignRoles => Class::Access,
            Self::Rejoin => Class::Rejoin,
            Self::Start | Self::Reboot => Class::Reboot,
            Self::Replace => Class::Replace,
            Self::Cleanup => Class::Cleanup,
        }
    }

    /// How often it is tried before the next rung: what interrupts a machine's pods is tried softly once and hard once.
    pub const fn tries(self, allowed: u32) -> u32 {
        if self.class().is_destructive() && allowed > 2 { 2 } else { allowed }
    }

    /// A word for it where it is counted.
    pub const fn name(self) -> &'static str {
        match self {
            Self::SetGroups => "membership",
            Self::AddRules => "pod-rules",
            Self::NudgeGroup => "group-sync",
            Self::NudgeRouter => "router-sync",
            Self::RemoveRoutes => "stale-routes",
            Self::AddRoutes => "missing-routes",
            Self::AddPairs => "address-pairs",
            Self::DropLeftover => "leftover-rule",
            Self::AssignRoles => "service-user-roles",
            Self::Rejoin => "rejoin",
            Self::Start => "start",
            Self::Reboot => "reboot",
            Self::Replace => "replace",
            Self::Cleanup => "cleanup",
        }
    }

    /// What it does, as an imperative.
    pub const fn says(self) -> &'static str {
        match self {
            Self::SetGroups => "add the missing security group to the port",
            Self::AddRules => "add the missing rules for pods to the security group",
            Self::NudgeGroup => "add and remove a harmless rule, so that the network applies the group again",
            Self::NudgeRouter => "add and remove a harmless route, so that the router writes its table again",
            Self::RemoveRoutes => "remove the routes with a dead next hop",
            Self::AddRoutes => "add the node's route",
            Self::AddPairs => "allow the node's pod range on its port",
            Self::DropLeftover => "remove the test rule that an interrupted repair left",
            Self::AssignRoles => "give the service user the roles that it lacks",
            Self::Rejoin => "restart its kubelet",
            Self::Start => "start the instance",
            Self::Reboot => "reboot the instance",
            Self::Replace => "delete the instance, so that its pool makes another",
            Self::Cleanup => "delete the orphaned Node object",
        }
    }
}

/// The ladder of a fault. Empty: it is reported and nothing is tried.
pub const fn ladder(kind: FaultKind) -> &'static [Rung] {
    match kind {
        FaultKind::NeverJoined | FaultKind::Vanished | FaultKind::NotReady => {
            &[Rung::Rejoin, Rung::Reboot, Rung::Replace]
        }
        FaultKind::Ghost => &[Rung::Cleanup],
        FaultKind::Errored | FaultKind::StuckBuilding => &[Rung::Replace],
        FaultKind::Stopped => &[Rung::Start],
        FaultKind::GroupMissing => &[Rung::SetGroups],
        FaultKind::RulesMissing => &[Rung::AddRules],
        FaultKind::Unreachable => &[Rung::NudgeGroup, Rung::NudgeRouter],
        FaultKind::DuplicateRoute => &[Rung::RemoveRoutes],
        FaultKind::MissingRoute => &[Rung::AddRoutes, Rung::NudgeRouter],
        FaultKind::PairMissing => &[Rung::AddPairs],
        FaultKind::NudgeLeftover => &[Rung::DropLeftover],
        FaultKind::RolesMissing => &[Rung::AssignRoles],
        FaultKind::Stray
        | FaultKind::Duplicate
        | FaultKind::StuckDeleting
        | FaultKind::NotInService
        | FaultKind::StuckLeaving
        | FaultKind::GroupUnresolved
        | FaultKind::RouteLimit
        | FaultKind::SourceSuspect
        | FaultKind::RolesUnreadable
        | FaultKind::ProviderNotice => &[],
    }
}

/// Why a rung is of no use against a cause, if it is not: as the catalogue that names the cause says.
///
/// Causes that the engine concludes itself are outside of the machine's own system, and no rung is in vain for them.
pub fn no_use(rung: Rung, cause: &Cause) -> Option<Arc<str>> {
    let entry = cause.entry()?;
    match rung {
        Rung::Reboot => entry.no_reboot.clone(),
        Rung::Replace => entry.no_replace.clone(),
        _ => None,
    }
}

/// What the rest of the ladder is for faults that only a person can end.
pub const fn ask(kind: FaultKind) -> &'static str {
    match kind {
        FaultKind::StuckDeleting => {
            "ask the cloud's operator to reset its state; another DELETE does nothing"
        }
        FaultKind::NotInService => "find out why the add-on that removes its startup taint does not run",
        FaultKind::StuckLeaving => {
            "find out what blocks its drain or its deletion, or remove the deletion mark; Reveille does nothing meanwhile"
        }
        FaultKind::Stray => "add its pool's tag, or delete it",
        FaultKind::Duplicate => {
            "find out which of the two is the real one; Reveille repairs neither until then"
        }
        FaultKind::GroupUnresolved => "name the security group in the roster by its id",
        FaultKind::DuplicateRoute => {
            "compare the routes with the Nodes and remove the wrong ones: their next hops are in use, or the removal failed"
        }
        FaultKind::RouteLimit => "raise the router's limit or remove routes before more nodes come",
        FaultKind::RolesMissing => "assign the role",
        FaultKind::RolesUnreadable => {
            "let the credential list role assignments, or take the user out of the roster"
        }
        FaultKind::ProviderNotice => {
            "drain it and let its owner replace it in time; Reveille does nothing beside the provider"
        }
        FaultKind::SourceSuspect => "check project, endpoint and credentials",
        _ => "no allowed repair is left",
    }
}

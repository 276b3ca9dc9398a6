//! The steps of repairs: what may be tried, and what switches each in the roster.
//!
//! What a step does is told by its file in `remedies`; here is what budgets, ledger and metrics need to know of it, who do not
//! know how a repair is made.

use super::class::Class;

/// One step that can be tried: what may follow what is in `remedies::escalation`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RepairStep {
    /// Put the missing groups on a port.
    SetGroups,
    /// Put the missing pod rules into the group.
    AddRules,
    /// Make the data plane read the group again.
    NudgeGroup,
    /// Make the router write its table again.
    NudgeRouter,
    /// Remove routes whose next hop is in use nowhere.
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

impl RepairStep {
    /// Every repair step.
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

    /// The repair step of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|repair_step| repair_step.name() == name)
    }

    /// What switches it in the roster.
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

    /// How often it is tried before the next repair step: what interrupts a machine's pods is tried softly once and hard once.
    pub const fn tries(self, allowed: u32) -> u32 {
        if self.class().is_destructive() && allowed > 2 { 2 } else { allowed }
    }
}

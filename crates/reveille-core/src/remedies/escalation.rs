//! Which faults escalate through which repair steps.

use crate::model::incident::FaultKind;
use crate::model::repair_step::RepairStep;

/// The repair steps of a fault, cheapest first; deletion is the last repair step of each (docs/SAFETY.md, invariant 8). Empty: it
/// is reported and nothing is tried.
pub const fn escalation(kind: FaultKind) -> &'static [RepairStep] {
    match kind {
        FaultKind::NeverJoined | FaultKind::Vanished | FaultKind::NotReady => {
            &[RepairStep::Rejoin, RepairStep::Reboot, RepairStep::Replace]
        }
        FaultKind::Ghost => &[RepairStep::Cleanup],
        FaultKind::Errored | FaultKind::StuckBuilding => &[RepairStep::Replace],
        FaultKind::Stopped => &[RepairStep::Start],
        FaultKind::GroupMissing => &[RepairStep::SetGroups],
        FaultKind::RulesMissing => &[RepairStep::AddRules],
        FaultKind::Unreachable => &[RepairStep::NudgeGroup, RepairStep::NudgeRouter],
        FaultKind::DuplicateRoute => &[RepairStep::RemoveRoutes],
        FaultKind::MissingRoute => &[RepairStep::AddRoutes, RepairStep::NudgeRouter],
        FaultKind::PairMissing => &[RepairStep::AddPairs],
        FaultKind::NudgeLeftover => &[RepairStep::DropLeftover],
        FaultKind::RolesMissing => &[RepairStep::AssignRoles],
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

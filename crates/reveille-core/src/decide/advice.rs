//! What is told where a step would not help, or where only a person can end a fault.
//!
//! Static tables. [`crate::remedies::escalation`] says which repair steps a fault escalates through.

use std::sync::Arc;

use crate::model::cause::Cause;
use crate::model::incident::FaultKind;
use crate::remedies::RepairStep;

/// Why a repair step is of no use against a cause, if it is not: as the catalogue that names the cause says.
///
/// Causes that the engine concludes itself are outside of the machine's own system, and no repair step is in vain for them.
pub fn no_use(repair_step: RepairStep, cause: &Cause) -> Option<Arc<str>> {
    let entry = cause.entry()?;
    match repair_step {
        RepairStep::Reboot => entry.no_reboot.clone(),
        RepairStep::Replace => entry.no_replace.clone(),
        _ => None,
    }
}

/// What the rest of the escalation is for faults that only a person can end.
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

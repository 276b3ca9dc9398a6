//! One fault of a machine, a group or a router, as the rooms of this stage hand it on.

use crate::model::cause::Cause;
use crate::model::evidence::Evidence;
use crate::model::incident::{Confidence, FaultKind, Finding};
use crate::model::time::{Span, Time};

use super::machine_state::Absence;

/// One fault, with what explains it and how long the controller waits before it acts on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// What.
    pub kind: FaultKind,
    /// The finding to act on.
    pub finding: Finding,
    /// Further findings, in order.
    pub more: Vec<Finding>,
    /// How long it is waited for; `None`: reported only.
    pub due_after: Option<Span>,
    /// Rests on the cluster's view, too.
    pub rests_on_cluster: bool,
    /// It is waited for from no earlier moment than this.
    pub counted_from: Time,
}

impl From<Absence> for Fault {
    fn from(absence: Absence) -> Self {
        Self {
            kind: absence.kind,
            finding: absence.finding,
            more: Vec::new(),
            due_after: absence.due_after,
            rests_on_cluster: absence.rests_on_cluster,
            counted_from: absence.counted_from,
        }
    }
}

/// A fault that is sure.
pub(super) fn fault(
    kind: FaultKind,
    cause: Cause,
    evidence: Vec<Evidence>,
    due_after: Option<Span>,
    cluster: bool,
) -> Fault {
    let finding = Finding::new(cause, Confidence::Sure, evidence);
    let (more, counted_from) = (Vec::new(), Time::default());
    Fault { kind, finding, more, due_after, rests_on_cluster: cluster, counted_from }
}

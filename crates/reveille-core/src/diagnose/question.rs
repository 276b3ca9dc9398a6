//! What the question "is this machine a Ready Node?" rests on, and the forms of its answer.

use crate::model::cause::Cause;
use crate::model::evidence::{Evidence, Fact, Source};
use crate::model::id::NodeName;
use crate::model::incident::{Confidence, FaultKind, Finding};
use crate::model::roster::{Deadlines, Roster};
use crate::model::time::{Span, Time};
use crate::observe::cloud::{CloudView, Seen};
use crate::observe::cluster::ClusterView;
use crate::observe::sharing::Views;
use crate::observe::source::Trust;

use super::machine_state::{Absence, MachineState};

/// Everything that the question needs.
#[derive(Clone, Copy)]
pub struct JudgeContext<'a> {
    /// The roster.
    pub roster: &'a Roster,
    /// The machine's cloud.
    pub cloud: &'a CloudView,
    /// The cluster.
    pub cluster: &'a ClusterView,
    /// Every view, for who shares an identity with the machine.
    pub views: Views<'a>,
    /// The time of the question.
    pub now: Time,
}

impl JudgeContext<'_> {
    pub(super) fn deadlines(&self, seen: &Seen) -> Deadlines {
        seen.pool()
            .and_then(|name| self.roster.pools.get(name))
            .map_or_else(Deadlines::default, |p| p.deadlines)
    }

    pub(super) fn evidence(&self, source: Source, fact: impl Into<Fact>) -> Evidence {
        Evidence::new(source, fact, self.now)
    }

    /// The node's lease was seen to change lately: its kubelet lives.
    pub fn lease_is_fresh(&self, name: &NodeName) -> bool {
        self.cluster.renews(name, self.roster.timing.lease_silent_after)
    }

    /// Since when the cluster's word counts without a gap; now, while it does not.
    pub(super) fn cluster_since(&self) -> Time {
        match self.cluster.source.trust(self.now) {
            Trust::Since(since) => since,
            Trust::No(_) => self.now,
        }
    }

    /// Its node is Ready, and the cluster's word for it counts.
    pub(super) fn ready(&self, seen: &Seen) -> bool {
        self.cluster.source.trust(self.now).is_given()
            && seen.nodes.iter().any(|name| self.cluster.answers(name))
    }
}

pub(super) fn finding(cause: Cause, confidence: Confidence, evidence: Vec<Evidence>) -> Finding {
    Finding::new(cause, confidence, evidence)
}

pub(super) fn absent(
    kind: FaultKind,
    finding: Finding,
    due_after: Option<Span>,
    rests_on_cluster: bool,
) -> MachineState {
    let counted_from = Time::default();
    MachineState::Absent(Absence { kind, finding, due_after, rests_on_cluster, counted_from })
}

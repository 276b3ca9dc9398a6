//! What the cluster's events tell of a Node that is no more: which client removed it, how sure that is, and whether it was
//! drained.
//!
//! ```text
//!  events about the name ─▶ those of the last Node of that name ─▶ by the cloud controller, or by a person ─▶ Vanished
//! ```
//!
//! That the Node is missing, and that it was this machine's, `absence` has found before. A removal that a sign announced is
//! judged by `service`.

use std::collections::BTreeMap;

use crate::model::cause::Cause;
use crate::model::evidence::{NodeFact, Source, quoted};
use crate::model::host_name::is_one_host;
use crate::model::id::{NodeName, NodeUid};
use crate::model::incident::{Confidence, FaultKind};
use crate::model::node::NodeEvent;
use crate::model::time::{Span, Time};
use crate::observe::cluster::ClusterView;

use crate::diagnose::machine_state::MachineState;
use crate::diagnose::question::{JudgeContext, absent, finding};

/// The reason of the event by which a cloud controller says that it deletes a Node
/// (k8s.io/cloud-provider, controllers/nodelifecycle/node_lifecycle_controller.go, deleteNodeEvent).
const DELETING_NODE: &str = "DeletingNode";

/// `own` is the uid of the Node that the machine stood as, where this process saw it.
pub(super) fn judge_vanished(
    context: JudgeContext<'_>,
    name: &NodeName,
    own: Option<&NodeUid>,
    due_after: Span,
) -> MachineState {
    // The last Node of that name may have been another machine's: nothing that was said of it is about this one (seed 3107845).
    let is_anothers = own.zip(context.cluster.gone_uid(name)).is_some_and(|(own, gone)| own != gone);
    let told = context.cluster.events_about(name).filter(|event| !is_anothers && event.is_removal());
    let told: Vec<&NodeEvent> = told.collect();
    let told = last_removal(&told);
    let by_controller = told.iter().any(|event| &*event.reason == DELETING_NODE);
    // Without an event, a person is the cause that is left. Events about a Node that was not watched when it went may be about
    // an earlier Node of its name.
    let cause = match by_controller {
        true => Cause::NodeDeletedByCloudController,
        false => Cause::NodeDeletedByPerson,
    };
    let watched = context.cluster.saw_go(name) && !is_anothers;
    let confidence = match (told.is_empty() || !watched, by_controller) {
        (true, _) => Confidence::Possible,
        (false, true) => Confidence::Sure,
        (false, false) => Confidence::Likely,
    };
    let mut finding = finding(cause, confidence, Vec::new());
    for event in told.iter().rev().take(3) {
        let fact = NodeFact::Event { message: quoted(&event.message), reporter: quoted(&event.reporter) };
        finding.evidence.push(context.evidence(Source::Event(event.reason.clone()), fact));
    }
    let gone = NodeFact::Gone { node: name.clone(), events_doubted: !watched && !told.is_empty() };
    finding.evidence.push(context.evidence(Source::Cluster, gone));
    if context.lease_is_fresh(name) {
        finding.evidence.push(context.evidence(Source::Lease, NodeFact::LeaseOutlives));
    }
    absent(FaultKind::Vanished, finding, Some(due_after), true)
}

/// The controller manager's word ends what is said about one object: what comes before an earlier one is about another.
fn last_removal<'a, 'b>(told: &'a [&'b NodeEvent]) -> &'a [&'b NodeEvent] {
    let before = &told[..told.len().saturating_sub(1)];
    let ended = before.iter().rposition(|event| &*event.reason == "RemovingNode");
    &told[ended.map_or(0, |at| at + 1)..]
}

/// Whether the kubelet of this Node said that it was cordoned, and that was not taken back. It outlives the Node for an hour, and
/// tells of a drain that no list showed.
pub fn was_cordoned(cluster: &ClusterView, name: &NodeName) -> bool {
    cluster.events_about(name).any(NodeEvent::is_cordon)
}

/// Whether a cloud controller said that it deleted the last Node of this name, because it did not find its instance. That is no
/// drain. What it said of an object before that one says nothing, and where the machine's own object is known, nothing counts of
/// another one: the one after it may have been drained.
pub fn was_deleted_by_cloud(cluster: &ClusterView, name: &NodeName, own: Option<&NodeUid>) -> bool {
    let removals = cluster.node_events().map(|(_, event)| event);
    let told: Vec<&NodeEvent> = removals.filter(|event| event.node == *name && event.is_removal()).collect();
    let last = last_removal(&told);
    let is_own = |event: &NodeEvent| own.zip(event.uid.as_ref()).is_none_or(|(own, about)| own == about);
    last.iter().all(|event| is_own(event)) && last.iter().any(|event| &*event.reason == DELETING_NODE)
}

/// Of which Nodes that machines of these names may have a kubelet said that they were cordoned, when that was heard last, and
/// what it said.
pub fn cordons_told<'a>(
    cluster: &'a ClusterView,
    names: impl Iterator<Item = &'a str>,
) -> BTreeMap<&'a NodeName, (Time, &'a NodeEvent)> {
    let names: Vec<&str> = names.collect();
    let is_its = |node: &NodeName| names.iter().any(|name| is_one_host(node.as_str(), name));
    let mut last = BTreeMap::new();
    for (at, event) in cluster.node_events() {
        if event.is_cordon() && is_its(&event.node) {
            last.insert(&event.node, (at, event));
        }
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_earlier_removal_says_nothing_of_the_last_one() {
        // D: the cloud controller deletes. R: the controller manager says that it is gone.
        let table = [
            ("", ""),
            ("R", "R"),
            ("DR", "DR"),
            ("DRR", "R"),
            ("DRD", "D"),
            ("RDR", "DR"),
            ("RD", "D"),
            ("DRDR", "DR"),
        ];
        for (told, last) in table {
            let event = |reason: char| NodeEvent {
                node: NodeName::from("n"),
                uid: None,
                reason: if reason == 'D' { "DeletingNode".into() } else { "RemovingNode".into() },
                message: "".into(),
                reporter: "".into(),
                stamped: None,
            };
            let events: Vec<NodeEvent> = told.chars().map(event).collect();
            let events: Vec<&NodeEvent> = events.iter().collect();
            let found: String =
                last_removal(&events).iter().filter_map(|event| event.reason.chars().next()).collect();
            assert_eq!(found, last, "{told}");
        }
    }
}

//! Events about nodes: who did what to which node, in the writer's words.
//!
//! Names, reporters and moments stand in different fields depending on which of Kubernetes' two Event APIs wrote them;
//! here they come together. Moments stay text: they are other machines' clocks.

use std::sync::Arc;

use reveille_core::model::id::{NodeName, NodeUid};
use reveille_core::model::node::NodeEvent;
use serde_json::value::RawValue;

use crate::failure::cut;
use crate::intern::Interner;
use crate::wire::EventDoc;

/// Reasons worth telling the engine while it runs: somebody takes a node away, or a machine restarted.
///
/// `DeletingNode` is the cloud controller's (cloud-provider, node lifecycle controller) and `RemovingNode` the controller
/// manager's. `ScaleDown…` are Cluster Autoscaler's, `DisruptionTerminating` and `FailedDraining` Karpenter's, `Rebooted`
/// and `Shutdown` the kubelet's. `NodeNotSchedulable` and `NodeSchedulable` are the kubelet's words for a cordon and its end,
/// within ten seconds of it (pkg/kubelet/kubelet_node_status.go, `recordNodeSchedulableEvent`): they outlive the Node, so that
/// a drain is known that fell into a gap of the watch. The kubelet's many others repeat what conditions say.
const TELLING: &[&str] = &[
    "DeletingNode",
    "RemovingNode",
    "ScaleDown",
    "ScaleDownEmpty",
    "ScaleDownFailed",
    "DisruptionTerminating",
    "FailedDraining",
    "Rebooted",
    "Shutdown",
    "NodeNotSchedulable",
    "NodeSchedulable",
];

/// An event and its place in history.
pub(crate) struct Said {
    /// The event.
    pub(crate) event: NodeEvent,
    /// `metadata.resourceVersion`.
    pub(crate) version: Option<String>,
}

/// True for events that are told as they happen.
pub(crate) fn is_telling(event: &NodeEvent) -> bool {
    TELLING.contains(&&*event.reason)
}

/// Reads one event. `None` when it cannot be decoded or names no node; events are hints, so nothing is lost with one.
pub(crate) fn said(raw: &RawValue, interner: &Interner) -> Option<Said> {
    let doc: EventDoc = serde_json::from_str(raw.get()).ok()?;
    let name = doc.involved_object.name.filter(|name| !name.is_empty())?;
    let filled = |text: Option<String>| text.filter(|text| !text.is_empty());
    let reporter = filled(doc.reporting_component).or_else(|| filled(doc.source.and_then(|s| s.component)));
    let stamped = filled(doc.series.and_then(|series| series.last_observed_time))
        .or_else(|| filled(doc.last_timestamp))
        .or_else(|| filled(doc.event_time))
        .or_else(|| filled(doc.first_timestamp));
    // The kubelet writes the node's name where its uid belongs (kubernetes `pkg/kubelet/kubelet.go`, `nodeRef`); controllers
    // write the uid.
    let uid = filled(doc.involved_object.uid).filter(|uid| *uid != name);
    let event = NodeEvent {
        node: NodeName::from(name.as_str()),
        uid: uid.map(|uid| NodeUid::from(uid.as_str())),
        reason: interner.share(doc.reason.as_deref().unwrap_or_default()),
        message: Arc::from(cut(doc.message.as_deref().unwrap_or_default())),
        reporter: interner.share(reporter.as_deref().unwrap_or("unknown")),
        stamped: stamped.map(Into::into),
    };
    Some(Said { event, version: doc.metadata.resource_version })
}

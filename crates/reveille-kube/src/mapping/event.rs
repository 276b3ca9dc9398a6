//! Events about nodes: which component did what to which node, in the writer's words.
//!
//! Names, reporters and moments stand in different fields depending on which of Kubernetes' two Event APIs wrote them;
//! here they come together. Moments stay text: they are other machines' clocks.

use std::sync::Arc;

use reveille_core::model::id::{NodeName, NodeUid};
use reveille_core::model::node::NodeEvent;
use serde_json::value::RawValue;

use super::{ID_MAX_BYTES, NAME_MAX_BYTES, WORD_MAX_BYTES, within};
use crate::failure::cut;
use crate::intern::Interner;
use crate::wire::EventDoc;

/// Reasons worth telling the engine while it runs: another client takes a node away, or a machine restarted.
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
    // The API server does not bound it here, and no node has a longer one.
    let name = doc.involved_object.name.filter(|name| (1..=NAME_MAX_BYTES).contains(&name.len()))?;
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
        uid: uid.map(|uid| NodeUid::from(within(&uid, ID_MAX_BYTES))),
        reason: interner.share(within(doc.reason.as_deref().unwrap_or_default(), WORD_MAX_BYTES)),
        message: Arc::from(cut(doc.message.as_deref().unwrap_or_default())),
        reporter: interner.share(within(reporter.as_deref().unwrap_or("unknown"), WORD_MAX_BYTES)),
        stamped: stamped.map(|stamp| within(&stamp, ID_MAX_BYTES).into()),
    };
    Some(Said { event, version: doc.metadata.resource_version })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Events are short-lived and unchecked: a client that may write one may make each of its texts as long as an object may be.
    #[test]
    fn no_text_of_an_event_is_kept_longer_than_any_real_one() {
        let long = "ä".repeat(200_000);
        let read = |name: &str| {
            let object = json!({
                "metadata": {"name": "e"}, "involvedObject": {"kind": "Node", "name": name, "uid": long},
                "reason": long, "message": long, "reportingComponent": long, "lastTimestamp": long
            });
            said(&serde_json::value::to_raw_value(&object).unwrap(), &Interner::default())
        };
        let event = read("a").unwrap().event;
        assert!(event.reason.len() <= WORD_MAX_BYTES && event.reporter.len() <= WORD_MAX_BYTES);
        assert!(event.uid.is_some_and(|uid| uid.as_str().len() <= ID_MAX_BYTES));
        assert!(event.stamped.is_some_and(|stamp| stamp.len() <= ID_MAX_BYTES) && event.message.len() <= 300);
        assert!(read(&long).is_none(), "no node is called that");
    }
}

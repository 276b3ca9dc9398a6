//! One Node, cut down to what decisions need.
//!
//! Rules: a missing Ready condition is `Unknown`, not `False`. Every other condition counts when its status is `True`;
//! Ready is kept beside them, with its reason and message, only while it is not True. Lists are sorted where order says
//! nothing, so that a server which shuffles them causes no change.

use std::net::IpAddr;

use ipnet::IpNet;
use reveille_core::model::id::{NodeName, NodeUid, ZoneName};
use reveille_core::model::node::{Condition, Node, Provider, Ready};

use super::{intent, provider};
use crate::intern::Interner;
use crate::wire::{ConditionDoc, NodeDoc, NodeSpec};

const ZONE: &str = "topology.kubernetes.io/zone";
const UNINITIALIZED: &str = "node.cloudprovider.kubernetes.io/uninitialized";
const READY: &str = "Ready";

/// Longest condition message kept, in bytes; the kubelet repeats whole container errors there.
const MESSAGE_MAX_BYTES: usize = 256;

/// Maps one Node. `unread` names the fields that could not be decoded. `None` without a name.
pub(crate) fn map(doc: NodeDoc, unread: &[&'static str], interner: &Interner) -> Option<Node> {
    let name = doc.metadata.name.as_deref().filter(|name| !name.is_empty())?;
    let spec = doc.spec.unwrap_or_default();
    let status = doc.status.unwrap_or_default();
    let info = status.node_info.unwrap_or_default();
    let conditions = status.conditions.unwrap_or_default();
    let taints = spec.taints.as_deref().unwrap_or_default();
    let signs_read = !unread.iter().any(|field| matches!(*field, "metadata.annotations" | "spec.taints"));
    let addresses = status.addresses.unwrap_or_default();
    let internal = addresses.iter().filter(|address| address.kind == "InternalIP");
    let mut internal: Vec<IpAddr> =
        internal.filter_map(|address| address.address.trim().parse().ok()).collect();
    internal.sort_unstable();
    internal.dedup();
    Some(Node {
        name: NodeName::from(name),
        uid: NodeUid::from(doc.metadata.uid.as_deref().unwrap_or_default()),
        provider: match spec.provider_id.as_deref() {
            None if unread.contains(&"spec.providerID") => Provider::Unread(interner.share("not readable")),
            text => provider::provider(text),
        },
        system_uuid: provider::system_uuid(info.system_uuid.as_deref()),
        boot_id: info.boot_id.filter(|id| !id.is_empty()).map(Into::into),
        kubelet: info.kubelet_version.filter(|v| !v.is_empty()).map(|version| interner.share(&version)),
        addresses: internal.into(),
        pod_ranges: pod_ranges(&spec),
        ready: ready(&conditions),
        conditions: kept(&conditions, interner),
        zone: zone(&doc.metadata.labels, interner),
        cordoned: spec.unschedulable.unwrap_or_default(),
        uninitialized: taints.iter().any(|taint| taint.key == UNINITIALIZED),
        intent: intent::read(&doc.metadata, taints, signs_read, interner),
    })
}

fn zone(
    labels: &Option<std::collections::BTreeMap<String, String>>,
    interner: &Interner,
) -> Option<ZoneName> {
    let zone = labels.as_ref()?.get(ZONE).filter(|zone| !zone.is_empty())?;
    Some(ZoneName::new(interner.share(zone)))
}

/// `spec.podCIDRs`, or the single one of clusters from before there were two families.
fn pod_ranges(spec: &NodeSpec) -> Box<[IpNet]> {
    let listed = spec.pod_cidrs.as_deref().unwrap_or_default();
    let single = spec.pod_cidr.as_ref().filter(|_| listed.is_empty());
    listed.iter().chain(single).filter_map(|range| range.trim().parse().ok()).collect()
}

fn ready(conditions: &[ConditionDoc]) -> Ready {
    match conditions.iter().find(|condition| condition.kind == READY).map(|ready| ready.status.as_str()) {
        Some("True") => Ready::True,
        Some("False") => Ready::False,
        _ => Ready::Unknown,
    }
}

fn kept(conditions: &[ConditionDoc], interner: &Interner) -> Box<[Condition]> {
    let counts = |condition: &&ConditionDoc| (condition.kind == READY) != (condition.status == "True");
    let keep = |condition: &ConditionDoc| Condition {
        kind: interner.share(&condition.kind),
        reason: interner.share(condition.reason.as_deref().unwrap_or_default()),
        message: interner.share(cut(condition.message.as_deref().unwrap_or_default())),
    };
    let mut kept: Vec<Condition> = conditions.iter().filter(counts).map(keep).collect();
    kept.sort_unstable();
    kept.into()
}

fn cut(message: &str) -> &str {
    &message[..message.floor_char_boundary(MESSAGE_MAX_BYTES)]
}

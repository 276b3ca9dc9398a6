//! One Node, cut down to what decisions need.
//!
//! Rules: a missing Ready condition is `Unknown`, not `False`. Every other condition counts when its status is `True`;
//! Ready is kept beside them, with its reason and message, only while it is not True. Lists are sorted where order says
//! nothing, so that a server which shuffles them causes no change.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use ipnet::IpNet;
use reveille_core::model::id::{NodeName, NodeUid, ZoneName};
use reveille_core::model::node::{Condition, Node, Provider, Ready};

use super::{ENTRIES_MAX, ID_MAX_BYTES, NAME_MAX_BYTES, WORD_MAX_BYTES, intent, provider, within};
use crate::intern::Interner;
use crate::wire::{ConditionDoc, NodeDoc, NodeSpec, Taint};

const ZONE: &str = "topology.kubernetes.io/zone";
const UNINITIALIZED: &str = "node.cloudprovider.kubernetes.io/uninitialized";
const READY: &str = "Ready";

/// Longest condition message kept, in bytes; the kubelet repeats whole container errors there.
const MESSAGE_MAX_BYTES: usize = 256;

/// What the labels of a Node are.
type Labels = Option<BTreeMap<String, String>>;

/// Maps one Node, and hands on its labels. `unread` names the fields that could not be decoded. `None` without a name.
pub(crate) fn map(doc: NodeDoc, unread: &[&'static str], interner: &Interner) -> Option<(Node, Labels)> {
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
    internal.truncate(ENTRIES_MAX);
    let provider = match spec.provider_id.as_deref() {
        None if unread.contains(&"spec.providerID") => Provider::Unread(interner.share("not readable")),
        text => provider::provider(text),
    };
    let mut system_uuid = provider::system_uuid(info.system_uuid.as_deref());
    if let Provider::Instance(id) = &provider
        && system_uuid.as_ref() == Some(id)
    {
        // Nearly always the same text: one copy of it for each machine does.
        system_uuid = Some(id.clone());
    }
    let node = Node {
        name: NodeName::from(name),
        uid: NodeUid::from(doc.metadata.uid.as_deref().unwrap_or_default()),
        provider,
        system_uuid,
        boot_id: short(info.boot_id.as_deref()).map(Into::into),
        kubelet: short(info.kubelet_version.as_deref()).map(|version| interner.share(version)),
        addresses: internal.into(),
        pod_ranges: pod_ranges(&spec),
        ready: ready(&conditions),
        conditions: kept(&conditions, interner),
        zone: zone(&doc.metadata.labels, interner),
        cordoned: spec.unschedulable.unwrap_or_default(),
        uninitialized: taints.iter().any(|taint| taint.key == UNINITIALIZED),
        intent: intent::read(&doc.metadata, taints, signs_read),
        taints: keys(taints, interner),
    };
    Some((node, doc.metadata.labels))
}

/// An id or a version, where there is one.
fn short(text: Option<&str>) -> Option<&str> {
    text.filter(|text| !text.is_empty()).map(|text| within(text, ID_MAX_BYTES))
}

/// The keys of the taints, whatever their values and effects.
fn keys(taints: &[Taint], interner: &Interner) -> Box<[Arc<str>]> {
    let key = |taint: &Taint| interner.share(within(&taint.key, NAME_MAX_BYTES));
    let mut keys: Vec<Arc<str>> = taints.iter().map(key).collect();
    keys.sort_unstable();
    keys.dedup();
    keys.truncate(ENTRIES_MAX);
    keys.into()
}

fn zone(labels: &Labels, interner: &Interner) -> Option<ZoneName> {
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
        kind: interner.share(within(&condition.kind, WORD_MAX_BYTES)),
        reason: interner.share(within(condition.reason.as_deref().unwrap_or_default(), WORD_MAX_BYTES)),
        message: interner.share(within(condition.message.as_deref().unwrap_or_default(), MESSAGE_MAX_BYTES)),
    };
    let mut kept: Vec<Condition> = conditions.iter().filter(counts).map(keep).collect();
    // Where there are too many, Ready is none of those left out.
    kept.sort_unstable_by(|a, b| (&*a.kind != READY, a).cmp(&(&*b.kind != READY, b)));
    kept.truncate(ENTRIES_MAX);
    kept.sort_unstable();
    kept.into()
}

#[cfg(test)]
mod tests {
    use reveille_core::model::id::InstanceId;
    use serde_json::{Value, json};

    use super::*;

    fn read(object: &Value) -> Node {
        let raw = serde_json::value::to_raw_value(object).unwrap();
        let read = crate::mapping::read_node(&raw, &Interner::default()).unwrap();
        (*read.node).clone()
    }

    /// A node with this at that place.
    fn with(path: &str, value: Value) -> Node {
        let mut object =
            json!({"metadata": {"name": "a", "uid": "u"}, "spec": {}, "status": {"nodeInfo": {}}});
        *object.pointer_mut(path.rsplit_once('/').unwrap().0).unwrap() =
            json!({path.rsplit_once('/').unwrap().1: value, "name": "a", "uid": "u"});
        read(&object)
    }

    fn conditions(entries: &[(&str, &str)]) -> Node {
        let entries: Vec<Value> = entries
            .iter()
            .map(|(kind, status)| json!({"type": kind, "status": status, "reason": "R", "message": "m"}))
            .collect();
        with("/status/conditions", json!(entries))
    }

    fn kinds(node: &Node) -> Vec<&str> {
        node.conditions.iter().map(|condition| &*condition.kind).collect()
    }

    #[test]
    fn an_empty_node_is_registered_and_nothing_else() {
        for object in [
            json!({"metadata": {"name": "a", "uid": "u"}}),
            json!({"metadata": {"name": "a", "uid": "u", "labels": null, "annotations": null}, "spec": null, "status": null}),
            json!({"metadata": {"name": "a", "uid": "u"}, "spec": {"taints": null, "podCIDRs": null},
                   "status": {"conditions": null, "addresses": null, "nodeInfo": null}}),
        ] {
            let node = read(&object);
            assert_eq!((node.name.as_str(), node.uid.as_str()), ("a", "u"));
            assert_eq!((node.provider, node.ready), (Provider::Unset, Ready::Unknown));
            assert!(node.addresses.is_empty() && node.pod_ranges.is_empty() && node.conditions.is_empty());
            assert!(node.system_uuid.is_none() && node.boot_id.is_none() && node.kubelet.is_none());
            assert!(!node.cordoned && !node.uninitialized && node.intent == Default::default());
            assert!(node.taints.is_empty());
        }
    }

    #[test]
    fn readiness() {
        let table: [(&[(&str, &str)], Ready, &[&str]); 7] = [
            (&[], Ready::Unknown, &[]),
            (&[("Ready", "True")], Ready::True, &[]),
            (&[("Ready", "False")], Ready::False, &["Ready"]),
            (&[("Ready", "Unknown")], Ready::Unknown, &["Ready"]),
            (&[("Ready", "true")], Ready::Unknown, &["Ready"]),
            (
                &[("MemoryPressure", "False"), ("Ready", "True"), ("DiskPressure", "True")],
                Ready::True,
                &["DiskPressure"],
            ),
            (&[("Z", "True"), ("Ready", "Unknown"), ("A", "True")], Ready::Unknown, &["A", "Ready", "Z"]),
        ];
        for (entries, ready, kept) in table {
            let node = conditions(entries);
            assert_eq!((node.ready, kinds(&node)), (ready, kept.to_vec()), "{entries:?}");
        }
    }

    #[test]
    fn a_long_message_is_cut_at_a_character() {
        let message = format!("{}äää", "x".repeat(MESSAGE_MAX_BYTES - 1));
        let node =
            with("/status/conditions", json!([{"type": "Ready", "status": "False", "message": message}]));
        assert_eq!(&*node.conditions[0].message, "x".repeat(MESSAGE_MAX_BYTES - 1));
    }

    /// A client that writes a node's status may make each of these texts as long as an object may be.
    #[test]
    fn no_text_or_list_of_a_node_is_kept_longer_than_any_real_one() {
        let long = |first: &str| format!("{first}{}", "ä".repeat(500_000));
        let condition =
            json!({"type": long("T"), "status": "True", "reason": long("R"), "message": long("m")});
        let many = (0..5000).map(
            |number| json!({"type": format!("A{number:04}"), "status": "True", "reason": "", "message": ""}),
        );
        let ready = json!({"type": "Ready", "status": "False"});
        let addresses = (0..5000).map(|number| {
            json!({"type": "InternalIP", "address": format!("10.1.{}.{}", number / 256, number % 256)})
        });
        let node = |conditions: Vec<Value>, provider: String| {
            read(&json!({
                "metadata": {"name": "a", "uid": "u"},
                "spec": {"providerID": provider, "taints": [{"key": long("k")}]},
                "status": {"nodeInfo": {"bootID": long("b"), "kubeletVersion": long("v1.36.3")},
                           "addresses": addresses.clone().collect::<Vec<_>>(), "conditions": conditions}
            }))
        };
        for provider in [long("gce://"), format!("openstack:///{}", "a".repeat(1_000_000))] {
            let node = node(vec![condition.clone()], provider);
            assert_eq!(node.boot_id.as_ref().map(|id| id.len()), Some(63), "half a character is none");
            assert!(node.kubelet.as_ref().is_some_and(|version| version.len() <= ID_MAX_BYTES));
            assert!(node.taints[0].len() <= NAME_MAX_BYTES);
            assert_eq!(node.addresses.len(), ENTRIES_MAX);
            let Condition { kind, reason, message } = &node.conditions[0];
            assert!(kind.len() <= WORD_MAX_BYTES && reason.len() <= WORD_MAX_BYTES);
            assert!(message.len() <= MESSAGE_MAX_BYTES);
            assert!(matches!(&node.provider, Provider::Unread(text) if text.len() <= NAME_MAX_BYTES));
        }
        let node = node(many.chain([ready]).collect(), String::new());
        assert_eq!(node.conditions.len(), ENTRIES_MAX);
        assert!(kinds(&node).contains(&READY));
    }

    #[test]
    fn pod_ranges_of_both_generations() {
        let ranges = |spec: Value| -> Vec<String> {
            let node = read(&json!({"metadata": {"name": "a", "uid": "u"}, "spec": spec}));
            node.pod_ranges.iter().map(ToString::to_string).collect()
        };
        assert_eq!(
            ranges(json!({"podCIDR": "198.19.1.0/24", "podCIDRs": ["198.19.1.0/24", "2001:db8:1::/64"]})),
            ["198.19.1.0/24", "2001:db8:1::/64"]
        );
        assert_eq!(ranges(json!({"podCIDR": "198.19.1.0/24"})), ["198.19.1.0/24"]);
        assert_eq!(ranges(json!({"podCIDR": "198.19.1.0/24", "podCIDRs": []})), ["198.19.1.0/24"]);
        assert_eq!(ranges(json!({"podCIDRs": ["nonsense", "198.19.2.0/24"]})), ["198.19.2.0/24"]);
    }

    #[test]
    fn internal_addresses_of_both_families() {
        let node = with(
            "/status/addresses",
            json!([{"type": "Hostname", "address": "a"}, {"type": "InternalIP", "address": "2001:db8::5"},
                   {"type": "InternalIP", "address": "10.0.0.5"}, {"type": "ExternalIP", "address": "192.0.2.1"},
                   {"type": "InternalIP", "address": "10.0.0.5"}, {"type": "InternalIP", "address": "?"}]),
        );
        let told: Vec<String> = node.addresses.iter().map(ToString::to_string).collect();
        assert_eq!(told, ["10.0.0.5", "2001:db8::5"]);
    }

    #[test]
    fn the_rest_of_a_real_node() {
        let node = read(&json!({
            "metadata": {"name": "w-1", "uid": "u-1", "resourceVersion": "7", "deletionTimestamp": "2026-01-01T00:00:00Z",
                         "labels": {"topology.kubernetes.io/zone": "nova-a"}, "managedFields": [{"manager": "kubelet"}]},
            "spec": {"unschedulable": true, "providerID": "openstack:///5F0C1D2E-0000-4A5B-8C9D-0123456789AB",
                     "taints": [{"key": "node.cloudprovider.kubernetes.io/uninitialized", "effect": "NoSchedule"}]},
            "status": {"nodeInfo": {"systemUUID": "5F0C1D2E00004A5B8C9D0123456789AB", "bootID": "b", "kubeletVersion": "v1.36.3"}}
        }));
        let id = InstanceId::from("5f0c1d2e-0000-4a5b-8c9d-0123456789ab");
        assert_eq!((node.provider, node.system_uuid), (Provider::Instance(id.clone()), Some(id)));
        assert_eq!((node.boot_id.as_deref(), node.kubelet.as_deref()), (Some("b"), Some("v1.36.3")));
        assert_eq!(node.zone, Some(ZoneName::from("nova-a")));
        assert!(node.cordoned && node.uninitialized && node.intent.deleting);
        assert_eq!(node.intent.leaving, None);
        let taints: Vec<&str> = node.taints.iter().map(|key| &**key).collect();
        assert_eq!(taints, [UNINITIALIZED]);
    }
}

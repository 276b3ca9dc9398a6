//! What the API servers' JSON holds that we read, and how it becomes the nouns.
//!
//! Every field may be missing or `null`, and fields that this crate does not know are passed over. Keys, tokens and plans have no
//! field: they are skipped while reading and are never in memory as values of ours. An object that cannot be decoded spoils none
//! of the others; the reader of the list counts it.

use std::collections::{BTreeMap, BTreeSet};

use reveille_core::model::id::{NodeName, NodeUid};
use reveille_core::model::signs::PAUSE;
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};

use crate::model::{
    Address, AgentPod, Cluster, ClusterId, Condition, Conditions, CustomConfig, Host, Kind, Node, Record,
    RecordName, RkeNode, Role,
};
use crate::stamp::ServerTime;

/// Longest text of a condition that is kept, in bytes.
const MESSAGE_MAX_BYTES: usize = 400;
/// The driver of clusters that Rancher runs itself.
const RKE1: &str = "rancherKubernetesEngine";

/// `null` and "not there" are the same to the server.
fn lenient<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(from: D) -> Result<T, D::Error> {
    Ok(Option::<T>::deserialize(from)?.unwrap_or_default())
}

macro_rules! doc {
    ($($(#[$doc:meta])* $name:ident { $($field:ident: $kind:ty = $key:literal,)* })*) => {$(
        $(#[$doc])*
        #[derive(Default, Deserialize)]
        #[serde(default)]
        pub(crate) struct $name {
            $(#[serde(rename = $key, deserialize_with = "lenient")] pub(crate) $field: $kind,)*
        }
    )*};
}

doc! {
    /// Metadata of any object.
    Meta {
        name: String = "name",
        namespace: String = "namespace",
        uid: String = "uid",
        revision: String = "resourceVersion",
        generation: Option<i64> = "generation",
        created: String = "creationTimestamp",
        deleted: String = "deletionTimestamp",
        finalizers: Vec<String> = "finalizers",
        labels: BTreeMap<String, String> = "labels",
        annotations: BTreeMap<String, String> = "annotations",
    }
    ConditionDoc {
        kind: String = "type",
        status: String = "status",
        reason: String = "reason",
        message: String = "message",
    }
    ClusterDoc { metadata: Meta = "metadata", spec: ClusterSpec = "spec", status: ClusterStatus = "status", }
    ClusterSpec { display_name: String = "displayName", }
    ClusterStatus {
        driver: String = "driver",
        conditions: Vec<ConditionDoc> = "conditions",
        applied: AppliedSpec = "appliedSpec",
    }
    AppliedSpec { display_name: String = "displayName", rke: Option<RkeSpec> = "rancherKubernetesEngineConfig", }
    RkeSpec { hosts: Vec<HostDoc> = "nodes", }
    HostDoc { node_name: String = "nodeName", address: String = "address", roles: Vec<String> = "role", }
    RecordDoc { metadata: Meta = "metadata", spec: RecordSpec = "spec", status: RecordStatus = "status", }
    RecordSpec {
        requested_hostname: String = "requestedHostname",
        imported: bool = "imported",
        etcd: bool = "etcd",
        control_plane: bool = "controlPlane",
        worker: bool = "worker",
        custom_config: Option<CustomDoc> = "customConfig",
        template: String = "nodeTemplateName",
        pool: String = "nodePoolName",
    }
    CustomDoc { address: String = "address", internal_address: String = "internalAddress", }
    RecordStatus {
        conditions: Vec<ConditionDoc> = "conditions",
        node_name: String = "nodeName",
        rke_node: Option<RkeNodeDoc> = "rkeNode",
        internal: NodeStatus = "internalNodeStatus",
        docker_info: Option<IgnoredAny> = "dockerInfo",
        plan: Option<IgnoredAny> = "nodePlan",
    }
    RkeNodeDoc {
        node_name: String = "nodeName",
        hostname_override: String = "hostnameOverride",
        address: String = "address",
        internal_address: String = "internalAddress",
        roles: Vec<String> = "role",
    }
    NodeDoc { metadata: Meta = "metadata", spec: NodeSpec = "spec", status: NodeStatus = "status", }
    NodeSpec { unschedulable: bool = "unschedulable", }
    NodeStatus { addresses: Vec<AddressDoc> = "addresses", conditions: Vec<ConditionDoc> = "conditions", }
    AddressDoc { kind: String = "type", address: String = "address", }
    PodDoc { metadata: Meta = "metadata", spec: PodSpec = "spec", status: PodStatus = "status", }
    PodSpec { node: String = "nodeName", }
    PodStatus { phase: String = "phase", conditions: Vec<ConditionDoc> = "conditions", }
}

fn cut(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(MESSAGE_MAX_BYTES));
    text
}

/// Conditions by their type; of two of one type the last one counts, as for Rancher itself.
pub(crate) fn conditions(docs: Vec<ConditionDoc>) -> Conditions {
    let condition = |doc: ConditionDoc| {
        (doc.kind, Condition { status: doc.status, reason: doc.reason, message: cut(doc.message) })
    };
    docs.into_iter().map(condition).collect()
}

fn roles<'w>(words: impl IntoIterator<Item = &'w String>) -> BTreeSet<Role> {
    words.into_iter().filter_map(|word| Role::of_word(word)).collect()
}

fn addresses(docs: Vec<AddressDoc>) -> Vec<Address> {
    docs.into_iter().map(|doc| Address { kind: doc.kind, address: doc.address }).collect()
}

fn node_name(text: String) -> Option<NodeName> {
    (!text.is_empty()).then(|| NodeName::new(text))
}

impl ClusterDoc {
    pub(crate) fn noun(self) -> Cluster {
        let (meta, spec, status) = (self.metadata, self.spec, self.status);
        let applied = status.applied;
        let host =
            |doc: HostDoc| Host { node_name: doc.node_name, address: doc.address, roles: roles(&doc.roles) };
        let called = [applied.display_name, spec.display_name];
        Cluster {
            id: ClusterId(meta.name),
            display_name: called.into_iter().find(|name| !name.is_empty()).unwrap_or_default(),
            kind: match status.driver.as_str() {
                "" => Kind::Unset,
                RKE1 => Kind::Managed,
                _ => Kind::Mirrored,
            },
            driver: status.driver,
            deleting: !meta.deleted.is_empty(),
            conditions: conditions(status.conditions),
            applied_hosts: applied.rke.map(|rke| rke.hosts.into_iter().map(host).collect()),
        }
    }
}

impl RecordDoc {
    pub(crate) fn noun(self) -> Record {
        let (mut meta, spec, status) = (self.metadata, self.spec, self.status);
        let held =
            [(spec.etcd, Role::Etcd), (spec.control_plane, Role::ControlPlane), (spec.worker, Role::Worker)];
        let is_true = |meta: &Meta, key: &str| meta.annotations.get(key).is_some_and(|value| value == "true");
        Record {
            generation: meta.generation,
            created: ServerTime::of_stamp(&meta.created),
            deleting: ServerTime::of_stamp(&meta.deleted),
            node_label: meta.labels.remove("management.cattle.io/nodename").and_then(node_name),
            is_synced: is_true(&meta, "management.cattle.io/nodesyncer"),
            is_created: is_true(&meta, "lifecycle.cattle.io/create.node-controller"),
            name: RecordName(meta.name),
            uid: meta.uid,
            revision: meta.revision,
            finalizers: meta.finalizers,
            requested_hostname: spec.requested_hostname,
            imported: spec.imported,
            roles: held.into_iter().filter_map(|(has, role)| has.then_some(role)).collect(),
            custom_config: spec
                .custom_config
                .map(|doc| CustomConfig { address: doc.address, internal_address: doc.internal_address }),
            template: spec.template,
            pool: spec.pool,
            node_name: node_name(status.node_name),
            rke_node: status.rke_node.map(|doc| RkeNode {
                roles: roles(&doc.roles),
                node_name: doc.node_name,
                hostname_override: doc.hostname_override,
                address: doc.address,
                internal_address: doc.internal_address,
            }),
            addresses: addresses(status.internal.addresses),
            has_docker_info: status.docker_info.is_some(),
            has_plan: status.plan.is_some(),
            conditions: conditions(status.conditions),
        }
    }
}

impl NodeDoc {
    pub(crate) fn noun(self) -> Node {
        let (meta, status) = (self.metadata, self.status);
        let held: BTreeSet<Role> = meta
            .labels
            .iter()
            .filter(|(_, value)| *value != "false")
            .filter_map(|(key, _)| Role::of_word(key.strip_prefix("node-role.kubernetes.io/")?))
            .collect();
        let ready = conditions(status.conditions).remove("Ready");
        Node {
            is_ignored: meta
                .labels
                .get("cattle.rancher.io/node-status")
                .is_some_and(|value| value == "ignore"),
            is_paused: meta.annotations.get(PAUSE).is_some_and(|value| value == "true"),
            name: NodeName::new(meta.name),
            uid: NodeUid::new(meta.uid),
            revision: meta.revision,
            addresses: addresses(status.addresses),
            // By the syncer's rule: a Node without a role label is a worker.
            roles: if held.is_empty() { BTreeSet::from([Role::Worker]) } else { held },
            ready: ready.map_or_else(|| "Unknown".to_owned(), |condition| condition.status),
            unschedulable: self.spec.unschedulable,
            created: ServerTime::of_stamp(&meta.created),
        }
    }
}

impl PodDoc {
    /// The agent of a node, if it is one.
    pub(crate) fn agent(self) -> Option<AgentPod> {
        let is_agent = self.metadata.name.starts_with("cattle-node-agent-");
        let ready = conditions(self.status.conditions).remove("Ready");
        is_agent.then(|| AgentPod {
            name: self.metadata.name,
            node: self.spec.node,
            phase: self.status.phase,
            ready: ready.is_some_and(|condition| condition.status == "True"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_fields_and_nulls_are_ignored_and_keys_are_not_kept() {
        let text = r#"{"metadata":{"name":"m-abcde","labels":null,"creationTimestamp":"2026-01-01T00:00:00Z"},
            "spec":{"etcd":null,"worker":true,"customConfig":{"address":"10.0.0.1","sshKey":"k3y-canary"},"newer":[1,{}]},
            "status":{"nodePlan":{"plan":{"files":[{"contents":"k3y-canary"}]}},"dockerInfo":null,"rkeNode":{"role":["worker","x"]}}}"#;
        let record = serde_json::from_str::<RecordDoc>(text).unwrap().noun();
        assert!(record.has_plan && !record.has_docker_info && record.deleting.is_none());
        assert_eq!(record.roles, BTreeSet::from([Role::Worker]));
        assert_eq!(record.rke_node.as_ref().unwrap().roles, BTreeSet::from([Role::Worker]));
        assert!(!format!("{record:?}").contains("k3y-canary"));
    }

    #[test]
    fn node_without_role_is_worker_and_controlplane_is_also_read() {
        let roles = |labels: &str| {
            let text = format!(r#"{{"metadata":{{"name":"n","labels":{labels}}}}}"#);
            serde_json::from_str::<NodeDoc>(&text).unwrap().noun().roles
        };
        assert_eq!(roles("{}"), BTreeSet::from([Role::Worker]));
        assert_eq!(
            roles(r#"{"node-role.kubernetes.io/control-plane":""}"#),
            BTreeSet::from([Role::ControlPlane])
        );
        let both = r#"{"node-role.kubernetes.io/controlplane":"true","node-role.kubernetes.io/etcd":"true"}"#;
        assert_eq!(roles(both), BTreeSet::from([Role::Etcd, Role::ControlPlane]));
    }
}

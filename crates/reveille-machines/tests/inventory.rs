//! Which machines a cluster without a cloud has: Nodes and records of the same machine are one, and nothing is lost.

#![allow(clippy::unwrap_used, reason = "a test ends where its material is missing")]

use std::sync::Arc;

use reveille_core::model::id::InstanceId;
use reveille_core::model::instance::{InstanceState, Mark};
use reveille_core::model::node::{Node, Provider, Ready};
use reveille_machines::inventory::{Found, LabelledNode, Machine, Reading, machines};
use reveille_machines::pool::Labels;
use reveille_machines::{MachineRecord, kind_of, read};
use serde_json::{Value, json};

/// A provider ID is the id of its instance, as it is.
fn read_id(text: &str) -> Option<InstanceId> {
    Some(InstanceId::from(text))
}

fn node(name: &str, provider_id: Option<&str>, uuid: Option<&str>, labels: &[(&str, &str)]) -> LabelledNode {
    let node = Node {
        name: name.into(),
        uid: format!("u-{name}").as_str().into(),
        provider: provider_id.map_or(Provider::Unset, |id| Provider::Instance(id.into())),
        system_uuid: uuid.map(InstanceId::from),
        boot_id: None,
        kubelet: None,
        addresses: Box::default(),
        pod_ranges: Box::default(),
        ready: Ready::True,
        conditions: Box::default(),
        zone: None,
        cordoned: false,
        intent: Default::default(),
        uninitialized: false,
        taints: Box::default(),
    };
    let labels: Labels = labels.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
    LabelledNode { node: Arc::new(node), labels: Arc::new(labels), created: None }
}

fn claim(name: &str, status: Value, deleted: bool) -> Arc<MachineRecord> {
    let mut metadata =
        json!({"name": name, "uid": format!("u-{name}"), "labels": {"karpenter.sh/nodepool": "default"}});
    if deleted {
        metadata["deletionTimestamp"] = json!("2026-11-20T10:00:00Z");
    }
    let object = json!({"metadata": metadata, "status": status});
    Arc::new(read(kind_of("karpenter.sh", "nodeclaims").unwrap(), "v1", &object).unwrap())
}

fn found(nodes: &[LabelledNode], records: &[Arc<MachineRecord>]) -> Found {
    machines(&Reading { nodes, records, cluster: Mark::Tag("cluster".into()), read_id })
}

fn of(nodes: &[LabelledNode], records: &[Arc<MachineRecord>]) -> Vec<Machine> {
    found(nodes, records).machines
}

fn told(machines: &[Machine]) -> Vec<(&str, &str, Option<&str>, InstanceState, &str)> {
    machines
        .iter()
        .map(|it| {
            let instance = &it.instance;
            let hostname = instance.hostname.as_deref();
            (instance.id.as_str(), instance.name.as_str(), hostname, instance.state, it.pool.name())
        })
        .collect()
}

#[test]
fn node_without_record_is_a_machine_by_its_strongest_identity() {
    let nodes = [
        node("a", Some("kind://a"), Some("uuid-a"), &[("node-role.kubernetes.io/control-plane", "")]),
        node("b", None, Some("uuid-b"), &[]),
        node("c", None, None, &[]),
    ];
    let active = InstanceState::Active;
    assert_eq!(
        told(&of(&nodes, &[])),
        [
            ("kind://a", "a", None, active, "control-plane"),
            ("node/c", "c", None, active, "workers"),
            ("uuid-b", "b", None, active, "workers"),
        ]
    );
}

/// Boards whose maker gave all the same UUID: one machine of two would hide that the other one is not Ready.
#[test]
fn nodes_that_share_a_uuid_are_two_machines() {
    let nodes = [node("a", None, Some("same"), &[]), node("b", None, Some("same"), &[])];
    let machines = of(&nodes, &[]);
    let ids: Vec<_> = machines.iter().map(|it| it.instance.id.as_str()).collect();
    assert_eq!(ids, ["node/a", "node/b"]);
}

#[test]
fn record_and_its_node_are_one_machine() {
    let nodes = [
        node("k-1", Some("p://1"), None, &[("karpenter.sh/nodepool", "default"), ("tier", "web")]),
        node("k-2", Some("p://2"), None, &[]),
    ];
    // The owner has not written the name of the second Node yet.
    let records = [
        claim("claim-1", json!({"providerID": "p://1", "nodeName": "k-1"}), false),
        claim("claim-2", json!({"providerID": "p://2"}), false),
    ];
    let machines = of(&nodes, &records);
    let active = InstanceState::Active;
    assert_eq!(
        told(&machines),
        [
            ("p://1", "claim-1", Some("k-1"), active, "default"),
            ("p://2", "claim-2", Some("k-2"), active, "default"),
        ]
    );
    let marks = &machines[0].instance.marks;
    for mark in [Mark::Tag("cluster".into()), Mark::Metadata("tier".into(), "web".into())] {
        assert!(marks.contains(&mark), "{mark}: {marks:?}");
    }
    let group = machines[0].instance.hosting.as_ref().unwrap().group.as_ref().unwrap();
    assert_eq!((&*group.name, group.word.starts_with("Karpenter")), ("NodePool default", true));
}

#[test]
fn record_without_node_is_built_runs_failed_or_leaves() {
    let failed = json!({"conditions": [{"type": "Launched", "status": "False", "reason": "LaunchFailed", "message": "no"}]});
    let records = [
        claim("a-new", json!({}), false),
        claim("b-launched", json!({"providerID": "p://b"}), false),
        claim("c-leaves", json!({"providerID": "p://c"}), true),
        claim("d-failed", failed, false),
    ];
    let mut machines = of(&[], &records);
    machines.sort_by(|a, b| a.instance.name.as_str().cmp(b.instance.name.as_str()));
    let states: Vec<_> = machines.iter().map(|it| (it.instance.id.as_str(), it.instance.state)).collect();
    let failed = if records[3].failure.is_some() { InstanceState::Errored } else { InstanceState::Building };
    assert_eq!(
        states,
        [
            ("nodeclaims.karpenter.sh/a-new", InstanceState::Building),
            ("p://b", InstanceState::Active),
            ("p://c", InstanceState::Deleting),
            ("nodeclaims.karpenter.sh/d-failed", failed),
        ]
    );
}

/// Any client that may create a record, in any namespace, would speak for the machines of others.
#[test]
fn of_several_records_that_lead_to_one_node_none_counts() {
    let nodes = [node("k-1", Some("p://1"), None, &[])];
    let records = [
        claim("own", json!({"providerID": "p://1"}), false),
        claim("evil", json!({"providerID": "p://1"}), true),
    ];
    let found = found(&nodes, &records);
    assert_eq!(told(&found.machines), [("p://1", "k-1", None, InstanceState::Active, "workers")]);
    assert_eq!(found.contested, 2);
}

#[test]
fn record_that_is_being_deleted_excuses_no_node_that_is_there() {
    let nodes = [node("k-1", Some("p://1"), None, &[])];
    let machines = of(&nodes, &[claim("c", json!({"providerID": "p://1", "nodeName": "k-1"}), true)]);
    assert_eq!(machines[0].instance.state, InstanceState::Active);
}

/// A record that names the Node of a machine, and has the provider ID of another one, takes no machine away.
#[test]
fn record_with_another_provider_id_has_not_the_node_it_names() {
    let nodes = [node("k-1", Some("p://1"), None, &[])];
    let machines = of(&nodes, &[claim("evil", json!({"providerID": "x://fake", "nodeName": "k-1"}), false)]);
    let ids: Vec<_> =
        machines.iter().map(|it| (it.instance.id.as_str(), it.instance.hostname.as_deref())).collect();
    assert_eq!(ids, [("p://1", None), ("x://fake", None)]);
}

fn machine_of(cluster: &str, name: &str, node: &str) -> Arc<MachineRecord> {
    let object = json!({
        "metadata": {"name": name, "namespace": "clusters", "uid": name,
                     "labels": {"cluster.x-k8s.io/cluster-name": cluster}},
        "spec": {"providerID": format!("p://{cluster}/{name}"), "clusterName": cluster},
        "status": {"nodeRef": {"name": node}}
    });
    Arc::new(read(kind_of("cluster.x-k8s.io", "machines").unwrap(), "v1beta2", &object).unwrap())
}

/// It has no Node yet, and will have one in its own cluster.
fn joins_still(record: Arc<MachineRecord>) -> Arc<MachineRecord> {
    Arc::new(MachineRecord { node: None, ..(*record).clone() })
}

/// A management cluster has the Machines of its workload clusters, whose Nodes are there, and perhaps its own as well.
#[test]
fn machines_of_other_clusters_are_counted_and_left_out() {
    let nodes = [node("cp-1", Some("p://management/m-1"), None, &[]), node("cp-2", None, None, &[])];
    let records = [
        machine_of("management", "m-1", "cp-1"),
        machine_of("management", "m-2", "cp-9"),
        machine_of("workload", "w-1", "cp-1"),
        machine_of("workload", "w-2", "worker-2"),
        joins_still(machine_of("workload", "w-3", "worker-3")),
    ];
    let found = found(&nodes, &records);
    let names: Vec<_> = found.machines.iter().map(|it| it.instance.name.as_str()).collect();
    assert_eq!(names, ["cp-2", "m-1", "m-2"]);
    assert_eq!((found.elsewhere, found.contested), (3, 0));
}

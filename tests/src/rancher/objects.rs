//! Objects as Rancher and kubelets write them, with the fields that the seeds show.

use serde_json::{Value, json};

use super::OF;
use super::kinds::API;

/// The label by which Rancher's syncer finds a record's Node.
pub const NODE_LABEL: &str = "management.cattle.io/nodename";
/// The annotation of a record that the syncer adopted.
pub const SYNCED: &str = "management.cattle.io/nodesyncer";
/// The finalizer of a record.
pub const FINALIZER: &str = "controller.cattle.io/node-controller";

/// Where the records of a cluster are.
pub fn records_of(cluster: &str) -> String {
    format!("/apis/{API}/namespaces/{cluster}/nodes")
}

/// Where a cluster is.
pub fn cluster_at(cluster: &str) -> String {
    format!("/apis/{API}/clusters/{cluster}")
}

/// A cluster that Rancher runs itself, at rest, whose applied specification has these records and addresses.
pub fn cluster(id: &str, name: &str, hosts: &[(&str, &str)]) -> Value {
    let host = |(record, ip): &(&str, &str)| json!({"nodeName": format!("{id}:{record}"), "address": ip, "role": ["worker"]});
    let hosts: Vec<Value> = hosts.iter().map(host).collect();
    json!({
        "apiVersion": API, "kind": "Cluster", "metadata": {"name": id}, "spec": {"displayName": name},
        "status": {
            "driver": "rancherKubernetesEngine",
            "conditions": [{"type": "Provisioned", "status": "True"}, {"type": "Updated", "status": "True"}],
            "appliedSpec": {"displayName": name, "rancherKubernetesEngineConfig": {"nodes": hosts}},
        },
    })
}

/// A snapshot of its etcd that was completed.
pub fn backup(cluster: &str) -> Value {
    json!({"apiVersion": API, "kind": "EtcdBackup", "metadata": {"name": format!("{cluster}-rs-1"), "namespace": cluster},
        "status": {"conditions": [{"type": "Completed", "status": "True"}]}})
}

/// A record as the syncer makes it of a Node that has none. The API server gives the rest of its name.
pub fn mirror(cluster: &str, node: &str, ip: &str) -> Value {
    json!({
        "apiVersion": API, "kind": "Node",
        "metadata": {
            "generateName": "machine-", "namespace": cluster, "labels": {NODE_LABEL: node},
            "annotations": {SYNCED: "true", "lifecycle.cattle.io/create.node-controller": "true"},
            "finalizers": [FINALIZER],
        },
        "spec": {"requestedHostname": node, "worker": true, "etcd": false, "controlPlane": false},
        "status": {"nodeName": node, "internalNodeStatus": {"addresses": addresses(node, ip)}},
    })
}

/// A record as an agent's registration makes it, after its hook and its plan.
pub fn registered(cluster: &str, record: &str, node: &str, ip: &str) -> Value {
    let mut value = mirror(cluster, node, ip);
    value["metadata"]["name"] = json!(record);
    value["spec"]["imported"] = json!(true);
    value["spec"]["customConfig"] = json!({"address": ip, "sshKey": "k3y-canary"});
    value["status"]["rkeNode"] = json!({
        "nodeName": format!("{cluster}:{record}"), "hostnameOverride": node, "address": ip, "port": "22",
        "user": "root", "role": ["worker"],
    });
    value["status"]["dockerInfo"] = json!({"ID": node});
    value["status"]["nodePlan"] = json!({"version": 1});
    value["status"]["conditions"] = json!([{"type": "Provisioned", "status": "True"}]);
    value
}

/// A Node of a cluster. A simulated kubelet keeps it Ready.
pub fn node(cluster: &str, name: &str, ip: &str) -> Value {
    let size = json!({"cpu": "2", "memory": "4Gi", "pods": "110"});
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {
            "name": name, "annotations": {"kwok.x-k8s.io/node": "fake"},
            "labels": {OF: cluster, "node-role.kubernetes.io/worker": "true"},
        },
        "status": {"addresses": addresses(name, ip), "capacity": size, "allocatable": size},
    })
}

fn addresses(node: &str, ip: &str) -> Value {
    json!([{"type": "InternalIP", "address": ip}, {"type": "Hostname", "address": node}])
}

/// A pod on a Node, which a controller would make again; with `local`, its data is there alone.
pub fn pod(namespace: &str, name: &str, node: &str, owner: &Value, local: bool) -> Value {
    let owner = json!({"apiVersion": "v1", "kind": "ConfigMap", "controller": true,
        "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"]});
    let volumes = if local { json!([{"name": "data", "emptyDir": {}}]) } else { json!([]) };
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "ownerReferences": [owner]},
        "spec": {
            "nodeName": node, "terminationGracePeriodSeconds": 0, "automountServiceAccountToken": false,
            "containers": [{"name": "main", "image": "none.example/none"}], "volumes": volumes,
        },
    })
}

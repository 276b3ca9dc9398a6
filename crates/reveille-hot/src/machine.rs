//! The machine behind an object: what the object itself says, and what must be asked elsewhere.
//!
//! ```text
//!  Node                      its own name and addresses
//!  Rancher's node            namespace = cluster id (its name: clusters.management.cattle.io), label, spec, internalNodeStatus
//!  Lease of a node           its name
//!  Pod                       where it runs
//! ```
//!
//! Where the object cannot be read, its path still tells the cluster's id.

use serde_json::Value;

use crate::object::Object;

/// Addresses that are told.
const ADDRESSES_MAX: usize = 4;

/// A machine, as far as it is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Machine {
    /// Rancher's id of its cluster.
    pub cluster_id: Option<String>,
    /// The name by which people know that cluster.
    pub cluster_name: Option<String>,
    /// Its node.
    pub node: Option<String>,
    /// Its addresses.
    pub addresses: Vec<String>,
}

impl Machine {
    /// What the path alone tells; `None` for an object that no machine stands behind.
    pub fn of_name(object: &Object) -> Option<Self> {
        let name = Some(object.name.to_string());
        if object.resource.is_rancher_node() {
            return Some(Self { cluster_id: Some(object.namespace.to_string()), ..Self::default() });
        }
        let is_node = object.resource.is("", "nodes")
            || object.resource.is("coordination.k8s.io", "leases") && &*object.namespace == "kube-node-lease";
        is_node.then(|| Self { node: name, ..Self::default() })
    }

    /// What the object tells.
    pub fn of_object(object: &Object, whole: &Value) -> Option<Self> {
        let text = |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
        if object.resource.is("", "pods") {
            let node = text(&whole["spec"]["nodeName"])?;
            let addresses = text(&whole["status"]["hostIP"]).into_iter().collect();
            return Some(Self { node: Some(node), addresses, ..Self::default() });
        }
        let mut machine = Self::of_name(object)?;
        let status = if object.resource.is_rancher_node() {
            let label = &whole["metadata"]["labels"]["management.cattle.io/nodename"];
            machine.node = text(label)
                .or_else(|| text(&whole["status"]["nodeName"]))
                .or_else(|| text(&whole["spec"]["requestedHostname"]));
            &whole["status"]["internalNodeStatus"]
        } else {
            &whole["status"]
        };
        machine.addresses = addresses(status);
        if machine.addresses.is_empty() {
            machine.addresses.extend(text(&whole["spec"]["customConfig"]["address"]));
        }
        Some(machine)
    }

    /// The object that holds the name of its cluster, and is asked for it.
    pub fn cluster_object(&self) -> Option<Object> {
        let id = self.cluster_id.as_deref()?;
        let resource = crate::object::Resource::new("management.cattle.io", "clusters");
        self.cluster_name.is_none().then(|| Object::new(resource, "", id))
    }

    /// Takes the cluster's name from that object.
    pub fn take_cluster(&mut self, whole: &Value) {
        self.cluster_name = whole["spec"]["displayName"].as_str().map(str::to_owned);
    }
}

/// Addresses, without the host's name, which the node's is already.
fn addresses(status: &Value) -> Vec<String> {
    let all = status["addresses"].as_array().into_iter().flatten();
    let addresses = all.filter(|address| address["type"].as_str().is_some_and(|kind| kind.ends_with("IP")));
    addresses
        .filter_map(|address| address["address"].as_str().map(str::to_owned))
        .take(ADDRESSES_MAX)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn found(path: &str, whole: &Value) -> Option<(Option<String>, Option<String>, String)> {
        let (object, _) = Object::of_path(path).unwrap();
        let machine = Machine::of_object(&object, whole)?;
        Some((machine.cluster_id, machine.node, machine.addresses.join(" ")))
    }

    #[test]
    fn machine_is_found_from_node_lease_pod_and_rancher_records() {
        let some = |text: &str| Some(text.to_owned());
        let addresses =
            json!([{"type": "InternalIP", "address": "10.0.0.5"}, {"type": "Hostname", "address": "w-1"}]);
        let rancher = json!({"metadata": {"labels": {"management.cattle.io/nodename": "w-1"}},
            "status": {"internalNodeStatus": {"addresses": addresses}}});
        let path = "/apis/management.cattle.io/v3/namespaces/c-1/nodes/machine-h46dc";
        assert_eq!(found(path, &rancher), Some((some("c-1"), some("w-1"), "10.0.0.5".to_owned())));
        let waiting = json!({"spec": {"requestedHostname": "w-2", "customConfig": {"address": "10.0.0.6"}}});
        assert_eq!(found(path, &waiting), Some((some("c-1"), some("w-2"), "10.0.0.6".to_owned())));
        let node = json!({"status": {"addresses": addresses}});
        assert_eq!(found("/api/v1/nodes/w-1", &node), Some((None, some("w-1"), "10.0.0.5".to_owned())));
        let lease = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/w-1";
        assert_eq!(found(lease, &json!({})), Some((None, some("w-1"), String::new())));
        assert_eq!(found("/api/v1/namespaces/x/configmaps/c", &json!({})), None);
    }
}

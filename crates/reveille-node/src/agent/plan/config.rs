//! The plan's join as a configuration: the file of kubeadm, or a part of the configuration of k3s and RKE2.
//!
//! Configuration in the distribution's own format that came with the plan was checked before (`allowed`). The plan
//! overrides it: the server, the pins, the name and the token are always the plan's.

use reveille_wire::agent::allowed::{NotAllowed, Taint, taint};
use reveille_wire::agent::plan::JoinOrder;
use serde_json::{Value, json};

use crate::distribution;

/// kubeadm's configuration for this join, with [`distribution::TOKEN_PLACE`] in place of the token.
///
/// # Errors
///
/// One of the plan's taints is invalid.
pub(super) fn of_kubeadm(step: usize, order: &JoinOrder, own: Option<Value>) -> Result<String, NotAllowed> {
    let labels: Vec<String> = order.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let taints: Result<Vec<Value>, NotAllowed> = order
        .taints
        .iter()
        .map(|text| taint(step, text))
        .map(|taint| {
            taint.map(|Taint { key, value, effect }| json!({ "key": key, "value": value, "effect": effect }))
        })
        .collect();
    let taints = taints?;
    let mut registration = json!({ "name": order.node_name.as_str(), "taints": taints });
    if !labels.is_empty() {
        registration["kubeletExtraArgs"] = json!([{ "name": "node-labels", "value": labels.join(",") }]);
    }
    let pins: Vec<&str> = order.ca_pins.iter().map(|pin| pin.as_str()).collect();
    let mut file = json!({
        "apiVersion": "kubeadm.k8s.io/v1beta4",
        "kind": "JoinConfiguration",
        "nodeRegistration": registration,
    });
    if let Some(own) = own {
        merge(&mut file, own);
    }
    file["discovery"] = json!({ "bootstrapToken": {
        "apiServerEndpoint": order.server.as_str(),
        "token": distribution::TOKEN_PLACE,
        "caCertHashes": pins,
    } });
    Ok(file.to_string())
}

/// The configuration of a k3s or RKE2 agent beside the server: the keys of its files. Lists are added to those that an
/// operator wrote.
pub(super) fn of_agent(order: &JoinOrder, own: Option<Value>) -> String {
    let labels: Vec<String> = order.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let taints: Vec<&str> = order.taints.iter().map(|taint| taint.as_str()).collect();
    let mut file = json!({});
    for (key, list) in [("node-label+", json!(labels)), ("node-taint+", json!(taints))] {
        if list.as_array().is_some_and(|list| !list.is_empty()) {
            file[key] = list;
        }
    }
    if let Some(own) = own {
        merge(&mut file, own);
    }
    file.to_string()
}

/// The plan overrides what an operator wrote: maps are merged, of any other value the plan's counts.
fn merge(over: &mut Value, under: Value) {
    use Value::{Array, Object};
    match (over, under) {
        (Object(over), Object(under)) => {
            for (key, value) in under {
                match over.get_mut(&key) {
                    Some(own) => merge(own, value),
                    None => drop(over.insert(key, value)),
                }
            }
        }
        (Array(over), Array(under)) => over.extend(under),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_person_wrote_stands_under_the_plan() {
        let mut over = json!({ "name": "w-1", "args": [{ "name": "a" }] });
        merge(&mut over, json!({ "name": "x", "criSocket": "s", "args": [{ "name": "b" }] }));
        assert_eq!(
            over,
            json!({ "name": "w-1", "criSocket": "s", "args": [{ "name": "a" }, { "name": "b" }] })
        );
    }
}

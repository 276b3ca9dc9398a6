//! What an edit in place writes: derived from the machine's own facts, never copied from another record.
//!
//! The address is one that the kubelet says it has, the roles are those of the Node's labels and must be those of the
//! record, the names follow from the Node and the record. Where facts contradict each other there is no draft, and the
//! contradiction is said.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::Order;
use super::observation::Observation;
use super::safeguard::{Safeguard, stands};
use crate::model::{Host, Record, Role, role_words};

/// `customConfig` and `rkeNode`, together.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Draft {
    /// `spec.customConfig.address`, `status.rkeNode.address`.
    pub address: String,
    /// `status.rkeNode.hostnameOverride`.
    pub hostname: String,
    /// `status.rkeNode.nodeName`.
    pub node_name: String,
    /// `status.rkeNode.role`.
    pub roles: BTreeSet<Role>,
}

impl Draft {
    /// Field by field: what stands there afterwards. Before, none of them is there.
    pub fn lines(&self) -> Vec<(&'static str, String)> {
        let roles: Vec<&str> = self.roles.iter().map(|role| role.word()).collect();
        vec![
            ("spec.customConfig.address", self.address.clone()),
            ("status.rkeNode.nodeName", self.node_name.clone()),
            ("status.rkeNode.hostnameOverride", self.hostname.clone()),
            ("status.rkeNode.address", self.address.clone()),
            ("status.rkeNode.port", "22".to_owned()),
            ("status.rkeNode.user", "root".to_owned()),
            ("status.rkeNode.role", roles.join(", ")),
        ]
    }

    /// Whether a record says this.
    pub fn is_in(&self, record: &Record) -> bool {
        let custom = record.custom_config.as_ref().is_some_and(|custom| custom.address == self.address);
        let rke = record.rke_node.as_ref().is_some_and(|rke| {
            rke.address == self.address
                && rke.hostname_override == self.hostname
                && rke.node_name == self.node_name
                && rke.roles == self.roles
        });
        custom && rke
    }
}

/// The draft for this machine, or all that stands against one.
pub(super) fn draft(order: &Order, observation: &Observation, record: &Record) -> Result<Draft, Vec<String>> {
    let mut against = Vec::new();
    let Some(node) = observation.node(order) else {
        return Err(vec!["there is no Node to take facts from".to_owned()]);
    };
    if stands(Safeguard::NeitherPart) && (record.custom_config.is_some() || record.rke_node.is_some()) {
        against.push("it has one of customConfig and rkeNode: only a record with neither is mended, so that both can be taken out again".to_owned());
    }
    let is_anothers = !record.requested_hostname.is_empty() && record.requested_hostname != order.node;
    if stands(Safeguard::HostName) && is_anothers {
        against.push(format!(
            "its requestedHostname is {}, the Node is {}",
            record.requested_hostname, order.node
        ));
    }
    if stands(Safeguard::Roles) && node.roles != record.roles {
        let (labels, spec) = (role_words(&node.roles), role_words(&record.roles));
        against.push(format!("the Node's role labels say {labels}, the record says {spec}"));
    }
    let of_record = record.internal_ips();
    let of_both: Vec<&str> = node.internal_ips().into_iter().filter(|ip| of_record.contains(ip)).collect();
    let address = match of_both.as_slice() {
        [one] => (*one).to_owned(),
        [first, ..] if !stands(Safeguard::OneAddress) => (*first).to_owned(),
        [] => {
            against.push("Node and record share no internal address".to_owned());
            String::new()
        }
        several => {
            against.push(format!(
                "it has several internal addresses ({}): which one Rancher reaches it by cannot be told",
                several.join(", ")
            ));
            String::new()
        }
    };
    let draft = Draft {
        address,
        hostname: order.node.clone(),
        node_name: format!("{}:{}", observation.sample.cluster.id, record.name),
        roles: node.roles.clone(),
    };
    against.extend(against_applied(observation, record, &draft));
    if against.is_empty() { Ok(draft) } else { Err(against) }
}

/// The hosts of the specification that was applied last must be those that have a record, and this one alone besides.
fn against_applied(observation: &Observation, record: &Record, draft: &Draft) -> Vec<String> {
    let Some(hosts) = &observation.sample.cluster.applied_hosts else {
        return vec!["the cluster has no applied specification to compare hosts with".to_owned()];
    };
    let is_this = |host: &&Host| host.node_name == draft.node_name || host.address == draft.address;
    let mut against = Vec::new();
    let applied: BTreeSet<&str> =
        hosts.iter().filter(|host| !is_this(host)).map(|host| host.node_name.as_str()).collect();
    let records = observation.sample.records.iter().flat_map(std::collections::BTreeMap::values);
    let whole: BTreeSet<&str> = records
        .filter(|other| other.name != record.name && other.deleting.is_none())
        .filter_map(|other| other.rke_node.as_ref().map(|rke| rke.node_name.as_str()))
        .collect();
    if stands(Safeguard::AppliedHosts) && applied != whole {
        let listed = |names: &BTreeSet<&str>| names.iter().copied().collect::<Vec<_>>().join(", ");
        against.push(format!(
            "the next change of the cluster would do more than add this host: applied are {}, whole records are {}",
            listed(&applied),
            listed(&whole)
        ));
    }
    let was_etcd = hosts.iter().filter(is_this).any(|host| host.roles.contains(&Role::Etcd));
    if stands(Safeguard::Membership) && was_etcd != draft.roles.contains(&Role::Etcd) {
        against.push(
            "it would change who is a member of etcd: the applied specification says otherwise".to_owned(),
        );
    }
    against
}

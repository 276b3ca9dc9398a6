//! The conditions for any change by a repair, stated a second time and otherwise than the safeguards state them.
//!
//! They use the same look, by plain counting over Nodes, records, pods and members. A rule that is stricter than its safeguard
//! would stop what is right; a laxer one would miss what the safeguard is there for. So tests compare them by taking each
//! safeguard away.

use std::collections::BTreeSet;

use reveille_core::model::time::Span;

use super::InvariantChecker;
use crate::model::{Maker, Node, Record, Role};
use crate::repair::Act;
use crate::repair::observation::{Observation, PodKind};

/// A day.
const SNAPSHOT_MAX: Span = Span::from_min(24 * 60);

fn records(observation: &Observation) -> impl Iterator<Item = &Record> {
    observation.sample.records.iter().flat_map(std::collections::BTreeMap::values)
}

impl InvariantChecker {
    /// The rules that this act breaks.
    pub(super) fn conditions(&self, act: &Act, observation: &Observation) -> Vec<&'static str> {
        let mut broken = Vec::new();
        let mut must = |holds: bool, rule: &'static str| {
            if !holds {
                broken.push(rule);
            }
        };
        let sample = &observation.sample;
        must(sample.records.is_some() && sample.garbled == 0, "records were not all read");
        must(
            observation.snapshot_age.is_some_and(|age| age < SNAPSHOT_MAX),
            "no snapshot of etcd within a day",
        );
        let Some(node) = observation.node(&self.order) else { return vec!["there is no Node"] };
        let own = observation.records(&self.order, &self.ips);
        must(own.iter().any(|record| is_faulty(record)) || own.len() > 1, "nothing is wrong with it");
        let is_here = |record: &&Record| {
            let ips = record.internal_ips();
            record.addresses.is_empty() || ips.iter().any(|ip| self.ips.contains(*ip))
        };
        must(own.iter().all(is_here), "a record of it has other addresses");
        match act {
            Act::Write { .. } => broken.extend(self.of_an_edit(observation, node, &own)),
            _ => broken.extend(self.of_an_eviction(observation, node)),
        }
        broken
    }

    fn of_an_eviction(&self, observation: &Observation, node: &Node) -> Vec<&'static str> {
        let mut broken = Vec::new();
        if !node.roles.iter().all(|role| well(observation, *role, node) > 0) {
            broken.push("it is the last of a role");
        }
        let (own, homeless) = observation.members_of(&self.order.node, &self.ips);
        let is_told = observation
            .records(&self.order, &self.ips)
            .iter()
            .any(|record| record.roles.contains(&Role::Etcd));
        let is_known = match node.roles.contains(&Role::Etcd) {
            true => own.len() == 1 || own.is_empty() && homeless.is_empty(),
            false => own.is_empty() && !is_told,
        };
        if !is_known {
            broken.push("which member of etcd is its own is not known");
        }
        if node.roles.contains(&Role::Etcd) {
            match &observation.members {
                None => broken.push("etcd's members were not read"),
                Some(members) => {
                    let own = observation.member(&self.order.node, &self.ips);
                    if members.iter().any(|member| Some(member) != own && !member.healthy) {
                        broken.push("another member of etcd is not well");
                    }
                }
            }
        }
        match &observation.volumes {
            None => broken.push("volumes were not read"),
            Some(volumes) if !volumes.is_empty() && !self.order.local_data => {
                broken.push("volumes are there alone");
            }
            Some(_) => {}
        }
        match &observation.pods {
            None => broken.push("its pods were not read"),
            Some(pods) => {
                let has = |kind| pods.iter().any(|pod| pod.kind == kind);
                if has(PodKind::LocalData) && !self.order.local_data {
                    broken.push("pods have data there alone");
                }
                if has(PodKind::Unmanaged) {
                    broken.push("no controller would create its pods again");
                }
            }
        }
        broken
    }

    fn of_an_edit(&self, observation: &Observation, node: &Node, own: &[&Record]) -> Vec<&'static str> {
        let mut broken = Vec::new();
        if self.of_an_eviction(observation, node).is_empty() {
            broken.push("it could be taken out");
        }
        let [record] = own else {
            broken.push("it has not one record");
            return broken;
        };
        let ips = node.internal_ips();
        let shared = record.internal_ips().into_iter().filter(|ip| ips.contains(ip)).count();
        let this = format!("{}:{}", observation.sample.cluster.id, record.name);
        let is_this = |name: &str, address: &str| name == this || ips.contains(address);
        let hosts = observation.sample.cluster.applied_hosts.clone().unwrap_or_default();
        let others: BTreeSet<&str> = hosts
            .iter()
            .filter(|host| !is_this(&host.node_name, &host.address))
            .map(|host| host.node_name.as_str())
            .collect();
        let whole: BTreeSet<&str> = records(observation)
            .filter(|other| other.name != record.name && other.deleting.is_none())
            .filter_map(|other| other.rke_node.as_ref().map(|rke| rke.node_name.as_str()))
            .collect();
        let was_etcd = hosts
            .iter()
            .any(|host| is_this(&host.node_name, &host.address) && host.roles.contains(&Role::Etcd));
        let asked = record.requested_hostname.as_str();
        for (holds, rule) in [
            (record.deleting.is_none(), "the record is on its way out"),
            (record.custom_config.is_none() && record.rke_node.is_none(), "it has one of both parts"),
            (asked.is_empty() || asked == self.order.node, "the record asked for another name"),
            (record.roles == node.roles, "Node and record disagree about roles"),
            (shared == 1, "it cannot be told which address is meant"),
            (
                observation.sample.cluster.applied_hosts.is_some() && others == whole,
                "the next change would do more than add it",
            ),
            (was_etcd == node.roles.contains(&Role::Etcd), "it would change who is a member of etcd"),
        ] {
            if !holds {
                broken.push(rule);
            }
        }
        broken
    }
}

/// A mirror, a record without an owner, or one without what a plan is made from.
fn is_faulty(record: &Record) -> bool {
    let is_unowned = record.custom_config.is_none() && record.template.is_empty() && record.pool.is_empty();
    record.name.maker() == Maker::Mirror
        || is_unowned
        || record.rke_node.is_none() && record.deleting.is_none()
}

/// Other machines of a role that are Ready and have a whole record.
fn well(observation: &Observation, role: Role, node: &Node) -> usize {
    let nodes = observation.sample.nodes.iter().flat_map(std::collections::BTreeMap::values);
    let is_whole = |other: &Node| {
        records(observation)
            .any(|record| record.rke_node.is_some() && record.deleting.is_none() && record.is_of(other))
    };
    nodes
        .filter(|other| other.name != node.name && other.ready == "True" && other.roles.contains(&role))
        .filter(|other| is_whole(other))
        .count()
}

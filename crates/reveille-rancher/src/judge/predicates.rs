//! The eight predicates: what each reads, and what it says when it holds.
//!
//! One function each, from a record and what stands around it to a finding or none. Their conditions stand in the order of
//! their definition; an exception that a healthy cluster needs stands beside the condition, with its reason.

use std::collections::{BTreeMap, BTreeSet};

use super::{Case, Certainty, DELETING_AFTER, Evidence, Finding, Predicate, UNFINISHED_AFTER};
use crate::model::{Kind, Maker, Record, RecordName, role_words};

const ABSENT: &str = "not there";

fn field(of: impl ToString, field: &str, value: impl ToString) -> Evidence {
    let value = value.to_string();
    let value = if value.is_empty() { "empty".to_owned() } else { value };
    Evidence { of: of.to_string(), field: field.to_owned(), value }
}

fn driver(case: &Case<'_>) -> Evidence {
    field("cluster", "status.driver", &case.sample.cluster.driver)
}

fn about(record: &Record, predicate: Predicate, says: String, evidence: Vec<Evidence>) -> Finding {
    Finding {
        predicate,
        certainty: Certainty::High,
        records: BTreeSet::from([record.name.clone()]),
        node: record.node().cloned(),
        says,
        evidence,
    }
}

/// P1.
pub(super) fn mirror(case: &Case<'_>, record: &Record) -> Option<Finding> {
    (record.name.maker() == Maker::Mirror).then(|| {
        let says = "it is a mirror that Rancher's syncer made of a Node without a record; in this cluster nodes register, \
                    and their records are called m-"
            .to_owned();
        about(record, Predicate::Mirror, says, vec![driver(case), field(&record.name, "metadata.name", &record.name)])
    })
}

/// P2.
pub(super) fn no_owner(case: &Case<'_>, record: &Record) -> Option<Finding> {
    let is_owned = record.custom_config.is_some() || !record.template.is_empty() || !record.pool.is_empty();
    (!is_owned).then(|| {
        let evidence = vec![
            driver(case),
            field(&record.name, "spec.customConfig", ABSENT),
            field(&record.name, "spec.nodeTemplateName", &record.template),
            field(&record.name, "spec.nodePoolName", &record.pool),
        ];
        let says = "it was not made on purpose: it has neither the address of a node that registered nor a template or pool";
        about(record, Predicate::NoOwner, says.to_owned(), evidence)
    })
}

/// P3. A record on its way out gets none any more, and one that is young may be about to.
pub(super) fn no_rke_node(case: &Case<'_>, record: &Record) -> Option<Finding> {
    let stands = |record: &Record| record.rke_node.is_none() && record.deleting.is_none();
    case.for_long(record, UNFINISHED_AFTER, stands).then(|| {
        let mut evidence = vec![driver(case), field(&record.name, "status.rkeNode", ABSENT)];
        if record.is_created {
            let key = "metadata.annotations[lifecycle.cattle.io/create.node-controller]";
            evidence.push(field(&record.name, key, "true: the hook that writes it ran, and never runs again"));
        }
        if let Some(condition) = record.conditions.get("Provisioned") {
            let value = [condition.status.as_str(), condition.message.as_str()].join(" ");
            evidence.push(field(&record.name, "status.conditions[Provisioned]", value.trim()));
        }
        let says = "it has no rkeNode, so that its agent is told to wait for ever, and the next change of the cluster drops its host";
        about(record, Predicate::NoRkeNode, says.to_owned(), evidence)
    })
}

/// P4. Names everywhere; addresses only where each node was registered by its own, for behind a cloud's address translation
/// mirrored Nodes may share one.
pub(super) fn duplicates(case: &Case<'_>) -> Vec<Finding> {
    let Some(records) = &case.sample.records else { return Vec::new() };
    let mut shared: BTreeMap<(&str, &str), BTreeSet<&RecordName>> = BTreeMap::new();
    for record in records.values() {
        let mut add = |path: &'static str, value| {
            shared.entry((path, value)).or_default().insert(&record.name);
        };
        if let Some(label) = &record.node_label {
            add("metadata.labels[management.cattle.io/nodename]", label.as_str());
        }
        if !record.requested_hostname.is_empty() {
            add("spec.requestedHostname", &record.requested_hostname);
        }
        if case.sample.cluster.kind == Kind::Managed {
            for ip in record.internal_ips() {
                add("status.internalNodeStatus.addresses[InternalIP]", ip);
            }
        }
    }
    let mut groups: BTreeMap<BTreeSet<&RecordName>, Vec<Evidence>> = BTreeMap::new();
    for ((path, value), names) in shared.into_iter().filter(|(_, names)| names.len() > 1) {
        let evidence = names.iter().map(|name| field(name, path, value));
        groups.entry(names.clone()).or_default().extend(evidence);
    }
    let finding = |(names, mut evidence): (BTreeSet<&RecordName>, Vec<Evidence>)| {
        let of = |name: &&RecordName| records.get(*name);
        for record in names.iter().filter_map(of).filter(|record| record.deleting.is_some()) {
            evidence.push(field(&record.name, "metadata.deletionTimestamp", "there: it is on its way out"));
        }
        let listed: Vec<&str> = names.iter().map(|name| name.0.as_str()).collect();
        Finding {
            predicate: Predicate::Duplicate,
            certainty: Certainty::High,
            node: names.iter().filter_map(of).find_map(|record| record.node().cloned()),
            records: names.iter().map(|name| (*name).clone()).collect(),
            says: format!(
                "{} are records of one machine, and each of them is written over the other",
                listed.join(" and ")
            ),
            evidence,
        }
    };
    groups.into_iter().map(finding).collect()
}

/// P5. A list with records that cannot be decoded does not say who has none.
pub(super) fn orphans(case: &Case<'_>) -> Vec<Finding> {
    let (Some(records), Some(nodes)) = (&case.sample.records, &case.sample.nodes) else { return Vec::new() };
    if case.sample.garbled > 0 {
        return Vec::new();
    }
    let is_orphan =
        |node: &&crate::model::Node| !node.is_ignored && !records.values().any(|record| record.is_of(node));
    let finding = |node: &crate::model::Node| {
        let ips: Vec<&str> = node.internal_ips().into_iter().collect();
        Finding {
            predicate: Predicate::Orphan,
            certainty: Certainty::Medium,
            records: BTreeSet::new(),
            node: Some(node.name.clone()),
            says: "it is a Node without a record: Rancher's syncer is about to make a machine- record of it, unless one is just \
                   being made"
                .to_owned(),
            evidence: vec![
                driver(case),
                field(format!("node {}", node.name), "status.addresses[InternalIP]", ips.join(", ")),
                field("records", "label, names and addresses", "none of them is of this Node"),
            ],
        }
    };
    nodes.values().filter(is_orphan).map(finding).collect()
}

/// P6.
pub(super) fn undeleted(case: &Case<'_>, record: &Record) -> Option<Finding> {
    let node = case.node_of(record)??;
    let stands = |record: &Record| record.deleting.is_some();
    case.for_long(record, DELETING_AFTER, stands).then(|| {
        let says = "its deletion does not end while its Node is still there: what its finalizer waits for has not been done";
        let finalizers = record.finalizers.join(", ");
        let evidence = vec![
            field(&record.name, "metadata.deletionTimestamp", "there, for more than five minutes"),
            field(&record.name, "metadata.finalizers", finalizers),
            field(format!("node {}", node.name), "metadata.uid", &node.uid),
        ];
        about(record, Predicate::Undeleted, says.to_owned(), evidence)
    })
}

/// P7. A machine that is just joining has no Node yet.
pub(super) fn no_node(case: &Case<'_>, record: &Record) -> Option<Finding> {
    let nodes = case.sample.nodes.as_ref()?;
    let stands =
        |record: &Record| record.deleting.is_none() && !nodes.values().any(|node| record.is_of(node));
    if !case.for_long(record, UNFINISHED_AFTER, stands) {
        return None;
    }
    let called = record.node().map_or(record.requested_hostname.as_str(), |name| name.as_str());
    let mut evidence = vec![
        field(&record.name, "spec.requestedHostname", &record.requested_hostname),
        field("nodes", called, ABSENT),
    ];
    let pods = case.sample.pods.iter().flat_map(BTreeMap::values);
    let agent = pods.into_iter().find(|pod| pod.node == called && pod.phase == "Running" && pod.ready);
    let (certainty, says) = match agent {
        Some(pod) => {
            evidence.push(field(format!("pod {}", pod.name), "status.phase", "Running, ready"));
            let says = "its agent is alive and there is no Node: its kubelet does not register, which it does at its start alone";
            (Certainty::High, says)
        }
        None => {
            let says = "there is no Node of it: its kubelet does not register, or the machine is gone; whether its agent is alive \
                        cannot be told from here";
            (Certainty::Medium, says)
        }
    };
    Some(Finding { certainty, ..about(record, Predicate::NoNode, says.to_owned(), evidence) })
}

/// P8.
pub(super) fn bad_repair(case: &Case<'_>, record: &Record) -> Option<Finding> {
    let rke = record.rke_node.as_ref()?;
    let mut evidence = Vec::new();
    let meant = format!("{}:{}", case.sample.cluster.id, record.name);
    if rke.node_name != meant {
        let value = format!("{}; it should be {meant}", rke.node_name);
        evidence.push(field(&record.name, "status.rkeNode.nodeName", value));
    }
    if !record.requested_hostname.is_empty() && rke.hostname_override != record.requested_hostname {
        let value =
            format!("{}; spec.requestedHostname is {}", rke.hostname_override, record.requested_hostname);
        evidence.push(field(&record.name, "status.rkeNode.hostnameOverride", value));
    }
    if rke.roles != record.roles {
        let value = format!("{}; spec says {}", role_words(&rke.roles), role_words(&record.roles));
        evidence.push(field(&record.name, "status.rkeNode.role", value));
    }
    // A machine that has not reported yet has no addresses to compare with.
    if !record.addresses.is_empty() && !record.addresses.iter().any(|known| known.address == rke.address) {
        let known: Vec<&str> = record.addresses.iter().map(|known| known.address.as_str()).collect();
        let value = format!("{}; the machine has {}", rke.address, known.join(", "));
        evidence.push(field(&record.name, "status.rkeNode.address", value));
    }
    (!evidence.is_empty()).then(|| {
        let says = "its parts contradict each other, as after a repair by hand; or it has an address that its kubelet does not know";
        let found = about(record, Predicate::BadRepair, says.to_owned(), evidence);
        Finding { certainty: Certainty::Medium, ..found }
    })
}

//! The fields in which a broken record differs from a healthy one of the same cluster.
//!
//! A person does this by hand with two YAML files. The healthy sibling is the same for the same look. It is a record without a
//! finding: one with the same roles if there is one, else the first by name. The comparison shows its shape; its values are its
//! own.

use crate::model::{Maker, Record, Sample};

use super::Finding;

/// A field that differs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Difference {
    /// Which field.
    pub field: &'static str,
    /// Of the healthy one.
    pub healthy: String,
    /// Of this one.
    pub this: String,
}

/// Two records beside each other.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Comparison {
    /// The healthy one.
    pub sibling: crate::model::RecordName,
    /// Where they differ.
    pub differences: Vec<Difference>,
}

/// A record beside a healthy sibling; `None` when there is none.
pub fn compare(sample: &Sample, found: &[Finding], record: &Record) -> Option<Comparison> {
    let is_found =
        |name: &crate::model::RecordName| found.iter().any(|finding| finding.records.contains(name));
    let is_sound = |other: &&Record| {
        other.name != record.name
            && !is_found(&other.name)
            && other.deleting.is_none()
            && other.rke_node.is_some()
            && matches!(other.name.maker(), Maker::Registration | Maker::Pool)
    };
    let siblings = sample.records.as_ref()?.values().filter(is_sound);
    let sibling = siblings.min_by_key(|other| (other.roles != record.roles, other.name.clone()))?;
    let differences = FIELDS
        .iter()
        .map(|(field, read)| Difference { field, healthy: read(sibling), this: read(record) })
        .filter(|difference| difference.healthy != difference.this)
        .collect();
    Some(Comparison { sibling: sibling.name.clone(), differences })
}

/// Field by field, by its shape: whether it is there, not what it holds.
const FIELDS: [(&str, fn(&Record) -> String); 11] = [
    ("metadata.name", |record| match record.name.maker() {
        Maker::Registration => "m- and 12 digits: it registered".to_owned(),
        Maker::Pool => "m- and 5 characters: of a pool".to_owned(),
        Maker::Mirror => "machine-: made by the syncer".to_owned(),
        Maker::Unknown => "of no known form".to_owned(),
    }),
    ("spec.customConfig", |record| is_there(record.custom_config.is_some())),
    ("spec.imported", |record| if record.imported { "true" } else { "not there" }.to_owned()),
    ("spec.nodeTemplateName", |record| is_there(!record.template.is_empty())),
    ("spec.nodePoolName", |record| is_there(!record.pool.is_empty())),
    ("status.rkeNode", |record| is_there(record.rke_node.is_some())),
    ("status.dockerInfo", |record| is_there(record.has_docker_info)),
    ("status.nodePlan", |record| is_there(record.has_plan)),
    ("status.conditions[Provisioned]", |record| condition(record, "Provisioned")),
    ("status.conditions[Saved]", |record| condition(record, "Saved")),
    ("metadata.annotations[…/nodesyncer]", |record| is_there(record.is_synced)),
];

fn is_there(there: bool) -> String {
    if there { "there" } else { "not there" }.to_owned()
}

fn condition(record: &Record, kind: &str) -> String {
    record.conditions.get(kind).map_or_else(|| "not there".to_owned(), |condition| condition.status.clone())
}

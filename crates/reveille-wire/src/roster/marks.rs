//! `owned`: the marks on an instance that prove its owner.
//!
//! A pool has one mark for the cluster and one for the pool. Each is a tag or one metadata pair, within the limits of the
//! cloud. A mark that no object can carry would match nothing, and no error would tell the operator why. Tags of EC2 are
//! pairs: there `tag: key=value` and `metadata: {key: value}` mean the same, and the cluster's key alone means any value of
//! it. An empty mark is not allowed: it would match everything, and the controller could delete machines of other owners.
//!
//! Without a cloud every Node is the cluster's own, and one label tells its pool (`selector`).

use std::collections::BTreeSet;
use std::sync::Arc;

use reveille_core::model::instance::Mark;
use reveille_core::model::roster::Ownership;

use super::CloudRef;
use super::clouds::{KINDS, Words, alone};
use super::complaint::{Complaints, Spot, quote};
use super::section::{Field, Section};
use super::shape::{OWNED, OWNED_POOL, SELECTOR};
use super::tree::Kind;

/// Marks of a pool, with the positions where they are written.
#[derive(Clone, Debug)]
pub(super) struct Owned {
    pub(super) marks: Ownership,
    pub(super) spot: Spot,
}

/// Reads a pool's `owned`.
pub(super) fn owned(field: &Field<'_>, at: Option<&CloudRef>, complaints: &mut Complaints) -> Option<Owned> {
    let section = Section::open(field, OWNED, complaints)?;
    let cluster = one_of(&section, at, complaints);
    let pool_field = section.take("pool");
    let pool = pool_field.as_ref().map(|field| match field.tree.kind {
        Kind::Map(_) => {
            Section::open(field, OWNED_POOL, complaints).and_then(|section| one_of(&section, at, complaints))
        }
        _ => tag(field, at, complaints),
    });
    let cluster = cluster?;
    let pool = match pool {
        None => None,
        Some(read) => Some(read?),
    };
    if let (Some(field), true) = (pool_field, pool.as_ref() == Some(&cluster)) {
        complaints.add(
            &field.spot,
            "it is the cluster's own mark, so it tells no pool from another",
            "write a mark that only this pool's machines carry, or take the line out",
        );
        return None;
    }
    Some(Owned { marks: Ownership { cluster, pool }, spot: section.spot })
}

/// What tells the machines of a pool in a cluster without a cloud: its `selector`; without one they are all machines.
pub(super) fn selected(pool: &Section<'_>, complaints: &mut Complaints) -> Option<Owned> {
    let cluster = alone::mark();
    let Some(field) = pool.take("selector") else {
        return Some(Owned { marks: Ownership::of_cluster(cluster), spot: pool.spot.clone() });
    };
    let section = Section::open(&field, SELECTOR, complaints)?;
    let labels = section.require("matchLabels", "write matchLabels: {key: value}", complaints)?;
    let pool = label(&labels, complaints)?;
    Some(Owned { marks: Ownership { cluster, pool: Some(pool) }, spot: section.spot })
}

/// One label, whose value may be empty, as that of `node-role.kubernetes.io/control-plane` is.
fn label(field: &Field<'_>, complaints: &mut Complaints) -> Option<Mark> {
    let Kind::Map(entries) = &field.tree.kind else {
        let wrong = format!("{} stands where a map of one label belongs", field.tree.noun());
        complaints.add(&field.spot, wrong, "write matchLabels: {key: value}");
        return None;
    };
    let [(key, value)] = entries.as_slice() else {
        let wrong = format!("{} labels are given; one label tells a pool", entries.len());
        complaints.add(&field.spot, wrong, "keep the label that only this pool's machines carry");
        return None;
    };
    let (takes, characters) = alone::WORDS.takes_key;
    let spot = field.spot.member(value.at, &key.text);
    if !takes(&key.text) {
        let spot = field.spot.member(key.at, &key.text);
        complaints.add(&spot, format!("{} cannot be a label's key", quote(&key.text)), characters);
        return None;
    }
    let text = match &value.kind {
        Kind::Text(text) => text.as_str(),
        other => {
            let noun = if *other == Kind::Nothing { "nothing" } else { value.noun() };
            let wrong = format!("{noun} stands where the label's value belongs");
            complaints.add(&spot, wrong, "write its value; \"\" where it is empty");
            return None;
        }
    };
    if !alone::is_label_value(text) {
        let wrong = format!("{} cannot be a label's value", quote(text));
        complaints.add(&spot, wrong, "write up to 63 letters, digits, \"-\", \"_\" and \".\"");
        return None;
    }
    Some(Mark::Metadata(Arc::from(key.text.as_str()), Arc::from(text)))
}

/// Exactly one of `tag` and `metadata`.
fn one_of(section: &Section<'_>, at: Option<&CloudRef>, complaints: &mut Complaints) -> Option<Mark> {
    match (section.take("tag"), section.take("metadata")) {
        (Some(field), None) => tag(&field, at, complaints),
        (None, Some(field)) => metadata(&field, at, complaints),
        (Some(_), Some(field)) => {
            complaints.add(&field.spot, "tag and metadata are both given", "keep one of the two");
            None
        }
        (None, None) => {
            if !section.has_empty() {
                complaints.add(
                    &section.spot,
                    "no mark is given, so every instance of the project would match",
                    "write tag: \"key=value\", or metadata: {key: value}, as it is on the instances",
                );
            }
            None
        }
    }
}

fn tag(field: &Field<'_>, at: Option<&CloudRef>, complaints: &mut Complaints) -> Option<Mark> {
    let text = field.text("a tag such as \"k8s-cluster=prod\"", complaints)?;
    let read = (words(at).tag)(text, at);
    read.map_err(|(wrong, instead)| complaints.add(&field.spot, wrong, instead)).ok()
}

fn words(at: Option<&CloudRef>) -> &'static Words {
    at.map_or(KINDS[0], CloudRef::words)
}

fn metadata(field: &Field<'_>, at: Option<&CloudRef>, complaints: &mut Complaints) -> Option<Mark> {
    const CHARS_MAX: usize = 255;
    let Kind::Map(entries) = &field.tree.kind else {
        let wrong = format!("{} stands where a map of one pair belongs", field.tree.noun());
        complaints.add(&field.spot, wrong, "write metadata: {key: value}");
        return None;
    };
    let [(key, value)] = entries.as_slice() else {
        let wrong = format!("{} pairs are given; a mark is one pair", entries.len());
        complaints.add(&field.spot, wrong, "keep the pair that tells whose the instance is");
        return None;
    };
    let (takes, characters) = words(at).takes_key;
    if !takes(&key.text) {
        let spot = field.spot.member(key.at, &key.text);
        complaints.add(&spot, format!("{} cannot be a metadata key", quote(&key.text)), characters);
        return None;
    }
    let spot = field.spot.member(value.at, &key.text);
    let text = Field { spot: spot.clone(), tree: value }.text("the pair's value", complaints)?;
    if text.chars().count() > CHARS_MAX {
        complaints.add(&spot, "it is longer than 255 characters", "use a shorter value");
        return None;
    }
    Some(Mark::Metadata(Arc::from(key.text.as_str()), Arc::from(text)))
}

/// The part of a pool that decides which machines it owns.
pub(super) struct Claimant<'p> {
    pub(super) pool: &'p str,
    pub(super) cloud: &'p str,
    pub(super) acts: bool,
    pub(super) owned: &'p Owned,
}

/// Finds pools whose marks cannot tell their machines apart. One complaint for each pool and way of being unclear.
pub(super) fn contests(claimants: &[Claimant<'_>], complaints: &mut Complaints) {
    for (index, one) in claimants.iter().enumerate() {
        let same =
            claimants[..index].iter().filter(|other| one.same_cloud(other) && one.set() == other.set());
        if let Some(names) = names(same) {
            complaints.add(
                &one.owned.spot,
                format!("it has the same marks as {names}, so they would claim the same machines"),
                format!("give each pool a mark of its own under {}", one.field()),
            );
        }
        let narrower = claimants.iter().filter(|other| {
            one.same_cloud(other) && one.set() != other.set() && one.set().is_subset(&other.set())
        });
        if let Some(names) = names(narrower) {
            complaints.add(
                &one.owned.spot,
                format!("every machine of {names} carries these marks too"),
                format!("give pool {:?} a mark of its own under {}", one.pool, one.field()),
            );
        }
        let shared = claimants
            .iter()
            .filter(|other| !one.same_cloud(other) && one.owned.marks.cluster == other.owned.marks.cluster);
        if let (true, None, Some(names)) = (one.acts, &one.owned.marks.pool, names(shared)) {
            complaints.add(
                &one.owned.spot,
                format!("the pool may be acted on, and nothing but the mark that it shares with {names} tells its machines"),
                "add owned.pool with a mark that only this pool's machines carry",
            );
        }
    }
}

impl Claimant<'_> {
    /// Where a mark of the pool is written.
    fn field(&self) -> &'static str {
        if self.owned.marks.cluster == alone::mark() { "selector.matchLabels" } else { "owned.pool" }
    }

    fn same_cloud(&self, other: &Self) -> bool {
        self.cloud == other.cloud
    }

    fn set(&self) -> BTreeSet<&Mark> {
        self.owned.marks.pool.iter().chain([&self.owned.marks.cluster]).collect()
    }
}

fn names<'p>(pools: impl Iterator<Item = &'p Claimant<'p>>) -> Option<String> {
    let names: Vec<String> = pools.map(|claimant| format!("{:?}", claimant.pool)).collect();
    match names.as_slice() {
        [] => None,
        [one] => Some(format!("pool {one}")),
        [rest @ .., last] => Some(format!("pools {} and {last}", rest.join(", "))),
    }
}

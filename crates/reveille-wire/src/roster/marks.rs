//! `owned`: the marks on an instance that prove its owner.
//!
//! A pool has one mark for the cluster and one for the pool. Each is a tag or one metadata pair, within the limits of the
//! cloud. A mark that no object can carry would match nothing, and no error would tell the operator why. Tags of EC2 are
//! pairs: there `tag: key=value` and `metadata: {key: value}` mean the same, and the cluster's key alone means any value of
//! it. An empty mark is not allowed: it would match everything, and the controller could delete machines of other owners.

use std::collections::BTreeSet;
use std::sync::Arc;

use reveille_core::model::instance::Mark;
use reveille_core::model::roster::Ownership;

use super::CloudRef;
use super::complaint::{Complaints, Spot, quote};
use super::section::{Field, Section};
use super::shape::{OWNED, OWNED_POOL};
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
    const CHARS_MAX: usize = 60;
    let text = field.text("a tag such as \"k8s-cluster=prod\"", complaints)?;
    if let Some(CloudRef::Ec2 { cluster, .. }) = at {
        return tag_of_ec2(field, text, cluster, complaints);
    }
    if let Some(bad) = text.chars().find(|c| matches!(c, ',' | '/')) {
        let wrong = format!("{} cannot be a tag: Nova allows no {bad:?} in one", quote(text));
        complaints.add(&field.spot, wrong, "use another tag, or a metadata pair");
        return None;
    }
    if text.chars().count() > CHARS_MAX {
        let wrong = format!("{} cannot be a tag: it is longer than {CHARS_MAX} characters", quote(text));
        complaints.add(&field.spot, wrong, "use a shorter tag, or a metadata pair");
        return None;
    }
    Some(Mark::Tag(Arc::from(text)))
}

/// A tag of EC2 is a key with a value; the cluster's key alone stands for the values `owned` and `shared` alike.
fn tag_of_ec2(field: &Field<'_>, text: &str, cluster: &str, complaints: &mut Complaints) -> Option<Mark> {
    if text.strip_prefix("kubernetes.io/cluster/") == Some(cluster) {
        return Some(Mark::Tag(Arc::from(text)));
    }
    let Some((key, value)) = text.split_once('=') else {
        let wrong = format!("{} is a key without a value", quote(text));
        complaints.add(&field.spot, wrong, format!("write key=value, or kubernetes.io/cluster/{cluster}"));
        return None;
    };
    if is_plain_pair_of_ec2(key, value) {
        return Some(Mark::Metadata(Arc::from(key), Arc::from(value)));
    }
    let wrong = format!("{} cannot be a tag of EC2", quote(text));
    complaints.add(&field.spot, wrong, EC2_TAGS);
    None
}

/// Whether `key=value` is a tag of EC2 that the reader turns into this pair.
pub(super) fn is_plain_pair_of_ec2(key: &str, value: &str) -> bool {
    let taken = fits_ec2(key, EC2_KEY_CHARS_MAX) && fits_ec2(value, EC2_VALUE_CHARS_MAX);
    taken && !key.is_empty() && !key.contains('=')
}

/// From the EC2 reference.
const EC2_KEY_CHARS_MAX: usize = 128;
const EC2_VALUE_CHARS_MAX: usize = 256;
const EC2_TAGS: &str =
    "use letters, digits, blanks and \"_\", \".\", \":\", \"/\", \"=\", \"+\", \"-\", \"@\", as EC2 requires";

fn fits_ec2(text: &str, chars_max: usize) -> bool {
    let allowed = |c: char| c.is_alphanumeric() || " _.:/=+-@".contains(c);
    text.chars().count() <= chars_max && text.chars().all(allowed)
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
    let of_ec2 = matches!(at, Some(CloudRef::Ec2 { .. }));
    let nova_takes = (1..=CHARS_MAX).contains(&key.text.chars().count())
        && key.text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | ':' | '.' | ' '));
    let ec2_takes = !key.text.is_empty() && fits_ec2(&key.text, EC2_KEY_CHARS_MAX);
    if !(if of_ec2 { ec2_takes } else { nova_takes }) {
        let spot = field.spot.member(key.at, &key.text);
        let wrong = format!("{} cannot be a metadata key", quote(&key.text));
        let nova = "use letters, digits, blanks and \"-\", \"_\", \":\", \".\", as Nova requires";
        complaints.add(&spot, wrong, if of_ec2 { EC2_TAGS } else { nova });
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
                "give each pool a mark of its own under owned.pool",
            );
        }
        let narrower = claimants.iter().filter(|other| {
            one.same_cloud(other) && one.set() != other.set() && one.set().is_subset(&other.set())
        });
        if let Some(names) = names(narrower) {
            complaints.add(
                &one.owned.spot,
                format!("every machine of {names} carries these marks too"),
                format!("give pool {:?} a mark of its own under owned.pool", one.pool),
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

//! `spec.cluster` and `spec.clouds`: where to find credentials and addresses.
//!
//! The reader opens no other file: the roster names entries of other files (kubeconfig, clouds.yaml) and holds no secret.
//! Two entries for the same project would show every machine twice. The reader refuses them where their names show it;
//! only the cloud can tell that two names mean one project.
//!
//! What one kind of cloud has of its own in a roster is [`Words`]: a file beside this one, and a line in [`KINDS`].

pub(in crate::roster) mod alone;
mod ec2;
mod openstack;

use std::collections::BTreeMap;

use reveille_core::model::id::CloudName;
use reveille_core::model::instance::Mark;
use reveille_core::model::time::Span;

use super::complaint::{Complaints, Spot};
use super::scalar::scalar;
use super::section::{Field, Section};
use super::shape::{CLOUD, CLUSTER};
use super::tree::Kind;
use super::{CloudRef, ClusterRef, Origin};

/// What one kind of cloud has of its own in a roster.
pub(super) struct Words {
    /// Its field in `spec.clouds[]`.
    pub(super) field: &'static str,
    /// For complaints: a name that such a cloud may have, what stands in its field, and what that means.
    pub(super) example: (&'static str, &'static str, &'static str),
    /// Reads its field.
    pub(super) read: fn(&Field<'_>, &Origin<'_>, &mut Complaints) -> Option<CloudRef>,
    /// Its field with what this cloud has there, as `init` writes it.
    pub(super) line: fn(&CloudRef) -> String,
    /// See [`CloudRef::settles_within`].
    pub(super) settles_within: Option<Span>,
    /// Reads a tag on its instances; or what is wrong, and what to write instead.
    pub(super) tag: fn(&str, Option<&CloudRef>) -> Result<Mark, (String, String)>,
    /// The mark in its usual notation, where [`Self::tag`] makes the same mark from that.
    pub(super) spelled: fn(&Mark) -> Mark,
    /// Whether its instances can carry a pair with this key, and what such a key is made of.
    pub(super) takes_key: (fn(&str) -> bool, &'static str),
    /// True for text in the form of a security group's id; no group's name has it.
    pub(super) is_group_id: fn(&str) -> bool,
}

/// Every kind that `spec.clouds` may list. The first one's rules hold for a pool whose cloud is not known.
pub(super) static KINDS: [&Words; 2] = [&openstack::WORDS, &ec2::WORDS];

impl CloudRef {
    /// What its kind has of its own in a roster.
    pub(super) const fn words(&self) -> &'static Words {
        match self {
            Self::OpenStack { .. } => &openstack::WORDS,
            Self::Ec2 { .. } => &ec2::WORDS,
            Self::Cluster(_) => &alone::WORDS,
        }
    }
}

/// Text that is written where it is given, as in `, profile: ops`.
fn more(name: &str, text: Option<&str>) -> String {
    text.map_or_else(String::new, |text| format!(", {name}: {}", scalar(text)))
}

/// The clouds of a roster, each with the place of its name.
pub(super) type Clouds = BTreeMap<CloudName, (CloudRef, Spot)>;

/// Reads `spec.cluster`.
pub(super) fn cluster(
    field: Option<Field<'_>>,
    origin: &Origin<'_>,
    complaints: &mut Complaints,
) -> ClusterRef {
    let Some(section) = field.and_then(|field| Section::open(&field, CLUSTER, complaints)) else {
        return ClusterRef::default();
    };
    ClusterRef {
        kubeconfig: section.take("kubeconfig").and_then(|field| path(&field, origin, complaints)),
        context: section
            .take("context")
            .and_then(|field| field.text("a context of the kubeconfig", complaints))
            .map(str::to_owned),
    }
}

/// Reads `spec.clouds`.
pub(super) fn clouds(field: Option<Field<'_>>, origin: &Origin<'_>, complaints: &mut Complaints) -> Clouds {
    let mut clouds = Clouds::new();
    let Some(field) = field else { return clouds };
    let items = field.items("clouds", complaints);
    let example = |kind: &Words| format!("{{name: {}, {}: {}}}", kind.example.0, kind.field, kind.example.1);
    if items.is_empty() && matches!(field.tree.kind, Kind::List(_)) {
        complaints.add(
            &field.spot,
            "no cloud is listed, so no machine can be seen",
            format!("list one: {}", forms(example)),
        );
    }
    for item in items {
        let Some((name, spot, cloud)) = cloud(&item, origin, complaints) else { continue };
        if let Some((_, first)) = clouds.get(&name) {
            let wrong = format!("a cloud named \"{name}\" is on line {} already", first.at.line);
            complaints.add(&spot, wrong, "give each cloud a name of its own");
            continue;
        }
        if let Some((twin, _)) = clouds.iter().find(|(_, (known, _))| *known == cloud) {
            let wrong =
                format!("it is the same project as cloud \"{twin}\": every machine would count twice");
            complaints.add(&item.spot, wrong, "keep one of the two");
            continue;
        }
        clouds.insert(name, (cloud, spot));
    }
    clouds
}

fn cloud(
    item: &Field<'_>,
    origin: &Origin<'_>,
    complaints: &mut Complaints,
) -> Option<(CloudName, Spot, CloudRef)> {
    let section = Section::open(item, CLOUD, complaints)?;
    let named = section.require("name", "name the cloud; pools refer to it by this name", complaints);
    let name = named.as_ref().and_then(|field| field.name("the cloud's name", complaints));
    let at = kind(&section, origin, complaints);
    Some((CloudName::from(name?), named?.spot, at?))
}

/// Exactly one kind of cloud.
fn kind(section: &Section<'_>, origin: &Origin<'_>, complaints: &mut Complaints) -> Option<CloudRef> {
    let given = KINDS.iter().filter_map(|kind| Some((kind, section.take(kind.field)?)));
    match given.collect::<Vec<_>>().as_slice() {
        [(kind, field)] => return (kind.read)(field, origin, complaints),
        [(first, _), (second, field), ..] => {
            let wrong = format!("{} and {} are both given", first.field, second.field);
            complaints.add(&field.spot, wrong, "list them as two clouds");
        }
        [] if section.has_empty() => {}
        [] => {
            let forms = forms(|kind| format!("{}: {}{}", kind.field, kind.example.1, kind.example.2));
            complaints.add(
                &section.spot,
                "it is not said what kind of cloud it is",
                format!("write {forms}"),
            );
        }
    }
    None
}

/// How each kind is written, as a choice.
fn forms(form: impl Fn(&Words) -> String) -> String {
    KINDS.iter().map(|kind| form(kind)).collect::<Vec<_>>().join(" or ")
}

fn path(field: &Field<'_>, origin: &Origin<'_>, complaints: &mut Complaints) -> Option<std::path::PathBuf> {
    field.path(origin.dir, origin.home, complaints)
}

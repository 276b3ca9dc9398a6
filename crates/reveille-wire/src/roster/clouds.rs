//! `spec.cluster` and `spec.clouds`: where credentials and addresses are to be found.
//!
//! Nothing is opened here: the roster names entries of other files (kubeconfig, clouds.yaml), and no secret stands in a
//! roster. Two entries that name the same project would show every machine twice, so they are refused as far as the
//! names tell; two names of one project can only be found by asking.

use std::collections::BTreeMap;

use reveille_core::model::id::CloudName;

use super::complaint::{Complaints, Spot};
use super::section::{Field, Section};
use super::shape::{CLOUD, CLUSTER, OPENSTACK};
use super::tree::Kind;
use super::{CloudRef, ClusterRef, Origin};

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
    if items.is_empty() && matches!(field.tree.kind, Kind::List(_)) {
        complaints.add(
            &field.spot,
            "no cloud is listed, so no machine can be seen",
            "list one: {name: os, openstack: {cloud: …}}",
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
    let kind =
        section.require("openstack", "write openstack: {cloud: …}, an entry of clouds.yaml", complaints);
    let name = named.as_ref().and_then(|field| field.name("the cloud's name", complaints));
    let openstack = kind.and_then(|field| openstack(&field, origin, complaints));
    Some((CloudName::from(name?), named?.spot, openstack?))
}

fn openstack(field: &Field<'_>, origin: &Origin<'_>, complaints: &mut Complaints) -> Option<CloudRef> {
    let section = Section::open(field, OPENSTACK, complaints)?;
    let entry = section.require("cloud", "name an entry of clouds.yaml", complaints);
    let entry = entry.and_then(|field| field.text("the name of an entry of clouds.yaml", complaints));
    let file = section.take("cloudsFile").map(|field| path(&field, origin, complaints));
    Some(CloudRef::OpenStack {
        cloud: entry?.to_owned(),
        clouds_file: match file {
            None => None,
            Some(read) => Some(read?),
        },
    })
}

fn path(field: &Field<'_>, origin: &Origin<'_>, complaints: &mut Complaints) -> Option<std::path::PathBuf> {
    field.path(origin.dir, origin.home, complaints)
}

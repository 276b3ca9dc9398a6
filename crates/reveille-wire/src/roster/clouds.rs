//! `spec.cluster` and `spec.clouds`: where to find credentials and addresses.
//!
//! The reader opens no other file: the roster names entries of other files (kubeconfig, clouds.yaml) and holds no secret.
//! Two entries for the same project would show every machine twice. The reader refuses them where their names show it;
//! only the cloud can tell that two names mean one project.

use std::collections::BTreeMap;

use reveille_core::model::id::CloudName;

use super::complaint::{Complaints, Spot, quote};
use super::section::{Field, Section};
use super::shape::{CLOUD, CLUSTER, EC2, OPENSTACK};
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
            "list one: {name: os, openstack: {cloud: …}} or {name: aws, ec2: {region: …, cluster: …}}",
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
    match (section.take("openstack"), section.take("ec2")) {
        (Some(field), None) => openstack(&field, origin, complaints),
        (None, Some(field)) => ec2(&field, complaints),
        (Some(_), Some(field)) => {
            complaints.add(&field.spot, "openstack and ec2 are both given", "list them as two clouds");
            None
        }
        (None, None) => {
            if !section.has_empty() {
                complaints.add(
                    &section.spot,
                    "it is not said what kind of cloud it is",
                    "write openstack: {cloud: …}, an entry of clouds.yaml, or ec2: {region: …, cluster: …}",
                );
            }
            None
        }
    }
}

/// Credentials come from the usual chain (environment, profile, web identity, instance role); a roster holds none.
fn ec2(field: &Field<'_>, complaints: &mut Complaints) -> Option<CloudRef> {
    let section = Section::open(field, EC2, complaints)?;
    let region = section.require("region", "name the region, as in eu-central-1", complaints);
    let region = region.and_then(|field| plain(&field, "a region such as eu-central-1", complaints));
    let cluster = section.require(
        "cluster",
        "write the id in the tag key kubernetes.io/cluster/<id> that its instances carry",
        complaints,
    );
    let cluster = cluster.and_then(|field| plain(&field, "the id of kubernetes.io/cluster/<id>", complaints));
    let profile = section
        .take("profile")
        .map(|field| field.text("a profile of ~/.aws/config", complaints).map(str::to_owned));
    let endpoint = section.take("endpoint").map(|field| endpoint(&field, complaints));
    Some(CloudRef::Ec2 {
        region: region?,
        profile: match profile {
            None => None,
            Some(read) => Some(read?),
        },
        endpoint: match endpoint {
            None => None,
            Some(read) => Some(read?),
        },
        cluster: cluster?,
    })
}

/// A word of letters, digits and "-", "_", "."; not a whole tag key or address, of which only one part belongs here.
fn plain(field: &Field<'_>, what: &str, complaints: &mut Complaints) -> Option<String> {
    let text = field.text(what, complaints)?;
    if text.len() <= 128 && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')) {
        return Some(text.to_owned());
    }
    let wrong = format!("{} is not {what}", quote(text));
    complaints.add(&field.spot, wrong, "write letters, digits, \"-\", \"_\" and \".\" only");
    None
}

fn endpoint(field: &Field<'_>, complaints: &mut Complaints) -> Option<String> {
    let text = field.text("an address such as https://ec2.eu-central-1.amazonaws.com", complaints)?;
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    if rest.is_some_and(|rest| !rest.is_empty() && !rest.contains(['@', ' ', '?', '#'])) {
        return Some(text.to_owned());
    }
    let wrong = format!("{} is not the address of an API", quote(text));
    complaints.add(&field.spot, wrong, "write https://HOST, without a user, a query or blanks");
    None
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

//! `spec.network`: the pod network that the project must carry.
//!
//! Pod ranges are whole networks that do not overlap. A router belongs to exactly one cloud; a roster with one cloud does
//! not have to name it. Where a router carries pod routes, ports must let pod addresses out, so address pairs are on
//! unless the roster switches them off.

use std::sync::Arc;

use reveille_core::model::id::{CloudName, RouterId};
use reveille_core::model::roster::Network;

use super::clouds::Clouds;
use super::clouds::alone::is_alone;
use super::complaint::{Complaints, Spot, quote};
use super::section::{Field, Section};
use super::shape::{NETWORK, ROUTER, nearest};
use super::tree::Kind;

/// Conditions that say "pods of this node cannot be reached" in clusters we know.
pub const UNREACHABLE_CONDITIONS: [&str; 2] = ["RouteBroken", "PodNetworkUnreachable"];

/// Reads `spec.network`.
pub(super) fn network(field: Option<Field<'_>>, clouds: &Clouds, complaints: &mut Complaints) -> Network {
    let mut network = Network {
        unreachable_conditions: UNREACHABLE_CONDITIONS.into_iter().map(Arc::from).collect(),
        ..Network::default()
    };
    let Some(section) = field.and_then(|field| Section::open(&field, NETWORK, complaints)) else {
        return network;
    };
    if is_alone(clouds) {
        for name in ["router", "addressPairs"] {
            if let Some(field) = section.take(name) {
                let wrong = "the roster lists no cloud that could have it";
                complaints.add(&field.spot, wrong, "take the line out, or list the cloud under spec.clouds");
                return network;
            }
        }
    }
    if let Some(field) = section.take("podCIDRs") {
        network.pod_ranges = pod_ranges(&field, complaints);
    }
    network.router = section.take("router").and_then(|field| router(&field, clouds, complaints));
    let pairs = section.take("addressPairs");
    let switched = pairs.as_ref().and_then(|field| field.switch(complaints));
    network.address_pairs = switched.unwrap_or(network.router.is_some());
    if let (Some(field), true, true) = (&pairs, switched == Some(true), network.pod_ranges.is_empty()) {
        complaints.add(
            &field.spot,
            "it is on, and there are no pod ranges to allow",
            "list the cluster's podCIDRs, or write false",
        );
    }
    if let Some(field) = section.take("unreachableConditions") {
        network.unreachable_conditions = conditions(&field, complaints);
    }
    network
}

fn pod_ranges(field: &Field<'_>, complaints: &mut Complaints) -> Vec<ipnet::IpNet> {
    let mut ranges: Vec<(ipnet::IpNet, Spot)> = Vec::new();
    for item in field.items("networks", complaints) {
        let Some(net) = item.network(complaints) else { continue };
        let overlapped = ranges.iter().find(|(known, _)| known.contains(&net) || net.contains(known));
        if let Some((known, spot)) = overlapped {
            let wrong = format!("{net} overlaps {known} ({})", spot.field);
            complaints.add(&item.spot, wrong, "list each range once, none within another");
            continue;
        }
        ranges.push((net, item.spot));
    }
    ranges.into_iter().map(|(net, _)| net).collect()
}

fn router(field: &Field<'_>, clouds: &Clouds, complaints: &mut Complaints) -> Option<(CloudName, RouterId)> {
    if !matches!(field.tree.kind, Kind::Map(_)) {
        let id = field.text("the router's id", complaints)?;
        let mut names = clouds.keys();
        return match (names.next(), names.next()) {
            (Some(only), None) => Some((only.clone(), RouterId::from(id))),
            (Some(_), Some(_)) => {
                let wrong = "there are several clouds, and it is not said in which one the router is";
                complaints.add(&field.spot, wrong, format!("write {{cloud: …, id: {id}}}"));
                None
            }
            (None, _) => None,
        };
    }
    let section = Section::open(field, ROUTER, complaints)?;
    let id = section.require("id", "write the router's id", complaints);
    let cloud = section.require("cloud", "name the cloud that the router is in", complaints);
    let id = id.and_then(|field| field.text("the router's id", complaints));
    let cloud = cloud.and_then(|field| cloud_of(&field, clouds, complaints));
    Some((cloud?, RouterId::from(id?)))
}

/// A cloud by its name in this roster.
pub(super) fn cloud_of(field: &Field<'_>, clouds: &Clouds, complaints: &mut Complaints) -> Option<CloudName> {
    let text = field.text("the name of a cloud of this roster", complaints)?;
    let name = CloudName::from(text);
    if clouds.contains_key(&name) {
        return Some(name);
    }
    if clouds.is_empty() {
        return None;
    }
    let names: Vec<&str> = clouds.keys().map(CloudName::as_str).collect();
    let instead = nearest(text, &names).map_or_else(
        || format!("name one of spec.clouds: {}", names.join(", ")),
        |near| format!("did you mean {near:?}?"),
    );
    complaints.add(&field.spot, format!("no cloud of this roster is named {}", quote(text)), instead);
    None
}

fn conditions(field: &Field<'_>, complaints: &mut Complaints) -> Vec<Arc<str>> {
    let mut kinds: Vec<Arc<str>> = Vec::new();
    for item in field.items("node conditions", complaints) {
        let Some(kind) = item.text("a node condition's type", complaints) else { continue };
        if kind == "Ready" {
            let wrong = "Ready says the opposite: its True means that all is well";
            complaints.add(&item.spot, wrong, "name a condition whose True means trouble");
        } else if kinds.iter().any(|known| **known == *kind) {
            complaints.add(&item.spot, format!("{} is listed twice", quote(kind)), "keep one");
        } else {
            kinds.push(Arc::from(kind));
        }
    }
    kinds
}

//! The pod network: which ranges pods have, and which router carries them, as far as the APIs show it.
//!
//! ```text
//!  nodes' pod ranges ─▶ cover ─▶ podCIDRs
//!  routers' routes into those ranges ─▶ one router: it is proposed · several: all are comments
//!  routers attached to the nodes' networks ─▶ comments only: a router without pod routes may be there for an overlay
//! ```

use std::collections::BTreeSet;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use reveille_core::model::id::{CloudName, NetworkId};
use reveille_wire::roster::render::{ProposedNetwork, ProposedRouter};

use super::{Gap, Place, Survey};
use reveille_cloud::inventory::NamedRouter;

/// The network section, and what could not be found out about it.
pub(crate) fn network(survey: &Survey, place: &Place<'_>, unknown: &mut Vec<Gap>) -> ProposedNetwork {
    let ranges = survey.pod_ranges();
    let pod_ranges = cover(&ranges);
    if pod_ranges.is_empty() {
        unknown.push(Gap::new(
            "the pod ranges: no node has one; right where an overlay, or the cloud itself, gives pods their addresses",
        ));
        return ProposedNetwork::default();
    }
    let notes = vec![
        "The smallest networks that cover the pod ranges of the nodes seen. The cluster's own (--cluster-cidr) may be wider."
            .to_owned(),
    ];
    let mut network = ProposedNetwork { pod_ranges, notes, ..ProposedNetwork::default() };
    choose(survey, place, &ranges, &mut network, unknown);
    network
}

/// A router, and the reason to propose it.
struct Candidate<'s> {
    router: &'s NamedRouter,
    /// The pod ranges of nodes that it has a route to.
    carried: usize,
    /// Whether it is attached to a network of the nodes' ports.
    near: bool,
}

impl Candidate<'_> {
    fn proposed(&self, cloud: &CloudName, ranges: usize) -> ProposedRouter {
        let name =
            if self.router.name.is_empty() { String::new() } else { format!("{}: ", self.router.name) };
        let routes = match self.carried {
            0 => "holds no route into the pod ranges".to_owned(),
            carried => format!("holds routes to {carried} of {ranges} nodes' pod ranges"),
        };
        let near = if self.near { ", reaches into the nodes' network" } else { "" };
        ProposedRouter {
            cloud: cloud.clone(),
            id: self.router.router.id.clone(),
            why: format!("{name}{routes}{near}"),
        }
    }
}

fn choose(
    survey: &Survey,
    place: &Place<'_>,
    ranges: &[IpNet],
    network: &mut ProposedNetwork,
    unknown: &mut Vec<Gap>,
) {
    let (near, cloud, router) = (near(survey), &place.cloud, place.site.router());
    let (there, called) = (&survey.inventory.routers, place.site.called());
    let candidates = there
        .iter()
        .filter(|found| survey.wanted_router.as_ref().is_none_or(|wanted| found.router.id == *wanted));
    let candidates: Vec<Candidate<'_>> = candidates
        .map(|router| Candidate {
            router,
            carried: ranges.iter().filter(|range| carries(router, range, &network.pod_ranges)).count(),
            near: survey
                .inventory
                .legs
                .iter()
                .any(|leg| leg.router == router.router.id && near.contains(&leg.network)),
        })
        .collect();
    let carrying: Vec<&Candidate<'_>> = candidates.iter().filter(|c| c.carried > 0).collect();
    if let [only] = carrying.as_slice() {
        network.router = Some(only.proposed(cloud, ranges.len()));
        return;
    }
    if !carrying.is_empty() {
        network.candidates = carrying.iter().map(|c| c.proposed(cloud, ranges.len())).collect();
        unknown.push(Gap::new(format!(
            "the {router}: {} {router}s hold pod routes; they are comments in the file, keep the one that is meant",
            carrying.len()
        )));
        return;
    }
    network.candidates =
        candidates.iter().filter(|c| c.near).map(|c| c.proposed(cloud, ranges.len())).collect();
    let count = network.candidates.len();
    let what = match (&survey.wanted_router, candidates.first()) {
        (Some(wanted), None) => format!("{router} {wanted}: {called} has no {router} of that id"),
        (Some(wanted), Some(_)) => {
            format!("{router} {wanted} holds no route into the pod ranges, so it is left out")
        }
        (None, _) if count > 0 => format!(
            "a {router} with pod routes: none of {} holds one; those in the nodes' network are comments in the file ({count}). Right where an overlay carries pods",
            there.len()
        ),
        (None, _) => format!(
            "a {router} with pod routes: none of the {} of {called} holds one. Right where an overlay carries pods; else name it with --router ID",
            there.len()
        ),
    };
    unknown.push(Gap::new(what));
}

/// Whether the router has a route for this range. A wider route counts only within the pod ranges: a default route leads
/// everywhere and carries no pods.
fn carries(found: &NamedRouter, range: &IpNet, pod_ranges: &[IpNet]) -> bool {
    found.router.routes.iter().map(|route| &route.destination).any(|to| {
        range.contains(to) || (to.contains(range) && pod_ranges.iter().any(|pods| pods.contains(to)))
    })
}

/// The networks that the nodes' instances have ports in.
fn near(survey: &Survey) -> BTreeSet<&NetworkId> {
    let ours = survey.our_ids();
    survey.inventory.ports.iter().filter(|(id, _)| ours.contains(id)).map(|(_, port)| &port.network).collect()
}

/// The smallest network of each family that covers all of them.
pub(crate) fn cover(ranges: &[IpNet]) -> Vec<IpNet> {
    let mut v4: Option<Ipv4Net> = None;
    let mut v6: Option<Ipv6Net> = None;
    for range in ranges {
        match range {
            IpNet::V4(net) => {
                let mut wide = v4.unwrap_or(*net).trunc();
                while !wide.contains(net) {
                    let Some(wider) = wide.supernet() else { break };
                    wide = wider;
                }
                v4 = Some(wide);
            }
            IpNet::V6(net) => {
                let mut wide = v6.unwrap_or(*net).trunc();
                while !wide.contains(net) {
                    let Some(wider) = wide.supernet() else { break };
                    wide = wider;
                }
                v6 = Some(wide);
            }
        }
    }
    v4.map(IpNet::V4).into_iter().chain(v6.map(IpNet::V6)).collect()
}

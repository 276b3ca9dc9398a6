//! Compares the pod routes of a router with the Nodes: which are dead, doubled or missing, and which lead to no Node's
//! range.
//!
//! ```text
//!  router.routes ─ inside a pod range of the cluster? ── no ─▶ foreign, never touched
//!                            │ yes, by destination
//!                            ▼
//!       next hop is in use nowhere, by two agreeing listings ─▶ removable (stale, misdirected or orphaned)
//!       by one listing only, or a cloud cannot be believed   ─▶ unproven: left out of everything else
//!       next hop lives ─▶ kept, or undecided where several lead to one destination
//!  nodes ─ range without a route to the node's own address ─▶ missing
//! ```
//!
//! One rule stands over all others: *a route to something alive is not removed by guess*. It is removable only when it
//! stands beside the right route to the owner of the range, that owner is Ready, and the node at its own next hop owns
//! another range: then all three objects say that it is wrong. Everything short of that is `undecided` and for people.
//!
//! The report rests on the node list and on the list of live addresses being complete; whether they are is not asked
//! here. A list of instances that came back empty makes every route look dead (flight control D7, D9): the caller must
//! not act on a report that was made from a doubtful listing.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use ipnet::IpNet;

use crate::model::id::NodeName;
use crate::model::network::{Family, Route, Router};
use crate::safeguard::{Safeguard, stands};

use super::outermost;

mod limit;
#[cfg(test)]
mod tests;

pub use limit::{LimitOutlook, is_route_limit, limit_from_text};

/// A node, as far as routes go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteHolder {
    /// Its name.
    pub node: NodeName,
    /// Its pod ranges (`spec.podCIDRs`); empty until the controller manager gave it some.
    pub pod_ranges: Vec<IpNet>,
    /// Its InternalIP addresses, in the node's own order.
    pub addresses: Vec<IpAddr>,
    /// The node is Ready.
    pub alive: bool,
}

/// What the clouds say of a next hop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hop {
    /// It is on a port of some cloud of the roster, or inside an allowed address pair.
    InUse,
    /// It was not in the last list of ports, and that is not believed yet.
    Unproven,
    /// It is in use nowhere.
    Dead,
}

/// Where next hops are looked for.
pub struct Addresses<'a> {
    /// Addresses on ports of live instances of the router's own cloud: a route to a node leads through one of them.
    pub on_ports: &'a BTreeSet<IpAddr>,
    /// What all clouds of the roster say of an address.
    pub hop: &'a dyn Fn(&IpAddr) -> Hop,
}

/// What there is to say about one router.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RouteReport {
    /// Routes inside the cluster's pod ranges.
    pub ours: usize,
    /// All others: other clusters', operators'. Never touched.
    pub foreign: usize,
    /// Destinations with several routes, in order.
    pub duplicates: Vec<DuplicateRoute>,
    /// Single routes to a Node's range whose next hop is in use nowhere: dead, and the right one is in `missing`.
    pub misdirected: Vec<Route>,
    /// Single routes to no Node's range whose next hop is in use nowhere.
    pub orphaned: Vec<Route>,
    /// Routes whose next hop no port was found for in one listing only. Nothing rests on them.
    pub unproven: Vec<Route>,
    /// Routes that should be there, one per node, range and family.
    pub missing: Vec<Route>,
    /// Routes that cut across a node's range without being equal to it. Told, never touched.
    pub overlaps: Vec<Overlap>,
    /// How full the router is, where its limit is known.
    pub limit: Option<LimitOutlook>,
}

/// One destination with several routes. Every one of them is in exactly one of the three places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DuplicateRoute {
    /// Where they all lead.
    pub destination: IpNet,
    /// The one to the node that owns the range.
    pub keep: Option<Route>,
    /// Proved dead or proved wrong.
    pub stale: Vec<Route>,
    /// They lead to something alive, and nothing proves them wrong.
    pub undecided: Vec<Route>,
}

/// A route whose destination overlaps a node's range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overlap {
    /// The route.
    pub route: Route,
    /// Whose range it cuts across.
    pub node: NodeName,
    /// That range.
    pub range: IpNet,
}

impl RouteReport {
    /// Every route that may be taken out, sorted: what is proved dead or wrong, nothing else.
    pub fn removable(&self) -> Vec<Route> {
        let stale = self.duplicates.iter().flat_map(|duplicate| &duplicate.stale);
        let mut routes: Vec<Route> = stale.chain(&self.misdirected).chain(&self.orphaned).copied().collect();
        routes.sort_unstable();
        routes
    }
}

/// Who owns a range.
enum Owner<'a> {
    Missing,
    One(&'a RouteHolder),
    /// Two nodes claim the same range, so nothing is certain.
    Contested,
}

/// Everything that a route is judged against.
struct Ground<'a> {
    ranges: Vec<IpNet>,
    holders: &'a [RouteHolder],
    /// Addresses of nodes: alive, whatever the cloud says of them.
    nodes: BTreeSet<IpAddr>,
    /// Where next hops are looked for.
    live: &'a Addresses<'a>,
    /// Every range of every node, in order: what a route cuts across is found without asking all nodes.
    cut: BTreeSet<(IpNet, usize)>,
    /// The prefix lengths among them.
    lengths: BTreeSet<u8>,
}

/// Holds the routes of `router` against `holders`, all nodes of the cluster, Ready or not.
///
/// `live` tells which addresses are in use in *all* clouds of the roster, also by what is no node of this cluster and no
/// instance; the holders' own addresses count as alive as well. `cluster_ranges` are the cluster's pod
/// ranges: only routes inside them are ours.
pub fn report(
    router: &Router,
    cluster_ranges: &[IpNet],
    holders: impl IntoIterator<Item = RouteHolder>,
    live: &Addresses<'_>,
) -> RouteReport {
    let holders: Vec<RouteHolder> = holders.into_iter().collect();
    let nodes = holders.iter().flat_map(|holder| &holder.addresses).copied().collect();
    let ground = Ground::new(outermost(cluster_ranges), &holders, nodes, live);
    let mut ours: BTreeMap<IpNet, BTreeSet<Route>> = BTreeMap::new();
    let mut report = RouteReport::default();
    for route in &router.routes {
        if ground.is_ours(&route.destination) {
            report.ours += 1;
            if ground.hop(route) == Hop::Unproven {
                report.unproven.push(*route);
                continue;
            }
            ours.entry(route.destination.trunc()).or_default().insert(*route);
        } else {
            report.foreign += 1;
        }
    }
    for (destination, routes) in &ours {
        report.overlaps.extend(routes.iter().flat_map(|route| ground.overlaps(route)));
        let mut routes = routes.iter();
        match (routes.next(), routes.len()) {
            (Some(single), 0) => ground.judge_single(*single, &mut report),
            (Some(first), _) => {
                let all = std::iter::once(first).chain(routes).copied().collect();
                report.duplicates.push(ground.judge_duplicate(*destination, all));
            }
            (None, _) => {}
        }
    }
    report.missing = ground.missing(&ours);
    report.limit = router.limit.map(|limit| LimitOutlook {
        limit,
        used: limit::count(&router.routes),
        needed_next: limit::count(&report.missing),
    });
    assert!(
        report.removable().iter().all(|route| ground.is_ours(&route.destination)),
        "a foreign route is never removed"
    );
    report
}

impl<'a> Ground<'a> {
    fn new(
        ranges: Vec<IpNet>,
        holders: &'a [RouteHolder],
        nodes: BTreeSet<IpAddr>,
        live: &'a Addresses<'a>,
    ) -> Self {
        let every = holders.iter().enumerate();
        let cut: BTreeSet<(IpNet, usize)> = every
            .flat_map(|(at, holder)| holder.pod_ranges.iter().map(move |range| (range.trunc(), at)))
            .collect();
        let lengths = cut.iter().map(|(range, _)| range.prefix_len()).collect();
        Self { ranges, holders, nodes, live, cut, lengths }
    }

    fn is_ours(&self, destination: &IpNet) -> bool {
        let inside = self.ranges.iter().any(|range| range.contains(&destination.trunc()));
        inside || !stands(Safeguard::OwnRoutes)
    }

    fn owner(&self, range: &IpNet) -> Owner<'a> {
        let mut owners = self.holders.iter().filter(|holder| holder.owns(range));
        match (owners.next(), owners.next()) {
            (None, _) => Owner::Missing,
            (Some(one), None) => Owner::One(one),
            (Some(_), Some(_)) => Owner::Contested,
        }
    }

    fn hop(&self, route: &Route) -> Hop {
        if self.nodes.contains(&route.next_hop) { Hop::InUse } else { (self.live.hop)(&route.next_hop) }
    }

    fn is_dead(&self, route: &Route) -> bool {
        self.hop(route) == Hop::Dead
    }

    fn judge_single(&self, route: Route, report: &mut RouteReport) {
        if !self.is_dead(&route) {
            return;
        }
        match self.owner(&route.destination) {
            Owner::Missing => report.orphaned.push(route),
            Owner::One(_) | Owner::Contested => report.misdirected.push(route),
        }
    }

    fn judge_duplicate(&self, destination: IpNet, routes: Vec<Route>) -> DuplicateRoute {
        let (stale, alive): (Vec<Route>, Vec<Route>) =
            routes.into_iter().partition(|route| self.is_dead(route));
        let owner = match self.owner(&destination) {
            Owner::One(owner) => Some(owner),
            Owner::Missing | Owner::Contested => None,
        };
        let mut judged = DuplicateRoute { destination, keep: None, stale, undecided: vec![] };
        judged.keep = owner.and_then(|owner| {
            let preferred = owner.next_hop(Family::of(&destination), self.live.on_ports);
            let mut to_owner = alive.iter().filter(|route| owner.addresses.contains(&route.next_hop));
            let first = to_owner.clone().next();
            to_owner.find(|route| Some(route.next_hop) == preferred).or(first).copied()
        });
        let owner_answers = judged.keep.is_some() && owner.is_some_and(|owner| owner.alive);
        for route in alive.into_iter().filter(|route| Some(*route) != judged.keep) {
            if owner_answers && self.leads_elsewhere(&route) {
                judged.stale.push(route);
            } else {
                judged.undecided.push(route);
            }
        }
        judged.stale.sort_unstable();
        judged
    }

    /// True when exactly one node has this next hop, and that node has a range of this family, and it is not this one.
    fn leads_elsewhere(&self, route: &Route) -> bool {
        let family = Family::of(&route.destination);
        let mut there = self.holders.iter().filter(|holder| holder.addresses.contains(&route.next_hop));
        match (there.next(), there.next()) {
            (Some(node), None) => {
                !node.owns(&route.destination)
                    && node.pod_ranges.iter().any(|range| Family::of(range) == family)
            }
            _ => false,
        }
    }

    /// Prefixes overlap only when one holds the other: the inner ones follow the outer one in order, and the outer ones
    /// are found by cutting the destination to each length that is in use.
    fn overlaps(&self, route: &Route) -> Vec<Overlap> {
        let destination = route.destination.trunc();
        let inner = self
            .cut
            .range((destination, 0)..)
            .take_while(|(range, _)| destination.contains(range))
            .filter(|(range, _)| *range != destination);
        let shorter = self.lengths.range(..destination.prefix_len());
        let outer = shorter
            .filter_map(|length| IpNet::new(destination.addr(), *length).ok())
            .flat_map(|net| self.cut.range((net.trunc(), 0)..=(net.trunc(), usize::MAX)));
        let mut found: Vec<(IpNet, usize)> = inner.chain(outer).copied().collect();
        found.sort_unstable_by_key(|(range, at)| (*at, *range));
        found
            .into_iter()
            .map(|(range, at)| Overlap { route: *route, node: self.holders[at].node.clone(), range })
            .collect()
    }

    /// Ranges outside the cluster's are left out (a route there would not be ours to remove again), and so are ranges
    /// that two nodes claim.
    fn missing(&self, present: &BTreeMap<IpNet, BTreeSet<Route>>) -> Vec<Route> {
        let mut missing = BTreeSet::new();
        for holder in self.holders {
            for range in holder.pod_ranges.iter().map(IpNet::trunc) {
                let there = present.get(&range).is_some_and(|routes| {
                    routes.iter().any(|route| holder.addresses.contains(&route.next_hop))
                });
                if there || !self.is_ours(&range) || !matches!(self.owner(&range), Owner::One(_)) {
                    continue;
                }
                if let Some(next_hop) = holder.next_hop(Family::of(&range), self.live.on_ports) {
                    missing.insert(Route { destination: range, next_hop });
                }
            }
        }
        missing.into_iter().collect()
    }
}

impl RouteHolder {
    fn owns(&self, range: &IpNet) -> bool {
        self.pod_ranges.iter().any(|own| own.trunc() == range.trunc())
    }

    /// Where a route to this node should lead: its first InternalIP of that family that is on a port of a live
    /// instance, because a router accepts and reaches no other. When none of its addresses is on such a port, its
    /// instance is not known, and the first of the family has to do.
    fn next_hop(&self, family: Family, live: &BTreeSet<IpAddr>) -> Option<IpAddr> {
        let known = self.addresses.iter().any(|address| live.contains(address));
        self.addresses
            .iter()
            .filter(|address| Family::of(&IpNet::from(**address)) == family)
            .find(|address| !known || live.contains(address))
            .copied()
    }
}

//! The faults of a router, and which routes would repair it: compares the whole table with all Nodes at once.
//!
//! Duplicates, dead next hops and the limit are faults of the router; a missing route is a fault of the machine that lacks
//! it. This module looks only at routes inside the cluster's pod ranges.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use ipnet::IpNet;

use crate::model::cause::Cause;
use crate::model::evidence::{Evidence, NetworkFact, Source, shown};
use crate::model::id::{CloudName, InstanceId, RouterId};
use crate::model::incident::FaultKind;
use crate::model::network::Route;
use crate::model::node::Ready;
use crate::model::roster::Roster;
use crate::model::time::{Span, Time};
use crate::observe::cloud::{CloudView, Seen};
use crate::observe::cluster::{ClusterView, Link, NodeSeen};
use crate::safeguard::{Safeguard, stands};

use super::fault::{Fault, fault};
use super::network::routes::{self, Addresses, Hop, LimitOutlook, RouteHolder, RouteReport};

/// Seen on the router itself: one more look, then act.
const AT_ONCE: Span = Span::ZERO;
/// A nudge puts its route and takes it back within seconds, ours and that of another cluster's controller.
const LEFT_FOR: Span = Span::from_min(1);

/// How far apart the listings must be that agree about a dead next hop. Octavia or Terraform deletes the port of a VIP and
/// creates it again within seconds when its owner fails over, and one listing may fall between.
const AGREE_APART: Span = Span::from_s(10);

/// Everything that routes are judged from.
#[derive(Clone, Copy)]
pub struct RouteView<'a> {
    /// The roster.
    pub roster: &'a Roster,
    /// All its clouds: a next hop may be in another project than the router.
    pub clouds: &'a BTreeMap<CloudName, CloudView>,
    /// The nodes.
    pub cluster: &'a ClusterView,
    /// Next hops that were first found in use nowhere then.
    pub dead_since: &'a BTreeMap<IpAddr, Time>,
    /// Nudges of ours that are on their way.
    pub nudges: &'a [Route],
    /// The time of the judgement.
    pub now: Time,
}

impl RouteView<'_> {
    /// Every cloud of the roster was listed and is believed. While one is not, no next hop is called dead: it may be there.
    fn sees_every_cloud(&self) -> bool {
        let every = self.roster.clouds.iter();
        every.map(|name| self.clouds.get(name)).all(|view| view.is_some_and(|view| view.is_known(self.now)))
    }

    /// The router's cloud lists at least one port. A router with a route has a port in the next hop's network (Neutron takes no
    /// other route: `_validate_routes_nexthop` in neutron/db/extraroute_db.py), so an empty list lacks something, and with no
    /// machine or one there is nothing else by which to doubt it (hunt: one machine, `ports-unlisted`).
    fn sees_the_legs(&self) -> bool {
        let router = self.roster.network.router.as_ref();
        let legs =
            |(name, _): &(CloudName, RouterId)| self.clouds.get(name).is_some_and(CloudView::has_any_port);
        router.is_none_or(legs) || !stands(Safeguard::LostPorts)
    }

    /// A node of the cluster is a listed machine's, or there is no node at all. Otherwise clouds and cluster speak of different
    /// fleets, and one of them is not ours: another cluster answered, and a project that denied every machine (seed 3202035).
    fn sees_one_fleet(&self) -> bool {
        let is_listed = |link: &Link| {
            let seen = self.clouds.get(&link.cloud).and_then(|view| view.instances.get(&link.instance));
            seen.is_some_and(|seen| seen.unlisted.is_none())
        };
        let is_ours = |node: &NodeSeen| !node.lost && node.link.as_ref().is_some_and(is_listed);
        self.cluster.nodes.is_empty() || self.cluster.nodes.values().any(is_ours)
    }

    /// What the clouds do not show is not there.
    pub fn can_prove_dead(&self) -> bool {
        self.sees_every_cloud() && self.sees_the_legs() && self.sees_one_fleet()
    }

    fn hop(&self, address: &IpAddr) -> Hop {
        if self.clouds.values().any(|view| view.uses(address)) {
            return Hop::InUse;
        }
        let since = self.dead_since.get(address);
        let again = |view: &CloudView| {
            let begun = view.ports_begun();
            // Where parts of a cloud take a while to agree, two lists of that while are one (seed 3201202).
            let settles = self.roster.settles.get(&view.name).copied();
            let apart = settles.map_or(AGREE_APART, |settles| settles.max(AGREE_APART));
            since.is_some_and(|since| begun.is_some_and(|begun| begun >= *since + apart))
        };
        let agreed = self.clouds.values().all(again) || !stands(Safeguard::SecondListing);
        if self.can_prove_dead() && agreed { Hop::Dead } else { Hop::Unproven }
    }

    fn report(&self, cloud: &CloudName, router: &RouterId, limit: Option<u32>) -> Option<RouteReport> {
        let view = self.clouds.get(cloud)?;
        let held = view.routers.get(router)?;
        let holder = |node: &NodeSeen| RouteHolder {
            node: node.node.name.clone(),
            pod_ranges: node.node.pod_ranges.to_vec(),
            addresses: node.node.addresses.to_vec(),
            alive: node.node.ready == Ready::True && !node.lost,
        };
        let holders = self.cluster.nodes.values().map(holder);
        let mut router = (**held).clone();
        router.limit = router.limit.or(limit);
        let hop = |address: &IpAddr| self.hop(address);
        let live = Addresses { on_ports: &view.addresses, hop: &hop };
        Some(routes::report(&router, &self.roster.network.pod_ranges, holders, &live))
    }

    /// Nudges that were put and not taken back. A nudge is one address of [`NUDGE_NET`], which no real network routes. Another
    /// cluster's controller nudges a router that it shares in the same way, so the next hop must be one of our nodes, or in
    /// use nowhere.
    pub fn nudge_leftovers(&self, cloud: &CloudName, router: &RouterId) -> Vec<Route> {
        let held = self.clouds.get(cloud).and_then(|view| view.routers.get(router));
        let is_of_node = |address: &IpAddr| !self.cluster.with_address(address).is_empty();
        let is_left = |route: &&Route| {
            route.is_nudge()
                && !self.nudges.contains(route)
                && (is_of_node(&route.next_hop) || self.hop(&route.next_hop) == Hop::Dead)
        };
        held.map(|held| held.routes.iter().filter(is_left).copied().collect()).unwrap_or_default()
    }
}

/// What a review of a router came to.
#[derive(Debug, Default)]
pub struct Reviewed {
    /// All faults of the router as a whole.
    pub faults: Vec<Fault>,
    /// The machines whose Node has no route: the engine judges each of them again.
    pub lacking: Vec<InstanceId>,
    /// Next hops that are in use nowhere, by one listing or by more.
    pub dead: BTreeSet<IpAddr>,
}

/// Reviews a router; nothing, when it was not found.
pub fn of_router(view: &RouteView<'_>, cloud: &CloudName, router: &RouterId, limit: Option<u32>) -> Reviewed {
    let Some(report) = view.report(cloud, router, limit) else { return Reviewed::default() };
    let lacking =
        view.clouds.get(cloud).map(|here| without_route(&report, here, view.cluster)).unwrap_or_default();
    let mut faults = faults_of(&report, router, view.now);
    let left = view.nudge_leftovers(cloud, router);
    if !left.is_empty() {
        let source = Source::Router(router.clone());
        let fact = |route| Evidence::new(source.clone(), NetworkFact::NudgeRoute(route), view.now);
        let evidence = left.into_iter().map(fact).collect();
        faults.push(fault(FaultKind::NudgeLeftover, Cause::PodsUnreachable, evidence, Some(LEFT_FOR), true));
    }
    let hops = stale_of(&report).into_iter().chain(report.unproven.iter().copied());
    let nudged = view.clouds.get(cloud).and_then(|here| here.routers.get(router));
    let nudged = nudged.into_iter().flat_map(|held| held.routes.iter().copied()).filter(Route::is_nudge);
    let dead = hops.chain(nudged).map(|route| route.next_hop);
    let dead = dead.filter(|hop| view.hop(hop) != Hop::InUse).collect();
    Reviewed { faults, lacking, dead }
}

fn faults_of(report: &RouteReport, router: &RouterId, now: Time) -> Vec<Fault> {
    let mut faults = Vec::new();
    let evidence = |fact| Evidence::new(Source::Router(router.clone()), fact, now);
    let stale = stale_of(report);
    let undecided = shown(report.duplicates.iter().flat_map(|duplicate| &duplicate.undecided).copied());
    if !stale.is_empty() {
        let evidence = stale.into_iter().map(|route| evidence(NetworkFact::DeadHop(route))).collect();
        faults.push(fault(FaultKind::DuplicateRoute, Cause::DuplicateRoute, evidence, Some(AT_ONCE), true));
    } else if !undecided.is_empty() {
        let evidence = vec![evidence(NetworkFact::HopsAlive(undecided))];
        faults.push(fault(FaultKind::DuplicateRoute, Cause::DuplicateRoute, evidence, None, true));
    }
    if let Some(outlook) = &report.limit {
        // One more than is needed now: the limit is to be met before the next node is made, not by it.
        if outlook.used + outlook.needed_next + 1 > outlook.limit {
            let LimitOutlook { limit, used, needed_next: needed } = *outlook;
            let fact = NetworkFact::RouterFull { used, limit, foreign: report.foreign, needed };
            let evidence = vec![evidence(fact)];
            faults.push(fault(FaultKind::RouteLimit, Cause::RouteLimit, evidence, None, true));
        }
    }
    faults
}

fn stale_of(report: &RouteReport) -> Vec<Route> {
    let mut stale: Vec<Route> =
        report.duplicates.iter().flat_map(|duplicate| duplicate.stale.iter().copied()).collect();
    stale.extend(report.misdirected.iter().chain(&report.orphaned).copied());
    stale.sort();
    stale.dedup();
    stale
}

/// Routes inside our ranges that are proved dead or wrong, and those of their next hops on whose absence that rests.
pub fn stale_routes(
    view: &RouteView<'_>,
    cloud: &CloudName,
    router: &RouterId,
) -> (Vec<Route>, BTreeSet<IpAddr>) {
    let stale = view.report(cloud, router, None).map(|report| stale_of(&report)).unwrap_or_default();
    let hops = stale.iter().map(|route| route.next_hop);
    let is_dead = |hop: &IpAddr| view.cluster.with_address(hop).is_empty() && view.hop(hop) == Hop::Dead;
    let dead = hops.filter(is_dead).collect();
    (stale, dead)
}

/// Routes that a machine's node needs and the router lacks.
pub fn routes_needed(
    roster: &Roster,
    cloud: &CloudView,
    cluster: &ClusterView,
    router: &RouterId,
    seen: &Seen,
) -> Vec<Route> {
    let Some(held) = cloud.routers.get(router) else { return Vec::new() };
    let Some(node) = seen.only_node().and_then(|name| cluster.nodes.get(name)) else { return Vec::new() };
    let on_ports: Vec<IpAddr> = seen.ports.iter().flat_map(|port| port.addresses.iter().copied()).collect();
    let mut needed = Vec::new();
    for range in &cluster.own_pod_ranges(&node.node, &roster.network) {
        let family = |address: &&IpAddr| address.is_ipv4() == range.addr().is_ipv4();
        let mine: Vec<IpAddr> = node.node.addresses.iter().filter(family).copied().collect();
        let next_hop = mine.iter().find(|address| on_ports.contains(address));
        let has = held.routes.iter().any(|r| r.destination == *range && mine.contains(&r.next_hop));
        if let (false, Some(next_hop)) = (has, next_hop) {
            needed.push(Route { destination: *range, next_hop: *next_hop });
        }
    }
    needed
}

/// Machines whose node's route is not there.
fn without_route(report: &RouteReport, cloud: &CloudView, cluster: &ClusterView) -> Vec<InstanceId> {
    if report.missing.is_empty() {
        return Vec::new();
    }
    let ranges: BTreeSet<IpNet> = report.missing.iter().map(|route| route.destination).collect();
    let lacks = |node: &&NodeSeen| node.node.pod_ranges.iter().any(|range| ranges.contains(range));
    let links = cluster.nodes.values().filter(lacks).filter_map(|node| node.link.as_ref());
    links.filter(|link| link.cloud == cloud.name).map(|link| link.instance.clone()).collect()
}

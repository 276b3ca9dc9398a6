//! What is amiss with a router, and which routes would mend it: the whole table held against all nodes at once.
//!
//! Duplicates, dead next hops and the limit are the router's; a missing route is the machine's that lacks it. Only routes
//! inside the cluster's pod ranges are looked at.

use std::collections::BTreeSet;
use std::net::IpAddr;

use ipnet::IpNet;

use crate::model::cause::Cause;
use crate::model::id::{InstanceId, RouterId};
use crate::model::incident::{Evidence, FaultKind};
use crate::model::network::Route;
use crate::model::node::Ready;
use crate::model::roster::Roster;
use crate::model::time::{Span, Time};
use crate::observe::cloud::{CloudView, Seen};
use crate::observe::cluster::{ClusterView, NodeSeen};

use super::faults::{Fault, fault};
use super::network::routes::{self, RouteHolder, RouteReport};

/// Seen on the router itself: one more look, then act.
const AT_ONCE: Span = Span::ZERO;

fn report(
    roster: &Roster,
    cloud: &CloudView,
    cluster: &ClusterView,
    router: &RouterId,
    limit: Option<u32>,
) -> Option<RouteReport> {
    let held = cloud.routers.get(router)?;
    let holder = |node: &NodeSeen| RouteHolder {
        node: node.node.name.clone(),
        pod_ranges: node.node.pod_ranges.to_vec(),
        addresses: node.node.addresses.to_vec(),
        alive: node.node.ready == Ready::True && !node.lost,
    };
    let holders = cluster.nodes.values().map(holder);
    let mut router = (**held).clone();
    router.limit = router.limit.or(limit);
    Some(routes::report(&router, &roster.network.pod_ranges, holders, &cloud.addresses))
}

/// Everything amiss with the router as a whole, and the machines whose node's route is not there: each of those is to be
/// judged anew.
pub fn of_router(
    roster: &Roster,
    cloud: &CloudView,
    cluster: &ClusterView,
    router: &RouterId,
    limit: Option<u32>,
    now: Time,
) -> (Vec<Fault>, Vec<InstanceId>) {
    let Some(report) = report(roster, cloud, cluster, router, limit) else { return Default::default() };
    let lacking = without_route(&report, cloud, cluster);
    (faults_of(&report, router, now), lacking)
}

fn faults_of(report: &RouteReport, router: &RouterId, now: Time) -> Vec<Fault> {
    let mut faults = Vec::new();
    let source = format!("router {router}");
    let stale = stale_of(report);
    let undecided: Vec<String> = report
        .duplicates
        .iter()
        .flat_map(|duplicate| &duplicate.undecided)
        .map(ToString::to_string)
        .collect();
    if !stale.is_empty() {
        let evidence = stale.iter().map(|route| {
            Evidence::new(source.clone(), &format!("{route}: no live machine has that address"), now)
        });
        let evidence: Vec<Evidence> = evidence.collect();
        faults.push(fault(FaultKind::DuplicateRoute, Cause::DuplicateRoute, evidence, Some(AT_ONCE), true));
    } else if !undecided.is_empty() {
        let text = format!("{}: more than one next hop is alive", undecided.join(", "));
        let evidence = vec![Evidence::new(source.clone(), &text, now)];
        faults.push(fault(FaultKind::DuplicateRoute, Cause::DuplicateRoute, evidence, None, true));
    }
    if let Some(outlook) = &report.limit {
        // One more than is needed now: the limit is to be met before the next node is made, not by it.
        if outlook.used + outlook.needed_next + 1 > outlook.limit {
            let text = format!(
                "holds {} of {} routes, {} of them not of this cluster; {} more are needed now, and one for the next node",
                outlook.used, outlook.limit, report.foreign, outlook.needed_next
            );
            let evidence = vec![Evidence::new(source, &text, now)];
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

/// Routes inside our ranges whose next hop is proved to be nobody.
pub fn stale_routes(
    roster: &Roster,
    cloud: &CloudView,
    cluster: &ClusterView,
    router: &RouterId,
) -> Vec<Route> {
    report(roster, cloud, cluster, router, None).map(|report| stale_of(&report)).unwrap_or_default()
}

/// Routes that a machine's node needs and the router lacks.
pub fn routes_needed(cloud: &CloudView, cluster: &ClusterView, router: &RouterId, seen: &Seen) -> Vec<Route> {
    let Some(held) = cloud.routers.get(router) else { return Vec::new() };
    let Some(node) = seen.nodes.first().and_then(|name| cluster.nodes.get(name)) else { return Vec::new() };
    let on_ports: Vec<IpAddr> = seen.ports.iter().flat_map(|port| port.addresses.iter().copied()).collect();
    let mut needed = Vec::new();
    for range in &node.node.pod_ranges {
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

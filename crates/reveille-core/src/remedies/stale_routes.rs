//! A route leads to an address that is in use nowhere, or is a second route to a range that has its right one: the
//! controller removes it.

use std::collections::BTreeSet;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use crate::diagnose::route_faults;
use crate::event::Answer;
use crate::model::before::Before;
use crate::model::blocker::Blocker;
use crate::model::call::RemoveRoutes;
use crate::model::network::Route;
use crate::model::violation::ensure;
use crate::observe::cluster::NodeSeen;
use crate::observe::source::Trust;
use crate::plan::context::{Case, PlanContext};

use super::invariants::Checked;
use super::{Act, Call, Effectiveness, NoCall, Remedy, Target, facts, gone, no_call, not_seen, seen};

pub(super) const REMEDY: Remedy = Remedy { says: "remove the routes with a dead next hop", plan, blocks };

/// What is in use on another cloud's ports is known where that is believed. A second route beside the right one needs no dead
/// next hop, and its removal was planned in the first second of a process (seed 8200209).
fn blocks(context: &PlanContext<'_>, _case: &Case, call: Option<&Call>, blockers: &mut Vec<Blocker>) {
    let own = call.and_then(Call::cloud);
    for view in context.clouds.values().filter(|view| Some(&view.name) != own) {
        if let Trust::No(why) = view.source.trust(context.now) {
            blockers.push(Blocker::Blind { source: Arc::from(view.name.as_str()), why });
        }
    }
}

fn plan(context: &PlanContext<'_>, _case: &Case) -> Result<Call, NoCall> {
    let (cloud, router, _) = facts::router(context)?;
    let view = facts::route_view(context, &[]);
    let (routes, dead) = one_by_one(context, route_faults::stale_routes(&view, cloud, router));
    if routes.is_empty() {
        return no_call("no route is proved dead");
    }
    let unless_used = dead.into_iter().collect();
    Ok(Call::RemoveRoutes(RemoveRoutes { cloud: cloud.clone(), router: router.clone(), routes, unless_used }))
}

/// Where a removal was refused because one of its next hops is in use, the refusal holds for all of them. Each is tried
/// alone then, after the others, so that the one in use keeps no other route.
fn one_by_one(
    context: &PlanContext<'_>,
    (mut routes, mut dead): (Vec<Route>, BTreeSet<IpAddr>),
) -> (Vec<Route>, BTreeSet<IpAddr>) {
    let alone = |hop: &IpAddr| dead.contains(hop) && context.routes.is_doubted(hop);
    let only = routes.iter().all(|route| alone(&route.next_hop)).then(|| routes.first()).flatten();
    let only = only.map(|route| route.next_hop);
    let goes = |hop: &IpAddr| only.map_or(!context.routes.is_doubted(hop), |only| only == *hop);
    let kept = |hop: &IpAddr| dead.contains(hop) && !goes(hop);
    routes.retain(|route| !kept(&route.next_hop));
    dead.retain(goes);
    (routes, dead)
}

impl Act for RemoveRoutes {
    fn target(&self) -> Target<'_> {
        Target::Router(&self.cloud, &self.router)
    }

    fn is_same_change(&self, other: &Self) -> bool {
        (&self.cloud, &self.router, &self.routes) == (&other.cloud, &other.router, &other.routes)
    }

    fn in_a_line(&self) -> String {
        match self.routes.as_slice() {
            [route] => format!("remove the route {route} from router {}", self.router),
            routes => format!("remove {} routes from router {}", routes.len(), self.router),
        }
    }

    fn judge(&self, _before: Option<&Before>, answer: &Answer) -> Effectiveness {
        let Answer::Router(Some(router)) = answer else { return gone() };
        match self.routes.iter().find(|route| router.routes.contains(route)) {
            Some(route) => not_seen(format!("read back: {route} is still there")),
            None => seen("read back: the routes are gone"),
        }
    }

    /// A route goes that leads to nothing, that stands beside the right route to the owner of its range, or that a nudge left.
    fn check(&self, context: &PlanContext<'_>) -> Checked {
        let Self { cloud, router, routes, .. } = self;
        let ours = |route: &&Route| context.roster.network.holds(&route.destination) || route.is_nudge();
        let foreign = routes.iter().find(|route| !ours(route));
        ensure(foreign.is_none(), 5, || format!("router {router} would lose a route of others"))?;
        let seen = context.clouds.values().all(|view| view.source.trust(context.now).is_given());
        ensure(seen, 2, || format!("router {router} would lose routes while a cloud cannot be believed"))?;
        let held = context.clouds.get(cloud).and_then(|view| view.routers.get(router));
        let owns = |route: &Route| {
            context.cluster.nodes.values().any(|NodeSeen { node, .. }| {
                node.pod_ranges.contains(&route.destination) && node.addresses.contains(&route.next_hop)
            })
        };
        let beside = |route: &Route| {
            let all = held.map_or(&[][..], |held| &held.routes);
            all.iter().any(|other| other.destination == route.destination && other != route && owns(other))
        };
        let in_use = |route: &&Route| {
            let hop = &route.next_hop;
            context.clouds.values().any(|view| view.uses(hop))
                || context.cluster.nodes.values().any(|seen| seen.node.addresses.contains(hop))
        };
        let wrong =
            routes.iter().filter(|route| !route.is_nudge()).filter(in_use).find(|route| !beside(route));
        ensure(wrong.is_none(), 1, || {
            format!("router {router} would lose a route to a next hop that is in use")
        })
    }
}

impl fmt::Display for RemoveRoutes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "remove from router {}:", self.router)?;
        self.routes.iter().try_for_each(|route| write!(f, " [{route}]"))
    }
}

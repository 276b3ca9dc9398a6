//! Adds extra routes to a router and removes them: exact pairs, all or none, without a change of the others.
//!
//! Neutron's atomic calls do just that. Where a cloud is too old for them, the list is read and replaced at its revision. If
//! another client changed the router first, Neutron refuses and nothing happened.

use std::net::IpAddr;
use std::sync::Arc;

use reveille_cloud::report::Writing;
use reveille_core::effect::Outcome;
use reveille_core::model::id::RouterId;
use reveille_core::model::network::Route;

use super::ports::revisions_checked;
use crate::catalog::Service;
use crate::client::Request;
use crate::fetch::list_ports_around;
use crate::project::Project;
use crate::router::{WireRoute, write_routes};

/// What is done with the routes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Add,
    Remove,
}

impl Change {
    const fn path(self) -> &'static str {
        match self {
            Self::Add => "add_extraroutes",
            Self::Remove => "remove_extraroutes",
        }
    }

    const fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Add => ("add", "to"),
            Self::Remove => ("remove", "from"),
        }
    }
}

/// Takes routes out, unless one of these next hops is in use by now.
pub(super) async fn remove(
    project: &Project,
    router: &RouterId,
    routes: &[Route],
    unless_used: &[IpAddr],
) -> Outcome {
    if !unless_used.is_empty() {
        let writing = project.place().writing(format!("remove routes from router {router}"));
        if let Some(outcome) = in_use(project, router, unless_used, &writing).await {
            return outcome;
        }
    }
    change(project, router, routes, Change::Remove).await
}

/// The answer, when one of these next hops is on a port now, or when that cannot be told.
async fn in_use(project: &Project, router: &RouterId, hops: &[IpAddr], writing: &Writing) -> Option<Outcome> {
    // A next hop must be on a network that the router reaches into (`_validate_routes_nexthop` in
    // neutron/db/extraroute_db.py), so the ports there are all that matter.
    let found = match list_ports_around(project, router).await {
        Ok(Some(found)) => found,
        Ok(None) => {
            let cause = "no leg of the router is visible, so nothing tells which next hops are in use";
            return Some(writing.refuse(cause));
        }
        Err(error) => return Some(writing.unread(&error)),
    };
    let on_port = |hop: &IpAddr| {
        let ports = found.of_instances.items.values();
        ports.clone().any(|(_, port)| port.addresses.contains(hop))
            || found.in_use.iter().any(|net| net.contains(hop))
    };
    let hop = hops.iter().find(|hop| on_port(hop))?;
    Some(writing.moved(&format!("a port has the address {hop} by now")))
}

pub(super) async fn change(
    project: &Project,
    router: &RouterId,
    routes: &[Route],
    change: Change,
) -> Outcome {
    let (verb, preposition) = change.words();
    let what = format!("{verb} {} route(s) {preposition} router {router}", routes.len());
    let writing = project.place().writing(what);
    if routes.is_empty() {
        return Outcome::AlreadySo { text: Arc::from("no route was named") };
    }
    let outcome = match project.has_extension("extraroute-atomic").await {
        Ok(true) => {
            let wire: Vec<WireRoute> = routes.iter().map(WireRoute::from).collect();
            let path = ["routers", router.as_str(), change.path()];
            let request = Request::put(Service::Network, &path, write_routes(&wire));
            writing.outcome(project.send(&request).await)
        }
        Ok(false) => replace(project, router, routes, change, &writing).await,
        Err(error) => writing.unread(&error),
    };
    if let Outcome::Limit { limit: Some(limit), .. } = outcome {
        project.learn_route_limit(router, limit);
    }
    outcome
}

async fn replace(
    project: &Project,
    router: &RouterId,
    routes: &[Route],
    change: Change,
    writing: &Writing,
) -> Outcome {
    if let Err(outcome) = revisions_checked(project, writing).await {
        return outcome;
    }
    let now = match project.wire_router(router).await {
        Ok(Some(now)) => now,
        Ok(None) => return writing.refuse("there is no such router"),
        Err(error) => return writing.unread(&error),
    };
    let named = |wire: &WireRoute| wire.route().is_some_and(|route| routes.contains(&route));
    let mut wanted: Vec<WireRoute> = now.routes.clone();
    match change {
        Change::Remove => wanted.retain(|wire| !named(wire)),
        Change::Add => {
            let there: Vec<Route> = now.routes.iter().filter_map(WireRoute::route).collect();
            wanted.extend(routes.iter().filter(|route| !there.contains(route)).map(WireRoute::from));
        }
    }
    if wanted == now.routes {
        return Outcome::AlreadySo { text: Arc::from(format!("router {router} is so already")) };
    }
    let request = Request::put(Service::Network, &["routers", router.as_str()], write_routes(&wanted))
        .if_revision(now.revision_number);
    writing.outcome(project.send(&request).await)
}

/// Puts a harmless route and takes it back. Each half makes the device write its table.
pub(super) async fn nudge(project: &Project, router: &RouterId, route: &Route) -> Outcome {
    let put = change(project, router, &[*route], Change::Add).await;
    if let Outcome::Unknown { text } = put {
        return Outcome::Unknown {
            text: Arc::from(format!("{text}; the harmless route {route} may be there")),
        };
    }
    if !matches!(put, Outcome::Accepted { .. } | Outcome::AlreadySo { .. }) {
        return put;
    }
    let taken = change(project, router, &[*route], Change::Remove).await;
    let left = |why: &dyn std::fmt::Display| {
        Arc::from(format!(
            "openstack: router {router} was nudged and keeps the harmless route {route}: {why}"
        ))
    };
    match taken {
        Outcome::Accepted { .. } | Outcome::AlreadySo { .. } => taken,
        Outcome::Unknown { text } => Outcome::Unknown { text: left(&text) },
        Outcome::Failed { text, retry_after } => Outcome::Failed { text: left(&text), retry_after },
        other => Outcome::Failed { text: left(&other), retry_after: None },
    }
}

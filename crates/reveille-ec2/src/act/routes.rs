//! Adds routes to a route table and removes them: exact pairs, each by itself, without a change of the others.
//!
//! EC2 has no call for several routes and none that checks what it replaces, so none that replaces is used. `CreateRoute` refuses
//! where a route exists. A route is deleted only where a read just before shows exactly the pair that was asked for. A route with
//! a dead next hop is deleted only while EC2 itself calls it a black hole.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

use ipnet::IpNet;
use reveille_cloud::report::Writing;
use reveille_cloud::steps::{Step, Steps, next_may_pass};
use reveille_core::effect::Outcome;
use reveille_core::model::id::RouterId;
use reveille_core::model::network::Route;

use super::send;
use crate::account::Account;
use crate::actions::{CREATE_ROUTE, DELETE_ROUTE, DESCRIBE_INTERFACES};
use crate::fetch;
use crate::list;
use crate::query_protocol::Request;
use crate::table::{Leads, WireTable};

pub(super) async fn add(account: &Account, router: &RouterId, routes: &[Route]) -> Outcome {
    each(account, router, routes, "add", true).await
}

/// Takes routes out, unless one of these next hops is in use by now. EC2 itself says of a black hole that it leads nowhere.
pub(super) async fn remove(
    account: &Account,
    router: &RouterId,
    routes: &[Route],
    unless_used: &[IpAddr],
) -> Outcome {
    for hop in unless_used.iter().filter(|hop| !hop.is_unspecified()) {
        let writing =
            account.place().writing(format!("remove routes through {hop} from route table {router}"));
        let request = Request::new(DESCRIBE_INTERFACES).filter(address_filter(hop), [hop.to_string()]);
        match fetch::interfaces(account, request).await {
            Ok(found) if found.iter().any(|one| one.addresses().contains(hop)) => {
                return writing.moved(&format!("an interface has the address {hop} by now"));
            }
            Ok(_) => {}
            Err(error) => return writing.unread(&error),
        }
    }
    each(account, router, routes, "remove", false).await
}

async fn each(account: &Account, router: &RouterId, routes: &[Route], verb: &str, adds: bool) -> Outcome {
    let writing =
        account.place().writing(format!("{verb} {} route(s) of route table {router}", routes.len()));
    if routes.is_empty() {
        return Outcome::AlreadySo { text: Arc::from("no route was named") };
    }
    let table = match account.table(router).await {
        Ok(Some(table)) => table,
        Ok(None) => return writing.refuse("there is no such route table"),
        Err(error) => return writing.unread(&error),
    };
    let (targets, ..) = match list::targets(account, std::iter::empty(), std::slice::from_ref(&table)).await {
        Ok(targets) => targets,
        Err(error) => return writing.unread(&error),
    };
    let mut steps = Steps::default();
    for route in routes {
        let now = table.route_to(route.destination).map(|wire| (wire.leads(&targets, account.id()), wire));
        let step = if adds {
            let now = now.map(|(leads, _)| leads);
            put(account, router, &table, route, now).await
        } else {
            let now = now.map(|(leads, wire)| (leads, wire.is_black_hole()));
            take(account, router, route, now).await
        };
        if steps.note(step).is_some_and(|failure| !next_may_pass(failure)) {
            break;
        }
    }
    let all_were_so = format!("route table {router} is so already");
    steps.outcome(routes.len(), &all_were_so, "route(s) are as they should be")
}

async fn put(
    account: &Account,
    router: &RouterId,
    table: &WireTable,
    route: &Route,
    now: Option<Leads>,
) -> Step {
    let writing = account.place().writing(format!("add route {route} to route table {router}"));
    match now {
        Some(Leads::To(there)) if there == *route => return Step::WasSo,
        Some(_) => {
            let cause = "a route to that range leads elsewhere; it is never replaced";
            return Step::Not(writing.refuse(cause));
        }
        None => {}
    }
    let interface = match interface_at(account, table, route, &writing).await {
        Ok(interface) => interface,
        Err(outcome) => return Step::Not(outcome),
    };
    let request = named(Request::new(CREATE_ROUTE), router, route.destination);
    match send(account, &request.with("NetworkInterfaceId", interface)).await {
        Ok(request) => Step::Done(request),
        Err(error) => match error.refusal() {
            Some(refusal) if refusal.code == "RouteAlreadyExists" => {
                Step::Not(writing.moved("another client has put one meanwhile"))
            }
            Some(refusal) if refusal.code == "RouteLimitExceeded" => {
                account.learn_routes_max(router, table.counted());
                Step::Not(Outcome::Limit {
                    limit: Some(table.counted()),
                    text: writing.text(&refusal.to_string()),
                })
            }
            _ => Step::Not(writing.failed(&error)),
        },
    }
}

async fn take(account: &Account, router: &RouterId, route: &Route, now: Option<(Leads, bool)>) -> Step {
    let writing = account.place().writing(format!("remove route {route} from route table {router}"));
    match now {
        None => return Step::WasSo,
        Some((Leads::To(there), black_hole)) if there == *route && (black_hole || !route.is_nowhere()) => {}
        Some(_) => return Step::Not(writing.moved("the route to that range leads elsewhere by now")),
    }
    match send(account, &named(Request::new(DELETE_ROUTE), router, route.destination)).await {
        Ok(request) => Step::Done(request),
        Err(error) => match error.refusal() {
            Some(refusal) if refusal.code == "InvalidRoute.NotFound" => Step::WasSo,
            _ => Step::Not(writing.failed(&error)),
        },
    }
}

/// The interface that has this address in the table's network.
async fn interface_at(
    account: &Account,
    table: &WireTable,
    route: &Route,
    writing: &Writing,
) -> Result<String, Outcome> {
    let filter = address_filter(&route.next_hop);
    let mut request = Request::new(DESCRIBE_INTERFACES).filter(filter, [route.next_hop.to_string()]);
    if let Some(vpc) = &table.vpc_id {
        request = request.filter("vpc-id", [vpc.as_str()]);
    }
    let found = fetch::interfaces(account, request).await.map_err(|error| writing.unread(&error))?;
    // Filters of a stand-in may find more than what was asked for.
    let ids: BTreeSet<String> = found
        .into_iter()
        .filter(|one| one.addresses().contains(&route.next_hop) && one.instance().is_some())
        .map(|one| one.network_interface_id)
        .collect();
    match ids.into_iter().collect::<Vec<_>>().as_slice() {
        [only] => Ok(only.clone()),
        [] => Err(writing.refuse(&format!("no interface of an instance has the address {}", route.next_hop))),
        several => {
            Err(writing.refuse(&format!("{} interfaces have the address {}", several.len(), route.next_hop)))
        }
    }
}

const fn address_filter(address: &IpAddr) -> &'static str {
    if address.is_ipv4() { "addresses.private-ip-address" } else { "ipv6-addresses.ipv6-address" }
}

fn named(request: Request, router: &RouterId, destination: IpNet) -> Request {
    let key = match destination {
        IpNet::V4(_) => "DestinationCidrBlock",
        IpNet::V6(_) => "DestinationIpv6CidrBlock",
    };
    request.with("RouteTableId", router.as_str()).with(key, destination.to_string())
}

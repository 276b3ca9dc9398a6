//! The router's table is right and its device does not follow it: the controller adds a harmless route and removes it, so
//! that the device writes its whole table again.

use std::fmt;
use std::net::IpAddr;

use crate::event::Answer;
use crate::model::before::Before;
use crate::model::call::NudgeRouter;
use crate::model::network::Route;
use crate::plan::context::{Case, PlanContext};
use ipnet::IpNet;

use super::invariants::Checked;
use super::{
    Act, Call, Effectiveness, NoCall, Remedy, Target, facts, gone, no_call, not_seen, nothing_more, seen,
};

pub(super) const REMEDY: Remedy = Remedy {
    says: "add and remove a harmless route, so that the router writes its table again",
    plan,
    blocks: nothing_more,
};

/// A documentation address (RFC 5737) through the node's own address, which the router accepts.
fn plan(context: &PlanContext<'_>, case: &Case) -> Result<Call, NoCall> {
    let (cloud, router, view) = facts::router(context)?;
    let (_, seen) = facts::machine(context, case)?;
    let held = view.routers.get(router).ok_or_else(|| NoCall::from("the router was not found"))?;
    if !facts::has_room(context, view, router, 1) {
        return no_call("the router is full");
    }
    let next_hop = context
        .node(seen)
        .and_then(|(_, node)| node.node.addresses.iter().find(|address| address.is_ipv4()).copied())
        .ok_or_else(|| NoCall::from("its node has no IPv4 address"))?;
    let free = (1..=254_u8).find_map(|last| {
        let destination = IpNet::from(IpAddr::from([198, 51, 100, last]));
        (!held.routes.iter().any(|route| route.destination == destination)).then_some(destination)
    });
    let destination =
        free.ok_or_else(|| NoCall::from("no documentation address is free for a test route"))?;
    let route = Route { destination, next_hop };
    Ok(Call::NudgeRouter(NudgeRouter { cloud: cloud.clone(), router: router.clone(), route }))
}

impl Act for NudgeRouter {
    const IS_HARMLESS_TWICE: bool = true;

    fn target(&self) -> Target<'_> {
        Target::Router(&self.cloud, &self.router)
    }

    fn is_same_change(&self, other: &Self) -> bool {
        self == other
    }

    fn judge(&self, _before: Option<&Before>, answer: &Answer) -> Effectiveness {
        let (Answer::Router(Some(router)), route) = (answer, &self.route) else { return gone() };
        if router.routes.contains(route) {
            not_seen(format!("read back: the harmless route {route} is still there"))
        } else {
            seen("read back: the harmless route was put and taken back")
        }
    }

    /// It adds or takes back what changes nothing for a packet.
    fn check(&self, _context: &PlanContext<'_>) -> Checked {
        Ok(())
    }
}

impl fmt::Display for NudgeRouter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "put and take back a harmless route on router {} ({})", self.router, self.route)
    }
}

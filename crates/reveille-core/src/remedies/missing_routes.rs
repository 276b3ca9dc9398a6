//! A Node's pod range has no route: the controller adds the route.

use std::fmt;

use crate::diagnose::route_faults;
use crate::event::Answer;
use crate::model::before::Before;
use crate::model::call::AddRoutes;
use crate::plan::context::{Case, PlanContext};

use super::invariants::{self, Checked};
use super::{
    Act, Call, Effectiveness, NoCall, Remedy, Target, facts, gone, no_call, not_seen, nothing_more, seen,
};

pub(super) const REMEDY: Remedy = Remedy { says: "add the node's route", plan, blocks: nothing_more };

fn plan(context: &PlanContext<'_>, case: &Case) -> Result<Call, NoCall> {
    let (cloud, router, view) = facts::router(context)?;
    let (_, seen) = facts::machine(context, case)?;
    let routes = route_faults::routes_needed(context.roster, view, context.cluster, router, seen);
    if routes.is_empty() {
        return no_call("its routes exist");
    }
    if !facts::has_room(context, view, router, routes.len()) {
        return no_call("the router is full");
    }
    Ok(Call::AddRoutes(AddRoutes { cloud: cloud.clone(), router: router.clone(), routes }))
}

impl Act for AddRoutes {
    const IS_HARMLESS_TWICE: bool = true;

    fn target(&self) -> Target<'_> {
        Target::Router(&self.cloud, &self.router)
    }

    fn is_same_change(&self, other: &Self) -> bool {
        self == other
    }

    fn in_a_line(&self) -> String {
        match self.routes.as_slice() {
            [route] => format!("add the route {route} to router {}", self.router),
            routes => format!("add {} routes to router {}", routes.len(), self.router),
        }
    }

    fn judge(&self, _before: Option<&Before>, answer: &Answer) -> Effectiveness {
        let Answer::Router(Some(router)) = answer else { return gone() };
        match self.routes.iter().find(|route| !router.routes.contains(route)) {
            Some(route) => not_seen(format!("read back: {route} is not there")),
            None => seen("read back: the routes are there"),
        }
    }

    fn check(&self, context: &PlanContext<'_>) -> Checked {
        invariants::leads_to_pods(context, self, self.routes.iter().map(|route| route.destination))
    }
}

impl fmt::Display for AddRoutes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "add to router {}:", self.router)?;
        self.routes.iter().try_for_each(|route| write!(f, " [{route}]"))
    }
}

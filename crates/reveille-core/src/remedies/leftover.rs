//! A nudge was interrupted and its harmless rule or route stayed: the controller removes it, so that it uses up no quota.

use std::fmt;

use crate::diagnose::faults;
use crate::event::Answer;
use crate::model::before::Before;
use crate::model::call::DropRule;
use crate::model::id::{CloudName, RouterId};
use crate::model::incident::Subject;
use crate::plan::context::{Case, PlanContext};

use super::invariants::Checked;
use super::{
    Act, Call, Effectiveness, NoCall, Remedy, Target, facts, gone, no_call, not_seen, nothing_more, seen,
};
use crate::model::call::RemoveRoutes;

pub(super) const REMEDY: Remedy =
    Remedy { says: "remove the test rule that an interrupted repair left", plan, blocks: nothing_more };

fn plan(context: &PlanContext<'_>, case: &Case) -> Result<Call, NoCall> {
    match &case.incident.key.subject {
        Subject::Router(cloud, router) => left_on_router(context, cloud, router),
        Subject::Group(cloud, group) => match faults::nudge_leftover(facts::cloud(context, cloud)?, group) {
            Some(rule) => Ok(Call::DropRule(DropRule { cloud: cloud.clone(), group: group.clone(), rule })),
            None => no_call("no test rule is left"),
        },
        _ => no_call("not a group"),
    }
}

/// It goes whether or not its next hop is in use: nothing is routed to a documentation address.
fn left_on_router(context: &PlanContext<'_>, cloud: &CloudName, router: &RouterId) -> Result<Call, NoCall> {
    let nudges = context.book.router_nudges(cloud);
    let routes = facts::route_view(context, &nudges).nudge_leftovers(cloud, router);
    if routes.is_empty() {
        return no_call("no test rule is left");
    }
    let (cloud, router, unless_used) = (cloud.clone(), router.clone(), Vec::new());
    Ok(Call::RemoveRoutes(RemoveRoutes { cloud, router, routes, unless_used }))
}

impl Act for DropRule {
    fn target(&self) -> Target<'_> {
        Target::Group(&self.cloud, &self.group)
    }

    fn is_same_change(&self, other: &Self) -> bool {
        self == other
    }

    fn judge(&self, _before: Option<&Before>, answer: &Answer) -> Effectiveness {
        let Answer::Group(Some(group)) = answer else { return gone() };
        if group.rules.iter().any(|rule| rule.id == self.rule) {
            not_seen("read back: the rule is still there")
        } else {
            seen("read back: the rule is gone")
        }
    }

    /// It adds or takes back what changes nothing for a packet.
    fn check(&self, _context: &PlanContext<'_>) -> Checked {
        Ok(())
    }
}

impl fmt::Display for DropRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "remove rule {} from group {}", self.rule, self.group)
    }
}

//! What several repairs read from the context before they name a call.

use crate::diagnose::route_faults::RouteView;
use crate::model::id::{CloudName, RouterId};
use crate::model::network::Route;
use crate::model::roster::Ownership;
use crate::observe::cloud::{CloudView, Seen};
use crate::plan::context::{Case, PlanContext};

use super::NoCall;

/// The machine of the case, with the cloud that lists it.
pub(super) fn machine<'a>(
    context: &PlanContext<'a>,
    case: &Case,
) -> Result<(&'a CloudView, &'a Seen), NoCall> {
    context.seen_of(&case.incident.key.subject).ok_or_else(|| NoCall::from("it has no instance"))
}

/// The marks that the machine must carry when it is touched: those of its pool.
pub(super) fn marks(context: &PlanContext<'_>, seen: &Seen) -> Result<Ownership, NoCall> {
    context.pool(seen).map(|pool| pool.owned.clone()).ok_or_else(|| NoCall::from("it belongs to no pool"))
}

/// A cloud of the roster.
pub(super) fn cloud<'a>(context: &PlanContext<'a>, name: &CloudName) -> Result<&'a CloudView, NoCall> {
    context.clouds.get(name).ok_or_else(|| NoCall::from("its cloud is not in the roster"))
}

/// The router that the roster names, with its cloud.
pub(super) fn router<'a>(
    context: &PlanContext<'a>,
) -> Result<(&'a CloudName, &'a RouterId, &'a CloudView), NoCall> {
    let named = context.roster.network.router.as_ref();
    let (name, router) = named.ok_or_else(|| NoCall::from("the roster names no router"))?;
    Ok((name, router, cloud(context, name)?))
}

/// So many routes more fit, as far as the limit is known. A nudge needs a place as well, if only for a moment.
pub(super) fn has_room(context: &PlanContext<'_>, view: &CloudView, router: &RouterId, more: usize) -> bool {
    let held = view.routers.get(router).map_or(0, |router| router.routes.len());
    context.route_limit_now(router).is_none_or(|limit| held + more <= limit as usize)
}

/// What says which routes lead to nothing; `nudges` are those that repairs under way put there and take back.
pub(super) fn route_view<'a>(context: &PlanContext<'a>, nudges: &'a [Route]) -> RouteView<'a> {
    RouteView {
        roster: context.roster,
        clouds: context.clouds,
        cluster: context.cluster,
        dead_since: context.routes.dead_since(),
        nudges,
        now: context.now,
    }
}

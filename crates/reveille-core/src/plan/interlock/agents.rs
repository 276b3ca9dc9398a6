//! What the agents' reports block on every machine: an outage of the API server, as the nodes see it.

use crate::model::roster::Timing;
use crate::model::time::Time;
use crate::observe::cluster::ClusterView;

use super::super::context::PlanContext;
use crate::model::blocker::Blocker;

/// With agents on this share of the nodes or more, percent, their word on the API server counts whatever leases say.
const SPEAKS_PCT: usize = 20;

/// Something has only just come back: whatever else does gets a while.
pub(crate) fn settling(context: &PlanContext<'_>, since: Time, blockers: &mut Vec<Blocker>) {
    let settled = since + context.roster.timing.settle;
    if context.now < settled {
        blockers.push(Blocker::Settling(settled.since(context.now)));
    }
}

/// So many agents, of so many that are heard, say that the API server answers none of them, and nothing says otherwise.
pub fn agents_outage(context: &PlanContext<'_>) -> Option<(usize, usize)> {
    let says_otherwise = |of| leases_say_otherwise(context.cluster, &context.roster.timing, context.now, of);
    context.agents.outage(context.now).filter(|(_, of)| !says_otherwise(*of))
}

/// The agents that are heard speak for a small part of the nodes, and most nodes are of the others and renew their leases: the
/// API server is there, and what these agents lost is their own way to it. Two of a fleet of a hundred stopped every repair of
/// the other ninety-eight, and for as long as a broken switch is not mended.
pub fn leases_say_otherwise(cluster: &ClusterView, timing: &Timing, now: Time, agents: usize) -> bool {
    let (silent, leases) = cluster.silence();
    let (renewed, leases) = ((leases - silent) as usize, leases as usize);
    let is_small = agents * 100 < SPEAKS_PCT * leases;
    let most_renew = renewed.saturating_sub(agents) * 2 > leases;
    is_small && most_renew && cluster.leases_listed(now) <= timing.lease_silent_after
}

/// Agents say that the API server answers none of them: what looks like dead nodes is an outage.
pub(crate) fn agents_lost(context: &PlanContext<'_>, blockers: &mut Vec<Blocker>) {
    if let Some((lost, of)) = agents_outage(context) {
        blockers.push(Blocker::AgentsLost { lost: lost as u32, of: of as u32 });
    } else if let Some(over) = context.agents.outage_at() {
        settling(context, over, blockers);
    }
}

//! What stands against asking an agent, and what agents say against everything else.
//!
//! Asking loses nothing, so that no breaker and no budget of what can hurt counts: a controller that deletes the nodes of a
//! whole pool is what it is for. What others want with the machine does count, what its agent says of it, and whose it is.

use crate::model::agent::{ApiSaid, HoldKind};
use crate::model::id::AgentId;
use crate::model::incident::Subject;
use crate::model::roster::Timing;
use crate::model::time::Time;
use crate::observe::agents::AgentSeen;
use crate::observe::cluster::ClusterView;

use super::super::desk::{Case, Desk};
use super::super::hold::Hold;
use super::{leaving, network, shared_identity};
use crate::remedies::Rung;

/// With agents on this share of the nodes or more, percent, their word on the API server counts whatever leases say.
const SPEAKS_PCT: usize = 20;

/// What stands against asking this agent for the machine of a case.
pub(super) fn rejoin(desk: &Desk<'_>, case: &Case, agent: &AgentId, holds: &mut Vec<Hold>) {
    network(desk, case, Rung::Rejoin, holds);
    let Some((_, seen)) = desk.seen_of(&case.incident.key.subject) else {
        holds.push(Hold::NotOwned);
        return;
    };
    shared_identity(desk, case, seen, Rung::Rejoin, holds);
    if seen.nodes.len() > 1 {
        holds.push(Hold::Contested);
    }
    if seen.nodes.iter().any(|name| desk.cluster.answers(name)) {
        holds.push(Hold::Ready);
    }
    leaving(desk, seen, holds);
    if seen.instance.locked {
        holds.push(Hold::Locked);
    }
    if let Some(pool) = desk.pool(seen)
        && desk.rolling.get(&pool.name).is_some_and(|until| desk.now < *until)
    {
        holds.push(Hold::Rolling(pool.name.clone()));
    }
    agents_lost(desk, holds);
    its_own(desk, case, agent, holds);
}

/// What its agent says of the machine, and of itself.
fn its_own(desk: &Desk<'_>, case: &Case, agent: &AgentId, holds: &mut Vec<Hold>) {
    let Some(heard) = desk.agents.get(agent) else { return };
    let Subject::Machine(key) = &case.incident.key.subject else { return };
    let fresh = |(_, other): &(&AgentId, &AgentSeen)| desk.agents.is_fresh(desk.now, other);
    if desk.agents.of(key).filter(fresh).count() > 1 {
        holds.push(Hold::Contested);
    }
    if !heard.link.as_ref().is_some_and(|link| link.machine == *key && link.is_strong()) {
        holds.push(Hold::AgentByName);
    }
    let report = &heard.report;
    match &report.hold {
        Some(hold) if hold.kind == HoldKind::Leaving => holds.push(Hold::AgentLeaves(hold.text.clone())),
        Some(hold) => holds.push(Hold::AgentHolds(hold.text.clone())),
        None => {}
    }
    if let Some(work) = &report.work {
        let (what, attempt, of) = (work.what.clone(), work.attempt, work.of);
        holds.push(Hold::AgentWorks { what, attempt, of });
    }
    if matches!(report.api, ApiSaid::Lost | ApiSaid::LostByAll | ApiSaid::LostHere) {
        holds.push(Hold::AgentLost);
    } else if let Some(since) = heard.reaches_since {
        // A kubelet that reaches the API server again needs no restart to say so.
        settling(desk, since, holds);
    }
    let own = desk.book.flight_of(case.incident.id).map(|(intent, _)| intent);
    if let Some(intent) = desk.book.asked(agent).find(|intent| Some(*intent) != own) {
        holds.push(Hold::AskUnderWay(intent));
    }
}

/// Something has only just come back: whatever else does gets a while.
fn settling(desk: &Desk<'_>, since: Time, holds: &mut Vec<Hold>) {
    let settled = since + desk.roster.timing.settle;
    if desk.now < settled {
        holds.push(Hold::Settling(settled.since(desk.now)));
    }
}

/// So many agents, of so many that are heard, say that the API server answers none of them, and nothing says otherwise.
pub fn agents_outage(desk: &Desk<'_>) -> Option<(usize, usize)> {
    let says_otherwise = |of| leases_say_otherwise(desk.cluster, &desk.roster.timing, desk.now, of);
    desk.agents.outage(desk.now).filter(|(_, of)| !says_otherwise(*of))
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
pub(super) fn agents_lost(desk: &Desk<'_>, holds: &mut Vec<Hold>) {
    if let Some((lost, of)) = agents_outage(desk) {
        holds.push(Hold::AgentsLost { lost: lost as u32, of: of as u32 });
    } else if let Some(over) = desk.agents.outage_at() {
        settling(desk, over, holds);
    }
}

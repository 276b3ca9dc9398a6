//! What happens to many machines at once is another fault than each alone, and no repair of machines is begun beside it.
//!
//! ```text
//!  the counts, leases, freezes ─▶ a dark zone or fleet, too many at once, most away, recovering ─┐
//!  rollouts, other clients, machines whose fate is open ────────────────────────────────────────┴─▶ holds of the pool
//! ```
//!
//! The engine asks the same functions when it reviews its gates and freezes. How much is begun at once, `budget` says.

use crate::model::blocker::{Blocker, Scope};
use crate::model::id::{CloudName, InstanceId, PoolName, ZoneName};
use crate::model::incident::MachineKey;
use crate::model::repair_step::RepairStep;
use crate::model::roster::Limits;
use crate::model::time::{Span, Time};
use crate::observe::cloud::Seen;
use crate::observe::cluster::ClusterView;
use crate::observe::counts::{Count, Counts};
use crate::safeguard::{Safeguard, stands};

use super::super::context::{Case, PlanContext};
use super::super::others::Others;
use super::agents::agents_lost;

/// Share of silent leases that makes the fleet dark, percent (the early warning of Gardener's dependency watchdog).
const FLEET_DARK_PCT: u32 = 60;

/// While it is unknown what became of a machine, a client may be deleting in its pool. After this time that blocks no other
/// machine.
const FATE_OPEN: Span = Span::from_min(60);

/// How many machines are silent, of how many, where that is most of the fleet: the network or the control plane, not machines.
/// Their leases tell, or their Nodes, whose kubelets post no status: a list of leases may lack most of them (seed 5651788).
pub fn dark_fleet(cluster: &ClusterView, all: Count) -> Option<(u32, u32)> {
    let is_dark = |(silent, total): &(u32, u32)| *total >= 2 && silent * 100 >= FLEET_DARK_PCT * total;
    [cluster.silence(), (all.unheard, all.total())].into_iter().find(is_dark)
}

/// Most of the machines are not Ready: they have a problem, have not joined yet, or cannot be seen. This also holds where
/// no machine is late yet because all are new: too much is open to risk one more machine. A roster that tolerates as many
/// problems at once is the exception: its author has said how much is too much.
pub fn most_are_away(limits: &Limits, all: Count) -> bool {
    let (total, away) = (all.total(), all.total() - all.present);
    total >= 2 && away * 100 >= FLEET_DARK_PCT * total && away > limits.tolerated(total)
}

/// None of a zone's machines is Ready with a lease that is renewed: how many machines those are.
///
/// Zones of two clouds that have the same name are one zone where the clouds are projects of one region, and are otherwise
/// unrelated ("nova" is Nova's default). No API tells which of the two is true. So a machine's zone is dark when that holds
/// for all machines of that name, or for those of its own cloud.
pub fn dark_zone(counts: &Counts, cloud: &CloudName, zone: &ZoneName) -> Option<Count> {
    let (whole, own) = (counts.zone(zone), counts.zone_of(cloud, zone));
    [whole, own].into_iter().find(|count| count.total() >= 2 && count.present == 0)
}

/// Many at once is another fault than each alone.
pub(super) fn correlated(
    context: &PlanContext<'_>,
    seen: &Seen,
    repair_step: RepairStep,
    blockers: &mut Vec<Blocker>,
) {
    let Some(pool) = context.pool(seen) else { return };
    let mut scopes = vec![Scope::Pool(pool.name.clone()), Scope::Roster];
    if let Some(zone) = context.zone(seen) {
        if let Some(count) = dark_zone(context.counts, &pool.cloud, &zone) {
            blockers.push(Blocker::ZoneDark { zone: zone.clone(), machines: count.total() });
        }
        scopes.push(Scope::Zone(pool.cloud.clone(), zone));
    }
    agents_lost(context, blockers);
    if let Some((silent, total)) = dark_fleet(context.cluster, context.counts.all()) {
        blockers.push(Blocker::FleetDark { silent, total });
    }
    for (scope, count) in [
        (format!("pool {}", pool.name), context.counts.pool(&pool.name)),
        ("the roster".to_owned(), context.counts.all()),
    ] {
        if context.roster.limits.are_too_many(count.unhealthy, count.total()) {
            let (scope, tolerated) = (scope.into(), context.roster.limits.tolerated(count.total()));
            blockers.push(Blocker::Breaker {
                scope,
                unhealthy: count.unhealthy,
                total: count.total(),
                tolerated,
            });
        }
    }
    let all = context.counts.all();
    let frozen =
        blockers.iter().any(|blocker| matches!(blocker, Blocker::FleetDark { .. } | Blocker::Breaker { .. }));
    if most_are_away(&context.roster.limits, all) && !frozen {
        blockers.push(Blocker::MostAway { away: all.total() - all.present, total: all.total() });
    }
    // When what was away comes back, its machines come back one after another.
    for scope in scopes {
        if let Some(left) = context.freezes.left(context.now, context.roster.timing.settle, &scope) {
            blockers.push(Blocker::Recovering { scope, left });
        }
    }
    if context.rolling.get(&pool.name).is_some_and(|until| context.now < *until) {
        blockers.push(Blocker::Rolling(pool.name.clone()));
    }
    // The controller may clean up what another client's deletion left behind; it does nothing else beside that client.
    for others @ Others { at, until, what, .. } in context.others.of(&pool.name) {
        if repair_step != RepairStep::Cleanup && context.now < *until && !others.never_rests(context.now) {
            blockers.push(Blocker::OtherActor(format!("{what}, {} ago", context.now.since(*at)).into()));
        }
    }
}

/// A machine of the pool has gone from the listing, and it is still unknown what became of it: a client may be deleting
/// machines there.
pub(super) fn fates(context: &PlanContext<'_>, case: &Case, blockers: &mut Vec<Blocker>) {
    let Some((cloud, seen)) =
        context.seen_of(&case.incident.key.subject).filter(|_| stands(Safeguard::OpenFate))
    else {
        return;
    };
    let lately = |since: Time| context.now.since(since) < FATE_OPEN;
    // An earlier process may have seen it go.
    let missed = |id: &InstanceId, since: Time| {
        let key = MachineKey::Instance(cloud.name.clone(), id.clone());
        context.open_fates.get(&key).map_or(since, |told| since.min(*told))
    };
    // One whose marks do not tell whose it is may be of any pool.
    let beside = |id: &InstanceId, pool: Option<&PoolName>| {
        pool.is_none_or(|pool| Some(pool) == seen.pool()) && !context.book.deleted_by_us(id)
    };
    let went = |other: &&Seen| {
        let unlisted = other.unlisted.filter(|unlisted| !unlisted.is_gone());
        let id = &other.instance.id;
        unlisted.is_some_and(|unlisted| lately(missed(id, unlisted.since))) && beside(id, other.pool())
    };
    let missing = cloud.unlisted().find(went).map(|other| other.instance.name.as_str());
    // It went before this process had its first listing (seed 324).
    let missing = missing.or_else(|| {
        let listed = cloud.first_listed().filter(|at| lately(*at))?;
        let went =
            |(id, pool): &(&InstanceId, Option<&PoolName>)| lately(missed(id, listed)) && beside(id, *pool);
        context.known_unseen(cloud).find(went).map(|(id, _)| id.as_str())
    });
    if let Some(name) = missing {
        blockers.push(Blocker::OtherActor(
            format!("{name} is missing from the cloud's list, and the reason is not known yet").into(),
        ));
    }
}

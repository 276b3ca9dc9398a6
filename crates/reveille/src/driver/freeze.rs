//! Logs freezes: one line when a freeze begins, one when it and its settling time are over, none in between.
//!
//! A freeze is one of the engine's blockers. It is computed from machines and leases, and no record mentions it. The
//! operator needs to know it, because no machine of its scope is repaired while it lasts. Nothing is decided here.

use std::collections::BTreeSet;

use reveille_core::model::blocker::Scope;
use reveille_core::model::time::Time;
use reveille_core::observe::counts::Count;
use reveille_core::plan::context::PlanContext;
use reveille_core::plan::interlock;

/// The freezes of the last log lines.
#[derive(Clone, Debug, Default)]
pub(super) struct Freezes {
    told: BTreeSet<Scope>,
}

impl Freezes {
    /// Logs what changed since the last time. Before every source was read once, no machine counts as Ready; every
    /// process begins like that, so it is not logged.
    pub(super) fn review(&mut self, context: &PlanContext<'_>, now: Time) {
        // This runs after each event, and nearly always nothing is or was frozen, so it returns before it allocates names.
        if self.told.is_empty() && !context.freezes.is_any_frozen() {
            return;
        }
        if !context.cluster.synced_once() || context.clouds.values().any(|cloud| !cloud.listed_once()) {
            return;
        }
        for name in context.roster.pools.keys() {
            self.one(context, now, Scope::Pool(name.clone()), context.counts.pool(name));
        }
        self.one(context, now, Scope::Roster, context.counts.all());
    }

    fn one(&mut self, context: &PlanContext<'_>, now: Time, scope: Scope, count: Count) {
        let roster = context.roster.name.as_str();
        let is_frozen = context.freezes.is_frozen(&scope);
        let settles = context.freezes.left(now, context.roster.timing.settle, &scope).is_some();
        if is_frozen && !self.told.contains(&scope) {
            let why = reason(context, &scope, count);
            tracing::warn!(roster, frozen = true, "repairs of {scope} are frozen: {why}");
            self.told.insert(scope);
        } else if !is_frozen && !settles && self.told.remove(&scope) {
            let why = with_a_fault(count);
            tracing::info!(roster, frozen = false, "repairs of {scope} are not frozen any more: {why}");
        }
    }
}

fn with_a_fault(count: Count) -> String {
    format!("{} of {} machines have a fault", count.unhealthy, count.total())
}

fn reason(context: &PlanContext<'_>, scope: &Scope, count: Count) -> String {
    let limits = context.roster.limits;
    if limits.are_too_many(count.unhealthy, count.total()) {
        format!("{}, and the limit is {}", with_a_fault(count), limits.tolerated(count.total()))
    } else if *scope == Scope::Roster
        && let Some((silent, machines)) = interlock::dark_fleet(context.cluster, count)
    {
        format!("the kubelets of {silent} of {machines} machines are silent")
    } else {
        format!("{} of {} machines have no Ready node", count.total() - count.present, count.total())
    }
}

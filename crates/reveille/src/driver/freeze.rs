//! Logs freezes: one line when a freeze begins, one when it and its settling time are over, none in between.
//!
//! A freeze is one of the engine's blockers. It is computed from machines and leases, and no record mentions it. The
//! operator needs to know it, because no machine of its scope is repaired while it lasts. Nothing is decided here.

use std::collections::BTreeSet;

use reveille_core::model::hold::Scope;
use reveille_core::model::time::Time;
use reveille_core::observe::tally::Count;
use reveille_core::plan::desk::Desk;
use reveille_core::plan::interlock;

/// The freezes of the last log lines.
#[derive(Clone, Debug, Default)]
pub(super) struct Freezes {
    told: BTreeSet<Scope>,
}

impl Freezes {
    /// Logs what changed since the last time. Before every source was read once, no machine counts as Ready; every
    /// process begins like that, so it is not logged.
    pub(super) fn review(&mut self, desk: &Desk<'_>, now: Time) {
        // This runs after each event, and nearly always nothing is or was frozen, so it returns before it allocates names.
        if self.told.is_empty() && !desk.freezes.is_any_frozen() {
            return;
        }
        if !desk.cluster.synced_once() || desk.clouds.values().any(|cloud| !cloud.listed_once()) {
            return;
        }
        for name in desk.roster.pools.keys() {
            self.one(desk, now, Scope::Pool(name.clone()), desk.tally.pool(name));
        }
        self.one(desk, now, Scope::Roster, desk.tally.all());
    }

    fn one(&mut self, desk: &Desk<'_>, now: Time, scope: Scope, count: Count) {
        let roster = desk.roster.name.as_str();
        let is_frozen = desk.freezes.is_frozen(&scope);
        let settles = desk.freezes.left(now, desk.roster.timing.settle, &scope).is_some();
        if is_frozen && !self.told.contains(&scope) {
            let why = reason(desk, &scope, count);
            tracing::warn!(roster, frozen = true, "repairs of {scope} are frozen: {why}");
            self.told.insert(scope);
        } else if !is_frozen && !settles && self.told.remove(&scope) {
            let why = with_a_fault(count);
            tracing::info!(roster, frozen = false, "repairs of {scope} are not frozen any more: {why}");
        }
    }
}

fn with_a_fault(count: Count) -> String {
    format!("{} of {} machines have a fault", count.amiss, count.total())
}

fn reason(desk: &Desk<'_>, scope: &Scope, count: Count) -> String {
    let limits = desk.roster.limits;
    if limits.are_too_many(count.amiss, count.total()) {
        format!("{}, and the limit is {}", with_a_fault(count), limits.tolerated(count.total()))
    } else if *scope == Scope::Roster
        && let Some((silent, machines)) = interlock::dark_fleet(desk.cluster, count)
    {
        format!("the kubelets of {silent} of {machines} machines are silent")
    } else {
        format!("{} of {} machines have no Ready node", count.total() - count.present, count.total())
    }
}

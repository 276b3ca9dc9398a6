//! What is frozen, as log lines: one when a freeze begins, one when it ends, none while it lasts.
//!
//! A freeze is a hold like others in the engine, counted from machines and leases, and no record speaks of it. The operator
//! wants to know all the same: while it lasts no machine of that scope is repaired. The same counts and limits are compared
//! here as there; nothing is decided here.

use std::collections::BTreeSet;
use std::fmt;

use reveille_core::model::id::PoolName;
use reveille_core::observe::tally::Count;
use reveille_core::plan::desk::Desk;
use reveille_core::plan::interlock;

/// What a freeze covers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Scope {
    Roster,
    Leases,
    Pool(PoolName),
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Roster => f.write_str("the roster"),
            Self::Leases => f.write_str("the cluster"),
            Self::Pool(name) => write!(f, "pool {name}"),
        }
    }
}

/// What is frozen, as it was told last.
#[derive(Clone, Debug, Default)]
pub(super) struct Freezes {
    frozen: BTreeSet<Scope>,
}

impl Freezes {
    /// Tells what changed since the last time.
    pub(super) fn review(&mut self, desk: &Desk<'_>) {
        for name in desk.roster.pools.keys() {
            self.count(desk, || Scope::Pool(name.clone()), desk.tally.pool(name));
        }
        self.count(desk, || Scope::Roster, desk.tally.all());
        let (silent, total) = desk.cluster.silence();
        let says = || format!("{silent} of {total} node leases are silent");
        self.one(desk, || Scope::Leases, interlock::fleet_is_dark(desk.cluster), says);
    }

    fn count(&mut self, desk: &Desk<'_>, scope: impl FnOnce() -> Scope, count: Count) {
        let (amiss, total) = (count.amiss, count.total());
        let tolerated = desk.roster.limits.tolerated(total);
        let says = || format!("{amiss} of {total} machines have a fault, and the limit is {tolerated}");
        self.one(desk, scope, amiss > tolerated, says);
    }

    fn one(
        &mut self,
        desk: &Desk<'_>,
        scope: impl FnOnce() -> Scope,
        frozen: bool,
        says: impl FnOnce() -> String,
    ) {
        // Nearly always nothing is frozen and nothing was: no name is made for that.
        if !frozen && self.frozen.is_empty() {
            return;
        }
        let (roster, scope) = (desk.roster.name.as_str(), scope());
        match (frozen, self.frozen.contains(&scope)) {
            (true, false) => {
                let says = says();
                tracing::warn!(roster, frozen = true, "repairs of {scope} are frozen: {says}");
                self.frozen.insert(scope);
            }
            (false, true) => {
                let says = says();
                tracing::info!(roster, frozen = false, "repairs of {scope} are not frozen any more: {says}");
                self.frozen.remove(&scope);
            }
            (true, true) | (false, false) => {}
        }
    }
}

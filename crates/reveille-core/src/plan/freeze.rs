//! What was frozen and recovers: a pool, or the roster, of which too much was away and less is now.
//!
//! ```text
//!  too many away ─▶ frozen ─ fewer ─▶ recovering ─ no more came back for `settle` ─▶ over
//!                                        └──── another one came back: the wait begins anew
//! ```
//!
//! Eighty of two hundred nodes fell silent and came back at five a second. Without this the share fell below the limit, and three
//! machines were rebooted that would have been Ready a second later.
//!
//! It does not say what too many are: `interlock` does.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::model::id::PoolName;
use crate::model::incident::MachineKey;
use crate::model::time::{Span, Time};

/// What can be frozen.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// One pool.
    Pool(PoolName),
    /// Everything.
    Roster,
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pool(name) => write!(f, "pool {name}"),
            Self::Roster => f.write_str("the roster"),
        }
    }
}

/// What is frozen now, and what recovers from that.
#[derive(Clone, Debug, Default)]
pub struct Freezes {
    frozen: BTreeSet<Scope>,
    recovering: BTreeMap<Scope, Recovery>,
}

#[derive(Clone, Debug)]
struct Recovery {
    /// When the last machine came back.
    since: Time,
    /// Machines that were away when the freeze ended and did not come back since. Each of them is news once, so that one
    /// that comes and goes ends the wait too. By name and not by number: as many machines may be created as come back.
    away: BTreeSet<MachineKey>,
}

impl Freezes {
    /// How it is now: whether too many are away, which machines came back since the last review, and which are away.
    pub fn review(
        &mut self,
        now: Time,
        settle: Span,
        scope: &Scope,
        is_frozen: bool,
        back: &[MachineKey],
        away: impl FnOnce() -> BTreeSet<MachineKey>,
    ) {
        if is_frozen {
            self.recovering.remove(scope);
            self.frozen.insert(scope.clone());
        } else if self.frozen.remove(scope) {
            self.recovering.insert(scope.clone(), Recovery { since: now, away: away() });
        } else if let Some(recovery) = self.recovering.get_mut(scope) {
            // The clock may have gone back.
            recovery.since = recovery.since.min(now);
            for machine in back {
                if recovery.away.remove(machine) {
                    recovery.since = now;
                }
            }
            if now.since(recovery.since) >= settle {
                self.recovering.remove(scope);
            }
        }
    }

    /// Too much of something is away now.
    pub fn is_any_frozen(&self) -> bool {
        !self.frozen.is_empty()
    }

    /// Too much of it is away now.
    pub fn is_frozen(&self, scope: &Scope) -> bool {
        self.frozen.contains(scope)
    }

    /// How much longer it is left alone, unless another machine comes back.
    pub fn left(&self, now: Time, settle: Span, scope: &Scope) -> Option<Span> {
        let until = self.recovering.get(scope)?.since + settle;
        (now < until).then(|| until.since(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::id::NodeName;

    fn machines(names: &[&str]) -> BTreeSet<MachineKey> {
        names.iter().map(|name| MachineKey::Node(NodeName::from(*name))).collect()
    }

    #[test]
    fn recovery_is_over_when_nothing_came_back_for_long() {
        let (mut freezes, settle, at) =
            (Freezes::default(), Span::from_s(60), |s: i64| Time::from_ms(s * 1000));
        let mut see = |s: i64, frozen: bool, back: &[&str]| {
            let back: Vec<MachineKey> = machines(back).into_iter().collect();
            freezes.review(at(s), settle, &Scope::Roster, frozen, &back, || machines(&["a", "b", "c"]));
            freezes.left(at(s), settle, &Scope::Roster).map(|left| left.ms / 1000)
        };
        assert_eq!(see(0, false, &[]), None, "never frozen");
        assert_eq!(see(10, true, &[]), None, "frozen is another hold");
        assert_eq!(see(20, false, &[]), Some(60));
        assert_eq!(see(50, false, &["a", "b"]), Some(60), "more came back");
        assert_eq!(see(70, false, &["new"]), Some(40), "one that was not away then");
        assert_eq!(see(100, false, &["a"]), Some(10), "one that went again and came back: nothing new");
        assert_eq!(see(110, false, &[]), None);
    }
}

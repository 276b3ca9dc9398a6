//! What was frozen and recovers: a pool, a zone or the roster, of which too many machines were away and fewer are now.
//!
//! ```text
//!  too many away ─▶ frozen ─ fewer ─▶ recovering ─ no more came back for `settle` ─▶ settled
//!  first sight ───────────────────────▶   └──── another one came back: the wait starts from zero
//! ```
//!
//! Eighty of two hundred Nodes fell silent and came back at five a second. Without this wait the share fell below the
//! limit, and the controller rebooted three machines that would have been Ready a second later. A pool, zone or roster that
//! is seen for the first time counts as recovering: a process that starts in the middle of such a return cannot know of it,
//! and needs no record of it.
//!
//! `interlock` says how many are too many; this module does not.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::blocker::Scope;
use crate::model::incident::MachineKey;
use crate::model::time::{Span, Time};

/// What is frozen now, and what recovers from that.
#[derive(Clone, Debug, Default)]
pub struct Freezes(BTreeMap<Scope, Phase>);

#[derive(Clone, Debug)]
enum Phase {
    Frozen,
    Recovering {
        /// When the last machine came back.
        since: Time,
        /// Machines that were away when the freeze ended and did not come back since. Each of them is news once, so that one
        /// that comes and goes ends the wait too. By name and not by number: as many machines may be created as come back.
        away: BTreeSet<MachineKey>,
    },
    Settled,
}

impl Freezes {
    /// How it is now: whether too many are away, which machines came back since the last review, and which are away.
    pub fn review(
        &mut self,
        now: Time,
        settle: Span,
        scope: Scope,
        is_frozen: bool,
        back: &[MachineKey],
        away: impl FnOnce() -> BTreeSet<MachineKey>,
    ) {
        let phase = self.0.entry(scope).or_insert(Phase::Frozen);
        match phase {
            _ if is_frozen => *phase = Phase::Frozen,
            Phase::Frozen => *phase = Phase::Recovering { since: now, away: away() },
            Phase::Recovering { since, away } => {
                // The clock may have gone back.
                *since = (*since).min(now);
                for machine in back {
                    if away.remove(machine) {
                        *since = now;
                    }
                }
                if now.since(*since) >= settle {
                    *phase = Phase::Settled;
                }
            }
            Phase::Settled => {}
        }
    }

    /// The process slept: it did not see which machines came back meanwhile, so the wait starts from zero.
    pub fn go_on_at(&mut self, now: Time) {
        for phase in self.0.values_mut() {
            if let Phase::Recovering { since, .. } = phase {
                *since = now;
            }
        }
    }

    /// What is not there any more is not remembered. With no more remembered than the `count` that are there, nothing is asked.
    pub fn retain(&mut self, count: usize, is_there: impl Fn(&Scope) -> bool) {
        if self.0.len() > count {
            self.0.retain(|scope, _| is_there(scope));
        }
    }

    /// Too much of something is away now.
    pub fn is_any_frozen(&self) -> bool {
        self.0.values().any(|phase| matches!(phase, Phase::Frozen))
    }

    /// Too much of it is away now.
    pub fn is_frozen(&self, scope: &Scope) -> bool {
        matches!(self.0.get(scope), Some(Phase::Frozen))
    }

    /// How much longer it is left alone, unless another machine comes back.
    pub fn left(&self, now: Time, settle: Span, scope: &Scope) -> Option<Span> {
        let Some(Phase::Recovering { since, .. }) = self.0.get(scope) else { return None };
        let until = *since + settle;
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
            freezes.review(at(s), settle, Scope::Roster, frozen, &back, || machines(&["a", "b", "c"]));
            freezes.left(at(s), settle, &Scope::Roster).map(|left| left.ms / 1000)
        };
        assert_eq!(see(-100, false, &[]), Some(60), "what was before the first sight is not known");
        assert_eq!(see(-70, false, &["b"]), Some(60), "and goes on");
        assert_eq!(see(-10, false, &[]), None);
        assert_eq!(see(0, false, &["a"]), None, "never frozen");
        assert_eq!(see(10, true, &[]), None, "frozen is another blocker");
        assert_eq!(see(20, false, &[]), Some(60));
        assert_eq!(see(50, false, &["a", "b"]), Some(60), "more came back");
        assert_eq!(see(70, false, &["new"]), Some(40), "one that was not away then");
        assert_eq!(see(100, false, &["a"]), Some(10), "one that went again and came back: nothing new");
        assert_eq!(see(110, false, &[]), None);
    }
}

//! Before the first call: do the marks of a roster that was read from a file fit the instances in the project?
//!
//! The judgement is the one of `reveille run`, at the same moment: a full listing, compared with all instances in the project.
//! Reveille itself pauses a pool whose marks do not fit until they do; the pause stands beside those of people.

use std::collections::{BTreeMap, BTreeSet};

use reveille_core::event::{CloudFact, Command, Event, Pause, PauseScope, Scope};
use reveille_core::model::id::PoolName;
use reveille_wire::roster::Written;
use reveille_wire::roster::mark_check::{MarkCounts, matches_warning};

use super::Drive;

/// Where the marks of each pool are written, and what Reveille holds its hands off by itself.
#[derive(Clone, Debug, Default)]
pub(super) struct OwnershipCheck {
    written: BTreeMap<PoolName, Written>,
    pub(super) pauses: BTreeSet<Pause>,
}

impl Drive {
    /// Holds every full listing against the marks of a roster whose pools' marks are written there.
    #[must_use]
    pub fn with_ownership_check(mut self, written: BTreeMap<PoolName, Written>) -> Self {
        self.ownership_check = Some(OwnershipCheck { written, pauses: BTreeSet::new() });
        self
    }

    /// Every standing "hands off".
    pub(super) fn all_pauses(&self) -> BTreeSet<Pause> {
        let own = self.ownership_check.iter().flat_map(|ownership_check| &ownership_check.pauses);
        self.pauses.iter().chain(own).cloned().collect()
    }

    /// Looks at an event before the engine does.
    pub(super) fn be_cautious(&mut self, event: &Event) {
        let Event::Cloud { cloud, fact: CloudFact::Snapshot { snapshot, .. } } = event else { return };
        let Some(ownership_check) = self.ownership_check.as_mut().filter(|_| snapshot.scope == Scope::Full)
        else {
            return;
        };
        let there = MarkCounts::of(self.world.everybody());
        let odd = matches_warning(&self.roster, cloud, &there);
        let forbidding = odd.into_iter().filter(|warning| warning.forbids_acting());
        let pause = |warning: reveille_wire::roster::mark_check::MatchWarning| Pause {
            scope: PauseScope::Pool(warning.pool.shared()),
            by: "reveille itself".into(),
            reason: warning.complaint(ownership_check.written.get(&warning.pool)).into(),
        };
        let pauses: BTreeSet<Pause> = forbidding.map(pause).collect();
        if std::mem::replace(&mut ownership_check.pauses, pauses.clone()) != pauses {
            let all = self.all_pauses();
            self.step(Event::Command(Command::Pauses(all)));
        }
    }
}

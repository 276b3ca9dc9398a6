//! Before anything is done: do the roster's marks fit what is really there?
//!
//! A mark that matches nobody, or everybody including other clusters' machines, is a mistake in the roster that only real
//! instances reveal. Each full listing is compared; a pool whose marks do not fit is paused by us until they do, with
//! the explanation as the reason, so that it shows wherever a pause shows. Listings hold only instances with a cluster
//! mark of a roster, so "everybody" is judged among those.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use reveille_core::event::{CloudFact, CloudSnapshot, Event, Pause, PauseScope, Scope};
use reveille_core::model::id::CloudName;
use reveille_core::model::instance::Instance;
use reveille_core::model::roster::Roster;
use reveille_wire::roster::look::matches_warning;

use super::pauses::OURSELVES;

/// Pauses of our own, by the cloud whose listing gave rise to them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Caution {
    by_cloud: BTreeMap<CloudName, BTreeSet<Pause>>,
}

impl Caution {
    /// What we hold our hands off by ourselves.
    pub(crate) fn pauses(&self) -> impl Iterator<Item = &Pause> {
        self.by_cloud.values().flatten()
    }

    /// Looks at an event before the engine does. True when the pauses changed.
    pub(crate) fn review(&mut self, roster: &Roster, event: &Event) -> bool {
        let Event::Cloud { cloud, fact: CloudFact::Snapshot(snapshot) } = event else { return false };
        if snapshot.scope != Scope::Full {
            return false;
        }
        let found = pauses_for(roster, cloud, snapshot);
        let known = self.by_cloud.entry(cloud.clone()).or_default();
        if *known == found {
            return false;
        }
        for pause in &found {
            tracing::warn!(roster = %roster.name, "nothing is done there: {}", pause.reason);
        }
        *known = found;
        true
    }
}

fn pauses_for(roster: &Roster, cloud: &CloudName, snapshot: &CloudSnapshot) -> BTreeSet<Pause> {
    let marks: BTreeSet<_> =
        roster.pools.values().filter(|pool| pool.cloud == *cloud).map(|pool| &pool.owned.cluster).collect();
    // The listing is shared with other rosters; theirs are not for us to judge.
    let ours: Vec<Arc<Instance>> = snapshot
        .instances
        .iter()
        .filter(|instance| marks.iter().any(|mark| instance.marks.contains(*mark)))
        .cloned()
        .collect();
    let warnings = matches_warning(roster, cloud, &ours);
    let forbidding = warnings.iter().filter(|warning| warning.forbids_acting());
    forbidding
        .map(|warning| Pause {
            scope: PauseScope::Pool(warning.pool().shared()),
            by: Arc::from(OURSELVES),
            reason: Arc::from(warning.to_string()),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::Field;

    fn listed(field: &Field) -> Event {
        let fact = CloudFact::Snapshot(Arc::new(field.cloud.clone()));
        Event::Cloud { cloud: "os".into(), fact }
    }

    #[test]
    fn a_pool_whose_mark_matches_nobody_is_paused_until_it_does() {
        let mut field = Field::of(2, true);
        let mut roster = crate::fixture::roster();
        let mut caution = Caution::default();
        assert!(!caution.review(&roster, &listed(&field)), "every mark fits");
        for pool in roster.pools.values_mut() {
            pool.owned.pool = Some(reveille_core::model::instance::Mark::Tag("k8s-pool=typo".into()));
        }
        assert!(caution.review(&roster, &listed(&field)));
        let reasons: Vec<String> = caution.pauses().map(|pause| pause.reason.to_string()).collect();
        assert!(reasons.len() == 1 && reasons[0].contains("none of"), "{reasons:?}");
        field.cloud.scope = Scope::Changes;
        field.cloud.instances.clear();
        assert!(!caution.review(&roster, &listed(&field)), "a listing of changes proves nothing");
        let mended = crate::fixture::roster();
        assert!(caution.review(&mended, &listed(&Field::of(2, true))));
        assert_eq!(caution.pauses().count(), 0);
    }
}

//! Checks before any repair whether the roster's marks match the instances that exist.
//!
//! ```text
//!  full listing, with strangers ─▶ a count of strangers' marks ────┐
//!  full listing ───────────────────────────────────────────────────┴▶ matches_warning ─▶ pause of the pool, by the controller
//! ```
//!
//! A mark that matches no instance, or every instance including those of other clusters, is a mistake in the roster that only
//! real instances reveal. The check compares each full listing. It pauses a pool whose marks do not match until they do, with
//! the explanation as the reason, so that every place that shows pauses shows it. Listings hold only instances with a cluster
//! mark of a roster. The other instances of the project (strangers) are counted at the start and now and then after that, and
//! the count comes beside the events. Nothing is decided here: the pause blocks repairs like a pause of an operator.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use reveille_core::event::{CloudFact, CloudSnapshot, Event, Pause, PauseScope, Scope};
use reveille_core::model::id::{CloudName, PoolName};
use reveille_core::model::instance::Instance;
use reveille_core::model::roster::{Ownership, Pool, Roster};
use reveille_wire::roster::Written;
use reveille_wire::roster::mark_check::{MarkCounts, MatchWarning, Odd, matches_warning};

use crate::adapters::cloud::Strangers;

/// The author of a pause that the controller itself sets.
pub(super) const OURSELVES: &str = "reveille itself";

/// Pauses of the controller itself, by the cloud whose listing caused them.
#[derive(Clone, Debug, Default)]
pub(crate) struct OwnershipCheck {
    written: BTreeMap<PoolName, Written>,
    strangers: BTreeMap<CloudName, Strangers>,
    by_cloud: BTreeMap<CloudName, Vec<MatchWarning>>,
    /// Pools whose marks were on an instance once. Such marks are no typing mistake, even if a later list has none of them.
    met: Vec<(PoolName, Ownership)>,
    pauses: BTreeSet<Pause>,
}

impl OwnershipCheck {
    /// A check for a roster; `written` says where the marks of its pools are written.
    pub(crate) fn new(
        written: BTreeMap<PoolName, Written>,
        strangers: BTreeMap<CloudName, Strangers>,
    ) -> Self {
        Self { written, strangers, ..Self::default() }
    }

    /// The pauses of the controller itself.
    pub(crate) fn pauses(&self) -> impl Iterator<Item = &Pause> {
        self.pauses.iter()
    }

    /// Checks an event before the engine gets it. True when the pauses changed.
    pub(crate) fn review(&mut self, roster: &Roster, event: &Event) -> bool {
        let Event::Cloud { cloud, fact: CloudFact::Snapshot { snapshot, .. } } = event else { return false };
        let known = self.by_cloud.entry(cloud.clone()).or_default();
        let found = match snapshot.scope {
            Scope::Full => {
                let there = mark_counts(roster, cloud, snapshot, self.strangers.get(cloud));
                let mut found = matches_warning(roster, cloud, &there);
                if there != MarkCounts::default() {
                    meet(&mut self.met, roster, cloud, &found);
                }
                let met = |name: &PoolName| {
                    let pool = roster.pools.get(name);
                    pool.is_some_and(|pool| self.met.iter().any(|(n, o)| n == name && *o == pool.owned))
                };
                found.retain(|warning| warning.odd != Odd::NoMatch || !met(&warning.pool));
                found
            }
            Scope::Changes => still(roster, known, snapshot),
        };
        if *known == found {
            return false;
        }
        for warning in found.iter().filter(|warning| !known.contains(warning)) {
            let complaint = warning.complaint(self.written.get(&warning.pool));
            if warning.forbids_acting() {
                tracing::warn!(roster = %roster.name, "{complaint}");
            } else {
                tracing::info!(roster = %roster.name, "{complaint}");
            }
        }
        *known = found;
        let forbidding = self.by_cloud.values().flatten().filter(|warning| warning.forbids_acting());
        let pause = |warning: &MatchWarning| Pause {
            scope: PauseScope::Pool(warning.pool.shared()),
            by: Arc::from(OURSELVES),
            reason: Arc::from(warning.complaint(self.written.get(&warning.pool))),
        };
        let pauses = forbidding.map(pause).collect();
        let changed = self.pauses != pauses;
        self.pauses = pauses;
        changed
    }
}

/// All instances that exist. Without a count of strangers, only those with a mark of this roster: other rosters share the
/// listing, and their instances alone would look like all strangers.
fn mark_counts(
    roster: &Roster,
    cloud: &CloudName,
    snapshot: &CloudSnapshot,
    strangers: Option<&Strangers>,
) -> MarkCounts {
    let strangers = strangers.and_then(|counted| counted.borrow().clone());
    if let Some(strangers) = strangers {
        return MarkCounts::of(&snapshot.instances).and(&strangers);
    }
    let marks: BTreeSet<_> =
        roster.pools.values().filter(|pool| pool.cloud == *cloud).map(|pool| &pool.owned.cluster).collect();
    let ours = |instance: &&Arc<Instance>| marks.iter().any(|mark| instance.marks.contains(*mark));
    MarkCounts::of(snapshot.instances.iter().filter(ours))
}

/// Remembers the pools whose marks are on an instance now.
fn meet(met: &mut Vec<(PoolName, Ownership)>, roster: &Roster, cloud: &CloudName, found: &[MatchWarning]) {
    for pool in roster.pools.values().filter(|pool| pool.cloud == *cloud) {
        let none = |warning: &MatchWarning| warning.pool == pool.name && warning.odd == Odd::NoMatch;
        let known = met.iter().any(|(name, owned)| *name == pool.name && *owned == pool.owned);
        if !known && !found.iter().any(none) {
            met.push((pool.name.clone(), pool.owned.clone()));
        }
    }
}

/// A listing of changes proves no absence; but the first machine of a pool proves that an instance carries its marks.
fn still(roster: &Roster, known: &[MatchWarning], changes: &CloudSnapshot) -> Vec<MatchWarning> {
    let carries = |pool: &Pool, instance: &Instance| {
        let marks = pool.owned.pool.iter().chain([&pool.owned.cluster]);
        !instance.state.is_leaving() && marks.into_iter().all(|mark| instance.marks.contains(mark))
    };
    let appeared = |name: &PoolName| {
        let pool = roster.pools.get(name);
        pool.is_some_and(|pool| changes.instances.iter().any(|instance| carries(pool, instance)))
    };
    known.iter().filter(|warning| warning.odd != Odd::NoMatch || !appeared(&warning.pool)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use tokio::sync::watch;

    use super::*;
    use crate::fixture::Field;

    fn listed(field: &Field) -> Event {
        let fact = CloudFact::read(field.cloud.clone());
        Event::Cloud { cloud: "os".into(), fact }
    }

    #[test]
    fn pool_whose_mark_matches_no_machine_is_paused_until_it_does() {
        let mut field = Field::of(2, true);
        let mut roster = crate::fixture::roster();
        let mut ownership_check = OwnershipCheck::default();
        assert!(!ownership_check.review(&roster, &listed(&field)), "every mark fits");
        for pool in roster.pools.values_mut() {
            pool.owned.pool = Some(reveille_core::model::instance::Mark::Tag("k8s-pool=typo".into()));
        }
        assert!(ownership_check.review(&roster, &listed(&field)));
        let reasons: Vec<String> = ownership_check.pauses().map(|pause| pause.reason.to_string()).collect();
        assert!(reasons.len() == 1 && reasons[0].contains("none of"), "{reasons:?}");
        field.cloud.scope = Scope::Changes;
        field.cloud.instances.clear();
        assert!(!ownership_check.review(&roster, &listed(&field)), "a listing of changes proves nothing");
        let mended = crate::fixture::roster();
        assert!(ownership_check.review(&mended, &listed(&Field::of(2, true))));
        assert_eq!(ownership_check.pauses().count(), 0);
    }

    #[test]
    fn foreign_instances_show_a_mark_on_no_machine_or_on_all() {
        let mark = |text: &str| reveille_core::model::instance::Mark::Tag(text.into());
        let mut roster = crate::fixture::roster();
        let web = Instance { marks: Arc::new([mark("web")].into()), ..crate::fixture::instance("7") };
        let (count, counted) = watch::channel(None);
        let written =
            Written { file: "r.yaml".into(), at: Default::default(), field: "spec.pools[0].owned".into() };
        let written = BTreeMap::from([(PoolName::from("workers"), written)]);
        let mut ownership_check = OwnershipCheck::new(written, BTreeMap::from([("os".into(), counted)]));
        let none = Field::of(0, true);
        assert!(!ownership_check.review(&roster, &listed(&none)), "the strangers are not counted yet");
        count.send_replace(Some(Arc::new(MarkCounts::of(&[Arc::new(web.clone())]))));
        assert!(ownership_check.review(&roster, &listed(&none)));
        let reason = ownership_check.pauses().next().map(|pause| pause.reason.to_string()).unwrap();
        assert!(
            reason.starts_with("r.yaml:0:0: spec.pools[0].owned: none of the project's 1 instances"),
            "{reason}"
        );
        let mut born = Field::of(1, true);
        born.cloud.scope = Scope::Changes;
        assert!(ownership_check.review(&roster, &listed(&born)), "its first machine ends the doubt at once");
        assert_eq!(ownership_check.pauses().count(), 0);
        for pool in roster.pools.values_mut() {
            pool.owned.cluster = mark("web");
        }
        born.cloud.instances = vec![Arc::new(web)];
        born.cloud.scope = Scope::Full;
        assert!(
            ownership_check.review(&roster, &listed(&born)),
            "two of two carry a mark that names no cluster"
        );
        let reason = ownership_check.pauses().next().map(|pause| pause.reason.to_string()).unwrap();
        assert!(reason.contains("tag web does not say of which cluster"), "{reason}");
    }

    #[test]
    fn emptied_list_proves_nothing_about_marks_seen_before() {
        let stranger = Arc::new(Instance { marks: Arc::default(), ..crate::fixture::instance("7") });
        let counted = watch::channel(Some(Arc::new(MarkCounts::of(&[stranger])))).1;
        let mut ownership_check =
            OwnershipCheck::new(BTreeMap::new(), BTreeMap::from([("os".into(), counted)]));
        let roster = crate::fixture::roster();
        assert!(!ownership_check.review(&roster, &listed(&Field::of(2, true))));
        assert!(
            !ownership_check.review(&roster, &listed(&Field::of(0, true))),
            "the list is to be doubted, not the roster"
        );
        assert_eq!(ownership_check.pauses().count(), 0);
    }
}

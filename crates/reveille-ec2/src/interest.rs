//! What several rosters want to know of one account, as one question.
//!
//! However many pools and rosters there are, an account is asked once a cycle; [`Interest`] is the union of what they all need.
//! Listing by tag saves AWS and us the rest of the account. It is never proof: marks are read again from each object.

use std::collections::BTreeSet;

use reveille_core::model::id::{CloudName, RouterId};
use reveille_core::model::instance::{Instance, Mark};
use reveille_core::model::roster::{GroupRef, Roster};

/// EC2 takes no more values in one filter.
pub(crate) const FILTER_VALUES_MAX: usize = 200;

/// What is asked of one account.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interest {
    /// The cluster marks of all pools here: an instance counts when it carries at least one.
    pub cluster_marks: BTreeSet<Mark>,
    /// Groups that pools need, by name or id.
    pub groups: BTreeSet<GroupRef>,
    /// Routers that carry pod routes.
    pub routers: BTreeSet<RouterId>,
}

impl Interest {
    /// The union of what these rosters want here. The same account may have another name in each roster, so each comes
    /// with its own name for it.
    pub fn of(rosters: &[(&Roster, &CloudName)]) -> Self {
        let mut interest = Self::default();
        for (roster, cloud) in rosters {
            for pool in roster.pools.values().filter(|pool| pool.cloud == **cloud) {
                interest.cluster_marks.insert(pool.owned.cluster.clone());
                interest.groups.extend(pool.groups.iter().cloned());
            }
            if let Some((at, router)) = &roster.network.router
                && at == *cloud
            {
                interest.routers.insert(router.clone());
            }
        }
        interest
    }

    /// The filter to list by, a name and its values. `None`: everything must be listed, because more is asked for than one
    /// filter can say.
    pub(crate) fn filter(&self) -> Option<(String, BTreeSet<String>)> {
        let mut keys = BTreeSet::new();
        let mut values = BTreeSet::new();
        for mark in &self.cluster_marks {
            match mark {
                Mark::Tag(key) => keys.insert(key.to_string()),
                Mark::Metadata(key, value) => values.insert(value.to_string()) | keys.insert(key.to_string()),
            };
        }
        let pairs_only = self.cluster_marks.iter().all(|mark| matches!(mark, Mark::Metadata(..)));
        let of_one_key = keys.first().filter(|_| keys.len() == 1 && pairs_only);
        let filter = match of_one_key {
            Some(key) => (format!("tag:{key}"), values),
            None => ("tag-key".to_owned(), keys),
        };
        (1..=FILTER_VALUES_MAX).contains(&filter.1.len()).then_some(filter)
    }

    /// True when the object itself says that it is of one of these clusters.
    pub fn claims(&self, instance: &Instance) -> bool {
        self.cluster_marks.iter().any(|mark| instance.marks.contains(mark))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_filter_says_what_all_rosters_want_or_everything_is_listed() {
        let tag = |key: &str| Mark::Tag(key.into());
        let pair = |key: &str, value: &str| Mark::Metadata(key.into(), value.into());
        let filter = |marks: &[Mark]| {
            let interest = Interest { cluster_marks: marks.iter().cloned().collect(), ..Interest::default() };
            interest.filter().map(|(name, values)| format!("{name}={}", Vec::from_iter(values).join(",")))
        };
        let cases: [(&[Mark], Option<&str>); 5] = [
            (
                &[tag("kubernetes.io/cluster/a"), tag("kubernetes.io/cluster/b")],
                Some("tag-key=kubernetes.io/cluster/a,kubernetes.io/cluster/b"),
            ),
            (&[pair("cluster", "a"), pair("cluster", "b")], Some("tag:cluster=a,b")),
            (&[pair("cluster", "a"), pair("team", "b")], Some("tag-key=cluster,team")),
            (&[pair("cluster", "a"), tag("x")], Some("tag-key=cluster,x")),
            (&[], None),
        ];
        for (marks, expected) in cases {
            assert_eq!(filter(marks).as_deref(), expected, "{marks:?}");
        }
        let many: Vec<Mark> =
            (0..=FILTER_VALUES_MAX).map(|n| tag(&format!("kubernetes.io/cluster/{n}"))).collect();
        assert_eq!(filter(&many), None);
    }
}

//! What several rosters want to know of one project, as one question.
//!
//! However many pools and rosters there are, a project is asked once a cycle; [`Interest`] is the union of what they all need. An
//! adapter makes its filters from it. A filter saves the cloud and us the rest of the project; it is never proof: marks are read
//! again from each object, by [`Interest::claims`].

use std::collections::BTreeSet;

use reveille_core::model::id::{CloudName, RouterId};
use reveille_core::model::instance::{Instance, Mark};
use reveille_core::model::roster::{GroupRef, Roster};

/// What is asked of one project.
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
    /// The union of what these rosters want here. The same project may have another name in each roster, so each comes
    /// with its own name for it.
    pub fn of<'r>(rosters: impl IntoIterator<Item = (&'r Roster, &'r CloudName)>) -> Self {
        let mut interest = Self::default();
        for (roster, cloud) in rosters {
            for pool in roster.pools.values().filter(|pool| pool.cloud == *cloud) {
                interest.cluster_marks.insert(pool.owned.cluster.clone());
                interest.groups.extend(pool.groups.iter().cloned());
            }
            if let Some((at, router)) = &roster.network.router
                && at == cloud
            {
                interest.routers.insert(router.clone());
            }
        }
        interest
    }

    /// True when the object itself says that it is of one of these clusters.
    pub fn claims(&self, instance: &Instance) -> bool {
        self.cluster_marks.iter().any(|mark| instance.marks.contains(mark))
    }
}

/// Groups by their names and by their ids: services filter by one of the two.
pub fn names_and_ids<'g>(groups: impl IntoIterator<Item = &'g GroupRef>) -> (Vec<String>, Vec<String>) {
    let (mut names, mut ids) = (Vec::new(), Vec::new());
    for group in groups {
        match group {
            GroupRef::Id(id) => ids.push(id.to_string()),
            GroupRef::Name(name) => names.push(name.to_string()),
        }
    }
    (names, ids)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use reveille_core::model::id::{PoolName, RosterName};
    use reveille_core::model::roster::Access;
    use reveille_core::model::roster::{Deadlines, Limits, Network, Ownership, Pool, Repair, Timing};

    use super::*;

    fn pool(name: &str, cloud: &str, mark: Mark, group: &str) -> Pool {
        Pool {
            name: PoolName::from(name),
            cloud: CloudName::from(cloud),
            owned: Ownership { cluster: mark, pool: None },
            groups: vec![GroupRef::Name(group.into())],
            min: 0,
            deadlines: Deadlines::default(),
            repair: Repair::default(),
            paused: false,
            startup_taints: Vec::new(),
            keep: None,
            through_group: false,
        }
    }

    fn roster(pools: Vec<Pool>, router: (&str, &str)) -> Roster {
        Roster {
            name: RosterName::from("r"),
            clouds: Vec::new(),
            settles: BTreeMap::new(),
            network: Network {
                router: Some((CloudName::from(router.0), RouterId::from(router.1))),
                ..Network::default()
            },
            pools: pools.into_iter().map(|pool| (pool.name.clone(), pool)).collect::<BTreeMap<_, _>>(),
            access: Access::default(),
            limits: Limits::default(),
            timing: Timing::default(),
        }
    }

    #[test]
    fn rosters_meet_in_one_project_under_names_of_their_own() {
        let tag = |text: &str| Mark::Tag(text.into());
        let (here, os, elsewhere) = (CloudName::from("here"), CloudName::from("os"), "elsewhere");
        let one = roster(
            vec![pool("a", "here", tag("c=1"), "g1"), pool("b", elsewhere, tag("c=x"), "gx")],
            ("here", "r1"),
        );
        let two = roster(
            vec![pool("a", "os", tag("c=2"), "g1"), pool("b", "os", tag("c=2"), "g2")],
            (elsewhere, "rx"),
        );
        let interest = Interest::of([(&one, &here), (&two, &os)]);
        assert_eq!(interest.cluster_marks, BTreeSet::from([tag("c=1"), tag("c=2")]));
        let names = ["g1", "g2"].map(|name| GroupRef::Name(name.into()));
        assert_eq!(interest.groups, BTreeSet::from(names));
        assert_eq!(interest.routers, BTreeSet::from([RouterId::from("r1")]));
        assert_eq!(names_and_ids(&interest.groups).0, ["g1", "g2"]);
    }
}

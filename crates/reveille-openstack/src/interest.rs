//! What several rosters want to know of one project, as one question.
//!
//! However many pools and rosters there are, a project is asked four times a cycle; [`Interest`] is the union of what
//! they all need. Listing by tag saves the cloud and us the rest of the project, and only works when every cluster is
//! marked by a tag. It is never proof: marks are read again from each object.

use std::collections::BTreeSet;
use std::sync::Arc;

use reveille_core::model::id::{CloudName, RouterId};
use reveille_core::model::instance::{Instance, Mark};
use reveille_core::model::roster::{GroupRef, Roster};

/// A longer query may be refused by a proxy; above this, everything is listed.
const TAGS_MAX_BYTES: usize = 4000;

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

    /// The tags to list by. `None`: everything must be listed, because a cluster is marked by metadata (which Nova does
    /// not filter by for a plain member), or because the question would be too long.
    pub fn cluster_tags(&self) -> Option<BTreeSet<Arc<str>>> {
        let mut tags = BTreeSet::new();
        for mark in &self.cluster_marks {
            match mark {
                // Nova's filter splits at commas; its tags cannot hold one.
                Mark::Tag(tag) if !tag.contains(',') => tags.insert(tag.clone()),
                Mark::Tag(_) => true,
                Mark::Metadata(..) => return None,
            };
        }
        let bytes: usize = tags.iter().map(|tag| tag.len() + 3).sum();
        (bytes <= TAGS_MAX_BYTES).then_some(tags)
    }

    /// True when the object itself says that it is of one of these clusters.
    pub fn claims(&self, instance: &Instance) -> bool {
        self.cluster_marks.iter().any(|mark| instance.marks.contains(mark))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use reveille_core::model::access::Access;
    use reveille_core::model::id::{PoolName, RosterName};
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
            settles: std::collections::BTreeMap::new(),
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

    fn tag(text: &str) -> Mark {
        Mark::Tag(text.into())
    }

    #[test]
    fn rosters_meet_in_one_project_under_names_of_their_own() {
        let (here, os, elsewhere) = (CloudName::from("here"), CloudName::from("os"), "elsewhere");
        let one = roster(
            vec![pool("a", "here", tag("c=1"), "g1"), pool("b", elsewhere, tag("c=x"), "gx")],
            ("here", "r1"),
        );
        let two = roster(
            vec![pool("a", "os", tag("c=2"), "g1"), pool("b", "os", tag("c=2"), "g2")],
            (elsewhere, "rx"),
        );
        let interest = Interest::of(&[(&one, &here), (&two, &os)]);
        assert_eq!(interest.cluster_marks, BTreeSet::from([tag("c=1"), tag("c=2")]));
        let names = ["g1", "g2"].map(|name| GroupRef::Name(name.into()));
        assert_eq!(interest.groups, BTreeSet::from(names));
        assert_eq!(interest.routers, BTreeSet::from([RouterId::from("r1")]));
        let tags = ["c=1", "c=2"].map(Arc::from);
        assert_eq!(interest.cluster_tags(), Some(BTreeSet::from(tags)));
    }

    #[test]
    fn one_cluster_marked_by_metadata_or_too_many_tags_list_everything() {
        let of =
            |marks: Vec<Mark>| Interest { cluster_marks: marks.into_iter().collect(), ..Interest::default() };
        assert_eq!(of(vec![tag("c=1"), Mark::Metadata("c".into(), "2".into())]).cluster_tags(), None);
        assert_eq!(
            of((0..200).map(|n| tag(&format!("k8s-cluster=number-{n:04}"))).collect()).cluster_tags(),
            None
        );
        // Nova's tags hold no comma, and its filter would split there.
        assert_eq!(of(vec![tag("a,b")]).cluster_tags(), Some(BTreeSet::new()));
    }
}

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

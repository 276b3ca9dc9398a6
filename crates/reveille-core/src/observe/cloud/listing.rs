//! Compares a full listing of instances with those that are known: what is new in it, and which instances it lacks.
//!
//! ```text
//!  listing ─▶ Difference ─▶ news: taken in one by one
//!                       └─▶ lacks an instance? ─▶ find_missing: unlisted one by one, or the listing itself is doubted
//! ```
//!
//! Nearly every listing says the same as the last one, in the order of ids. One walk over both shows that, without a lookup
//! or an allocation. The view takes in a list in any other order as a whole, which only costs time.
//!
//! This module does not judge whether an instance is gone: a list that lacks it is a reason to ask the cloud for its id.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::event::CloudSnapshot;
use crate::model::id::InstanceId;
use crate::model::instance::{Instance, InstanceState};
use crate::model::roster::Roster;
use crate::model::time::Time;
use crate::safeguard::{Safeguard, stands};

use super::{CloudChange, CloudView, Seen};

/// What a listing says that was not known.
#[derive(Debug)]
pub(super) struct Difference<'a> {
    /// Instances that may differ from what is known, in the listing's order.
    pub(super) news: Vec<&'a Arc<Instance>>,
    /// Everybody who is known, and not proved gone, stands in it. False also where that was not looked at.
    pub(super) is_complete: bool,
}

impl<'a> Difference<'a> {
    /// Nothing was compared: everything may be news.
    pub(super) fn unknown(listed: &'a [Arc<Instance>]) -> Self {
        Self { news: listed.iter().collect(), is_complete: false }
    }
}

/// What the cluster shows of an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NodeOf {
    /// No Node that the newest list holds.
    None,
    /// A Node that is not Ready and whose lease is old.
    Silent,
    /// A Node that is Ready, or whose lease is fresh: the instance cannot be gone, whatever a list says.
    Lives,
}

impl CloudView {
    /// One walk beside what is known.
    pub(super) fn difference<'a>(&self, listed: &'a [Arc<Instance>]) -> Difference<'a> {
        let mut known = self.instances.iter().peekable();
        let mut is_complete = true;
        let is_missed = |seen: &Seen| !seen.is_gone();
        let mut news = Vec::new();
        let mut last: Option<&InstanceId> = None;
        for instance in listed {
            // The same id twice, with two contents, is two pieces of news: the later one counts.
            if last.is_some_and(|last| *last >= instance.id) {
                return Difference::unknown(listed);
            }
            last = Some(&instance.id);
            while let Some((_, passed)) = known.next_if(|(id, _)| **id < instance.id) {
                is_complete &= !is_missed(passed);
            }
            let seen = known.next_if(|(id, _)| **id == instance.id).map(|(_, seen)| seen);
            let is_same = |seen: &Seen| {
                seen.instance == *instance && seen.unlisted.is_none() && instance.state != InstanceState::Gone
            };
            if !seen.is_some_and(is_same) {
                news.push(instance);
            }
        }
        is_complete &= !known.any(|(_, seen)| is_missed(seen));
        Difference { news, is_complete }
    }

    /// What the full listing lacks is unlisted, unless it lacks so much that the listing itself is doubted.
    pub(super) fn find_missing(
        &mut self,
        roster: &Roster,
        now: Time,
        snapshot: &CloudSnapshot,
        remembered: &[InstanceId],
        node_of: &dyn Fn(&InstanceId) -> NodeOf,
        change: &mut CloudChange,
    ) {
        let listed: BTreeSet<&InstanceId> = snapshot.instances.iter().map(|instance| &instance.id).collect();
        let expected =
            || self.instances.values().filter(|seen| !seen.is_gone() && !seen.instance.state.is_leaving());
        let unseen = || remembered.iter().filter(|id| !self.instances.contains_key(*id));
        let known = expected().count() + unseen().count();
        let missing: BTreeSet<InstanceId> = expected()
            .map(|seen| &seen.instance.id)
            .chain(unseen())
            .filter(|id| !listed.contains(id))
            .cloned()
            .collect();
        let is_new = |id: &&InstanceId| self.instances.get(*id).is_none_or(|seen| seen.unlisted.is_none());
        // Instances of no pool come and go as others like it, and neither raise a doubt nor spend what is tolerated.
        let is_stray = |id: &InstanceId| self.instances.get(id).is_some_and(Seen::is_stray);
        let newly = missing.iter().filter(is_new).filter(|id| !is_stray(id)).count();
        let of_pools = expected().filter(|seen| !seen.is_stray()).count() + unseen().count();
        let tolerated = roster.timing.may_lack(of_pools);
        let owned_listed = known - missing.len();
        let emptied = owned_listed == 0 && known > 0;
        // The only machine of a project may really be gone, and its Node then goes as well.
        let named = missing.iter().any(|id| node_of(id) != NodeOf::None);
        let living = missing.iter().filter(|id| node_of(id) == NodeOf::Lives).count();
        let why = if emptied && living > 0 {
            Some(format!("its list is empty of our machines, yet {living} of them have a live node"))
        } else if emptied && (known > 1 || named) {
            Some(format!("its list is empty, and held {known} of our machines before"))
        } else if newly > tolerated {
            Some(format!("{newly} of {of_pools} machines went missing from its list at once"))
        } else {
            None
        };
        let why = why.filter(|_| stands(Safeguard::ShrunkenServers));
        self.emptied = emptied && why.is_some();
        let Some(why) = why else {
            self.doubted_missing.clear();
            for id in missing {
                self.unlist(now, &id, change);
            }
            self.finish_leaving(&listed, change);
            self.find_ended(snapshot, remembered, change);
            return;
        };
        self.source.doubt(now, Some(Arc::from(why)));
        // Two listings that agree, each of whose missing machines denies itself by id and has no live node, are
        // believed in the end: the machines are then unlisted one by one, by their ids. One whose node lives is asked for as
        // well, since adapters list what carries the cluster's mark: it may have lost that alone. An empty list never is
        // believed: a wrong project denies every id as well, and where no machine is left there is nothing to mend.
        if !emptied && self.doubted_missing == missing {
            change.ask.extend(missing.iter().cloned());
        }
        self.doubted_missing = missing;
    }

    /// Who ended before this process ever saw it, and is listed as such, is asked for as one that no list holds any more.
    fn find_ended(&self, snapshot: &CloudSnapshot, remembered: &[InstanceId], change: &mut CloudChange) {
        let ended = snapshot.instances.iter().filter(|listed| listed.state == InstanceState::Gone);
        let known = |id: &InstanceId| remembered.contains(id) && !self.instances.contains_key(id);
        change.ask.extend(ended.map(|listed| &listed.id).filter(|id| known(id)).cloned());
    }

    /// Leaving instances that the listing no longer holds need the same proof as any other, but raise no doubt.
    fn finish_leaving(&mut self, listed: &BTreeSet<&InstanceId>, change: &mut CloudChange) {
        for seen in self.instances.values() {
            if seen.instance.state.is_leaving() && !seen.is_gone() && !listed.contains(&seen.instance.id) {
                change.ask.insert(seen.instance.id.clone());
            }
        }
    }
}

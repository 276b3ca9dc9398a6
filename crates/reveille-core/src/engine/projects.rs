//! Faults of a project rather than of a machine: its security groups and its routers.
//!
//! The controller judges a project when a snapshot or a fresh read changed it, once per project and not once per machine:
//! it compares a router with all Nodes in one pass. It charges a missing route to the machine that lacks it, and everything
//! else to the group or router itself.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::diagnose::faults;
use crate::diagnose::route_faults::{self, Reviewed, RouteView};
use crate::model::id::CloudName;
use crate::model::incident::{FaultKind, IncidentKey, Subject};
use crate::observe::cloud::CloudView;

use super::State;
use super::cases::Blind;

impl State {
    pub(super) fn review_projects(&mut self) {
        let projects = std::mem::take(&mut self.dirty_projects);
        for cloud in projects {
            self.review_groups(&cloud);
            self.review_access(&cloud);
            self.review_unnamed(&cloud);
            let routed = self.review_router(&cloud);
            self.note_settled(cloud, routed);
        }
    }

    /// Listings say the same for days, also of a fleet in which some machine is always ill: what was found well is not held
    /// against the same again. `routed`: no machine's route is missing.
    fn note_settled(&mut self, name: CloudName, routed: bool) {
        let sighted = self.clouds.get(&name).is_some_and(|view| view.source.trust(self.now).is_given())
            && self.cluster.source.trust(self.now).is_given()
            && self.cluster.synced_once();
        let shared = |key: &IncidentKey| {
            key.kind == FaultKind::MissingRoute
                || matches!(key.subject, Subject::Group(..) | Subject::Router(..) | Subject::User(..))
        };
        // What a nudge of ours left behind is told from one on its way by its operation, not by the listing.
        let nudged = !self.own_nudges(&name).is_empty() || !self.book.router_nudges(&name).is_empty();
        if sighted
            && routed
            && !self.incidents.open().keys().any(shared)
            && !nudged
            && self.routes.dead_since().is_empty()
        {
            self.settled_projects.insert(name);
        } else {
            self.settled_projects.remove(&name);
        }
    }

    fn review_groups(&mut self, name: &CloudName) {
        let Some(view) = self.clouds.get(name) else { return };
        // Before its first listing a project shows no group at all.
        if !view.listed_once() {
            return;
        }
        let blind = !view.source.trust(self.now).is_given();
        let mut found = faults::of_groups(&self.roster, view, &self.own_nudges(name), self.now);
        // Groups that had an open case and are well again, or gone, are told so.
        for key in self.incidents.open().keys() {
            let here = matches!(&key.subject, Subject::Group(cloud, _) if cloud == name);
            if here && !found.iter().any(|(subject, ..)| *subject == key.subject) {
                found.push((key.subject.clone(), Arc::from(key.subject.to_string()), Vec::new()));
            }
        }
        for (subject, label, faults) in found {
            self.settle_cases(&subject, faults, if blind { Blind::Yes } else { Blind::No }, label, None);
        }
    }

    /// Nudges of ours that are on their way are no leftovers.
    fn own_nudges(&self, cloud: &CloudName) -> Vec<Arc<str>> {
        use crate::effect::Call;
        use crate::remedies::NudgeGroup;
        let marks = self.book.operations.values().filter_map(|operation| match &operation.call {
            Call::NudgeGroup(NudgeGroup { cloud: there, mark, .. }) if there == cloud => Some(mark.clone()),
            _ => None,
        });
        marks.collect()
    }

    /// Ends the incidents of routers that the roster does not name any more, and of what is in a cloud that it does not name: no
    /// listing tells of them. An operator replaced a router, and its incident was open for ever.
    fn review_unnamed(&mut self, name: &CloudName) {
        let is_unknown = |cloud: &CloudName| !self.clouds.contains_key(cloud);
        let routed = self.roster.network.router.as_ref();
        let is_unnamed = |subject: &&Subject| match subject {
            Subject::Router(cloud, router) => {
                let is_named = routed.is_some_and(|(there, named)| (there, named) == (cloud, router));
                (cloud == name || is_unknown(cloud)) && !is_named
            }
            Subject::Group(cloud, _) | Subject::User(cloud, _) | Subject::Cloud(cloud) => is_unknown(cloud),
            Subject::Machine(_) | Subject::Pool(_) | Subject::Cluster => false,
        };
        let subjects: BTreeSet<Subject> =
            self.incidents.open().keys().map(|key| &key.subject).filter(is_unnamed).cloned().collect();
        for subject in subjects {
            let label = Arc::from(subject.to_string());
            self.settle_cases(&subject, Vec::new(), Blind::No, label, None);
        }
    }

    /// True when no machine's route is missing, as far as can be seen.
    fn review_router(&mut self, name: &CloudName) -> bool {
        let Some((cloud, router)) = self.roster.network.router.clone() else { return true };
        if cloud != *name {
            return true;
        }
        let cluster_believed = self.cluster.source.trust(self.now).is_given() && self.cluster.synced_once();
        let believed = |view: &CloudView| view.source.trust(self.now).is_given();
        if !self.clouds.get(&cloud).is_some_and(believed) || !cluster_believed {
            return false;
        }
        let limit = self.context().route_limit(&router);
        let nudges = self.book.router_nudges(&cloud);
        let view = RouteView {
            roster: &self.roster,
            clouds: &self.clouds,
            cluster: &self.cluster,
            dead_since: self.routes.dead_since(),
            nudges: &nudges,
            now: self.now,
        };
        let Reviewed { faults: found, lacking: lacking_route, dead } =
            route_faults::of_router(&view, &cloud, &router, limit);
        let can_prove_dead = view.can_prove_dead();
        self.routes.note_dead(self.now, dead, can_prove_dead);
        let subject = Subject::Router(cloud.clone(), router.clone());
        let label = Arc::from(subject.to_string());
        // Machines whose missing route came back are judged with the rest of their faults.
        let lacking = |key: &&IncidentKey| key.kind == FaultKind::MissingRoute;
        let waiting: Vec<Subject> =
            self.incidents.open().keys().filter(lacking).map(|key| key.subject.clone()).collect();
        for subject in waiting {
            if let Subject::Machine(machine) = subject {
                self.dirty.insert(machine);
            }
        }
        self.settle_cases(&subject, found, Blind::No, label, None);
        let routed = lacking_route.is_empty();
        self.mark(&cloud, lacking_route);
        self.judge_dirty();
        routed
    }
}

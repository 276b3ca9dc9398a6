//! The engine's calls, carried out exactly as they stand, and how each ended.
//!
//! This module decides nothing: a call names its target, its new value and the revision it was derived from. The module adds the
//! care that the services need. It never replaces a list without a revision check. It tells a refusal from a lost answer, and
//! sums up several steps of one call in one [`Outcome`]. It retries nothing; the engine does that, because it knows the
//! incident's history.

mod instances;
mod ports;
mod roles;
mod routes;
mod rules;

use reveille_core::effect::{Call, Outcome};
use reveille_core::remedies::{
    AddPortPairs, AddRoutes, AddRules, AssignRoles, DeleteInstance, DropRule, NudgeGroup, NudgeRouter,
    Reboot, RemoveRoutes, SetPortGroups, StartInstance,
};

use crate::project::Project;

impl Project {
    /// Makes one call. Always comes back with an outcome, and within the deadlines of its few requests.
    pub async fn perform(&self, call: &Call) -> Outcome {
        let refuse = |cause: &str| self.place().writing(call.to_string()).refuse(cause);
        let outcome = match call {
            Call::AddRules(AddRules { group, rules, .. }) => rules::add(self, group, rules).await,
            Call::DropRule(DropRule { rule, .. }) => rules::drop_rule(self, rule).await,
            Call::NudgeGroup(NudgeGroup { group, mark, .. }) => rules::nudge(self, group, mark).await,
            Call::SetPortGroups(SetPortGroups { port, groups, if_revision, instance, owned, .. }) => {
                ports::set_groups(self, port, groups, *if_revision, (instance, owned)).await
            }
            Call::AddPortPairs(AddPortPairs { port, pairs, if_revision, instance, owned, .. }) => {
                ports::add_pairs(self, port, pairs, *if_revision, (instance, owned)).await
            }
            Call::RemoveRoutes(RemoveRoutes { router, routes, unless_used, .. }) => {
                routes::remove(self, router, routes, unless_used).await
            }
            Call::AddRoutes(AddRoutes { router, routes, .. }) => {
                routes::change(self, router, routes, routes::Change::Add).await
            }
            Call::NudgeRouter(NudgeRouter { router, route, .. }) => routes::nudge(self, router, route).await,
            Call::AssignRoles(AssignRoles { project, user, roles, .. }) => {
                roles::assign(self, project, user, roles).await
            }
            Call::Reboot(Reboot { instance, hard, owned, .. }) => {
                instances::reboot(self, instance, owned, *hard).await
            }
            Call::Start(StartInstance { instance, owned, .. }) => {
                instances::start(self, instance, owned).await
            }
            Call::DeleteInstance(DeleteInstance { instance, owned, rests_on, .. }) => {
                instances::delete(self, instance, owned, *rests_on).await
            }
            Call::AskAgent(_) => refuse("an agent is not a cloud's to ask"),
            Call::DeleteNode(_) => refuse("a Node is not a cloud's to delete"),
        };
        tracing::info!(%call, %outcome, "openstack call");
        outcome
    }
}

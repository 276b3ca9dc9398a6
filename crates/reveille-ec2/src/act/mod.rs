//! The engine's calls, carried out exactly as they stand, and how each ended.
//!
//! This module decides nothing: a call names its target, its new value and the revision it was derived from. The module adds the
//! care that EC2 needs. It reads again what EC2 would replace without a check. It terminates an instance of an Auto Scaling group
//! through the group, and never stops it beside the group. It tells a refusal from a lost answer, and sums up several steps of
//! one call in one [`Outcome`]. It sends no change twice.

mod instances;
mod interfaces;
mod routes;
mod rules;

use reveille_core::effect::{Call, Outcome};
use reveille_core::model::id::RequestId;
use reveille_core::remedies::{
    AddPortPairs, AddRoutes, AddRules, DeleteInstance, DropRule, Reboot, RemoveRoutes, SetPortGroups,
    StartInstance,
};

use crate::account::Account;
use crate::client::SendError;
use crate::query_protocol::Request;
use crate::refusal::Refusal;
use crate::reply::{confirms, request_id};

impl Account {
    /// Makes one call. Always comes back with an outcome, and within the deadlines of its few requests.
    pub async fn perform(&self, call: &Call) -> Outcome {
        let refuse = |cause: &str| self.place().writing(call.to_string()).refuse(cause);
        let outcome = match call {
            Call::AddRules(AddRules { group, rules, .. }) => rules::add(self, group, rules).await,
            Call::DropRule(DropRule { group, rule, .. }) => rules::drop_rule(self, group, rule).await,
            Call::SetPortGroups(SetPortGroups { port, groups, if_revision, instance, owned, .. }) => {
                interfaces::set_groups(self, port, groups, *if_revision, (instance, owned)).await
            }
            Call::AddPortPairs(AddPortPairs { port, if_revision, instance, owned, .. }) => {
                interfaces::pass_everything(self, port, *if_revision, (instance, owned)).await
            }
            Call::AddRoutes(AddRoutes { router, routes, .. }) => routes::add(self, router, routes).await,
            Call::RemoveRoutes(RemoveRoutes { router, routes, unless_used, .. }) => {
                routes::remove(self, router, routes, unless_used).await
            }
            Call::Reboot(Reboot { instance, hard: false, owned, .. }) => {
                instances::reboot(self, instance, owned).await
            }
            Call::Reboot(Reboot { instance, hard: true, owned, .. }) => {
                instances::power_cycle(self, instance, owned).await
            }
            Call::Start(StartInstance { instance, owned, .. }) => {
                instances::start(self, instance, owned).await
            }
            Call::DeleteInstance(DeleteInstance { instance, owned, rests_on, .. }) => {
                instances::end(self, instance, owned, *rests_on).await
            }
            Call::NudgeGroup(_) => {
                refuse("EC2 applies every change of a group by itself; there is nothing to nudge")
            }
            Call::NudgeRouter(_) => refuse("a route table of EC2 is no device; there is nothing to nudge"),
            Call::AssignRoles(_) => refuse("EC2 has no roles on a project; rights are IAM policies"),
            Call::AskAgent(_) => refuse("an agent is not a cloud's to ask"),
            Call::DeleteNode(_) => refuse("a Node is not a cloud's to delete"),
        };
        tracing::info!(%call, %outcome, "ec2 call");
        outcome
    }
}

/// Sends one change; gives AWS's handle on it. A success in other words than the action's own may be a proxy's page, and the
/// change was perhaps never made: a machine whose reboot a login page had answered was power-cycled and deleted after it.
async fn send(account: &Account, request: &Request) -> Result<Option<RequestId>, SendError> {
    let body = account.client().send(request).await?;
    match confirms(&body, request.action) {
        true => Ok(request_id(&body)),
        false => Err(SendError::Refused(Refusal::unclear(request.action))),
    }
}

//! An interface's groups and its source/destination check.
//!
//! The instance is read first, for its marks: an operator who cuts a machine off takes its tag and its groups away.
//! EC2 replaces the list of groups as a whole and checks nothing, so the interface is read just before, and nothing is written
//! when it is not as it was when the new list was derived (its digest, see [`crate::interface`]).

use std::sync::Arc;

use reveille_cloud::report::Writing;
use reveille_core::effect::Outcome;
use reveille_core::model::id::{GroupId, InstanceId, PortId};
use reveille_core::model::roster::Ownership;

use super::{instances, send};
use crate::account::Account;
use crate::actions::MODIFY_INTERFACE;
use crate::fetch;
use crate::interface::WireInterface;
use crate::query_protocol::Request;

pub(super) async fn set_groups(
    account: &Account,
    port: &PortId,
    groups: &[GroupId],
    if_revision: u64,
    (instance, owned): (&InstanceId, &Ownership),
) -> Outcome {
    let writing = account.place().writing(format!("set the groups of interface {port}"));
    if groups.is_empty() {
        return writing.refuse("the new list is empty, which EC2 does not allow");
    }
    if let Err(outcome) = instances::read(account, instance, owned, &writing).await {
        return outcome;
    }
    let now = match unmoved(account, port, if_revision, &writing).await {
        Ok(now) => now,
        Err(outcome) => return outcome,
    };
    if now.groups() == groups.iter().cloned().collect() {
        return Outcome::AlreadySo {
            text: Arc::from(format!("interface {port} carries exactly these groups")),
        };
    }
    let request = Request::new(MODIFY_INTERFACE).with("NetworkInterfaceId", port.as_str());
    let request = request.list("SecurityGroupId", groups.iter().map(GroupId::as_str));
    writing.outcome(send(account, &request).await)
}

/// EC2 has no address pairs: an interface passes foreign addresses, all of them, when it does not check source and destination.
pub(super) async fn pass_everything(
    account: &Account,
    port: &PortId,
    if_revision: u64,
    (instance, owned): (&InstanceId, &Ownership),
) -> Outcome {
    let writing =
        account.place().writing(format!("switch off the source/destination check of interface {port}"));
    if let Err(outcome) = instances::read(account, instance, owned, &writing).await {
        return outcome;
    }
    let now = match unmoved(account, port, if_revision, &writing).await {
        Ok(now) => now,
        Err(outcome) => return outcome,
    };
    if now.passes_everything() {
        return Outcome::AlreadySo { text: Arc::from(format!("interface {port} checks neither")) };
    }
    let request = Request::new(MODIFY_INTERFACE).with("NetworkInterfaceId", port.as_str());
    writing.outcome(send(account, &request.with("SourceDestCheck.Value", "false")).await)
}

/// The interface, when it is still as it was at this revision.
async fn unmoved(
    account: &Account,
    port: &PortId,
    if_revision: u64,
    writing: &Writing,
) -> Result<WireInterface, Outcome> {
    let targets = std::iter::once(port.to_string()).collect();
    let found =
        fetch::interfaces_of_targets(account, &targets).await.map_err(|error| writing.unread(&error))?;
    let now = found.into_iter().find(|one| one.network_interface_id == port.as_str());
    let now = now.ok_or_else(|| writing.refuse("there is no such interface"))?;
    match now.revision() {
        revision if revision == if_revision => Ok(now),
        _ => Err(writing.moved("its groups or its check are not what they were when this was decided")),
    }
}

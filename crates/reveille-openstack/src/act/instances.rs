//! Reboot, start, delete.
//!
//! Each reads the server directly before the act. Two reasons:
//! * Marks. Nova does not count a tag or a metadata pair as a change of the server, so a list of changes does not show that an
//!   operator took the pool's tag off, and the next full listing may be minutes away.
//! * Nova accepts a DELETE of a server that is being deleted already, says 204, and nothing happens.
//!
//! Between that read and the act lies one request: Nova has no precondition on tags.

use std::sync::Arc;

use reveille_core::effect::Outcome;
use reveille_core::model::id::InstanceId;
use reveille_core::model::instance::Instance;
use reveille_core::model::roster::Ownership;
use serde_json::{Value, json};

use crate::catalog::Service;
use crate::client::Request;
use crate::project::Project;
use crate::refusal::Refusal;
use crate::report::Writing;

pub(super) async fn reboot(project: &Project, id: &InstanceId, owned: &Ownership, hard: bool) -> Outcome {
    let kind = if hard { "HARD" } else { "SOFT" };
    let verb = if hard { "power-cycle" } else { "reboot" };
    act(project, id, owned, verb, json!({ "reboot": { "type": kind } })).await
}

pub(super) async fn start(project: &Project, id: &InstanceId, owned: &Ownership) -> Outcome {
    act(project, id, owned, "start", json!({ "os-start": null })).await
}

async fn act(project: &Project, id: &InstanceId, owned: &Ownership, verb: &str, body: Value) -> Outcome {
    let writing = Writing::new(Service::Compute, format!("{verb} instance {id}"));
    if let Err(outcome) = self::owned(project, id, owned, &writing).await {
        return outcome;
    }
    let request = Request::post(Service::Compute, &["servers", id.as_str(), "action"], body);
    writing.outcome(project.client().send(&request).await)
}

/// Reads the server; the answer, when it is not there or does not carry the marks on which the call rests.
pub(super) async fn owned(
    project: &Project,
    id: &InstanceId,
    owned: &Ownership,
    writing: &Writing,
) -> Result<(), Outcome> {
    match project.instance(id).await {
        Ok(Some(instance)) => disowned(&instance, owned, writing).map_or(Ok(()), Err),
        Ok(None) => Err(writing.refuse("there is no such instance")),
        Err(error) => Err(writing.unread(&error)),
    }
}

/// The answer, when the server does not carry the marks on which the call rests.
fn disowned(instance: &Instance, owned: &Ownership, writing: &Writing) -> Option<Outcome> {
    let mark = owned.lacking(&instance.marks)?;
    Some(Outcome::Moved { text: writing.text(&format!("the server does not carry {mark}")) })
}

pub(super) async fn delete(project: &Project, id: &InstanceId, owned: &Ownership) -> Outcome {
    let writing = Writing::new(Service::Compute, format!("delete instance {id}"));
    let gone = || Outcome::AlreadySo { text: Arc::from(format!("there is no instance {id}")) };
    let instance = match project.instance(id).await {
        Ok(Some(instance)) => instance,
        Ok(None) => return gone(),
        Err(error) => return writing.unread(&error),
    };
    if instance.state.is_leaving() {
        return Outcome::AlreadySo { text: Arc::from(format!("instance {id} is being deleted already")) };
    }
    if let Some(outcome) = disowned(&instance, owned, &writing) {
        return outcome;
    }
    if instance.locked {
        return writing.refuse("it is locked; whoever locked it must unlock it first");
    }
    let sent = project.client().send(&Request::delete(Service::Compute, &["servers", id.as_str()])).await;
    match sent {
        Ok(reply) if Refusal::read(&reply).says_absent(Service::Compute) => gone(),
        sent => writing.outcome(sent),
    }
}

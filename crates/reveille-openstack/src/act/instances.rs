//! Reboot, start, delete.
//!
//! Deleting looks first: Nova accepts a DELETE of a server that is being deleted already, says 204, and nothing happens,
//! which once looked like success for ever.

use std::sync::Arc;

use reveille_core::effect::Outcome;
use reveille_core::model::id::InstanceId;
use serde_json::{Value, json};

use crate::catalog::Service;
use crate::client::Request;
use crate::project::Project;
use crate::refusal::Refusal;
use crate::report::Writing;

pub(super) async fn reboot(project: &Project, id: &InstanceId, hard: bool) -> Outcome {
    let kind = if hard { "HARD" } else { "SOFT" };
    let verb = if hard { "power-cycle" } else { "reboot" };
    act(project, id, verb, json!({ "reboot": { "type": kind } })).await
}

pub(super) async fn start(project: &Project, id: &InstanceId) -> Outcome {
    act(project, id, "start", json!({ "os-start": null })).await
}

async fn act(project: &Project, id: &InstanceId, verb: &str, body: Value) -> Outcome {
    let request = Request::post(Service::Compute, &["servers", id.as_str(), "action"], body);
    let writing = Writing::new(Service::Compute, format!("{verb} instance {id}"));
    writing.outcome(project.client().send(&request).await)
}

pub(super) async fn delete(project: &Project, id: &InstanceId) -> Outcome {
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
    if instance.locked {
        return writing.refuse("it is locked; whoever locked it must unlock it first");
    }
    let sent = project.client().send(&Request::delete(Service::Compute, &["servers", id.as_str()])).await;
    match sent {
        Ok(reply) if Refusal::read(&reply).says_absent(Service::Compute) => gone(),
        sent => writing.outcome(sent),
    }
}

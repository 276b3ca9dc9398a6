//! Reboots, starts and deletes servers.
//!
//! Each call reads the server directly before the act. Three reasons:
//! * Marks. Nova does not count a tag or a metadata pair as a change of the server. So a list of changes does not show that an
//!   operator took the pool's tag off, and the next full listing may be minutes away.
//! * State. Nova also accepts a hard reboot of a server that is stopped, paused or suspended, and runs it then (nova:
//!   nova/compute/vm_states.py, `ALLOW_HARD_REBOOT`). A user who stopped the server since the last listing wants it stopped. So
//!   each call requires the state that the plan made it for: a reboot a running server, a start one that is shut off, and both no
//!   task.
//! * Nova accepts a DELETE of a server that is being deleted already, says 204, and nothing happens.
//!
//! One request lies between that read and the act: Nova has no precondition on any of this.

use std::sync::Arc;

use reveille_cloud::report::Writing;
use reveille_core::effect::Outcome;
use reveille_core::model::id::InstanceId;
use reveille_core::model::instance::{Instance, InstanceState};
use reveille_core::model::roster::Ownership;
use serde_json::{Value, json};

use crate::catalog::Service;
use crate::client::Request;
use crate::project::Project;
use crate::refusal::Refusal;

const SERVER: &str = "server";
const LOCKED: &str = "it is locked; its owner must unlock it first";

pub(super) async fn reboot(project: &Project, id: &InstanceId, owned: &Ownership, hard: bool) -> Outcome {
    let kind = if hard { "HARD" } else { "SOFT" };
    let verb = if hard { "power-cycle" } else { "reboot" };
    let rests_on = InstanceState::Active;
    act(project, id, owned, rests_on, verb, json!({ "reboot": { "type": kind } })).await
}

pub(super) async fn start(project: &Project, id: &InstanceId, owned: &Ownership) -> Outcome {
    act(project, id, owned, InstanceState::Stopped, "start", json!({ "os-start": null })).await
}

async fn act(
    project: &Project,
    id: &InstanceId,
    owned: &Ownership,
    rests_on: InstanceState,
    verb: &str,
    body: Value,
) -> Outcome {
    let writing = project.place().writing(format!("{verb} instance {id}"));
    let instance = match self::owned(project, id, owned, &writing).await {
        Ok(instance) => instance,
        Err(outcome) => return outcome,
    };
    if let Some(outcome) = handled(&instance, rests_on, &writing) {
        return outcome;
    }
    let request = Request::post(Service::Compute, &["servers", id.as_str(), "action"], body);
    writing.outcome(project.send(&request).await)
}

/// Reads the server; the answer, when it is not there or does not carry the marks on which the call rests.
pub(super) async fn owned(
    project: &Project,
    id: &InstanceId,
    owned: &Ownership,
    writing: &Writing,
) -> Result<Instance, Outcome> {
    match project.instance(id).await {
        Ok(Some(instance)) => writing.owned(SERVER, &instance.marks, owned).map(|()| instance),
        // It went, or the credential leads elsewhere: whichever it is, the next reads tell.
        Ok(None) => Err(writing.moved("there is no such instance by now")),
        Err(error) => Err(writing.unread(&error)),
    }
}

/// The answer, when another client changes the server now: it is locked, has a task, or left the state on which the call rests.
fn handled(instance: &Instance, rests_on: InstanceState, writing: &Writing) -> Option<Outcome> {
    let moved = |cause: &str| Some(writing.moved(cause));
    if instance.locked {
        return moved(LOCKED);
    }
    // A build's own task is the build that hangs, and a reboot's the reboot that was not ended when this was decided.
    let reboots = rests_on == InstanceState::Rebooting && instance.state == rests_on;
    let own = instance.state == InstanceState::Building || reboots;
    if let Some(task) = instance.task.as_ref().filter(|_| !own) {
        return moved(&format!("the cloud says task {task} by now"));
    }
    match rests_on {
        wanted if instance.state == wanted => None,
        InstanceState::Stopped => moved("it is not shut off by now"),
        InstanceState::Active => moved("it does not run by now"),
        wanted => moved(&format!("its state is not {wanted:?} by now")),
    }
}

pub(super) async fn delete(
    project: &Project,
    id: &InstanceId,
    owned: &Ownership,
    rests_on: Option<InstanceState>,
) -> Outcome {
    let writing = project.place().writing(format!("delete instance {id}"));
    let gone = || Outcome::AlreadySo { text: Arc::from(format!("there is no instance {id}")) };
    let instance = match project.instance(id).await {
        Ok(Some(instance)) => instance,
        Ok(None) => return gone(),
        Err(error) => return writing.unread(&error),
    };
    if instance.state.is_leaving() {
        return Outcome::AlreadySo { text: Arc::from(format!("instance {id} is being deleted already")) };
    }
    if let Err(outcome) = writing.owned(SERVER, &instance.marks, owned) {
        return outcome;
    }
    // Nova deletes in any state: a server that its owner put into a rescue, or stopped, a moment ago would be lost.
    if let Some(outcome) = handled(&instance, rests_on.unwrap_or(instance.state), &writing) {
        return outcome;
    }
    match project.send(&Request::delete(Service::Compute, &["servers", id.as_str()])).await {
        Err(error) if error.refusal().is_some_and(Refusal::says_absent) => gone(),
        sent => writing.outcome(sent),
    }
}

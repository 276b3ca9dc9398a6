//! Reboots, stops, starts and terminates instances.
//!
//! Each call reads the instance directly before the act, and does nothing when the tags are gone on which the call rests. EC2 has
//! no precondition on tags, so one request lies between the read and the act. Each call reads the Auto Scaling group as well. A
//! group takes a machine that another client stops for a broken one and replaces it. So the controller never stops machines of a
//! group, and terminates them through the group, which then makes the successor.

use std::sync::Arc;

use reveille_cloud::report::Writing;
use reveille_core::effect::Outcome;
use reveille_core::model::id::InstanceId;
use reveille_core::model::instance::InstanceState;
use reveille_core::model::roster::Ownership;
use tokio::time::Instant;

use super::send;
use crate::account::Account;
use crate::actions::{
    Action, REBOOT_INSTANCES, START_INSTANCES, STOP_INSTANCES, TERMINATE_IN_GROUP, TERMINATE_INSTANCES,
};
use crate::client::SendError;
use crate::instance::WireInstance;
use crate::query_protocol::Request;

const NOT_RUNNING: &str = "it is not running by now";
/// A group's word for a machine that it keeps.
const IN_SERVICE: &str = "InService";

pub(super) async fn reboot(account: &Account, id: &InstanceId, owned: &Ownership) -> Outcome {
    let writing = account.place().writing(format!("reboot instance {id}"));
    match read(account, id, owned, &writing).await {
        Ok(wire) if wire.state() == InstanceState::Active => {}
        Ok(_) => return writing.moved(NOT_RUNNING),
        Err(outcome) => return outcome,
    }
    simple(account, REBOOT_INSTANCES, "reboot", id).await
}

pub(super) async fn start(account: &Account, id: &InstanceId, owned: &Ownership) -> Outcome {
    let writing = account.place().writing(format!("start instance {id}"));
    match read(account, id, owned, &writing).await {
        Ok(wire) if wire.state() == InstanceState::Active => {
            Outcome::AlreadySo { text: Arc::from(format!("instance {id} is running")) }
        }
        Ok(_) => match kept_by_group(account, id, &writing).await {
            Some(outcome) => outcome,
            None => simple(account, START_INSTANCES, "start", id).await,
        },
        Err(outcome) => outcome,
    }
}

/// Stops it, waits for that, and starts it: it comes up on another host.
pub(super) async fn power_cycle(account: &Account, id: &InstanceId, owned: &Ownership) -> Outcome {
    let writing = account.place().writing(format!("stop and start instance {id}"));
    let wire = match read(account, id, owned, &writing).await {
        Ok(wire) => wire,
        Err(outcome) => return outcome,
    };
    if let Some(outcome) = kept_by_group(account, id, &writing).await {
        return outcome;
    }
    if wire.root_device_type.as_deref() == Some("instance-store") {
        return writing.refuse("its root disk lies on the host and would be lost");
    }
    if wire.is_spot() {
        return writing.refuse("it is a spot instance, which cannot be stopped and started by itself");
    }
    if wire.state() != InstanceState::Active {
        return writing.moved(NOT_RUNNING);
    }
    match simple(account, STOP_INSTANCES, "stop", id).await {
        Outcome::Accepted { .. } | Outcome::AlreadySo { .. } => {}
        other => return other,
    }
    if let Err(why) = stopped(account, id).await {
        return Outcome::Unknown {
            text: writing.text(&format!("it is stopping and not started yet: {why}")),
        };
    }
    match simple(account, START_INSTANCES, "start", id).await {
        done @ (Outcome::Accepted { .. } | Outcome::AlreadySo { .. }) => done,
        other => {
            Outcome::Unknown { text: writing.text(&format!("it is stopped, and was not started: {other}")) }
        }
    }
}

/// Waits for the instance to be stopped, for a while.
async fn stopped(account: &Account, id: &InstanceId) -> Result<(), String> {
    let pace = account.client().pace();
    let deadline = Instant::now() + pace.stop_within;
    let mut last = "not stopped yet".to_owned();
    while Instant::now() < deadline {
        match account.wire_instance_to_change(id).await {
            Ok(Some(wire)) if wire.is_stopped() => return Ok(()),
            Ok(Some(_)) => {}
            Ok(None) => return Err("it is gone".to_owned()),
            Err(error) => last = error.to_string(),
        }
        tokio::time::sleep(pace.stop_look_every).await;
    }
    Err(last)
}

/// Ends the instance: through the group that owns it, which makes another, or by itself.
pub(super) async fn end(
    account: &Account,
    id: &InstanceId,
    owned: &Ownership,
    rests_on: Option<InstanceState>,
) -> Outcome {
    let writing = account.place().writing(format!("end instance {id}"));
    let gone = || Outcome::AlreadySo { text: Arc::from(format!("there is no instance {id}")) };
    let wire = match account.wire_instance_to_change(id).await {
        Ok(Some(wire)) => wire,
        Ok(None) => return gone(),
        Err(error) => return writing.unread(&error),
    };
    if wire.state().is_leaving() {
        return Outcome::AlreadySo { text: Arc::from(format!("instance {id} is being ended already")) };
    }
    if let Err(outcome) = writing.owned("instance", &wire.marks(), owned) {
        return outcome;
    }
    // Another client stopped or started the instance since: EC2 terminates an instance in any state.
    if rests_on.is_some_and(|state| state != wire.state()) {
        return writing.moved(&format!("its state is {} by now", wire.state_name()));
    }
    let member = match account.member(id).await {
        Ok(member) => member,
        Err(error) => return writing.unread(&error),
    };
    let request = match &member {
        // On its way in or out, set aside, in the warm pool: it was in service when this was decided.
        Some(member) if member.state != IN_SERVICE => {
            let cause = format!("Auto Scaling group {} says {} of it", member.group, member.state);
            return writing.moved(&cause);
        }
        // Ended through its group it would be all the same: this protection is against the group's own choice alone.
        Some(member) if member.protected => {
            let cause =
                format!("it is protected in Auto Scaling group {} (ProtectedFromScaleIn)", member.group);
            return writing.refuse(&cause);
        }
        Some(_) => Request::new(TERMINATE_IN_GROUP)
            .with("InstanceId", id.as_str())
            .with("ShouldDecrementDesiredCapacity", "false"),
        None if wire.group().is_some() => {
            return writing.refuse(
                "its tag says that an Auto Scaling group made it, and Auto Scaling does not know it; end it by hand",
            );
        }
        None => Request::new(TERMINATE_INSTANCES).list("InstanceId", [id.as_str()]),
    };
    let sent = send(account, &request).await;
    match sent.as_ref().err().and_then(SendError::refusal) {
        Some(refusal) if refusal.says_absent() => writing.moved("EC2 does not know it by now"),
        Some(refusal) if refusal.code == "OperationNotPermitted" => writing.refuse(&format!(
            "it is protected (disableApiTermination, or a stop protection); its owner must lift that first: {refusal}"
        )),
        _ => writing.outcome(sent),
    }
}

/// A machine of a group: what is to be answered.
async fn kept_by_group(account: &Account, id: &InstanceId, writing: &Writing) -> Option<Outcome> {
    match account.member(id).await {
        Ok(Some(member)) => Some(writing.refuse(&format!(
            "Auto Scaling group {} owns it and would replace a machine that is stopped or started from outside",
            member.group
        ))),
        Ok(None) => None,
        Err(error) => Some(writing.unread(&error)),
    }
}

pub(super) async fn read(
    account: &Account,
    id: &InstanceId,
    owned: &Ownership,
    writing: &Writing,
) -> Result<WireInstance, Outcome> {
    match account.wire_instance_to_change(id).await {
        Ok(Some(wire)) => writing.owned("instance", &wire.marks(), owned).map(|()| wire),
        Ok(None) => Err(writing.refuse("there is no such instance")),
        Err(error) => Err(writing.unread(&error)),
    }
}

async fn simple(account: &Account, action: &'static Action, verb: &str, id: &InstanceId) -> Outcome {
    let writing = account.place().writing(format!("{verb} instance {id}"));
    let request = Request::new(action).list("InstanceId", [id.as_str()]);
    writing.outcome(send(account, &request).await)
}

//! Tests which rights the credentials have, without doing anything.
//!
//! EC2 takes most requests with `DryRun`: it answers whether the caller may, and does nothing. The trial tests reads in this way,
//! and calls on instances where the operator names an instance of the cluster. Auto Scaling has no dry run, and a change of a
//! group, an interface or a route table would have to name one. These stay untested, and the report says so.

use std::sync::Arc;

use reveille_core::model::id::InstanceId;

use crate::account::Account;
use crate::actions::{ALL, Action, Right, Service};
use crate::client::SendError;
use crate::query_protocol::Request;

/// How one trial ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trial {
    /// The caller may.
    Held,
    /// The caller may not.
    Lacking,
    /// It could not be tried, and why.
    Untried(Arc<str>),
}

impl Account {
    /// Tries every right of the policy that can be tried: each with its name, as policies name it. `instance`: one of the
    /// cluster's, on which rights over instances are tried. Nothing is done to it.
    pub async fn try_rights(&self, instance: Option<&InstanceId>) -> Vec<(String, Trial)> {
        let mut tried = Vec::new();
        for action in ALL.iter().filter(|action| action.right != Right::Free) {
            let trial = match trial_of(action, instance) {
                Ok(request) => verdict(self.client().send(&request).await),
                Err(why) => Trial::Untried(Arc::from(why)),
            };
            tried.push((action.iam(), trial));
        }
        tried
    }
}

fn trial_of(action: &'static Action, instance: Option<&InstanceId>) -> Result<Request, &'static str> {
    let request = Request::new(action).with("DryRun", "true");
    match (action.service, action.right, instance) {
        (Service::Ec2, Right::Read, _) => Ok(request),
        (Service::Ec2, Right::ReadInstance, Some(id)) => Ok(request.with("InstanceId", id.as_str())),
        (Service::Ec2, Right::Instance, Some(id)) => Ok(request.list("InstanceId", [id.as_str()])),
        (_, Right::ReadInstance | Right::Instance, None) => {
            Err("there is no instance of the cluster to try it on")
        }
        (Service::AutoScaling, ..) => Err("Auto Scaling knows no trials"),
        _ => Err("it cannot be tried without naming what it would change"),
    }
}

/// A trial never succeeds: that it would have is an error of its own.
fn verdict(sent: Result<Vec<u8>, SendError>) -> Trial {
    match sent {
        Ok(_) => Trial::Untried(Arc::from("the service has answered as if it were no trial")),
        Err(SendError::Refused(refusal)) if refusal.code == "DryRunOperation" => Trial::Held,
        Err(SendError::Refused(refusal)) if refusal.says_forbidden() => Trial::Lacking,
        Err(error) => Trial::Untried(Arc::from(error.to_string())),
    }
}

//! Adds missing rules to a security group, removes one, or nudges the group.
//!
//! Rules are put one by one, because the bulk form is all or nothing and one rule that exists already would keep the others out.
//! A rule that "exists already" counts as put. A nudge makes Neutron's agents read the group again: it puts a rule that admits no
//! real address and deletes it at once. If the delete fails, the rule's description says that Reveille made it.

use std::sync::Arc;

use reqwest::StatusCode;
use reveille_cloud::steps::{Step, Steps, next_may_pass};
use reveille_core::effect::Outcome;
use reveille_core::model::id::{GroupId, RequestId, RuleId};
use reveille_core::model::network::{REPAIR_MARK, RuleSpec};
use serde::Deserialize;

use crate::catalog::Service;
use crate::client::Request;
use crate::group::{harmless_rule, mark_number, write_rule};
use crate::project::Project;
use crate::refusal::Refusal;

/// A nudge's rule may still be there from a nudge that broke off; the next address is free then.
const NUDGE_TRIES: u64 = 3;

/// A rule that was put: its id, where the answer says it.
type Put = (Option<RuleId>, Option<RequestId>);

/// Puts one rule; `None`: it was there.
async fn put(
    project: &Project,
    group: &GroupId,
    rule: &RuleSpec,
    description: &str,
) -> Result<Option<Put>, Outcome> {
    #[derive(Deserialize)]
    struct Body {
        security_group_rule: Created,
    }
    #[derive(Deserialize)]
    struct Created {
        id: String,
    }
    let exists = |refusal: &Refusal| {
        refusal.status == StatusCode::CONFLICT && refusal.fault.as_deref() == Some("SecurityGroupRuleExists")
    };
    let writing = project.place().writing(format!("add rule [{rule}] to group {group}"));
    let body = write_rule(group, rule, description)
        .ok_or_else(|| writing.refuse("the other end of it is not known"))?;
    match project.client().change(&Request::post(Service::Network, &["security-group-rules"], body)).await {
        Ok(reply) => {
            let id = serde_json::from_slice::<Body>(&reply.body).ok();
            let id = id.map(|body| RuleId::from(body.security_group_rule.id.as_str()));
            Ok(Some((id, reply.request)))
        }
        Err(error) if error.refusal().is_some_and(exists) => Ok(None),
        Err(error) => Err(writing.failed(&error)),
    }
}

/// Puts every rule, whatever becomes of the others, unless the failure would meet all of them.
pub(super) async fn add(project: &Project, group: &GroupId, rules: &[RuleSpec]) -> Outcome {
    let description = format!("{REPAIR_MARK}: was missing");
    let mut steps = Steps::default();
    for rule in rules {
        let step = match put(project, group, rule, &description).await {
            Ok(Some((_, request))) => Step::Done(request),
            Ok(None) => Step::WasSo,
            Err(outcome) => Step::Not(outcome),
        };
        if steps.note(step).is_some_and(|failure| !next_may_pass(failure)) {
            break;
        }
    }
    let all_were_so = format!("all {} rule(s) were in group {group}", rules.len());
    steps.outcome(rules.len(), &all_were_so, "rule(s) are there now")
}

pub(super) async fn drop_rule(project: &Project, rule: &RuleId) -> Outcome {
    let writing = project.place().writing(format!("remove rule {rule}"));
    let request = Request::delete(Service::Network, &["security-group-rules", rule.as_str()]);
    match project.send(&request).await {
        Err(error) if error.refusal().is_some_and(Refusal::says_absent) => {
            Outcome::AlreadySo { text: Arc::from(format!("there is no rule {rule}")) }
        }
        sent => writing.outcome(sent),
    }
}

pub(super) async fn nudge(project: &Project, group: &GroupId, mark: &str) -> Outcome {
    let writing = project.place().writing(format!("nudge group {group}"));
    let number = mark_number(mark);
    for step in 0..NUDGE_TRIES {
        let rule = harmless_rule(number.wrapping_add(step));
        let id = match put(project, group, &rule, mark).await {
            Ok(None) => continue,
            Err(Outcome::Unknown { text }) => {
                let text = format!("{text}; it may be there, described \"{mark}\"");
                return Outcome::Unknown { text: Arc::from(text) };
            }
            Err(outcome) => return outcome,
            Ok(Some((Some(id), _))) => id,
            Ok(Some((None, _))) => {
                let cause = format!(
                    "the harmless rule was put, and its id is not in the answer; it stays, described \"{mark}\""
                );
                return Outcome::Failed { text: writing.text(&cause), retry_after: None };
            }
        };
        let left = |why: &Outcome| {
            writing.text(&format!("the harmless rule {id} was put and stays, described \"{mark}\": {why}"))
        };
        return match drop_rule(project, &id).await {
            done @ Outcome::Accepted { .. } => done,
            Outcome::AlreadySo { .. } => Outcome::Accepted { request: None },
            why @ Outcome::Unknown { .. } => Outcome::Unknown { text: left(&why) },
            Outcome::Failed { text, retry_after } => {
                let why = Outcome::Failed { text, retry_after };
                Outcome::Failed { text: left(&why), retry_after }
            }
            why => Outcome::Failed { text: left(&why), retry_after: None },
        };
    }
    writing.refuse(
        "harmless rules of earlier nudges are still there; remove the rules described \"reveille-nudge …\"",
    )
}

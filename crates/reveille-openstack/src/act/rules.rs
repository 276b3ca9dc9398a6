//! Adds missing rules to a security group, removes one, or nudges the group.
//!
//! Rules are put one by one, because the bulk form is all or nothing and one rule that exists already would keep the others out.
//! A rule that "exists already" counts as put. A nudge makes Neutron's agents read the group again: it puts a rule that admits no
//! real address and deletes it at once. If the delete fails, the rule's description says that Reveille made it.

use std::sync::Arc;

use reqwest::StatusCode;
use reveille_core::effect::Outcome;
use reveille_core::model::id::{GroupId, RequestId, RuleId};
use reveille_core::model::network::{REPAIR_MARK, RuleSpec};
use serde::Deserialize;

use crate::catalog::Service;
use crate::client::Request;
use crate::group::{harmless_rule, mark_number, write_rule};
use crate::project::Project;
use crate::refusal::Refusal;
use crate::report::Writing;

/// A nudge's rule may still be there from a nudge that broke off; the next address is free then.
const NUDGE_TRIES: u64 = 3;

/// How one POST of a rule ended.
enum Put {
    /// It is there now, under this id, where the answer says it.
    Created(Option<RuleId>, Option<RequestId>),
    /// It was there.
    Existed,
    /// It is not there, or the answer does not tell.
    Not(Outcome),
}

async fn put(project: &Project, group: &GroupId, rule: &RuleSpec, description: &str) -> Put {
    #[derive(Deserialize)]
    struct Body {
        security_group_rule: Created,
    }
    #[derive(Deserialize)]
    struct Created {
        id: String,
    }
    let writing = Writing::new(Service::Network, format!("add rule [{rule}] to group {group}"));
    let Some(body) = write_rule(group, rule, description) else {
        return Put::Not(writing.refuse("the other end of it is not known"));
    };
    match project.client().send(&Request::post(Service::Network, &["security-group-rules"], body)).await {
        Ok(reply) if reply.status.is_success() => {
            let id = serde_json::from_slice::<Body>(&reply.body).ok();
            Put::Created(id.map(|body| RuleId::from(body.security_group_rule.id.as_str())), reply.request)
        }
        Ok(reply) => {
            let refusal = Refusal::read(&reply);
            let exists = refusal.fault.as_deref() == Some("SecurityGroupRuleExists");
            if refusal.status == StatusCode::CONFLICT && exists {
                Put::Existed
            } else {
                Put::Not(writing.refused(&refusal))
            }
        }
        Err(error) => Put::Not(writing.unanswered(&error)),
    }
}

/// Puts every rule, whatever becomes of the others, unless the failure would meet all of them.
pub(super) async fn add(project: &Project, group: &GroupId, rules: &[RuleSpec]) -> Outcome {
    let description = format!("{REPAIR_MARK}: was missing");
    let mut last_request = None;
    let (mut created, mut existed) = (0_usize, 0_usize);
    let mut failures: Vec<Outcome> = Vec::new();
    for rule in rules {
        match put(project, group, rule, &description).await {
            Put::Created(_, request) => {
                created += 1;
                last_request = request.or(last_request);
            }
            Put::Existed => existed += 1,
            Put::Not(outcome) => {
                let meets_all = matches!(
                    outcome,
                    Outcome::Limit { .. } | Outcome::Denied { .. } | Outcome::Failed { .. }
                );
                let silent = matches!(outcome, Outcome::Unknown { .. });
                failures.push(outcome);
                if meets_all || silent {
                    break;
                }
            }
        }
    }
    if failures.is_empty() {
        return if created > 0 {
            Outcome::Accepted { request: last_request }
        } else {
            Outcome::AlreadySo { text: Arc::from(format!("all {existed} rule(s) were in group {group}")) }
        };
    }
    sum_up(failures, created + existed, rules.len())
}

/// One outcome for several failures: the one that needs the most care, with the words of all.
fn sum_up(failures: Vec<Outcome>, there: usize, of: usize) -> Outcome {
    let words: Vec<String> = failures.iter().map(ToString::to_string).collect();
    let text: Arc<str> = Arc::from(format!("{there} of {of} rule(s) are there now; {}", words.join("; ")));
    let rank = |outcome: &Outcome| match outcome {
        Outcome::Unknown { .. } => 0,
        Outcome::Limit { .. } => 1,
        Outcome::Denied { .. } => 2,
        Outcome::Failed { .. } => 3,
        _ => 4,
    };
    match failures.into_iter().min_by_key(rank) {
        Some(Outcome::Unknown { .. }) => Outcome::Unknown { text },
        Some(Outcome::Limit { limit, .. }) => Outcome::Limit { limit, text },
        Some(Outcome::Denied { .. }) => Outcome::Denied { text },
        Some(Outcome::Failed { retry_after, .. }) => Outcome::Failed { text, retry_after },
        Some(Outcome::Moved { .. }) => Outcome::Moved { text },
        _ => Outcome::Refused { text },
    }
}

pub(super) async fn drop_rule(project: &Project, rule: &RuleId) -> Outcome {
    let writing = Writing::new(Service::Network, format!("remove rule {rule}"));
    let request = Request::delete(Service::Network, &["security-group-rules", rule.as_str()]);
    match project.client().send(&request).await {
        Ok(reply) if Refusal::read(&reply).says_absent(Service::Network) => {
            Outcome::AlreadySo { text: Arc::from(format!("there is no rule {rule}")) }
        }
        sent => writing.outcome(sent),
    }
}

pub(super) async fn nudge(project: &Project, group: &GroupId, mark: &str) -> Outcome {
    let writing = Writing::new(Service::Network, format!("nudge group {group}"));
    let number = mark_number(mark);
    for step in 0..NUDGE_TRIES {
        let rule = harmless_rule(number.wrapping_add(step));
        let id = match put(project, group, &rule, mark).await {
            Put::Existed => continue,
            Put::Not(Outcome::Unknown { text }) => {
                let text = format!("{text}; it may be there, described \"{mark}\"");
                return Outcome::Unknown { text: Arc::from(text) };
            }
            Put::Not(outcome) => return outcome,
            Put::Created(Some(id), _) => id,
            Put::Created(None, _) => {
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

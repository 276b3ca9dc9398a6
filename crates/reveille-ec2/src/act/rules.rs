//! Adds missing rules to a security group, and removes one.
//!
//! Each rule is a request of its own, because EC2 refuses a whole request when one of its rules exists already. A rule that
//! exists already counts as added.

use std::sync::Arc;

use reveille_core::effect::Outcome;
use reveille_core::model::id::{GroupId, RequestId, RuleId};
use reveille_core::model::network::{Direction, REPAIR_MARK, RuleSpec};

use crate::account::Account;
use crate::actions::{
    AUTHORIZE_EGRESS, AUTHORIZE_INGRESS, DESCRIBE_GROUP_RULES, REVOKE_EGRESS, REVOKE_INGRESS,
};
use crate::group::{Rules, WireRule, write_rule};
use crate::query::Request;
use crate::reply::request_id;
use crate::report::Writing;

/// How one rule's request ended.
enum Put {
    Created(Option<RequestId>),
    Existed,
    /// It is not there, or the answer does not tell.
    Not(Outcome),
}

async fn put(account: &Account, group: &GroupId, rule: &RuleSpec) -> Put {
    let writing = Writing::new(format!("add rule [{rule}] to group {group}"));
    let action = match rule.direction {
        Direction::Ingress => AUTHORIZE_INGRESS,
        Direction::Egress => AUTHORIZE_EGRESS,
    };
    let request = Request::new(action).with("GroupId", group.as_str());
    let Some(request) = write_rule(request, rule, &format!("{REPAIR_MARK}: was missing")) else {
        return Put::Not(writing.refuse("EC2 cannot take exactly this rule, only a wider one"));
    };
    match account.client().send(&request).await {
        Ok(body) => Put::Created(request_id(&body)),
        Err(error) => match error.refusal() {
            Some(refusal) if refusal.code == "InvalidPermission.Duplicate" => Put::Existed,
            _ => Put::Not(writing.failed(&error)),
        },
    }
}

/// Puts every rule, whatever becomes of the others, unless the failure would meet all of them.
pub(super) async fn add(account: &Account, group: &GroupId, rules: &[RuleSpec]) -> Outcome {
    let mut last_request = None;
    let (mut created, mut existed) = (0_usize, 0_usize);
    let mut failures: Vec<Outcome> = Vec::new();
    for rule in rules {
        match put(account, group, rule).await {
            Put::Created(request) => {
                created += 1;
                last_request = request.or(last_request);
            }
            Put::Existed => existed += 1,
            Put::Not(outcome) => {
                let meets_all = matches!(
                    outcome,
                    Outcome::Limit { .. } | Outcome::Failed { .. } | Outcome::Unknown { .. }
                );
                failures.push(outcome);
                if meets_all {
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
    super::sum_up(failures, &format!("{} of {} rule(s) are there now", created + existed, rules.len()))
}

/// Takes one rule out, by its id: EC2 wants to know which direction it is of, so it is read first.
pub(super) async fn drop_rule(account: &Account, group: &GroupId, rule: &RuleId) -> Outcome {
    let writing = Writing::new(format!("remove rule {rule} from group {group}"));
    let gone = || Outcome::AlreadySo { text: Arc::from(format!("there is no rule {rule} in group {group}")) };
    let reading = account.look_at(format!("read rule {rule}"));
    let request = Request::new(DESCRIBE_GROUP_RULES).filter("security-group-rule-id", [rule.as_str()]);
    let found = match account.read::<Rules>(&request, &reading).await {
        Ok(found) => found,
        Err(error) => return writing.unread(&error),
    };
    let mut found = found.into_iter().flat_map(|found| found.security_group_rule_set.items);
    let is_it =
        |one: &WireRule| one.security_group_rule_id == rule.as_str() && one.group_id == group.as_str();
    let Some(wire) = found.find(is_it) else { return gone() };
    let action = if wire.is_egress { REVOKE_EGRESS } else { REVOKE_INGRESS };
    let request =
        Request::new(action).with("GroupId", group.as_str()).list("SecurityGroupRuleId", [rule.as_str()]);
    match account.client().send(&request).await {
        Ok(body) => Outcome::Accepted { request: request_id(&body) },
        Err(error) => match error.refusal() {
            Some(refusal) if refusal.says_absent() => gone(),
            _ => writing.failed(&error),
        },
    }
}

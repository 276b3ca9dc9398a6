//! Adds missing rules to a security group, and removes one.
//!
//! Each rule is a request of its own, because EC2 refuses a whole request when one of its rules exists already. A rule that
//! exists already counts as added.

use std::sync::Arc;

use reveille_cloud::steps::{Step, Steps, next_may_pass};
use reveille_core::effect::Outcome;
use reveille_core::model::id::{GroupId, RuleId};
use reveille_core::model::network::{Direction, REPAIR_MARK, RuleSpec};

use super::send;
use crate::account::Account;
use crate::actions::{
    AUTHORIZE_EGRESS, AUTHORIZE_INGRESS, DESCRIBE_GROUP_RULES, REVOKE_EGRESS, REVOKE_INGRESS,
};
use crate::group::{Rules, WireRule, write_rule};
use crate::query_protocol::Request;
use crate::refusal::Refusal;

/// Puts one rule.
async fn put(account: &Account, group: &GroupId, rule: &RuleSpec) -> Step {
    let writing = account.place().writing(format!("add rule [{rule}] to group {group}"));
    let action = match rule.direction {
        Direction::Ingress => AUTHORIZE_INGRESS,
        Direction::Egress => AUTHORIZE_EGRESS,
    };
    let request = Request::new(action).with("GroupId", group.as_str());
    let Some(request) = write_rule(request, rule, &format!("{REPAIR_MARK}: was missing")) else {
        return Step::Not(writing.refuse("EC2 cannot take exactly this rule, only a wider one"));
    };
    match send(account, &request).await {
        Ok(request) => Step::Done(request),
        Err(error) => match error.refusal() {
            Some(refusal) if refusal.code == "InvalidPermission.Duplicate" => Step::WasSo,
            _ => Step::Not(writing.failed(&error)),
        },
    }
}

/// Puts every rule, whatever becomes of the others, unless the failure would meet all of them.
pub(super) async fn add(account: &Account, group: &GroupId, rules: &[RuleSpec]) -> Outcome {
    let mut steps = Steps::default();
    for rule in rules {
        let failure = steps.note(put(account, group, rule).await);
        // The right to let traffic in is another than the one to let it out.
        if failure.is_some_and(|it| !next_may_pass(it) && !matches!(it, Outcome::Denied { .. })) {
            break;
        }
    }
    let all_were_so = format!("all {} rule(s) were in group {group}", rules.len());
    steps.outcome(rules.len(), &all_were_so, "rule(s) are there now")
}

/// Takes one rule out, by its id: EC2 wants to know which direction it is of, so it is read first.
pub(super) async fn drop_rule(account: &Account, group: &GroupId, rule: &RuleId) -> Outcome {
    let writing = account.place().writing(format!("remove rule {rule} from group {group}"));
    let gone = || Outcome::AlreadySo { text: Arc::from(format!("there is no rule {rule} in group {group}")) };
    let reading = account.place().look(format!("read rule {rule}"));
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
    match send(account, &request).await {
        Err(error) if error.refusal().is_some_and(Refusal::says_absent) => gone(),
        sent => writing.outcome(sent),
    }
}

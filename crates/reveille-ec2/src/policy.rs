//! The least rights that this adapter needs, as an IAM policy.
//!
//! Made from the list of actions that the crate calls ([`crate::actions`]) and from nothing else, so that it can neither lack one
//! nor give one away. Machines are only touched where they carry the cluster's tag. Groups, interfaces and route tables need not
//! carry it, so they are not restricted by it. An operator who tags them can narrow the statements `Network` and `Routes` alike.

use serde_json::{Value, json};

use crate::actions::{ALL, Action, Right};
use crate::endpoint::partition;
use crate::instance::CLUSTER_TAG;

/// The policy document for the cluster of this id, in this region.
pub fn policy(region: &str, cluster: &str) -> String {
    let arn = |service: &str, kind: &str| format!("arn:{}:{service}:{region}:*:{kind}/*", partition(region));
    let tagged = || json!({ "Null": { format!("aws:ResourceTag/{CLUSTER_TAG}{cluster}"): "false" } });
    let instances = json!([arn("ec2", "instance")]);
    let network = ["security-group", "security-group-rule", "network-interface"].map(|kind| arn("ec2", kind));
    let group = format!("arn:{}:autoscaling:{region}:*:autoScalingGroup:*", partition(region));
    let statements = [
        statement("Look", Right::Read, json!("*"), None),
        statement("Consoles", Right::ReadInstance, instances.clone(), Some(tagged())),
        statement("Machines", Right::Instance, instances, Some(tagged())),
        statement("Groups", Right::Group, json!([group]), None),
        statement("Network", Right::Network, json!(network), None),
        statement("Routes", Right::Routes, json!([arn("ec2", "route-table")]), None),
    ];
    let policy = json!({ "Version": "2012-10-17", "Statement": statements });
    // A document of texts and lists always has a form.
    serde_json::to_string_pretty(&policy).unwrap_or_default()
}

fn statement(id: &str, right: Right, resource: Value, condition: Option<Value>) -> Value {
    let mut actions: Vec<String> =
        ALL.iter().filter(|it| it.right == right).map(|it| Action::iam(it)).collect();
    actions.sort();
    let mut statement = json!({ "Sid": id, "Effect": "Allow", "Action": actions, "Resource": resource });
    if let Some(condition) = condition {
        statement["Condition"] = condition;
    }
    statement
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn ec2_reference_page_shows_the_generated_policy() {
        let page = include_str!("../../../docs/reference/ec2.md");
        let shown = policy("eu-central-1", "prod");
        assert!(
            page.contains(&format!("```json\n{shown}\n```")),
            "docs/reference/ec2.md has to show:\n{shown}"
        );
    }

    /// No action is left out, none is given twice, none stands on all resources that could stand on fewer.
    #[test]
    fn the_policy_gives_exactly_what_is_called() {
        let policy: Value = serde_json::from_str(&policy("eu-central-1", "prod")).unwrap();
        let statements = policy["Statement"].as_array().unwrap();
        let given: Vec<&str> = statements
            .iter()
            .flat_map(|statement| statement["Action"].as_array().unwrap())
            .map(|action| action.as_str().unwrap())
            .collect();
        let wanted: BTreeSet<String> =
            ALL.iter().filter(|action| action.right != Right::Free).map(|action| action.iam()).collect();
        assert_eq!(given.len(), wanted.len());
        assert_eq!(given.iter().map(ToString::to_string).collect::<BTreeSet<_>>(), wanted);
        for statement in statements {
            assert_eq!(statement["Resource"] == "*", statement["Sid"] == "Look", "{statement}");
        }
        let machines = statements.iter().find(|statement| statement["Sid"] == "Machines").unwrap();
        assert_eq!(machines["Condition"]["Null"]["aws:ResourceTag/kubernetes.io/cluster/prod"], "false");
        assert_eq!(machines["Resource"][0], "arn:aws:ec2:eu-central-1:*:instance/*");
    }
}

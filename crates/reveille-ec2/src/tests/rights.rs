//! The list of actions from which the policy is made is the list of actions that are called: none more, none less.

use std::collections::BTreeSet;

use reveille_core::effect::{Call, Look};
use reveille_core::model::id::{
    GroupId, InstanceId, NodeName, NodeUid, PortId, ProjectId, RouterId, RuleId, UserId,
};
use reveille_core::model::instance::Mark;
use reveille_core::model::log_evidence::EvidenceQuery;
use reveille_core::model::network::{Direction, Family, Remote, Route, RuleSpec};
use reveille_core::model::roster::GroupRef;
use reveille_core::remedies::{
    AddPortPairs, AddRoutes, AddRules, AssignRoles, DeleteInstance, DeleteNode, DropRule, NudgeGroup,
    NudgeRouter, Reboot, RemoveRoutes, SetPortGroups, StartInstance,
};

use super::fake::{Fake, Reply, Seen, aws, fault, owned};
use super::words::{answer, instances, interface, interfaces, result, route, table, tagged};
use crate::actions::{ALL, Right};
use crate::interface::WireInterface;
use crate::{Interest, Lister, Trial};

fn eni() -> String {
    interface("eni-1", 1, true, &["sg-1"], Some("i-1"))
}

/// An account in which every question has an answer and every call has something to do.
fn busy(seen: &Seen) -> Option<Reply> {
    match seen.action() {
        "DescribeInstances" => {
            let owner = [("aws:autoscaling:groupName", "g1"), ("spot", "")];
            let owned = seen.get("InstanceId.1") != "i-free";
            let state = if seen.get("InstanceId.1") == "i-off" { "stopped" } else { "running" };
            let id = Some(seen.get("InstanceId.1")).filter(|id| !id.is_empty()).unwrap_or("i-1");
            Some(instances(
                &[tagged(id, state, 1, if owned && state == "running" { &owner } else { &[] })],
                None,
            ))
        }
        "DescribeNetworkInterfaces" => Some(interfaces(&[eni()])),
        "DescribeSecurityGroups" => Some(answer(
            "DescribeSecurityGroups",
            "<securityGroupInfo><item><groupId>sg-1</groupId><groupName>n</groupName></item></securityGroupInfo>",
        )),
        "DescribeSecurityGroupRules" => {
            let egress = seen.asked().contains("sgr-out");
            let id = if egress { "sgr-out" } else { "sgr-in" };
            let rule = format!(
                "<securityGroupRuleSet><item><securityGroupRuleId>{id}</securityGroupRuleId><groupId>sg-1</groupId><isEgress>{egress}\
                 </isEgress><ipProtocol>-1</ipProtocol></item></securityGroupRuleSet>"
            );
            Some(answer("DescribeSecurityGroupRules", &rule))
        }
        "DescribeRouteTables" => Some(table(&[route("10.244.1.0/24", "eni-1", "active")])),
        "DescribeAutoScalingInstances" if seen.asked().contains("i-1") => {
            Some(super::words::member("i-1", "InService"))
        }
        "DescribeAutoScalingInstances" => Some(result(seen.action(), "<AutoScalingInstances/>")),
        _ => None,
    }
}

fn looks() -> Vec<Look> {
    let one = || InstanceId::from("i-1");
    let evidence_query = EvidenceQuery { node: None, asks_as: NodeName::from("n"), console_counts: true };
    vec![
        Look::Instance(aws(), one()),
        Look::Ports(aws(), one()),
        Look::Group(aws(), GroupId::from("sg-1")),
        Look::Router(aws(), RouterId::from("rtb-1")),
        Look::Console(aws(), one()),
        Look::LogEvidence(aws(), one(), evidence_query.into()),
        Look::Actions(aws(), one()),
    ]
}

fn calls() -> Vec<Call> {
    let (cloud, group, router) = (aws, || GroupId::from("sg-1"), || RouterId::from("rtb-1"));
    let instance = |id: &str| InstanceId::from(id);
    let rule = |direction| RuleSpec {
        direction,
        family: Family::V4,
        protocol: None,
        ports: None,
        remote: Remote::Any,
    };
    let route = |to: &str| Route { destination: to.parse().unwrap(), next_hop: "10.0.0.1".parse().unwrap() };
    let wire: WireInterface = quick_xml::de::from_str(&eni()).unwrap();
    let (port, if_revision) = (|| PortId::from("eni-1"), wire.revision());
    vec![
        Call::AddRules(AddRules {
            cloud: cloud(),
            group: group(),
            rules: vec![rule(Direction::Ingress), rule(Direction::Egress)],
        }),
        Call::DropRule(DropRule { cloud: cloud(), group: group(), rule: RuleId::from("sgr-in") }),
        Call::DropRule(DropRule { cloud: cloud(), group: group(), rule: RuleId::from("sgr-out") }),
        Call::NudgeGroup(NudgeGroup { cloud: cloud(), group: group(), mark: "m".into() }),
        Call::SetPortGroups(SetPortGroups {
            cloud: cloud(),
            port: port(),
            groups: vec![group(), GroupId::from("sg-2")],
            if_revision,
            instance: instance("i-1"),
            owned: owned(),
        }),
        Call::AddPortPairs(AddPortPairs {
            cloud: cloud(),
            port: port(),
            pairs: Vec::new(),
            if_revision,
            instance: instance("i-1"),
            owned: owned(),
        }),
        Call::AddRoutes(AddRoutes { cloud: cloud(), router: router(), routes: vec![route("10.244.2.0/24")] }),
        Call::RemoveRoutes(RemoveRoutes {
            cloud: cloud(),
            router: router(),
            routes: vec![route("10.244.1.0/24")],
            unless_used: Vec::new(),
        }),
        Call::NudgeRouter(NudgeRouter { cloud: cloud(), router: router(), route: route("192.0.2.0/24") }),
        Call::AssignRoles(AssignRoles {
            cloud: cloud(),
            project: ProjectId::from("p"),
            user: UserId::from("u"),
            roles: Vec::new(),
        }),
        Call::Reboot(Reboot { cloud: cloud(), instance: instance("i-free"), hard: false, owned: owned() }),
        Call::Reboot(Reboot { cloud: cloud(), instance: instance("i-free"), hard: true, owned: owned() }),
        Call::Start(StartInstance { cloud: cloud(), instance: instance("i-off"), owned: owned() }),
        Call::DeleteInstance(DeleteInstance {
            cloud: cloud(),
            instance: instance("i-1"),
            owned: owned(),
            rests_on: None,
        }),
        Call::DeleteInstance(DeleteInstance {
            cloud: cloud(),
            instance: instance("i-free"),
            owned: owned(),
            rests_on: None,
        }),
        Call::DeleteNode(DeleteNode { name: NodeName::from("n"), uid: NodeUid::from("u"), boot_id: None }),
    ]
}

#[tokio::test]
async fn what_is_called_is_what_the_policy_names() {
    let fake = Fake::start(busy).await;
    let account = {
        let env =
            [("AWS_ACCESS_KEY_ID", "k"), ("AWS_SECRET_ACCESS_KEY", "s"), ("AWS_REGION", "eu-central-1")];
        let config =
            crate::Ec2Config { endpoint: Some(fake.url().parse().unwrap()), ..super::fake::config() };
        crate::Account::connect_by(&config, super::fake::loader(&env, &[]), super::fake::pace())
            .await
            .unwrap()
    };
    let interest = Interest {
        cluster_marks: BTreeSet::from([Mark::Tag("kubernetes.io/cluster/prod".into())]),
        groups: BTreeSet::from([GroupRef::Id(GroupId::from("sg-1"))]),
        routers: BTreeSet::from([RouterId::from("rtb-1")]),
    };
    // A survey is for an operator who has no roster yet: it needs no right but those of the statement `Look`.
    account.survey().await.unwrap();
    let surveyed: BTreeSet<String> = fake.take_actions().into_iter().collect();
    let free_or_read = |name: &String| {
        ALL.iter().any(|action| action.name == name && matches!(action.right, Right::Free | Right::Read))
    };
    assert!(surveyed.iter().all(free_or_read), "{surveyed:?}");
    Lister::new(account.clone(), interest).list(true).await.unwrap();
    for look in looks() {
        account.look(&look).await.unwrap();
    }
    for call in calls() {
        let outcome = account.perform(&call).await.to_string();
        let has_no_such_thing = matches!(
            call,
            Call::NudgeGroup(_) | Call::NudgeRouter(_) | Call::AssignRoles(_) | Call::DeleteNode(_)
        );
        let is_cycle = matches!(call, Call::Reboot(Reboot { hard: true, .. }));
        let expected = match (has_no_such_thing, is_cycle) {
            (true, _) => "refused",
            (_, true) => "unknown",
            _ => "accepted",
        };
        assert!(outcome.starts_with(expected), "{call}: {outcome}");
    }
    let called: BTreeSet<String> = fake.take_actions().into_iter().chain(surveyed).collect();
    let named: BTreeSet<String> = ALL.iter().map(|action| action.name.to_owned()).collect();
    assert_eq!(called, named);
}

/// A trial says so in every request that it sends: without that word it would be the deed.
#[tokio::test]
async fn rights_are_tried_and_nothing_is_done() {
    let fake = Fake::start(|_| None).await;
    let account = fake.connect().await;
    fake.answer(|seen| {
        let lacking = ["TerminateInstances", "DescribeRouteTables"].contains(&seen.action());
        Some(if lacking { fault(403, "UnauthorizedOperation") } else { fault(412, "DryRunOperation") })
    });
    let tried = account.try_rights(Some(&InstanceId::from("i-1"))).await;
    let with = |wanted: &Trial| -> Vec<&str> {
        tried.iter().filter(|(_, trial)| trial == wanted).map(|(action, _)| action.as_str()).collect()
    };
    assert_eq!(with(&Trial::Lacking), ["ec2:DescribeRouteTables", "ec2:TerminateInstances"]);
    assert!(with(&Trial::Held).contains(&"ec2:StopInstances"));
    let untried: Vec<&str> = tried
        .iter()
        .filter(|(_, trial)| matches!(trial, Trial::Untried(_)))
        .map(|(action, _)| action.as_str())
        .collect();
    assert!(
        untried.contains(&"ec2:CreateRoute") && untried.contains(&"autoscaling:DescribeAutoScalingGroups")
    );
    assert_eq!(tried.len(), ALL.len() - 1, "all but the one that everybody has");
    let seen = fake.take_seen();
    assert_eq!(seen.len(), tried.len() - untried.len());
    assert!(seen.iter().all(|seen| seen.get("DryRun") == "true"));
    let without = account.try_rights(None).await;
    let stop = without.iter().find(|(action, _)| action == "ec2:StopInstances").map(|(_, trial)| trial);
    assert!(matches!(stop, Some(Trial::Untried(_))), "{stop:?}");
}

//! Rules, groups of interfaces and routes: exactly what was asked, or nothing.

use reveille_core::effect::{Call, Outcome};
use reveille_core::model::id::{GroupId, InstanceId, PortId, RouterId, RuleId};
use reveille_core::model::network::{Direction, Family, Protocol, Remote, Route, RuleSpec};
use reveille_core::remedies::{AddPortPairs, AddRoutes, AddRules, DropRule, RemoveRoutes, SetPortGroups};

use super::fake::{Fake, Reply, Seen, aws, fault, owned, perform};
use super::words::{answer, instance, instances, interface, interfaces, route, table};
use crate::interface::WireInterface;

fn begins(outcome: &Outcome, with: &str) {
    assert!(outcome.to_string().starts_with(with), "{with}: {outcome}");
}

fn rule(port: u16) -> RuleSpec {
    RuleSpec {
        direction: if port == 53 { Direction::Egress } else { Direction::Ingress },
        family: Family::V4,
        protocol: Some(Protocol::TCP),
        ports: Some((port, port)),
        remote: Remote::Prefix("10.244.0.0/16".parse().unwrap()),
    }
}

fn add(ports: &[u16]) -> Call {
    Call::AddRules(AddRules {
        cloud: aws(),
        group: GroupId::from("sg-1"),
        rules: ports.iter().copied().map(rule).collect(),
    })
}

#[tokio::test]
async fn rules_are_put_one_by_one_and_one_that_is_there_counts_as_put() {
    let (outcome, changes) = perform(&add(&[22, 53]), |seen| {
        (seen.get("IpPermissions.1.FromPort") == "22").then(|| fault(400, "InvalidPermission.Duplicate"))
    })
    .await;
    assert_eq!(outcome, Outcome::Accepted { request: Some("req-7".into()) });
    let rest = "IpPermissions.1.IpProtocol=6 IpPermissions.1.IpRanges.1.CidrIp=10.244.0.0/16 \
        IpPermissions.1.IpRanges.1.Description=reveille: was missing IpPermissions.1.ToPort=";
    assert_eq!(
        changes,
        [
            format!("AuthorizeSecurityGroupIngress GroupId=sg-1 IpPermissions.1.FromPort=22 {rest}22"),
            format!("AuthorizeSecurityGroupEgress GroupId=sg-1 IpPermissions.1.FromPort=53 {rest}53"),
        ]
    );
    let there = |seen: &Seen| {
        seen.action().starts_with("Authorize").then(|| fault(400, "InvalidPermission.Duplicate"))
    };
    let (outcome, _) = perform(&add(&[22, 53]), there).await;
    begins(&outcome, "was so already: all 2 rule(s)");
}

#[tokio::test]
async fn rule_limit_ends_the_call_but_refused_rule_skips_only_itself() {
    let full = |seen: &Seen| {
        seen.action().starts_with("Authorize").then(|| fault(400, "RulesPerSecurityGroupLimitExceeded"))
    };
    let (outcome, changes) = perform(&add(&[22, 80]), full).await;
    begins(&outcome, "limit reached: 0 of 2 rule(s) are there now");
    assert_eq!(changes.len(), 1);
    let one = |seen: &Seen| {
        (seen.get("IpPermissions.1.FromPort") == "22").then(|| fault(400, "InvalidParameterValue"))
    };
    let (outcome, changes) = perform(&add(&[22, 80]), one).await;
    begins(&outcome, "refused: 1 of 2 rule(s) are there now");
    assert_eq!(changes.len(), 2);
}

#[tokio::test]
async fn a_rule_is_taken_out_by_its_id_in_the_direction_that_it_is_of() {
    let call =
        Call::DropRule(DropRule { cloud: aws(), group: GroupId::from("sg-1"), rule: RuleId::from("sgr-1") });
    let listed = |egress: bool| {
        answer(
            "DescribeSecurityGroupRules",
            &format!(
                "<securityGroupRuleSet><item><securityGroupRuleId>sgr-1</securityGroupRuleId><groupId>sg-1</groupId><isEgress>{egress}\
             </isEgress><ipProtocol>-1</ipProtocol></item></securityGroupRuleSet>"
            ),
        )
    };
    for (egress, action) in [(false, "RevokeSecurityGroupIngress"), (true, "RevokeSecurityGroupEgress")] {
        let (outcome, changes) = perform(&call, move |seen| {
            (seen.action() == "DescribeSecurityGroupRules").then(|| listed(egress))
        })
        .await;
        begins(&outcome, "accepted");
        assert_eq!(changes, [format!("{action} GroupId=sg-1 SecurityGroupRuleId.1=sgr-1")]);
    }
    let (outcome, changes) = perform(&call, |_| None).await;
    begins(&outcome, "was so already");
    assert_eq!(changes.len(), 0);
}

fn revision(check: bool, groups: &[&str]) -> u64 {
    let wire: WireInterface =
        quick_xml::de::from_str(&interface("eni-1", 1, check, groups, Some("i-1"))).unwrap();
    wire.revision()
}

fn eni(check: bool, groups: &'static [&'static str]) -> impl FnMut(&Seen) -> Option<Reply> {
    move |seen| match seen.action() {
        "DescribeInstances" => Some(instances(&[instance("i-1", "running", 1)], None)),
        "DescribeNetworkInterfaces" => Some(interfaces(&[interface("eni-1", 1, check, groups, Some("i-1"))])),
        _ => None,
    }
}

#[tokio::test]
async fn groups_are_replaced_only_as_they_were_when_it_was_decided() {
    let call = |groups: &[&str], if_revision| {
        Call::SetPortGroups(SetPortGroups {
            cloud: aws(),
            port: PortId::from("eni-1"),
            groups: groups.iter().copied().map(GroupId::from).collect(),
            if_revision,
            instance: InstanceId::from("i-1"),
            owned: owned(),
        })
    };
    let read = revision(true, &["sg-1"]);
    let (outcome, changes) = perform(&call(&["sg-1", "sg-2"], read), eni(true, &["sg-1"])).await;
    begins(&outcome, "accepted");
    assert_eq!(
        changes,
        [
            "ModifyNetworkInterfaceAttribute NetworkInterfaceId=eni-1 SecurityGroupId.1=sg-1 SecurityGroupId.2=sg-2",
        ]
    );
    // Another client has added its own group meanwhile: the write as asked would remove that group.
    let (outcome, changes) = perform(&call(&["sg-1", "sg-2"], read), eni(true, &["sg-1", "sg-theirs"])).await;
    begins(&outcome, "changed meanwhile");
    assert_eq!(changes.len(), 0);
    for (groups, found, expected) in [
        (&["sg-1"][..], true, "was so already"),
        (&[][..], true, "refused"),
        (&["sg-2"][..], false, "refused"),
    ] {
        let (outcome, changes) = perform(&call(groups, read), move |seen| {
            let asked = found || seen.action() == "DescribeInstances";
            asked.then(|| eni(true, &["sg-1"])(seen)).flatten()
        })
        .await;
        begins(&outcome, expected);
        assert_eq!(changes.len(), 0);
    }
}

#[tokio::test]
async fn allowing_pod_addresses_disables_source_destination_check() {
    let call = |if_revision| {
        Call::AddPortPairs(AddPortPairs {
            cloud: aws(),
            port: PortId::from("eni-1"),
            pairs: vec!["10.244.1.0/24".parse().unwrap()],
            if_revision,
            instance: InstanceId::from("i-1"),
            owned: owned(),
        })
    };
    let (outcome, changes) = perform(&call(revision(true, &["sg-1"])), eni(true, &["sg-1"])).await;
    begins(&outcome, "accepted");
    assert_eq!(
        changes,
        ["ModifyNetworkInterfaceAttribute NetworkInterfaceId=eni-1 SourceDestCheck.Value=false"]
    );
    let (outcome, changes) = perform(&call(revision(false, &["sg-1"])), eni(false, &["sg-1"])).await;
    begins(&outcome, "was so already");
    assert_eq!(changes.len(), 0);
}

fn routes(list: &[(&str, &str)]) -> Vec<Route> {
    let route =
        |(to, via): &(&str, &str)| Route { destination: to.parse().unwrap(), next_hop: via.parse().unwrap() };
    list.iter().map(route).collect()
}

fn adding(list: &[(&str, &str)]) -> Call {
    Call::AddRoutes(AddRoutes { cloud: aws(), router: RouterId::from("rtb-1"), routes: routes(list) })
}

fn removing(list: &[(&str, &str)]) -> Call {
    let (router, routes) = (RouterId::from("rtb-1"), routes(list));
    Call::RemoveRoutes(RemoveRoutes { cloud: aws(), router, routes, unless_used: Vec::new() })
}

/// The table of a cluster: one good route, one with a dead next hop.
fn network(seen: &Seen) -> Option<Reply> {
    match seen.action() {
        "DescribeRouteTables" => Some(table(&[
            route("10.244.1.0/24", "eni-1", "active"),
            route("10.244.3.0/24", "eni-gone", "blackhole"),
        ])),
        "DescribeNetworkInterfaces" => {
            let wanted = seen.asked();
            let all = [(1, "eni-1", "i-1"), (2, "eni-2", "i-2")];
            let found = all
                .iter()
                .filter(|(last, id, _)| wanted.contains(id) || wanted.contains(&format!("10.0.0.{last} ")));
            let found: Vec<String> =
                found.map(|(last, id, owner)| interface(id, *last, false, &["sg-1"], Some(owner))).collect();
            Some(interfaces(&found))
        }
        _ => None,
    }
}

#[tokio::test]
async fn route_is_added_through_interface_of_address_never_replaced() {
    let (outcome, changes) = perform(&adding(&[("10.244.2.0/24", "10.0.0.2")]), network).await;
    begins(&outcome, "accepted");
    assert_eq!(
        changes,
        ["CreateRoute DestinationCidrBlock=10.244.2.0/24 NetworkInterfaceId=eni-2 RouteTableId=rtb-1",]
    );
    for (asked, expected) in [
        (("10.244.1.0/24", "10.0.0.1"), "was so already"),
        (("10.244.1.0/24", "10.0.0.2"), "refused"),
        (("10.244.3.0/24", "10.0.0.2"), "refused"),
        (("10.244.4.0/24", "10.0.0.9"), "refused"),
    ] {
        let (outcome, changes) = perform(&adding(&[asked]), network).await;
        begins(&outcome, expected);
        assert_eq!(changes.len(), 0, "{asked:?}");
    }
}

#[tokio::test]
async fn full_route_table_reports_limit_and_its_size_is_remembered() {
    let fake = Fake::start(|_| None).await;
    let account = fake.connect().await;
    fake.answer(|seen| {
        if seen.action() == "CreateRoute" { Some(fault(400, "RouteLimitExceeded")) } else { network(seen) }
    });
    let outcome =
        account.perform(&adding(&[("10.244.2.0/24", "10.0.0.2"), ("10.244.4.0/24", "10.0.0.2")])).await;
    assert!(matches!(outcome, Outcome::Limit { limit: Some(3), .. }), "{outcome}");
    assert_eq!(account.routes_max(&RouterId::from("rtb-1")), Some(3));
}

#[tokio::test]
async fn a_route_is_removed_only_while_it_leads_where_it_did() {
    let delete = |to: &str| format!("DeleteRoute DestinationCidrBlock={to} RouteTableId=rtb-1");
    let (outcome, changes) =
        perform(&removing(&[("10.244.1.0/24", "10.0.0.1"), ("10.244.3.0/24", "0.0.0.0")]), network).await;
    begins(&outcome, "accepted");
    assert_eq!(changes, [delete("10.244.1.0/24"), delete("10.244.3.0/24")]);
    for (asked, expected) in [
        (("10.244.1.0/24", "10.0.0.9"), "changed meanwhile"),
        // A route with a live next hop is no black hole, although the call names it as one.
        (("10.244.1.0/24", "0.0.0.0"), "changed meanwhile"),
        (("10.244.7.0/24", "10.0.0.9"), "was so already"),
    ] {
        let (outcome, changes) = perform(&removing(&[asked]), network).await;
        begins(&outcome, expected);
        assert_eq!(changes.len(), 0, "{asked:?}");
    }
}

/// An interface took the next hop's address after the listings.
#[tokio::test]
async fn route_to_interface_in_use_is_not_removed() {
    let with = |unless_used: &[&str]| {
        let (router, routes) = (RouterId::from("rtb-1"), routes(&[("10.244.1.0/24", "10.0.0.1")]));
        let unless_used = unless_used.iter().map(|hop| hop.parse().unwrap()).collect();
        Call::RemoveRoutes(RemoveRoutes { cloud: aws(), router, routes, unless_used })
    };
    let (outcome, changes) = perform(&with(&["10.0.0.1"]), network).await;
    begins(&outcome, "changed meanwhile");
    assert_eq!(changes.len(), 0);
    let (outcome, changes) = perform(&with(&["0.0.0.0", "10.0.0.99"]), network).await;
    begins(&outcome, "accepted");
    assert_eq!(changes.len(), 1);
}

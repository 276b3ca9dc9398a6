//! A listing is whole or void; it hands over what EC2 said, and the objects' own marks say who owns them.

use std::collections::BTreeSet;

use reveille_core::effect::ReadErrorKind;
use reveille_core::event::{CloudSnapshot, Scope};
use reveille_core::model::hosting::{Check, Checks, GroupPhase};
use reveille_core::model::id::RouterId;
use reveille_core::model::instance::{InstanceState, Mark};
use reveille_core::model::roster::GroupRef;

use super::fake::{Fake, Reply, Seen, fault};
use super::words::{
    answer, instance, instances, interface, interfaces, member, result, route, table, tagged,
};
use crate::{Interest, Lister};

fn interest() -> Interest {
    Interest {
        cluster_marks: BTreeSet::from([Mark::Tag("kubernetes.io/cluster/prod".into())]),
        groups: BTreeSet::from([GroupRef::Name("k8s-nodes".into())]),
        routers: BTreeSet::from([RouterId::from("rtb-1")]),
    }
}

async fn lister(handler: impl FnMut(&Seen) -> Option<Reply> + Send + 'static) -> (Fake, Lister) {
    let fake = Fake::start(|_| None).await;
    let account = fake.connect().await;
    fake.answer(handler);
    (fake, Lister::new(account, interest()))
}

fn ids(snapshot: &CloudSnapshot) -> Vec<&str> {
    snapshot.instances.iter().map(|one| one.id.as_str()).collect()
}

#[tokio::test]
async fn a_cycle_is_a_handful_of_requests_and_hands_over_every_state() {
    let (fake, mut lister) = lister(|seen| match seen.action() {
        "DescribeInstances" => {
            let states = ["pending", "running", "shutting-down", "terminated", "stopping", "stopped"];
            let items: Vec<String> = states.iter().zip(1..).map(|(state, n)| instance(&format!("i-{n}"), state, n)).collect();
            Some(instances(&items, None))
        }
        "DescribeSecurityGroups" => Some(answer(
            "DescribeSecurityGroups",
            "<securityGroupInfo><item><ownerId>123456789012</ownerId><groupId>sg-1</groupId><groupName>k8s-nodes</groupName>\
             <vpcId>vpc-1</vpcId></item></securityGroupInfo>",
        )),
        "DescribeRouteTables" => Some(table(&[route("10.244.2.0/24", "eni-2", "active")])),
        _ => None,
    })
    .await;
    let snapshot = lister.list(true).await.unwrap();
    let states: Vec<InstanceState> = snapshot.instances.iter().map(|one| one.state).collect();
    use InstanceState::{Active, Building, Deleting, Gone, Stopped};
    assert_eq!(states, [Building, Active, Deleting, Gone, Stopped, Stopped]);
    assert_eq!(snapshot.scope, Scope::Full);
    assert_eq!(snapshot.ports.len(), 5, "what has ended has given its interface back");
    assert_eq!(snapshot.routers[0].routes[0].to_string(), "10.244.2.0/24 via 10.0.0.2");
    let seen = fake.take_seen();
    let first = seen.iter().find(|seen| seen.action() == "DescribeInstances").unwrap();
    assert_eq!(
        first.asked(),
        "Filter.1.Name=tag-key Filter.1.Value.1=kubernetes.io/cluster/prod MaxResults=1000"
    );
    let groups = seen.iter().find(|seen| seen.action() == "DescribeSecurityGroups").unwrap();
    assert!(groups.asked().contains("Filter.2.Name=vpc-id Filter.2.Value.1=vpc-1"), "{}", groups.asked());
    let mut actions: Vec<&str> = seen.iter().map(Seen::action).collect();
    actions.sort();
    assert_eq!(
        actions,
        [
            "DescribeInstanceStatus",
            "DescribeInstanceTypes",
            "DescribeInstances",
            "DescribeRouteTables",
            "DescribeSecurityGroupRules",
            "DescribeSecurityGroups",
        ]
    );
}

#[tokio::test]
async fn listing_follows_all_pages_beyond_an_empty_page() {
    let (_fake, mut lister) = lister(|seen| {
        (seen.action() == "DescribeInstances").then(|| match seen.get("NextToken") {
            "" => instances(&[instance("i-1", "running", 1), instance("i-2", "pending", 2)], Some("t1")),
            "t1" => instances(&[], Some("t2")),
            // It moved to a later page meanwhile: the later reading wins.
            _ => instances(&[instance("i-2", "running", 2), instance("i-3", "running", 3)], None),
        })
    })
    .await;
    let snapshot = lister.list(true).await.unwrap();
    assert_eq!(ids(&snapshot), ["i-1", "i-2", "i-3"]);
    assert_eq!(snapshot.instances[1].state, InstanceState::Active);
}

/// Whatever part cannot be read whole: nothing is handed over, least of all a shorter list.
#[tokio::test]
async fn a_part_that_is_missing_makes_the_whole_listing_void() {
    let first = || {
        instances(
            &[tagged("i-1", "running", 1, &[("aws:autoscaling:groupName", "g1"), ("spot", "")])],
            Some("t1"),
        )
    };
    let second = || instances(&[instance("i-2", "running", 2)], None);
    type Break = (&'static str, fn(&Seen) -> Option<Reply>, ReadErrorKind);
    let cases: [Break; 8] = [
        (
            "second page",
            |seen| (seen.get("NextToken") == "t1").then(|| fault(400, "InvalidNextToken")),
            ReadErrorKind::Incomplete,
        ),
        (
            "throttled for good",
            |seen| (seen.get("NextToken") == "t1").then(|| fault(503, "RequestLimitExceeded")),
            ReadErrorKind::Incomplete,
        ),
        (
            "the same token",
            |seen| (seen.get("NextToken") == "t1").then(|| instances(&[], Some("t1"))),
            ReadErrorKind::Incomplete,
        ),
        (
            "statuses",
            |seen| (seen.action() == "DescribeInstanceStatus").then(|| fault(403, "UnauthorizedOperation")),
            ReadErrorKind::Forbidden,
        ),
        (
            "scaling",
            |seen| (seen.action() == "DescribeAutoScalingGroups").then(|| fault(400, "AccessDenied")),
            ReadErrorKind::Forbidden,
        ),
        (
            "spot",
            |seen| (seen.action() == "DescribeSpotInstanceRequests").then(|| fault(500, "InternalError")),
            ReadErrorKind::Unavailable,
        ),
        (
            "groups",
            |seen| (seen.action() == "DescribeSecurityGroups").then(|| fault(400, "InvalidParameterValue")),
            ReadErrorKind::Malformed,
        ),
        (
            "a route through an interface that is in no list",
            |seen| {
                (seen.action() == "DescribeRouteTables")
                    .then(|| table(&[route("10.244.9.0/24", "eni-9", "active")]))
            },
            ReadErrorKind::Incomplete,
        ),
    ];
    for (name, breaks, kind) in cases {
        let (_fake, mut lister) = lister(move |seen| {
            breaks(seen).or_else(|| match (seen.action(), seen.get("NextToken")) {
                ("DescribeInstances", "") => Some(first()),
                ("DescribeInstances", _) => Some(second()),
                _ => None,
            })
        })
        .await;
        let error = lister.list(true).await.unwrap_err();
        assert_eq!(error.kind, kind, "{name}: {error}");
        assert!(error.text.contains("Nothing is judged from this listing."), "{name}: {error}");
    }
}

#[tokio::test]
async fn route_lists_address_or_dead_hop_and_gateway_uses_up_limit() {
    let (fake, _) = lister(|seen| match seen.action() {
        "DescribeInstances" => Some(instances(&[instance("i-1", "running", 1)], None)),
        "DescribeRouteTables" => Some(table(&[
            route("10.244.1.0/24", "eni-1", "active"),
            route("10.244.2.0/24", "eni-stranger", "active"),
            route("10.244.3.0/24", "eni-gone", "blackhole"),
            "<item><destinationCidrBlock>0.0.0.0/0</destinationCidrBlock><gatewayId>igw-1</gatewayId><state>active</state>\
             <origin>CreateRoute</origin></item>"
                .to_owned(),
        ])),
        "DescribeNetworkInterfaces" => {
            assert_eq!(seen.asked(), "Filter.1.Name=network-interface-id Filter.1.Value.1=eni-gone \
                Filter.1.Value.2=eni-stranger MaxResults=1000");
            Some(interfaces(&[interface("eni-stranger", 77, false, &["sg-9"], Some("i-stranger"))]))
        }
        _ => None,
    })
    .await;
    let config = crate::Ec2Config {
        endpoint: Some(fake.url().parse().unwrap()),
        routes_max: Some(50),
        ..super::fake::config()
    };
    let env = [("AWS_ACCESS_KEY_ID", "k"), ("AWS_SECRET_ACCESS_KEY", "s"), ("AWS_REGION", "eu-central-1")];
    let account = crate::Account::connect_by(&config, super::fake::loader(&env, &[]), super::fake::pace())
        .await
        .unwrap();
    let snapshot = Lister::new(account, interest()).list(true).await.unwrap();
    let routes: Vec<String> = snapshot.routers[0].routes.iter().map(ToString::to_string).collect();
    assert_eq!(
        routes,
        [
            "10.244.1.0/24 via 10.0.0.1",
            "10.244.2.0/24 via 10.0.0.77",
            "10.244.3.0/24 via a next hop that is gone"
        ]
    );
    assert_eq!(snapshot.routers[0].limit, Some(48), "50, less the local route and the one to the internet");
    let owners: Vec<&str> = snapshot.ports.iter().map(|(id, _)| id.as_str()).collect();
    assert_eq!(owners, ["i-1", "i-stranger"], "the address of the foreign machine is in use");
}

/// The filter finds what carries the key; whose it is, is read from the object.
#[tokio::test]
async fn an_instance_is_ours_by_its_own_tags_alone() {
    let (_fake, mut lister) = lister(|seen| {
        let stranger = || instance("i-2", "running", 2).replace("cluster/prod", "cluster/other");
        (seen.action() == "DescribeInstances")
            .then(|| instances(&[instance("i-1", "running", 1), stranger()], None))
    })
    .await;
    let snapshot = lister.list(true).await.unwrap();
    assert_eq!(ids(&snapshot), ["i-1"]);
    let marks: Vec<String> = snapshot.instances[0].marks.iter().map(ToString::to_string).collect();
    assert_eq!(
        marks,
        ["tag kubernetes.io/cluster/prod", "metadata Name=w-1", "metadata kubernetes.io/cluster/prod=owned",]
    );
    let again = lister.list(false).await.unwrap();
    assert!(
        std::sync::Arc::ptr_eq(&snapshot.instances[0], &again.instances[0]),
        "what did not change is not made again"
    );
}

#[tokio::test]
async fn work_of_scaling_group_or_spot_market_belongs_to_others() {
    let (_fake, mut lister) = lister(|seen| match seen.action() {
        "DescribeInstances" => Some(instances(
            &[
                tagged("i-1", "running", 1, &[("aws:autoscaling:groupName", "g1")]),
                tagged("i-2", "running", 2, &[("aws:autoscaling:groupName", "g1")]),
                tagged("i-3", "running", 3, &[("spot", "")]),
                instance("i-4", "stopping", 4),
                tagged("i-5", "stopped", 5, &[("aws:autoscaling:groupName", "g1")]),
            ],
            None,
        )),
        "DescribeAutoScalingGroups" => {
            assert_eq!(seen.asked(), "AutoScalingGroupNames.member.1=g1 MaxRecords=100");
            let member = |id: &str, state: &str| {
                format!("<member><InstanceId>{id}</InstanceId><LifecycleState>{state}</LifecycleState></member>")
            };
            let members = member("i-1", "InService") + &member("i-2", "Terminating:Wait");
            let group = format!(
                "<member><AutoScalingGroupName>g1</AutoScalingGroupName><Instances>{members}</Instances></member>"
            );
            Some(result("DescribeAutoScalingGroups", &format!("<AutoScalingGroups>{group}</AutoScalingGroups>")))
        }
        // A group does not list its warm pool.
        "DescribeAutoScalingInstances" => {
            assert_eq!(seen.asked(), "InstanceIds.member.1=i-5 MaxRecords=50");
            Some(member("i-5", "Warmed:Stopped"))
        }
        "DescribeSpotInstanceRequests" => Some(answer(
            "DescribeSpotInstanceRequests",
            "<spotInstanceRequestSet><item><spotInstanceRequestId>sir-1</spotInstanceRequestId><instanceId>i-3</instanceId>\
             <status><code>marked-for-termination</code></status></item></spotInstanceRequestSet>",
        )),
        _ => None,
    })
    .await;
    let snapshot = lister.list(true).await.unwrap();
    let tasks: Vec<Option<&str>> = snapshot.instances.iter().map(|one| one.task.as_deref()).collect();
    assert_eq!(
        tasks,
        [
            None,
            Some("Terminating:Wait of group g1"),
            Some("spot request marked-for-termination"),
            Some("stopping"),
            None,
        ]
    );
    let group = snapshot.instances[4].hosting.as_ref().and_then(|hosting| hosting.group.clone()).unwrap();
    assert_eq!((&*group.name, group.phase), ("g1", GroupPhase::Reserve));
}

/// Everything that AWS says of how a machine is hosted, each from where it is said.
#[tokio::test]
async fn how_a_machine_is_hosted_is_handed_over_with_it() {
    let (fake, mut lister) = lister(|seen| match seen.action() {
        "DescribeInstances" => {
            let whole = tagged("i-1", "running", 1, &[("aws:autoscaling:groupName", "g1")]);
            let profile = "<iamInstanceProfile><arn>arn:aws:iam::1:instance-profile/n</arn></iamInstanceProfile><rootDeviceType>";
            let taken = tagged("i-2", "terminated", 2, &[("spot", "")]).replace(
                "<rootDeviceType>",
                "<stateReason><code>Server.SpotInstanceTermination</code><message>Server.SpotInstanceTermination: Spot instance \
                 termination</message></stateReason><rootDeviceType>",
            );
            let by_user = instance("i-3", "stopped", 3).replace(
                "<rootDeviceType>",
                "<stateReason><code>Client.UserInitiatedShutdown</code><message>x</message></stateReason><rootDeviceType>",
            );
            Some(instances(&[whole.replace("<rootDeviceType>", profile), taken, by_user], None))
        }
        "DescribeInstanceStatus" => Some(answer(
            "DescribeInstanceStatus",
            "<instanceStatusSet><item><instanceId>i-1</instanceId><systemStatus><status>impaired</status></systemStatus>\
             <instanceStatus><status>ok</status></instanceStatus><attachedEbsStatus><status>initializing</status>\
             </attachedEbsStatus><eventsSet><item><code>instance-retirement</code><description>degraded hardware</description>\
             <notBefore>2026-12-01T00:00:00.000Z</notBefore></item></eventsSet></item></instanceStatusSet>",
        )),
        "DescribeInstanceTypes" => Some(answer(
            "DescribeInstanceTypes",
            "<instanceTypeSet><item><instanceType>m5.large</instanceType><instanceStorageSupported>true\
             </instanceStorageSupported></item></instanceTypeSet>",
        )),
        _ => None,
    })
    .await;
    let snapshot = lister.list(true).await.unwrap();
    let hosting: Vec<_> =
        snapshot.instances.iter().map(|one| (*one.hosting.clone().unwrap()).clone()).collect();
    let checks = Checks { host: Check::Impaired, guest: Check::Passed, disk: Check::Pending };
    let notice = "retire: instance-retirement: degraded hardware, not before 2026-12-01T00:00:00.000Z";
    assert_eq!((hosting[0].checks, hosting[0].notices[0].to_string().as_str()), (checks, notice));
    let group = hosting[0].group.clone().unwrap();
    assert_eq!(
        (&*group.name, group.phase),
        ("g1", GroupPhase::Unknown),
        "its tag says so, and Auto Scaling does not know it"
    );
    assert!(!hosting[0].no_identity && hosting[0].loses_disks);
    assert_eq!(
        hosting[1].ended.as_deref(),
        Some("Server.SpotInstanceTermination: Spot instance termination")
    );
    assert!(hosting[1].spot && !hosting[1].no_identity, "what has ended has given its role back");
    assert_eq!(hosting[2].ended, None, "a user stopped it");
    assert!(hosting[2].no_identity);
    assert_eq!(snapshot.instances[0].hostname.as_deref(), Some("ip-10-0-0-1.ec2.internal"));
    lister.list(true).await.unwrap();
    let kinds = fake.take_actions().into_iter().filter(|action| action == "DescribeInstanceTypes").count();
    assert_eq!(kinds, 1, "what a type has, it has for good");
}

//! A survey asks for everything, whole or not at all, and with rights that a listing needs anyway.

use std::collections::BTreeSet;

use reveille_core::effect::ReadErrorKind;
use reveille_core::model::hosting::GroupPhase;

use super::fake::{Fake, Reply, Seen, fault};
use super::words::{answer, instance, instances, result, route, tagged};
use crate::{cluster_mark, cluster_of};

/// A worker that a group keeps, a stranger, and one that has ended; a group without machines; two route tables of one network.
fn region(seen: &Seen) -> Option<Reply> {
    Some(match seen.action() {
        "DescribeInstances" => {
            let worker = tagged("i-1", "running", 1, &[("aws:autoscaling:groupName", "workers")]);
            let stranger = instance("i-2", "running", 2)
                .replace("cluster/prod", "cluster/dev")
                .replace("subnet-1", "subnet-2");
            instances(&[worker, stranger, instance("i-3", "terminated", 3)], None)
        }
        "DescribeAutoScalingGroups" => result(
            seen.action(),
            "<AutoScalingGroups><member><AutoScalingGroupName>gpu</AutoScalingGroupName><Instances/><Tags>\
             <member><Key>kubernetes.io/cluster/prod</Key><Value>owned</Value>\
             <PropagateAtLaunch>true</PropagateAtLaunch></member>\
             <member><Key>team</Key><Value>ml</Value><PropagateAtLaunch>false</PropagateAtLaunch></member></Tags></member>\
             <member><AutoScalingGroupName>workers</AutoScalingGroupName><Instances><member><InstanceId>i-1</InstanceId>\
             <LifecycleState>InService</LifecycleState></member></Instances></member></AutoScalingGroups>",
        ),
        "DescribeSecurityGroups" => answer(
            seen.action(),
            "<securityGroupInfo><item><groupId>sg-1</groupId><groupName>k8s-nodes</groupName></item></securityGroupInfo>",
        ),
        "DescribeRouteTables" => {
            let of = |id: &str, name: &str, inner: &str| {
                format!(
                    "<item><routeTableId>{id}</routeTableId><vpcId>vpc-1</vpcId>{inner}<tagSet><item><key>Name</key>\
                     <value>{name}</value></item></tagSet></item>"
                )
            };
            let routes = format!("<routeSet>{}</routeSet>", route("10.244.1.0/24", "eni-1", "active"));
            let own = "<associationSet><item><main>false</main><subnetId>subnet-2</subnetId></item></associationSet>";
            let main = format!("{routes}<associationSet><item><main>true</main></item></associationSet>");
            let tables = of("rtb-main", "private", &main) + &of("rtb-own", "", own);
            answer(seen.action(), &format!("<routeTableSet>{tables}</routeTableSet>"))
        }
        _ => return None,
    })
}

#[tokio::test]
async fn survey_shows_the_region_with_its_groups_and_route_tables() {
    let fake = Fake::start(|_| None).await;
    let account = fake.connect().await;
    fake.answer(region);
    let survey = account.survey().await.unwrap();
    let ids: Vec<&str> = survey.instances.values().map(|one| one.id.as_str()).collect();
    assert_eq!(ids, ["i-1", "i-2", "i-3"], "marked or not, there or gone");
    let group = survey
        .instances
        .values()
        .next()
        .unwrap()
        .hosting
        .as_ref()
        .and_then(|hosting| hosting.group.clone())
        .unwrap();
    assert_eq!((&*group.name, group.phase), ("workers", GroupPhase::Kept));
    let owners: Vec<&str> = survey.ports.iter().map(|(id, _)| id.as_str()).collect();
    assert_eq!(owners, ["i-1", "i-2"], "what has ended has given its interface back");
    let [gpu, workers] = &survey.keepers[..] else { panic!("{:?}", survey.keepers) };
    assert!(gpu.machines.is_empty() && gpu.gives.contains(&cluster_mark("prod")), "{gpu:?}");
    assert!(!gpu.gives.iter().any(|mark| mark.to_string().contains("team")), "a tag of the group alone");
    assert_eq!(workers.machines.iter().map(|id| id.as_str()).collect::<Vec<_>>(), ["i-1"]);
    assert_eq!(workers.mark.to_string(), "metadata aws:autoscaling:groupName=workers");
    let routers: Vec<(&str, &str)> =
        survey.routers.iter().map(|table| (table.router.id.as_str(), &*table.name)).collect();
    assert_eq!(routers, [("rtb-main", "private"), ("rtb-own", "")]);
    let legs: Vec<(&str, &str)> =
        survey.legs.iter().map(|leg| (leg.router.as_str(), leg.network.as_str())).collect();
    assert_eq!(legs, [("rtb-main", "subnet-1"), ("rtb-own", "subnet-2")]);
    assert_eq!(survey.within.values().map(|vpc| &**vpc).collect::<BTreeSet<_>>(), BTreeSet::from(["vpc-1"]));
    let seen = fake.take_seen();
    assert!(seen.iter().all(|seen| !seen.asked().contains("kubernetes.io")), "nothing is filtered");
    let clusters: BTreeSet<&str> =
        survey.instances.values().flat_map(|one| one.marks.iter()).filter_map(cluster_of).collect();
    assert_eq!(clusters, BTreeSet::from(["dev", "prod"]));
}

#[tokio::test]
async fn survey_with_a_failed_read_is_void_and_names_missing_right() {
    for action in [
        "DescribeInstances",
        "DescribeAutoScalingGroups",
        "DescribeSecurityGroups",
        "DescribeSecurityGroupRules",
        "DescribeRouteTables",
    ] {
        let fake = Fake::start(|_| None).await;
        let account = fake.connect().await;
        let code = if action.contains("AutoScaling") { "AccessDenied" } else { "UnauthorizedOperation" };
        fake.answer(move |seen| if seen.action() == action { Some(fault(403, code)) } else { region(seen) });
        let error = account.survey().await.unwrap_err();
        assert_eq!(error.kind, ReadErrorKind::Forbidden, "{action}: {error}");
        let right = format!(
            "the credentials lack the right {}:{action}",
            if code == "AccessDenied" { "autoscaling" } else { "ec2" }
        );
        assert!(error.text.contains(&right), "{right}: {error}");
    }
}

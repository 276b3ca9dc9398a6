//! What a cycle of five thousand machines costs: run by hand, with `--ignored --nocapture`.

use std::collections::BTreeSet;
use std::time::Instant;

use reveille_core::model::instance::Mark;

use super::fake::{Fake, Seen};
use super::words::{answer, instances, result, tagged};
use crate::{Interest, Lister};

const MACHINES: usize = 5_000;
const PAGE: usize = 1_000;

fn page_of(seen: &Seen) -> (std::ops::Range<usize>, Option<String>) {
    let first: usize = seen.get("NextToken").parse().unwrap_or(0);
    let end = first + PAGE;
    (first..end, (end < MACHINES).then(|| end.to_string()))
}

fn id(n: usize) -> String {
    format!("i-{n:017x}")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "prints figures and proves nothing"]
async fn a_cycle_of_five_thousand_machines() {
    let fake = Fake::start(|_| None).await;
    let account = fake.connect().await;
    fake.answer(|seen| match seen.action() {
        "DescribeInstances" => {
            let (page, next) = page_of(seen);
            let tags = [("aws:autoscaling:groupName", "workers"), ("eks:nodegroup-name", "workers"), ("team", "a-team")];
            let items: Vec<String> = page.map(|n| tagged(&id(n), "running", (n % 250) as u8, &tags)).collect();
            Some(instances(&items, next.as_deref()))
        }
        "DescribeInstanceStatus" => {
            let (page, next) = page_of(seen);
            let status = "<systemStatus><status>ok</status></systemStatus><instanceStatus><status>ok</status></instanceStatus>";
            let items: String =
                page.map(|n| format!("<item><instanceId>{}</instanceId>{status}</item>", id(n))).collect();
            let next = next.map(|token| format!("<nextToken>{token}</nextToken>")).unwrap_or_default();
            Some(answer("DescribeInstanceStatus", &format!("<instanceStatusSet>{items}</instanceStatusSet>{next}")))
        }
        "DescribeAutoScalingGroups" => {
            let member = |n| format!("<member><InstanceId>{}</InstanceId><LifecycleState>InService</LifecycleState></member>", id(n));
            let members: String = (0..MACHINES).map(member).collect();
            let name = "<AutoScalingGroupName>workers</AutoScalingGroupName>";
            let group = format!("<AutoScalingGroups><member>{name}<Instances>{members}</Instances></member></AutoScalingGroups>");
            Some(result("DescribeAutoScalingGroups", &group))
        }
        _ => None,
    });
    let marks = BTreeSet::from([Mark::Tag("kubernetes.io/cluster/prod".into())]);
    let mut lister = Lister::new(account.clone(), Interest { cluster_marks: marks, ..Interest::default() });
    for round in 1..=3 {
        let (before, begun) = (account.traffic(), Instant::now());
        let snapshot = lister.list(true).await.unwrap();
        let after = account.traffic();
        println!(
            "cycle {round}: {} machines, {} ports, {} calls, {:.2} MB, {:.0} ms of wall, the service's answers among them",
            snapshot.instances.len(),
            snapshot.ports.len(),
            after.calls - before.calls,
            (after.received_bytes - before.received_bytes) as f64 / 1e6,
            begun.elapsed().as_secs_f64() * 1e3
        );
    }
}

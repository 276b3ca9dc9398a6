//! Tests `init` with a cluster and an AWS account behind one port: what it finds, what it refuses, and what it says
//! without permission.

use crate::bench::{Bench, Ran};
use crate::world::{list, listen, node};

/// Two Nodes on three machines of the cluster `prod`, which the group `workers` manages; any other cluster has one
/// machine. `denied` is an action that the credentials do not allow.
fn serve(clusters: &'static [&'static str], denied: &'static str) -> u16 {
    listen(move |line, body, _| {
        let nodes = [1, 2].map(|n| node(n, &format!("aws:///eu-central-1a/{}", id(n)))).join(",");
        match line {
            "GET /api/v1/nodes" => (200, list("NodeList", nodes)),
            "GET /apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases" => {
                (200, list("LeaseList", String::new()))
            }
            "GET /api/v1/namespaces/default/events" => (200, list("EventList", String::new())),
            "POST /" => {
                let asked = |name: &str| body.split('&').find_map(|field| field.strip_prefix(name));
                let action = asked("Action=").unwrap_or_default();
                if action == denied {
                    let error = "<Error><Code>UnauthorizedOperation</Code><Message>no</Message></Error>";
                    return (403, format!("<Response><Errors>{error}</Errors></Response>"));
                }
                let filtered = body.contains("kubernetes.io%2Fcluster%2Fprod");
                (200, account(action, if filtered { &["prod"] } else { clusters }))
            }
            _ => (404, r#"{"kind": "Status", "code": 404}"#.to_owned()),
        }
    })
}

fn id(number: u8) -> String {
    format!("i-{number:017}")
}

fn account(action: &str, clusters: &[&str]) -> String {
    let inner = match action {
        "GetCallerIdentity" => {
            "<GetCallerIdentityResult><Account>123456789012</Account></GetCallerIdentityResult>".to_owned()
        }
        "DescribeInstances" => {
            let of = |cluster: &&str| match *cluster {
                "prod" => (1..=3).map(|n| instance(n, "prod", "workers")).collect::<String>(),
                other => instance(9, other, "others"),
            };
            let items: String = clusters.iter().map(of).collect();
            format!("<reservationSet><item><instancesSet>{items}</instancesSet></item></reservationSet>")
        }
        "DescribeAutoScalingGroups" => {
            let member = |n| {
                format!("<member><InstanceId>{}</InstanceId><LifecycleState>InService</LifecycleState></member>", id(n))
            };
            let members: String = (1..=3).map(member).collect();
            format!(
                "<DescribeAutoScalingGroupsResult><AutoScalingGroups><member><AutoScalingGroupName>workers</AutoScalingGroupName>\
                 <Instances>{members}</Instances></member></AutoScalingGroups></DescribeAutoScalingGroupsResult>"
            )
        }
        "DescribeSecurityGroups" => {
            "<securityGroupInfo><item><groupId>sg-1</groupId><groupName>nodes</groupName></item></securityGroupInfo>"
                .to_owned()
        }
        "DescribeRouteTables" => {
            let route = |n: u8| {
                format!(
                    "<item><destinationCidrBlock>100.64.{n}.0/24</destinationCidrBlock><networkInterfaceId>eni-{n}\
                     </networkInterfaceId><state>active</state></item>"
                )
            };
            // A route leads to an instance that exists.
            let hops: &[u8] = if clusters.contains(&"prod") { &[1, 2] } else { &[] };
            let routes: String = hops.iter().map(|n| route(*n)).collect();
            format!(
                "<routeTableSet><item><routeTableId>rtb-1</routeTableId><vpcId>vpc-1</vpcId><routeSet>{routes}</routeSet>\
                 <tagSet><item><key>Name</key><value>private</value></item></tagSet></item></routeTableSet>"
            )
        }
        "DescribeSecurityGroupRules" => "<securityGroupRuleSet/>".to_owned(),
        "DescribeInstanceStatus" => "<instanceStatusSet/>".to_owned(),
        "DescribeInstanceTypes" => "<instanceTypeSet/>".to_owned(),
        "GetConsoleOutput" => format!("<instanceId>{}</instanceId><output/>", id(3)),
        _ => String::new(),
    };
    format!("<{action}Response>{inner}</{action}Response>")
}

fn instance(number: u8, cluster: &str, group: &str) -> String {
    let tag = |key: &str, value: &str| format!("<item><key>{key}</key><value>{value}</value></item>");
    let tags = [
        tag(&format!("kubernetes.io/cluster/{cluster}"), "owned"),
        tag("aws:autoscaling:groupName", group),
        tag("Name", "w"),
    ];
    format!(
        "<item><instanceId>{}</instanceId><instanceState><name>running</name></instanceState><vpcId>vpc-1</vpcId>\
         <privateDnsName>w-{number}</privateDnsName><instanceType>m5.large</instanceType><tagSet>{}</tagSet>\
         <networkInterfaceSet><item><networkInterfaceId>eni-{number}</networkInterfaceId><subnetId>subnet-1</subnetId>\
         <privateIpAddress>10.0.0.{number}</privateIpAddress><sourceDestCheck>false</sourceDestCheck><status>in-use</status>\
         <groupSet><item><groupId>sg-1</groupId></item></groupSet></item></networkInterfaceSet></item>",
        id(number),
        tags.concat()
    )
}

const ENV: [(&str, &str); 3] = [
    ("AWS_ACCESS_KEY_ID", "AKIAEXAMPLE"),
    ("AWS_SECRET_ACCESS_KEY", "hunter2-canary"),
    ("AWS_EC2_METADATA_DISABLED", "true"),
];

fn init(bench: &Bench, port: u16, env: &[(&str, &str)], more: &[&str]) -> Ran {
    let endpoint = format!("http://127.0.0.1:{port}");
    let env: Vec<(&str, &str)> =
        env.iter().copied().chain([("AWS_ENDPOINT_URL", endpoint.as_str())]).collect();
    let args = ["init", "--file", "new.yaml", "--name", "prod", "--kubeconfig", "kubeconfig"];
    bench.run_with(&env, &[&args[..], more].concat())
}

#[test]
fn a_tagged_account_gives_a_roster_that_the_others_accept() {
    let port = serve(&["prod"], "");
    let bench = Bench::towards(port);
    let endpoint = format!("http://127.0.0.1:{port}");
    // The Nodes show that it is EC2, the environment has the region, and the instances have the cluster.
    let env = [&ENV[..], &[("AWS_REGION", "eu-central-1")]].concat();
    let ran = init(&bench, port, &env, &[]);
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    for line in [
        "found      2 nodes; 2 of them are instances of account 123456789012 in eu-central-1, which has 3",
        "found      pool workers: 3 instances carry its marks",
        "found      route table rtb-1: private: holds routes to 2 of 2 nodes' pod ranges",
    ] {
        assert!(ran.out.contains(line), "{line}\n{}", ran.out);
    }
    let again = init(&bench, port, &env, &[]);
    assert_eq!(again.code, 64, "a file that is there is kept");
    let env = [&ENV[..], &[("AWS_ENDPOINT_URL", endpoint.as_str())]].concat();
    let status = bench.run_with(&env, &["status", "--roster", "new.yaml"]);
    assert_eq!(status.code, 1, "{}{}", status.out, status.err);
    assert!(status.out.starts_with("prod · 3 machines · 2 Ready, 1 not Ready or missing"), "{}", status.out);
}

/// The Nodes show that it is EC2, and nothing says in which region: what they tell is a start, and the rest is told.
#[test]
fn account_that_cannot_be_opened_gives_a_roster_of_its_nodes() {
    let port = serve(&["prod"], "");
    let bench = Bench::towards(port);
    let ran = init(&bench, port, &ENV, &[]);
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    for part in ["no region is named", "name one with --region", "pool workers: 2 machines"] {
        assert!(ran.out.contains(part), "{part}\n{}", ran.out);
    }
    let status = bench.run(&["status", "--roster", "new.yaml"]);
    assert_eq!(status.code, 0, "{}{}", status.out, status.err);
}

#[test]
fn what_stands_against_a_survey_is_told_with_what_to_do() {
    let regional = [&ENV[..], &[("AWS_REGION", "eu-central-1")]].concat();
    type Case<'c> =
        (&'static [&'static str], &'static str, &'c [(&'c str, &'c str)], &'c [&'c str], i32, &'c [&'c str]);
    let none: [(&str, &str); 1] = [("AWS_EC2_METADATA_DISABLED", "true")];
    let table: [Case<'_>; 6] = [
        (&["prod"], "", &none, &["--region", "eu-central-1"], 2, &["no credentials were found", "--profile"]),
        (
            &["prod"],
            "DescribeRouteTables",
            &regional,
            &[],
            2,
            &["the credentials lack the right ec2:DescribeRouteTables", "reveille iam"],
        ),
        (
            &["prod", "dev"],
            "",
            &regional,
            &[],
            64,
            &["several clusters: dev (1 instances, 0 of them", "--cluster"],
        ),
        (
            &["dev"],
            "",
            &regional,
            &["--cluster", "prod"],
            2,
            &["none of the 2 nodes names one of the 1 instances"],
        ),
        (
            &["prod"],
            "",
            &regional,
            &["--cluster", "prd"],
            64,
            &["kubernetes.io/cluster/prd", "tagged for prod (3 instances"],
        ),
        (
            &["prod"],
            "",
            &regional,
            &["--cloud", "os", "--region", "eu-central-1"],
            64,
            &["cannot be used with"],
        ),
    ];
    for (clusters, denied, env, more, code, parts) in table {
        let port = serve(clusters, denied);
        let bench = Bench::towards(port);
        let ran = init(&bench, port, env, more);
        assert_eq!(ran.code, code, "{more:?} {denied}: {}{}", ran.out, ran.err);
        for part in parts {
            assert!(ran.err.contains(part), "{part}\n{}", ran.err);
        }
        assert!(!bench.path("new.yaml").exists(), "{more:?}");
    }
}

#[test]
fn unanswering_cluster_is_reported_and_no_roster_is_written() {
    let (closed, port) = (Bench::new(), serve(&["prod"], ""));
    let env = [&ENV[..], &[("AWS_REGION", "eu-central-1")]].concat();
    for more in [&[][..], &["--cluster", "prod"]] {
        let ran = init(&closed, port, &env, more);
        assert_eq!(ran.code, 2, "{}{}", ran.out, ran.err);
        assert!(ran.err.contains("127.0.0.1") && !closed.path("new.yaml").exists(), "{}", ran.err);
    }
}

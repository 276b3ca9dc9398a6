//! EC2 and Auto Scaling as made-up answers over real HTTP: machines of one group, each with an interface.
//!
//! Lists come in pages of a thousand with a token for the next one. Answers hold what real ones carry beside what is needed, so
//! that one machine has the size that it has there. Pages are written once: what is measured is the client.

use super::http_service::{Answer, Asked, HttpService};

/// The most that EC2 gives in one page.
const PAGE: usize = 1_000;

/// Starts a region with so many machines.
pub(crate) fn start(machines: usize) -> std::io::Result<HttpService> {
    HttpService::start(move |_| {
        let pages = |set: &str, item: &dyn Fn(usize) -> String| -> Vec<String> {
            (0..machines.div_ceil(PAGE)).map(|page| listed(set, page, machines, item)).collect()
        };
        let instances = pages("DescribeInstances reservationSet", &reservation);
        let checks = pages("DescribeInstanceStatus instanceStatusSet", &check);
        let groups = group(machines);
        move |asked: &Asked| answer(asked, &instances, &checks, &groups)
    })
}

fn answer(asked: &Asked, instances: &[String], checks: &[String], groups: &str) -> Answer {
    let action = asked.field("Action").unwrap_or_default();
    let page = asked.field("NextToken").and_then(|token| token.parse::<usize>().ok()).unwrap_or(0);
    let of = |pages: &[String]| Answer::ok(pages.get(page).cloned().unwrap_or_default());
    let empty = |set: &str| Answer::ok(response(action, &format!("<{set}/>")));
    match action {
        "GetCallerIdentity" => Answer::ok(result(
            action,
            "<Arn>arn:aws:iam::123456789012:user/bench</Arn><Account>123456789012</Account>",
        )),
        "DescribeInstances" => of(instances),
        "DescribeInstanceStatus" => of(checks),
        "DescribeAutoScalingGroups" => Answer::ok(groups.to_owned()),
        "DescribeInstanceTypes" => empty("instanceTypeSet"),
        "DescribeSpotInstanceRequests" => empty("spotInstanceRequestSet"),
        "DescribeNetworkInterfaces" => empty("networkInterfaceSet"),
        "DescribeSecurityGroups" => empty("securityGroupInfo"),
        "DescribeSecurityGroupRules" => empty("securityGroupRuleSet"),
        "DescribeRouteTables" => empty("routeTableSet"),
        _ => Answer::Whole(400, "", String::new()),
    }
}

fn response(action: &str, inner: &str) -> String {
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<{action}Response xmlns=\"http://ec2.amazonaws.com/doc/2016-11-15/\"><requestId>8f7724cf-496f-496e-8fe3-example</requestId>{inner}</{action}Response>"
    )
}

fn result(action: &str, inner: &str) -> String {
    response(action, &format!("<{action}Result>{inner}</{action}Result>"))
}

/// One page of a list. `set`: its action and the name of its list.
fn listed(set: &str, page: usize, machines: usize, item: &dyn Fn(usize) -> String) -> String {
    let (action, set) = set.split_once(' ').unwrap_or((set, ""));
    let until = machines.min((page + 1) * PAGE);
    let items: String = (page * PAGE..until).map(item).collect();
    let next = if until < machines { format!("<nextToken>{}</nextToken>", page + 1) } else { String::new() };
    response(action, &format!("<{set}>{items}</{set}>{next}"))
}

fn id(number: usize) -> String {
    format!("i-{number:017x}")
}

fn reservation(number: usize) -> String {
    let [_, b, c, d] = u32::try_from(number).unwrap_or(u32::MAX).to_be_bytes();
    let (address, mac) = (format!("10.{b}.{c}.{d}"), format!("06:00:00:{b:02x}:{c:02x}:{d:02x}"));
    let tag = |key: &str, value: &str| format!("<item><key>{key}</key><value>{value}</value></item>");
    let tags = [
        tag("kubernetes.io/cluster/bench", "owned"),
        tag("Name", &format!("bench-workers-{number}")),
        tag("aws:autoscaling:groupName", "workers"),
        tag("aws:ec2launchtemplate:id", "lt-0123456789abcdef0"),
        tag("aws:ec2launchtemplate:version", "7"),
        tag("k8s.io/cluster-autoscaler/enabled", "true"),
        tag("team", "platform"),
    ]
    .concat();
    let group = "<groupSet><item><groupId>sg-0123456789abcdef0</groupId><groupName>bench-nodes</groupName></item></groupSet>";
    let interface = format!(
        "<item><networkInterfaceId>eni-{number:017x}</networkInterfaceId><subnetId>subnet-0123456789abcdef0</subnetId><vpcId>vpc-0123456789abcdef0</vpcId><description/><ownerId>123456789012</ownerId><status>in-use</status><macAddress>{mac}</macAddress><privateIpAddress>{address}</privateIpAddress><privateDnsName>ip-10-{b}-{c}-{d}.eu-central-1.compute.internal</privateDnsName><sourceDestCheck>true</sourceDestCheck>{group}<attachment><attachmentId>eni-attach-{number:017x}</attachmentId><deviceIndex>0</deviceIndex><status>attached</status><attachTime>2026-10-01T08:00:00.000Z</attachTime><deleteOnTermination>true</deleteOnTermination><networkCardIndex>0</networkCardIndex></attachment><privateIpAddressesSet><item><privateIpAddress>{address}</privateIpAddress><privateDnsName>ip-10-{b}-{c}-{d}.eu-central-1.compute.internal</privateDnsName><primary>true</primary></item></privateIpAddressesSet><ipv6AddressesSet/><interfaceType>interface</interfaceType><operator><managed>false</managed></operator></item>"
    );
    format!(
        "<item><reservationId>r-{number:017x}</reservationId><ownerId>123456789012</ownerId><groupSet/><instancesSet><item><instanceId>{}</instanceId><imageId>ami-0123456789abcdef0</imageId><instanceState><code>16</code><name>running</name></instanceState><privateDnsName>ip-10-{b}-{c}-{d}.eu-central-1.compute.internal</privateDnsName><dnsName/><reason/><amiLaunchIndex>0</amiLaunchIndex><productCodes/><instanceType>m6i.xlarge</instanceType><launchTime>2026-10-01T08:00:00.000Z</launchTime><placement><availabilityZone>eu-central-1{}</availabilityZone><groupName/><tenancy>default</tenancy></placement><monitoring><state>disabled</state></monitoring><subnetId>subnet-0123456789abcdef0</subnetId><vpcId>vpc-0123456789abcdef0</vpcId><privateIpAddress>{address}</privateIpAddress><sourceDestCheck>true</sourceDestCheck>{group}<architecture>x86_64</architecture><rootDeviceType>ebs</rootDeviceType><rootDeviceName>/dev/xvda</rootDeviceName><blockDeviceMapping><item><deviceName>/dev/xvda</deviceName><ebs><volumeId>vol-{number:017x}</volumeId><status>attached</status><attachTime>2026-10-01T08:00:01.000Z</attachTime><deleteOnTermination>true</deleteOnTermination></ebs></item></blockDeviceMapping><virtualizationType>hvm</virtualizationType><clientToken>fleet-0123456789abcdef-0</clientToken><tagSet>{tags}</tagSet><hypervisor>xen</hypervisor><networkInterfaceSet>{interface}</networkInterfaceSet><iamInstanceProfile><arn>arn:aws:iam::123456789012:instance-profile/bench-nodes</arn><id>AIPAEXAMPLE</id></iamInstanceProfile><ebsOptimized>false</ebsOptimized><cpuOptions><coreCount>2</coreCount><threadsPerCore>2</threadsPerCore></cpuOptions><enaSupport>true</enaSupport><metadataOptions><state>applied</state><httpTokens>required</httpTokens><httpPutResponseHopLimit>2</httpPutResponseHopLimit><httpEndpoint>enabled</httpEndpoint></metadataOptions><maintenanceOptions><autoRecovery>default</autoRecovery></maintenanceOptions><currentInstanceBootMode>legacy-bios</currentInstanceBootMode></item></instancesSet></item>",
        id(number),
        ["a", "b", "c"][number % 3],
    )
}

fn check(number: usize) -> String {
    let status =
        "<status>ok</status><details><item><name>reachability</name><status>passed</status></item></details>";
    format!(
        "<item><instanceId>{}</instanceId><availabilityZone>eu-central-1a</availabilityZone><instanceState><code>16</code><name>running</name></instanceState><systemStatus>{status}</systemStatus><instanceStatus>{status}</instanceStatus><attachedEbsStatus>{status}</attachedEbsStatus></item>",
        id(number)
    )
}

fn group(machines: usize) -> String {
    let member = |number| {
        format!(
            "<member><InstanceId>{}</InstanceId><AvailabilityZone>eu-central-1a</AvailabilityZone><LifecycleState>InService</LifecycleState><HealthStatus>Healthy</HealthStatus><ProtectedFromScaleIn>false</ProtectedFromScaleIn></member>",
            id(number)
        )
    };
    let members: String = (0..machines).map(member).collect();
    result(
        "DescribeAutoScalingGroups",
        &format!(
            "<AutoScalingGroups><member><AutoScalingGroupName>workers</AutoScalingGroupName><Instances>{members}</Instances></member></AutoScalingGroups>"
        ),
    )
}

//! AWS's answers as XML: those of an empty account, and pieces to fill them with.

use super::fake::{Reply, Seen, reply};

/// An answer of EC2 to this action.
pub(crate) fn answer(action: &str, inner: &str) -> Reply {
    let body = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<{action}Response xmlns=\"http://ec2.amazonaws.com/doc/2016-11-15/\">\
         <requestId>req-7</requestId>{inner}</{action}Response>\n"
    );
    reply(200, body)
}

/// An answer of Auto Scaling or STS.
pub(crate) fn result(action: &str, inner: &str) -> Reply {
    let metadata = "<ResponseMetadata><RequestId>req-7</RequestId></ResponseMetadata>";
    let result = format!("<{action}Result>{inner}</{action}Result>{metadata}");
    reply(
        200,
        format!("<{action}Response xmlns=\"https://aws.amazonaws.com/doc/\">{result}</{action}Response>"),
    )
}

/// What an empty account answers.
pub(crate) fn quiet(seen: &Seen) -> Reply {
    let action = seen.action();
    let empty = |set: &str| answer(action, &format!("<{set}/>"));
    match action {
        "GetCallerIdentity" => {
            result(action, "<Arn>arn:aws:iam::123456789012:user/r</Arn><Account>123456789012</Account>")
        }
        "DescribeInstances" => empty("reservationSet"),
        "DescribeInstanceStatus" => empty("instanceStatusSet"),
        "DescribeInstanceTypes" => empty("instanceTypeSet"),
        "DescribeSpotInstanceRequests" => empty("spotInstanceRequestSet"),
        "DescribeNetworkInterfaces" => empty("networkInterfaceSet"),
        "DescribeSecurityGroups" => empty("securityGroupInfo"),
        "DescribeSecurityGroupRules" => empty("securityGroupRuleSet"),
        "DescribeRouteTables" => empty("routeTableSet"),
        "DescribeAutoScalingGroups" => result(action, "<AutoScalingGroups/>"),
        "DescribeAutoScalingInstances" => result(action, "<AutoScalingInstances/>"),
        "GetConsoleOutput" => answer(action, "<instanceId>i-1</instanceId><output/>"),
        _ => answer(action, "<return>true</return>"),
    }
}

/// `DescribeInstances` with these.
pub(crate) fn instances(items: &[String], next: Option<&str>) -> Reply {
    let next = next.map(|token| format!("<nextToken>{token}</nextToken>")).unwrap_or_default();
    let reservations: String =
        items.iter().map(|item| format!("<item><instancesSet>{item}</instancesSet></item>")).collect();
    answer("DescribeInstances", &format!("<reservationSet>{reservations}</reservationSet>{next}"))
}

/// One instance of the cluster `prod` with one interface `eni-<id without i->` at 10.0.0.<last>.
pub(crate) fn instance(id: &str, state: &str, last: u8) -> String {
    instance_with(id, state, last, "")
}

/// Likewise, with more tags.
pub(crate) fn tagged(id: &str, state: &str, last: u8, tags: &[(&str, &str)]) -> String {
    let items: String = tags
        .iter()
        .map(|(key, value)| format!("<item><key>{key}</key><value>{value}</value></item>"))
        .collect();
    instance_with(id, state, last, &items)
}

fn instance_with(id: &str, state: &str, last: u8, tags: &str) -> String {
    let lifecycle =
        if tags.contains("<key>spot</key>") { "<instanceLifecycle>spot</instanceLifecycle>" } else { "" };
    format!(
        "<item><instanceId>{id}</instanceId><imageId>ami-1</imageId><instanceState><code>0</code><name>{state}</name>\
         </instanceState><privateDnsName>ip-10-0-0-{last}.ec2.internal</privateDnsName><instanceType>m5.large</instanceType>\
         <launchTime>2026-11-22T10:00:00.000Z</launchTime><placement><availabilityZone>eu-central-1a</availabilityZone>\
         </placement><vpcId>vpc-1</vpcId><privateIpAddress>10.0.0.{last}</privateIpAddress>{lifecycle}\
         <rootDeviceType>ebs</rootDeviceType><tagSet><item><key>kubernetes.io/cluster/prod</key><value>owned</value></item>\
         <item><key>Name</key><value>w-{last}</value></item>{tags}</tagSet><networkInterfaceSet>{}</networkInterfaceSet></item>",
        interface(&format!("eni-{}", id.trim_start_matches("i-")), last, true, &["sg-1"], None)
    )
}

/// One interface. `of`: the instance, where the interface is listed by itself.
pub(crate) fn interface(id: &str, last: u8, check: bool, groups: &[&str], of: Option<&str>) -> String {
    let groups: String = groups.iter().map(|id| format!("<item><groupId>{id}</groupId></item>")).collect();
    let of = of.map(|id| format!("<instanceId>{id}</instanceId>")).unwrap_or_default();
    format!(
        "<item><networkInterfaceId>{id}</networkInterfaceId><subnetId>subnet-1</subnetId><vpcId>vpc-1</vpcId>\
         <status>in-use</status><privateIpAddress>10.0.0.{last}</privateIpAddress><sourceDestCheck>{check}</sourceDestCheck>\
         <groupSet>{groups}</groupSet><attachment>{of}<status>attached</status></attachment><privateIpAddressesSet><item>\
         <privateIpAddress>10.0.0.{last}</privateIpAddress></item></privateIpAddressesSet></item>"
    )
}

/// `DescribeNetworkInterfaces` with these.
pub(crate) fn interfaces(items: &[String]) -> Reply {
    answer(
        "DescribeNetworkInterfaces",
        &format!("<networkInterfaceSet>{}</networkInterfaceSet>", items.concat()),
    )
}

/// `DescribeRouteTables` with one table.
pub(crate) fn table(routes: &[String]) -> Reply {
    let local = "<item><destinationCidrBlock>10.0.0.0/16</destinationCidrBlock><gatewayId>local</gatewayId>\
        <state>active</state><origin>CreateRouteTable</origin></item>";
    let set = format!("<routeSet>{local}{}</routeSet>", routes.concat());
    let table = format!("<item><routeTableId>rtb-1</routeTableId><vpcId>vpc-1</vpcId>{set}</item>");
    answer("DescribeRouteTables", &format!("<routeTableSet>{table}</routeTableSet>"))
}

/// One route to an interface.
pub(crate) fn route(to: &str, interface: &str, state: &str) -> String {
    format!(
        "<item><destinationCidrBlock>{to}</destinationCidrBlock><networkInterfaceId>{interface}</networkInterfaceId>\
         <state>{state}</state><origin>CreateRoute</origin></item>"
    )
}

/// `DescribeAutoScalingInstances` with this one in group `g1`.
pub(crate) fn member(id: &str, state: &str) -> Reply {
    let member = format!(
        "<member><InstanceId>{id}</InstanceId><AutoScalingGroupName>g1</AutoScalingGroupName><LifecycleState>{state}\
         </LifecycleState><ProtectedFromScaleIn>false</ProtectedFromScaleIn></member>"
    );
    result("DescribeAutoScalingInstances", &format!("<AutoScalingInstances>{member}</AutoScalingInstances>"))
}

//! EC2's security groups and their rules, as the model's, and rules as they are written.
//!
//! A rule that refers to a group or a prefix list is for both address families, which the model says as two rules with one id.
//! Whatever cannot be read exactly is read as allowing an unknown set, never as allowing more; and a rule that EC2 could only
//! take wider than it was asked for is not written at all.

use ipnet::IpNet;
use reveille_core::model::id::{GroupId, RuleId};
use reveille_core::model::network::{
    Direction, Family, GroupRule, Protocol, Remote, RuleSpec, SecurityGroup,
};
use serde::Deserialize;

use crate::query_protocol::Request;
use crate::reply::Set;

/// A number that is assigned to no protocol: allows nothing that any roster asks for.
const UNREADABLE: Protocol = Protocol(255);

/// `DescribeSecurityGroups`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Groups {
    pub(crate) security_group_info: Set<WireGroup>,
    pub(crate) next_token: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WireGroup {
    pub(crate) group_id: String,
    #[serde(default)]
    pub(crate) group_name: String,
    pub(crate) owner_id: Option<String>,
}

/// `DescribeSecurityGroupRules`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Rules {
    pub(crate) security_group_rule_set: Set<WireRule>,
    pub(crate) next_token: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WireRule {
    pub(crate) security_group_rule_id: String,
    pub(crate) group_id: String,
    pub(crate) is_egress: bool,
    #[serde(default)]
    ip_protocol: String,
    from_port: Option<i64>,
    to_port: Option<i64>,
    cidr_ipv4: Option<String>,
    cidr_ipv6: Option<String>,
    referenced_group_info: Option<Referenced>,
    #[serde(default)]
    description: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Referenced {
    group_id: Option<String>,
}

impl WireGroup {
    /// Turns it into the model's words.
    pub(crate) fn into_group(self, rules: Vec<GroupRule>) -> SecurityGroup {
        SecurityGroup {
            id: GroupId::from(self.group_id.as_str()),
            name: self.group_name.into(),
            project: self.owner_id.map(Into::into),
            rules,
        }
    }
}

impl WireRule {
    /// Turns it into the model's words: one rule, or one for each family.
    pub(crate) fn rules(&self) -> Vec<GroupRule> {
        let protocol = protocol(&self.ip_protocol);
        let (families, remote) = self.other_end(protocol);
        let direction = if self.is_egress { Direction::Egress } else { Direction::Ingress };
        let ports = ports(protocol, self.from_port, self.to_port);
        let rule = |family| GroupRule {
            id: RuleId::from(self.security_group_rule_id.as_str()),
            allows: RuleSpec { direction, family, protocol, ports, remote: remote.clone() },
            description: self.description.as_str().into(),
        };
        families.iter().copied().map(rule).collect()
    }

    fn other_end(&self, protocol: Option<Protocol>) -> (&'static [Family], Remote) {
        const BOTH: &[Family] = &[Family::V4, Family::V6];
        let prefix = |text: &str| match text.trim().parse::<IpNet>() {
            Ok(net) if net.prefix_len() == 0 => Remote::Any,
            Ok(net) => Remote::Prefix(net.trunc()),
            Err(_) => Remote::Other,
        };
        let families = match protocol {
            Some(Protocol::ICMP) => &BOTH[..1],
            Some(Protocol::ICMP6) => &BOTH[1..],
            _ => BOTH,
        };
        let group = self.referenced_group_info.as_ref().and_then(|group| group.group_id.as_deref());
        match (&self.cidr_ipv4, &self.cidr_ipv6, group) {
            (Some(cidr), ..) => (&BOTH[..1], prefix(cidr)),
            (None, Some(cidr), _) => (&BOTH[1..], prefix(cidr)),
            (None, None, Some(group)) => (families, Remote::Group(GroupId::from(group.trim()))),
            // A prefix list, or something newer.
            (None, None, None) => (families, Remote::Other),
        }
    }
}

fn protocol(text: &str) -> Option<Protocol> {
    match text.trim() {
        "-1" => None,
        "tcp" => Some(Protocol::TCP),
        "udp" => Some(Protocol::UDP),
        "icmp" => Some(Protocol::ICMP),
        "icmpv6" => Some(Protocol::ICMP6),
        other => Some(other.parse().map_or(UNREADABLE, Protocol)),
    }
}

/// -1 is "all", also as an ICMP code.
fn ports(protocol: Option<Protocol>, from: Option<i64>, to: Option<i64>) -> Option<(u16, u16)> {
    let protocol = protocol?;
    let icmp = matches!(protocol, Protocol::ICMP | Protocol::ICMP6);
    let port = |number: i64| u16::try_from(number).ok();
    match (from.and_then(port), to.and_then(port)) {
        (None, _) => None,
        (Some(kind), code) if icmp => Some((kind, code.unwrap_or(255))),
        (Some(0 | 1), Some(u16::MAX)) => None,
        (Some(first), last) => Some((first, last.unwrap_or(first))),
    }
}

/// The parameters of one rule to be authorized; `None` where EC2 could not take exactly that.
pub(crate) fn write_rule(request: Request, rule: &RuleSpec, description: &str) -> Option<Request> {
    let (name, from, to) = match (rule.protocol, rule.ports) {
        (None, None) => ("-1".to_owned(), None, None),
        // EC2 would open all ports.
        (None, Some(_)) => return None,
        (Some(protocol @ (Protocol::TCP | Protocol::UDP)), ports) => {
            let (first, last) = ports.unwrap_or((0, u16::MAX));
            (protocol.0.to_string(), Some(i64::from(first)), Some(i64::from(last)))
        }
        (Some(protocol @ (Protocol::ICMP | Protocol::ICMP6)), ports) => {
            let code = |code: u16| if code >= 255 { -1 } else { i64::from(code) };
            let (kind, code) = ports.map_or((-1, -1), |(kind, last)| (i64::from(kind), code(last)));
            let name = if protocol == Protocol::ICMP { "icmp" } else { "icmpv6" };
            (name.to_owned(), Some(kind), Some(code))
        }
        (Some(protocol), None) => (protocol.0.to_string(), None, None),
        // EC2 knows no ports of other protocols and would open all of it.
        (Some(_), Some(_)) => return None,
    };
    let mut request = request.with("IpPermissions.1.IpProtocol", name);
    for (key, value) in [("FromPort", from), ("ToPort", to)] {
        if let Some(value) = value {
            request = request.with(format!("IpPermissions.1.{key}"), value.to_string());
        }
    }
    let (list, key, value) = match (&rule.remote, rule.family) {
        (Remote::Any, Family::V4) => ("IpRanges", "CidrIp", "0.0.0.0/0".to_owned()),
        (Remote::Any, Family::V6) => ("Ipv6Ranges", "CidrIpv6", "::/0".to_owned()),
        (Remote::Prefix(net), _) => match net {
            IpNet::V4(_) => ("IpRanges", "CidrIp", net.to_string()),
            IpNet::V6(_) => ("Ipv6Ranges", "CidrIpv6", net.to_string()),
        },
        (Remote::Group(group), _) => ("UserIdGroupPairs", "GroupId", group.to_string()),
        (Remote::Other, _) => return None,
    };
    let at = format!("IpPermissions.1.{list}.1");
    Some(request.with(format!("{at}.{key}"), value).with(format!("{at}.Description"), description))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::actions::AUTHORIZE_INGRESS;

    fn read(inner: &str) -> Vec<String> {
        let xml = format!(
            "<item><securityGroupRuleId>sgr-1</securityGroupRuleId><groupId>sg-1</groupId><isEgress>false</isEgress>{inner}\
             </item>"
        );
        let rule: WireRule = quick_xml::de::from_str(&xml).unwrap();
        let shown = |rule: GroupRule| format!("{:?} {}", rule.allows.family, rule.allows);
        rule.rules().into_iter().map(shown).collect()
    }

    fn ranged(protocol: &str, from: i64, to: i64, end: &str) -> String {
        format!("<ipProtocol>{protocol}</ipProtocol><fromPort>{from}</fromPort><toPort>{to}</toPort>{end}")
    }

    #[test]
    fn every_kind_of_rule_is_read_as_exactly_what_it_allows() {
        let (v4, v6) = ("<cidrIpv4>10.0.0.0/8</cidrIpv4>", "<cidrIpv6>fd00::/8</cidrIpv6>");
        let own = "<referencedGroupInfo><groupId>sg-1</groupId></referencedGroupInfo>";
        let cases: [(String, &[&str]); 10] = [
            (ranged("tcp", 10250, 10250, v4), &["V4 ingress tcp 10250-10250 from 10.0.0.0/8"]),
            (ranged("tcp", 0, 65535, v4), &["V4 ingress tcp from 10.0.0.0/8"]),
            (ranged("udp", 8472, 8472, v6), &["V6 ingress udp 8472-8472 from fd00::/8"]),
            (
                ranged("-1", -1, -1, "<cidrIpv4>0.0.0.0/0</cidrIpv4>"),
                &["V4 ingress any protocol from anywhere"],
            ),
            (
                ranged("-1", -1, -1, own),
                &["V4 ingress any protocol from group sg-1", "V6 ingress any protocol from group sg-1"],
            ),
            (ranged("icmp", 8, -1, v4), &["V4 ingress icmp 8-255 from 10.0.0.0/8"]),
            (ranged("icmpv6", -1, -1, own), &["V6 ingress ipv6-icmp from group sg-1"]),
            (ranged("4", -1, -1, v4), &["V4 ingress 4 from 10.0.0.0/8"]),
            (ranged("quic2", -1, -1, v4), &["V4 ingress 255 from 10.0.0.0/8"]),
            (
                ranged("tcp", 22, 22, "<prefixListId>pl-1</prefixListId>"),
                &["V4 ingress tcp 22-22 from an address group", "V6 ingress tcp 22-22 from an address group"],
            ),
        ];
        for (xml, shown) in cases {
            assert_eq!(read(&xml), shown, "{xml}");
        }
    }

    #[test]
    fn what_is_written_is_what_was_asked_and_never_wider() {
        let rule = |protocol, ports, remote| RuleSpec {
            direction: Direction::Ingress,
            family: Family::V4,
            protocol,
            ports,
            remote,
        };
        let written = |rule: &RuleSpec| {
            let request = write_rule(Request::new(AUTHORIZE_INGRESS), rule, "d")?;
            let form = request.form().replace("IpPermissions.1.", "").replace("%2F", "/");
            form.split_once("&IpProtocol").map(|(_, rest)| rest.to_owned())
        };
        let net = || Remote::Prefix("10.0.0.0/8".parse().unwrap());
        let range = "&IpRanges.1.CidrIp=10.0.0.0/8&IpRanges.1.Description=d";
        let cases = [
            (
                rule(Some(Protocol::TCP), Some((22, 23)), net()),
                Some(format!("=6&FromPort=22&ToPort=23{range}")),
            ),
            (rule(Some(Protocol::UDP), None, net()), Some(format!("=17&FromPort=0&ToPort=65535{range}"))),
            (rule(None, None, net()), Some(format!("=-1{range}"))),
            (
                rule(Some(Protocol::ICMP), Some((8, 255)), net()),
                Some(format!("=icmp&FromPort=8&ToPort=-1{range}")),
            ),
            (rule(Some(Protocol(4)), None, net()), Some(format!("=4{range}"))),
            (
                rule(None, None, Remote::Group(GroupId::from("sg-1"))),
                Some("=-1&UserIdGroupPairs.1.GroupId=sg-1&UserIdGroupPairs.1.Description=d".to_owned()),
            ),
            (rule(None, Some((22, 22)), net()), None),
            (rule(Some(Protocol(4)), Some((1, 1)), net()), None),
            (rule(Some(Protocol::TCP), None, Remote::Other), None),
        ];
        for (rule, form) in cases {
            assert_eq!(written(&rule), form, "{rule}");
        }
    }
}

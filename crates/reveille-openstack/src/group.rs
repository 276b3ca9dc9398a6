//! Neutron's security groups and rules, both ways.
//!
//! Reading normalises: `tcp`, `TCP` and `6` are one protocol, `0.0.0.0/0` and no prefix are every address, all ports are no
//! ports. Where a spelling is unfamiliar, the rule is read as allowing less than it may, never more. So at worst the controller
//! adds a rule that was there already. Writing produces what Neutron itself would list.

use std::sync::Arc;

use ipnet::IpNet;
use reveille_core::model::id::{GroupId, RuleId};
use reveille_core::model::network::{
    Direction, Family, GroupRule, NUDGE_MARK, Protocol, Remote, RuleSpec, SecurityGroup,
};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::port::network;

/// The attributes that are asked for, and no others.
pub(crate) const FIELDS: [&str; 5] = ["id", "name", "project_id", "tenant_id", "security_group_rules"];

/// IANA reserves this number: a rule whose protocol we cannot read allows nothing that any roster asks for.
const UNREADABLE: Protocol = Protocol(255);

/// One group with its rules.
#[derive(Deserialize)]
pub(crate) struct WireGroup {
    id: String,
    #[serde(default)]
    name: String,
    project_id: Option<String>,
    tenant_id: Option<String>,
    security_group_rules: Vec<WireRule>,
}

/// One rule.
#[derive(Deserialize)]
pub(crate) struct WireRule {
    pub(crate) id: String,
    direction: String,
    ethertype: String,
    protocol: Option<Value>,
    port_range_min: Option<u16>,
    port_range_max: Option<u16>,
    remote_ip_prefix: Option<String>,
    remote_group_id: Option<String>,
    remote_address_group_id: Option<String>,
    pub(crate) description: Option<String>,
}

impl From<WireGroup> for SecurityGroup {
    fn from(group: WireGroup) -> Self {
        let mut rules: Vec<GroupRule> =
            group.security_group_rules.into_iter().filter_map(read_rule).collect();
        rules.sort_by(|a, b| a.id.cmp(&b.id));
        Self {
            id: GroupId::from(group.id.as_str()),
            name: Arc::from(group.name),
            project: group.project_id.or(group.tenant_id).map(Arc::from),
            rules,
        }
    }
}

/// A rule of a direction or family that is not known allows nothing that is known, and is left out.
fn read_rule(rule: WireRule) -> Option<GroupRule> {
    let direction = match rule.direction.to_ascii_lowercase().as_str() {
        "ingress" => Direction::Ingress,
        "egress" => Direction::Egress,
        _ => return None,
    };
    let family = match rule.ethertype.to_ascii_lowercase().as_str() {
        "ipv4" => Family::V4,
        "ipv6" => Family::V6,
        _ => return None,
    };
    let protocol = match &rule.protocol {
        None | Some(Value::Null) => None,
        Some(Value::Number(number)) => read_protocol(&number.to_string(), family),
        Some(Value::String(text)) => read_protocol(text, family),
        Some(_) => Some(UNREADABLE),
    };
    let remote = if let Some(group) = rule.remote_group_id {
        Remote::Group(GroupId::from(group.as_str()))
    } else if rule.remote_address_group_id.is_some() {
        Remote::Other
    } else {
        match rule.remote_ip_prefix.as_deref().map(network) {
            None => Remote::Any,
            Some(Some(net)) if net.prefix_len() == 0 => Remote::Any,
            Some(Some(net)) => Remote::Prefix(net),
            Some(None) => Remote::Other,
        }
    };
    Some(GroupRule {
        id: RuleId::from(rule.id.as_str()),
        allows: RuleSpec {
            direction,
            family,
            protocol,
            ports: read_ports(protocol, rule.port_range_min, rule.port_range_max),
            remote,
        },
        description: Arc::from(rule.description.unwrap_or_default()),
    })
}

/// `None` allows every protocol. ICMP on an IPv6 rule is ICMPv6, whatever it is called.
fn read_protocol(text: &str, family: Family) -> Option<Protocol> {
    let number = match text.to_ascii_lowercase().as_str() {
        "" | "any" => return None,
        "tcp" => 6,
        "udp" => 17,
        "icmp" => 1,
        "icmpv6" | "ipv6-icmp" => 58,
        "igmp" => 2,
        "ipip" => 4,
        "egp" => 8,
        "dccp" => 33,
        "ipv6-encap" => 41,
        "ipv6-route" => 43,
        "ipv6-frag" => 44,
        "rsvp" => 46,
        "gre" => 47,
        "esp" => 50,
        "ah" => 51,
        "ipv6-nonxt" => 59,
        "ipv6-opts" => 60,
        "ospf" => 89,
        "vrrp" => 112,
        "pgm" => 113,
        "sctp" => 132,
        "udplite" => 136,
        other => match other.parse::<u8>() {
            Ok(0) => return None,
            Ok(number) => number,
            Err(_) => return Some(UNREADABLE),
        },
    };
    Some(match (number, family) {
        (1, Family::V6) => Protocol::ICMP6,
        (number, _) => Protocol(number),
    })
}

/// `None` allows all. For ICMP the pair is type and code, and a type without a code keeps 255 as "any code".
fn read_ports(protocol: Option<Protocol>, min: Option<u16>, max: Option<u16>) -> Option<(u16, u16)> {
    let icmp = matches!(protocol, Some(Protocol::ICMP | Protocol::ICMP6));
    match (min, max) {
        (None, None) => None,
        (Some(0 | 1), Some(u16::MAX)) if !icmp => None,
        (Some(first), None) if icmp => Some((first, 255)),
        (min, max) => Some((min.or(max)?, max.or(min)?)),
    }
}

/// The body of `POST /v2.0/security-group-rules`; `None` for a rule that cannot be written (its remote is unknown).
pub(crate) fn write_rule(group: &GroupId, rule: &RuleSpec, description: &str) -> Option<Value> {
    let mut body = json!({
        "security_group_id": group.as_str(),
        "direction": match rule.direction { Direction::Ingress => "ingress", Direction::Egress => "egress" },
        "ethertype": match rule.family { Family::V4 => "IPv4", Family::V6 => "IPv6" },
        "protocol": rule.protocol.map(|protocol| protocol.to_string()),
        "description": description,
    });
    if let Some((first, last)) = rule.ports {
        body["port_range_min"] = first.into();
        body["port_range_max"] = last.into();
    }
    match &rule.remote {
        Remote::Any => {}
        Remote::Prefix(net) => body["remote_ip_prefix"] = net.to_string().into(),
        Remote::Group(group) => body["remote_group_id"] = group.as_str().into(),
        Remote::Other => return None,
    }
    Some(json!({ "security_group_rule": body }))
}

/// A rule that admits no real client: TCP from one address of a documentation range. `number` picks the address.
pub(crate) fn harmless_rule(number: u64) -> RuleSpec {
    let last = (number % 254 + 1) as u8;
    let address = std::net::IpAddr::from([192, 0, 2, last]);
    RuleSpec {
        direction: Direction::Ingress,
        family: Family::V4,
        protocol: Some(Protocol::TCP),
        ports: None,
        remote: Remote::Prefix(IpNet::from(address)),
    }
}

/// The intent's number at the end of a nudge's mark; 0 where there is none.
pub(crate) fn mark_number(mark: &str) -> u64 {
    let digits = mark.trim_start_matches(NUDGE_MARK);
    let start = digits.rfind(|c: char| !c.is_ascii_digit()).map_or(0, |at| at + 1);
    digits.get(start..).and_then(|digits| digits.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Option<RuleSpec> {
        let base = format!(r#"{{"id": "r", "direction": "ingress", {json}}}"#);
        read_rule(serde_json::from_str(&base).unwrap()).map(|rule| rule.allows)
    }

    #[test]
    fn spellings_of_one_protocol_are_one() {
        let cases = [
            (r#""ethertype": "IPv4", "protocol": "tcp""#, Some(Protocol::TCP)),
            (r#""ethertype": "IPv4", "protocol": "TCP""#, Some(Protocol::TCP)),
            (r#""ethertype": "IPv4", "protocol": "6""#, Some(Protocol::TCP)),
            (r#""ethertype": "IPv4", "protocol": 6"#, Some(Protocol::TCP)),
            (r#""ethertype": "IPv4", "protocol": "icmp""#, Some(Protocol::ICMP)),
            (r#""ethertype": "IPv4", "protocol": "1""#, Some(Protocol::ICMP)),
            (r#""ethertype": "IPv6", "protocol": "icmp""#, Some(Protocol::ICMP6)),
            (r#""ethertype": "IPv6", "protocol": "1""#, Some(Protocol::ICMP6)),
            (r#""ethertype": "IPv6", "protocol": "icmpv6""#, Some(Protocol::ICMP6)),
            (r#""ethertype": "IPv6", "protocol": "ipv6-icmp""#, Some(Protocol::ICMP6)),
            (r#""ethertype": "IPv6", "protocol": "58""#, Some(Protocol::ICMP6)),
            (r#""ethertype": "IPv4", "protocol": null"#, None),
            (r#""ethertype": "IPv4""#, None),
            (r#""ethertype": "IPv4", "protocol": "any""#, None),
            (r#""ethertype": "IPv4", "protocol": "0""#, None),
            (r#""ethertype": "IPv4", "protocol": "quic2""#, Some(UNREADABLE)),
            (r#""ethertype": "IPv4", "protocol": "300""#, Some(UNREADABLE)),
        ];
        for (json, protocol) in cases {
            assert_eq!(read(json).unwrap().protocol, protocol, "{json}");
        }
    }

    #[test]
    fn rule_remote_is_any_network_group_or_unknown() {
        let net = |text: &str| Remote::Prefix(text.parse().unwrap());
        let cases = [
            (r#""remote_ip_prefix": null"#, Remote::Any),
            (r#""remote_ip_prefix": "0.0.0.0/0""#, Remote::Any),
            (r#""remote_ip_prefix": "::/0""#, Remote::Any),
            (r#""remote_ip_prefix": "198.19.1.7/16""#, net("198.19.0.0/16")),
            (r#""remote_ip_prefix": "10.0.0.1""#, net("10.0.0.1/32")),
            (r#""remote_ip_prefix": "what""#, Remote::Other),
            (r#""remote_group_id": "g""#, Remote::Group(GroupId::from("g"))),
            (r#""remote_address_group_id": "a""#, Remote::Other),
        ];
        for (json, remote) in cases {
            assert_eq!(read(&format!(r#""ethertype": "IPv4", {json}"#)).unwrap().remote, remote, "{json}");
        }
        assert_eq!(read(r#""ethertype": "IPv5""#), None);
    }

    #[test]
    fn all_ports_are_no_ports() {
        let ports = |protocol: &str, range: &str| {
            read(&format!(r#""ethertype": "IPv4", "protocol": "{protocol}", {range}"#)).unwrap().ports
        };
        assert_eq!(ports("tcp", r#""port_range_min": null, "port_range_max": null"#), None);
        assert_eq!(ports("tcp", r#""port_range_min": 1, "port_range_max": 65535"#), None);
        assert_eq!(ports("tcp", r#""port_range_min": 22, "port_range_max": 22"#), Some((22, 22)));
        assert_eq!(ports("icmp", r#""port_range_min": 8, "port_range_max": null"#), Some((8, 255)));
    }

    #[test]
    fn what_is_written_is_read_back_the_same() {
        let group = GroupId::from("g");
        let rules = [
            ("198.19.0.0/16", Family::V4, Some(Protocol::UDP), None),
            ("fd00:1::/64", Family::V6, Some(Protocol::ICMP6), None),
            ("198.19.0.0/16", Family::V4, Some(Protocol(112)), None),
            ("198.19.0.0/16", Family::V4, None, None),
            ("10.0.0.0/8", Family::V4, Some(Protocol::TCP), Some((10250, 10250))),
        ];
        for (net, family, protocol, ports) in rules {
            let remote = Remote::Prefix(net.parse().unwrap());
            let rule = RuleSpec { direction: Direction::Ingress, family, protocol, ports, remote };
            let mut body = write_rule(&group, &rule, "reveille").unwrap()["security_group_rule"].clone();
            body["id"] = "r".into();
            let back = read_rule(serde_json::from_value(body).unwrap()).unwrap();
            assert_eq!(back.allows, rule);
        }
    }

    #[test]
    fn nudge_rule_opens_no_real_address_and_shows_its_intent_number() {
        assert_eq!(mark_number("reveille-nudge int-300"), 300);
        assert_eq!(mark_number("reveille-nudge"), 0);
        for number in [0, 253, 254, u64::MAX] {
            let Remote::Prefix(net) = harmless_rule(number).remote else { panic!("not a network") };
            assert!("192.0.2.0/24".parse::<IpNet>().unwrap().contains(&net) && net.prefix_len() == 32);
        }
    }
}

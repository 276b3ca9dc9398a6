//! Which rules let pods of other nodes in, and which of them are missing.
//!
//! A packet from a pod carries the pod's address, not its node's, so a rule that admits *members of a group* does not
//! admit it: only rules by address do. Wanted for each pod range is ingress for tcp, udp and icmp. A rule is judged by
//! what it admits and not by how it is spelled: any protocol, a wider prefix, or several prefixes that together cover
//! the range are as good as the exact rule (flight control compared strings, D12).
//!
//! In: every rule of all groups that a port carries (the cloud takes their union). Out: the rules to add. It does not
//! choose the group to add them to, and never asks for a rule to be removed.

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

use crate::model::network::{Direction, Family, GroupRule, Protocol, Remote, RuleSpec, SecurityGroup};

use super::{outermost, together_cover};

/// The rules that must be added so that tcp, udp and icmp from each pod range get in. Sorted; empty when all do.
///
/// `groups` are the groups that the ports in question carry *together*: where ports differ, ask once per port.
pub fn missing_rules(groups: &[&SecurityGroup], pod_ranges: &[IpNet]) -> Vec<RuleSpec> {
    let mut missing = Vec::new();
    for range in outermost(pod_ranges) {
        let family = Family::of(&range);
        for protocol in wanted_protocols(family) {
            let admitted: Vec<IpNet> = groups
                .iter()
                .flat_map(|group| &group.rules)
                .filter_map(|rule| admits(rule, family, protocol))
                .collect();
            if !together_cover(&admitted, &range) {
                missing.push(RuleSpec {
                    direction: Direction::Ingress,
                    family,
                    protocol: Some(protocol),
                    ports: None,
                    remote: Remote::Prefix(range),
                });
            }
        }
    }
    missing.sort_unstable();
    missing
}

const fn wanted_protocols(family: Family) -> [Protocol; 3] {
    match family {
        Family::V4 => [Protocol::TCP, Protocol::UDP, Protocol::ICMP],
        Family::V6 => [Protocol::TCP, Protocol::UDP, Protocol::ICMP6],
    }
}

/// The addresses from which this rule admits all of that protocol; `None` when it admits less than all, or admits no known
/// address.
fn admits(rule: &GroupRule, family: Family, protocol: Protocol) -> Option<IpNet> {
    let allows = &rule.allows;
    if allows.direction != Direction::Ingress || allows.family != family {
        return None;
    }
    if !speaks(allows.protocol, protocol) || !all_ports(allows.ports, protocol) {
        return None;
    }
    match &allows.remote {
        Remote::Any => Some(anywhere(family)),
        Remote::Prefix(net) => Some(*net),
        Remote::Group(_) | Remote::Other => None,
    }
}

/// Neutron takes protocol 1 in an IPv6 rule for ICMPv6: the spelling is old, the meaning is not.
fn speaks(ruled: Option<Protocol>, wanted: Protocol) -> bool {
    ruled.is_none_or(|protocol| {
        protocol == wanted || (wanted == Protocol::ICMP6 && protocol == Protocol::ICMP)
    })
}

/// For ICMP the two numbers are a type and a code: any number at all narrows the rule.
fn all_ports(ports: Option<(u16, u16)>, protocol: Protocol) -> bool {
    match ports {
        None => true,
        Some((first, last)) => {
            !matches!(protocol, Protocol::ICMP | Protocol::ICMP6) && first <= 1 && last == u16::MAX
        }
    }
}

fn anywhere(family: Family) -> IpNet {
    match family {
        Family::V4 => IpNet::V4(Ipv4Net::default()),
        Family::V6 => IpNet::V6(Ipv6Net::default()),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::model::id::{GroupId, RuleId};

    const RANGE: &str = "198.19.0.0/16";

    fn spec(protocol: Option<u8>, ports: Option<(u16, u16)>, remote: Remote) -> RuleSpec {
        let protocol = protocol.map(Protocol);
        RuleSpec { direction: Direction::Ingress, family: Family::V4, protocol, ports, remote }
    }

    fn from(net: &str) -> Remote {
        Remote::Prefix(net.parse().unwrap())
    }

    fn group(rules: Vec<RuleSpec>) -> SecurityGroup {
        let rules = rules
            .into_iter()
            .enumerate()
            .map(|(n, allows)| GroupRule {
                id: RuleId::new(format!("r{n}")),
                allows,
                description: Arc::from(""),
            })
            .collect();
        SecurityGroup { id: GroupId::from("g"), name: Arc::from("nodes"), project: None, rules }
    }

    /// The protocols whose rule is missing, as a compact word.
    fn lacking(rules: Vec<RuleSpec>, range: &str) -> String {
        let group = group(rules);
        let missing = missing_rules(&[&group], &[range.parse().unwrap()]);
        for rule in &missing {
            assert_eq!(rule.remote, from(range));
            assert_eq!((rule.direction, rule.ports), (Direction::Ingress, None));
        }
        missing.iter().map(|rule| rule.protocol.unwrap().to_string()).collect::<Vec<_>>().join(" ")
    }

    /// B11: what exists is not made again, whatever is missing is. D12: other spellings of the same count.
    #[test]
    fn b11_d12_a_rule_counts_by_what_it_admits() {
        let other_group = Remote::Group(GroupId::from("g"));
        let egress = RuleSpec { direction: Direction::Egress, ..spec(None, None, Remote::Any) };
        let six = RuleSpec { family: Family::V6, ..spec(None, None, Remote::Any) };
        let crossed = RuleSpec { family: Family::V6, ..spec(None, None, from(RANGE)) };
        let table: Vec<(&str, Vec<RuleSpec>, &str)> = vec![
            ("nothing", vec![], "icmp tcp udp"),
            ("one exact", vec![spec(Some(6), None, from(RANGE))], "icmp udp"),
            ("any protocol", vec![spec(None, None, from(RANGE))], ""),
            ("any protocol from anywhere", vec![spec(None, None, Remote::Any)], ""),
            ("a wider prefix", vec![spec(Some(17), None, from("198.18.0.0/15"))], "icmp tcp"),
            ("a narrower prefix", vec![spec(Some(17), None, from("198.19.0.0/17"))], "icmp tcp udp"),
            (
                "two halves",
                vec![
                    spec(Some(17), None, from("198.19.0.0/17")),
                    spec(Some(17), None, from("198.19.128.0/17")),
                ],
                "icmp tcp",
            ),
            (
                "two halves of different protocols",
                vec![
                    spec(Some(17), None, from("198.19.0.0/17")),
                    spec(Some(6), None, from("198.19.128.0/17")),
                ],
                "icmp tcp udp",
            ),
            ("all ports from 1", vec![spec(Some(6), Some((1, 65535)), from(RANGE))], "icmp udp"),
            ("all ports from 0", vec![spec(Some(6), Some((0, 65535)), from(RANGE))], "icmp udp"),
            ("all but two ports", vec![spec(Some(6), Some((2, 65535)), from(RANGE))], "icmp tcp udp"),
            ("some ports", vec![spec(Some(6), Some((1, 65534)), from(RANGE))], "icmp tcp udp"),
            ("some ports of any", vec![spec(None, Some((30000, 32767)), Remote::Any)], "icmp tcp udp"),
            ("all of icmp", vec![spec(Some(1), None, from(RANGE))], "tcp udp"),
            ("echo only", vec![spec(Some(1), Some((8, 0)), from(RANGE))], "icmp tcp udp"),
            (
                "icmp numbers that look like all ports",
                vec![spec(Some(1), Some((0, 65535)), from(RANGE))],
                "icmp tcp udp",
            ),
            ("members of a group", vec![spec(None, None, other_group)], "icmp tcp udp"),
            ("an address group", vec![spec(None, None, Remote::Other)], "icmp tcp udp"),
            ("egress", vec![egress], "icmp tcp udp"),
            ("the other family", vec![six], "icmp tcp udp"),
            ("a prefix in a rule of the other family", vec![crossed], "icmp tcp udp"),
        ];
        for (case, rules, expected) in table {
            assert_eq!(lacking(rules, RANGE), expected, "{case}");
        }
    }

    #[test]
    fn ipv6_ranges_want_icmpv6_and_take_its_old_spelling() {
        let six =
            |protocol| RuleSpec { family: Family::V6, ..spec(Some(protocol), None, from("fd00:10::/48")) };
        assert_eq!(lacking(vec![], "fd00:10::/48"), "tcp udp ipv6-icmp");
        assert_eq!(lacking(vec![six(58)], "fd00:10::/48"), "tcp udp");
        assert_eq!(lacking(vec![six(1)], "fd00:10::/48"), "tcp udp");
    }

    #[test]
    fn rules_of_all_groups_of_a_port_add_up() {
        let tcp = group(vec![spec(Some(6), None, from("198.19.0.0/17"))]);
        let rest =
            group(vec![spec(Some(6), None, from("198.19.128.0/17")), spec(Some(1), None, Remote::Any)]);
        let missing = missing_rules(&[&tcp, &rest], &[RANGE.parse().unwrap()]);
        assert_eq!(missing, vec![spec(Some(17), None, from(RANGE))]);
    }

    #[test]
    fn contained_and_unaligned_ranges_ask_for_nothing_twice() {
        let ranges = ["198.19.7.0/24", "198.19.3.4/16", "198.19.0.0/16"].map(|net| net.parse().unwrap());
        assert_eq!(missing_rules(&[], &ranges).len(), 3);
        assert!(missing_rules(&[], &[]).is_empty(), "no pod range, no rules");
    }

    #[test]
    fn added_rules_are_enough() {
        let ranges = ["198.19.0.0/16", "fd00:10::/48"].map(|net| net.parse().unwrap());
        let added = group(missing_rules(&[], &ranges));
        assert!(missing_rules(&[&added], &ranges).is_empty());
    }
}

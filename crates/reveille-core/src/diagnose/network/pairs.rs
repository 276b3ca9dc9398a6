//! Whether the port of a node lets its pods' packets out and in.
//!
//! Neutron drops what a port sends from an address that is not its own unless an *allowed address pair* names it. Where
//! pod addresses travel bare, the port that holds the node's InternalIP must allow the node's pod range. The cloud
//! controller adds the pair only when it makes the route and never looks again, so a pair that was lost later stays lost.
//!
//! One port is answered at a time: of several, the first in the order of the node's addresses. It does not know which
//! rosters want pairs at all.

use std::net::IpAddr;
use std::sync::Arc;

use ipnet::IpNet;

use crate::model::id::PortId;
use crate::model::instance::Port;
use crate::model::network::{Family, Obstacle};

use super::membership::Verdict;
use super::{outermost, together_cover};

/// How many pairs a port may hold where the cloud's operator did not change it (Neutron's `max_allowed_address_pair`).
pub const PAIRS_PER_PORT_MAX: usize = 10;

/// What one port lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PairNeed {
    /// The port that holds the node's address.
    pub port: PortId,
    /// The pod ranges that it does not allow, sorted.
    pub missing: Vec<IpNet>,
    /// The revision at which this was read.
    pub revision: u64,
    /// Whether a write can help.
    pub verdict: Verdict,
}

/// What the port that holds one of the node's addresses lacks, for pod ranges of that address's family.
///
/// `None` when nothing is missing: the ranges are allowed (an equal or wider pair, or several that together cover), no
/// port holds the node's addresses, or port security is off and every packet passes anyway.
pub fn missing_pairs(
    ports: &[Arc<Port>],
    node_addresses: &[IpAddr],
    pod_ranges: &[IpNet],
) -> Option<PairNeed> {
    let ranges = outermost(pod_ranges);
    node_addresses.iter().find_map(|address| {
        let port = ports.iter().find(|port| port.addresses.contains(address))?;
        let ours = ranges.iter().filter(|range| Family::of(range) == Family::of(&IpNet::from(*address)));
        let missing: Vec<IpNet> = ours.filter(|range| !together_cover(&port.pairs, range)).copied().collect();
        if missing.is_empty() || !port.security {
            return None;
        }
        let held = port.pairs.len();
        let verdict = if held + missing.len() > PAIRS_PER_PORT_MAX {
            Verdict::NotApplicable(Obstacle::PairsExhausted { held, limit: PAIRS_PER_PORT_MAX })
        } else {
            Verdict::Applicable
        };
        Some(PairNeed { port: port.id.clone(), missing, revision: port.revision, verdict })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::id::NetworkId;
    use crate::model::instance::PortStatus;

    fn port(id: &str, address: &str, pairs: &[&str]) -> Port {
        Port {
            id: PortId::from(id),
            network: NetworkId::from("net"),
            addresses: Box::new([address.parse().unwrap()]),
            groups: Box::new([]),
            pairs: pairs.iter().map(|net| net.parse().unwrap()).collect(),
            security: true,
            status: PortStatus::Active,
            revision: 3,
        }
    }

    fn told(ports: &[Port], addresses: &[&str], ranges: &[&str]) -> String {
        let ports: Vec<Arc<Port>> = ports.iter().cloned().map(Arc::new).collect();
        let addresses: Vec<IpAddr> = addresses.iter().map(|a| a.parse().unwrap()).collect();
        let ranges: Vec<IpNet> = ranges.iter().map(|r| r.parse().unwrap()).collect();
        match missing_pairs(&ports, &addresses, &ranges) {
            None => "fine".to_owned(),
            Some(need) => {
                assert_eq!(need.revision, 3);
                let verdict = if need.verdict == Verdict::Applicable { "add" } else { "full" };
                let nets: Vec<String> = need.missing.iter().map(ToString::to_string).collect();
                format!("{} {verdict} {}", need.port, nets.join(" "))
            }
        }
    }

    #[test]
    fn the_port_of_the_node_must_allow_its_pod_range() {
        const HERE: &[&str] = &["10.0.0.5"];
        const RANGE: &[&str] = &["198.19.1.0/24"];
        let none = || port("p1", "10.0.0.5", &[]);
        let ten: Vec<String> = (0..10).map(|n| format!("172.16.{n}.0/24")).collect();
        let ten: Vec<&str> = ten.iter().map(String::as_str).collect();
        let table: Vec<(&str, Vec<Port>, &[&str], &[&str], &str)> = vec![
            ("nothing allowed", vec![none()], HERE, RANGE, "p1 add 198.19.1.0/24"),
            ("equal pair", vec![port("p1", "10.0.0.5", RANGE)], HERE, RANGE, "fine"),
            ("wider pair", vec![port("p1", "10.0.0.5", &["198.19.0.0/16"])], HERE, RANGE, "fine"),
            (
                "narrower pair",
                vec![port("p1", "10.0.0.5", &["198.19.1.0/25"])],
                HERE,
                RANGE,
                "p1 add 198.19.1.0/24",
            ),
            (
                "two halves",
                vec![port("p1", "10.0.0.5", &["198.19.1.0/25", "198.19.1.128/25"])],
                HERE,
                RANGE,
                "fine",
            ),
            (
                "another node's range",
                vec![port("p1", "10.0.0.5", &["198.19.2.0/24"])],
                HERE,
                RANGE,
                "p1 add 198.19.1.0/24",
            ),
            (
                "pair on another port",
                vec![port("p0", "10.9.0.5", RANGE), none()],
                HERE,
                RANGE,
                "p1 add 198.19.1.0/24",
            ),
            ("no port holds the address", vec![port("p1", "10.0.0.9", &[])], HERE, RANGE, "fine"),
            ("port security off", vec![Port { security: false, ..none() }], HERE, RANGE, "fine"),
            ("full port", vec![port("p1", "10.0.0.5", &ten)], HERE, RANGE, "p1 full 198.19.1.0/24"),
            ("room for one", vec![port("p1", "10.0.0.5", &ten[1..])], HERE, RANGE, "p1 add 198.19.1.0/24"),
            ("other family", vec![none()], HERE, &["fd00::/64"], "fine"),
            ("no pod range yet", vec![none()], HERE, &[], "fine"),
        ];
        for (case, ports, addresses, ranges, expected) in table {
            assert_eq!(told(&ports, addresses, ranges), expected, "{case}");
        }
    }

    #[test]
    fn each_family_is_asked_of_the_port_that_holds_it() {
        let ports = [port("p4", "10.0.0.5", &["198.19.1.0/24"]), port("p6", "fd01::5", &[])];
        assert_eq!(
            told(&ports, &["10.0.0.5", "fd01::5"], &["198.19.1.0/24", "fd00::/64"]),
            "p6 add fd00::/64"
        );
    }
}

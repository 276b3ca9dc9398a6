//! What a project's network holds: security groups with their rules, and routers with their routes.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use ipnet::{IpNet, Ipv4Net};

use serde::{Deserialize, Serialize};

use super::id::{GroupId, RouterId, RuleId};

/// A security group with all its rules.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SecurityGroup {
    /// Its id; rosters may name groups, calls use ids.
    pub id: GroupId,
    /// Its name. Several groups of one project may share it.
    pub name: Arc<str>,
    /// The owning project: groups of other projects may be visible and carry the same name (flight control D11).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<Arc<str>>,
    /// Every rule.
    pub rules: Vec<GroupRule>,
}

/// One rule, normalised: protocol spellings (`tcp`, `6`, `TCP`) are one value, prefixes are networks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GroupRule {
    /// The rule's id.
    pub id: RuleId,
    /// What it allows.
    pub allows: RuleSpec,
    /// Free text; ours starts with [`NUDGE_MARK`] or [`REPAIR_MARK`].
    pub description: Arc<str>,
}

/// Begins the description of a rule or route that was put only to be taken back.
pub const NUDGE_MARK: &str = "reveille-nudge";
/// Begins the description of a rule that Reveille put because it was missing.
pub const REPAIR_MARK: &str = "reveille";

/// What a rule allows, without its identity.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RuleSpec {
    /// Into or out of the port.
    pub direction: Direction,
    /// Address family.
    pub family: Family,
    /// IP protocol; `None` allows all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol: Option<Protocol>,
    /// First and last port (ICMP: type and code); `None` allows all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ports: Option<(u16, u16)>,
    /// Who is at the other end.
    pub remote: Remote,
}

/// Direction of a rule as seen from the port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// Into the machine.
    Ingress,
    /// Out of the machine.
    Egress,
}

/// Address family of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl Family {
    /// The family that a network belongs to.
    pub const fn of(net: &IpNet) -> Self {
        match net {
            IpNet::V4(_) => Self::V4,
            IpNet::V6(_) => Self::V6,
        }
    }
}

/// An IP protocol by its number. Written as its name where it has one here, so that a reader need not know that 17 is UDP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Protocol(pub u8);

impl Protocol {
    /// ICMP for IPv4.
    pub const ICMP: Self = Self(1);
    /// TCP.
    pub const TCP: Self = Self(6);
    /// UDP.
    pub const UDP: Self = Self(17);
    /// ICMP for IPv6.
    pub const ICMP6: Self = Self(58);
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::ICMP => f.write_str("icmp"),
            Self::TCP => f.write_str("tcp"),
            Self::UDP => f.write_str("udp"),
            Self::ICMP6 => f.write_str("ipv6-icmp"),
            Self(other) => write!(f, "{other}"),
        }
    }
}

impl From<Protocol> for String {
    fn from(protocol: Protocol) -> Self {
        protocol.to_string()
    }
}

impl TryFrom<String> for Protocol {
    type Error = String;

    fn try_from(word: String) -> Result<Self, String> {
        let known = [Self::TCP, Self::UDP, Self::ICMP, Self::ICMP6];
        let named = known.into_iter().find(|known| known.to_string() == word);
        named.or_else(|| word.parse().ok().map(Self)).ok_or_else(|| format!("there is no protocol {word:?}"))
    }
}

/// The other end of a rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Remote {
    /// Any address.
    Any,
    /// Addresses within a network.
    Prefix(IpNet),
    /// Ports that carry a group. Does not reach pod addresses, whatever the group.
    Group(GroupId),
    /// An address group or something newer: allows an unknown set, so it proves nothing.
    Other,
}

impl fmt::Display for RuleSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let direction = match self.direction {
            Direction::Ingress => "ingress",
            Direction::Egress => "egress",
        };
        write!(f, "{direction} ")?;
        match self.protocol {
            Some(protocol) => write!(f, "{protocol}")?,
            None => f.write_str("any protocol")?,
        }
        if let Some((first, last)) = self.ports {
            write!(f, " {first}-{last}")?;
        }
        match &self.remote {
            Remote::Any => f.write_str(" from anywhere"),
            Remote::Prefix(net) => write!(f, " from {net}"),
            Remote::Group(group) => write!(f, " from group {group}"),
            Remote::Other => f.write_str(" from an address group"),
        }
    }
}

/// A router that carries the cluster's pod routes, perhaps among those of others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Router {
    /// Its id.
    pub id: RouterId,
    /// All extra routes, as listed.
    pub routes: Vec<Route>,
    /// How many routes it may hold, where the cloud tells (quota `router_route`) or a refusal taught us.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

/// Why a port takes no security group, or no address pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum Obstacle {
    /// Port security is off: Neutron refuses groups and pairs there.
    PortSecurityOff,
    /// It has no fixed address: Neutron refuses groups there.
    NoFixedAddress,
    /// It holds as many address pairs as it may.
    PairsExhausted {
        /// Pairs there now.
        held: usize,
        /// How many it may hold.
        limit: usize,
    },
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PortSecurityOff => f.write_str("port security is off, so it takes no security group"),
            Self::NoFixedAddress => f.write_str("it has no fixed address, so it takes no security group"),
            Self::PairsExhausted { held, limit } => {
                write!(f, "it holds {held} of at most {limit} allowed address pairs")
            }
        }
    }
}

/// One static route.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Route {
    /// Where to.
    #[serde(rename = "to")]
    pub destination: IpNet,
    /// Through whom.
    #[serde(rename = "via")]
    pub next_hop: IpAddr,
}

/// The documentation range that nudges of routers use (RFC 5737, TEST-NET-2): no real network routes it.
pub const NUDGE_NET: Ipv4Net = Ipv4Net::new_assert(Ipv4Addr::new(198, 51, 100, 0), 24);

impl Route {
    /// It is put only to be taken back: one address of [`NUDGE_NET`].
    pub fn is_nudge(&self) -> bool {
        match self.destination {
            IpNet::V4(net) => net.prefix_len() == 32 && NUDGE_NET.contains(&net),
            IpNet::V6(_) => false,
        }
    }

    /// A route whose next hop is gone and has no address any more (EC2: a black hole). No port has the unspecified address,
    /// so the code that judges next hops finds the route dead.
    pub fn nowhere(destination: IpNet) -> Self {
        let next_hop = match destination {
            IpNet::V4(_) => IpAddr::from([0; 4]),
            IpNet::V6(_) => IpAddr::from([0; 16]),
        };
        Self { destination, next_hop }
    }

    /// Its next hop is gone.
    pub const fn is_nowhere(&self) -> bool {
        self.next_hop.is_unspecified()
    }
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_nowhere() {
            return write!(f, "{} via a next hop that is gone", self.destination);
        }
        write!(f, "{} via {}", self.destination, self.next_hop)
    }
}

//! Neutron's port as the model's port, and the wire form of what is written back.
//!
//! Only ports of instances are machines' (`device_owner` begins with `compute:`); a router's or a DHCP agent's port has
//! a device too. A router's port says which network it reaches into. Writing keeps every existing address pair as it was
//! read, MAC included.

use std::collections::BTreeSet;
use std::net::IpAddr;

use ipnet::IpNet;
use reveille_core::model::id::{GroupId, InstanceId, NetworkId, PortId, RouterId};
use reveille_core::model::instance::{Port, PortStatus};
use serde::{Deserialize, Serialize};

use crate::instance::{Text, instance_id};
use reveille_core::model::intern::Texts;

/// The attributes that are asked for, and no others.
pub(crate) const FIELDS: [&str; 10] = [
    "id",
    "device_id",
    "device_owner",
    "network_id",
    "fixed_ips",
    "security_groups",
    "allowed_address_pairs",
    "port_security_enabled",
    "status",
    "revision_number",
];

/// One port of a listing or of `GET /v2.0/ports/{id}`.
#[derive(Deserialize)]
pub(crate) struct WirePort<'a> {
    #[serde(borrow)]
    id: Text<'a>,
    #[serde(borrow, default)]
    device_id: Option<Text<'a>>,
    #[serde(borrow, default)]
    device_owner: Option<Text<'a>>,
    #[serde(borrow)]
    network_id: Text<'a>,
    #[serde(borrow, default)]
    fixed_ips: Vec<FixedIp<'a>>,
    #[serde(borrow, default)]
    security_groups: Vec<Text<'a>>,
    #[serde(default)]
    allowed_address_pairs: Vec<Pair>,
    #[serde(default)]
    port_security_enabled: Option<bool>,
    #[serde(borrow, default)]
    status: Option<Text<'a>>,
    #[serde(default)]
    revision_number: u64,
}

#[derive(Deserialize)]
struct FixedIp<'a> {
    #[serde(borrow)]
    ip_address: Text<'a>,
}

/// An allowed address pair as it stands on the port.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct Pair {
    pub(crate) ip_address: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) mac_address: Option<String>,
}

impl Pair {
    /// A pair without a MAC: Neutron puts the port's own.
    pub(crate) fn of(net: IpNet) -> Self {
        let ip_address =
            if net.prefix_len() == net.max_prefix_len() { net.addr().to_string() } else { net.to_string() };
        Self { ip_address, mac_address: None }
    }

    /// The network that it stands for.
    pub(crate) fn net(&self) -> Option<IpNet> {
        network(&self.ip_address)
    }
}

/// `10.0.0.0/8` or a plain address, with the host bits cut off.
pub(crate) fn network(text: &str) -> Option<IpNet> {
    text.parse::<IpNet>().ok().or_else(|| text.parse::<IpAddr>().ok().map(IpNet::from)).map(|net| net.trunc())
}

impl WirePort<'_> {
    /// The instance that it belongs to, if it belongs to one.
    pub(crate) fn instance(&self) -> Option<InstanceId> {
        let owner = self.device_owner.as_ref().map_or("", |owner| &owner.0);
        let device = self.device_id.as_ref().map_or("", |device| &device.0);
        (owner.starts_with("compute:") && !device.is_empty()).then(|| instance_id(device))
    }

    /// The router whose leg it is: plain, distributed and highly available routers each have an owner of their own.
    pub(crate) fn router(&self) -> Option<RouterId> {
        const OWNERS: [&str; 3] = [
            "network:router_interface",
            "network:router_interface_distributed",
            "network:ha_router_replicated_interface",
        ];
        let owner = self.device_owner.as_ref().map_or("", |owner| &owner.0);
        let device = self.device_id.as_ref().map_or("", |device| &device.0);
        (OWNERS.contains(&owner) && !device.is_empty()).then(|| RouterId::from(device))
    }

    /// Turns it into the model's words.
    pub(crate) fn into_port(self, texts: &mut Texts) -> Port {
        let addresses: BTreeSet<IpAddr> =
            self.fixed_ips.iter().filter_map(|ip| ip.ip_address.0.parse().ok()).collect();
        let groups: BTreeSet<GroupId> =
            self.security_groups.iter().map(|group| GroupId::new(texts.get(&group.0))).collect();
        let pairs: BTreeSet<IpNet> = self.allowed_address_pairs.iter().filter_map(Pair::net).collect();
        Port {
            id: PortId::from(&*self.id.0),
            network: NetworkId::new(texts.get(&self.network_id.0)),
            addresses: addresses.into_iter().collect(),
            groups: groups.into_iter().collect(),
            pairs: pairs.into_iter().collect(),
            security: self.port_security_enabled.unwrap_or(true),
            status: match self.status.as_ref().map(|status| &*status.0) {
                Some("ACTIVE") => PortStatus::Active,
                Some("DOWN" | "BUILD" | "ERROR") => PortStatus::Down,
                _ => PortStatus::Unknown,
            },
            revision: self.revision_number,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_read_sorted_and_normalised() {
        let json = r#"{"id": "p1", "device_id": "ABC", "device_owner": "compute:nova", "network_id": "n",
            "fixed_ips": [{"subnet_id": "s", "ip_address": "10.0.0.9"}, {"subnet_id": "s", "ip_address": "10.0.0.2"}],
            "security_groups": ["g2", "g1"], "status": "BUILD", "revision_number": 7,
            "allowed_address_pairs": [{"ip_address": "198.19.1.0/24", "mac_address": "fa:16:3e:00:00:01"},
                                      {"ip_address": "10.9.9.9"}, {"ip_address": "nonsense"}]}"#;
        let wire: WirePort<'_> = serde_json::from_str(json).unwrap();
        assert_eq!(wire.instance(), Some(InstanceId::from("abc")));
        let port = wire.into_port(&mut Texts::default());
        assert_eq!(*port.groups, [GroupId::from("g1"), GroupId::from("g2")]);
        assert_eq!(*port.pairs, ["10.9.9.9/32".parse().unwrap(), "198.19.1.0/24".parse().unwrap()]);
        assert_eq!(*port.addresses, ["10.0.0.2".parse::<IpAddr>().unwrap(), "10.0.0.9".parse().unwrap()]);
        assert_eq!((port.security, port.status, port.revision), (true, PortStatus::Down, 7));
    }

    #[test]
    fn only_ports_of_instances_belong_to_one() {
        for (owner, device) in [
            ("network:router_interface", "r"),
            ("network:dhcp", "d"),
            ("trunk:subport", "t"),
            ("", "x"),
            ("compute:nova", ""),
        ] {
            let json = format!(
                r#"{{"id": "p", "network_id": "n", "device_owner": "{owner}", "device_id": "{device}"}}"#
            );
            let wire: WirePort<'_> = serde_json::from_str(&json).unwrap();
            assert_eq!(wire.instance(), None, "{owner} {device}");
            let router = (device == "r").then(|| RouterId::from("r"));
            assert_eq!(wire.router(), router, "{owner} {device}");
        }
    }

    #[test]
    fn a_pair_is_written_as_neutron_lists_it() {
        let written = |net: &str| serde_json::to_string(&Pair::of(net.parse().unwrap())).unwrap();
        assert_eq!(written("198.19.1.0/24"), r#"{"ip_address":"198.19.1.0/24"}"#);
        assert_eq!(written("10.0.0.1/32"), r#"{"ip_address":"10.0.0.1"}"#);
        assert_eq!(written("fd00::1/128"), r#"{"ip_address":"fd00::1"}"#);
    }
}

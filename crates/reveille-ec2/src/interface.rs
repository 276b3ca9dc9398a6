//! EC2's network interface as the model's port.
//!
//! Groups are bound to interfaces, as Neutron's are to ports. EC2 has no address pairs: an interface whose source/destination
//! check is on passes its own addresses (and prefixes delegated to it), one whose check is off passes everything, which is said
//! as the pairs `0.0.0.0/0` and `::/0`.
//!
//! **Revision.** EC2 counts no revisions and checks none. A digest of all that a change here replaces takes their place: the
//! groups and the check. Each change of an interface reads it again just before, and does nothing when the digest differs.
//! Between that read and the write, a moment remains in which a change by another client is lost; EC2 offers nothing against it.

use std::collections::BTreeSet;
use std::net::IpAddr;

use aws_lc_rs::digest::{SHA256, digest};
use ipnet::IpNet;
use reveille_core::model::id::{GroupId, InstanceId, NetworkId, PortId};
use reveille_core::model::instance::{Port, PortStatus};
use serde::Deserialize;

use crate::reply::{Set, filled, instance_id};
use reveille_core::model::intern::Texts;

/// `DescribeNetworkInterfaces`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Interfaces {
    pub(crate) network_interface_set: Set<WireInterface>,
    pub(crate) next_token: Option<String>,
}

/// One interface, of its own list or within an instance.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WireInterface {
    pub(crate) network_interface_id: String,
    subnet_id: Option<String>,
    status: Option<String>,
    pub(crate) source_dest_check: Option<bool>,
    description: Option<String>,
    #[serde(default)]
    group_set: Set<GroupOf>,
    pub(crate) attachment: Option<Attachment>,
    private_ip_address: Option<String>,
    #[serde(default)]
    private_ip_addresses_set: Set<Private>,
    #[serde(default)]
    ipv6_addresses_set: Set<V6>,
    #[serde(default)]
    ipv4_prefix_set: Set<Prefix4>,
    #[serde(default)]
    ipv6_prefix_set: Set<Prefix6>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Attachment {
    instance_id: Option<String>,
    status: Option<String>,
    pub(crate) attach_time: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct GroupOf {
    group_id: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Private {
    private_ip_address: Option<String>,
    association: Option<Association>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Association {
    public_ip: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct V6 {
    ipv6_address: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Prefix4 {
    ipv4_prefix: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Prefix6 {
    ipv6_prefix: String,
}

impl WireInterface {
    /// The instance that has the interface; none where it is not attached, or attached to something that is no instance.
    pub(crate) fn instance(&self) -> Option<InstanceId> {
        let id = self.attachment.as_ref()?.instance_id.as_deref()?;
        (!id.trim().is_empty()).then(|| instance_id(id))
    }

    /// Its own addresses: where packets for it arrive.
    pub(crate) fn addresses(&self) -> BTreeSet<IpAddr> {
        let private =
            self.private_ip_addresses_set.items.iter().filter_map(|one| one.private_ip_address.as_deref());
        let texts = self.private_ip_address.as_deref().into_iter().chain(private);
        let v6 = self.ipv6_addresses_set.items.iter().map(|one| one.ipv6_address.as_str());
        texts.chain(v6).filter_map(|text| text.trim().parse().ok()).collect()
    }

    /// Where packets for it are best sent: its first address of each family.
    pub(crate) fn first_addresses(&self) -> (Option<IpAddr>, Option<IpAddr>) {
        let own = self.private_ip_address.as_deref().and_then(|text| text.trim().parse().ok());
        let all = self.addresses();
        let v4 = own.or_else(|| all.iter().copied().find(IpAddr::is_ipv4));
        let v6 = self.ipv6_addresses_set.items.iter().find_map(|one| one.ipv6_address.trim().parse().ok());
        (v4, v6)
    }

    /// Those, and the public ones that are mapped to them.
    pub(crate) fn all_addresses(&self) -> BTreeSet<IpAddr> {
        let mapped = self.private_ip_addresses_set.items.iter().filter_map(|one| one.association.as_ref());
        let public = mapped.filter_map(|one| one.public_ip.as_deref()?.trim().parse().ok());
        self.addresses().into_iter().chain(public).collect()
    }

    /// Its groups, sorted.
    pub(crate) fn groups(&self) -> BTreeSet<GroupId> {
        self.group_set.items.iter().map(|group| GroupId::from(group.group_id.trim())).collect()
    }

    /// See the module's words on revisions. 53 bits, so that whatever reads numbers as doubles reads this one whole.
    pub(crate) fn revision(&self) -> u64 {
        let mut text = format!("check {}", !self.passes_everything());
        for group in self.groups() {
            text.push(' ');
            text.push_str(group.as_str());
        }
        let sum = digest(&SHA256, text.as_bytes());
        let bytes = sum.as_ref().iter().take(8);
        bytes.fold(0_u64, |number, byte| number << 8 | u64::from(*byte)) >> 11
    }

    pub(crate) fn passes_everything(&self) -> bool {
        self.source_dest_check == Some(false)
    }

    /// Amazon's VPC CNI made it, for pods: their groups are its business, and may be other ones on purpose (amazon-vpc-cni-k8s:
    /// `eniDescriptionPrefix`; EKS, "Deploy Pods in alternate subnets with custom networking").
    fn is_of_pods(&self) -> bool {
        self.description.as_deref().is_some_and(|text| text.starts_with("aws-K8S-"))
    }

    /// Turns it into the model's words.
    pub(crate) fn to_port(&self, texts: &mut Texts) -> Port {
        let mut pairs: BTreeSet<IpNet> = BTreeSet::new();
        pairs.extend(
            self.ipv4_prefix_set.items.iter().filter_map(|one| one.ipv4_prefix.parse::<IpNet>().ok()),
        );
        pairs.extend(
            self.ipv6_prefix_set.items.iter().filter_map(|one| one.ipv6_prefix.parse::<IpNet>().ok()),
        );
        if self.passes_everything() {
            pairs.extend(everything());
        }
        let network = filled(self.subnet_id.clone()).unwrap_or_default();
        Port {
            id: PortId::from(self.network_interface_id.as_str()),
            network: NetworkId::new(texts.get(&network)),
            addresses: self.addresses().into_iter().collect(),
            groups: self.groups().into_iter().map(|group| GroupId::new(texts.get(group.as_str()))).collect(),
            pairs: pairs.into_iter().collect(),
            security: !self.is_of_pods(),
            status: self.port_status(),
            revision: self.revision(),
        }
    }

    fn port_status(&self) -> PortStatus {
        let attachment = self.attachment.as_ref().and_then(|attachment| attachment.status.as_deref());
        match (self.status.as_deref(), attachment) {
            (_, Some("attaching" | "detaching" | "detached")) => PortStatus::Down,
            (Some("in-use"), _) | (_, Some("attached")) => PortStatus::Active,
            (Some("attaching" | "detaching" | "available" | "pending"), _) => PortStatus::Down,
            _ => PortStatus::Unknown,
        }
    }
}

/// What an interface passes whose check is off.
pub(crate) fn everything() -> [IpNet; 2] {
    [IpNet::V4(ipnet::Ipv4Net::default()), IpNet::V6(ipnet::Ipv6Net::default())]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(inner: &str) -> WireInterface {
        quick_xml::de::from_str(&format!(
            "<item><networkInterfaceId>eni-1</networkInterfaceId>{inner}</item>"
        ))
        .unwrap()
    }

    fn with(check: bool, groups: &[&str]) -> WireInterface {
        let groups: String =
            groups.iter().map(|id| format!("<item><groupId>{id}</groupId></item>")).collect();
        read(&format!("<sourceDestCheck>{check}</sourceDestCheck><groupSet>{groups}</groupSet>"))
    }

    #[test]
    fn revision_differs_exactly_when_a_write_would_undo_a_change() {
        let base = with(true, &["sg-1", "sg-2"]).revision();
        assert_eq!(with(true, &["sg-2", "sg-1"]).revision(), base, "the order of the groups does not count");
        for other in [with(false, &["sg-1", "sg-2"]), with(true, &["sg-1"]), with(true, &["sg-1", "sg-3"])] {
            assert_ne!(other.revision(), base);
        }
        assert!(base < 1 << 53);
    }

    #[test]
    fn interface_passes_all_addresses_unless_checked_by_prefixes() {
        let mut texts = Texts::default();
        let prefix = "<sourceDestCheck>true</sourceDestCheck><ipv4PrefixSet><item><ipv4Prefix>10.9.0.0/28</ipv4Prefix>\
            </item></ipv4PrefixSet>";
        assert_eq!(*read(prefix).to_port(&mut texts).pairs, ["10.9.0.0/28".parse::<IpNet>().unwrap()]);
        assert_eq!(*with(false, &[]).to_port(&mut texts).pairs, everything());
    }

    #[test]
    fn interface_of_the_pod_network_has_groups_of_its_own() {
        let mut texts = Texts::default();
        let mut security = |description: &str| {
            read(&format!("<description>{description}</description>")).to_port(&mut texts).security
        };
        assert!(!security("aws-K8S-i-0123456789abcdef0"), "made by the VPC CNI");
        assert!(security("") && security("Primary network interface"));
    }

    #[test]
    fn public_addresses_are_the_instances_and_not_the_interfaces() {
        let wire = read(
            "<privateIpAddressesSet><item><privateIpAddress>10.0.0.5</privateIpAddress><association>\
            <publicIp>3.3.3.3</publicIp></association></item></privateIpAddressesSet><ipv6AddressesSet><item>\
            <ipv6Address>fd00::5</ipv6Address></item></ipv6AddressesSet>",
        );
        let text = |set: BTreeSet<IpAddr>| set.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(text(wire.addresses()), ["10.0.0.5", "fd00::5"]);
        assert_eq!(text(wire.all_addresses()), ["3.3.3.3", "10.0.0.5", "fd00::5"]);
    }
}

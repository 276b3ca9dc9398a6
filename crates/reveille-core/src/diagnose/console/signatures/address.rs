//! Link and address: the network before anybody is asked for anything.

use crate::model::cause::Cause;
use crate::model::incident::Confidence;

use super::{BASE, Mark, Part, Reboot, Signature};

/// What shows that an interface works after all.
const HAS_NETWORK: &[Mark] = &[Mark::NewBoot, Mark::Addressed, Mark::MetadataAnswered, Mark::ApiAnswered];

const ADDRESS_BASE: Signature = Signature {
    cause: Cause::NoNetworkAtBoot,
    part: Part::Address,
    unanswered: true,
    taken_back_by: HAS_NETWORK,
    reboot: Reboot::Yes,
    ..BASE
};

/// No link, no lease.
pub(super) static ADDRESS: &[Signature] = &[
    Signature {
        id: "dhcp-no-offer",
        all: &[&[
            "no dhcpoffers received",
            "no working leases in persistent database",
            "no lease, failing",
            "no lease, forking to background",
            "ip-config: no response after",
        ]],
        source: "dhclient, udhcpc, ipconfig",
        hits: &[
            "dhclient[611]: No DHCPOFFERS received.",
            "No working leases in persistent database - sleeping.",
            "udhcpc: no lease, failing",
            "IP-Config: no response after 180 secs - giving up",
        ],
        misses: &[
            "udhcpc: lease of 10.0.4.17 obtained, lease time 86400",
            "dhclient[611]: DHCPOFFER of 10.0.4.17 from 10.0.4.2",
        ],
        ..ADDRESS_BASE
    },
    Signature {
        id: "dhcp-timeout",
        all: &[
            &[
                "dhcp4 (",
                "dhcpv4 request",
                "dhcp for interface",
                "dhcpv4 state changed",
                "ip configuration",
                "determining ip information",
            ],
            &["timed out", "-> timeout", " failed", "could not be reserved"],
        ],
        none: &["dhcp6", "will retry"],
        source: "NetworkManager, dracut, ifup",
        hits: &[
            "NetworkManager[801]: <warn>  [1700000000.1] dhcp4 (eth0): request timed out",
            "NetworkManager[410]: <info>  (eth1): DHCPv4 state changed unknown -> timeout",
            "dracut-initqueue[431]: Warning: dhcp for interface eth0 failed",
            "Determining IP information for eth0... failed.",
        ],
        misses: &[
            "NetworkManager[801]: <info>  dhcp4 (eth0): activation: beginning transaction (timeout in 45 seconds)",
            "dracut-initqueue[765]: Starting dhcp for interface ens1f1",
            "NetworkManager[801]: <warn>  dhcp6 (eth0): request timed out",
        ],
        ..ADDRESS_BASE
    },
    Signature {
        id: "dhcp-asks-in-vain",
        all: &[&["dhcpdiscover on ", "udhcpc: sending discover", "udhcpc: broadcasting discover"]],
        at_least: 4,
        source: "dhclient, udhcpc",
        hits: &[
            "dhclient[611]: DHCPDISCOVER on ens3 to 255.255.255.255 port 67 interval 7",
            "udhcpc: sending discover",
        ],
        misses: &["dhclient[611]: DHCPREQUEST for 10.0.4.17 on ens3 to 255.255.255.255 port 67"],
        ..ADDRESS_BASE
    },
    Signature {
        id: "no-link",
        all: &[&["no link present", "no link detected", "no carrier", "link is not ready to be used"]],
        none: &["cali", "veth", "docker", "cni", "lxc"],
        source: "ifup, dracut, NetworkManager",
        hits: &[
            "Determining IP information for eth0... failed; no link present.  Check cable?",
            "dhcpcd[388]: eth0: no carrier",
        ],
        misses: &[
            "[    3.1] IPv6: ADDRCONF(NETDEV_UP): eth0: link is not ready",
            "NetworkManager[801]: <info> device (cali0): no carrier",
        ],
        ..ADDRESS_BASE
    },
    Signature {
        id: "network-wait-timeout",
        confidence: Confidence::Possible,
        all: &[
            &[
                "networkd-wait-online",
                "wait for network to be configured",
                "network manager wait online",
                "networkmanager-wait-online",
                "unable to obtain a dhcp lease",
                "no dhcp lease",
            ],
            &[
                "timeout occurred",
                "event loop failed",
                "failed to start",
                "failed with result",
                "[failed]",
                "unable to obtain",
                "no dhcp lease",
            ],
        ],
        // A second interface that nothing configures times out just so on machines that are well.
        taken_back_by: &[
            Mark::NewBoot,
            Mark::Addressed,
            Mark::MetadataAnswered,
            Mark::ApiAnswered,
            Mark::CloudInitDone,
        ],
        source: "systemd-networkd, NetworkManager, cloud-init",
        hits: &[
            "systemd-networkd-wait-online[417]: Timeout occurred while waiting for network connectivity.",
            "[FAILED] Failed to start Wait for Network to be Configured.",
            "cloud-init[512]: dhcp.py[WARNING]: Unable to obtain a DHCP lease on ens3",
        ],
        misses: &[
            "         Starting Wait for Network to be Configured...",
            "[ ***  ] A start job is running for Wait for Network to be Configured (31s / no limit)",
        ],
        ..ADDRESS_BASE
    },
    Signature {
        id: "interface-without-address",
        confidence: Confidence::Possible,
        all: &[&["ci-info:"], &["| true | . | . |", "| false | . | . |"]],
        none: &["| lo |", "| lo: |", "docker", "sit0"],
        source: "cloud-init",
        hits: &["cloud-init[667]: ci-info: | eth0:  | True |     .     |     .     | fa:16:3e:00:00:01 |"],
        misses: &[
            "ci-info: |  ens3  | True | 10.0.4.17 | 255.255.255.0 | global | fa:16:3e:00:00:01 |",
            "ci-info: |   lo   | True |     .     |     .     | . |",
        ],
        ..ADDRESS_BASE
    },
];

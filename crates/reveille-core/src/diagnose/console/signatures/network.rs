//! Addresses, the metadata service, names, and the way to the API server.

use crate::model::cause::Cause;
use crate::model::incident::Confidence;

use super::{BASE, METADATA, Mark, NO_ANSWER, ONCE_ONLY, OUTSIDE, Part, Reboot, Signature};

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

const METADATA_BASE: Signature = Signature {
    cause: Cause::MetadataUnavailable,
    part: Part::FirstBoot,
    taken_back_by: &[Mark::NewBoot, Mark::MetadataAnswered, Mark::IgnitionDone, Mark::CloudInitDone],
    ..BASE
};

/// First boot asks for its configuration.
pub(super) static METADATA_SERVICE: &[Signature] = &[
    Signature {
        id: "metadata-network-unreachable",
        cause: Cause::NoNetworkAtBoot,
        unanswered: true,
        all: &[METADATA, &["network is unreachable", "[errno 101]", "error(101,", "os(101)"]],
        source: "Ignition, Afterburn, cloud-init, curl",
        hits: &[
            "ignition[512]: GET error: Get \"http://169.254.169.254/openstack/latest/user_data\": dial tcp 169.254.169.254:80: connect: network is unreachable",
            "url_helper.py[WARNING]: Calling 'http://169.254.169.254/openstack' failed [3/120s]: request error [[Errno 101] Network is unreachable]",
        ],
        misses: &[
            "chronyd[601]: 10.9.9.9: network is unreachable",
            "ignition[512]: GET http://169.254.169.254/openstack/latest/user_data: attempt #2",
        ],
        ..METADATA_BASE
    },
    Signature {
        id: "metadata-no-answer",
        unanswered: true,
        all: &[METADATA, NO_ANSWER],
        none: &["network is unreachable", "[errno 101]"],
        source: "Ignition, Afterburn, cloud-init, curl",
        hits: &[
            "ignition[512]: GET error: Get \"http://169.254.169.254/openstack/latest/user_data\": dial tcp 169.254.169.254:80: i/o timeout",
            "cloud-init[861]: url_helper.py[WARNING]: Calling 'http://169.254.169.254/2009-04-04/meta-data/instance-id' failed [2/120s]: request error [('Connection aborted.', error(113, 'No route to host'))]",
            "curl: (28) Connection to 169.254.169.254 port 80 timed out",
        ],
        misses: &[
            "Get \"https://10.0.0.9:6443/api/v1/nodes\": dial tcp 10.0.0.9:6443: i/o timeout",
            "cloud-init[861]: Calling 'http://169.254.169.254/openstack' (timeout=10)",
        ],
        ..METADATA_BASE
    },
    Signature {
        id: "metadata-refused",
        all: &[METADATA, &["connection refused", "[errno 111]", "error(111,"]],
        source: "Ignition, Afterburn, cloud-init, curl",
        hits: &[
            "coreos-metadata[849]: WARN failed to fetch http://169.254.169.254/latest/meta-data/hostname: connection refused",
        ],
        misses: &["dial tcp 127.0.0.1:10248: connect: connection refused"],
        ..METADATA_BASE
    },
    Signature {
        id: "metadata-bad-status",
        all: &[
            METADATA,
            &[
                "bad status code [4",
                "bad status code [5",
                "http error 4",
                "http error 5",
                "client error: 4",
                "server error: 5",
                "status client error (4",
                "status server error (5",
                "returned error: 4",
                "returned error: 5",
                "http/1.1 5",
            ],
        ],
        // Keys that an instance need not have.
        none: &["public-keys", "public-ipv4", "vendor_data", "vendor-data"],
        source: "cloud-init, Afterburn, curl",
        hits: &[
            "url_helper.py[WARNING]: Calling 'http://169.254.169.254/2009-04-04/meta-data/instance-id' failed [4/120s]: bad status code [500]",
            "afterburn[701]: http://169.254.169.254/latest/meta-data/instance-id: HTTP status server error (503 Service Unavailable)",
        ],
        misses: &[
            "coreos-metadata[849]: http://169.254.169.254/latest/meta-data/public-keys: HTTP status client error (404 Not Found)",
            "url_helper.py[WARNING]: Calling 'http://10.0.0.7/config' failed [4/120s]: bad status code [500]",
        ],
        ..METADATA_BASE
    },
    Signature {
        id: "ignition-bad-answer",
        all: &[
            &["ignition["],
            &[
                "get result: internal server error",
                "get result: service unavailable",
                "get result: bad gateway",
                "get result: bad request",
                "get result: gateway timeout",
                "get result: forbidden",
                "get result: unauthorized",
            ],
        ],
        source: "Ignition",
        hits: &["[   21.1] ignition[512]: GET result: Internal Server Error"],
        misses: &[
            "[   21.1] ignition[512]: GET result: OK",
            "[   21.1] ignition[512]: GET result: Not Found",
        ],
        ..METADATA_BASE
    },
    Signature {
        id: "no-datasource",
        all: &[&[
            "giving up on md from",
            "no active metadata service found",
            "no instance datasource found",
            "used fallback datasource",
            "datasource datasourcenone",
            "datasource none",
        ]],
        taken_back_by: &[Mark::NewBoot, Mark::CloudInitDone],
        source: "cloud-init",
        hits: &[
            "DataSourceEc2.py[CRITICAL]: Giving up on md from ['http://169.254.169.254/2009-04-04/meta-data/instance-id'] after 126 seconds",
            "cloud-init[861]: Cloud-init v. 23.4 finished at Mon, 05 Feb 2024. Datasource DataSourceNone.  Up 141.02 seconds",
            "cc_final_message.py[WARNING]: Used fallback datasource",
        ],
        misses: &[
            "cloud-init[861]: Cloud-init v. 23.4 finished at Mon, 05 Feb 2024. Datasource DataSourceOpenStackLocal.  Up 21 seconds",
        ],
        ..METADATA_BASE
    },
    Signature {
        // Ignition then finishes "successfully", with nothing to do: only a running kubelet says otherwise.
        id: "ignition-went-on-without-config",
        confidence: Confidence::Sure,
        all: &[&["neither config drive nor metadata service were available", "continuing without a config"]],
        taken_back_by: &[Mark::KubeletStarted],
        reboot: ONCE_ONLY,
        source: "Ignition",
        hits: &[
            "[   67.2] ignition[498]: neither config drive nor metadata service were available in time. Continuing without a config...",
        ],
        misses: &[
            "ignition[498]: no config at \"/usr/lib/ignition/user.ign\"",
            "ignition[498]: no config URL provided",
        ],
        ..METADATA_BASE
    },
];

/// What shows that the API server was reached.
const REACHED: &[Mark] = &[Mark::NewBoot, Mark::ApiAnswered];
/// Words that only a conversation with an API server has.
const API: &[&str] = &[
    ":6443",
    ":9345",
    "/api/v1/",
    "/apis/",
    "cluster-info",
    "to the apiserver",
    "identity of the api server",
];

/// Names that do not resolve, servers that do not answer.
pub(super) static NAMES_AND_PATHS: &[Signature] = &[
    Signature {
        id: "name-not-resolved",
        cause: Cause::DnsFailing,
        unanswered: true,
        all: &[&[
            "no such host",
            "temporary failure in name resolution",
            "temporary failure resolving",
            "could not resolve host",
            "name or service not known",
            "no servers could be reached",
            "server misbehaving",
            "3(nxdomain)",
        ]],
        // Time and log daemons ask before there is a network; sudo and kubeadm only warn about the own name.
        none: &[
            "timesyncd",
            "chronyd",
            "ntpd",
            "ntpdate",
            "unable to resolve host",
            "rsyslogd",
            "[warning",
            "warning: hostname",
        ],
        taken_back_by: &[Mark::NewBoot, Mark::Addressed, Mark::ApiAnswered],
        source: "Go, curl, apt, host",
        hits: &[
            "error: Get \"https://api.prod.example:6443/version\": dial tcp: lookup api.prod.example on 10.0.4.2:53: no such host",
            "curl: (6) Could not resolve host: artifacts.example",
            "host[733]: ;; connection timed out; no servers could be reached",
            "Host registry.example not found: 3(NXDOMAIN)",
        ],
        misses: &[
            "systemd-timesyncd[399]: Failed to resolve \"ntp.example\": Temporary failure in name resolution",
            "sudo: unable to resolve host node-7xk2p: Name or service not known",
            "[WARNING Hostname]: hostname \"node-7xk2p\": lookup node-7xk2p on 10.0.4.2:53: no such host",
        ],
        ..BASE
    },
    Signature {
        id: "resolver-silent",
        cause: Cause::DnsFailing,
        unanswered: true,
        all: &[&["lookup "], &[":53: "], &["i/o timeout", "connection refused", "no route to host"]],
        taken_back_by: &[Mark::NewBoot, Mark::Addressed, Mark::ApiAnswered],
        source: "Go",
        hits: &[
            "dial tcp: lookup api.prod.example on 10.0.4.2:53: read udp 10.0.4.17:41111->10.0.4.2:53: i/o timeout",
        ],
        misses: &["dial tcp 10.0.4.9:6443: i/o timeout"],
        ..BASE
    },
    Signature {
        id: "endpoint-is-loopback",
        cause: Cause::EndpointWrong,
        all: &[
            &["127.0.0.1:6443", "127.0.1.1:6443", "[::1]:6443", "10.0.2.15:6443"],
            &["connection refused", "i/o timeout"],
            &["dial tcp"],
        ],
        taken_back_by: REACHED,
        reboot: OUTSIDE,
        source: "kubeadm, kubelet",
        hits: &[
            "couldn't validate the identity of the API Server: Get \"https://api.prod.example:6443/api/v1\": dial tcp 127.0.0.1:6443: connect: connection refused",
        ],
        misses: &[
            "dial tcp 127.0.0.1:10248: connect: connection refused",
            "dial tcp 10.0.4.9:6443: connect: connection refused",
        ],
        ..BASE
    },
    Signature {
        id: "apiserver-no-answer",
        cause: Cause::ApiUnreachable,
        unanswered: true,
        all: &[API, NO_ANSWER],
        none: &["169.254.169.254", "127.0.0.1:", "127.0.1.1:", "[::1]:", ":53: ", "lookup "],
        taken_back_by: REACHED,
        reboot: OUTSIDE,
        source: "kubeadm, kubelet, rke2, k3s",
        hits: &[
            "couldn't validate the identity of the API Server: Get \"https://10.0.4.9:6443/api/v1/namespaces/kube-public/configmaps/cluster-info?timeout=10s\": dial tcp 10.0.4.9:6443: i/o timeout",
            "kubelet[1411]: E0101 Failed to ensure lease exists: Get \"https://10.0.4.9:6443/apis/coordination.k8s.io/v1\": dial tcp 10.0.4.9:6443: connect: no route to host",
            "Get \"https://10.0.4.9:6443/version\": net/http: TLS handshake timeout",
        ],
        misses: &[
            "Post http://10.10.0.3:5000/v3/auth/tokens: dial tcp 10.10.0.3:5000: i/o timeout",
            "kubelet[1411]: Error getting node: node \"node-7xk2p\" not found",
            "dial tcp: lookup api.prod.example on 10.0.4.2:53: i/o timeout",
        ],
        ..BASE
    },
    Signature {
        id: "apiserver-refuses-connection",
        cause: Cause::ApiUnreachable,
        all: &[API, &["connection refused", "connection reset by peer"]],
        none: &["127.0.0.1:", "127.0.1.1:", "[::1]:", "localhost:", ":53: "],
        taken_back_by: REACHED,
        reboot: OUTSIDE,
        source: "kubeadm, kubelet, rke2, k3s",
        hits: &[
            "kubelet[1411]: Unable to register node with API server: Post \"https://10.0.4.9:6443/api/v1/nodes\": dial tcp 10.0.4.9:6443: connect: connection refused",
        ],
        misses: &[
            "Get \"http://localhost:10248/healthz\": dial tcp 127.0.0.1:10248: connect: connection refused",
            "dial unix /run/containerd/containerd.sock: connect: connection refused",
        ],
        ..BASE
    },
    Signature {
        id: "no-way-out",
        cause: Cause::NoEgress,
        confidence: Confidence::Possible,
        unanswered: true,
        all: &[
            &[
                "failed to pull image",
                "pulling image",
                "failed to get sandbox image",
                "failed to fetch http",
                "curl: (28)",
                "curl: (7)",
                "wget:",
            ],
            NO_ANSWER,
        ],
        none: &["169.254.169.254", ":6443", "lookup ", "dial unix"],
        taken_back_by: REACHED,
        reboot: OUTSIDE,
        source: "containerd, apt, curl",
        hits: &[
            "failed to pull image \"registry.example/pause:3.9\": dial tcp 192.0.2.80:443: i/o timeout",
            "curl: (28) Failed to connect to artifacts.example port 443: Connection timed out",
        ],
        misses: &[
            "curl: (28) Connection to 169.254.169.254 port 80 timed out",
            "curl: (22) The requested URL returned error: 404",
        ],
        ..BASE
    },
];

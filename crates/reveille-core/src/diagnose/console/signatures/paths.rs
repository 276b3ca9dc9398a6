//! Names that do not resolve, and servers that do not answer.

use crate::model::cause::Cause;

use super::{BASE, Mark, NO_ANSWER, OUTSIDE, Signature};

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
    "failed to connect to proxy",
    "/v3/connect",
    "identity of the api server",
];

/// Before trust: without these nothing is asked.
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
            "k3s[811]: level=error msg=\"Failed to connect to proxy\" error=\"dial tcp 10.0.4.9:443: connect: connection timed out\"",
            "k3s[811]: level=error msg=\"Failed to connect to proxy\" error=\"dial tcp 10.0.4.9:443: connect: connection timed out\"",
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

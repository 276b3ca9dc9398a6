//! The known failures of Rancher's nodes, each by the line that it leaves behind, from host prerequisites to what comes
//! after joining.

use reveille_diagnose::scan::Scanner;
use reveille_diagnose::{Catalogue, Reader, judge};

/// What failed, what is left behind, and the cause.
const FAILURES: [(&str, &str, &str); 50] = [
    (
        "docker absent",
        "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?",
        "container-runtime-down",
    ),
    (
        "unsupported docker",
        "Unsupported Docker version found [27.1] on host [10.0.0.4], supported versions are [20.10.x]",
        "version-skew",
    ),
    ("flag missing", "ERROR: -- --token is a required option", "bootstrap-config-invalid"),
    (
        "name does not resolve",
        "ERROR: https://r.example/ping is not accessible (Could not resolve host: r.example)",
        "dns-resolution-failure",
    ),
    (
        "server unreachable",
        "ERROR: https://r.example/ping is not accessible (Failed to connect to r.example port 443: Connection refused)",
        "apiserver-unreachable",
    ),
    (
        "proxy in the way",
        "curl: (56) Received HTTP code 407 from proxy after CONNECT",
        "proxy-intercepts-traffic",
    ),
    (
        "balancer answers",
        "ERROR: https://r.example/ping is not accessible (The requested URL returned error: 503)",
        "proxy-intercepts-traffic",
    ),
    (
        "checksum differs",
        "ERROR: Configured cacerts checksum (aa) does not match given --ca-checksum (bb)",
        "ca-hash-mismatch",
    ),
    (
        "checksum without CA",
        "ERROR: The environment variable CATTLE_CA_CHECKSUM is set but there is no CA certificate configured at https://r.example/v3/settings/cacerts",
        "ca-hash-mismatch",
    ),
    (
        "cacerts is no certificate",
        "ERROR: Value from https://r.example/v3/settings/cacerts does not look like an x509 certificate (unable to load certificate)",
        "ca-hash-mismatch",
    ),
    (
        "serverca missing",
        "level=error msg=\"open /etc/kubernetes/ssl/certs/serverca: no such file or directory\"",
        "kubelet-credentials-missing",
    ),
    (
        "clock",
        "FATAL: Server certificate is not valid, please check if the host has the correct time configured and if the server certificate has a notAfter date",
        "clock-skew",
    ),
    (
        "chain",
        "level=fatal msg=\"Certificate chain is not complete, please check if all needed intermediate certificates are included\"",
        "ca-untrusted",
    ),
    (
        "token",
        "level=error msg=\"Failed to connect to proxy. Response status: 400 - 400 Bad Request. Response body: cluster not found\" error=\"websocket: bad handshake\"",
        "bootstrap-token-invalid",
    ),
    (
        "upgrade blocked",
        "level=error msg=\"Failed to connect to proxy. Empty dialer response\" error=\"websocket: bad handshake\"",
        "proxy-intercepts-traffic",
    ),
    (
        "tunnel flaps",
        "level=error msg=\"Remotedialer proxy error\" error=\"websocket: close 1006 (abnormal closure): unexpected EOF\"",
        "proxy-intercepts-traffic",
    ),
    ("disconnected", "Cluster agent is not connected", "rancher-agent-disconnected"),
    (
        "record gone",
        "Response body: nodes.management.cattle.io \"c-x/m-y\" not found",
        "rancher-node-record-missing",
    ),
    ("duplicate host name", "Cluster can't have duplicate node: web-1", "duplicate-node-name"),
    ("duplicate address", "Cluster can't have duplicate node: 10.0.2.15", "duplicate-node-name"),
    (
        "invalid host name",
        "Hostname_override [Web_1] for host (n) is not valid: [a DNS-1123 subdomain must consist of lower case alphanumeric characters]",
        "bootstrap-config-invalid",
    ),
    (
        "write conflict",
        "Response body: Operation cannot be fulfilled on nodes.management.cattle.io \"m-1\": the object has been modified",
        "rancher-record-contended",
    ),
    (
        "dialer",
        "Failed to set up SSH tunneling for host [10.0.0.4]: Can't retrieve Docker Info: can not build dialer to [c-x:m-y]",
        "rancher-agent-disconnected",
    ),
    (
        "eternal wait",
        "level=info msg=\"Waiting for node to register. Either cluster is not ready for registering, cluster is currently provisioning, or etcd, controlplane and worker node have to be registered\"\nlevel=info msg=\"Waiting for node to register. Either cluster is not ready for registering, cluster is currently provisioning, or etcd, controlplane and worker node have to be registered\"",
        "rancher-roles-incomplete",
    ),
    (
        "missing role",
        "waiting for at least one control plane, etcd, and worker node to be registered",
        "rancher-roles-incomplete",
    ),
    (
        "ports closed",
        "[network] Host [10.0.0.4] is not able to connect to the following ports: [10.0.0.5:2379, 10.0.0.5:2380]",
        "node-ports-closed",
    ),
    ("port in use", "Bind for 0.0.0.0:6443 failed: port is already allocated", "port-in-use"),
    ("leftovers", "member 8e9e05c52164694d has already been bootstrapped", "leftover-state"),
    (
        "etcd unhealthy",
        "[etcd] Failed to bring up Etcd Plane: etcd cluster is unhealthy: hosts [10.0.0.4] failed to report healthy",
        "etcd-member-join-blocked",
    ),
    (
        "control plane unhealthy",
        "[controlPlane] Failed to bring up Control Plane: [Failed to verify healthcheck: Failed to check https://localhost:6443/healthz for service [kube-apiserver]]",
        "apiserver-unreachable",
    ),
    (
        "worker plane unhealthy",
        "[workerPlane] Failed to bring up Worker Plane: Failed to verify healthcheck: Failed to check http://localhost:10248/healthz for service [kubelet]",
        "kubelet-silent",
    ),
    (
        "cgroup driver",
        "misconfiguration: kubelet cgroup driver: \"cgroupfs\" is different from docker cgroup driver: \"systemd\"",
        "cgroup-driver-mismatch",
    ),
    (
        "shared mount",
        "Error response from daemon: path /var/lib/kubelet is mounted on / but it is not a shared mount",
        "mount-not-shared",
    ),
    (
        "kernel module",
        "modprobe: FATAL: Module br_netfilter not found in directory /lib/modules/5.4",
        "kernel-prereq-missing",
    ),
    (
        "stale balancer",
        "[error] 21#21: *5 connect() failed (111: Connection refused) while connecting to upstream, client: 127.0.0.1",
        "apiserver-unreachable",
    ),
    (
        "no Node object",
        "E0101 10:00:00.1 1 kubelet_node_status.go:1] Error updating node status, will retry: error getting node \"w-1\": nodes \"w-1\" not found\nE0101 10:00:10.1 1 kubelet_node_status.go:1] Error updating node status, will retry: error getting node \"w-1\": nodes \"w-1\" not found\nE0101 10:00:20.1 1 kubelet_node_status.go:1] Error updating node status, will retry: error getting node \"w-1\": nodes \"w-1\" not found",
        "node-object-deleted",
    ),
    (
        "cloud provider",
        "failed to get instance ID from cloud provider: instance not found",
        "cloud-node-name-mismatch",
    ),
    (
        "node password",
        "Node password rejected, duplicate hostname or contents of '/etc/rancher/node/password' may not match server node-passwd entry",
        "node-password-mismatch",
    ),
    (
        "images",
        "Can't pull Docker image [rancher/hyperkube:v1] for host [10.0.0.4]: toomanyrequests: You have reached your pull rate limit",
        "sandbox-image-pull-failed",
    ),
    ("disk", "etcdserver: mvcc: database space exceeded", "disk-failure"),
    (
        "certificates after a year",
        "x509: certificate has expired or is not yet valid: current time 2024-03-01T10:00:00Z is after 2024-02-01T10:00:00Z",
        "server-certificate-expired",
    ),
    (
        "not ready",
        "Ready   Unknown   Mon, 17 May 2021   NodeStatusUnknown   Kubelet stopped posting node status.",
        "apiserver-unreachable",
    ),
    (
        "node agent crashes",
        "cattle-node-agent-x7k2p   0/1   CrashLoopBackOff   12   40m",
        "rancher-agent-disconnected",
    ),
    ("cluster agent", "error: cluster agent disconnected", "rancher-agent-disconnected"),
    (
        "orphan",
        "handler.go:153] kube-aggregator: PUT \"/apis/management.cattle.io/v3/namespaces/c-x/nodes/machine-h46dc\" satisfied by nonGoRestful\nhandler.go:153] kube-aggregator: PUT \"/apis/management.cattle.io/v3/namespaces/c-x/nodes/machine-h46dc\" satisfied by nonGoRestful\nhandler.go:153] kube-aggregator: PUT \"/apis/management.cattle.io/v3/namespaces/c-x/nodes/machine-h46dc\" satisfied by nonGoRestful",
        "rancher-record-mirrored",
    ),
    (
        "ghost",
        "level=fatal msg=\"error while connecting to Kubernetes cluster: the server has asked for the client to provide credentials\"",
        "rancher-node-record-missing",
    ),
    (
        "stuck in removing",
        "metadata:\n  deletionTimestamp: \"2024-01-01T00:00:00Z\"\n  finalizers:\n  - controller.cattle.io/node-controller",
        "rancher-record-stuck-deleting",
    ),
    (
        "API overload",
        "handler.go:153] kube-aggregator: PATCH \"/apis/management.cattle.io/v3/namespaces/c-x/nodes/machine-a\" satisfied by x\nhandler.go:153] kube-aggregator: PATCH \"/apis/management.cattle.io/v3/namespaces/c-x/nodes/machine-a\" satisfied by x\nhandler.go:153] kube-aggregator: PATCH \"/apis/management.cattle.io/v3/namespaces/c-x/nodes/machine-a\" satisfied by x",
        "rancher-record-mirrored",
    ),
    (
        "replaced by its pool",
        "level=info msg=\"deleteNotReadyAfterSecs passed for m-12ab, deleting node\"",
        "instance-terminated",
    ),
    (
        "restored server",
        "level=info msg=\"[K8s] secret received was too old, requeuing\"",
        "rancher-state-rolled-back",
    ),
];

#[test]
fn each_of_rancher_s_known_failures_is_named() {
    let catalogue = Catalogue::built_in().unwrap();
    let scanner = Scanner::new(&catalogue).unwrap();
    let mut wrong = Vec::new();
    for (what, text, expected) in FAILURES {
        let mut reader = Reader::new(&scanner);
        reader.text("log", text);
        let findings = judge(&reader).findings;
        let said = findings.first().map_or("nothing", |finding| finding.cause.as_str());
        if said != expected {
            wrong.push(format!("{what}: {said} and not {expected}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

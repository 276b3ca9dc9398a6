//! The faults of the tests, one at a time: how a fault is made, and which check and cause have to name it.

use super::facts::*;
use super::reading::Reading::{self, Read};
use super::server::*;
use super::sound::{NOW_S, fresh, joined};

pub(super) fn aim(facts: &mut Facts) -> &mut Aim {
    match &mut facts.aim {
        Read(Some(aim)) => aim,
        _ => panic!("a sound machine has one"),
    }
}

pub(super) fn cert(facts: &mut Facts) -> &mut ClientCertificate {
    match &mut facts.kubelet.certificate {
        Read(Some(certificate)) => certificate,
        _ => panic!("a sound machine has one"),
    }
}

pub(super) fn node(facts: &mut Facts) -> &mut Node {
    match &mut facts.node {
        Read(Some(node)) => node,
        _ => panic!("a sound machine has one"),
    }
}

fn socket(seen: SocketSeen) -> impl Fn(&mut Facts) {
    move |facts| facts.runtime.sockets[0].seen = Read(seen.clone())
}

/// The fault's name, the healthy machine, the function that makes the fault, the check that fails, and its cause.
pub(super) type FaultFixture<'a> = (&'a str, Facts, Box<dyn Fn(&mut Facts)>, &'a str, Option<&'a str>);

fn fault<'a>(
    what: &'a str,
    sound: fn() -> Facts,
    fault: impl Fn(&mut Facts) + 'static,
    check: &'a str,
    cause: impl Into<Option<&'a str>>,
) -> FaultFixture<'a> {
    (what, sound(), Box::new(fault), check, cause.into())
}

fn server(fault: impl Fn(&mut Server) + 'static) -> impl Fn(&mut Facts) {
    move |facts| fault(&mut facts.servers[0])
}

fn of_the_way() -> Vec<FaultFixture<'static>> {
    let ip = "10.0.0.1".parse().unwrap();
    vec![
        fault("an hour behind", fresh, server(|s| s.offset_s = Read(3600)), "clock", "clock-skew"),
        fault("an hour ahead", joined, server(|s| s.offset_s = Read(-3600)), "clock", "clock-skew"),
        fault("localhost", fresh, |f| f.names.host = Read("localhost".to_owned()), "host-name", None),
        fault("no Node name", fresh, |f| f.names.host = Read("w_1".to_owned()), "host-name", None),
        fault("no route", fresh, |f| f.network.routes = Read(Vec::new()), "route", "no-network-at-boot"),
        fault(
            "no name",
            fresh,
            server(|s| s.lookup = Read(Lookup::NoSuchName("unknown".to_owned()))),
            "dns",
            "dns-resolution-failure",
        ),
        fault(
            "refused",
            fresh,
            server(move |s| s.connect = Read(Connect::Refused(ip))),
            "reach",
            "server-endpoint-wrong",
        ),
        fault(
            "refused, after it worked",
            joined,
            server(move |s| s.connect = Read(Connect::Refused(ip))),
            "reach",
            "apiserver-unreachable",
        ),
        fault(
            "silent",
            fresh,
            server(move |s| s.connect = Read(Connect::Silent(ip))),
            "reach",
            "apiserver-unreachable",
        ),
    ]
}

fn of_who_answers() -> Vec<FaultFixture<'static>> {
    vec![
        fault(
            "plain HTTP",
            fresh,
            server(|s| s.tls = Read(Tls::NotTls("HTTP/1.0 400".to_owned()))),
            "tls",
            "server-endpoint-wrong",
        ),
        fault("frozen", joined, server(|s| s.tls = Read(Tls::Silent)), "tls", "apiserver-unreachable"),
        fault("hangs", joined, server(|s| s.api = Read(Api::Silent)), "api-server", "apiserver-unreachable"),
        fault(
            "no cluster-info",
            fresh,
            server(|s| s.cluster_info = Read(ClusterInfo::Absent)),
            "cluster-info",
            "cluster-info-malformed",
        ),
        fault(
            "another pin",
            fresh,
            |f| aim(f).pins = vec!["sha256:cc".to_owned()],
            "ca-pin",
            "ca-hash-mismatch",
        ),
        fault(
            "another name",
            fresh,
            server(|s| s.verified = Read(Verified::WrongName)),
            "server-certificate",
            "apiserver-cert-san-mismatch",
        ),
        fault(
            "run out",
            joined,
            server(|s| s.verified = Read(Verified::Expired)),
            "server-certificate",
            "server-certificate-expired",
        ),
        fault(
            "not an API server",
            fresh,
            server(|s| s.api = Read(Api::Else(200, "<html>".to_owned()))),
            "api-server",
            "server-endpoint-wrong",
        ),
        fault(
            "etcd is away",
            joined,
            server(|s| s.api = Read(Api::Refuses(500, "etcd failed".to_owned()))),
            "api-server",
            "apiserver-unreachable",
        ),
        fault(
            "token refused",
            fresh,
            server(|s| s.token = Read(TokenSeen::Refused)),
            "token",
            "bootstrap-token-invalid",
        ),
    ]
}

fn of_the_machine() -> Vec<FaultFixture<'static>> {
    let taken = Holder { program: Some("socat".to_owned()), pid: Some(9), is_kubelet: false };
    let other = || Joined::To { server: "10.9.9.9:6443".to_owned(), pins: vec!["sha256:dd".to_owned()] };
    vec![
        fault("no socket", fresh, socket(SocketSeen::Absent), "runtime", "container-runtime-down"),
        fault(
            "refuses",
            joined,
            socket(SocketSeen::Refused("refused".to_owned())),
            "runtime",
            "container-runtime-down",
        ),
        fault(
            "no CRI",
            fresh,
            socket(SocketSeen::NotCri("unknown service".to_owned())),
            "runtime",
            "cri-api-unimplemented",
        ),
        fault("no forwarding", fresh, |f| f.kernel.forwards = Read(false), "kernel", "kernel-prereq-missing"),
        fault(
            "no groups",
            fresh,
            |f| f.kernel.cgroups = Read(Cgroups { version: 0, missing: Vec::new() }),
            "cgroups",
            "cgroup-unsupported",
        ),
        fault(
            "broken configuration",
            joined,
            |f| f.kubelet.config = Read(ConfigSeen::Broken("line 3".to_owned())),
            "kubelet-config",
            "kubelet-config-invalid",
        ),
        fault("swap", joined, |f| f.swap = Read(vec!["/dev/vda2".to_owned()]), "swap", "swap-enabled"),
        fault(
            "port taken",
            joined,
            move |f| f.ports[0].holder = Read(Some(taken.clone())),
            "ports",
            "port-in-use",
        ),
        fault(
            "another cluster",
            fresh,
            move |f| f.join.kubeconfig = Read(other()),
            "leftovers",
            "leftover-state",
        ),
        fault(
            "half a join",
            fresh,
            |f| f.join.kubeconfig = Read(Joined::Broken("it is empty".to_owned())),
            "leftovers",
            "leftover-state",
        ),
        fault(
            "full disk",
            joined,
            |f| f.disks[0].room = Read(Room { free_bytes: 0, size_bytes: 9, free_inodes: 1, inodes: 1 }),
            "disk",
            "disk-failure",
        ),
    ]
}

fn of_the_credentials() -> Vec<FaultFixture<'static>> {
    let pending = || Request {
        name: "csr-1".to_owned(),
        signer: "kubernetes.io/kube-apiserver-client-kubelet".to_owned(),
        state: RequestState::Pending,
    };
    vec![
        fault(
            "no certificate",
            joined,
            |f| f.kubelet.certificate = Read(None),
            "client-certificate",
            "kubelet-credentials-missing",
        ),
        fault(
            "certificate run out",
            joined,
            |f| cert(f).not_after_s = NOW_S - 1,
            "client-certificate",
            "kubelet-client-cert-expired",
        ),
        fault(
            "another name",
            joined,
            |f| f.names.told = Some("x".to_owned()),
            "client-certificate",
            "node-identity-mismatch",
        ),
        fault(
            "another authority",
            joined,
            |f| cert(f).is_of_authority = Read(false),
            "client-certificate",
            "ca-untrusted",
        ),
        fault("refused", joined, |f| cert(f).is_accepted = Read(false), "client-certificate", None),
        fault(
            "kubelet down",
            joined,
            |f| {
                f.kubelet.process = Read(None);
                f.kubelet.health = Reading::cannot_tell("nothing listens");
            },
            "kubelet",
            "kubelet-silent",
        ),
        fault(
            "a request waits",
            fresh,
            move |f| {
                f.kubelet.health = Read((200, "ok".to_owned()));
                f.requests = Read(vec![pending()]);
            },
            "certificate-request",
            "csr-not-approved",
        ),
    ]
}

fn of_the_node() -> Vec<FaultFixture<'static>> {
    let not_ready = |message: &'static str| {
        move |facts: &mut Facts| {
            let ready = &mut node(facts).conditions[0];
            (ready.status, ready.message) = ("False".to_owned(), message.to_owned());
        }
    };
    vec![
        fault("Node gone", joined, |f| f.node = Read(None), "node", "node-object-deleted"),
        fault(
            "name taken",
            joined,
            |f| {
                node(f).boot_id = "b".repeat(31) + "1";
                node(f).system_uuid = "98989898-9898-9898-9898-989898989898".to_owned();
            },
            "node",
            "duplicate-node-name",
        ),
        fault(
            "name taken before it joins",
            fresh,
            |f| {
                let other = Node { name: "w-1".to_owned(), system_uuid: "98".repeat(16), ..Node::default() };
                f.node = Read(Some(other));
            },
            "node",
            "duplicate-node-name",
        ),
        fault(
            "no cloud controller",
            joined,
            |f| {
                let taint = "node.cloudprovider.kubernetes.io/uninitialized".to_owned();
                node(f).taints.push(taint);
            },
            "cloud-taint",
            "cloud-taint-not-removed",
        ),
        fault(
            "no pod network",
            joined,
            |f| {
                if let Read(SocketSeen::Cri(cri)) = &mut f.runtime.sockets[0].seen {
                    cri.network = Some(Err("cni plugin not initialized".to_owned()));
                }
            },
            "pod-network",
            "cni-not-installed",
        ),
        fault("not Ready", joined, not_ready("PLEG is not healthy"), "ready", "node-not-ready"),
        fault(
            "not Ready for want of a network",
            joined,
            not_ready("cni plugin not initialized"),
            "ready",
            "cni-not-installed",
        ),
    ]
}

/// All faults.
pub(super) fn fault_fixtures() -> impl Iterator<Item = FaultFixture<'static>> {
    [of_the_way(), of_who_answers(), of_the_machine(), of_the_credentials(), of_the_node()]
        .into_iter()
        .flatten()
}

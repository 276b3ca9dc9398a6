//! A machine and a server without any problem, in which a test breaks one thing.

use std::net::IpAddr;

use super::facts::*;
use super::reading::Reading::{self, Read};
use super::server::*;

pub(super) const NOW_S: i64 = 1_795_357_652;
pub(super) const PIN: &str = "sha256:aa";
const DAY_S: i64 = 86_400;

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

pub(super) fn certificate(subject: &str, pin: &str) -> Certificate {
    Certificate {
        subject: subject.to_owned(),
        issuer: "CN=kubernetes".to_owned(),
        not_before_s: NOW_S - DAY_S,
        not_after_s: NOW_S + 365 * DAY_S,
        pin: Some(pin.to_owned()),
        names: vec!["api.lan".to_owned(), "10.0.0.1".to_owned()],
    }
}

fn server() -> Server {
    Server {
        endpoint: "api.lan:6443".to_owned(),
        host: "api.lan".to_owned(),
        lookup: Read(Lookup::Found(vec![address("10.0.0.1")])),
        connect: Read(Connect::Made { from: address("10.0.0.9"), to: address("10.0.0.1") }),
        tls: Read(Tls::Shown(vec![certificate("CN=kube-apiserver", "sha256:bb")])),
        authorities: Read(vec![Authority {
            certificate: certificate("CN=kubernetes", PIN),
            from: "the cluster's own word".to_owned(),
        }]),
        verified: Read(Verified::Yes),
        api: Read(Api::Is("v1.34.1".to_owned())),
        offset_s: Read(0),
        cluster_info: Read(ClusterInfo::There(Signature::Good)),
        bundle: Reading::cannot_tell("there is none"),
        token: Read(TokenSeen::Accepted),
    }
}

/// A runtime before a join: without a pod network.
fn runtime() -> Runtime {
    let cri = Cri {
        version: "containerd 2.0.1".to_owned(),
        ready: Some(Ok(())),
        network: Some(Err("cni plugin not initialized".to_owned())),
        cgroup_driver: Some("systemd".to_owned()),
    };
    Runtime {
        sockets: vec![Socket {
            path: "/run/containerd/containerd.sock".to_owned(),
            seen: Read(SocketSeen::Cri(cri)),
        }],
    }
}

/// A machine that can join.
pub(super) fn fresh() -> Facts {
    let room =
        Room { free_bytes: 50 << 30, size_bytes: 100 << 30, free_inodes: 1_000_000, inodes: 2_000_000 };
    let port = |number: u16, what: &str| Port { number, what: what.to_owned(), holder: Read(None) };
    Facts {
        now_s: NOW_S,
        aim: Read(Some(Aim {
            told_by: "the command line".to_owned(),
            is_of_machine: false,
            pins: vec![PIN.to_owned()],
            is_unpinned_on_purpose: false,
            token_id: Some("abcdef".to_owned()),
            cri_socket: None,
        })),
        supervised: None,
        is_synchronised: Read(true),
        names: Names { host: Read("w-1".to_owned()), told: None },
        network: Network {
            routes: Read(vec![Route { to: address("0.0.0.0"), prefix_bits: 0, device: "eth0".to_owned() }]),
            resolvers: Read(vec![address("10.0.0.2")]),
            asked: Vec::new(),
        },
        servers: vec![server()],
        runtime: runtime(),
        kernel: Kernel {
            forwards: Read(true),
            bridges_filter: Read(Some(true)),
            has_overlay: Read(true),
            cgroups: Read(Cgroups { version: 2, missing: Vec::new() }),
        },
        swap: Read(Vec::new()),
        ports: vec![port(10250, "the kubelet"), port(10248, "its healthz")],
        join: Join { kubeconfig: Read(Joined::Nothing), control_plane: Read(Vec::new()) },
        disks: vec![Disk { path: "/var/lib/kubelet".to_owned(), what: "nodefs", room: Read(room) }],
        memory: Read(Memory { available_bytes: 4 << 30, size_bytes: 8 << 30 }),
        announced: Read(Some(Vec::new())),
        kubelet: Kubelet {
            config: Read(ConfigSeen::Absent),
            unit: Read(Some(Unit {
                state: "activating".to_owned(),
                sub_state: "auto-restart".to_owned(),
                ..Unit::default()
            })),
            process: Read(None),
            health: Reading::cannot_tell("nothing listens at 127.0.0.1:10248"),
            certificate: Read(None),
        },
        requests: Read(Vec::new()),
        identity: Identity {
            machine_id: Read("0123456789abcdef0123456789abcdef".to_owned()),
            system_uuid: Read("12345678-9abc-def0-1122-334455667788".to_owned()),
            boot_id: Read("b0000000-0000-4000-8000-000000000001".to_owned()),
        },
        node: Reading::cannot_tell("it was not asked"),
        cni: Read(Vec::new()),
    }
}

/// A machine that has joined, and whose Node is Ready.
pub(super) fn joined() -> Facts {
    let mut facts = fresh();
    if let Read(Some(aim)) = &mut facts.aim {
        aim.is_of_machine = true;
        aim.told_by = "/etc/kubernetes/kubelet.conf".to_owned();
        aim.token_id = None;
    }
    facts.servers[0].cluster_info = Reading::cannot_tell("it was not asked for");
    facts.servers[0].token = Reading::cannot_tell("there is none");
    facts.join.kubeconfig =
        Read(Joined::To { server: "api.lan:6443".to_owned(), pins: vec![PIN.to_owned()] });
    for port in &mut facts.ports {
        port.holder =
            Read(Some(Holder { program: Some("kubelet".to_owned()), pid: Some(7), is_kubelet: true }));
    }
    facts.kubelet = Kubelet {
        config: Read(ConfigSeen::There(KubeletConfig {
            fails_on_swap: true,
            cgroup_driver: "systemd".to_owned(),
            evicts_at: Vec::new(),
        })),
        unit: Read(Some(Unit {
            state: "active".to_owned(),
            sub_state: "running".to_owned(),
            is_enabled: Some(true),
            restarts: Some(1),
            exit_code: None,
        })),
        process: Read(Some(7)),
        health: Read((200, "ok".to_owned())),
        certificate: Read(Some(ClientCertificate {
            path: "/var/lib/kubelet/pki/kubelet-client-current.pem".to_owned(),
            common_name: "system:node:w-1".to_owned(),
            not_before_s: NOW_S - DAY_S,
            not_after_s: NOW_S + 300 * DAY_S,
            is_of_authority: Read(true),
            has_key: true,
            is_accepted: Read(true),
        })),
    };
    let read = |reading: &Reading<String>| reading.read().cloned().unwrap();
    facts.node = Read(Some(Node {
        name: "w-1".to_owned(),
        machine_id: read(&facts.identity.machine_id),
        // As a hypervisor reports the UUID: the first fields in the other byte order, and without dashes.
        system_uuid: "78563412bc9af0de1122334455667788".to_uppercase(),
        boot_id: read(&facts.identity.boot_id),
        conditions: vec![Condition {
            kind: "Ready".to_owned(),
            status: "True".to_owned(),
            reason: "KubeletReady".to_owned(),
            message: "kubelet is posting ready status".to_owned(),
        }],
        ..Node::default()
    }));
    if let Read(SocketSeen::Cri(cri)) = &mut facts.runtime.sockets[0].seen {
        cri.network = Some(Ok(()));
    }
    facts.cni = Read(vec!["10-flannel.conflist".to_owned()]);
    facts
}

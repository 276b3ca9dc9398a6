//! Facts from servers in this process and from a folder with the files of a machine, and the results of the checks.

use std::fs;
use std::net::SocketAddr;
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::time::Instant;

use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use reveille_agent::checkup::facts::{ConfigSeen, Joined, SocketSeen};
use reveille_agent::checkup::{Check, Result as Came, checkup};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpSocket};

use super::*;
use crate::pem;
use crate::pin::Pin;
use crate::target::{Arguments, Endpoint};
use crate::testing::{Authority, Server};

const SECRET: &str = "0123456789abcdef";

/// A server in this process, until the test ends.
struct Answering {
    endpoint: Endpoint,
}

/// The answers of a server in this process.
#[derive(Clone)]
struct Says {
    cluster_info: String,
    /// The server accepts the token.
    is_known: bool,
    node: Option<String>,
}

impl Says {
    fn sound(authority: &Authority) -> Self {
        Self { cluster_info: cluster_info(authority, "abcdef", SECRET), is_known: true, node: None }
    }

    fn answer(&self, request: &str) -> (u16, String) {
        let status = |code: u16| (code, format!(r#"{{"kind":"Status","message":"status {code}"}}"#));
        if request.to_lowercase().contains("authorization:") && !self.is_known {
            return status(401);
        }
        let path = request.split_whitespace().nth(1).unwrap_or_default();
        match path {
            "/version" => (200, r#"{"gitVersion":"v1.34.1"}"#.to_owned()),
            "/livez" => (200, "ok".to_owned()),
            path if path.ends_with("/cluster-info") => (200, self.cluster_info.clone()),
            path if path.starts_with("/api/v1/nodes/") => {
                self.node.clone().map_or_else(|| status(404), |node| (200, node))
            }
            path if path.starts_with("/apis/certificates") => (200, r#"{"items":[]}"#.to_owned()),
            _ => status(403),
        }
    }
}

/// The cluster-info of a cluster, signed with a token as the bootstrap signer does.
fn cluster_info(authority: &Authority, id: &str, secret: &str) -> String {
    let data = STANDARD.encode(pem::certificates(&[authority.der()]));
    let text = format!(
        "clusters:\n- cluster: {{server: 'https://10.0.0.1:6443', certificate-authority-data: {data}}}\n  name: ''\n"
    );
    let header = URL_SAFE_NO_PAD.encode(format!(r#"{{"alg":"HS256","kid":"{id}"}}"#));
    let signed = format!("{header}.{}", URL_SAFE_NO_PAD.encode(&text));
    let mac = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes()), signed.as_bytes());
    let signature = format!("{header}..{}", URL_SAFE_NO_PAD.encode(mac));
    serde_json::json!({"data": {"kubeconfig": text, format!("jws-kubeconfig-{id}"): signature}}).to_string()
}

async fn listener() -> (TcpListener, Endpoint) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    (listener, Endpoint { host: "127.0.0.1".to_owned(), port })
}

async fn serve(server: Server, says: Says) -> Answering {
    let (listener, endpoint) = listener().await;
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(server.config()));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, says) = (acceptor.clone(), says.clone());
            tokio::spawn(async move {
                let Ok(mut stream) = acceptor.accept(stream).await else { return };
                let mut request = vec![0; 8192];
                let Ok(length) = stream.read(&mut request).await else { return };
                let (status, body) = says.answer(&String::from_utf8_lossy(&request[..length]));
                let date = httpdate::fmt_http_date(SystemTime::now());
                let head = format!(
                    "HTTP/1.1 {status} X\r\ndate: {date}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                    body.len()
                );
                drop(stream.write_all(format!("{head}{body}").as_bytes()).await);
                drop(stream.shutdown().await);
            });
        }
    });
    Answering { endpoint }
}

/// A server that sends plain text to each client.
async fn plain(words: &'static [u8]) -> Answering {
    let (listener, endpoint) = listener().await;
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = [0; 1024];
            drop(stream.read(&mut request).await);
            drop(stream.write_all(words).await);
        }
    });
    Answering { endpoint }
}

fn target(endpoint: &Endpoint, pins: &[Pin]) -> Target {
    let arguments = Arguments {
        words: vec![endpoint.to_string()],
        token: Some(format!("abcdef.{SECRET}").into()),
        ca_cert_hashes: pins.iter().map(ToString::to_string).collect(),
        node_name: Some("w-1".into()),
        ..Arguments::default()
    };
    Target::find(&arguments, &Root::new("/nowhere")).unwrap().unwrap()
}

async fn facts_of(target: &Target) -> Facts {
    let folder = tempfile::tempdir().unwrap();
    let probe = Probe { within: Duration::from_millis(600), ..Probe::of_folder(Root::new(folder.path())) };
    probe.facts(Ok(Some(target))).await
}

/// The checks of the way to the server and of the server's identity.
async fn checks_of(target: &Target) -> Vec<Check> {
    let checks = checkup(&facts_of(target).await);
    let of = [
        "clock",
        "dns",
        "reach",
        "tls",
        "cluster-info",
        "ca-pin",
        "server-certificate",
        "api-server",
        "token",
    ];
    checks.into_iter().filter(|check| of.contains(&check.id)).collect()
}

fn came(checks: &[Check], id: &str) -> Came {
    checks.iter().find(|check| check.id == id).unwrap().result
}

#[tokio::test]
async fn a_server_that_is_right_passes_every_check_of_the_way() {
    let authority = Authority::new("kubernetes");
    let server = serve(authority.server("127.0.0.1"), Says::sound(&authority)).await;
    let checks = checks_of(&target(&server.endpoint, &[authority.pin()])).await;
    let odd: Vec<String> =
        checks.iter().filter(|check| check.result != Came::Passed).map(ToString::to_string).collect();
    assert_eq!(odd, [""; 0]);
}

#[tokio::test]
async fn each_wrong_server_is_told_by_the_check_that_it_fails() {
    let (ours, theirs) = (Authority::new("kubernetes"), Authority::new("kubernetes"));
    let says = || Says::sound(&ours);
    let pin = [ours.pin()];
    let no_token = Says { is_known: false, cluster_info: cluster_info(&ours, "zzzzzz", SECRET), node: None };
    let other_secret = Says {
        is_known: false,
        cluster_info: cluster_info(&ours, "abcdef", "f".repeat(16).as_str()),
        node: None,
    };
    let malformed = Says { cluster_info: r#"{"data":{"kubeconfig":"clusters: ["}}"#.to_owned(), ..says() };
    // Held for the whole test, and never listening: another server could get a freed port.
    let silent = TcpSocket::new_v4().unwrap();
    silent.bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
    let gone = Endpoint { host: "127.0.0.1".to_owned(), port: silent.local_addr().unwrap().port() };
    for (server, check, cause) in [
        (Answering { endpoint: gone }, "reach", "server-endpoint-wrong"),
        (plain(b"HTTP/1.0 400 Bad Request\r\nserver: nginx\r\n\r\n").await, "tls", "server-endpoint-wrong"),
        (serve(theirs.server("127.0.0.1"), Says::sound(&theirs)).await, "ca-pin", "ca-hash-mismatch"),
        (serve(ours.server("127.0.0.1"), malformed).await, "cluster-info", "cluster-info-malformed"),
        (serve(ours.server("api.test"), says()).await, "server-certificate", "apiserver-cert-san-mismatch"),
        (
            serve(ours.server_of("127.0.0.1", 2001..2002), says()).await,
            "server-certificate",
            "server-certificate-expired",
        ),
        (serve(ours.server_of("127.0.0.1", 2101..2102), says()).await, "server-certificate", "clock-skew"),
        (serve(theirs.server("127.0.0.1"), says()).await, "server-certificate", "ca-untrusted"),
        (serve(ours.server("127.0.0.1"), no_token).await, "token", "bootstrap-token-invalid"),
        (serve(ours.server("127.0.0.1"), other_secret).await, "token", "bootstrap-token-invalid"),
    ] {
        let checks = checks_of(&target(&server.endpoint, &pin)).await;
        let failed = checks.iter().find(|check| check.result == Came::Failed);
        let failed = failed.unwrap_or_else(|| panic!("{check}: {checks:#?}"));
        assert_eq!((failed.id, failed.cause), (check, Some(cause)), "{failed:?}");
    }
}

#[tokio::test]
async fn a_server_that_says_nothing_is_given_up_and_said_to_hang() {
    let (listener, endpoint) = listener().await;
    let began = Instant::now();
    let checks = checks_of(&target(&endpoint, &[Authority::new("x").pin()])).await;
    drop(listener);
    assert_eq!(came(&checks, "reach"), Came::Passed, "the system took the connection");
    assert_eq!(came(&checks, "tls"), Came::Failed);
    assert!(began.elapsed() < Duration::from_secs(10), "each wait has its end");
}

#[tokio::test]
async fn token_is_not_shown_to_unverified_server() {
    let (ours, theirs) = (Authority::new("kubernetes"), Authority::new("kubernetes"));
    // A server that gets the token shows this by refusing it.
    let says = Says { is_known: false, cluster_info: cluster_info(&theirs, "zzzzzz", SECRET), node: None };
    let server = serve(theirs.server("127.0.0.1"), says).await;
    for pins in [&[ours.pin()][..], &[]] {
        let facts = facts_of(&target(&server.endpoint, pins)).await;
        assert_eq!(facts.servers[0].token.read(), None, "{pins:?}");
    }
}

#[tokio::test]
async fn a_node_of_that_name_is_read_with_the_token() {
    let authority = Authority::new("kubernetes");
    let node = r#"{"metadata":{"name":"w-1"},"spec":{"taints":[{"key":"ToBeDeletedByClusterAutoscaler"}]},
        "status":{"nodeInfo":{"machineID":"a","systemUUID":"b","bootID":"c"},"conditions":[{"type":"Ready","status":"True"}]}}"#;
    let says = Says { node: Some(node.to_owned()), ..Says::sound(&authority) };
    let server = serve(authority.server("127.0.0.1"), says).await;
    let facts = facts_of(&target(&server.endpoint, &[authority.pin()])).await;
    let node = facts.node.read().and_then(Option::as_ref).unwrap();
    assert_eq!((node.system_uuid.as_str(), node.conditions.len()), ("b", 1));
    assert!(node.leaving.as_deref().is_some_and(|sign| sign.contains("ToBeDeleted")), "{node:?}");
    assert_eq!(facts.requests.read().map(Vec::len), Some(0));
}

fn machine() -> (tempfile::TempDir, Root) {
    let folder = tempfile::tempdir().unwrap();
    let root = Root::new(folder.path());
    for (path, text) in [
        ("/proc/sys/kernel/hostname", "w-1\n"),
        ("/proc/sys/net/ipv4/ip_forward", "0\n"),
        ("/proc/sys/kernel/random/boot_id", "b-1\n"),
        ("/etc/machine-id", "m-1\n"),
        ("/etc/resolv.conf", "# x\nnameserver 10.0.0.2\nnameserver fe80::1%eth0\n"),
        ("/proc/filesystems", "nodev\tsysfs\nnodev\toverlay\n"),
        ("/sys/fs/cgroup/cgroup.controllers", "cpuset cpu io pids\n"),
        (
            "/proc/swaps",
            "Filename Type Size Used Priority\n/dev/zram0 partition 1 0 -2\n/dev/vda2 partition 1 0 -2\n",
        ),
        ("/proc/meminfo", "MemTotal: 2048 kB\nMemAvailable: 1024 kB\n"),
        (
            "/proc/net/tcp",
            "sl local rem st tx tr re uid to inode\n 0: 0100007F:280A 00000000:0000 0A 0:0 0:0 0 0 0 77 1\n",
        ),
        ("/proc/41/comm", "socat\n"),
        // The owner of a port is named, even a process without root's rights.
        ("/proc/41/status", "Name:\tsocat\nUid:\t1000\t1000\t1000\t1000\n"),
        ("/proc/42/comm", "kubelet\n"),
        ("/proc/42/status", "Name:\tkubelet\nUid:\t0\t0\t0\t0\n"),
        (
            "/var/lib/kubelet/config.yaml",
            "kind: KubeletConfiguration\nfailSwapOn: false\ncgroupDriver: systemd\nhealthzPort: 0\nevictionHard: {nodefs.available: 5%}\n",
        ),
        ("/etc/kubernetes/kubelet.conf", ""),
        ("/etc/kubernetes/manifests/etcd.yaml", "kind: Pod\n"),
        ("/etc/cni/net.d/10-x.conflist", "{}"),
        ("/etc/cni/net.d/readme", ""),
    ] {
        fs::create_dir_all(root.at(path).parent().unwrap()).unwrap();
        fs::write(root.at(path), text).unwrap();
    }
    fs::create_dir_all(root.at("/proc/41/fd")).unwrap();
    std::os::unix::fs::symlink("socket:[77]", root.at("/proc/41/fd/3")).unwrap();
    (folder, root)
}

#[tokio::test]
async fn a_machines_files_are_read_as_facts() {
    let (_folder, root) = machine();
    let facts = Probe::of_folder(root).facts(Ok(None)).await;
    assert_eq!(facts.names.node().as_deref(), Some("w-1"));
    assert_eq!(facts.kernel.forwards.read(), Some(&false));
    assert_eq!(facts.kernel.bridges_filter.read(), Some(&None));
    assert_eq!(facts.kernel.has_overlay.read(), Some(&true));
    let cgroups = facts.kernel.cgroups.read().unwrap();
    assert_eq!((cgroups.version, cgroups.missing.as_slice()), (2, &["memory".to_owned()][..]));
    assert_eq!(
        facts.swap.read(),
        Some(&vec!["/dev/vda2".to_owned()]),
        "what is swapped to memory does not count"
    );
    assert_eq!(facts.memory.read().map(|memory| memory.available_bytes), Some(1024 * 1024));
    assert_eq!(facts.network.resolvers.read().map(Vec::len), Some(2));
    assert_eq!(facts.kubelet.process.read(), Some(&Some(42)));
    assert_eq!(facts.ports.len(), 1, "a healthz that is switched off needs no port");
    let holder = facts.ports[0].holder.read().and_then(Option::as_ref).unwrap();
    assert_eq!((holder.program.as_deref(), holder.pid, holder.is_kubelet), (Some("socat"), Some(41), false));
    let Some(ConfigSeen::There(config)) = facts.kubelet.config.read() else { panic!("{:?}", facts.kubelet) };
    assert!(!config.fails_on_swap && config.cgroup_driver == "systemd" && config.evicts_at.len() == 1);
    assert!(matches!(facts.join.kubeconfig.read(), Some(Joined::Broken(_))));
    assert_eq!(facts.join.control_plane.read().map(Vec::len), Some(1));
    assert_eq!(facts.cni.read(), Some(&vec!["10-x.conflist".to_owned()]));
    assert_eq!(facts.identity.boot_id.read().map(String::as_str), Some("b-1"));
    assert_eq!(facts.identity.system_uuid.read(), None, "only root may read it");
}

#[tokio::test]
async fn sockets_are_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let probe = Probe { within: Duration::from_millis(300), ..Probe::of_folder(Root::new(folder.path())) };
    let at = |name: &str| folder.path().join(name);
    // A socket whose process has ended.
    drop(UnixListener::bind(at("stale.sock")).unwrap());
    let _silent = UnixListener::bind(at("silent.sock")).unwrap();
    let other = tokio::net::UnixListener::bind(at("other.sock")).unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = other.accept().await {
            drop(stream.write_all(b"SSH-2.0-x\r\n").await);
        }
    });
    let seen = async |name: &str| {
        let runtime = probe.runtime(Some(&format!("unix:///{name}")), &[]).await;
        runtime.sockets[0].seen.read().cloned().unwrap()
    };
    assert_eq!(seen("absent.sock").await, SocketSeen::Absent);
    assert!(matches!(seen("stale.sock").await, SocketSeen::Refused(_)));
    assert_eq!(seen("silent.sock").await, SocketSeen::Silent);
    assert!(matches!(seen("other.sock").await, SocketSeen::NotCri(_)));
}

/// A supervisor like that of k3s and RKE2, and the full token of its cluster.
async fn supervisor(authority: &Authority, password: &'static str) -> (crate::testing::Serving, String) {
    let bundle = pem::certificates(&[authority.der()]);
    let hash = crate::bundle_hash::Bundle::read(bundle.as_bytes()).unwrap().hash;
    let basic = format!("Basic {}", STANDARD.encode(format!("node:{password}")));
    let serving = crate::testing::serve(authority, move |asked| match asked.path.as_str() {
        "/cacerts" => (200, bundle.clone().into_bytes()),
        "/ping" => (200, b"pong".to_vec()),
        "/v1-k3s/server-ca.crt" if asked.headers.get("authorization") == Some(&basic) => (200, Vec::new()),
        _ => (401, Vec::new()),
    });
    (serving.await, format!("K10{hash}::server:"))
}

#[tokio::test]
async fn a_k3s_agent_is_judged_by_its_own_paths_token_and_hash() {
    let (ours, theirs) = (Authority::new("ours"), Authority::new("theirs"));
    let (server, prefix) = supervisor(&ours, "right-password").await;
    let (_other, other_prefix) = supervisor(&theirs, "right-password").await;
    for (token, failed, cause) in [
        (format!("{prefix}right-password"), None, None),
        (format!("{prefix}wrong-password"), Some("token"), Some("bootstrap-token-invalid")),
        (format!("{other_prefix}right-password"), Some("ca-pin"), Some("ca-hash-mismatch")),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::new(folder.path());
        let config =
            format!("server: https://127.0.0.1:{}\ntoken: {token}\ndata-dir: /data/k3s\n", server.port);
        fs::create_dir_all(root.at("/etc/rancher/k3s")).unwrap();
        fs::write(root.at("/etc/rancher/k3s/config.yaml"), config).unwrap();
        let target = Target::of_machine(&root).unwrap();
        let facts = Probe::of_folder(root).facts(Ok(target.as_ref())).await;
        let own = facts.supervised.as_ref().unwrap();
        assert_eq!((own.unit.as_str(), own.folder.as_str()), ("k3s-agent", "/data/k3s"));
        assert_eq!(facts.runtime.sockets[0].path, "/run/k3s/containerd/containerd.sock");
        let checks = checkup(&facts);
        let of_the_way =
            ["reach", "tls", "cluster-info", "ca-pin", "server-certificate", "api-server", "token"];
        let first = checks
            .iter()
            .filter(|check| of_the_way.contains(&check.id))
            .find(|check| check.result != Came::Passed);
        assert_eq!(first.map(|check| check.id), failed, "{first:?}");
        assert_eq!(first.and_then(|check| check.cause), cause);
        let said = format!("{checks:?} {facts:?}");
        assert!(!said.contains("password\"") && !said.contains("right-pass") && !said.contains("wrong-pass"));
    }
}

#[tokio::test]
async fn control_plane_and_kubeconfig_are_seen_in_custom_data_dir() {
    let folder = tempfile::tempdir().unwrap();
    let root = Root::new(folder.path());
    for path in ["/etc/rancher/rke2", "/var/lib/rancher/rke2/server/db", "/data/agent"] {
        fs::create_dir_all(root.at(path)).unwrap();
    }
    fs::write(root.at("/etc/rancher/rke2/config.yaml"), "data-dir: /data\n").unwrap();
    fs::write(root.at("/data/agent/kubelet.kubeconfig"), "").unwrap();
    let facts = Probe::of_folder(root).facts(Ok(None)).await;
    assert_eq!(facts.join.control_plane.read().unwrap(), &["/var/lib/rancher/rke2/server/db"]);
    let broken = Joined::Broken("/data/agent/kubelet.kubeconfig is empty".to_owned());
    assert_eq!(facts.join.kubeconfig.read(), Some(&broken));
    let checks = checkup(&facts);
    let leftovers = checks.iter().find(|check| check.id == "leftovers").unwrap();
    let advice = leftovers.advice.as_ref().unwrap();
    assert!(advice.commands.is_empty() && advice.words.contains("do not reset"), "{advice:?}");
}

#[tokio::test]
async fn a_healthz_that_never_ends_is_not_read_to_its_end() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = Endpoint { host: "127.0.0.1".to_owned(), port: listener.local_addr().unwrap().port() };
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        drop(stream.read(&mut [0; 1024]).await);
        drop(stream.write_all(b"HTTP/1.1 200 OK\r\n\r\nok ").await);
        while stream.write_all(&[b'x'; 1 << 16]).await.is_ok() {}
    });
    let (status, said) = kubelet::healthz(&endpoint, Duration::from_secs(5)).await.unwrap();
    assert!(status == 200 && said.starts_with("ok xxx") && said.len() == 200, "{said}");
}

#[test]
fn a_process_of_a_user_is_no_kubelet_whatever_it_is_called() {
    let folder = tempfile::tempdir().unwrap();
    let root = Root::new(folder.path());
    let put = |path: &str, text: &str| {
        fs::create_dir_all(root.at(path).parent().unwrap()).unwrap();
        fs::write(root.at(path), text).unwrap();
    };
    put("/proc/41/comm", "kubelet\n");
    // The uids: real, effective, saved, of the file system. In a setuid program of root the second one is root's.
    put("/proc/41/status", "Name:\tkubelet\nUid:\t65534\t0\t0\t0\n");
    assert_eq!(process::Processes::read(&root).unwrap().kubelet(), None);
    put("/proc/42/comm", "kubelet\n");
    assert_eq!(process::Processes::read(&root).unwrap().kubelet(), None, "it ended while it was looked at");
    put("/proc/42/status", "Name:\tkubelet\nUid:\t0\t0\t0\t0\n");
    assert_eq!(process::Processes::read(&root).unwrap().kubelet(), Some(42));
}

mod commands;
mod strangers;

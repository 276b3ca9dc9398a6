//! A machine of k3s or RKE2 against a supervisor that answers like the real one, by status and path. The agent's own
//! choice shows what follows from a finding. No test here contains the program itself.

use std::fs;
use std::sync::Mutex as Std;

use reveille_agent::Settings;
use reveille_agent::effect::Verb;
use reveille_agent::rejoin::{Blocker, Known, RepairStep, choose};
use secrecy::SecretString;
use tokio::sync::mpsc;

use super::*;
use crate::bundle_hash::Bundle;
use crate::distribution;
use crate::executor::{Executor, JoinSettings, TokenError, Tokens};
use crate::pem;
use crate::target::{Arguments, Kind};
use crate::testing::{Authority, Heard, Serving, serve};

pub(crate) const MACHINE: &str = "0123456789abcdef0123456789abcdef";
const OTHER_MACHINE: &str = "fedcba9876543210fedcba9876543210";
const PASSWORD: &str = "c4naryc4naryc4nary";
const NODE_PASSWORD: &str = "0a1b2c3d4e5f60718293a4b5c6d7e8f9";

/// The cluster's state, for one test.
pub(crate) struct Cluster {
    pub(crate) authority: Authority,
    /// The API server's answer to the kubelet of w-1: status and Node.
    pub(crate) node: Arc<Std<(u16, String)>>,
    /// The events of the Node of w-1 since the last list, as a watch sends them.
    happened: Arc<Std<String>>,
    /// The node password that the cluster knows for w-1.
    node_password: &'static str,
    /// The password with which agents join.
    password: &'static str,
}

impl Cluster {
    pub(crate) fn new(name: &str) -> Self {
        Self {
            authority: Authority::new(name),
            node: Arc::new(Std::new((404, "{}".to_owned()))),
            happened: Arc::default(),
            node_password: NODE_PASSWORD,
            password: PASSWORD,
        }
    }

    fn bundle(&self) -> String {
        pem::certificates(&[self.authority.der()])
    }

    pub(crate) fn token(&self) -> String {
        format!("K10{}::server:{PASSWORD}", Bundle::read(self.bundle().as_bytes()).unwrap().hash)
    }

    pub(crate) async fn serve(&self, kind: Kind) -> (Serving, Arc<Std<Vec<Heard>>>) {
        let heard = Arc::new(Std::new(Vec::new()));
        let (log, bundle) = (Arc::clone(&heard), self.bundle());
        let (node, node_password) = (Arc::clone(&self.node), self.node_password);
        let happened = Arc::clone(&self.happened);
        let basic = format!("Basic {}", base64_of(&format!("node:{}", self.password)));
        let serving = serve(&self.authority, move |asked| {
            log.lock().unwrap().push(asked.clone());
            let of_agents = format!("/v1-{kind}/");
            let is_let_in = asked.headers.get("authorization") == Some(&basic);
            match asked.path.as_str() {
                "/cacerts" => (200, bundle.clone().into_bytes()),
                path if path.starts_with(&of_agents) && !is_let_in => (401, b"not authorized".to_vec()),
                path if path.ends_with("/server-ca.crt") => (200, bundle.clone().into_bytes()),
                path if path.ends_with("/client-kubelet.crt") => {
                    let shown = asked.headers.get(&format!("{kind}-node-password"));
                    if shown.map(String::as_str) == Some(node_password) {
                        (200, Vec::new())
                    } else {
                        (403, Vec::new())
                    }
                }
                "/api/v1/nodes/w-1" if asked.has_certificate => {
                    let (status, node) = node.lock().unwrap().clone();
                    (status, node.into_bytes())
                }
                "/api/v1/nodes?fieldSelector=metadata.name%3Dw-1" if asked.has_certificate => {
                    (200, br#"{"metadata":{"resourceVersion":"70"},"items":[]}"#.to_vec())
                }
                path if path.ends_with("&resourceVersion=70") && asked.has_certificate => {
                    (200, happened.lock().unwrap().clone().into_bytes())
                }
                _ => (401, Vec::new()),
            }
        });
        (serving.await, heard)
    }
}

fn base64_of(text: &str) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(text)
}

/// A machine in a folder.
pub(crate) struct Here {
    _folder: tempfile::TempDir,
    pub(crate) root: Root,
    kind: Kind,
}

impl Here {
    pub(crate) fn new(kind: Kind) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::new(folder.path());
        let own = Self { _folder: folder, root, kind };
        own.put("/etc/machine-id", MACHINE);
        own.put("/proc/sys/kernel/hostname", "w-1\n");
        own
    }

    pub(crate) fn put(&self, path: &str, text: &str) {
        fs::create_dir_all(self.root.at(path).parent().unwrap()).unwrap();
        fs::write(self.root.at(path), text).unwrap();
    }

    pub(crate) fn agent(&self, name: &str) -> String {
        format!("/var/lib/rancher/{}/agent/{name}", self.kind)
    }

    /// The process of its agent, as /proc shows it.
    pub(crate) fn runs(&self) {
        self.put("/proc/77/cmdline", &format!("/usr/local/bin/{} agent\0", self.kind));
        self.put("/proc/77/status", "Name:\tx\nUid:\t0\t0\t0\t0\n");
        fs::create_dir_all(self.root.at("/proc/77/ns")).unwrap();
        let own = fs::read_link("/proc/self/ns/mnt").unwrap();
        std::os::unix::fs::symlink(own, self.root.at("/proc/77/ns/mnt")).unwrap();
    }

    fn is_told(&self, port: u16, token: &str) {
        let text = format!("server: https://127.0.0.1:{port}\ntoken: \"{token}\"\n");
        self.put(&format!("/etc/rancher/{}/config.yaml", self.kind), &text);
    }

    /// The files of an agent that has joined; its load balancer does not listen.
    pub(crate) fn has_joined(&self, cluster: &Cluster) {
        let (certificate, key) = cluster.authority.client("system:node:w-1");
        let (ca, crt, private) =
            (self.agent("server-ca.crt"), self.agent("client-kubelet.crt"), self.agent("client-kubelet.key"));
        self.put(&ca, &cluster.bundle());
        self.put(&crt, &certificate);
        self.put(&private, &key);
        self.put(&self.agent("kubelet.kubeconfig"), &kubeconfig(&ca, &crt, &private));
    }

    pub(crate) fn inspector(&self, port: u16, token: &str) -> Inspector {
        let arguments = Arguments {
            distribution: Some(self.kind),
            words: vec![format!("127.0.0.1:{port}")],
            token: Some(token.into()),
            ..Arguments::default()
        };
        self.inspector_of(&arguments)
    }

    fn inspector_of(&self, arguments: &Arguments) -> Inspector {
        let target = Target::find(arguments, &self.root).unwrap().unwrap();
        let way = distribution::of(self.kind, &self.root).unwrap();
        Inspector::new(self.root.clone(), target, NodeName::from("w-1"), way)
    }
}

fn kubeconfig(ca: &str, crt: &str, key: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters:\n- name: l\n  cluster: {{server: \"https://127.0.0.1:1\", certificate-authority: {ca}}}\n\
         contexts:\n- name: c\n  context: {{cluster: l, user: u}}\nusers:\n- name: u\n  user: {{client-certificate: {crt}, client-key: {key}}}\n"
    )
}

pub(crate) fn ready_node(machine_id: &str) -> (u16, String) {
    node_that_is("True", machine_id)
}

fn node_that_is(ready: &str, machine_id: &str) -> (u16, String) {
    let node = serde_json::json!({
        "metadata": { "name": "w-1", "uid": "u-1" },
        "spec": {},
        "status": {
            "conditions": [{ "type": "Ready", "status": ready, "reason": "KubeletReady", "message": "" }],
            "nodeInfo": { "machineID": machine_id, "systemUUID": "", "bootID": "" },
        },
    });
    (200, node.to_string())
}

/// The agent's choice, ordered to join, once it has read this often enough.
fn chosen(inspector: &Inspector, found: &Found) -> Result<Option<RepairStep>, Blocker> {
    choose(Known {
        machine: Some(&inspector.machine()),
        found: &found.inspection,
        readings: 3,
        leaving: None,
        attempts: 4,
        is_reset: true,
        is_ordered: true,
        settings: &Settings::default(),
    })
}

#[tokio::test]
async fn cluster_with_other_hash_is_refused_and_sees_no_secret() {
    let (ours, theirs) = (Cluster::new("ours"), Cluster::new("theirs"));
    let (server, heard) = theirs.serve(Kind::K3s).await;
    let here = Here::new(Kind::K3s);
    let failure = here.inspector(server.port, &ours.token()).authorities().await.unwrap_err();
    assert!(matches!(failure, DiscoveryError::OtherBundle { .. }) && failure.lasts(), "{failure}");
    let short = here.inspector(server.port, PASSWORD).authorities().await.unwrap_err();
    assert!(matches!(short, DiscoveryError::ShortToken) && short.lasts(), "{short}");
    here.inspector(server.port, &ours.token()).inspect().await;
    for asked in heard.lock().unwrap().iter() {
        assert_eq!((asked.path.as_str(), asked.headers.get("authorization")), ("/cacerts", None));
    }
    let on_purpose = Arguments {
        distribution: Some(Kind::K3s),
        words: vec![format!("127.0.0.1:{}", server.port)],
        token: Some(PASSWORD.into()),
        skip_ca_verification: true,
        ..Arguments::default()
    };
    assert!(here.inspector_of(&on_purpose).authorities().await.is_ok(), "a person said so");
}

#[tokio::test]
async fn token_is_sent_as_node_user_and_refusal_names_token_to_use() {
    for kind in [Kind::K3s, Kind::Rke2] {
        let cluster = Cluster::new("ours");
        let (server, heard) = cluster.serve(kind).await;
        let inspector = Here::new(kind).inspector(server.port, &cluster.token());
        let good = inspector.target().token.clone().unwrap();
        assert_eq!(inspector.try_token(&good).await, Ok(()));
        let shown = heard.lock().unwrap().last().unwrap().headers["authorization"].clone();
        assert_eq!(
            shown,
            format!("Basic {}", base64_of(&format!("node:{PASSWORD}"))),
            "as node, whatever it names"
        );
        let hash = good.bundle().unwrap();
        let parse = |text: String| Token::parse_for(kind, "test", &SecretString::from(text)).unwrap();
        for (token, word) in [
            (parse(format!("K10{hash}::server:{PASSWORD}x")), "agent-token"),
            (parse(format!("K10{hash}::abcdef.c4naryc4naryc4na")), "token create"),
            (parse(Cluster::new("other").token()), "another cluster"),
        ] {
            let refusal = inspector.try_token(&token).await.unwrap_err();
            assert!(refusal.contains(word) && !refusal.contains("c4nary"), "{refusal}");
        }
    }
}

#[tokio::test]
async fn bootstrapping_dead_token_and_taken_name_are_distinguished() {
    for (token_is_right, node_password, node, credentials, then) in [
        (true, NODE_PASSWORD, NodeSeen::Guarded, Credentials::Bootstrapping, Err(Blocker::JoinUnderWay)),
        (false, NODE_PASSWORD, NodeSeen::CannotTell, Credentials::TokenDead, Ok(Some(RepairStep::NewToken))),
        (true, "another", NodeSeen::AnotherMachines, Credentials::Bootstrapping, Err(Blocker::NameTaken)),
    ] {
        let mut cluster = Cluster::new("ours");
        cluster.node_password = node_password;
        let (server, _) = cluster.serve(Kind::K3s).await;
        let here = Here::new(Kind::K3s);
        let token = if token_is_right { cluster.token() } else { cluster.token() + "x" };
        here.is_told(server.port, &token);
        here.runs();
        here.put("/etc/rancher/node/password", &format!("{NODE_PASSWORD}\n"));
        let inspector = here.inspector(server.port, &cluster.token());
        let found = inspector.inspect().await;
        assert_eq!((found.inspection.node, &found.inspection.credentials), (node, &credentials));
        assert_eq!(chosen(&inspector, &found), then);
        let is_taken = node == NodeSeen::AnotherMachines;
        assert_eq!(
            found.advice.contains("delete secret w-1.node-password.k3s"),
            is_taken,
            "{}",
            found.advice
        );
    }
}

#[tokio::test]
async fn machine_without_agent_requests_no_kubelet_certificate() {
    let cluster = Cluster::new("ours");
    let (server, heard) = cluster.serve(Kind::Rke2).await;
    let here = Here::new(Kind::Rke2);
    let inspector = here.inspector(server.port, &cluster.token());
    let found = inspector.inspect().await;
    assert_eq!(found.inspection.credentials, Credentials::Nothing);
    assert_eq!(chosen(&inspector, &found), Ok(Some(RepairStep::Join)));
    assert!(heard.lock().unwrap().iter().all(|asked| !asked.path.ends_with("client-kubelet.crt")));
}

#[tokio::test]
async fn joined_agent_gets_restart_or_token_only_when_node_is_lost() {
    for (node, token_is_right, then) in [
        (ready_node(MACHINE), true, Ok(None)),
        (ready_node(MACHINE), false, Ok(None)),
        (ready_node(OTHER_MACHINE), true, Err(Blocker::NameTaken)),
        ((404, "{}".to_owned()), true, Ok(Some(RepairStep::RestartKubelet))),
        ((404, "{}".to_owned()), false, Ok(Some(RepairStep::NewToken))),
        (node_that_is("Unknown", MACHINE), true, Ok(None)),
        (node_that_is("Unknown", MACHINE), false, Ok(Some(RepairStep::NewToken))),
        (node_that_is("False", MACHINE), false, Ok(None)),
        ((503, "{}".to_owned()), true, Err(Blocker::CannotTell)),
        ((401, "{}".to_owned()), true, Ok(Some(RepairStep::NewToken))),
    ] {
        let mut cluster = Cluster::new("ours");
        cluster.node = Arc::new(Std::new(node.clone()));
        let (server, _) = cluster.serve(Kind::K3s).await;
        let here = Here::new(Kind::K3s);
        here.is_told(server.port, &if token_is_right { cluster.token() } else { cluster.token() + "x" });
        here.has_joined(&cluster);
        let inspector = here.inspector(server.port, &cluster.token());
        let found = inspector.inspect().await;
        assert_eq!(chosen(&inspector, &found), then, "{node:?}, {found:?}");
    }
}

#[tokio::test]
async fn own_node_that_came_and_went_between_looks_is_told_once() {
    let lived = |id: &str, revision: u32| {
        let uid = r#""uid":"u-1""#;
        let node =
            node_that_is("False", id).1.replace(uid, &format!(r#"{uid},"resourceVersion":"{revision}""#));
        format!("{{\"type\":\"ADDED\",\"object\":{node}}}\n{{\"type\":\"DELETED\",\"object\":{node}}}\n")
    };
    for (happened, then) in
        [(String::new(), false), (lived(MACHINE, 72), true), (lived(OTHER_MACHINE, 72), false)]
    {
        let cluster = Cluster::new("ours");
        let (server, _) = cluster.serve(Kind::K3s).await;
        let here = Here::new(Kind::K3s);
        here.is_told(server.port, &cluster.token());
        here.has_joined(&cluster);
        let inspector = here.inspector(server.port, &cluster.token());
        let first = inspector.inspect().await.inspection;
        assert_eq!((first.node, first.came_and_went), (NodeSeen::Absent, false), "nothing is known before");
        *cluster.happened.lock().unwrap() = happened;
        assert_eq!(inspector.inspect().await.inspection.came_and_went, then);
        assert!(!inspector.inspect().await.inspection.came_and_went, "it is told once");
    }
}

#[tokio::test]
async fn other_cluster_is_replaced_only_if_all_its_addresses_are_ours() {
    let (ours, theirs) = (Cluster::new("ours"), Cluster::new("theirs"));
    let ((own, _), (other, _)) = (ours.serve(Kind::K3s).await, theirs.serve(Kind::K3s).await);
    let closed = 1;
    for (stood_at, wanted) in [
        (vec![], Err(Blocker::AnotherClusterSilent)),
        (vec![closed], Err(Blocker::AnotherClusterSilent)),
        (vec![own.port, other.port], Err(Blocker::AnotherCluster)),
        (vec![own.port, closed], Err(Blocker::AnotherClusterSilent)),
        (vec![own.port], Ok(Some(RepairStep::NewToken))),
    ] {
        let here = Here::new(Kind::K3s);
        here.has_joined(&theirs);
        if !stood_at.is_empty() {
            let places: Vec<String> = stood_at.iter().map(|port| format!("127.0.0.1:{port}")).collect();
            let file = serde_json::json!({ "ServerURL": format!("https://{}", places[0]), "ServerAddresses": places });
            here.put(&here.agent("etc/k3s-agent-load-balancer.json"), &file.to_string());
        }
        let inspector = here.inspector(own.port, &ours.token());
        let found = inspector.inspect().await;
        assert_eq!(chosen(&inspector, &found), wanted, "{stood_at:?}, {found:?}");
    }
}

#[tokio::test]
async fn machine_joined_by_other_distribution_counts_as_other_cluster() {
    let cluster = Cluster::new("ours");
    let (server, _) = cluster.serve(Kind::K3s).await;
    let here = Here::new(Kind::K3s);
    let (certificate, key) = cluster.authority.client("system:node:w-1");
    here.put("/etc/kubernetes/ca.crt", &cluster.bundle());
    here.put("/etc/kubernetes/c.crt", &certificate);
    here.put("/etc/kubernetes/c.key", &key);
    let conf = kubeconfig("/etc/kubernetes/ca.crt", "/etc/kubernetes/c.crt", "/etc/kubernetes/c.key");
    here.put("/etc/kubernetes/kubelet.conf", &conf);
    let inspector = here.inspector(server.port, &cluster.token());
    let found = inspector.inspect().await;
    assert_eq!(chosen(&inspector, &found), Err(Blocker::AnotherClusterSilent), "{found:?}");
}

struct NoTokens;

impl Tokens for NoTokens {
    async fn token(&self) -> Result<Token, TokenError> {
        Err(TokenError::None)
    }
}

#[tokio::test]
async fn reset_is_refused_when_control_plane_marks_appear_later() {
    let cluster = Cluster::new("ours");
    for mark in
        ["/var/lib/rancher/k3s/server/tls", "/var/lib/rancher/rke2/server/db", "/etc/kubernetes/admin.conf"]
    {
        let here = Here::new(Kind::K3s);
        here.has_joined(&cluster);
        let inspector = Arc::new(here.inspector(1, &cluster.token()));
        here.put(mark, "");
        assert!(matches!(inspector.machine().role, Role::ControlPlane { .. }), "{mark}");
        let copies = here.root.at("/copies");
        let settings = JoinSettings { copies, ..JoinSettings::default() };
        let executor = Executor::new(Arc::clone(&inspector), NoTokens, settings);
        let (said, _heard) = mpsc::channel(1);
        let failure = executor.act(Verb::Reset, &said).await.unwrap_err();
        assert!(failure.to_string().contains("control plane"), "{failure}");
        assert!(here.root.has(here.agent("kubelet.kubeconfig")));
    }
}

#[tokio::test]
async fn reset_is_refused_when_join_began_since_the_decision() {
    let cluster = Cluster::new("ours");
    let here = Here::new(Kind::K3s);
    here.has_joined(&cluster);
    let inspector = Arc::new(here.inspector(1, &cluster.token()));
    here.runs();
    here.put("/proc/77/cmdline", "/usr/bin/kubeadm\0join\0--config\0x\0");
    let settings = JoinSettings { copies: here.root.at("/copies"), ..JoinSettings::default() };
    let executor = Executor::new(Arc::clone(&inspector), NoTokens, settings);
    let (said, _heard) = mpsc::channel(1);
    let failure = executor.act(Verb::Reset, &said).await.unwrap_err();
    assert!(failure.to_string().contains("under way"), "{failure}");
    assert!(here.root.has(here.agent("kubelet.kubeconfig")));
}

#[test]
fn scratch_of_killed_join_is_cleared_unless_another_join_runs() {
    let scratch = "/run/reveille/kubeadm-join-w-1.yaml";
    let here = Here::new(Kind::Kubeadm);
    here.put(scratch, "token");
    here.put("/run/reveille/kubeadm-join-w-2.yaml", "another node's");
    let arguments = Arguments { words: vec!["127.0.0.1:1".to_owned()], ..Arguments::default() };
    let inspector = here.inspector_of(&arguments);
    here.runs();
    here.put("/proc/77/cmdline", "/usr/bin/kubeadm\0join\0--config\0x\0");
    inspector.clear_scratch();
    assert!(here.root.has(scratch), "a running join reads it");
    assert!(inspector.is_joining());
    here.put("/proc/77/status", "Name:\tkubeadm\nUid:\t65534\t65534\t65534\t65534\n");
    assert!(!inspector.is_joining(), "a user can call a process as he likes");
    fs::remove_dir_all(here.root.at("/proc/77")).unwrap();
    inspector.clear_scratch();
    assert!(!here.root.has(scratch));
    assert!(here.root.has("/run/reveille/kubeadm-join-w-2.yaml"));
}

mod processes;
mod tokens;

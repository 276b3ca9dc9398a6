//! The adapter against a real etcd, kube-apiserver and controller manager, and what befalls them.
//!
//! Ignored by default. `REVEILLE_RIG` names the description (`rig.json`) of a rig with Kubernetes; then
//! `cargo test -p reveille-kube --test rig -- --ignored --test-threads 1`. Without it the tests say that they did not run.
//! Each logs in as a service account with exactly the rights of [`reveille_kube::rbac`], makes its own nodes and takes
//! them away. Faults hit the whole rig, so one test runs at a time.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "in a test, what cannot be is a failure")]

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reveille_core::effect::{Call, Look, Outcome, ReadErrorKind};
use reveille_core::event::{Answer, ClusterFact};
use reveille_core::model::id::{NodeName, NodeUid};
use reveille_core::model::lease::Renewal;
use reveille_core::model::log_evidence::EvidenceQuery;
use reveille_core::model::node::Ready;
use reveille_core::remedies::DeleteNode;
use reveille_kube::{Cluster, ClusterConfig, rbac};
use serde_json::{Value, json};
use tokio::sync::mpsc::{Receiver, channel};

/// As long as a proof of life counts (the `liveness` module of the adapter).
const FRESH: Duration = Duration::from_secs(15);

static ONE_AT_A_TIME: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

struct Rig {
    description: Value,
    account: String,
    nodes: Vec<String>,
    faults: Vec<String>,
    kubeconfig: PathBuf,
}

impl Rig {
    /// The rig that `REVEILLE_RIG` describes, or a clear word that nothing was tested.
    fn find(test: &str) -> Option<Self> {
        let Some(path) = std::env::var_os("REVEILLE_RIG") else {
            // Past the harness, which swallows what a passing test prints.
            let _ = writeln!(std::io::stderr(), "{test}: NOT RUN, because REVEILLE_RIG names no rig.json");
            return None;
        };
        let description = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        let account = format!("reveille-{}", test.replace('_', "-"));
        let kubeconfig =
            std::env::temp_dir().join(format!("reveille-kube-rig-{}-{test}", std::process::id()));
        Some(Self { description, account, nodes: Vec::new(), faults: Vec::new(), kubeconfig })
    }

    fn kubernetes(&self, key: &str) -> &str {
        self.description["kubernetes"][key].as_str().unwrap()
    }

    fn kubectl(&self, arguments: &[&str], input: &str) -> String {
        let mut kubectl = Command::new(self.kubernetes("kubectl"))
            .args(["--kubeconfig", self.kubernetes("kubeconfig")])
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        kubectl.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        let output = kubectl.wait_with_output().unwrap();
        assert!(output.status.success(), "kubectl {arguments:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    fn rights(&self, cleanup: bool) -> String {
        let grants = rbac::grants(&rbac::Wanted { cleanup, ..rbac::Wanted::default() });
        rbac::manifest(&grants, &self.account, "default").unwrap()
    }

    /// Logs in with the rights of the manifest and no others.
    async fn cluster(&self, cleanup: bool) -> Cluster {
        let account =
            json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": self.account}});
        self.kubectl(&["-n", "default", "apply", "-f", "-"], &account.to_string());
        self.kubectl(&["apply", "-f", "-"], &self.rights(cleanup));
        let token = self.kubectl(&["-n", "default", "create", "token", &self.account], "");
        let text = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{{name: c, context: {{cluster: c, user: u}}}}]\n\
             clusters: [{{name: c, cluster: {{server: \"{}\", certificate-authority: \"{}\"}}}}]\n\
             users: [{{name: u, user: {{token: {token}}}}}]\n",
            self.kubernetes("server"),
            self.kubernetes("ca")
        );
        std::fs::write(&self.kubeconfig, text).unwrap();
        let config = ClusterConfig { kubeconfig: Some(self.kubeconfig.clone()), context: None };
        Cluster::connect(&config).await.unwrap()
    }

    /// Through the fault proxy, which asks for no credentials.
    async fn behind_proxy(&self) -> Cluster {
        let path = PathBuf::from(self.kubernetes("proxyKubeconfig"));
        Cluster::connect(&ClusterConfig { kubeconfig: Some(path), context: None }).await.unwrap()
    }

    /// Makes a node that is Ready once, and returns its uid.
    fn node(&mut self, name: &str) -> String {
        self.nodes.push(name.to_owned());
        let node = json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": {"name": name, "labels": {"topology.kubernetes.io/zone": "nova-a"}},
            "spec": {"providerID": "openstack:///5F0C1D2E-0000-4A5B-8C9D-0123456789AB"}
        });
        self.kubectl(&["create", "-f", "-"], &node.to_string());
        let status = json!({"status": {"conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}]}});
        let patch =
            ["patch", "node", name, "--subresource=status", "--type=merge", "-p", &status.to_string()];
        self.kubectl(&patch, "");
        let lease = json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"name": name, "namespace": "kube-node-lease"},
            "spec": {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": "2026-01-01T00:00:00.000000Z"}
        });
        self.kubectl(&["apply", "-f", "-"], &lease.to_string());
        self.kubectl(&["get", "node", name, "-o", "jsonpath={.metadata.uid}"], "")
    }

    fn fault(&mut self, name: &str, on: bool) {
        let mut rig = Command::new(self.description["rig"].as_str().unwrap());
        rig.args(["fault", name, "--name", self.description["name"].as_str().unwrap()]);
        if on {
            self.faults.push(name.to_owned());
        } else {
            self.faults.retain(|armed| armed != name);
            rig.arg("--off");
        }
        let output = rig.output().unwrap();
        assert!(output.status.success(), "fault {name}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        for fault in self.faults.clone() {
            self.fault(&fault, false);
        }
        for name in &self.nodes {
            self.kubectl(&["delete", "node", name, "--ignore-not-found"], "");
            self.kubectl(&["-n", "kube-node-lease", "delete", "lease", name, "--ignore-not-found"], "");
        }
        // Rights that stay behind would let the next run do what it must be refused.
        self.kubectl(&["delete", "--ignore-not-found", "-f", "-"], &self.rights(true));
        self.kubectl(&["-n", "default", "delete", "serviceaccount", &self.account, "--ignore-not-found"], "");
        let _ = std::fs::remove_file(&self.kubeconfig);
    }
}

/// What is told, on the real clock.
struct FactStream(Receiver<ClusterFact>);

impl FactStream {
    fn of(cluster: Cluster) -> Self {
        let (facts, told) = channel(1024);
        tokio::spawn(async move { cluster.watch(facts, std::future::pending()).await });
        Self(told)
    }

    /// The first fact that the question picks, within so many seconds; or the words of what was told instead.
    async fn within<T>(
        &mut self,
        seconds: u64,
        mut pick: impl FnMut(&ClusterFact) -> Option<T>,
    ) -> Result<T, Vec<String>> {
        let until = tokio::time::Instant::now() + Duration::from_secs(seconds);
        let mut seen = Vec::new();
        while let Ok(Some(fact)) = tokio::time::timeout_at(until, self.0.recv()).await {
            match pick(&fact) {
                Some(picked) => return Ok(picked),
                None => seen.push(word(&fact)),
            }
        }
        Err(seen)
    }

    async fn alive_within(&mut self, seconds: u64) {
        self.within(seconds, |fact| (*fact == ClusterFact::Alive).then_some(())).await.unwrap();
    }

    /// Nothing says that all is well for so many seconds, but what was proved already: a proof of the store from before may
    /// meet one of the watch from after (the watch of a server without its store goes on), once, and while it is fresh.
    async fn never_alive_during(&mut self, seconds: u64) -> Vec<String> {
        let began = Instant::now();
        let mut spent = false;
        let alive = |fact: &ClusterFact| {
            let allowed = !spent && began.elapsed() <= FRESH;
            spent |= *fact == ClusterFact::Alive;
            (*fact == ClusterFact::Alive && !allowed).then(|| began.elapsed())
        };
        self.within(seconds, alive).await.expect_err("alive, while it cannot be")
    }
}

fn word(fact: &ClusterFact) -> String {
    match fact {
        ClusterFact::Identity(cluster) => format!("Identity {cluster}"),
        ClusterFact::IdentityUnread(error) => format!("IdentityUnread {}", error.text),
        ClusterFact::Synced(nodes) => format!("Synced {}", nodes.len()),
        ClusterFact::Applied(node) => format!("Applied {}", node.name),
        ClusterFact::Deleted { name, .. } => format!("Deleted {name}"),
        ClusterFact::Leases(_) => "Leases".to_owned(),
        ClusterFact::NodeEvent(event) => format!("NodeEvent {} {}", event.node, event.reason),
        ClusterFact::Alive => "Alive".to_owned(),
        ClusterFact::Failed(error) => format!("Failed {:?} {}", error.kind, error.text),
    }
}

fn said(wanted: String) -> impl Fn(&ClusterFact) -> Option<()> {
    move |fact| (word(fact) == wanted).then_some(())
}

fn failed(kind: ReadErrorKind) -> impl Fn(&ClusterFact) -> Option<String> {
    move |fact| match fact {
        ClusterFact::Failed(error) if error.kind == kind => Some(error.text.to_string()),
        _ => None,
    }
}

#[tokio::test]
#[ignore = "needs a rig"]
async fn a_node_comes_and_goes_and_we_may_only_what_we_asked_for() {
    let Some(mut rig) = Rig::find("comes_and_goes") else { return };
    let _turn = ONE_AT_A_TIME.lock().await;
    let cluster = rig.cluster(false).await;
    let mut told = FactStream::of(cluster.clone());
    told.within(10, |fact| matches!(fact, ClusterFact::Synced(_)).then_some(())).await.unwrap();
    let uid = rig.node("kube-rig-a");
    let ready = |fact: &ClusterFact| match fact {
        ClusterFact::Applied(node) if node.name.as_str() == "kube-rig-a" && node.ready == Ready::True => {
            Some(node.clone())
        }
        _ => None,
    };
    let node = told.within(10, ready).await.unwrap();
    assert_eq!(node.uid.as_str(), uid);
    let leased = |fact: &ClusterFact| match fact {
        ClusterFact::Leases(leases) => {
            leases.iter().find(|(name, _)| name.as_str() == "kube-rig-a").map(|(_, renewal)| renewal)
        }
        _ => None,
    };
    assert_eq!(told.within(15, leased).await, Ok(Renewal::of("2026-01-01T00:00:00.000000Z")));
    told.alive_within(15).await;

    let name = NodeName::from("kube-rig-a");
    let looked = cluster.look(&Look::Node(name.clone())).await.unwrap();
    assert!(matches!(looked, Answer::Node(Some(node)) if node.uid.as_str() == uid));
    let delete = |uid: &str| {
        Call::DeleteNode(DeleteNode { name: name.clone(), uid: NodeUid::from(uid), boot_id: None })
    };
    let refused = cluster.perform(&delete(&uid)).await;
    assert!(matches!(&refused, Outcome::Denied { text } if text.contains("403 Forbidden")), "{refused:?}");

    // A request for the name of a node; the operator of the cluster may sign it at once.
    let pem = include_str!("support/w-1.csr.pem");
    let request = json!({
        "apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest", "metadata": {"name": "kube-rig-w-1"},
        "spec": {"request": STANDARD.encode(pem), "signerName": "kubernetes.io/kube-apiserver-client-kubelet",
                 "usages": ["client auth", "digital signature"]}
    });
    rig.kubectl(&["apply", "-f", "-"], &request.to_string());
    let evidence_query =
        EvidenceQuery { node: Some(name.clone()), asks_as: "w-1".into(), console_counts: true };
    let words = cluster.look(&Look::LogEvidence("os".into(), "i".into(), Arc::new(evidence_query))).await;
    rig.kubectl(&["delete", "csr", "kube-rig-w-1"], "");
    let Ok(Answer::Said(words)) = words else { panic!("{words:?}") };
    assert!(words.unread.is_empty() && words.node.is_some(), "{words:?}");
    assert!(
        words.requests.iter().any(|request| &*request.name == "kube-rig-w-1"),
        "by its subject: {words:?}"
    );

    // Who has not noticed a node says nothing of its going; after a test that froze its API server that takes a while.
    until_said(&cluster, &name, "RegisteredNode").await;
    let cleaner = rig.cluster(true).await;
    let moved = cleaner.perform(&delete("5f0c1d2e-0000-4a5b-8c9d-0123456789ab")).await;
    assert!(matches!(moved, Outcome::Moved { .. }), "{moved:?}");
    let done = cleaner.perform(&delete(&uid)).await;
    assert!(matches!(done, Outcome::Accepted { request: Some(_) }), "{done:?}");
    let again = cleaner.perform(&delete(&uid)).await;
    assert!(matches!(again, Outcome::AlreadySo { .. }), "{again:?}");
    assert_eq!(cluster.look(&Look::Node(name.clone())).await.unwrap(), Answer::Node(None));
    told.within(5, said("Deleted kube-rig-a".to_owned())).await.unwrap();
    told.within(60, said("NodeEvent kube-rig-a RemovingNode".to_owned())).await.unwrap();
    until_said(&cluster, &name, "RemovingNode").await;
}

/// The node controller has said this of the node, as a read of its events shows.
async fn until_said(cluster: &Cluster, name: &NodeName, reason: &str) {
    let began = Instant::now();
    loop {
        let answer = cluster.look(&Look::NodeEvents(name.clone())).await.unwrap();
        let Answer::NodeEvents(events) = answer else { panic!("{answer:?}") };
        if events.iter().any(|event| &*event.reason == reason) {
            return;
        }
        assert!(began.elapsed() < Duration::from_secs(60), "no {reason} within a minute: {events:?}");
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

#[tokio::test]
#[ignore = "needs a rig"]
async fn a_frozen_a_killed_and_a_storeless_api_server_are_never_alive() {
    let Some(mut rig) = Rig::find("frozen") else { return };
    let _turn = ONE_AT_A_TIME.lock().await;
    let mut told = FactStream::of(rig.cluster(false).await);
    for (fault, seconds) in [("api-hang", 30), ("api-kill", 20), ("etcd-hang", 40)] {
        told.alive_within(60).await;
        rig.fault(fault, true);
        let words = told.never_alive_during(seconds).await;
        rig.fault(fault, false);
        let failures: Vec<&String> = words.iter().filter(|word| word.starts_with("Failed")).collect();
        eprintln!("{fault}: {failures:#?}");
        assert!(!failures.is_empty(), "{fault}: nothing failed: {words:?}");
        assert!(!words.iter().any(|word| word.starts_with("Synced 0")), "{fault}: {words:?}");
    }
    told.alive_within(60).await;
}

#[tokio::test]
#[ignore = "needs a rig"]
async fn events_lost_on_the_way_and_lost_places_are_gaps() {
    let Some(mut rig) = Rig::find("lost") else { return };
    let _turn = ONE_AT_A_TIME.lock().await;
    let uid = rig.node("kube-rig-b");
    let mut told = FactStream::of(rig.behind_proxy().await);
    let has_b = |fact: &ClusterFact| match fact {
        ClusterFact::Synced(nodes) => Some(nodes.iter().any(|node| node.name.as_str() == "kube-rig-b")),
        _ => None,
    };
    assert!(told.within(10, has_b).await.unwrap());
    told.alive_within(20).await;

    rig.fault("nodes-watch-gap", true);
    rig.kubectl(&["delete", "node", "kube-rig-b"], "");
    let told_of = |fact: &ClusterFact| (word(fact).starts_with("Deleted kube-rig-b")).then_some(());
    let words = told.within(25, told_of).await.expect_err("the proxy loses every event");
    assert!(words.iter().any(|word| word.starts_with("Failed")), "{words:?}");
    rig.fault("nodes-watch-gap", false);
    let gone = |fact: &ClusterFact| told_of(fact).or_else(|| (has_b(fact) == Some(false)).then_some(()));
    if !words.iter().any(|word| word.starts_with("Synced")) {
        told.within(60, gone).await.unwrap();
    }
    told.alive_within(60).await;

    rig.fault("nodes-watch-gone", true);
    let text = told.within(30, failed(ReadErrorKind::Gap)).await.unwrap();
    assert!(text.contains("410"), "{text}");
    rig.fault("nodes-watch-gone", false);
    told.alive_within(60).await;
    assert!(!uid.is_empty());
}

#[tokio::test]
#[ignore = "needs a rig"]
async fn an_answer_that_never_comes_is_not_taken_for_a_refusal() {
    let Some(mut rig) = Rig::find("unanswered") else { return };
    let _turn = ONE_AT_A_TIME.lock().await;
    let uid = rig.node("kube-rig-c");
    let cluster = rig.behind_proxy().await;
    rig.fault("kube-timeout-after-effect", true);
    let name = NodeName::from("kube-rig-c");
    let outcome = cluster
        .perform(&Call::DeleteNode(DeleteNode {
            name: name.clone(),
            uid: NodeUid::from(uid.as_str()),
            boot_id: None,
        }))
        .await;
    rig.fault("kube-timeout-after-effect", false);
    assert!(matches!(outcome, Outcome::Unknown { .. }), "{outcome:?}");
    assert_eq!(cluster.look(&Look::Node(name)).await.unwrap(), Answer::Node(None), "it did take effect");
    rig.fault("kube-429", true);
    let throttled = cluster.observe_once().await.unwrap_err();
    rig.fault("kube-429", false);
    assert_eq!(throttled.kind, ReadErrorKind::Throttled);
    assert!(throttled.retry_after.is_some());
}

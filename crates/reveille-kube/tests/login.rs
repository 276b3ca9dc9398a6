//! Logging in and real sockets: a plain HTTP server on loopback that checks tokens, and ports where no process listens.
#![allow(clippy::unwrap_used, reason = "in a test, what cannot be is a failure")]

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use reveille_core::effect::{Call, Look, Outcome, ReadErrorKind};
use reveille_core::event::{Answer, ClusterFact};
use reveille_core::model::id::{NodeName, NodeUid};
use reveille_core::remedies::DeleteNode;
use reveille_kube::{Cluster, ClusterConfig};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// A server that answers every request with an empty 404 of its own, or 401 to all tokens but one.
struct Server {
    address: SocketAddr,
    accepts: Arc<Mutex<String>>,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Server {
    async fn start(accepts: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let accepts = Arc::new(Mutex::new(accepts.to_owned()));
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (token, log) = (accepts.clone(), seen.clone());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, token.clone(), log.clone()));
            }
        });
        Self { address, accepts, seen }
    }
}

async fn serve(mut stream: TcpStream, accepts: Arc<Mutex<String>>, seen: Arc<Mutex<Vec<String>>>) {
    let mut head = Vec::new();
    let mut byte = [0_u8];
    while stream.read_exact(&mut byte).await.is_ok() {
        head.push(byte[0]);
        if !head.ends_with(b"\r\n\r\n") {
            continue;
        }
        let text = String::from_utf8_lossy(&head).to_ascii_lowercase();
        head.clear();
        seen.lock().unwrap().push(text.lines().next().unwrap_or_default().to_owned());
        let wanted = format!("authorization: bearer {}\r\n", accepts.lock().unwrap());
        let (status, body) = if text.contains(&wanted) {
            ("404 Not Found", r#"{"kind":"Status","reason":"NotFound","code":404,"details":{"name":"a"}}"#)
        } else {
            (
                "401 Unauthorized",
                r#"{"kind":"Status","reason":"Unauthorized","message":"Unauthorized","code":401}"#,
            )
        };
        let length = body.len();
        let answer = format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\n\r\n{body}");
        if stream.write_all(answer.as_bytes()).await.is_err() {
            return;
        }
    }
}

struct Kubeconfig(PathBuf);

impl Kubeconfig {
    fn write(name: &str, server: &str, token: &str) -> Self {
        let path = std::env::temp_dir().join(format!("reveille-kube-login-{}-{name}", std::process::id()));
        let kubeconfig = Self(path);
        kubeconfig.rewrite(server, token);
        kubeconfig
    }

    fn rewrite(&self, server: &str, token: &str) {
        let text = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: c\n\
             clusters: [{{name: c, cluster: {{server: \"{server}\"}}}}]\n\
             contexts: [{{name: c, context: {{cluster: c, user: u}}}}]\n\
             users: [{{name: u, user: {{token: {token}}}}}]\n"
        );
        std::fs::write(&self.0, text).unwrap();
    }

    fn config(&self) -> ClusterConfig {
        ClusterConfig { kubeconfig: Some(self.0.clone()), context: None }
    }
}

impl Drop for Kubeconfig {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// A port of loopback where no process listens.
async fn closed_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port()
}

#[tokio::test]
async fn expired_token_is_replaced_from_the_current_kubeconfig() {
    let server = Server::start("first").await;
    let url = format!("http://{}", server.address);
    let kubeconfig = Kubeconfig::write("expired", &url, "first");
    let cluster = Cluster::connect(&kubeconfig.config()).await.unwrap();
    let look = Look::Node(NodeName::from("a"));
    assert_eq!(cluster.look(&look).await.unwrap(), Answer::Node(None));

    *server.accepts.lock().unwrap() = "second".to_owned();
    let error = cluster.look(&look).await.unwrap_err();
    assert_eq!(error.kind, ReadErrorKind::Unauthorized, "the kubeconfig still holds the old one");

    kubeconfig.rewrite(&url, "second");
    // A login that was in vain is not repeated at once.
    let error = cluster.look(&look).await.unwrap_err();
    assert_eq!(error.kind, ReadErrorKind::Unauthorized);
    tokio::time::sleep(Duration::from_millis(1100)).await;
    assert_eq!(cluster.look(&look).await.unwrap(), Answer::Node(None));
    // Good; refused and tried once more; refused; refused and then good: no request more.
    assert_eq!(server.seen.lock().unwrap().len(), 1 + 2 + 1 + 2);
}

/// Sixteen requests meet a 401 at once: the credential plugin runs once for all of them, and not again for the next.
#[tokio::test]
async fn refused_requests_share_one_login() {
    let server = Server::start("good").await;
    let runs = std::env::temp_dir().join(format!("reveille-kube-runs-{}", std::process::id()));
    let credential = r#"{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","status":{"token":"bad"}}"#;
    let text = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\n\
         clusters: [{{name: c, cluster: {{server: \"http://{}\"}}}}]\n\
         contexts: [{{name: c, context: {{cluster: c, user: u}}}}]\n\
         users:\n- name: u\n  user:\n    exec:\n      apiVersion: client.authentication.k8s.io/v1\n\
         \x20     interactiveMode: Never\n      command: sh\n      args:\n      - -c\n\
         \x20     - |\n        echo run >> {}\n        echo '{credential}'\n",
        server.address,
        runs.display()
    );
    let kubeconfig = Kubeconfig::write("shared", "http://127.0.0.1:1", "t");
    std::fs::write(&kubeconfig.0, text).unwrap();
    let cluster = Cluster::connect(&kubeconfig.config()).await.unwrap();
    let count = || std::fs::read_to_string(&runs).unwrap().lines().count();
    // Each login may read the credential more than once.
    let each = count();
    assert!(each > 0);
    let look = Look::Node(NodeName::from("a"));
    let all = futures::future::join_all((0..16).map(|_| cluster.look(&look))).await;
    assert!(all.iter().all(|answer| answer.as_ref().is_err_and(|e| e.kind == ReadErrorKind::Unauthorized)));
    assert_eq!(count(), 2 * each);
    assert!(cluster.look(&look).await.is_err());
    assert_eq!(count(), 2 * each, "a login that was in vain is not repeated at once");
    std::fs::remove_file(&runs).unwrap();
}

/// A credential plugin that says the token in a file; while another file is there, it hangs.
struct Plugin {
    kubeconfig: Kubeconfig,
    files: PathBuf,
}

impl Plugin {
    fn new(name: &str, server: &Server, ends: &str) -> Self {
        let files = std::env::temp_dir().join(format!("reveille-kube-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&files).unwrap();
        let text = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: c\n\
             clusters: [{{name: c, cluster: {{server: \"http://{}\"}}}}]\n\
             contexts: [{{name: c, context: {{cluster: c, user: u}}}}]\n\
             users:\n- name: u\n  user:\n    exec:\n      apiVersion: client.authentication.k8s.io/v1\n\
             \x20     interactiveMode: Never\n      command: sh\n      args:\n      - -c\n      - |\n\
             \x20       cd {}; echo run >> runs; test -e hangs && exec sleep 45\n\
             \x20       echo \"status: {{token: $(cat token), expirationTimestamp: '{ends}'}}\"\n",
            server.address,
            files.display()
        );
        let kubeconfig = Kubeconfig::write(name, "http://127.0.0.1:1", "t");
        std::fs::write(&kubeconfig.0, text).unwrap();
        Self { kubeconfig, files }
    }

    fn put(&self, file: &str, text: &str) {
        std::fs::write(self.files.join(file), text).unwrap();
    }

    fn runs(&self) -> usize {
        std::fs::read_to_string(self.files.join("runs")).unwrap().lines().count()
    }

    /// Waits until it ran so often.
    async fn ran(&self, times: usize) {
        for _ in 0..500 {
            if self.runs() >= times {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("it ran {} times and not {times}", self.runs());
    }
}

impl Drop for Plugin {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.files);
    }
}

#[tokio::test]
async fn a_renewal_that_hangs_is_one_process_and_holds_up_no_request() {
    let server = Server::start("good").await;
    let plugin = Plugin::new("hung", &server, "2000-01-01T00:00:00Z");
    plugin.put("token", "good");
    let cluster = Cluster::connect(&plugin.kubeconfig.config()).await.unwrap();
    assert_eq!(plugin.runs(), 1, "one run is one login");
    plugin.put("hangs", "");
    let look = Look::Node(NodeName::from("a"));
    for _ in 0..4 {
        let answer = tokio::time::timeout(Duration::from_secs(5), cluster.look(&look)).await;
        assert_eq!(answer.unwrap().unwrap(), Answer::Node(None));
        plugin.ran(2).await;
    }
    assert_eq!(plugin.runs(), 2, "one plugin hangs");
}

#[tokio::test]
async fn a_token_that_ends_soon_is_replaced_before_it_is_refused() {
    let server = Server::start("first").await;
    let plugin = Plugin::new("renewed", &server, "2000-01-01T00:00:00Z");
    plugin.put("token", "first");
    let cluster = Cluster::connect(&plugin.kubeconfig.config()).await.unwrap();
    plugin.put("token", "second");
    let look = Look::Node(NodeName::from("a"));
    assert_eq!(cluster.look(&look).await.unwrap(), Answer::Node(None), "with the first");
    plugin.ran(2).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    *server.accepts.lock().unwrap() = "second".to_owned();
    assert_eq!(cluster.look(&look).await.unwrap(), Answer::Node(None), "with the second");
    assert_eq!(server.seen.lock().unwrap().len(), 2, "none was refused");
    assert_eq!(plugin.runs(), 2, "renewals are not repeated at once");
}

#[tokio::test]
async fn no_secret_reaches_a_debug_output() {
    let kubeconfig = Kubeconfig::write("debug", "http://127.0.0.1:1", "s3cret");
    let cluster = Cluster::connect(&kubeconfig.config()).await.unwrap();
    assert_eq!(format!("{cluster:?}"), "Cluster { server: \"127.0.0.1:1\", .. }");
}

#[tokio::test]
async fn call_to_a_closed_port_fails_with_connection_refused() {
    let port = closed_port().await;
    let kubeconfig = Kubeconfig::write("closed", &format!("http://127.0.0.1:{port}"), "t");
    let cluster = Cluster::connect(&kubeconfig.config()).await.unwrap();
    let call =
        Call::DeleteNode(DeleteNode { name: NodeName::from("a"), uid: NodeUid::from("u"), boot_id: None });
    let outcome = cluster.perform(&call).await;
    assert!(matches!(outcome, Outcome::Failed { .. }), "{outcome:?}");
    let error = cluster.observe_once().await.unwrap_err();
    assert_eq!(error.kind, ReadErrorKind::Unavailable);
    assert_eq!(
        &*error.text,
        format!(
            "cluster: cannot read namespace kube-system: connection refused (127.0.0.1:{port}). No machine is marked as missing because of this."
        )
    );
}

#[tokio::test]
async fn a_connection_lost_after_sending_leaves_it_open_what_happened() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut some = [0_u8; 64];
            let _ = stream.read(&mut some).await;
        }
    });
    let kubeconfig = Kubeconfig::write("lost", &format!("http://{address}"), "t");
    let cluster = Cluster::connect(&kubeconfig.config()).await.unwrap();
    let call =
        Call::DeleteNode(DeleteNode { name: NodeName::from("a"), uid: NodeUid::from("u"), boot_id: None });
    let outcome = cluster.perform(&call).await;
    assert!(matches!(outcome, Outcome::Unknown { .. }), "{outcome:?}");
}

#[tokio::test]
async fn server_without_tls_is_a_failed_read_and_not_an_absence() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
        }
    });
    let kubeconfig = Kubeconfig::write("tls", &format!("https://{address}"), "t");
    let cluster = Cluster::connect(&kubeconfig.config()).await.unwrap();
    let (facts, mut told) = tokio::sync::mpsc::channel(64);
    let watching = tokio::spawn(async move {
        cluster.watch(facts, tokio::time::sleep(Duration::from_secs(10))).await;
    });
    let first = told.recv().await.unwrap();
    let ClusterFact::Failed(error) = first else { panic!("{first:?}") };
    assert_eq!(error.kind, ReadErrorKind::Unavailable, "{}", error.text);
    assert!(error.text.contains("corrupt message"), "{}", error.text);
    drop(told);
    watching.await.unwrap();
}

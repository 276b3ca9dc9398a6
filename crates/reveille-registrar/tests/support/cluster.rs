//! An API server that answers an agent's requests, at as many addresses as the test wants; the test can shut each of
//! them.

#![allow(dead_code, clippy::unwrap_used, reason = "a test's support; each test file uses a part")]

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use reveille_node::agent::Shelf;
use reveille_node::certificate::Presented;
use reveille_wire::agent::plan::{JoinOrder, Plan, Step};
use reveille_wire::agent::text::{List, Word};
use reveille_wire::agent::{Distribution, Role};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

pub(crate) struct Cluster {
    authority: CertifiedIssuer<'static, KeyPair>,
}

/// One address of the API server.
pub(crate) struct ApiServer {
    pub(crate) address: String,
    open: Arc<AtomicBool>,
    connections: Arc<AtomicUsize>,
}

impl ApiServer {
    pub(crate) fn set(&self, open: bool) {
        self.open.store(open, Ordering::SeqCst);
    }

    /// The number of connections so far.
    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

impl Cluster {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self { authority: CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap() }
    }

    pub(crate) fn pin(&self) -> String {
        Presented::read(self.authority.der()).key.unwrap().to_string()
    }

    pub(crate) async fn api_server(&self) -> ApiServer {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.authority).unwrap();
        let provider = Arc::new(tokio_rustls::rustls::crypto::aws_lc_rs::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(
                vec![certificate.der().clone()],
                PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
            )
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let info = Arc::new(self.cluster_info(&address));
        let open = Arc::new(AtomicBool::new(true));
        let connections = Arc::new(AtomicUsize::new(0));
        let (is_open, count) = (Arc::clone(&open), Arc::clone(&connections));
        tokio::spawn(async move {
            while let Ok((tcp, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::SeqCst);
                // At a shut address, a client's connection is closed at once.
                if is_open.load(Ordering::SeqCst) {
                    tokio::spawn(answer(acceptor.clone(), tcp, Arc::clone(&info), Arc::clone(&is_open)));
                }
            }
        });
        ApiServer { address, open, connections }
    }

    /// A plan that joins through this address, as an agent keeps it on its disk. The agent of this directory has joined
    /// this machine before: no server orders a join now.
    pub(crate) fn has_joined(&self, api_server: &ApiServer, folder: &Path, node: &str) -> (Shelf, Plan) {
        let (shelf, plan) = (Shelf::within(folder), self.plan(api_server, node));
        shelf.keep(&plan).unwrap();
        shelf.mark_joined(&plan).unwrap();
        (shelf, plan)
    }

    pub(crate) fn plan(&self, api_server: &ApiServer, node_name: &str) -> Plan {
        let join = JoinOrder {
            distribution: Distribution::Kubeadm,
            server: Word::cut(&api_server.address),
            ca_pins: List::first([Word::cut(&self.pin())]),
            node_name: Word::cut(node_name),
            labels: Default::default(),
            taints: List::default(),
            config: None,
        };
        let mut plan = Plan {
            version: 1,
            checksum: Word::default(),
            roles: List::first([Role::Worker]),
            steps: List::first([Step::Join(join)]),
        };
        let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, &plan.canonical());
        let hex: String = digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        plan.checksum = Word::cut(&format!("sha256:{hex}"));
        plan
    }

    /// The kubeconfig of a kubelet that has joined through this address. The API server decides what its certificate is
    /// worth.
    pub(crate) fn kubelet_conf(&self, api_server: &ApiServer) -> String {
        let key = KeyPair::generate().unwrap();
        let own = CertificateParams::default().self_signed(&key).unwrap();
        json!({
            "current-context": "c",
            "clusters": [{ "name": "k", "cluster": {
                "server": format!("https://{}", api_server.address),
                "certificate-authority-data": STANDARD.encode(self.authority.pem()),
            } }],
            "contexts": [{ "name": "c", "context": { "cluster": "k", "user": "u" } }],
            "users": [{ "name": "u", "user": {
                "client-certificate-data": STANDARD.encode(own.pem()),
                "client-key-data": STANDARD.encode(key.serialize_pem()),
            } }],
        })
        .to_string()
    }

    fn cluster_info(&self, address: &str) -> String {
        let authority = STANDARD.encode(self.authority.pem());
        let kubeconfig = json!({
            "apiVersion": "v1", "kind": "Config",
            "clusters": [{ "name": "", "cluster": {
                "server": format!("https://{address}"), "certificate-authority-data": authority,
            } }],
        });
        json!({ "data": { "kubeconfig": kubeconfig.to_string() } }).to_string()
    }
}

/// Answers one request after the other, as long as the address is open.
async fn answer(
    acceptor: TlsAcceptor,
    tcp: TcpStream,
    info: Arc<String>,
    is_open: Arc<AtomicBool>,
) -> std::io::Result<()> {
    let mut tls = acceptor.accept(tcp).await?;
    loop {
        let mut head = Vec::new();
        let mut part = [0; 1024];
        while !head.windows(4).any(|four| four == b"\r\n\r\n") {
            match tls.read(&mut part).await? {
                0 => return Ok(()),
                count => head.extend_from_slice(&part[..count]),
            }
        }
        if !is_open.load(Ordering::SeqCst) {
            return Ok(());
        }
        let path = String::from_utf8_lossy(&head);
        let path = path.split(' ').nth(1).unwrap_or_default();
        let body = match path {
            path if path.ends_with("/cluster-info") => info.to_string(),
            path if path.starts_with("/api/v1/nodes/") => ready_node(),
            _ => "{}".to_owned(),
        };
        let length = body.len();
        let text = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
        );
        tls.write_all(text.as_bytes()).await?;
        tls.flush().await?;
    }
}

fn ready_node() -> String {
    let ready = json!({ "type": "Ready", "status": "True", "message": "" });
    json!({ "metadata": { "name": "w-1", "uid": "u-1" }, "status": { "conditions": [ready] } }).to_string()
}

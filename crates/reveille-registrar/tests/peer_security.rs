//! Attackers that connect to an agent's listener for peers, and attackers at the address of a peer: each over real
//! sockets.

#![allow(clippy::unwrap_used, reason = "in a test, what cannot be is a failure")]

mod support;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use reveille_agent::model::PeerAnswer;
use reveille_core::model::id::NodeName;
use reveille_node::link::Keyring;
use reveille_node::peers::{Listener, PeerSet};
use reveille_wire::agent::frame::Peer;
use reveille_wire::agent::peer::REQUEST;
use reveille_wire::agent::text::{List, Word};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, ServerConfig, SignatureScheme, SupportedProtocolVersion};
use support::{Site, site, who};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::{TlsAcceptor, TlsConnector, rustls};

const PROTOCOL: &[u8] = b"reveille-peer/1";

/// An enrolled machine, with its files.
struct Machine {
    folder: TempDir,
    keyring: Keyring,
    peer_set: Arc<PeerSet>,
}

impl Machine {
    async fn new(site: &Site, number: u32) -> Self {
        let invited = site.invite(|_| {}).await;
        let (credential, kept) = site.enrol(&invited.token, &who(number)).await.unwrap();
        let folder = TempDir::new().unwrap();
        let keyring = Keyring::keep(&folder.path().join("link"), credential, kept).unwrap();
        let peer_set = Arc::new(PeerSet::remembering(folder.path(), None));
        peer_set.shows(&keyring);
        Self { folder, keyring, peer_set }
    }

    /// Opens the agent's listener.
    async fn opens(&self) -> SocketAddr {
        let listener = Listener::bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let at = listener.address().unwrap();
        tokio::spawn(listener.run(Arc::clone(&self.peer_set)));
        at
    }

    /// Tells this machine that the machine `of` answers at `at`, and asks it.
    async fn asks(&self, of: &Self, at: SocketAddr) -> Option<PeerAnswer> {
        self.peer_set.know(&[Peer {
            machine: of.keyring.kept.machine.clone(),
            node_name: "w".into(),
            zone: None,
            addresses: List::default(),
            answers_at: Some(Word::cut(&at.to_string())),
        }]);
        self.peer_set.ask(&NodeName::from("w"), Duration::from_secs(20)).await
    }

    fn shown(&self) -> Shown {
        let pem = std::fs::read(self.folder.path().join("link/link.pem")).unwrap();
        let own = CertificateDer::pem_slice_iter(&pem);
        let behind = CertificateDer::pem_slice_iter(self.keyring.kept.authorities.as_bytes());
        let chain = own.chain(behind).collect::<Result<_, _>>().unwrap();
        (chain, PrivateKeyDer::from_pem_slice(&pem).unwrap())
    }
}

type Shown = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

/// A certificate with this name by a foreign authority, shown with `behind` behind it or with its own authority.
fn stranger(name: &str, behind: Option<CertificateDer<'static>>) -> Shown {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    let key = KeyPair::generate().unwrap();
    let leaf = params.signed_by(&key, &issuer).unwrap();
    let behind = behind.unwrap_or_else(|| issuer.der().clone());
    (vec![leaf.der().clone(), behind], PrivateKeyDer::try_from(key.serialize_der()).unwrap())
}

/// A verifier that accepts every server.
#[derive(Debug)]
struct AnyServer;

impl ServerCertVerifier for AnyServer {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }
    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }
    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }
    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        let provider = rustls::crypto::aws_lc_rs::default_provider();
        provider.signature_verification_algorithms.supported_schemes()
    }
}

/// Everything that the listener sends for these bytes until it closes the connection on its own.
async fn gets(
    at: SocketAddr,
    shown: Option<Shown>,
    version: &'static SupportedProtocolVersion,
    bytes: &[u8],
) -> String {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[version])
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AnyServer));
    let mut config = match shown {
        Some((chain, key)) => builder.with_client_auth_cert(chain, key).unwrap(),
        None => builder.with_no_client_auth(),
    };
    config.alpn_protocols = vec![PROTOCOL.to_vec()];
    let talk = async {
        let tcp = TcpStream::connect(at).await.unwrap();
        let name = ServerName::IpAddress(at.ip().into());
        let Ok(mut tls) = TlsConnector::from(Arc::new(config)).connect(name, tcp).await else {
            return String::new();
        };
        // The listener may close the connection before all bytes are sent.
        drop(tls.write_all(bytes).await);
        let mut answer = Vec::new();
        drop(tls.read_to_end(&mut answer).await);
        String::from_utf8_lossy(&answer).into_owned()
    };
    tokio::time::timeout(Duration::from_secs(30), talk).await.unwrap()
}

const TLS13: &SupportedProtocolVersion = &rustls::version::TLS13;

#[tokio::test]
async fn peer_of_the_same_server_gets_the_sighting_and_its_age() {
    let site = site().await;
    let (one, two) = (Machine::new(&site, 1).await, Machine::new(&site, 2).await);
    let at = two.opens().await;
    assert_eq!(one.asks(&two, at).await, Some(PeerAnswer::LostToo), "who has not looked reaches nothing");
    two.peer_set.saw(true);
    assert_eq!(one.asks(&two, at).await, Some(PeerAnswer::NoOrder));
    let answer = gets(at, Some(one.shown()), TLS13, REQUEST).await;
    assert!(answer.ends_with("\r\n\r\n{\"api\":\"answers\",\"age_s\":0}"), "{answer}");
    two.peer_set.saw(false);
    assert_eq!(one.asks(&two, at).await, Some(PeerAnswer::LostToo));
    site.end().await;
}

#[tokio::test]
async fn peer_without_a_certificate_of_our_authority_gets_no_answer() {
    let (site, other) = (site().await, support::site().await);
    let (one, of_another) = (Machine::new(&site, 1).await, Machine::new(&other, 1).await);
    one.peer_set.saw(true);
    let at = one.opens().await;
    let authority = one.shown().0.remove(1);
    for (why, shown) in [
        ("none at all", None),
        ("another authority's", Some(stranger("m-1", None))),
        ("another authority's, with ours behind it", Some(stranger("m-1", Some(authority)))),
        ("another registration server's", Some(of_another.shown())),
    ] {
        assert_eq!(gets(at, shown, TLS13, REQUEST).await, "", "{why}");
    }
    assert_eq!(gets(at, Some(one.shown()), &rustls::version::TLS12, REQUEST).await, "", "an older TLS");
    assert!(
        gets(at, Some(one.shown()), TLS13, REQUEST).await.starts_with("HTTP/1.1 200 "),
        "and one that is"
    );
    site.end().await;
    other.end().await;
}

#[tokio::test]
async fn oversized_malformed_or_slow_request_blocks_no_later_peer() {
    let site = site().await;
    let one = Machine::new(&site, 1).await;
    one.peer_set.saw(true);
    let at = one.opens().await;
    let long = [b"GET /v1/api HTTP/1.1\r\nhost: ".to_vec(), vec![b'x'; 1 << 20]].concat();
    for bytes in [&long[..], &[0; 4096], &REQUEST.to_ascii_lowercase()] {
        let answer = gets(at, Some(one.shown()), TLS13, bytes).await;
        assert!(!answer.contains("api\":"), "{answer}");
    }
    // Half a question, and then nothing: the listener closes the connection on its own.
    assert_eq!(gets(at, Some(one.shown()), TLS13, &REQUEST[..9]).await, "");
    // It also closes connections that never make a handshake. There are four places for one address.
    let mut silent = Vec::new();
    for _ in 0..40 {
        silent.push(TcpStream::connect(at).await.unwrap());
    }
    for mut tcp in silent {
        let mut one = [0];
        let closing = tokio::time::timeout(Duration::from_secs(30), tcp.read(&mut one));
        assert!(matches!(closing.await.unwrap(), Ok(0) | Err(_)));
    }
    assert!(gets(at, Some(one.shown()), TLS13, REQUEST).await.starts_with("HTTP/1.1 200 "));
    site.end().await;
}

/// Listens at the address of a peer, shows this certificate, and sends these bytes to each client.
async fn stands_in(shown: Shown, says: Vec<u8>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[TLS13])
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(shown.0, shown.1)
        .unwrap();
    config.alpn_protocols = vec![PROTOCOL.to_vec()];
    let acceptor = TlsAcceptor::from(Arc::new(config));
    tokio::spawn(async move {
        while let Ok((tcp, _)) = listener.accept().await {
            let Ok(mut tls) = acceptor.accept(tcp).await else { continue };
            drop(tls.read(&mut [0; 1024]).await);
            drop(tls.write_all(&says).await);
            drop(tls.shutdown().await);
        }
    });
    at
}

#[tokio::test]
async fn answer_of_an_impostor_peer_is_ignored() {
    let site = site().await;
    let (one, two) = (Machine::new(&site, 1).await, Machine::new(&site, 2).await);
    let three = Machine::new(&site, 3).await;
    let says = b"HTTP/1.1 200 OK\r\n\r\n{\"api\":\"answers\",\"age_s\":0}".to_vec();
    let strange = stranger(two.keyring.kept.machine.as_str(), None);
    let at = stands_in(strange, says.clone()).await;
    assert_eq!(one.asks(&two, at).await, None, "another authority's certificate with its name");
    let at = stands_in(three.shown(), says.clone()).await;
    assert_eq!(one.asks(&two, at).await, None, "a machine that speaks for another");
    assert_eq!(one.asks(&three, at).await, Some(PeerAnswer::NoOrder), "for itself it may speak");
    for lie in [
        b"HTTP/1.1 200 OK\r\n\r\n{\"api\":\"answers\",\"age_s\":0}".repeat(100),
        b"HTTP/1.1 500 no\r\n\r\n{\"api\":\"answers\",\"age_s\":0}".to_vec(),
        b"HTTP/1.1 200 OK\r\n\r\n{\"api\":\"answers\",\"age_s\":-1}".to_vec(),
        Vec::new(),
    ] {
        let at = stands_in(three.shown(), lie).await;
        assert_eq!(one.asks(&three, at).await, None, "what is no answer is none");
    }
    for old in
        ["{\"api\":\"answers\",\"age_s\":31}", "{\"api\":\"answers\"}", "{\"api\":\"reboot\",\"age_s\":0}"]
    {
        let at = stands_in(three.shown(), format!("HTTP/1.1 200 OK\r\n\r\n{old}").into_bytes()).await;
        assert_eq!(one.asks(&three, at).await, Some(PeerAnswer::LostToo), "{old}");
    }
    site.end().await;
}

#[tokio::test]
async fn peer_certificate_is_refused_as_registration_server() {
    let site = site().await;
    let one = Machine::new(&site, 1).await;
    let at = stands_in(one.shown(), Vec::new()).await;
    let mut link = site.link.clone();
    link.server.port = at.port();
    let error = link.ping().await.unwrap_err();
    assert!(matches!(error, reveille_node::link::LinkError::Tls { .. }), "{error}");
    site.end().await;
}

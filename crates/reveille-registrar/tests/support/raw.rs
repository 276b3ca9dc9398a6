//! Raw bytes and handshakes: what a peer sends that does not follow the protocol.

#![allow(dead_code, clippy::unwrap_used, reason = "a test's support; each test file uses a part")]

use std::sync::Arc;
use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, DistinguishedName, DnType, IsCa, Issuer, KeyPair};
use reveille_node::link::{Credential, Kept, Keyring, Link};
use reveille_wire::agent::text::Word;
use reveille_wire::agent::{Refused, ServerFrame};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{self, ClientConfig, SupportedProtocolVersion};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::Role;

/// A key and a chain to show.
pub(crate) struct Shown {
    pub(crate) chain: Vec<CertificateDer<'static>>,
    pub(crate) key: PrivateKeyDer<'static>,
}

/// A leaf, and six levels of foreign authorities, `each` of them on a level. Every authority may have signed every one of
/// the level below, whose certificates name it.
pub(crate) fn maze(each: usize) -> Shown {
    let named = |number: usize| {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, number.to_string());
        if number > 0 {
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        }
        params
    };
    let issuer = |number: usize| Issuer::new(named(number), KeyPair::generate().unwrap());
    let key = KeyPair::generate().unwrap();
    let mut chain = vec![named(0).signed_by(&key, &issuer(1)).unwrap().der().clone()];
    for number in 1..=6 {
        let above = issuer(number + 1);
        let own = || named(number).signed_by(&KeyPair::generate().unwrap(), &above).unwrap().der().clone();
        chain.extend((0..each).map(|_| own()));
    }
    Shown { chain, key: PrivateKeyDer::try_from(key.serialize_der()).unwrap() }
}

/// A machine's credential, as it is on its disk.
pub(crate) fn shown(credential: Credential) -> Shown {
    let folder = tempfile::TempDir::new().unwrap();
    let kept = Kept {
        server: String::new(),
        ca_pins: vec![],
        machine: Word::default(),
        node_name: Word::default(),
        renew_at: Default::default(),
        renew_after_s: None,
        authorities: String::new(),
    };
    Keyring::keep(folder.path(), credential, kept).unwrap();
    let pem = std::fs::read(folder.path().join("link.pem")).unwrap();
    let chain = CertificateDer::pem_slice_iter(&pem).collect::<Result<_, _>>().unwrap();
    Shown { chain, key: PrivateKeyDer::from_pem_slice(&pem).unwrap() }
}

/// Makes a handshake with only these versions of TLS.
pub(crate) async fn dial(
    link: &Link,
    shown: Option<&Shown>,
    versions: &[&'static SupportedProtocolVersion],
) -> std::io::Result<TlsStream<TcpStream>> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(versions)
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(link.pins.clone().verifier());
    let config = match shown {
        Some(shown) => builder.with_client_auth_cert(shown.chain.clone(), shown.key.clone_key()).unwrap(),
        None => builder.with_no_client_auth(),
    };
    let tcp = TcpStream::connect((link.server.host.as_str(), link.server.port)).await?;
    let name = ServerName::try_from(link.server.host.clone()).unwrap();
    TlsConnector::from(Arc::new(config)).connect(name, tcp).await
}

pub(crate) async fn tls13(link: &Link, shown: Option<&Shown>) -> TlsStream<TcpStream> {
    dial(link, shown, &[&rustls::version::TLS13]).await.unwrap()
}

/// Sends bytes and reads until the other side closes, or has sent enough.
pub(crate) async fn say(mut stream: TlsStream<TcpStream>, bytes: &[u8]) -> String {
    // The server may answer and close before all bytes are sent.
    drop(stream.write_all(bytes).await);
    let mut answer = Vec::new();
    let mut part = [0; 4096];
    let reading = async {
        while let Ok(count @ 1..) = stream.read(&mut part).await {
            answer.extend_from_slice(&part[..count]);
            if is_whole(&answer) {
                break;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(30), reading).await.unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

fn is_whole(answer: &[u8]) -> bool {
    let text = String::from_utf8_lossy(answer);
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head
        .lines()
        .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length:")?.trim().parse().ok());
    length.is_some_and(|length: usize| body.len() >= length)
}

/// A request as text.
pub(crate) fn post(path: &str, headers: &str, body: &str) -> Vec<u8> {
    format!("POST {path} HTTP/1.1\r\nhost: x\r\n{headers}content-length: {}\r\n\r\n{body}", body.len())
        .into_bytes()
}

/// The status and refusal of an answer.
pub(crate) fn refused(answer: &str) -> (u16, Refused) {
    let status = answer
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok())
        .unwrap_or_else(|| panic!("{answer:?}"));
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    (status, serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {answer}")))
}

/// A machine's end of a session.
pub(crate) type Socket = WebSocketStream<TlsStream<TcpStream>>;

/// Opens a WebSocket by hand.
pub(crate) async fn socket(link: &Link, shown: &Shown) -> Socket {
    let mut stream = tls13(link, Some(shown)).await;
    let ask = "GET /v1/session HTTP/1.1\r\nhost: x\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\
        sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    stream.write_all(ask.as_bytes()).await.unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    let head = String::from_utf8_lossy(&head).to_ascii_lowercase();
    assert!(head.starts_with("http/1.1 101") && head.contains("s3pplmbitxaq9kygzzhzrbk+xoo="), "{head}");
    WebSocketStream::from_raw_socket(stream, Role::Client, None).await
}

/// The refusal in a frame.
pub(crate) fn refusal(text: &str) -> Option<Refused> {
    let numbered: reveille_wire::agent::Numbered<ServerFrame> = serde_json::from_str(text).ok()?;
    match numbered.frame {
        ServerFrame::Refuse(refused) => Some(refused),
        _ => None,
    }
}

//! A connection to the server: DNS, TCP, TLS, each with its own deadline and its own failure.
//!
//! When the other end does not speak TLS, it gets one request in clear text. A captive portal and a server on the wrong
//! port both identify themselves in their first line. The request holds nothing of ours.

use std::sync::Arc;

use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use reveille_wire::agent::Reason;
use reveille_wire::agent::reason::Answered;
use reveille_wire::agent::text::{List, Word};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, InvalidMessage};

use super::http::{self, Line};
use super::{Credential, Link, LinkError, STEP_WITHIN};
use crate::certificate::Presented;
use crate::pins::{self, PinMismatch};

/// Connects, with the machine's certificate where there is one.
pub(super) async fn dial(link: &Link, credential: Option<&Credential>) -> Result<Line, LinkError> {
    let tcp = connect(link).await?;
    let tls = shake_hands(link, credential, tcp).await?;
    // The verifier found it in the same chain.
    let chain = tls.get_ref().1.peer_certificates().unwrap_or_default();
    let known_by = link.pins.find(chain).ok().and_then(|anchor| Presented::read(anchor).key);
    let known_by = known_by.ok_or_else(|| link.broken("it showed no certificate"))?;
    let (sender, connection) =
        http1::handshake(TokioIo::new(tls)).await.map_err(|error| link.broken(error))?;
    let driven = tokio::spawn(async move {
        // The task that waits for the answer learns how the connection ended.
        drop(connection.with_upgrades().await);
    });
    Ok(Line::new(link.clone(), sender, driven.abort_handle(), known_by))
}

async fn connect(link: &Link) -> Result<TcpStream, LinkError> {
    let (host, port) = (link.server.host.as_str(), link.server.port);
    let resolved = timeout(STEP_WITHIN, tokio::net::lookup_host((host, port))).await;
    let addresses = resolved
        .map_err(|_| link.late("resolving the name", STEP_WITHIN))?
        .map_err(|source| LinkError::Resolve { host: host.to_owned(), source })?;
    let mut last = std::io::Error::from(std::io::ErrorKind::NotFound);
    for address in addresses {
        match timeout(STEP_WITHIN, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => {
                // Frames are small and answer each other: Nagle's algorithm would delay them.
                drop(stream.set_nodelay(true));
                return Ok(stream);
            }
            Ok(Err(error)) => last = error,
            Err(_) => last = std::io::Error::from(std::io::ErrorKind::TimedOut),
        }
    }
    Err(LinkError::Connect { server: link.server.to_string(), source: last })
}

async fn shake_hands(
    link: &Link,
    credential: Option<&Credential>,
    tcp: TcpStream,
) -> Result<TlsStream<TcpStream>, LinkError> {
    let failed = |what: String| LinkError::Tls { server: link.server.to_string(), what };
    let config = configure(link, credential).map_err(|error| failed(error.to_string()))?;
    let name = ServerName::try_from(link.server.host.clone()).map_err(|error| failed(error.to_string()))?;
    let shaken = timeout(STEP_WITHIN, TlsConnector::from(Arc::new(config)).connect(name, tcp)).await;
    let error = match shaken.map_err(|_| link.late("the TLS handshake", STEP_WITHIN))? {
        Ok(stream) => return Ok(stream),
        Err(error) => error,
    };
    let Some(tls) = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) else {
        return Err(failed(error.to_string()));
    };
    if let Some(mismatch) = PinMismatch::of(tls) {
        let pins = mismatch.presented.iter().filter_map(|certificate| certificate.key);
        let presented = List::first(pins.map(|pin| Word::cut(&pin.to_string())));
        return Err(LinkError::refused(Reason::CaPinMismatch { presented }));
    }
    if matches!(tls, rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType)) {
        return Err(ask_in_the_clear(link)
            .await
            .unwrap_or_else(|| failed("it does not speak TLS".to_owned())));
    }
    Err(failed(pins::explain(tls)))
}

/// Only TLS 1.3: both ends are ours, so no older version is ever needed, and a downgrade is a failure.
fn configure(link: &Link, credential: Option<&Credential>) -> Result<ClientConfig, rustls::Error> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(link.pins.clone().verifier());
    let mut config = match credential {
        Some(credential) => {
            builder.with_client_auth_cert(credential.chain.clone(), credential.key.clone_key())?
        }
        None => builder.with_no_client_auth(),
    };
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    config.resumption = rustls::client::Resumption::disabled();
    Ok(config)
}

/// Asks an endpoint that does not speak TLS what it is.
async fn ask_in_the_clear(link: &Link) -> Option<LinkError> {
    let asked = async {
        let mut stream = connect(link).await.ok()?;
        let question = format!(
            "GET {} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n",
            reveille_wire::agent::path::PING,
            link.server
        );
        stream.write_all(question.as_bytes()).await.ok()?;
        let mut answer = Vec::new();
        stream.take(4096).read_to_end(&mut answer).await.ok()?;
        Some(answer)
    };
    let answer = timeout(STEP_WITHIN, asked).await.ok().flatten()?;
    let text = String::from_utf8_lossy(&answer);
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or(("", &text));
    let header = |name: &str| {
        let lines = head.lines().filter_map(|line| line.split_once(':'));
        let mut found = lines.filter(|(key, _)| key.trim().eq_ignore_ascii_case(name));
        found.next().map(|(_, value)| value.trim()).unwrap_or_default().to_owned()
    };
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    let answered = Answered {
        status,
        server: Word::cut(&header("server")),
        content_type: Word::cut(&header("content-type")),
        begins: http::beginning(body.as_bytes()),
    };
    Some(LinkError::refused(http::wrong_server(answered, !header("via").is_empty())))
}

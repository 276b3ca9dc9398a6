//! Asking one peer: a connection, the fixed request, a short answer. The caller sets the deadline.

use std::sync::Arc;

use reveille_wire::agent::peer::{ANSWER_BYTES_MAX, REQUEST, Saw};
use reveille_wire::agent::read;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::ServerName;

use super::{Known, trust};

/// The peer's answer, or why there is none.
pub(super) async fn ask(known: &Known, config: Arc<ClientConfig>) -> Result<Saw, String> {
    let tcp = TcpStream::connect(known.at).await.map_err(|error| error.to_string())?;
    let name = ServerName::IpAddress(known.at.ip().into());
    let mut tls = TlsConnector::from(config).connect(name, tcp).await.map_err(|error| error.to_string())?;
    let shown = trust::machine(tls.get_ref().1.peer_certificates());
    if shown.as_deref() != Some(known.machine.as_str()) {
        return Err("another machine answers there".to_owned());
    }
    tls.write_all(REQUEST).await.map_err(|error| error.to_string())?;
    tls.flush().await.map_err(|error| error.to_string())?;
    let mut answer = Vec::new();
    let mut bounded = tls.take(ANSWER_BYTES_MAX as u64 + 1);
    // How the peer closes does not matter: a whole answer counts.
    let ended = bounded.read_to_end(&mut answer).await;
    if answer.len() > ANSWER_BYTES_MAX {
        return Err(format!("more than {ANSWER_BYTES_MAX} bytes"));
    }
    let head = answer.windows(4).position(|four| four == b"\r\n\r\n");
    let Some(head) = head.filter(|_| answer.starts_with(b"HTTP/1.1 200 ")) else {
        return Err(ended
            .err()
            .map_or_else(|| "no answer to the question".to_owned(), |error| error.to_string()));
    };
    read(&answer[head + 4..], ANSWER_BYTES_MAX).map_err(|bad| bad.to_string())
}

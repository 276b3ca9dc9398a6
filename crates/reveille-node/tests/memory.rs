//! The memory of an agent, in a process of its own: its peak is the whole process's.
#![allow(clippy::unwrap_used, reason = "in a test, what cannot be is a failure")]

use std::fs;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use reveille_node::certificate::Presented;
use reveille_node::link::Link;
use reveille_node::pin::Pins;
use reveille_node::target::Endpoint;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::rustls::{self, ServerConfig};

/// Of this process, in KiB.
fn status(name: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap().to_owned();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// A registration server that was taken over, or what answers the doctor in its place. Each chunk of a body has a buffer of its
/// own, for as long as it is kept.
#[tokio::test]
async fn answer_of_a_byte_to_a_chunk_fills_no_memory_of_an_agent() {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let leaf =
        CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap().signed_by(&key, &issuer).unwrap();
    let chain = vec![leaf.der().clone(), issuer.der().clone()];
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, PrivateKeyDer::try_from(key.serialize_der()).unwrap())
        .unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let mut stream = TlsAcceptor::from(Arc::new(config)).accept(stream).await.unwrap();
        let _ = stream.read(&mut [0; 4096]).await;
        let head = "HTTP/1.1 200 OK\r\nserver: reveille\r\ntransfer-encoding: chunked\r\n\r\n";
        stream.write_all(head.as_bytes()).await.unwrap();
        let some = "1\r\n \r\n".repeat(1000);
        for _ in 0..1040 {
            if stream.write_all(some.as_bytes()).await.is_err() {
                return;
            }
        }
        let _ = stream.write_all(b"0\r\n\r\n").await;
        let _ = stream.flush().await;
    });
    let pin = Presented::read(issuer.der()).key.unwrap();
    let link =
        Link { server: Endpoint { host: "127.0.0.1".to_owned(), port }, pins: Pins::new(vec![pin]).unwrap() };
    fs::write("/proc/self/clear_refs", "5").unwrap();
    let before = status("VmHWM:");
    let answered = link.ping().await;
    let grew = status("VmHWM:") - before;
    println!("{grew} KiB for an answer of 1,015 KiB: {:?}", answered.map_err(|error| error.to_string()));
    assert!(grew < 8 * 1024, "{grew} KiB for an answer of which 1 MiB is taken");
}

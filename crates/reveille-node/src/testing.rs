//! CAs, servers and handshakes for tests; compiled for tests only.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType, ExtendedKeyUsagePurpose,
    IsCa, Issuer, KeyPair, date_time_ymd,
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio_rustls::rustls;

use rustls::client::danger::ServerCertVerifier;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};

use crate::certificate::Presented;
use crate::pin::Pin;

/// A CA that was made for a test.
pub(crate) struct Authority(CertifiedIssuer<'static, KeyPair>);

/// A server's chain and key.
pub(crate) struct Server {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
}

impl Authority {
    pub(crate) fn new(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, name);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    /// A CA below this one.
    pub(crate) fn authority(&self, name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, name);
        Self(CertifiedIssuer::signed_by(params, KeyPair::generate().unwrap(), &self.0).unwrap())
    }

    /// A CA of that name, signed by an attacker under the name of its issuer.
    pub(crate) fn forged(name: &str, issuer: &str) -> CertificateDer<'static> {
        Self::new(issuer).authority(name).der()
    }

    pub(crate) fn der(&self) -> CertificateDer<'static> {
        self.0.der().clone()
    }

    pub(crate) fn pin(&self) -> Pin {
        Presented::read(&self.der()).key.unwrap()
    }

    pub(crate) fn server(&self, name: &str) -> Server {
        self.server_of(name, 2020..2120)
    }

    /// A client certificate and key, PEM.
    pub(crate) fn client(&self, name: &str) -> (String, String) {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, name);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let key = KeyPair::generate().unwrap();
        (params.signed_by(&key, &self.0).unwrap().pem(), key.serialize_pem())
    }

    pub(crate) fn server_of(&self, name: &str, years: Range<i32>) -> Server {
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        params.not_before = date_time_ymd(years.start, 1, 1);
        params.not_after = date_time_ymd(years.end, 1, 1);
        let key = KeyPair::generate().unwrap();
        let cert = params.signed_by(&key, &self.0).unwrap();
        Server {
            chain: vec![cert.der().clone(), self.der()],
            key: PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
        }
    }
}

/// A request as a test server received it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Heard {
    pub(crate) path: String,
    /// Header names are in lower case.
    pub(crate) headers: BTreeMap<String, String>,
    /// The client showed a certificate of the server's CA.
    pub(crate) has_certificate: bool,
}

/// A server that runs as long as this value lives.
pub(crate) struct Serving {
    pub(crate) port: u16,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// HTTPS on 127.0.0.1 with a certificate of this CA, each request answered by `answer`.
pub(crate) async fn serve(
    authority: &Authority,
    answer: impl Fn(&Heard) -> (u16, Vec<u8>) + Send + Sync + 'static,
) -> Serving {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let config = authority.server("127.0.0.1").config_for_clients_of(authority);
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    let answer = Arc::new(answer);
    let task = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, answer) = (acceptor.clone(), Arc::clone(&answer));
            tokio::spawn(async move {
                let Ok(mut stream) = acceptor.accept(stream).await else { return };
                let has_certificate = stream.get_ref().1.peer_certificates().is_some();
                let mut read = Vec::new();
                while !read.ends_with(b"\r\n\r\n") {
                    match stream.read_u8().await {
                        Ok(byte) => read.push(byte),
                        Err(_) => return,
                    }
                }
                let text = String::from_utf8(read).unwrap();
                let mut lines = text.lines();
                let path = lines.next().unwrap().split(' ').nth(1).unwrap().to_owned();
                let pair = |line: &str| {
                    let (name, value) = line.split_once(": ")?;
                    Some((name.to_lowercase(), value.to_owned()))
                };
                let (status, body) =
                    answer(&Heard { path, headers: lines.filter_map(pair).collect(), has_certificate });
                let head = format!(
                    "HTTP/1.1 {status} x\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                    body.len()
                );
                stream.write_all(head.as_bytes()).await.ok();
                stream.write_all(&body).await.ok();
                stream.shutdown().await.ok();
            });
        }
    });
    Serving { port, task }
}

impl Server {
    fn config_for_clients_of(self, authority: &Authority) -> rustls::ServerConfig {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut roots = rustls::RootCertStore::empty();
        roots.add(authority.der()).unwrap();
        let clients = rustls::server::WebPkiClientVerifier::builder_with_provider(
            Arc::new(roots),
            Arc::clone(&provider),
        );
        rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_client_cert_verifier(clients.allow_unauthenticated().build().unwrap())
            .with_single_cert(self.chain, self.key)
            .unwrap()
    }

    /// The same server, with another CA's certificate behind its own.
    pub(crate) fn presenting(mut self, authority: &Authority) -> Self {
        self.chain.truncate(1);
        self.chain.push(authority.der());
        self
    }

    /// The presented chain.
    pub(crate) fn shown(self) -> Vec<CertificateDer<'static>> {
        self.chain
    }

    pub(crate) fn config(self) -> rustls::ServerConfig {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(self.chain, self.key)
            .unwrap()
    }
}

/// A handshake without a network. Returns the client's result.
pub(crate) async fn shake_hands(
    server: Server,
    name: &str,
    verifier: Arc<dyn ServerCertVerifier>,
) -> Result<(), rustls::Error> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let client = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    let (near, far) = tokio::io::duplex(64 * 1024);
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(server.config()));
    let connector = tokio_rustls::TlsConnector::from(Arc::new(client));
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let (_, answer) = tokio::join!(acceptor.accept(far), connector.connect(name, near));
    answer.map(|_| ()).map_err(|failure| {
        failure.get_ref().and_then(|cause| cause.downcast_ref::<rustls::Error>()).unwrap().clone()
    })
}

/// Six levels of CAs, `each` of them on a level. Every one may have signed every one of the level below, whose
/// certificates name it. A leaf of that name is in front. No trusted CA signed any of them.
pub(crate) fn maze(each: usize, name: &str) -> Vec<CertificateDer<'static>> {
    let named = |name: &str| {
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, name);
        params
    };
    let level = |number: usize| {
        let mut params = named(&number.to_string());
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params
    };
    let issuer = |number: usize| Issuer::new(level(number), KeyPair::generate().unwrap());
    let signed = |params: CertificateParams, by: &Issuer<'_, KeyPair>| {
        params.signed_by(&KeyPair::generate().unwrap(), by).unwrap().der().clone()
    };
    let mut chain = vec![signed(named(name), &issuer(1))];
    for number in 1..=6 {
        let above = issuer(number + 1);
        chain.extend((0..each).map(|_| signed(level(number), &above)));
    }
    chain
}

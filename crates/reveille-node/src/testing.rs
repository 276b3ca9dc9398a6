//! Authorities, servers and handshakes for tests; compiled for tests only.

use std::ops::Range;
use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType, IsCa, KeyPair,
    date_time_ymd,
};
use tokio_rustls::rustls;

use rustls::client::danger::ServerCertVerifier;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};

use crate::certificate::Presented;
use crate::pin::Pin;

/// An authority that was made for a test.
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

    pub(crate) fn der(&self) -> CertificateDer<'static> {
        self.0.der().clone()
    }

    pub(crate) fn pin(&self) -> Pin {
        Presented::read(&self.der()).key.unwrap()
    }

    pub(crate) fn server(&self, name: &str) -> Server {
        self.server_of(name, 2020..2120)
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

impl Server {
    /// The same server, with another authority's certificate behind its own.
    pub(crate) fn presenting(mut self, authority: &Authority) -> Self {
        self.chain.truncate(1);
        self.chain.push(authority.der());
        self
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

/// A handshake without a network; what the client says of it.
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

//! What tests of an agent's link share: an authority, a TLS server of it in this process, and a machine that it enrolled.

#![allow(dead_code, unreachable_pub, reason = "each test binary uses a part of it")]

use std::fs;
use std::path::Path;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use reveille_core::model::time::Time;
use reveille_node::certificate::Presented;
use reveille_node::link::{Kept, Keyring};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::rustls::{self, ServerConfig};

pub type Issuer = CertifiedIssuer<'static, KeyPair>;

pub fn authority() -> Issuer {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

pub fn signed(issuer: &Issuer, key: &KeyPair) -> String {
    CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap().signed_by(key, issuer).unwrap().pem()
}

/// A free port on the loopback, and the TLS of a server there that this authority certifies.
pub async fn listens(issuer: &Issuer) -> (TcpListener, TlsAcceptor, u16) {
    let key = KeyPair::generate().unwrap();
    let leaf = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap().signed_by(&key, issuer).unwrap();
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
    (listener, TlsAcceptor::from(Arc::new(config)), port)
}

/// A machine that this authority enrolled, and that asks the server at this port.
pub fn enrolled(folder: &Path, issuer: &Issuer, port: u16) -> Keyring {
    let key = KeyPair::generate().unwrap();
    fs::write(folder.join("link.pem"), key.serialize_pem() + &signed(issuer, &key)).unwrap();
    let kept = Kept {
        server: format!("127.0.0.1:{port}"),
        ca_pins: vec![Presented::read(issuer.der()).key.unwrap().to_string()],
        machine: "m-1".into(),
        node_name: "w-1".into(),
        renew_at: Time::default(),
        renew_after_s: Some(60),
        authorities: issuer.pem(),
    };
    fs::write(folder.join("link.json"), serde_json::to_vec(&kept).unwrap()).unwrap();
    Keyring::open(folder).unwrap().unwrap()
}

/// A figure of this process's memory, in KiB.
pub fn status(name: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap().to_owned();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

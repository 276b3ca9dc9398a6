//! Which machines are peers: those with a certificate of the registration server's authority, and no others.
//!
//! A machine's certificate is for clients only. With a certificate for servers, a machine could pose as the registration
//! server, whose authority is the same. So both ends judge each other as a server judges its client: by a pinned
//! authority that is presented with the certificate. The name in the certificate says which machine it is. Each agent has
//! pins and not a copy of the authority, because a rotation reaches it with its next welcome.

use std::sync::Arc;

use tokio_rustls::rustls;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, DistinguishedName, ServerConfig, SignatureScheme,
};
use x509_parser::prelude::{FromDer as _, X509Certificate};

use crate::link::Keyring;
use crate::pins::{Pins, TrustError};
use crate::short_chain::CHAIN_MOST;
use crate::verifier::{Chain, Judge, Judged};

/// The TLS configurations of this machine as the asking side and as the answering side.
pub(super) fn configure(keyring: &Keyring) -> Result<(Arc<ClientConfig>, Arc<ServerConfig>), String> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let pins = keyring.pins().ok_or("its pins cannot be read")?;
    let chain = keyring.chain();
    if chain.len() < 2 {
        return Err("the authority's certificate is not there until this machine's is renewed".to_owned());
    }
    let members = Arc::new(Judged::by(Members(pins)));
    let failed = |error: rustls::Error| error.to_string();
    let mut client = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(failed)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::clone(&members) as Arc<dyn ServerCertVerifier>)
        .with_client_auth_cert(chain.clone(), keyring.key())
        .map_err(failed)?;
    client.resumption = rustls::client::Resumption::disabled();
    // The protocol of the connection: a registration server, which shares the authority, uses another one.
    client.alpn_protocols = vec![PROTOCOL.to_vec()];
    client.enable_sni = false;
    let mut server = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(failed)?
        .with_client_cert_verifier(members)
        .with_single_cert(chain, keyring.key())
        .map_err(failed)?;
    server.alpn_protocols = vec![PROTOCOL.to_vec()];
    // The server issues no tickets: every connection is judged again.
    server.send_tls13_tickets = 0;
    server.session_storage = Arc::new(rustls::server::NoServerSessionStorage {});
    Ok((Arc::new(client), Arc::new(server)))
}

/// The protocol between agents.
const PROTOCOL: &[u8] = b"reveille-peer/1";

/// Accepts the machines of one registration server.
#[derive(Debug)]
struct Members(Pins);

impl Members {
    fn admit(&self, provider: &Arc<CryptoProvider>, chain: &Chain<'_>) -> Result<(), rustls::Error> {
        if chain.rest.len() >= CHAIN_MOST {
            return Err(rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer));
        }
        let roots = self.0.trust(chain.rest).map_err(|failure| match failure {
            TrustError::Pin(mismatch) => mismatch.into(),
            TrustError::Unreadable(why) => rustls::Error::General(why),
        })?;
        let judge = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider))
            .build()
            .map_err(|failure| rustls::Error::General(failure.to_string()))?;
        judge.verify_client_cert(chain.leaf, chain.rest, chain.now).map(|_| ())
    }
}

impl Judge for Members {
    fn judge(
        &self,
        provider: &Arc<CryptoProvider>,
        chain: &Chain<'_>,
        // The name in the certificate says which machine it is; the caller reads it after the handshake.
        _: &ServerName<'_>,
    ) -> Result<(), rustls::Error> {
        self.admit(provider, chain)
    }
}

impl ClientCertVerifier for Judged<Members> {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        leaf: &CertificateDer<'_>,
        rest: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        let chain = Chain { leaf, rest, now };
        self.judge.admit(&self.provider, &chain).map(|()| ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        leaf: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        ServerCertVerifier::verify_tls12_signature(self, message, leaf, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        leaf: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        ServerCertVerifier::verify_tls13_signature(self, message, leaf, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        ServerCertVerifier::supported_verify_schemes(self)
    }
}

/// The record of the machine that showed this certificate; none where it names none, or several.
pub(super) fn machine(shown: Option<&[CertificateDer<'_>]>) -> Option<String> {
    let leaf = shown?.first()?;
    let (_, certificate) = X509Certificate::from_der(leaf).ok()?;
    let mut names = certificate.subject().iter_common_name();
    let name = names.next()?.as_str().ok()?.to_owned();
    (names.next().is_none() && !name.is_empty()).then_some(name)
}

//! Who is a peer: a machine with a certificate of the registration server's authority, and nobody else.
//!
//! A machine's certificate is one for clients, and stays one: with a certificate for servers a machine could stand in for the
//! registration server, whose authority is the same. So both ends judge each other as a server judges its client, up to an
//! authority that is presented beside the certificate and pinned, and which machine it is is read from its name. Pins, and not a
//! copy of the authority, because a rotation reaches every agent with its next welcome.

use std::sync::Arc;

use tokio_rustls::rustls;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, DistinguishedName, OtherError, ServerConfig,
    SignatureScheme,
};
use x509_parser::prelude::{FromDer as _, X509Certificate};

use crate::link::Keyring;
use crate::pin::{Pins, TrustError};
use crate::short_chain::CHAIN_MOST;

/// What this machine shows as who asks and as who is asked.
pub(super) fn configure(keyring: &Keyring) -> Result<(Arc<ClientConfig>, Arc<ServerConfig>), String> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let pins = keyring.pins().ok_or("its pins cannot be read")?;
    let chain = keyring.chain();
    if chain.len() < 2 {
        return Err("the authority's certificate is not there until this machine's is renewed".to_owned());
    }
    let members = Arc::new(Members { pins, provider: Arc::clone(&provider) });
    let failed = |error: rustls::Error| error.to_string();
    let mut client = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(failed)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::clone(&members) as Arc<dyn ServerCertVerifier>)
        .with_client_auth_cert(chain.clone(), keyring.key())
        .map_err(failed)?;
    client.resumption = rustls::client::Resumption::disabled();
    // What it is for: a registration server, which shares the authority, asks for another protocol.
    client.alpn_protocols = vec![PROTOCOL.to_vec()];
    client.enable_sni = false;
    let mut server = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(failed)?
        .with_client_cert_verifier(members)
        .with_single_cert(chain, keyring.key())
        .map_err(failed)?;
    server.alpn_protocols = vec![PROTOCOL.to_vec()];
    // Every connection is judged anew: no tickets.
    server.send_tls13_tickets = 0;
    server.session_storage = Arc::new(rustls::server::NoServerSessionStorage {});
    Ok((Arc::new(client), Arc::new(server)))
}

/// Of agents among themselves.
const PROTOCOL: &[u8] = b"reveille-peer/1";

/// Accepts the machines of one registration server.
#[derive(Debug)]
struct Members {
    pins: Pins,
    provider: Arc<CryptoProvider>,
}

impl Members {
    fn judge(
        &self,
        leaf: &CertificateDer<'_>,
        rest: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<(), rustls::Error> {
        if rest.len() >= CHAIN_MOST {
            return Err(rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer));
        }
        let roots = self.pins.trust(rest).map_err(|failure| match failure {
            TrustError::Pin(mismatch) => {
                rustls::Error::InvalidCertificate(CertificateError::Other(OtherError(Arc::new(mismatch))))
            }
            TrustError::Unreadable(why) => rustls::Error::General(why),
        })?;
        let provider = Arc::clone(&self.provider);
        let judge = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
            .build()
            .map_err(|failure| rustls::Error::General(failure.to_string()))?;
        judge.verify_client_cert(leaf, rest, now).map(|_| ())
    }

    fn verify(
        &self,
        message: &[u8],
        leaf: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, leaf, signed, algorithms)
    }
}

/// TLS 1.2 is not offered; whoever speaks it was refused before.
fn outdated() -> rustls::Error {
    rustls::Error::PeerIncompatible(rustls::PeerIncompatible::Tls12NotOffered)
}

impl ServerCertVerifier for Members {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        // Which machine it is is read from its certificate's name, after the handshake.
        _: &ServerName<'_>,
        _: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        self.judge(end_entity, intermediates, now).map(|()| ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(outdated())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.verify(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

impl ClientCertVerifier for Members {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        self.judge(end_entity, intermediates, now).map(|()| ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(outdated())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.verify(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// The record of the machine that showed this; none where it names none, or several.
pub(super) fn machine(shown: Option<&[CertificateDer<'_>]>) -> Option<String> {
    let leaf = shown?.first()?;
    let (_, certificate) = X509Certificate::from_der(leaf).ok()?;
    let mut names = certificate.subject().iter_common_name();
    let name = names.next()?.as_str().ok()?.to_owned();
    (names.next().is_none() && !name.is_empty()).then_some(name)
}

//! TLS of the server: TLS 1.3 only, with a certificate of the server's own; a client may show a certificate too.
//!
//! The handshake does not demand a certificate, because an enrolling machine has none. An expired or foreign certificate
//! does not fail the handshake, because a TLS alert tells an operator nothing. The handshake always proves that the
//! client has the key of its certificate. The certificate itself is judged afterwards ([`TlsAcceptor::who`]), and a refusal
//! is typed. Both use rustls' own verifier with our authorities as roots.

use std::sync::Arc;

use reveille_core::model::time::Time;
use thiserror::Error;
use tokio_rustls::rustls;

use rustls::client::danger::HandshakeSignatureValid;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, RootCertStore, ServerConfig, SignatureScheme,
};
use x509_parser::prelude::{FromDer as _, X509Certificate};

use super::authority::{Authorities, Serving, Signer};
use super::request::key_hash;
use crate::registry::{MachineId, Peer};

/// The server takes no larger certificates from a client: TLS keeps them for as long as the connection lasts. A
/// certificate of ours has half a KiB. A foreign certificate with its chain may be larger; the client is let in to be
/// told that the certificate is foreign.
const SHOWN_BYTES_MAX: usize = 8 << 10;

/// Why there is no TLS configuration.
#[derive(Debug, Error)]
pub enum TlsError {
    /// The authorities cannot be used as roots.
    #[error("the authorities cannot be used as roots")]
    Roots(#[source] rustls::server::VerifierBuilderError),
    /// rustls does not accept the certificate or the key.
    #[error("the server's certificate cannot be used")]
    Config(#[from] rustls::Error),
}

/// What a client showed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Shown {
    /// No certificate.
    Nothing,
    /// A valid certificate of a machine.
    Machine(Peer),
    /// An expired certificate of ours.
    Expired,
    /// A certificate of ours that is not valid yet.
    Early,
    /// Any other certificate.
    Strange,
}

/// A TLS configuration, with the certificate judge that belongs to it.
#[derive(Clone)]
pub(super) struct TlsAcceptor {
    pub(super) config: Arc<ServerConfig>,
    judge: Arc<dyn ClientCertVerifier>,
    signers: Arc<[Signer]>,
}

impl TlsAcceptor {
    pub(super) fn new(authorities: &Authorities, serving: Serving) -> Result<Self, TlsError> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut roots = RootCertStore::empty();
        for certificate in authorities.certificates() {
            roots.add(certificate.clone())?;
        }
        let judge = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone())
            .build()
            .map_err(TlsError::Roots)?;
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .with_client_cert_verifier(Arc::new(Later(judge.clone())))
            .with_single_cert(serving.chain, serving.key)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        // The server issues no session tickets. It judges a certificate again each time, so a removed machine has no old
        // session to resume.
        config.send_tls13_tickets = 0;
        config.session_storage = Arc::new(rustls::server::NoServerSessionStorage {});
        config.max_early_data_size = 0;
        Ok(Self { config: Arc::new(config), judge, signers: authorities.signers().into() })
    }

    /// Judges the certificate of a client. An authority of ours signs machines' certificates directly, so the rest of the
    /// chain is ignored. An attacker could make the search for a path through foreign certificates take seconds.
    pub(super) fn who(&self, leaf: Option<&CertificateDer<'static>>) -> Shown {
        let Some(leaf) = leaf else { return Shown::Nothing };
        match self.judge.verify_client_cert(leaf, &[], UnixTime::now()) {
            Ok(_) => self.read(leaf).map_or(Shown::Strange, Shown::Machine),
            Err(rustls::Error::InvalidCertificate(
                CertificateError::Expired | CertificateError::ExpiredContext { .. },
            )) => Shown::Expired,
            Err(rustls::Error::InvalidCertificate(
                CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. },
            )) => Shown::Early,
            Err(_) => Shown::Strange,
        }
    }

    /// The machine in a verified certificate.
    fn read(&self, leaf: &CertificateDer<'_>) -> Option<Peer> {
        let (_, certificate) = X509Certificate::from_der(leaf).ok()?;
        let mut names = certificate.subject().iter_common_name();
        let machine = MachineId::new(names.next()?.as_str().ok()?);
        let key = key_hash(certificate.public_key().raw);
        let issuer = certificate.issuer().as_raw();
        let signer = self.signers.iter().find(|signer| signer.subject == issuer)?;
        // The last second of a certificate is a part of its lifetime.
        let not_after = Time::from_ms(
            certificate.validity().not_after.timestamp().saturating_add(1).saturating_mul(1000),
        );
        names.next().is_none().then_some(Peer { machine, key, authority: signer.authority, not_after })
    }
}

/// Verifies the signature of the handshake, limits the chain's size, and leaves the certificate to be judged later.
#[derive(Debug)]
struct Later(Arc<dyn ClientCertVerifier>);

impl ClientCertVerifier for Later {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        // Without hints a client shows the certificate that it has, also one of a retired authority.
        &[]
    }

    fn verify_client_cert(
        &self,
        leaf: &CertificateDer<'_>,
        rest: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        let bytes: usize = [leaf].into_iter().chain(rest).map(|der| der.len()).sum();
        if bytes > SHOWN_BYTES_MAX {
            return Err(rustls::Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure));
        }
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        leaf: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0.verify_tls12_signature(message, leaf, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        leaf: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0.verify_tls13_signature(message, leaf, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, Issuer, KeyPair};
    use reveille_core::model::time::Span;
    use rustls::pki_types::pem::PemObject as _;
    use time::{Duration, OffsetDateTime};

    use super::*;

    #[test]
    fn certificate_not_yet_valid_differs_from_an_unknown_one() {
        let folder = tempfile::tempdir().unwrap();
        let authorities = Authorities::open(folder.path()).unwrap();
        let text = std::fs::read_to_string(folder.path().join("authority/0001.pem")).unwrap();
        let authority = CertificateDer::from_pem_slice(text.as_bytes()).unwrap();
        let issuer = Issuer::from_ca_cert_der(&authority, KeyPair::from_pem(&text).unwrap()).unwrap();
        let from = |minutes: i64| {
            let mut params = CertificateParams::default();
            params.distinguished_name = DistinguishedName::new();
            params.distinguished_name.push(DnType::CommonName, "m-1");
            params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
            params.not_before = OffsetDateTime::now_utc() + Duration::minutes(minutes);
            params.not_after = params.not_before + Duration::days(30);
            params.signed_by(&KeyPair::generate().unwrap(), &issuer).unwrap().der().clone()
        };
        let acceptor =
            TlsAcceptor::new(&authorities, authorities.serving(&["localhost".to_owned()]).unwrap()).unwrap();
        assert!(matches!(acceptor.who(Some(&from(-1))), Shown::Machine(_)));
        assert_eq!(acceptor.who(Some(&from(5))), Shown::Early);
        assert_eq!(acceptor.who(Some(&from(-31 * 24 * 60))), Shown::Expired);
    }

    #[test]
    fn issued_certificates_are_valid_from_a_day_earlier() {
        let folder = tempfile::tempdir().unwrap();
        let authorities = Authorities::open(folder.path()).unwrap();
        let key = KeyPair::generate().unwrap();
        let pem = authorities.certify(&MachineId::new("m-1"), &key, Span::from_min(60)).unwrap();
        let of_machine = CertificateDer::from_pem_slice(pem.as_bytes()).unwrap();
        for der in
            [of_machine].into_iter().chain(authorities.serving(&["localhost".to_owned()]).unwrap().chain)
        {
            let (_, read) = X509Certificate::from_der(&der).unwrap();
            let before_s =
                OffsetDateTime::now_utc().unix_timestamp() - read.validity().not_before.timestamp();
            assert!(before_s >= 23 * 3600, "{}: {before_s} s", read.subject());
        }
    }
}

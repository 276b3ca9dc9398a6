//! TLS of the server: 1.3 alone, a certificate of ours, and whoever connects may show one of his own.
//!
//! A certificate of a machine is not demanded in the handshake, because enrolling has none, and a certificate that is over or
//! strange does not fail the handshake, because an alert says nothing to a person: the proof that whoever shows it has its key
//! is made in the handshake, always; what the certificate is worth is judged after it ([`Doorman::who`]) and told as a typed
//! refusal. The one judge of both is rustls' own verifier with our authorities as its roots.

use std::sync::Arc;

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

use super::authority::{Authorities, Serving};
use super::request::key_hash;
use crate::registry::{AuthorityHash, MachineId, Peer};

/// Why there is no TLS.
#[derive(Debug, Error)]
pub enum TlsError {
    /// The authorities are no roots.
    #[error("the authorities cannot be used as roots")]
    Roots(#[source] rustls::server::VerifierBuilderError),
    /// rustls takes the certificate or key not.
    #[error("the server's certificate cannot be used")]
    Config(#[from] rustls::Error),
}

/// Whoever connected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Shown {
    /// He showed nothing.
    Nothing,
    /// A machine of ours, by a certificate that is in force.
    Machine(Peer),
    /// A certificate of ours that is over.
    Expired,
    /// Something else.
    Strange,
}

/// The configuration of a moment, and the judge that belongs to it.
#[derive(Clone)]
pub(super) struct Doorman {
    pub(super) config: Arc<ServerConfig>,
    judge: Arc<dyn ClientCertVerifier>,
    signers: Arc<[Signer]>,
}

/// An authority by its name, which no other one of this server has or had.
pub(super) struct Signer {
    pub(super) subject: Vec<u8>,
    pub(super) authority: AuthorityHash,
}

impl Doorman {
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
        // What a ticket would carry is judged anew each time instead: a machine that was removed has no old session to resume.
        config.send_tls13_tickets = 0;
        config.session_storage = Arc::new(rustls::server::NoServerSessionStorage {});
        config.max_early_data_size = 0;
        Ok(Self { config: Arc::new(config), judge, signers: authorities.signers().into() })
    }

    /// What was shown is worth.
    pub(super) fn who(&self, chain: Option<&[CertificateDer<'static>]>) -> Shown {
        let Some((leaf, rest)) = chain.and_then(<[_]>::split_first) else { return Shown::Nothing };
        match self.judge.verify_client_cert(leaf, rest, UnixTime::now()) {
            Ok(_) => self.read(leaf).map_or(Shown::Strange, Shown::Machine),
            Err(rustls::Error::InvalidCertificate(
                CertificateError::Expired | CertificateError::ExpiredContext { .. },
            )) => Shown::Expired,
            Err(_) => Shown::Strange,
        }
    }

    /// Of a certificate that was verified.
    fn read(&self, leaf: &CertificateDer<'_>) -> Option<Peer> {
        let (_, certificate) = X509Certificate::from_der(leaf).ok()?;
        let mut names = certificate.subject().iter_common_name();
        let machine = MachineId::new(names.next()?.as_str().ok()?);
        let key = key_hash(certificate.public_key().raw);
        let issuer = certificate.issuer().as_raw();
        let signer = self.signers.iter().find(|signer| signer.subject == issuer)?;
        names.next().is_none().then_some(Peer { machine, key, authority: signer.authority })
    }
}

/// Verifies the signature of the handshake, and leaves the certificate to be judged later.
#[derive(Debug)]
struct Later(Arc<dyn ClientCertVerifier>);

impl ClientCertVerifier for Later {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        // Without hints a client shows what it has, also when it is of an authority that was retired.
        &[]
    }

    fn verify_client_cert(
        &self,
        _leaf: &CertificateDer<'_>,
        _rest: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
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

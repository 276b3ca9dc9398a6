//! Certificate verifiers for rustls: a [`Judge`] decides whether a peer's certificates are trusted; rustls always
//! verifies that the peer has their key.

use std::fmt;
use std::sync::Arc;

use tokio_rustls::rustls;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, RootCertStore, SignatureScheme};

/// The certificates that a peer presents, its own first, and the time.
pub(crate) struct Chain<'a> {
    /// The peer's own certificate.
    pub(crate) leaf: &'a CertificateDer<'a>,
    /// The certificates behind it, in the peer's order.
    pub(crate) rest: &'a [CertificateDer<'a>],
    /// Now.
    pub(crate) now: UnixTime,
}

impl Chain<'_> {
    /// Checks that the chain leads from a server of this name to one of these CAs, and that each of its certificates is
    /// valid now.
    ///
    /// # Errors
    ///
    /// The chain does not.
    pub(crate) fn leads_to(
        &self,
        roots: Arc<RootCertStore>,
        provider: &Arc<CryptoProvider>,
        name: &ServerName<'_>,
    ) -> Result<(), rustls::Error> {
        let verifier = WebPkiServerVerifier::builder_with_provider(roots, Arc::clone(provider))
            .build()
            .map_err(|failure| rustls::Error::General(failure.to_string()))?;
        verifier.verify_server_cert(self.leaf, self.rest, name, &[], self.now).map(|_| ())
    }
}

/// Decides whose certificates are trusted.
pub(crate) trait Judge: fmt::Debug + Send + Sync {
    /// Decides whether this chain is trusted for a server of this name.
    ///
    /// # Errors
    ///
    /// The chain is not trusted.
    fn judge(
        &self,
        provider: &Arc<CryptoProvider>,
        chain: &Chain<'_>,
        name: &ServerName<'_>,
    ) -> Result<(), rustls::Error>;
}

/// A judge in the form that rustls needs.
#[derive(Debug)]
pub(crate) struct Judged<J> {
    pub(crate) judge: J,
    pub(crate) provider: Arc<CryptoProvider>,
}

impl<J: Judge> Judged<J> {
    pub(crate) fn by(judge: J) -> Self {
        Self { judge, provider: Arc::new(aws_lc_rs::default_provider()) }
    }
}

impl<J: Judge> ServerCertVerifier for Judged<J> {
    fn verify_server_cert(
        &self,
        leaf: &CertificateDer<'_>,
        rest: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let chain = Chain { leaf, rest, now };
        self.judge.judge(&self.provider, &chain, name).map(|()| ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        leaf: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, leaf, signed, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        leaf: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, leaf, signed, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// Trusts every server. For requests whose answer is checked in another way, and that carry no secret.
#[derive(Debug)]
pub(crate) struct AnyServer;

impl Judge for AnyServer {
    fn judge(&self, _: &Arc<CryptoProvider>, _: &Chain<'_>, _: &ServerName<'_>) -> Result<(), rustls::Error> {
        Ok(())
    }
}

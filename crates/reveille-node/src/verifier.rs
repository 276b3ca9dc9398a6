//! Rustls's questions about whoever answers: whether its certificates are believed is up to a [`Judge`]; that it has their key is
//! always rustls's to verify.

use std::fmt;
use std::sync::Arc;

use tokio_rustls::rustls;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, RootCertStore, SignatureScheme};

/// Certificates that a peer presents, its own first, and at what time.
pub(crate) struct Chain<'a> {
    /// Its own.
    pub(crate) leaf: &'a CertificateDer<'a>,
    /// Those behind it, in the peer's order.
    pub(crate) rest: &'a [CertificateDer<'a>],
    /// Now.
    pub(crate) now: UnixTime,
}

impl Chain<'_> {
    /// Whether it leads from a server of this name to one of these authorities, and each of its certificates is valid now.
    ///
    /// # Errors
    ///
    /// It does not.
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

/// Says whose certificates are believed.
pub(crate) trait Judge: fmt::Debug + Send + Sync {
    /// Whether this chain is believed of a server of this name.
    ///
    /// # Errors
    ///
    /// It is not.
    fn judge(
        &self,
        provider: &Arc<CryptoProvider>,
        chain: &Chain<'_>,
        name: &ServerName<'_>,
    ) -> Result<(), rustls::Error>;
}

/// A judge, as rustls wants to have it.
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

/// Believes whoever answers. For questions whose answer is held against something else, and that carry nothing secret.
#[derive(Debug)]
pub(crate) struct Anybody;

impl Judge for Anybody {
    fn judge(&self, _: &Arc<CryptoProvider>, _: &Chain<'_>, _: &ServerName<'_>) -> Result<(), rustls::Error> {
        Ok(())
    }
}

//! Requests for certificates: a key, and the proof that whoever asks has it.
//!
//! Of a request only the key is taken: names and extensions that somebody wishes for are not read. Keys are ECDSA P-256 or
//! Ed25519; what is larger costs every handshake, what is older is not wanted.

use rcgen::CertificateSigningRequestParams;
use reveille_wire::agent::Reason;
use tokio_rustls::rustls::pki_types::CertificateSigningRequestDer;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;

use crate::registry::{KeyHash, TokenHash};

/// Reads a request and verifies its signature.
pub(super) fn read(pem: &str) -> Result<CertificateSigningRequestParams, Reason> {
    let bad = |what: &str| Reason::BadFrame { place: "csr".into(), what: what.into() };
    let der = CertificateSigningRequestDer::from_pem_slice(pem.as_bytes())
        .map_err(|_| bad("it is no PEM of a certificate request"))?;
    let request = CertificateSigningRequestParams::from_der(&der)
        .map_err(|_| bad("it cannot be read, or its signature is wrong"))?;
    let algorithm = request.public_key.algorithm();
    let taken = algorithm == &rcgen::PKCS_ECDSA_P256_SHA256 || algorithm == &rcgen::PKCS_ED25519;
    if taken { Ok(request) } else { Err(bad("its key is neither ECDSA P-256 nor Ed25519")) }
}

/// The hash of a key, given as its SubjectPublicKeyInfo in DER.
pub(super) fn key_hash(spki: &[u8]) -> KeyHash {
    KeyHash(sha256(spki))
}

/// The hash of a token's secret half.
pub(super) fn token_hash(secret: &str) -> TokenHash {
    TokenHash(sha256(secret.as_bytes()))
}

fn sha256(bytes: &[u8]) -> [u8; 32] {
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, bytes);
    let mut out = [0; 32];
    out.copy_from_slice(digest.as_ref());
    out
}

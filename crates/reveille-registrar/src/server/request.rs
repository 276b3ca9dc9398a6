//! Certificate signing requests: a key, and the proof that the client has it.
//!
//! The server takes only the key of a request and ignores the names and extensions in it. Keys are ECDSA P-256 or
//! Ed25519; larger keys make every handshake more expensive, and older kinds are not wanted. The kind is read from the
//! key itself. The signature's algorithm says little about it, because a key on another curve signs over the same hash.

use rcgen::{CertificateSigningRequestParams, PublicKeyData as _};
use reveille_wire::agent::Reason;
use tokio_rustls::rustls::pki_types::CertificateSigningRequestDer;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::prelude::FromDer as _;

use crate::registry::{KeyHash, TokenHash};

/// Reads a request and verifies its signature.
pub(super) fn read(pem: &str) -> Result<CertificateSigningRequestParams, Reason> {
    let bad = |what: &str| Reason::BadFrame { place: "csr".into(), what: what.into() };
    let der = CertificateSigningRequestDer::from_pem_slice(pem.as_bytes())
        .map_err(|_| bad("it is no PEM of a certificate request"))?;
    let request = CertificateSigningRequestParams::from_der(&der)
        .map_err(|_| bad("it cannot be read, or its signature is wrong"))?;
    let (key, algorithm) = (&request.public_key, request.public_key.algorithm());
    let of_kind = if algorithm == &rcgen::PKCS_ECDSA_P256_SHA256 {
        // An uncompressed point: the byte of its form, and two coordinates.
        key.der_bytes().len() == 65 && key.der_bytes().first() == Some(&4)
    } else {
        algorithm == &rcgen::PKCS_ED25519 && key.der_bytes().len() == 32
    };
    // The server certifies the requested key, byte for byte: the encoding names the curve.
    let asked = X509CertificationRequest::from_der(&der).ok();
    let asked = asked.map(|(_, asked)| asked.certification_request_info.subject_pki.raw.to_vec());
    let taken = of_kind && asked.is_some_and(|asked| asked == key.subject_public_key_info());
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

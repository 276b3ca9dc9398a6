//! The hash by which k3s and RKE2 identify a cluster: it is the prefix of a full token, and is computed over the bundle
//! of CAs.
//!
//! ```text
//!  one certificate   ─▶ SHA-256 of the file's bytes: its PEM text, line breaks included, not its key
//!  several           ─▶ SHA-256 of the DER of the root that the first one leads to
//! ```
//!
//! This hash differs from a [`crate::pin::Pin`], which is computed over a public key: a CA that is renewed with its key
//! keeps its pin but not this hash. Of several certificates, only those between the first one and the hashed root become
//! anchors: the token vouches for no other in the bundle. This module verifies the signatures between them. Names alone
//! would let any attacker put a known root behind a CA of the attacker's own.

use std::fmt;

use aws_lc_rs::digest::{SHA256, digest};
use thiserror::Error;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use x509_parser::prelude::{FromDer as _, X509Certificate};

/// A bundle with more certificates than this is not a cluster's.
const CERTIFICATES_MAX: usize = 16;

/// The SHA-256 of a bundle.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct BundleHash([u8; 32]);

/// A bundle without a usable hash.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BundleError {
    /// The bundle has no certificate.
    #[error("it holds no certificate as PEM")]
    Empty,
    /// The bundle has too many certificates.
    #[error("it holds more than {CERTIFICATES_MAX} certificates")]
    TooMany,
}

/// The content of a bundle, and the part for which its hash vouches.
#[derive(Clone, Debug)]
pub struct Bundle {
    /// The bundle's hash.
    pub hash: BundleHash,
    /// The first certificate and those that lead to the hashed root; all of them where they lead to none, because then
    /// the hash covers every byte.
    pub anchors: Vec<CertificateDer<'static>>,
    /// The hashed certificates: the root, or all of them. Trust in these is trust in the anchors.
    pub hashed: Vec<CertificateDer<'static>>,
}

impl Bundle {
    /// Reads the bytes that a server sends, or that an agent has kept.
    ///
    /// # Errors
    ///
    /// The bundle has no certificate, or far too many.
    pub fn read(pem: &[u8]) -> Result<Self, BundleError> {
        let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
        let all = all.map_err(|_| BundleError::Empty)?;
        match all.as_slice() {
            [] => Err(BundleError::Empty),
            [_] => Ok(Self { hash: BundleHash::of(pem), hashed: all.clone(), anchors: all }),
            [first, rest @ ..] if rest.len() < CERTIFICATES_MAX => Ok(match chain(first, rest) {
                Some(chain) => {
                    let root = chain.last().unwrap_or(first);
                    Self { hash: BundleHash::of(root), hashed: vec![root.clone()], anchors: chain }
                }
                None => Self { hash: BundleHash::of(pem), hashed: all.clone(), anchors: all },
            }),
            _ => Err(BundleError::TooMany),
        }
    }
}

/// The chain from the first certificate to a root among the others, each signed by the next.
fn chain(
    first: &CertificateDer<'static>,
    rest: &[CertificateDer<'static>],
) -> Option<Vec<CertificateDer<'static>>> {
    let mut chain = vec![first.clone()];
    while chain.len() <= rest.len() {
        let last = chain.last()?.clone();
        let next = rest.iter().find(|der| !chain.contains(der) && has_signed(der, &last))?;
        chain.push(next.clone());
        if has_signed(next, next) {
            return Some(chain);
        }
    }
    None
}

/// True when this CA signed that certificate.
fn has_signed(authority: &CertificateDer<'_>, other: &CertificateDer<'_>) -> bool {
    let (Ok((_, authority)), Ok((_, other))) =
        (X509Certificate::from_der(authority), X509Certificate::from_der(other))
    else {
        return false;
    };
    authority.is_ca()
        && authority.subject() == other.issuer()
        && other.verify_signature(Some(authority.public_key())).is_ok()
}

impl BundleHash {
    fn of(bytes: &[u8]) -> Self {
        let mut hash = [0; 32];
        hash.copy_from_slice(digest(&SHA256, bytes).as_ref());
        Self(hash)
    }

    /// Reads 64 hexadecimal digits; `None` for any other text.
    pub fn parse(text: &str) -> Option<Self> {
        if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        let mut hash = [0; 32];
        for (place, byte) in hash.iter_mut().enumerate() {
            *byte = u8::from_str_radix(text.get(2 * place..2 * place + 2)?, 16).ok()?;
        }
        Some(Self(hash))
    }
}

impl fmt::Display for BundleHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for BundleHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pem;
    use crate::testing::Authority;

    fn sha256(bytes: &[u8]) -> String {
        BundleHash::of(bytes).to_string()
    }

    #[test]
    fn one_certificate_is_hashed_as_the_text_that_it_is() {
        // `printf abc | sha256sum`.
        assert_eq!(sha256(b"abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        let authority = Authority::new("k3s-server-ca");
        let text = pem::certificates(&[authority.der()]);
        let bundle = Bundle::read(text.as_bytes()).unwrap();
        assert_eq!(bundle.hash.to_string(), sha256(text.as_bytes()));
        let other = Bundle::read(text.replace('\n', "\r\n").as_bytes()).unwrap();
        assert_ne!(bundle.hash, other.hash, "it is of the bytes, as the agent's own is");
        assert_eq!(BundleHash::parse(&bundle.hash.to_string()), Some(bundle.hash));
        assert_eq!(Bundle::read(b"<html>").unwrap_err(), BundleError::Empty);
    }

    #[test]
    fn bundle_hash_is_of_signing_root_and_only_its_chain_is_trusted() {
        let (root, evil) = (Authority::new("root"), Authority::new("evil"));
        let own = root.authority("k3s-server-ca");
        let read =
            |ders: &[CertificateDer<'static>]| Bundle::read(pem::certificates(ders).as_bytes()).unwrap();
        let bundle = read(&[own.der(), evil.der(), root.der()]);
        assert_eq!(bundle.hash.to_string(), sha256(&root.der()));
        assert_eq!(bundle.anchors, [own.der(), root.der()], "a stranger's is not vouched for");
        // An attacker who puts a known root behind a CA of the attacker's own does not get the root's hash.
        let forged = read(&[evil.der(), root.der()]);
        assert_ne!(forged.hash.to_string(), sha256(&root.der()));
        let named = Authority::forged("k3s-server-ca", "root");
        assert_ne!(
            read(&[named, root.der()]).hash.to_string(),
            sha256(&root.der()),
            "a name is no signature"
        );
    }

    #[test]
    fn what_is_no_hash_is_none() {
        for text in ["", "ab", &"g".repeat(64), &"a".repeat(63), &"ä".repeat(32)] {
            assert_eq!(BundleHash::parse(text), None, "{text}");
        }
    }
}

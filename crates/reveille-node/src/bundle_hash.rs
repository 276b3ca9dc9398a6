//! The hash by which k3s and RKE2 know a cluster: it stands in front of a full token, and is of the authorities' bundle.
//!
//! ```text
//!  one certificate   ─▶ SHA-256 of the file's bytes: its PEM text, line breaks included, not its key
//!  several           ─▶ SHA-256 of the DER of the root that the first one leads to
//! ```
//!
//! It is another thing than a [`crate::pin::Pin`], which is of a public key: an authority that is renewed with its key keeps its
//! pin and not this hash. Of several certificates only those between the first one and the root that was hashed are anchors
//! afterwards: what a bundle holds besides was vouched for by nobody. The signatures between them are verified here, because
//! names alone would let anybody put a known root behind an authority of their own.

use std::fmt;

use aws_lc_rs::digest::{SHA256, digest};
use thiserror::Error;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use x509_parser::prelude::{FromDer as _, X509Certificate};

/// More certificates than this are no cluster's authorities.
const CERTIFICATES_MAX: usize = 16;

/// The SHA-256 of a bundle.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct BundleHash([u8; 32]);

/// A bundle that nothing can be known by.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BundleError {
    /// There is no certificate in it.
    #[error("it holds no certificate as PEM")]
    Empty,
    /// There are too many.
    #[error("it holds more than {CERTIFICATES_MAX} certificates")]
    TooMany,
}

/// What a bundle says, and what of it is vouched for by its hash.
#[derive(Clone, Debug)]
pub struct Bundle {
    /// Its hash.
    pub hash: BundleHash,
    /// The first certificate and those that lead to the root that was hashed; all of them where they lead to none, because then
    /// the hash is of every byte.
    pub anchors: Vec<CertificateDer<'static>>,
    /// What was hashed: the root, or each of them. Whoever knows these knows the anchors.
    pub hashed: Vec<CertificateDer<'static>>,
}

impl Bundle {
    /// Reads the bytes that a server tells, or that an agent has kept.
    ///
    /// # Errors
    ///
    /// There is no certificate in it, or far too many.
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

/// From the first certificate to a root among the others, each signed by the next.
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

/// This authority signed that certificate.
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

    /// Reads 64 hexadecimal digits; `None` where it is something else.
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
    fn several_are_known_by_the_root_that_the_first_leads_to_and_nothing_else_of_them_is_an_anchor() {
        let (root, evil) = (Authority::new("root"), Authority::new("evil"));
        let own = root.authority("k3s-server-ca");
        let read =
            |ders: &[CertificateDer<'static>]| Bundle::read(pem::certificates(ders).as_bytes()).unwrap();
        let bundle = read(&[own.der(), evil.der(), root.der()]);
        assert_eq!(bundle.hash.to_string(), sha256(&root.der()));
        assert_eq!(bundle.anchors, [own.der(), root.der()], "a stranger's is not vouched for");
        // A stranger who puts a known root behind an authority of their own has not the root's hash.
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

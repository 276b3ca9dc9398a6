//! Which servers this machine trusts: those with the keys that it was given, and none because of a public CA.
//!
//! ```text
//!  "sha256:<64 hex>" ─▶ Pin ─▶ Pins ─┬─ verifier      the pinned key is in the chain that is presented (the registration server)
//!                                    └─ Pins::trust   the authority came as a document (cluster-info); it must be pinned
//! ```
//!
//! Several pins may be valid at once, so that machines can join on every day of a CA's
//! replacement. The pinned certificate is the anchor, and must itself have signed the server's certificate: our CA has no
//! intermediates. Dates, use and name of the server's certificate are verified as for any CA. The verifier searches no
//! path through other certificates: an attacker in the middle may show any, and a search can be made to take seconds. A
//! failure keeps the presented certificates, because the first question at 3 a.m. is which server answered.

use std::fmt;
use std::sync::Arc;

use thiserror::Error;
use tokio_rustls::rustls;

use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{CertificateError, OtherError, RootCertStore};

use crate::certificate::Presented;
use crate::pin::{PINS_MOST, Pin, PinError};
use crate::verifier::{Chain, Judge, Judged};

/// The valid pins; at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pins(Vec<Pin>);

/// The server presented no pinned key.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("no certificate that was presented has a pinned key: wanted {}; presented {}", list(.wanted), list(.presented))]
pub struct PinMismatch {
    /// The pins.
    pub wanted: Vec<Pin>,
    /// The presented chain.
    pub presented: Vec<Presented>,
}

/// Why a CA that came as a document is not trusted.
#[derive(Clone, Debug, Error)]
pub enum TrustError {
    /// No certificate in it has a pinned key.
    #[error(transparent)]
    Pin(#[from] PinMismatch),
    /// The document cannot be read.
    #[error("the authority's certificate cannot be read: {0}")]
    Unreadable(String),
}

fn list<T: fmt::Display>(items: &[T]) -> String {
    match items {
        [] => "nothing".to_owned(),
        items => items.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
    }
}

impl Pins {
    /// Checks the number of pins and sorts them.
    ///
    /// # Errors
    ///
    /// There are no pins, or more than [`PINS_MOST`].
    pub fn new(mut pins: Vec<Pin>) -> Result<Self, PinError> {
        pins.sort_unstable();
        pins.dedup();
        if pins.is_empty() || pins.len() > PINS_MOST {
            return Err(PinError::Count(pins.len()));
        }
        Ok(Self(pins))
    }

    /// The pins, sorted.
    pub fn as_slice(&self) -> &[Pin] {
        &self.0
    }

    /// The first certificate whose key is pinned.
    ///
    /// # Errors
    ///
    /// The certificates that were presented instead.
    pub fn find<'c>(&self, chain: &'c [CertificateDer<'c>]) -> Result<&'c CertificateDer<'c>, PinMismatch> {
        let presented: Vec<Presented> = chain.iter().map(|der| Presented::read(der)).collect();
        let place = presented.iter().position(|cert| cert.key.is_some_and(|key| self.0.contains(&key)));
        place.map(|place| &chain[place]).ok_or_else(|| PinMismatch { wanted: self.0.clone(), presented })
    }

    /// The anchors among the CAs of a document; CAs that are not pinned are left out.
    ///
    /// # Errors
    ///
    /// No CA is pinned, or the pinned certificate is not a CA.
    pub fn trust(&self, authorities: &[CertificateDer<'_>]) -> Result<RootCertStore, TrustError> {
        self.find(authorities)?;
        let mut roots = RootCertStore::empty();
        for der in self.pinned(authorities) {
            let unreadable = |failure: rustls::Error| TrustError::Unreadable(failure.to_string());
            roots.add(der.into_owned()).map_err(unreadable)?;
        }
        Ok(roots)
    }

    /// A verifier of server certificates: a pinned certificate has to be presented with the server's one, and to have
    /// signed it.
    pub fn verifier(self) -> Arc<dyn ServerCertVerifier> {
        Arc::new(Judged::by(self))
    }

    /// The CAs of a document whose keys are pinned. No pin vouches for the others.
    pub fn pinned<'c>(&self, authorities: &[CertificateDer<'c>]) -> Vec<CertificateDer<'c>> {
        let keyed = authorities.iter().filter(|der| {
            let key = Presented::read(der).key;
            key.is_some_and(|key| self.0.contains(&key))
        });
        keyed.cloned().collect()
    }
}

impl Judge for Pins {
    fn judge(
        &self,
        provider: &Arc<CryptoProvider>,
        chain: &Chain<'_>,
        name: &ServerName<'_>,
    ) -> Result<(), rustls::Error> {
        let presented: Vec<CertificateDer<'_>> =
            std::iter::once(chain.leaf).chain(chain.rest).cloned().collect();
        let anchor = self.find(&presented).map_err(rustls::Error::from)?;
        let mut roots = RootCertStore::empty();
        roots.add(anchor.clone().into_owned())?;
        // The verifier does not search a path through the other shown certificates.
        Chain { leaf: chain.leaf, rest: &[], now: chain.now }.leads_to(Arc::new(roots), provider, name)
    }
}

impl From<PinMismatch> for rustls::Error {
    fn from(mismatch: PinMismatch) -> Self {
        Self::InvalidCertificate(CertificateError::Other(OtherError(Arc::new(mismatch))))
    }
}

impl PinMismatch {
    /// The mismatch, where a handshake failed because of one.
    pub fn of(failure: &rustls::Error) -> Option<&Self> {
        match failure {
            rustls::Error::InvalidCertificate(CertificateError::Other(OtherError(cause))) => {
                cause.downcast_ref()
            }
            _ => None,
        }
    }
}

/// A failed handshake, for people: rustls prints a custom cause as code.
pub fn explain(failure: &rustls::Error) -> String {
    PinMismatch::of(failure).map_or_else(|| failure.to_string(), ToString::to_string)
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use rustls::pki_types::UnixTime;

    use super::*;
    use crate::testing::{Authority, maze, shake_hands};

    #[test]
    fn no_pin_and_too_many_are_refused() {
        let pin = |byte| Pin::of_key(&[byte; 32]);
        assert_eq!(Pins::new(Vec::new()), Err(PinError::Count(0)));
        assert_eq!(Pins::new((0..9).map(pin).collect()), Err(PinError::Count(9)));
        assert_eq!(Pins::new(vec![pin(1), pin(1)]).map(|pins| pins.0.len()), Ok(1));
    }

    #[tokio::test]
    async fn pinned_authority_is_trusted_only_for_its_own_servers() {
        let (ours, theirs) = (Authority::new("ours"), Authority::new("theirs"));
        let pins = Pins::new(vec![ours.pin()]).unwrap();
        for (server, name, wanted) in [
            (ours.server("api.test"), "api.test", Ok(())),
            // During a rotation the new pin exists before the old one is removed.
            (ours.server("api.test"), "other.test", Err("not valid for name")),
            (
                theirs.server("api.test"),
                "api.test",
                Err("no certificate that was presented has a pinned key"),
            ),
            // An attacker presents our CA's certificate without having its key.
            (theirs.server("api.test").presenting(&ours), "api.test", Err("UnknownIssuer")),
            (ours.server_of("api.test", 2001..2002), "api.test", Err("expired")),
        ] {
            let verifier = pins.clone().verifier();
            let found = shake_hands(server, name, verifier).await;
            let found = found.map_err(|failure| explain(&failure));
            match (wanted, found) {
                (Ok(()), found) => assert_eq!(found, Ok(())),
                (Err(word), Err(found)) => assert!(found.contains(word), "{found}"),
                (Err(word), Ok(())) => panic!("trusted although {word}"),
            }
        }
    }

    /// Every client can see the pinned CA's certificate, so an attacker in the middle can put it behind any chain. A
    /// search through such a chain takes seconds; reading it and finding no pinned key costs the same as for any chain.
    #[test]
    fn unverifiable_chain_costs_agent_no_more_than_wrong_pin() {
        let (ours, theirs) = (Authority::new("ours"), Authority::new("theirs"));
        let mut chain = maze(5, "api.test");
        chain.push(ours.der());
        let cost = |pinned: &Authority, wanted: &str| {
            let verifier = Pins::new(vec![pinned.pin()]).unwrap().verifier();
            let name = ServerName::try_from("api.test").unwrap();
            let took = (0..3).map(|_| {
                let begun = Instant::now();
                let now = UnixTime::now();
                let judged = verifier.verify_server_cert(&chain[0], &chain[1..], &name, &[], now);
                let found = explain(&judged.unwrap_err());
                assert!(found.contains(wanted), "{found}");
                begun.elapsed()
            });
            took.min().unwrap()
        };
        let (wrong, right) =
            (cost(&theirs, "no certificate that was presented"), cost(&ours, "UnknownIssuer"));
        assert!(right < 10 * wrong, "{right:?}, and {wrong:?} for a wrong pin");
    }

    #[tokio::test]
    async fn a_mismatch_says_who_answered() {
        let (ours, theirs) = (Authority::new("ours"), Authority::new("theirs"));
        let verifier = Pins::new(vec![ours.pin()]).unwrap().verifier();
        let failure = shake_hands(theirs.server("api.test"), "api.test", verifier).await.unwrap_err();
        let mismatch = PinMismatch::of(&failure).unwrap();
        assert_eq!(mismatch.wanted, [ours.pin()]);
        assert_eq!(mismatch.presented.last().and_then(|cert| cert.key), Some(theirs.pin()));
        assert!(explain(&failure).contains("\"CN=theirs\""), "{failure}");
    }

    #[test]
    fn of_a_document_only_what_is_pinned_becomes_an_anchor() {
        let (ours, theirs) = (Authority::new("ours"), Authority::new("theirs"));
        let pins = Pins::new(vec![ours.pin()]).unwrap();
        assert_eq!(pins.trust(&[theirs.der(), ours.der()]).unwrap().roots.len(), 1);
        assert_eq!(pins.pinned(&[theirs.der(), ours.der()]), [ours.der()]);
        assert!(matches!(pins.trust(&[theirs.der()]), Err(TrustError::Pin(_))));
        assert!(matches!(pins.trust(&[]), Err(TrustError::Pin(_))));
    }
}

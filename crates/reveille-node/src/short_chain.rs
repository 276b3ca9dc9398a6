//! Verifies servers of other authorities as rustls does, but limits the length of their chain.
//!
//! rustls searches the presented certificates for a path to a CA, up to 200,000 steps. An attacker in the middle may
//! present certificates of which each may have signed each. The search then takes seconds, on an agent's one thread. If
//! it repeats, the machine counts as silent. Through a few certificates, every path is searched within milliseconds.

use std::sync::Arc;

use tokio_rustls::rustls;

use rustls::crypto::CryptoProvider;
use rustls::pki_types::ServerName;
use rustls::{CertificateError, RootCertStore};

use crate::verifier::{Chain, Judge};

/// The longest chain, the server's own certificate included. Public CAs have one or two intermediates.
pub(crate) const CHAIN_MOST: usize = 6;

/// A verifier for servers of these CAs.
#[derive(Debug)]
pub(crate) struct ShortChain(Arc<RootCertStore>);

impl ShortChain {
    pub(crate) const fn new(roots: Arc<RootCertStore>) -> Self {
        Self(roots)
    }
}

impl Judge for ShortChain {
    fn judge(
        &self,
        provider: &Arc<CryptoProvider>,
        chain: &Chain<'_>,
        name: &ServerName<'_>,
    ) -> Result<(), rustls::Error> {
        // Without a known CA, no server is trusted.
        if chain.rest.len() >= CHAIN_MOST || self.0.is_empty() {
            return Err(rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer));
        }
        chain.leads_to(Arc::clone(&self.0), provider, name)
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use rustls::client::danger::ServerCertVerifier as _;
    use rustls::pki_types::{CertificateDer, UnixTime};

    use super::*;
    use crate::testing::{Authority, maze};
    use crate::verifier::Judged;

    #[test]
    fn unverifiable_chain_costs_little_and_short_chain_is_followed() {
        let ours = Authority::new("ours");
        let mut roots = RootCertStore::empty();
        roots.add(ours.der()).unwrap();
        let verifier = Judged::by(ShortChain::new(Arc::new(roots)));
        let cost = |chain: &[CertificateDer<'static>], is_trusted: bool| -> Duration {
            let took = (0..3).map(|_| {
                let (begun, now) = (Instant::now(), UnixTime::now());
                let name = ServerName::try_from("api.test").unwrap();
                let judged = verifier.verify_server_cert(&chain[0], &chain[1..], &name, &[], now);
                assert_eq!(judged.is_ok(), is_trusted, "{judged:?}");
                begun.elapsed()
            });
            took.min().unwrap()
        };
        let between = ours.authority("between");
        let honest = cost(&between.server("api.test").shown(), true);
        let long = cost(&maze(5, "api.test"), false);
        assert!(long < 10 * honest, "{long:?}, and {honest:?} for an honest chain");
        // The worst allowed chain: each certificate may have signed each.
        let mut alike = Authority::new("x").server("api.test").shown();
        alike.truncate(1);
        alike.extend((1..CHAIN_MOST).map(|_| Authority::forged("x", "x")));
        let worst = cost(&alike, false);
        assert!(worst < 100 * honest, "{worst:?}, and {honest:?} for an honest chain");
    }
}

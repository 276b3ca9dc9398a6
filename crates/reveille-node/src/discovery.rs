//! The discovery of a cluster's CA before any server is trusted; the CA is checked against pins, a token's signature or
//! its hash.
//!
//! ```text
//!  GET cluster-info, from any server      ─▶ its kubeconfig ─▶ the pinned authority      (nothing secret was sent)
//!                                                          └▶ or, without pins: the signature that the token's secret makes
//!  GET /cacerts of k3s and RKE2           ─▶ a bundle       ─▶ the hash in front of the token; pins, where they are given
//! ```
//!
//! An API server does not present its CA, so the handshake cannot be checked for a pin. Like kubeadm, this module reads
//! the CA from a public ConfigMap over a connection that it does not trust yet. The connection that follows is verified
//! like any other. A server that answers this first request learns that a machine asked, and nothing else.

use std::sync::Arc;
use std::time::Duration;

use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use secrecy::ExposeSecret as _;
use serde::Deserialize;
use thiserror::Error;
use tokio_rustls::rustls;

use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;

use crate::api::{Answer, Api, ApiError, Shown, Trust};
use crate::bundle_hash::{Bundle, BundleHash};
use crate::pin::PinError;
use crate::pins::{Pins, TrustError};
use crate::target::kubeconfig::Kubeconfig;
use crate::target::{Endpoint, Target, TargetError, Token};
use crate::verifier::{AnyServer, Judged};

pub(crate) const CLUSTER_INFO: &str = "/api/v1/namespaces/kube-public/configmaps/cluster-info";

/// Why no trustworthy CA was found.
#[derive(Debug, Error)]
pub enum DiscoveryError {
    /// The server did not answer.
    #[error(transparent)]
    Api(#[from] ApiError),
    /// The server answers, but not with a `cluster-info`.
    #[error(
        "{endpoint} answers {status} when asked for {what}; is it the server of a cluster that {by} made?"
    )]
    NotThere {
        /// The server.
        endpoint: Endpoint,
        /// The requested object.
        what: &'static str,
        /// The program whose clusters serve it.
        by: &'static str,
        /// HTTP status.
        status: u16,
    },
    /// The server's cluster-info cannot be read.
    #[error("what {endpoint} tells of its authority cannot be read: {cause}")]
    Unreadable {
        /// The server.
        endpoint: Endpoint,
        /// The cause.
        cause: String,
    },
    /// The server's CA is not the pinned one.
    #[error("the authority that {endpoint} tells is not trusted: {source}")]
    Untrusted {
        /// The server.
        endpoint: Endpoint,
        /// The cause.
        source: TrustError,
    },
    /// Without a pin, only the token's signature proves the cluster, and the signature does not match.
    #[error(
        "the cluster-info of {endpoint} carries no valid signature of the token {token}: the token is gone or of another cluster"
    )]
    Unsigned {
        /// The server.
        endpoint: Endpoint,
        /// The public part of the token.
        token: String,
    },
    /// No pin and no token was given.
    #[error(
        "nothing was given to know the cluster by: give --discovery-token-ca-cert-hash, as kubeadm token create --print-join-command prints it"
    )]
    NothingToKnowItBy,
    /// The bundle of the server has another hash than the token's prefix.
    #[error(
        "{endpoint} is not the cluster that the token is of: the token says {wanted}, and what {endpoint} tells (/cacerts) has the hash {found}; it is another server, or the cluster's authority was replaced"
    )]
    OtherBundle {
        /// The server.
        endpoint: Endpoint,
        /// The hash in the token.
        wanted: BundleHash,
        /// The hash of the server's bundle.
        found: BundleHash,
    },
    /// A short token does not identify its cluster, and no pin was given.
    #[error(
        "nothing was given to know the cluster by, so any server could answer in its place: give the full token (K10…::…) that node-token on a server holds, or --discovery-token-ca-cert-hash; to trust any server that answers, give --discovery-token-unsafe-skip-ca-verification"
    )]
    ShortToken,
    /// Too many pins.
    #[error(transparent)]
    Pins(#[from] PinError),
}

impl DiscoveryError {
    /// Waiting does not help: a server answers that is not the right one.
    pub const fn lasts(&self) -> bool {
        match self {
            Self::Api(failure) => matches!(failure, ApiError::Untrusted { .. }),
            // While the machine waits, an operator may create the token or make the cluster ready.
            Self::Unsigned { .. } => false,
            Self::NotThere { status, .. } => *status < 500 && *status != 429,
            Self::Unreadable { .. }
            | Self::Untrusted { .. }
            | Self::NothingToKnowItBy
            | Self::OtherBundle { .. }
            | Self::ShortToken
            | Self::Pins(_) => true,
        }
    }
}

/// The trusted CAs of a cluster, and the server's time.
#[derive(Clone, Debug)]
pub struct Discovered {
    /// The cluster's CAs.
    pub roots: Arc<RootCertStore>,
    /// The same CAs as certificates.
    pub authorities: Vec<CertificateDer<'static>>,
    /// The hash of the bundle that held them, where there was a bundle.
    pub bundle: Option<BundleHash>,
    /// The server's `Date` header.
    pub date: Option<String>,
}

/// Asks the endpoint, which is not trusted yet, for its cluster's CA at this path.
///
/// # Errors
///
/// The server does not answer.
pub async fn ask(endpoint: &Endpoint, path: &str, within: Duration) -> Result<Answer, ApiError> {
    let any_server = Trust::Verifier(Arc::new(Judged::by(AnyServer)));
    Api::new(endpoint, any_server, Shown::Nothing)?.get(path, within).await
}

/// Checks the bundle of a k3s or RKE2 server. Unlike their own agents, this module trusts no server because of a public
/// CA: a given hash has to match.
///
/// # Errors
///
/// The answer is not a bundle, or not the right one.
pub fn judge_bundle(
    endpoint: &Endpoint,
    target: &Target,
    answer: &Answer,
) -> Result<Discovered, DiscoveryError> {
    if answer.status != 200 {
        let (endpoint, status) = (endpoint.clone(), answer.status);
        return Err(DiscoveryError::NotThere { endpoint, what: "/cacerts", by: target.kind.name(), status });
    }
    let Bundle { hash, anchors, hashed } = Bundle::read(&answer.body).map_err(|failure| {
        DiscoveryError::Unreadable { endpoint: endpoint.clone(), cause: failure.to_string() }
    })?;
    if let Some(wanted) = target.bundle.filter(|wanted| *wanted != hash) {
        return Err(DiscoveryError::OtherBundle { endpoint: endpoint.clone(), wanted, found: hash });
    }
    if !target.knows_its_cluster() && !target.is_unpinned_on_purpose {
        return Err(DiscoveryError::ShortToken);
    }
    let roots = if target.pins.is_empty() {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(anchors.iter().cloned());
        roots
    } else {
        let untrusted = |source: TrustError| DiscoveryError::Untrusted { endpoint: endpoint.clone(), source };
        let pins = Pins::new(target.pins.clone())?;
        // The agent gets the hash, and trusts every certificate that the hash covers: without a token that vouches for
        // them, all of them have to be pinned. An attacker can put a certificate with a pinned key below a root of the
        // attacker's own, and the hash would cover that root.
        for der in hashed.iter().filter(|_| target.bundle.is_none()) {
            pins.find(std::slice::from_ref(der)).map_err(|mismatch| untrusted(mismatch.into()))?;
        }
        pins.trust(&anchors).map_err(untrusted)?
    };
    let roots = Arc::new(roots);
    Ok(Discovered { roots, authorities: anchors, bundle: Some(hash), date: answer.date.clone() })
}

/// Checks a `cluster-info`.
///
/// # Errors
///
/// It is not one, or does not match the pins or the signature.
pub fn judge(endpoint: &Endpoint, target: &Target, answer: &Answer) -> Result<Discovered, DiscoveryError> {
    if answer.status != 200 {
        let (endpoint, status) = (endpoint.clone(), answer.status);
        return Err(DiscoveryError::NotThere { endpoint, what: "cluster-info", by: "kubeadm", status });
    }
    let unreadable = |cause: String| DiscoveryError::Unreadable { endpoint: endpoint.clone(), cause };
    let info: ConfigMap =
        serde_json::from_slice(&answer.body).map_err(|failure| unreadable(failure.to_string()))?;
    let text = info.data.get("kubeconfig").ok_or_else(|| unreadable("it holds no kubeconfig".to_owned()))?;
    let read = Kubeconfig::of_answer(text);
    let authorities = read.map_err(|failure: TargetError| unreadable(failure.to_string()))?.authorities;
    let untrusted = |source| DiscoveryError::Untrusted { endpoint: endpoint.clone(), source };
    let (roots, authorities) = if target.pins.is_empty() {
        let token = target.token.as_ref().ok_or(DiscoveryError::NothingToKnowItBy)?;
        let signature = info.data.get(&format!("jws-kubeconfig-{}", token.id()));
        if !signature.is_some_and(|signature| is_signed(text, signature, token)) {
            return Err(DiscoveryError::Unsigned {
                endpoint: endpoint.clone(),
                token: token.id().to_owned(),
            });
        }
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(authorities.iter().cloned());
        (roots, authorities)
    } else {
        let pins = Pins::new(target.pins.clone())?;
        // The server may have put a CA of its own beside the pinned one. That CA must reach no other program. The kubelet
        // in particular would show its token to a server of that CA.
        (pins.trust(&authorities).map_err(untrusted)?, pins.pinned(&authorities))
    };
    Ok(Discovered { roots: Arc::new(roots), authorities, bundle: None, date: answer.date.clone() })
}

/// A detached JWS (RFC 7515 appendix F) with HS256, as the bootstrap signer writes it.
pub(crate) fn is_signed(text: &str, signature: &str, token: &Token) -> bool {
    let mut parts = signature.split('.');
    let (Some(header), Some(""), Some(mac), None) = (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return false;
    };
    let names_token = URL_SAFE_NO_PAD
        .decode(header)
        .ok()
        .and_then(|header| serde_json::from_slice::<JwsHeader>(&header).ok())
        .is_some_and(|header| header.alg == "HS256" && header.kid == token.id());
    let Ok(mac) = URL_SAFE_NO_PAD.decode(mac) else { return false };
    let secret = token.secret();
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.expose_secret().as_bytes());
    let signed = format!("{header}.{}", URL_SAFE_NO_PAD.encode(text));
    names_token && hmac::verify(&key, signed.as_bytes(), &mac).is_ok()
}

#[derive(Deserialize)]
struct ConfigMap {
    data: std::collections::BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct JwsHeader {
    alg: String,
    kid: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pem;
    use crate::pin::Pin;
    use crate::root::Root;
    use crate::target::{Arguments, Kind};
    use crate::testing::Authority;
    use base64::engine::general_purpose::STANDARD;

    fn target(kind: Kind, token: &str, pin: Pin) -> Target {
        let arguments = Arguments {
            distribution: Some(kind),
            words: vec!["10.0.0.1:6443".to_owned()],
            token: Some(token.into()),
            ca_cert_hashes: vec![pin.to_string()],
            ..Arguments::default()
        };
        Target::find(&arguments, &Root::new("/nowhere")).unwrap().unwrap()
    }

    fn answer(body: String) -> Answer {
        Answer { status: 200, date: None, body: body.into_bytes() }
    }

    #[test]
    fn unpinned_authority_beside_pinned_one_is_dropped() {
        let (ours, theirs) = (Authority::new("ours"), Authority::new("theirs"));
        let target = target(Kind::Kubeadm, "abcdef.0123456789abcdef", ours.pin());
        let data = STANDARD.encode(pem::certificates(&[theirs.der(), ours.der()]));
        let text = format!(
            "clusters:\n- cluster: {{server: 'https://10.0.0.1:6443', certificate-authority-data: {data}}}\n  name: ''\n"
        );
        let told = answer(serde_json::json!({ "data": { "kubeconfig": text } }).to_string());
        let known = judge(&target.endpoints[0], &target, &told).unwrap();
        assert_eq!(known.authorities, [ours.der()], "a kubelet would show its token to the other");
        assert_eq!(known.roots.roots.len(), 1);
    }

    #[test]
    fn the_hash_that_an_agent_is_told_is_of_what_is_pinned() {
        let root = Authority::new("root");
        let own = root.authority("k3s-server-ca");
        let told = answer(pem::certificates(&[own.der(), root.der()]));
        let judged = |pin| {
            let target = target(Kind::K3s, "c4naryc4naryc4nary", pin);
            judge_bundle(&target.endpoints[0], &target, &told)
        };
        assert!(judged(root.pin()).is_ok());
        let refused = judged(own.pin()).unwrap_err();
        assert!(
            matches!(refused, DiscoveryError::Untrusted { .. }),
            "an attacker's root may stand behind it: {refused}"
        );
    }
}

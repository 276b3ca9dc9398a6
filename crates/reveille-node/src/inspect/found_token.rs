//! Tokens that stand on the machine: which server may be shown one.
//!
//! ```text
//!  K10<hash>::…         ─▶ servers of the bundle with this hash
//!  a short one, a bootstrap token ─▶ servers of the CAs that the join keeps beside it
//!                                 ─▶ else, of k3s and RKE2: the address at which their own agent shows it
//!  the target's own     ─▶ servers of the target
//! ```
//!
//! The target may be a plan's, and the token another cluster's: a registration server that was taken over names a supervisor
//! and pins of its own. A token that was made for another cluster is shown to no server of the target. It counts as one that
//! the target's servers would refuse. Of a token that names no cluster nothing is concluded.

use std::sync::Arc;

use secrecy::ExposeSecret as _;
use tokio_rustls::rustls::RootCertStore;

use super::asking::{Asked, Servers, is_of_another};
use super::{ASK_WITHIN, Inspector};
use crate::api::{Api, Shown, Trust};
use crate::certificate::Presented;
use crate::discovery::Discovered;
use crate::distribution::Begun;
use crate::signing_request;
use crate::target::Token;

/// Whether a token may be shown to the target's servers.
enum May {
    /// To these.
    To(Servers),
    /// It is of another cluster.
    OfAnother,
    /// It names no cluster, and nothing on the machine says that it is of the target's.
    CannotTell,
}

impl Inspector {
    /// Tries the token of a join that has no certificate yet, and then the machine's name.
    pub(super) async fn ask_with_found(&self, begun: &Begun) -> Asked {
        let (token, servers) = match self.servers_for(begun).await {
            Ok(shown) => shown,
            Err(asked) => return asked,
        };
        match self.try_with(token, &servers).await {
            Asked::Guarded => self.ask_for_name(token, &servers).await.unwrap_or(Asked::Guarded),
            asked => asked,
        }
    }

    /// True when the target's servers refuse the token of this join, which is theirs.
    pub(super) async fn refuse_found(&self, begun: &Begun) -> bool {
        match self.servers_for(begun).await {
            Ok((token, servers)) => matches!(self.try_with(token, &servers).await, Asked::Refused),
            Err(_) => false,
        }
    }

    /// The token, and the servers that may be shown it; or what that there are none means.
    async fn servers_for<'b>(&self, begun: &'b Begun) -> Result<(&'b Token, Servers), Asked> {
        let nothing = || Asked::CannotTell("there is no token to ask with".to_owned());
        let token = begun.token.as_ref().ok_or_else(nothing)?;
        let known = self.any_server().await.map_err(Asked::CannotTell)?;
        match self.may_show(begun, token, &known).await {
            May::To(servers) => Ok((token, servers)),
            May::OfAnother => Err(Asked::OfAnother),
            May::CannotTell => Err(Asked::CannotTell(format!(
                "the token {token} on this machine does not say of which cluster it is, and another server is configured beside it: \
                 it is shown to none"
            ))),
        }
    }

    async fn may_show(&self, begun: &Begun, token: &Token, known: &Discovered) -> May {
        let all = Servers::of(known, &self.target);
        if token.bundle().is_some() {
            return if is_of_another(token, known) { May::OfAnother } else { May::To(all) };
        }
        let own = self.token.lock().await.clone();
        if own.is_some_and(|own| own.whole().expose_secret() == token.whole().expose_secret()) {
            return May::To(all);
        }
        if !begun.authorities.is_empty() {
            let shared = shared(begun, known);
            return shared.map_or(May::OfAnother, |roots| May::To(Servers { roots, ..all }));
        }
        let endpoints: Vec<_> = all
            .endpoints
            .iter()
            .filter(|endpoint| begun.shown_at.as_ref() == Some(endpoint))
            .cloned()
            .collect();
        if endpoints.is_empty() { May::CannotTell } else { May::To(Servers { endpoints, ..all }) }
    }

    /// The state of the CertificateSigningRequest that a kubelet makes with its token.
    pub(super) async fn awaited(&self) -> Option<String> {
        let begun = self.distribution.begun(&self.root, self.kubelet_runs() == Some(true)).ok()??;
        let (server, token) = (begun.requests_at.as_ref()?, begun.token.as_ref()?);
        let trust = Trust::Authorities(shared(&begun, &self.authorities().await.ok()?)?);
        let api = Api::new(server, trust, Shown::Token(token.whole())).ok()?;
        let answer = api.get(signing_request::PATH, ASK_WITHIN).await.ok()?;
        let requests = signing_request::read(&answer.body, self.node_name.as_str());
        requests
            .ok()
            .filter(|_| answer.status == 200)
            .and_then(|requests| signing_request::awaited(&requests))
    }
}

/// The target's CAs that are also the join's; none where they have none in common. The target may have others beside them:
/// their servers are not those for which the token was made.
fn shared(begun: &Begun, known: &Discovered) -> Option<Arc<RootCertStore>> {
    let key = |der| Presented::read(der).key;
    let own: Vec<_> = begun.authorities.iter().filter_map(key).collect();
    let shared = known.authorities.iter().filter(|der| key(der).is_some_and(|key| own.contains(&key)));
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(shared.cloned());
    (!roots.is_empty()).then(|| Arc::new(roots))
}

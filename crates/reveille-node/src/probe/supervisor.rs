//! The supervisor of k3s and RKE2: its answers to anonymous clients, and to a token or a certificate.
//!
//! The probe uses the same two connections as for an API server. It trusts nothing on the first one. It shows a token
//! only on the second one, to a server with the CAs whose hash is the token's prefix.

use std::sync::Arc;

use reveille_agent::checkup::Reading;
use reveille_agent::checkup::server::{Api as ApiSeen, ClusterInfo, Server, Signature, TokenSeen};
use tokio_rustls::rustls::RootCertStore;
use tokio_rustls::rustls::pki_types::CertificateDer;

use super::answers::{OfServer, body, words};
use super::{Probe, node};
use crate::api::{Answer, Api, ApiError, Shown, Trust};
use crate::bundle_hash::Bundle;
use crate::distribution;
use crate::target::kubeconfig::Kubeconfig;
use crate::target::{AGENT_USER, Endpoint, Target};
use reveille_core::model::id::NodeName;

/// The path at which an anonymous client reads the bundle of CAs.
pub(super) const BUNDLE: &str = "/cacerts";
/// The source of the CAs, in words for people.
const FROM: &str = "the cluster's own word (/cacerts)";

/// The server's bundle. Fills in its hash.
pub(super) fn told(answer: &Answer, server: &mut Server) -> Vec<(CertificateDer<'static>, String)> {
    server.cluster_info = Reading::Read(ClusterInfo::There(Signature::NoToken));
    if answer.status != 200 {
        server.bundle = Reading::cannot_tell(format!("it answers {} when asked for {BUNDLE}", answer.status));
        return Vec::new();
    }
    let read = Bundle::read(&answer.body).ok();
    server.bundle = Reading::Read(read.as_ref().map(|bundle| bundle.hash.to_string()));
    let anchors = read.map(|bundle| bundle.anchors).unwrap_or_default();
    anchors.into_iter().map(|der| (der, FROM.to_owned())).collect()
}

/// True when a CA from there is the one of the token.
pub(super) fn is_meant(from: &str, target: &Target, server: &Server) -> bool {
    let told = server.bundle.read().and_then(Option::as_ref);
    from == FROM && target.bundle.is_some_and(|wanted| told.is_some_and(|told| *told == wanted.to_string()))
}

/// The credentials for the supervisor, and the requests to it.
pub(super) struct Known<'a> {
    pub(super) endpoint: &'a Endpoint,
    pub(super) target: &'a Target,
    pub(super) node_name: Option<&'a str>,
    /// The kubelet's kubeconfig, where it has a complete certificate.
    pub(super) kubeconfig: Option<&'a Kubeconfig>,
    pub(super) roots: Arc<RootCertStore>,
    /// The server is verified, so the probe may show credentials.
    pub(super) may_show: bool,
}

impl Probe {
    /// The requests that only a verified server gets.
    pub(super) async fn ask_supervisor(&self, known: Known<'_>, of: &mut OfServer) {
        let stranger = Api::new(known.endpoint, Trust::Authorities(Arc::clone(&known.roots)), Shown::Nothing);
        let ping = match stranger {
            Ok(api) => api.get("/ping", self.left()).await,
            Err(error) => Err(error),
        };
        of.server.api = api(ping);
        if !known.may_show || self.is_late() || !matches!(of.server.api, Reading::Read(ApiSeen::Is(_))) {
            return;
        }
        let Ok(way) = distribution::of(known.target.kind, &self.root) else { return };
        let name = NodeName::from(known.node_name.unwrap_or_default());
        if let Some(own) = known.kubeconfig {
            let (Some(client), Some(_)) = (&own.client, known.node_name) else { return };
            for endpoint in way.api_servers(known.target, own) {
                let trust = Trust::Authorities(Arc::clone(&known.roots));
                let Ok(api) = Api::new(&endpoint, trust, Shown::Certificate(client)) else { continue };
                let asked = api.get(&format!("/api/v1/nodes/{name}"), self.left()).await;
                let Ok(answer) = &asked else { continue };
                of.is_accepted = Reading::Read(answer.status != 401);
                of.node = body(asked, |status, body| match status {
                    404 => Some(Ok(None)),
                    200 => Some(node::node(body).map(Some)),
                    _ => None,
                });
                return;
            }
            return;
        }
        if let Some(token) = &known.target.token {
            of.node = Reading::cannot_tell(
                "a token may not read Nodes here: the agent's certificate may, once it has one",
            );
            let shared = token.shared();
            let shown = match &shared {
                Some(shared) => Shown::Password(AGENT_USER, &shared.password),
                None => Shown::Token(token.whole()),
            };
            let asked = match Api::new(known.endpoint, Trust::Authorities(known.roots), shown) {
                Ok(api) => api.get(&way.trial(&name).path, self.left()).await,
                Err(error) => Err(error),
            };
            of.server.token = match asked {
                Ok(answer) => match answer.status {
                    200 => Reading::Read(TokenSeen::Accepted),
                    401 | 403 => Reading::Read(TokenSeen::Refused),
                    status => Reading::cannot_tell(format!("the supervisor answers {status}")),
                },
                Err(error) => Reading::cannot_tell(error.to_string()),
            };
        }
    }
}

/// Whether the server is a supervisor.
fn api(ping: Result<Answer, ApiError>) -> Reading<ApiSeen> {
    match ping {
        Ok(answer) if answer.status == 200 && answer.body.trim_ascii() == b"pong" => {
            Reading::Read(ApiSeen::Is("supervisor".to_owned()))
        }
        Ok(answer) if answer.status >= 500 => {
            Reading::Read(ApiSeen::Refuses(answer.status, words(&answer.body)))
        }
        Ok(answer) => Reading::Read(ApiSeen::Else(answer.status, words(&answer.body))),
        Err(ApiError::Silent { .. }) => Reading::Read(ApiSeen::Silent),
        Err(error) => Reading::cannot_tell(error.to_string()),
    }
}

//! The requests to API servers: which server, with which credential, and what the answer means; one server after the
//! other, until one answers.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use secrecy::SecretString;
use tokio_rustls::rustls::RootCertStore;

use super::{ASK_WITHIN, CLOCK_RIGHT, CLOCK_WRONG, Inspector, is_right};
use crate::api::{Answer, Api, Shown, Trust};
use crate::discovery::Discovered;
use crate::lines::Key;
use crate::node_object::NodeObject;
use crate::target::kubeconfig::{Client, Kubeconfig};
use crate::target::{AGENT_USER, Endpoint, Kind, Target, Token};

/// The result of asking for the Node.
pub(super) enum Asked {
    There(Box<NodeObject>),
    /// The Node does not exist; true when it existed for a moment since the last inspection.
    NotThere(bool),
    /// The cluster has another machine under this name: the advice.
    NameTaken(String),
    /// The API server accepts the credentials, and they may not read this Node.
    Forbidden,
    /// The API server accepts the token, which may not read Nodes; the cluster itself guards the name.
    Guarded,
    Refused,
    /// The token is of another cluster, and was shown to no server.
    OfAnother,
    CannotTell(String),
}

impl Inspector {
    pub(super) async fn ask_with_own_token(&self) -> Asked {
        let token = self.token.lock().await.clone();
        self.ask_with_token(token.as_ref()).await
    }

    pub(super) async fn ask_with_token(&self, token: Option<&Token>) -> Asked {
        let Some(token) = token else { return Asked::CannotTell("there is no token to ask with".to_owned()) };
        match self.any_server().await {
            Ok(known) if is_of_another(token, &known) => Asked::OfAnother,
            Ok(known) => self.try_with(token, &Servers::of(&known, &self.target)).await,
            Err(cause) => Asked::CannotTell(cause),
        }
    }

    /// Tries a token with these servers, which it may be shown.
    pub(super) async fn try_with(&self, token: &Token, servers: &Servers) -> Asked {
        let trial = self.distribution.trial(&self.node_name);
        let answer = match servers.with_token(token, &trial.path, &[]).await {
            Ok(answer) => answer,
            Err(cause) => return Asked::CannotTell(cause),
        };
        match answer.status {
            _ if trial.is_node => of_answer(&answer),
            200 => Asked::Guarded,
            // A supervisor answers 403 to a client that it knows, but does not let it join.
            401 | 403 => Asked::Refused,
            status => Asked::CannotTell(format!("the supervisor answers {status}")),
        }
    }

    /// Asks whether the cluster has another machine under this name; none where it does not, or where the request is not
    /// possible.
    pub(super) async fn ask_for_name(&self, token: &Token, servers: &Servers) -> Option<Asked> {
        let trial = self.distribution.name_trial(&self.root, &self.node_name)?;
        let answer = servers.with_token(token, &trial.path, &trial.headers).await.ok()?;
        // An answer with another status contains a certificate and its key: the inspector reads neither.
        (answer.status == 403).then_some(Asked::NameTaken(trial.advice))
    }

    /// The CAs of the target's servers.
    pub(super) async fn any_server(&self) -> Result<Discovered, String> {
        self.authorities().await.map_err(|failure| failure.to_string())
    }

    /// Asks for the Node with the kubelet's certificate.
    pub(super) async fn ask(&self, own: &Kubeconfig, client: &Client) -> Asked {
        match self.with_certificate(own, client, &format!("/api/v1/nodes/{}", self.node_name)).await {
            Ok(answer) => {
                let clock = if is_right(answer.date.as_deref()) { CLOCK_RIGHT } else { CLOCK_WRONG };
                self.clock.store(clock, Ordering::Relaxed);
                of_answer(&answer)
            }
            Err(cause) => Asked::CannotTell(cause),
        }
    }

    /// Asks the API servers, one after the other, until one gives a usable answer.
    pub(super) async fn with_certificate(
        &self,
        own: &Kubeconfig,
        client: &Client,
        path: &str,
    ) -> Result<Answer, String> {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(own.authorities.iter().cloned());
        let roots = Arc::new(roots);
        let mut last = "no server is named".to_owned();
        for endpoint in self.distribution.api_servers(&self.target, own) {
            let key = Key::of(&endpoint, &own.authorities, Some(client));
            let trust = || Trust::Authorities(Arc::clone(&roots));
            let make = || Api::new(&endpoint, trust(), Shown::Certificate(client));
            last = match self.lines.get(key, make, path, ASK_WITHIN).await {
                Ok(answer) if matches!(answer.status, 200 | 401 | 403 | 404 | 410) => return Ok(answer),
                Ok(answer) => format!("the API server answers {}", answer.status),
                Err(failure) => failure.to_string(),
            };
        }
        Err(last)
    }
}

/// Servers that may be shown a token: those of these CAs, at these addresses.
pub(super) struct Servers {
    pub(super) roots: Arc<RootCertStore>,
    pub(super) endpoints: Vec<Endpoint>,
}

impl Servers {
    /// All servers of the target.
    pub(super) fn of(known: &Discovered, target: &Target) -> Self {
        Self { roots: Arc::clone(&known.roots), endpoints: target.endpoints.clone() }
    }

    /// Asks the servers, one after the other, until one answers.
    async fn with_token(
        &self,
        token: &Token,
        path: &str,
        headers: &[(String, SecretString)],
    ) -> Result<Answer, String> {
        let shared = token.shared();
        let shown = match &shared {
            Some(shared) => Shown::Password(AGENT_USER, &shared.password),
            None => Shown::Token(token.whole()),
        };
        let mut last = "no server is named".to_owned();
        for endpoint in &self.endpoints {
            let api = Api::new(endpoint, Trust::Authorities(Arc::clone(&self.roots)), shown);
            let asked = match api {
                Ok(api) => api.get_as(path, headers, ASK_WITHIN).await,
                Err(failure) => Err(failure),
            };
            match asked {
                Ok(answer) => return Ok(answer),
                Err(failure) => last = failure.to_string(),
            }
        }
        Err(last)
    }
}

/// True when the token names another cluster than the one with these CAs.
pub(super) fn is_of_another(token: &Token, known: &Discovered) -> bool {
    token.bundle().is_some_and(|said| known.bundle != Some(said))
}

/// True when a server of these CAs answers at this address.
pub(super) async fn answers(endpoint: &Endpoint, roots: &Arc<RootCertStore>) -> bool {
    match Api::new(endpoint, Trust::Authorities(Arc::clone(roots)), Shown::Nothing) {
        Ok(api) => api.get("/version", ASK_WITHIN).await.is_ok(),
        Err(_) => false,
    }
}

/// The meaning of a refused token, and what to do.
pub(super) fn refused(kind: Kind, token: &Token) -> String {
    match kind {
        Kind::Kubeadm => format!(
            "the API server refuses the token {token}: it has expired, or was deleted; make one with: kubeadm token create"
        ),
        kind if token.shared().is_none() => format!(
            "the supervisor refuses the token {token}: it has expired, or was deleted; make one on a server with: {kind} token create"
        ),
        kind => format!(
            "the supervisor refuses the token {token}: it was rotated, or the servers have a token of their own for agents (agent-token); \
             take the one that is in /var/lib/rancher/{kind}/server/agent-token where that file is, and else in node-token beside it"
        ),
    }
}

fn of_answer(answer: &Answer) -> Asked {
    match answer.status {
        200 => match serde_json::from_slice(&answer.body) {
            Ok(node) => Asked::There(Box::new(node)),
            Err(failure) => Asked::CannotTell(format!("its Node cannot be read: {failure}")),
        },
        404 => Asked::NotThere(false),
        401 => Asked::Refused,
        403 => Asked::Forbidden,
        status => Asked::CannotTell(format!("the API server answers {status}")),
    }
}
